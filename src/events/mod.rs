//! Floor 1: the vocabulary of the ledger.
//!
//! An event is a fact about one agent, in the past tense. Each kind has a fixed numeric tag and a version; old bytes
//! never change (architecture 24). Each plane has one file here; [`codec`] alone knows the bytes, [`upcast`] lifts
//! the bodies of older versions, [`schema`] lists every kind for `ledger-schema/`.
//!
//! **Invariant:** nothing here decides anything, and nothing here is JSON.

#[macro_use]
mod vocabulary;

pub mod actor;
pub mod agent;
pub mod call;
pub mod codec;
pub mod home;
pub mod memory;
pub mod operator;
pub mod payload;
pub mod queue;
pub mod schema;
pub mod task;
pub mod turn;
pub mod upcast;
pub mod waiting;
pub mod work;
pub mod workspace;

use crate::words::id::{AgentId, EventSeq, RunId, TaskId};
use crate::words::time::Timestamp;
pub use actor::Actor;
pub use agent::AgentEvent;
pub use home::HomeEvent;
pub use memory::MemoryEvent;
pub use operator::OperatorEvent;
pub use queue::QueueEvent;
pub use task::TaskEvent;
pub use turn::TurnEvent;
pub use waiting::WaitingEvent;
pub use work::WorkEvent;
pub use workspace::WorkspaceEvent;

shape! {
    /// Who or what a command came from. All events of one command share it.
    pub enum Cause {
        /// The runtime itself: boot, scheduling, a deadline.
        Runtime,
        /// A person or program on the control plane that nothing names. Control requests are recorded as `Control`.
        Operator,
        /// Somebody on a public route.
        External,
        /// The turn that was running.
        Run(RunId),
        /// A managed execution.
        Task(TaskId),
        /// Another agent.
        Agent(AgentId),
        /// A person or program on the control plane, and who that was.
        Control(Actor),
    }
}

impl Cause {
    /// Whether the command came by the control plane.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Operator | Self::Control(_))
    }

    /// Who asked on the control plane, where the record names them.
    pub fn actor(&self) -> Option<&Actor> {
        if let Self::Control(actor) = self { Some(actor) } else { None }
    }
}

/// One event in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub seq: EventSeq,
    /// The clock as the command's reading gave it. It may be earlier than that of the event before.
    pub at: Timestamp,
    pub cause: Cause,
    pub event: Event,
}

/// Defines [`Event`] and what is asked of it plane by plane.
macro_rules! planes {
    ($($(#[doc = $doc:literal])* $plane:ident($events:ident) = $name:literal;)*) => {
        /// A fact about one agent, or about the home. Its serde form is its body alone, for people; the ledger's is [`codec`]'s.
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Event {
            $($(#[doc = $doc])* $plane($events),)*
        }

        impl Event {
            /// The number that marks this kind in the ledger, for ever.
            pub fn tag(&self) -> u16 {
                match self { $(Self::$plane(event) => event.tag(),)* }
            }

            /// The kind's name on the wire, in snake case.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$plane(event) => event.kind(),)* }
            }

            pub(super) fn encode_body(&self, bytes: &mut Vec<u8>) -> Result<(), codec::CodecError> {
                match self { $(Self::$plane(event) => event.encode_body(bytes),)* }
            }

            pub(super) fn decode_body(tag: u16, body: &[u8]) -> Result<Self, codec::CodecError> {
                $(if let Some(event) = $events::decode_body(tag, body) {
                    return event.map(Self::$plane);
                })*
                Err(codec::CodecError::UnknownTag(tag))
            }
        }

        $(impl From<$events> for Event {
            fn from(event: $events) -> Self {
                Self::$plane(event)
            }
        })*

        /// Every kind of event, plane by plane.
        pub const PLANES: &[(&str, &[vocabulary::KindRow])] = &[$(($name, $events::KINDS),)*];
    };
}

planes! {
    /// The agent itself: identity and lifecycle.
    Agent(AgentEvent) = "agent";
    /// Messages: taken in, and settled.
    Queue(QueueEvent) = "queue";
    /// Turns: model rounds, tool calls, ends.
    Turn(TurnEvent) = "turn";
    /// What the agent is trying to achieve.
    Work(WorkEvent) = "work";
    /// Managed executions.
    Task(TaskEvent) = "task";
    /// Waits, timers, triggers and wakes.
    Waiting(WaitingEvent) = "waiting";
    /// Where the agent works.
    Workspace(WorkspaceEvent) = "workspace";
    /// What the operator is told.
    Operator(OperatorEvent) = "operator";
    /// What the agent keeps beside its transcript.
    Memory(MemoryEvent) = "memory";
    /// What concerns the home and no agent.
    Home(HomeEvent) = "home";
}
