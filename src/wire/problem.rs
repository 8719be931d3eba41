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
        let mut problem = Self::new(status(rejection), rejection.code(), rejection.to_string());
        problem.hint = rejection.hint().or_else(|| hint(rejection)).map(str::to_owned);
        match rejection {
            Rejection::StaleRun { requested, current } => {
                problem.with("requested_run_id", requested.to_string()).with("current_run_id", current.to_string())
            }
            Rejection::Invalid { field, .. } => problem.with("field", *field),
            _ => problem,
        }
    }
}

/// What a client can do about it. A model would be told otherwise, or knows.
#[expect(clippy::wildcard_enum_match_arm, reason = "for all others there is nothing to do, or the core says what")]
fn hint(rejection: &Rejection) -> Option<&'static str> {
    Some(match rejection {
        Rejection::Unknown { what: "work item", .. } => "holon work list names the work items there are",
        Rejection::Unknown { what: "task", .. } => "holon task list names the tasks there are",
        Rejection::Unknown { what: "timer", .. } => "holon timer list names the timers there are",
        Rejection::Unknown { what: "wait", .. } => "holon wait list names the waits there are",
        Rejection::Unknown { what: "external trigger", .. } => "holon trigger list names the triggers there are",
        Rejection::Unknown { what: "operator binding", .. } | Rejection::NotBound { .. } => {
            "GET /agents/ID/operator-bindings lists those there are"
        }
        Rejection::Unknown { what: "workspace", .. } => "holon workspace list names the workspaces there are",
        Rejection::Ended { .. } => "what has ended can be read, and not altered",
        Rejection::AgentArchived => "what it did can still be read; create another agent to go on",
        Rejection::AgentPrivate => "ask its parent, which has it as a task",
        Rejection::MessageNotWaiting => "read the message: its outcome tells what became of it",
        Rejection::Unsigned => "sign it as Standard Webhooks or GitHub do, with the secret that was set for the agent",
        Rejection::Invalid { .. } => "correct what is named, and send it again",
        _ => return None,
    })
}

fn status(rejection: &Rejection) -> u16 {
    match rejection {
        Rejection::Unsigned => 401,
        Rejection::UnknownAgent | Rejection::Unknown { .. } | Rejection::NoCapability => 404,
        Rejection::AgentPrivate | Rejection::KindOriginMismatch { .. } | Rejection::NotBound { .. } => 403,
        Rejection::AgentExists
        | Rejection::AgentStopped
        | Rejection::StaleRun { .. }
        | Rejection::NoCurrentRun
        | Rejection::Ended { .. }
        | Rejection::MessageNotWaiting
        | Rejection::StaleAttempt
        | Rejection::NothingToDo => 409,
        Rejection::AgentArchived => 410,
        Rejection::Invalid { .. } | Rejection::KeyReused => 422,
        Rejection::QueueFull { .. } | Rejection::TooMany { .. } => 429,
    }
}
