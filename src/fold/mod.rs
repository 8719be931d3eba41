//! Floor 2: the state of an agent as a fold over its ledger, and what follows from it.
//!
//! [`AgentState::evolve`] holds no rules, only legality: an event that cannot follow is [`IllegalEvent`], when it is
//! about to be written and again on every reading (architecture 1). Posture, owed effects and rows are functions of
//! the state and are stored in it nowhere.
//!
//! **Invariant:** the state is bounded by what is open. What cannot change any more leaves it (architecture 7).

pub mod agent;
pub mod binding;
pub mod control;
pub mod errand;
pub mod home;
pub mod invariant;
pub mod memory;
pub mod operator;
pub mod outbox;
pub mod outside;
pub mod owed;
pub mod posture;
pub mod queue;
pub mod receipt;
pub mod row;
pub mod task;
pub mod turn;
pub mod waiting;
pub mod work;
pub mod workspace;

use crate::events::queue::{MessageKind, MessageOutcome};
use crate::events::task::{Exit, TaskExited};
use crate::events::{
    AgentEvent, Cause, Envelope, Event, OperatorEvent, QueueEvent, TaskEvent, TurnEvent, WaitingEvent,
};
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Marks checkpoints with the shape of the state: another number means that they are folded anew.
pub const FOLD_VERSION: u32 = 8;

/// Everything an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentState {
    pub agent_id: AgentId,
    /// The last event folded in.
    pub head: EventSeq,
    /// The clock reading of that event.
    pub last_at: Timestamp,
    pub agent: agent::Agent,
    pub queue: queue::Queue,
    pub turns: turn::Turns,
    pub works: work::Works,
    pub tasks: task::Tasks,
    pub waiting: waiting::Waiting,
    pub workspaces: workspace::Workspaces,
    pub memory: memory::Memory,
    pub outbox: outbox::Outbox,
    pub briefs: operator::Briefs,
    pub bindings: binding::Bindings,
    pub receipts: receipt::Receipts,
    pub errands: errand::Errands,
    pub controls: control::Controls,
    pub outside: outside::Outside,
}

/// An event that cannot follow the state before it: the ledger is damaged, or we are wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) cannot follow: {reason}")]
pub struct IllegalEvent {
    pub seq: EventSeq,
    pub kind: &'static str,
    pub reason: &'static str,
}

/// Why one plane cannot take an event.
type Illegal = &'static str;

/// An event's place, as the planes need it.
#[derive(Clone, Copy)]
struct Place {
    seq: EventSeq,
    at: Timestamp,
}

impl AgentState {
    /// An agent of which nothing is recorded.
    pub fn unborn(agent_id: AgentId) -> Self {
        Self {
            agent_id,
            head: EventSeq::ZERO,
            last_at: Timestamp::default(),
            agent: agent::Agent::default(),
            queue: queue::Queue::default(),
            turns: turn::Turns::default(),
            works: work::Works::default(),
            tasks: task::Tasks::default(),
            waiting: waiting::Waiting::default(),
            workspaces: workspace::Workspaces::default(),
            memory: memory::Memory::default(),
            outbox: outbox::Outbox::default(),
            briefs: operator::Briefs::default(),
            bindings: binding::Bindings::default(),
            receipts: receipt::Receipts::default(),
            errands: errand::Errands::default(),
            controls: control::Controls::default(),
            outside: outside::Outside::default(),
        }
    }

    /// Takes in the next event. On an error the state is spoilt and must be dropped.
    pub fn evolve(&mut self, envelope: &Envelope) -> Result<(), IllegalEvent> {
        let illegal = |reason| IllegalEvent { seq: envelope.seq, kind: envelope.event.kind(), reason };
        if envelope.seq != self.head.next() {
            return Err(illegal("its event_seq does not follow"));
        }
        let birth = matches!(envelope.event, Event::Agent(AgentEvent::Created(_)));
        if birth != (self.head == EventSeq::ZERO) {
            return Err(illegal("a ledger begins with the agent's creation, and only there"));
        }
        if self.agent.lifecycle == agent::Lifecycle::Archived {
            return Err(illegal("the ledger is sealed"));
        }
        let place = Place { seq: envelope.seq, at: envelope.at };
        self.apply(&envelope.event, place).map_err(illegal)?;
        if envelope.cause == Cause::External {
            self.outside.note(&envelope.event, envelope.at);
        }
        self.controls.note(envelope);
        self.head = envelope.seq;
        self.last_at = envelope.at;
        Ok(())
    }

    fn apply(&mut self, event: &Event, place: Place) -> Result<(), Illegal> {
        match event {
            Event::Agent(event) => self.apply_agent(event, place),
            Event::Queue(event) => self.apply_queue(event, place),
            Event::Turn(event) => self.apply_turn(event, place),
            Event::Work(event) => {
                self.turns.worked(event);
                self.works.evolve(event, place)
            }
            Event::Task(event) => self.apply_task(event, place),
            Event::Waiting(WaitingEvent::WakeRequested(event)) => {
                self.works.news(&[]);
                self.queue.wake(event, place)
            }
            Event::Waiting(event) => self.waiting.evolve(event, place),
            Event::Workspace(event) => self.workspaces.evolve(event, place),
            Event::Operator(event) => self.apply_operator(event, place),
            Event::Memory(event) => {
                self.turns.remembered(event);
                self.memory.evolve(event, place)
            }
            Event::Home(_) => Err("an event of the home is not an agent's"),
        }
    }

