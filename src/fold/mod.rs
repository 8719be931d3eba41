//! Floor 2: the state of an agent as a fold over its ledger, and what follows from it.
//!
//! [`AgentState::evolve`] holds no rules, only legality: an event that cannot follow is [`IllegalEvent`], when it is
//! about to be written and again on every reading (architecture 1). Posture, owed effects and rows are functions of
//! the state and are stored in it nowhere.
//!
//! **Invariant:** the state is bounded by what is open. What cannot change any more leaves it (architecture 7).

pub mod agent;
pub mod invariant;
pub mod operator;
pub mod owed;
pub mod posture;
pub mod queue;
pub mod receipt;
pub mod row;
pub mod task;
pub mod turn;

use crate::events::{AgentEvent, Envelope, Event, TaskEvent, TurnEvent, WaitingEvent};
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Marks checkpoints with the shape of the state: another number means that they are folded anew.
pub const FOLD_VERSION: u32 = 1;

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
    pub tasks: task::Tasks,
    pub briefs: operator::Briefs,
    pub receipts: receipt::Receipts,
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
            tasks: task::Tasks::default(),
            briefs: operator::Briefs::default(),
            receipts: receipt::Receipts::default(),
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
        let place = Place { seq: envelope.seq, at: envelope.at };
        self.apply(&envelope.event, place).map_err(illegal)?;
        self.head = envelope.seq;
        self.last_at = envelope.at;
        Ok(())
    }

    fn apply(&mut self, event: &Event, place: Place) -> Result<(), Illegal> {
        match event {
            Event::Agent(AgentEvent::RequestAnswered(event)) => self.receipts.evolve(event, place),
            Event::Agent(event) => self.agent.evolve(event, &self.agent_id, place),
            Event::Queue(event) => self.apply_queue(event, place),
            Event::Turn(TurnEvent::Started(event)) => {
                let message = self.queue.take(event.message)?;
                self.turns.start(event, message, place)
            }
            Event::Turn(event) => self.turns.evolve(event, place),
            Event::Task(event) => self.apply_task(event, place),
            Event::Waiting(WaitingEvent::WakeRequested(event)) => self.queue.wake(event, place),
            Event::Operator(event) => {
                self.queue.acknowledged(event);
                self.turns.told(event, place);
                self.briefs.evolve(event, place)
            }
        }
    }

    /// A message is settled out of the queue, or as the one its turn is spent on.
    fn apply_queue(&mut self, event: &crate::events::QueueEvent, place: Place) -> Result<(), Illegal> {
        match event {
            crate::events::QueueEvent::Enqueued(event) => self.queue.enqueue(event, place),
            crate::events::QueueEvent::Settled(event) if self.turns.is_spent_on(event.message) => {
                self.turns.settle_message(event)
            }
            crate::events::QueueEvent::Settled(event) => self.queue.settle(event),
        }
    }

    /// A command that a call asked for opens that call; it is closed by the call's recorded result.
    fn apply_task(&mut self, event: &TaskEvent, place: Place) -> Result<(), Illegal> {
        if let TaskEvent::CreateRequested(event) = event
            && let Some(caller) = &event.caller
        {
            self.turns.open_call(caller, event.task)?;
        }
        self.tasks.evolve(event, place)
    }

    /// Whether the agent exists.
    pub fn is_born(&self) -> bool {
        self.head > EventSeq::ZERO
    }
}
