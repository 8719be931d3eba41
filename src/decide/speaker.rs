//! Who speaks: whose idempotency keys a request names.

use super::queue::QueueCommand;
use super::{Command, Rejection, Request};
use crate::decide::operator::OperatorCommand;
use crate::decide::waiting::WaitingCommand;
use crate::events::Cause;
use crate::events::actor::{Actor, ActorPeer};
use crate::events::agent::Speaker;
use crate::events::queue::{Admission, Origin};
use crate::fold::AgentState;

/// The speaker of a request. It follows from how the request came, never from what it says of itself.
pub(super) fn of(state: &AgentState, request: &Request) -> Result<Speaker, Rejection> {
    Ok(match (&request.cause, &request.command) {
        (_, Command::Waiting(WaitingCommand::Callback(callback))) => {
            let mut held = state.waiting.triggers.iter();
            let held = held.find(|(_, trigger)| trigger.token_hash == callback.token_hash);
            Speaker::Capability { trigger: *held.ok_or(Rejection::NoCapability)?.0 }
        }
        (_, Command::Operator(OperatorCommand::Ingress(new))) => Speaker::Binding { name: new.binding.clone() },
        (Cause::External, Command::Queue(QueueCommand::Enqueue(new))) => {
            stranger(&new.origin, new.admission == Admission::WebhookSigned)
        }
        (Cause::External, _) => Speaker::Webhook { source: String::new(), signed: false },
        (Cause::Agent(agent) | Cause::Control(Actor { peer: ActorPeer::AgentProcess(agent), .. }), _) => {
            Speaker::Agent { agent: agent.clone() }
        }
        (Cause::Run(_) | Cause::Task(_), _) => Speaker::Agent { agent: state.agent_id.clone() },
        (Cause::Operator | Cause::Control(_) | Cause::Runtime, _) => Speaker::Operator,
    })
}

/// A public caller, by the source that it names.
fn stranger(origin: &Origin, signed: bool) -> Speaker {
    match origin {
        Origin::Channel { channel_id, .. } => Speaker::Channel { channel_id: channel_id.clone() },
        Origin::Webhook { source, .. } => Speaker::Webhook { source: source.clone(), signed },
        Origin::Operator { .. }
        | Origin::Callback { .. }
        | Origin::Timer { .. }
        | Origin::System { .. }
        | Origin::Task { .. } => Speaker::Webhook { source: String::new(), signed: false },
    }
}