    /// Receipts, errands and the outbox are parts of the state by themselves.
    fn apply_agent(&mut self, event: &AgentEvent, place: Place) -> Result<(), Illegal> {
        match event {
            AgentEvent::RequestAnswered(event) => self.receipts.evolve(event, place),
            AgentEvent::ErrandTaken(event) => self.errands.evolve(event),
            AgentEvent::Reported(event) => {
                let (status, report, usage) = (event.status, event.report.clone(), event.usage);
                let derived_from = self.turns.derived().cloned();
                self.outbox.owe(place.seq, outbox::Delivery::Report { status, report, usage, derived_from })
            }
            AgentEvent::Delivered(event) => self.outbox.delivered(event.entry),
            AgentEvent::Created(_)
            | AgentEvent::Started(_)
            | AgentEvent::Stopped(_)
            | AgentEvent::Paused(_)
            | AgentEvent::Spawned(_)
            | AgentEvent::Inherited(_)
            | AgentEvent::ModelSet(_)
            | AgentEvent::ModelCleared(_)
            | AgentEvent::ArchiveRequested(_)
            | AgentEvent::Archived(_) => self.agent.evolve(event, &self.agent_id, place),
        }
    }

    /// A message is settled out of the queue, or as the one its turn is spent on. What comes in is news to the work
    /// it is about, or to all work if it is about none; the runtime's own ticks are not.
    fn apply_queue(&mut self, event: &QueueEvent, place: Place) -> Result<(), Illegal> {
        match event {
            QueueEvent::Enqueued(event) => {
                if event.kind != MessageKind::SystemTick {
                    self.works.news(&queue::work_of(&event.about));
                }
                self.queue.enqueue(event, place)
            }
            QueueEvent::Settled(event) if self.turns.is_spent_on(event.message) => self.turns.settle_message(event),
            QueueEvent::Settled(event) => {
                let queued = self.queue.take(event.message)?;
                if let MessageOutcome::Interjected(_) = event.outcome {
                    self.turns.answers_to(queued.reply_route);
                }
                Ok(())
            }
        }
    }

    /// A turn takes its message out of the queue and its work into focus; what it does for the work is progress.
    fn apply_turn(&mut self, event: &TurnEvent, place: Place) -> Result<(), Illegal> {
        match event {
            TurnEvent::Started(event) => {
                let message = self.queue.take(event.message)?;
                self.works.focus_on(event.work)?;
                self.turns.start(event, message, place)
            }
            TurnEvent::Entry(entry) => {
                if turn::is_progress(&entry.entry)
                    && let Some(work) = self.turns.current.as_ref().and_then(|turn| turn.work)
                {
                    self.works.progress(work);
                }
                self.turns.evolve(event, place)
            }
            TurnEvent::RoundRequested(round) => {
                for (message, queued) in self.queue.named(&round.interjections) {
                    self.turns.takes_in(message, queued);
                }
                self.turns.evolve(event, place)
            }
            TurnEvent::RoundAttempted(_)
            | TurnEvent::RoundAttemptFailed(_)
            | TurnEvent::CallStarted(_)
            | TurnEvent::Aborted(_)
            | TurnEvent::Terminal(_) => self.turns.evolve(event, place),
        }
    }

    /// A command that a call asked for opens that call; it is closed by the call's recorded result. What a child cost
    /// its parent has spent.
    fn apply_task(&mut self, event: &TaskEvent, place: Place) -> Result<(), Illegal> {
        if let TaskEvent::CreateRequested(event) = event
            && let Some(caller) = &event.caller
        {
            self.turns.open_call(caller, event.task)?;
        }
        if let TaskEvent::Exited(TaskExited { exit: Exit::Reported(usage), .. }) = event {
            self.turns.spent_by_child(usage);
        }
        if let TaskEvent::Exited(event) = event
            && let Some(child) = self.tasks.open.get(&event.task).and_then(task::Task::child)
        {
            self.errands.forget(&child.agent);
        }
        self.tasks.evolve(event, place)
    }

    /// What a private agent wants known is owed to its supervisor; what a public one tells, to its operator's bindings.
    fn apply_operator(&mut self, event: &OperatorEvent, place: Place) -> Result<(), Illegal> {
        self.queue.acknowledged(event);
        let turn = self.turns.current.as_ref().map(|turn| (turn.run, turn.reply_routes.as_slice()));
        self.bindings.evolve(event, turn, place)?;
        self.turns.told(event, place);
        if let OperatorEvent::NotificationRequested(notice) = event
            && self.agent.is_supervised()
        {
            let (text, derived_from) = (notice.text.clone(), self.turns.derived().cloned());
            self.outbox.owe(place.seq, outbox::Delivery::Notice { text, derived_from })?;
        }
        self.briefs.evolve(event, place)
    }

    /// Whether the agent exists.
    pub fn is_born(&self) -> bool {
        self.head > EventSeq::ZERO
    }
}
