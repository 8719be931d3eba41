//! Who asked last for each kind of change on the control plane, so that "who stopped this" is a look at the state.
//!
//! | slot      | set by                                          |
//! |-----------|-------------------------------------------------|
//! | prompt    | an operator's prompt that was taken in          |
//! | lifecycle | created, started, paused, stopped, to be archived |
//! | model     | a model chosen, or the choice taken back        |
//! | abort     | a run aborted                                   |
//!
//! **Invariant:** a slot tells of the last change of its kind; it is empty when nobody on the control plane made that.

use crate::events::agent::AgentEvent;
use crate::events::queue::{MessageKind, QueueEvent};
use crate::events::turn::TurnEvent;
use crate::events::{Actor, Envelope, Event};
use crate::words::id::EventSeq;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controls {
    pub prompt: Option<Controlled>,
    pub lifecycle: Option<Controlled>,
    pub model: Option<Controlled>,
    pub abort: Option<Controlled>,
}

/// A change, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controlled {
    pub seq: EventSeq,
    pub at: Timestamp,
    pub actor: Actor,
}

impl Controls {
    pub(super) fn note(&mut self, envelope: &Envelope) {
        if let Some(slot) = self.slot(&envelope.event) {
            let (seq, at) = (envelope.seq, envelope.at);
            *slot = envelope.cause.actor().cloned().map(|actor| Controlled { seq, at, actor });
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other events are about none of these")]
    fn slot(&mut self, event: &Event) -> Option<&mut Option<Controlled>> {
        match event {
            Event::Queue(QueueEvent::Enqueued(message)) if message.kind == MessageKind::OperatorPrompt => {
                Some(&mut self.prompt)
            }
            Event::Agent(
                AgentEvent::Created(_)
                | AgentEvent::Started(_)
                | AgentEvent::Paused(_)
                | AgentEvent::Stopped(_)
                | AgentEvent::ArchiveRequested(_),
            ) => Some(&mut self.lifecycle),
            Event::Agent(AgentEvent::ModelSet(_) | AgentEvent::ModelCleared(_)) => Some(&mut self.model),
            Event::Turn(TurnEvent::Aborted(_)) => Some(&mut self.abort),
            _ => None,
        }
    }
}
