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

/// What a client finds where a server gave no code that it can read.
pub const UNKNOWN: &str = "unknown";

/// Every code that a server gives: with which status, and what it means.
pub const CODES: &[(&str, u16, &str)] = &[
    ("body_not_received", 400, "the connection ended before the body did"),
    ("invalid_agent_id", 400, "the path holds no agent id"),
    ("invalid_cursor", 400, "the cursor is none that a page gave"),
    ("invalid_header", 400, "a header cannot be read"),
    ("invalid_json", 400, "the body is not JSON"),
    ("invalid_path", 400, "the path cannot be read, or names no folder that is there"),
    ("invalid_query", 400, "the query has an unknown or unreadable parameter"),
    ("invalid_run_id", 400, "the query names no run"),
    ("unauthorized", 401, "the token is missing or wrong; it may have expired or been revoked"),
    ("invalid_signature", 401, "the webhook is not signed with the agent's secret"),
    ("agent_process", 403, "a command of an agent is not the operator"),
    ("agent_private", 403, "the agent is its parent's alone"),
    ("binding_mismatch", 403, "the operator binding speaks for somebody else, or only listens"),
    ("foreign_host", 403, "without a token, only this machine's names for itself are served"),
    ("foreign_origin", 403, "pages of other origins are not served"),
    ("foreign_user", 403, "without a token, only the server's own user and root are served"),
    ("forwarded_request", 403, "a proxy passed the request on where no token guards"),
    ("insufficient_scope", 403, "the token does not have the scope that this needs"),
    ("kind_origin_mismatch", 403, "messages of this kind do not come from such an origin"),
    ("not_allowed", 403, "the field is not for callers of this route"),
    ("webhook_refused", 403, "the server takes no webhooks, or signed ones alone"),
    ("agent_not_found", 404, "there is no such agent"),
    ("cursor_not_found", 404, "the event is beyond the head; `head` says where that is"),
    ("invalid_callback", 404, "the capability was revoked, is used up, or never was"),
    ("message_not_found", 404, "the agent has no such message"),
    ("not_found", 404, "there is no such record"),
    ("route_not_found", 404, "there is no such route"),
    ("method_not_allowed", 405, "the route does not take this method"),
    ("body_too_slow", 408, "the body did not arrive in time"),
    ("agent_exists", 409, "an agent of this id is there, and is another one"),
    ("agent_stopped", 409, "the agent takes no prompts until it is started"),
    ("has_ended", 409, "the record has ended and is not altered any more"),
    ("message_not_waiting", 409, "the message was taken up or dropped"),
    ("no_current_run", 409, "no run is under way"),
    ("nothing_to_do", 409, "it is as it was asked to be"),
    ("token_exists", 409, "there is a token of this name"),
    ("skill_already_installed", 409, "the agent has a skill of this name"),
    ("stale_attempt", 409, "the result is of an attempt that was replaced"),
    ("stale_run_id", 409, "another run is under way; `current_run_id` names it"),
    ("agent_archived", 410, "the agent has ended; it can be read"),
    ("body_too_large", 413, "the body has more bytes than the route takes"),
    ("unsupported_media_type", 415, "the body is of a type that the route does not take"),
    ("skill_manager_unavailable", 424, "nothing that fetches skills from elsewhere is configured"),
    ("idempotency_key_reused", 422, "the key was sent before with another request"),
    ("invalid_field", 422, "a value does not fit; `field` names it where one is to blame"),
    ("daily_limit", 429, "the agent has taken as much from outside as it takes in a day"),
    ("overloaded", 429, "too much is under way; try again"),
    ("queue_full", 429, "the agent's queue is full"),
    ("rate_limited", 429, "requests from outside come too fast"),
    ("too_many", 429, "there are as many open records as there may be"),
    ("too_many_failures", 429, "too many requests came without the right token"),
    ("agent_quarantined", 503, "the agent's ledger is damaged; the others are served"),
    ("ledger_unavailable", 503, "nothing was recorded; try again"),
    ("not_ready", 503, "the server has only begun"),
    ("overloaded", 503, "as much is sent at once as there is room for; try again"),
    ("shutting_down", 503, "the server ends; try again when it is back"),
    ("too_many_connections", 503, "as many connections are open as there may be"),
    ("too_many_streams", 503, "as many streams are open as there may be"),
];

impl Problem {
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Self {
        let is_listed = code == UNKNOWN || CODES.iter().any(|row| (row.0, row.1) == (code, status));
        debug_assert!(is_listed, "{code} with status {status} is documented");
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
            Rejection::DayFull { seconds_left } => problem.with("retry_after", *seconds_left),
            Rejection::SkillInstalled { name } => problem.with("skill_name", name.as_str()),
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
        Rejection::Unknown { what: "token", .. } => "holon token list names the tokens there are",
        Rejection::TokenExists { .. } => "choose another name, or revoke that token first",
        Rejection::Unknown { what: "operator binding", .. } | Rejection::NotBound { .. } => {
            "holon binding list names the bindings there are"
        }
        Rejection::Unknown { what: "skill", .. } => "holon skills list names the skills there are",
        Rejection::Unknown { what: "built-in skill", .. } => "holon help skills names those there are",
        Rejection::Unknown { what: "named skill", .. } => "a named skill is a folder with a SKILL.md in HOME/skills",
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
        | Rejection::TokenExists { .. }
        | Rejection::SkillInstalled { .. }
        | Rejection::MessageNotWaiting
        | Rejection::StaleAttempt
        | Rejection::NothingToDo => 409,
        Rejection::AgentArchived => 410,
        Rejection::Invalid { .. } | Rejection::KeyReused => 422,
        Rejection::QueueFull { .. } | Rejection::DayFull { .. } | Rejection::TooMany { .. } => 429,
    }
}
