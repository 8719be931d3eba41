//! The one shape of an error: `application/problem+json` with our members beside the standard ones (wire, Errors).

use crate::decide::Rejection;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An error as a client reads it. `code` is the contract; the sentences are for people and may change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    pub ok: bool,
    /// The detail once more, under the name that older clients read.
    pub error: String,
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub retryable: bool,
    /// Further members, such as `current_run_id`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Problem {
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            kind: "about:blank".into(),
            title: code.replace('_', " "),
            status,
            error: detail.clone(),
            detail,
            instance: None,
            ok: false,
            code: code.into(),
            hint: None,
            retryable: matches!(status, 429 | 503),
            more: Map::new(),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }
}

impl From<&Rejection> for Problem {
    #[expect(clippy::wildcard_enum_match_arm, reason = "most rejections say all there is to say in their text")]
    fn from(rejection: &Rejection) -> Self {
        let (status, code) = code(rejection);
        let problem = Self::new(status, code, rejection.to_string());
        match rejection {
            Rejection::AgentStopped => problem
                .hint("start it: holon agent start ID, or POST /control/agents/ID/control {\"action\":\"start\"}"),
            Rejection::StaleRun { requested, current } => problem
                .with("requested_run_id", requested.to_string())
                .with("current_run_id", current.to_string())
                .hint("read the agent's current_run_id and try again with it, or without run_id"),
            Rejection::UnknownAgent => problem.hint("GET /agents/list names the agents"),
            Rejection::Invalid { field, .. } => problem.with("field", *field),
            Rejection::QueueFull { .. } => problem.hint("wait until the agent has worked off some of its messages"),
            Rejection::NoCurrentRun => problem.hint("holon status --agent ID tells what the agent is doing"),
            Rejection::AgentExists => problem.hint("choose another id, or use the agent that is there"),
            Rejection::KeyReused => problem.hint("use another Idempotency-Key for another request"),
            _ => problem,
        }
    }
}

/// Status and code of each rejection.
fn code(rejection: &Rejection) -> (u16, &'static str) {
    match rejection {
        Rejection::UnknownAgent => (404, "agent_not_found"),
        Rejection::AgentExists => (409, "agent_exists"),
        Rejection::AgentStopped => (409, "agent_stopped"),
        Rejection::AgentPrivate => (403, "agent_private"),
        Rejection::StaleRun { .. } => (409, "stale_run_id"),
        Rejection::NoCurrentRun => (409, "no_current_run"),
        Rejection::MessageNotWaiting => (409, "message_not_waiting"),
        Rejection::KindOriginMismatch { .. } => (403, "kind_origin_mismatch"),
        Rejection::Invalid { .. } => (422, "invalid_field"),
        Rejection::QueueFull { .. } => (429, "queue_full"),
        Rejection::KeyReused => (422, "idempotency_key_reused"),
        Rejection::StaleAttempt => (409, "stale_attempt"),
        Rejection::NothingToDo => (409, "nothing_to_do"),
    }
}
