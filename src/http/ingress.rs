//! What may come from outside, and how often: webhooks, callbacks, and messages of public callers.
//!
//! | caller | counted for its peer | counted for the agent |
//! |---|---|---|
//! | has a token, or is the owner of the socket | no | no |
//! | signed the webhook, or holds the capability | no | with others who proved it |
//! | proves nothing | yes | with others who prove nothing |
//!
//! So nobody who proves nothing keeps out those who do, and all callers behind one proxy share its rate.

use super::App;
use super::auth::Caller;
use super::network::Network;
use super::peer::Peer;
use super::rate::Rate;
use super::reply::Failure;
use crate::decide::Rejection;
use crate::wire::problem::Problem;
use crate::words::id::AgentId;
use crate::words::limit::{INGRESS_PER_MINUTE_OF_AGENT, INGRESS_PER_MINUTE_OF_PEER};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

/// Who may send webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookMode {
    /// Anybody, until the agent has a secret.
    #[default]
    Open,
    /// Whoever signs with the agent's secret.
    Signed,
    Off,
}

/// Whom the operator lets in beside itself, and how often.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whether a command of an agent may ask what its operator may.
    pub agents_may_control: bool,
    pub webhooks: WebhookMode,
    /// Requests a minute that prove nothing, from one peer.
    pub ingress_per_minute_of_peer: u32,
    /// Requests a minute from outside for one agent.
    pub ingress_per_minute_of_agent: u32,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            agents_may_control: false,
            webhooks: WebhookMode::default(),
            ingress_per_minute_of_peer: INGRESS_PER_MINUTE_OF_PEER,
            ingress_per_minute_of_agent: INGRESS_PER_MINUTE_OF_AGENT,
        }
    }
}

/// What was counted of it.
pub(super) struct Ingress {
    of_peer: Rate<Network>,
    unproven: Rate<AgentId>,
    proven: Rate<AgentId>,
}

impl Ingress {
    pub(super) fn new(access: &Access) -> Self {
        Self {
            of_peer: Rate::per_minute(access.ingress_per_minute_of_peer),
            unproven: Rate::per_minute(access.ingress_per_minute_of_agent),
            proven: Rate::per_minute(access.ingress_per_minute_of_agent),
        }
    }
}

impl App {
    /// Counts a request of a caller who proves nothing, before anything is looked up.
    pub(super) fn count_unproven(&self, caller: &Caller, peer: &Peer, agent: Option<&AgentId>) -> Result<(), Failure> {
        let Some(network) = peer.network().filter(|_| caller.actor.token.is_none()) else { return Ok(()) };
        let now = self.handle.now();
        self.ingress.of_peer.take(&network, now).map_err(|seconds| too_often("this address", seconds))?;
        let counted = agent.map_or(Ok(()), |agent| self.ingress.unproven.take(agent, now));
        counted.map_err(|seconds| too_often("the outside", seconds))
    }

    /// Counts a request that is signed, or that came by a capability.
    pub(super) fn count_proven(&self, agent: &AgentId) -> Result<(), Failure> {
        let counted = self.ingress.proven.take(agent, self.handle.now());
        counted.map_err(|seconds| too_often("the outside", seconds))
    }

    /// Whether the caller may know which agents there are: without a token everybody is the operator.
    pub(super) fn may_know(&self, caller: &Caller, peer: &Peer) -> bool {
        !peer.is_tcp() || !self.requires_token() || caller.actor.token.is_some()
    }
}

fn too_often(who: &str, seconds: u64) -> Failure {
    let detail = format!("requests from {who} come faster than they are taken");
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
    Failure(failure.0.with("retry_after", seconds)).hint("send fewer; config.toml has the rates: holon help webhooks")
}

pub(super) fn webhooks_refused(mode: WebhookMode) -> Failure {
    let detail =
        if mode == WebhookMode::Off { "this server takes no webhooks" } else { "webhooks must be signed here" };
    Failure::new(StatusCode::FORBIDDEN, "webhook_refused", detail)
        .hint("webhooks in config.toml says which are taken: holon help webhooks")
}

/// What a stranger is told of an agent that is not there for it: the same, whatever the reason.
pub(super) fn hidden(failure: Failure) -> Failure {
    const TELLING: &[&str] = &[
        "agent_not_found",
        "agent_private",
        "agent_stopped",
        "agent_archived",
        "agent_quarantined",
        "webhook_refused",
    ];
    if !TELLING.contains(&failure.0.code.as_str()) {
        return failure;
    }
    let mut problem = Problem::from(&Rejection::UnknownAgent);
    problem.hint = None;
    Failure(problem)
}
