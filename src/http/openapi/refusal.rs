//! Answers that are no success: which there are, and which a route may give.

use super::kind;
use super::operation::{Operation, Takes};
use serde_json::{Map, Value, json};

/// A status, what it is called here, when it is answered, and the codes that come with it.
struct Refusal {
    status: u16,
    name: &'static str,
    when: &'static str,
    codes: &'static [&'static str],
}

const REFUSALS: &[Refusal] = &[
    Refusal {
        status: 400,
        name: "Malformed",
        when: "The request cannot be read.",
        codes: &[
            "invalid_agent_id",
            "invalid_path",
            "invalid_query",
            "invalid_cursor",
            "invalid_json",
            "invalid_header",
            "invalid_run_id",
            "body_not_received",
        ],
    },
    Refusal {
        status: 401,
        name: "Unauthorized",
        when: "The control token is missing or wrong.",
        codes: &["unauthorized"],
    },
    Refusal {
        status: 403,
        name: "Forbidden",
        when: "The caller may not do this.",
        codes: &["not_allowed", "agent_private", "kind_origin_mismatch", "foreign_host", "foreign_origin"],
    },
    Refusal {
        status: 404,
        name: "NotFound",
        when: "There is no such agent, record, route or place in the log.",
        codes: &[
            "agent_not_found",
            "message_not_found",
            "not_found",
            "cursor_not_found",
            "invalid_callback",
            "route_not_found",
        ],
    },
    Refusal {
        status: 405,
        name: "MethodNotAllowed",
        when: "The route takes another method, which `Allow` names.",
        codes: &["method_not_allowed"],
    },
    Refusal { status: 408, name: "TooSlow", when: "The body did not arrive in time.", codes: &["body_too_slow"] },
    Refusal {
        status: 409,
        name: "Conflict",
        when: "The state does not allow it; nothing was recorded.",
        codes: &[
            "agent_stopped",
            "agent_exists",
            "stale_run_id",
            "no_current_run",
            "has_ended",
            "message_not_waiting",
            "stale_attempt",
            "nothing_to_do",
        ],
    },
    Refusal {
        status: 410,
        name: "Gone",
        when: "The agent has ended. What it did can still be read.",
        codes: &["agent_archived"],
    },
    Refusal { status: 413, name: "TooLarge", when: "The body is too large.", codes: &["body_too_large"] },
    Refusal {
        status: 415,
        name: "UnsupportedMediaType",
        when: "The body is not of a type that the route takes.",
        codes: &["unsupported_media_type"],
    },
    Refusal {
        status: 422,
        name: "Invalid",
        when: "A field is unknown, missing or out of its bounds, or the key was used for another request.",
        codes: &["invalid_field", "idempotency_key_reused"],
    },
    Refusal {
        status: 429,
        name: "TooMany",
        when: "A limit is reached; `Retry-After` says when to ask again.",
        codes: &["too_many_failures", "overloaded", "queue_full", "too_many"],
    },
    Refusal {
        status: 503,
        name: "Unavailable",
        when: "The ledger cannot be reached, is damaged, or the server goes down or serves all the streams it can.",
        codes: &["ledger_unavailable", "agent_quarantined", "shutting_down", "not_ready", "too_many_streams"],
    },
];

/// What whoever asks for anything may be answered.
const ANYONE: &[u16] = &[403];
const READING: &[u16] = &[400];
const GUARDED: &[u16] = &[401, 429];
const OF_AN_AGENT: &[u16] = &[404, 503];
const WITH_A_BODY: &[u16] = &[408, 413, 415, 422];
const ALTERING: &[u16] = &[409, 410, 429];

/// The refusals that an operation may give, by status.
pub(super) fn of(operation: &Operation) -> Map<String, Value> {
    let takes_body = !matches!(operation.takes, Takes::Nothing);
    let groups = [
        (ANYONE, true),
        (READING, takes_body || !operation.is_open()),
        (GUARDED, !operation.is_open()),
        (OF_AN_AGENT, operation.reads_the_ledger()),
        (WITH_A_BODY, takes_body),
        (ALTERING, takes_body && operation.reads_the_ledger()),
    ];
    let statuses = groups.iter().filter(|(_, applies)| *applies).flat_map(|(statuses, _)| *statuses);
    let named = |status: &u16| REFUSALS.iter().find(|refusal| refusal.status == *status);
    let reference = |refusal: &Refusal| json!({"$ref": format!("#/components/responses/{}", refusal.name)});
    statuses.filter_map(named).map(|refusal| (refusal.status.to_string(), reference(refusal))).collect()
}

/// All of them, as operations refer to them.
pub(super) fn responses() -> Value {
    let shown = REFUSALS.iter().map(|refusal| (refusal.name.to_owned(), response(refusal)));
    Value::Object(shown.collect())
}

fn response(refusal: &Refusal) -> Value {
    let code = json!({"enum": refusal.codes});
    let schema = json!({"allOf": [kind::schema("Problem"), {"properties": {"status": {"const": refusal.status}, "code": code}}]});
    let mut example = kind::example("Problem");
    example["status"] = json!(refusal.status);
    example["code"] = json!(refusal.codes[0]);
    example["title"] = json!(refusal.codes[0].replace('_', " "));
    let retryable = matches!(refusal.status, 429 | 503);
    example["retryable"] = json!(retryable);
    let codes = refusal.codes.join("`, `");
    let mut shown = json!({
        "description": format!("{} Codes: `{codes}`.", refusal.when),
        "content": {"application/problem+json": {"schema": schema, "example": example}},
    });
    if retryable {
        shown["headers"] = json!({"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}});
    }
    shown
}
