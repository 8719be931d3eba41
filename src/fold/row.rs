//! Rows that the store keeps beside the ledger, computed from the state (architecture 4, 7).
//!
//! They are caches: deleting them changes no answer, only the time it takes.

use super::AgentState;
use super::agent::Lifecycle;
use super::owed::{deadline, is_due_at_once, owed};
use super::posture::{PostureKind, posture};
use crate::events::agent::{Ownership, Preset, Role, Visibility};
use crate::events::{Envelope, Event, OperatorEvent, QueueEvent, TaskEvent, TurnEvent};
use crate::words::id::{Boot, EventSeq, RunId};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// An agent as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRow {
    pub role: Role,
    pub visibility: Visibility,
    pub ownership: Ownership,
    pub preset: Preset,
    pub lifecycle: Lifecycle,
    pub created_at: Timestamp,
    pub posture: PostureKind,
    pub posture_reason: String,
    pub evidence: Vec<EventSeq>,
    pub messages_waiting: u64,
    pub tasks_open: u64,
    pub current_run: Option<RunId>,
}

/// What the rows of one agent say after an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub list: ListRow,
    /// Whether the agent is to be woken at boot.
    pub due: bool,
    /// Otherwise, when it is to be woken.
    pub deadline: Option<Timestamp>,
}

/// The rows that follow from the state.
pub fn rows(state: &AgentState, boot: Boot) -> Rows {
    let owed = owed(state, boot);
    Rows { list: list_row(state), due: is_due_at_once(&owed), deadline: deadline(&owed) }
}

fn list_row(state: &AgentState) -> ListRow {
    let posture = posture(state);
    ListRow {
        role: state.agent.role,
        visibility: state.agent.visibility,
        ownership: state.agent.ownership,
        preset: state.agent.preset,
        lifecycle: state.agent.lifecycle,
        created_at: state.agent.created_at,
        posture: posture.kind,
        posture_reason: posture.reason.to_owned(),
        evidence: posture.evidence,
        messages_waiting: state.queue.waiting.len() as u64,
        tasks_open: state.tasks.open.len() as u64,
        current_run: state.turns.current.as_ref().map(|turn| turn.run),
    }
}

/// What kind of record a [`RecordRow`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    Message,
    Run,
    Task,
    Brief,
}

impl RecordKind {
    /// The number of the kind in the store.
    pub fn number(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Run => 2,
            Self::Task => 3,
            Self::Brief => 4,
        }
    }
}

/// Where a record that has left the state is to be found: its first and its last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub kind: RecordKind,
    pub number: u64,
    pub first: EventSeq,
    pub last: EventSeq,
}

/// The row of the record that `envelope` closes. `state` is the state before it.
pub fn closes(state: &AgentState, envelope: &Envelope) -> Option<RecordRow> {
    let (kind, number, first) = match &envelope.event {
        Event::Queue(QueueEvent::Settled(event)) => {
            let in_turn = state.turns.current.as_ref().filter(|turn| turn.message == event.message);
            let queued = in_turn.map(|turn| &turn.queued).or_else(|| state.queue.waiting.get(&event.message))?;
            (RecordKind::Message, event.message.0, queued.seq)
        }
        Event::Turn(TurnEvent::Terminal(event)) => {
            (RecordKind::Run, event.run.0, state.turns.current.as_ref()?.started)
        }
        Event::Task(TaskEvent::Exited(event)) => {
            (RecordKind::Task, event.task.0, state.tasks.open.get(&event.task)?.requested)
        }
        Event::Operator(OperatorEvent::BriefCreated(event)) => (RecordKind::Brief, event.brief.0, envelope.seq),
        Event::Agent(_) | Event::Queue(_) | Event::Turn(_) | Event::Task(_) | Event::Waiting(_) => return None,
    };
    Some(RecordRow { kind, number, first, last: envelope.seq })
}
