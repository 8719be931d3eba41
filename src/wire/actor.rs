//! Who asked for a control mutation, as clients see it.

use super::event::Projection;
use crate::events::Actor;
use crate::events::actor::{ActorPeer, ControlSurface};
use crate::events::queue::Trust;
use crate::fold::control::{Controlled, Controls};
use crate::words::id::{AgentId, TokenName};
use serde::Serialize;
use serde_json::{Value, json};

/// An actor. An operator reads the token and the surface; users, processes and addresses are for `local_debug`.
#[derive(Serialize)]
pub struct ActorView<'a> {
    token: Option<&'a TokenName>,
    surface: ControlSurface,
    /// The agent whose command asked, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a ActorPeer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provided_trust: Option<Trust>,
}

impl<'a> ActorView<'a> {
    pub fn of(actor: &'a Actor, projection: Projection) -> Self {
        let agent_id = if let ActorPeer::AgentProcess(agent) = &actor.peer { Some(agent) } else { None };
        let is_raw = projection == Projection::LocalDebug;
        Self {
            token: actor.token.as_ref(),
            surface: actor.surface,
            agent_id,
            peer: is_raw.then_some(&actor.peer),
            provided_trust: actor.provided_trust.filter(|_| is_raw),
        }
    }
}

/// The last change of each kind that was asked for on the control plane, and who asked.
pub fn controls(controls: &Controls) -> Value {
    let shown = |change: &Option<Controlled>| change.as_ref().map(controlled);
    json!({
        "prompt": shown(&controls.prompt),
        "lifecycle": shown(&controls.lifecycle),
        "model": shown(&controls.model),
        "abort": shown(&controls.abort),
    })
}

fn controlled(change: &Controlled) -> Value {
    let actor = ActorView::of(&change.actor, Projection::Operator);
    json!({"event_seq": change.seq, "at": change.at, "actor": actor})
}
