//! Rows that the store keeps beside the ledger, computed from the state (architecture 4, 7).
//!
//! They are caches: deleting them changes no answer, only the time it takes.

use super::AgentState;
use super::agent::Lifecycle;
use super::owed::{deadline, is_due_at_once, owed};
use super::posture::{PostureKind, posture};
use super::waiting::WebhookSecret;
use crate::events::agent::{Ownership, Preset, Role, Visibility};
use crate::events::{
    Envelope, Event, MemoryEvent, OperatorEvent, QueueEvent, TaskEvent, TurnEvent, WaitingEvent, WorkEvent,
};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq, RunId, TimerId, TriggerId, WaitId};
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
    pub work_open: u64,
    pub supervisor: Option<AgentId>,
    pub current_run: Option<RunId>,
    pub has_weak_external_wait: bool,
    pub timers_pending: u64,
    pub deliveries_owed: u64,
    pub model: Option<String>,
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
        work_open: state.works.open.len() as u64,
        supervisor: state.agent.supervisor.clone(),
        current_run: state.turns.current.as_ref().map(|turn| turn.run),
        has_weak_external_wait: posture.has_weak_external_wait,
        timers_pending: posture.timers_pending as u64,
        deliveries_owed: state.bindings.open.values().map(|binding| binding.owed.len() as u64).sum(),
        model: state.agent.model.clone(),
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
    Work,
    Wait,
    Timer,
    Trigger,
    Episode,
    Binding,
    Notice,
}

impl RecordKind {
    /// The number of the kind in the store.
    pub fn number(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Run => 2,
            Self::Task => 3,
            Self::Brief => 4,
            Self::Work => 5,
            Self::Wait => 6,
            Self::Timer => 7,
            Self::Trigger => 8,
            Self::Episode => 9,
            Self::Binding => 10,
            Self::Notice => 11,
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

/// A capability's token, by whose hash its agent is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub token_hash: Hash,
    /// Whether it still opens anything.
    pub is_live: bool,
}

/// The token that `envelope` makes live, or worthless. `state` is the state before it.
pub fn token(state: &AgentState, envelope: &Envelope) -> Option<TokenRow> {
    match &envelope.event {
        Event::Waiting(WaitingEvent::TriggerCreated(event)) => {
            Some(TokenRow { token_hash: event.token_hash, is_live: true })
        }
        Event::Waiting(WaitingEvent::TriggerRevoked(event)) => {
            let trigger = state.waiting.triggers.get(&event.trigger)?;
            Some(TokenRow { token_hash: trigger.token_hash, is_live: false })
        }
        Event::Waiting(_)
        | Event::Agent(_)
        | Event::Queue(_)
        | Event::Turn(_)
        | Event::Work(_)
        | Event::Task(_)
        | Event::Workspace(_)
        | Event::Operator(_)
        | Event::Memory(_)
        | Event::Home(_) => None,
    }
}

/// The names of the secrets that a state rests on, which the home keeps.
pub fn secrets(state: &AgentState) -> Vec<String> {
    let of_bindings = state.bindings.open.values().map(|binding| &binding.terms.secret);
    of_bindings.chain(state.waiting.webhook.iter().flat_map(WebhookSecret::names)).cloned().collect()
}

/// The names of the secrets that nothing names any more after `envelope`. `state` is the state before it.
#[expect(clippy::wildcard_enum_match_arm, reason = "few events end a secret")]
pub fn worthless(state: &AgentState, envelope: &Envelope) -> Vec<String> {
    let of_binding = |binding| state.bindings.open.get(&binding).map(|open| open.terms.secret.clone());
    let webhook = || state.waiting.webhook.iter();
    match &envelope.event {
        Event::Operator(OperatorEvent::BindingUpserted(event)) => {
            of_binding(event.binding).filter(|secret| *secret != event.terms.secret).into_iter().collect()
        }
        Event::Operator(OperatorEvent::BindingRevoked(event)) => of_binding(event.binding).into_iter().collect(),
        Event::Waiting(WaitingEvent::WebhookSecretSet(event)) => {
            let kept =
                |secret: &&String| webhook().any(|now| event.previous == Some(now.set) && now.secret == **secret);
            webhook().flat_map(WebhookSecret::names).filter(|secret| !kept(secret)).cloned().collect()
        }
        Event::Waiting(WaitingEvent::WebhookSecretCleared(_)) => {
            webhook().flat_map(WebhookSecret::names).cloned().collect()
        }
        _ => Vec::new(),
    }
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
        Event::Operator(OperatorEvent::BindingRevoked(event)) => {
            (RecordKind::Binding, event.binding.0, state.bindings.open.get(&event.binding)?.bound)
        }
        Event::Operator(OperatorEvent::NotificationRequested(event)) => {
            (RecordKind::Notice, event.notice.0, envelope.seq)
        }
        Event::Work(WorkEvent::Completed(event)) => {
            (RecordKind::Work, event.work.0, state.works.open.get(&event.work)?.created)
        }
        Event::Memory(MemoryEvent::EpisodeFinalized(event)) => (RecordKind::Episode, event.episode.0, envelope.seq),
        Event::Waiting(event) => return closes_waiting(state, event, envelope.seq),
        Event::Agent(_)
        | Event::Queue(_)
        | Event::Turn(_)
        | Event::Work(_)
        | Event::Task(_)
        | Event::Workspace(_)
        | Event::Operator(_)
        | Event::Memory(_)
        | Event::Home(_) => return None,
    };
    Some(RecordRow { kind, number, first, last: envelope.seq })
}

fn closes_waiting(state: &AgentState, event: &WaitingEvent, last: EventSeq) -> Option<RecordRow> {
    let waiting = &state.waiting;
    let wait = |id: &WaitId| Some((RecordKind::Wait, id.0, waiting.waits.get(id)?.created));
    let timer = |id: &TimerId| Some((RecordKind::Timer, id.0, waiting.timers.get(id)?.created));
    let trigger = |id: &TriggerId| Some((RecordKind::Trigger, id.0, waiting.triggers.get(id)?.created));
    let (kind, number, first) = match event {
        WaitingEvent::WaitConsumed(event) => wait(&event.wait),
        WaitingEvent::WaitCancelled(event) => wait(&event.wait),
        WaitingEvent::WaitSuperseded(event) => wait(&event.wait),
        WaitingEvent::WaitExpired(event) => wait(&event.wait),
        WaitingEvent::TimerCancelled(event) => timer(&event.timer),
        WaitingEvent::TimerFired(event) if waiting.timers.get(&event.timer)?.interval_ms.is_none() => {
            timer(&event.timer)
        }
        WaitingEvent::TriggerRevoked(event) => trigger(&event.trigger),
        WaitingEvent::WakeRequested(_)
        | WaitingEvent::WaitCreated(_)
        | WaitingEvent::WaitTriggered(_)
        | WaitingEvent::TimerCreated(_)
        | WaitingEvent::TimerFired(_)
        | WaitingEvent::TriggerCreated(_)
        | WaitingEvent::CallbackDelivered(_)
        | WaitingEvent::WebhookSecretSet(_)
        | WaitingEvent::WebhookSecretCleared(_) => None,
    }?;
    Some(RecordRow { kind, number, first, last })
}
