//! Answers that are no success: which there are, and which a route may give.

use super::kind;
use super::operation::{Operation, Takes};
use crate::wire::problem::CODES;
use serde_json::{Map, Value, json};

/// A status, what it is called here, and when it is answered.
struct Refusal {
    status: u16,
    name: &'static str,
    when: &'static str,
}

const REFUSALS: &[Refusal] = &[
    Refusal { status: 400, name: "Malformed", when: "The request cannot be read." },
    Refusal {
        status: 401,
        name: "Unauthorized",
        when: "The control token, or a webhook's signature, is missing or wrong.",
    },
    Refusal { status: 403, name: "Forbidden", when: "The caller may not do this." },
    Refusal { status: 404, name: "NotFound", when: "There is no such agent, record, route or place in the log." },
    Refusal { status: 405, name: "MethodNotAllowed", when: "The route takes another method, which `Allow` names." },
    Refusal { status: 408, name: "TooSlow", when: "The body did not arrive in time." },
    Refusal { status: 409, name: "Conflict", when: "The state does not allow it; nothing was recorded." },
    Refusal { status: 410, name: "Gone", when: "The agent has ended. What it did can still be read." },
    Refusal { status: 413, name: "TooLarge", when: "The body is too large." },
    Refusal { status: 415, name: "UnsupportedMediaType", when: "The body is not of a type that the route takes." },
    Refusal {
        status: 422,
        name: "Invalid",
        when: "A field is unknown, missing or out of its bounds, or the key was used for another request.",
    },
    Refusal { status: 424, name: "Unfetched", when: "What the request needs from elsewhere cannot be had." },
    Refusal { status: 429, name: "TooMany", when: "A limit is reached; `Retry-After` says when to ask again." },
    Refusal {
        status: 503,
        name: "Unavailable",
        when: "The ledger cannot be reached or is damaged, or the server goes down or has all under way that it can.",
    },
];

/// What whoever asks for anything may be answered.
const ANYONE: &[u16] = &[403, 503];
const READING: &[u16] = &[400];
const GUARDED: &[u16] = &[401, 429];
const OF_AN_AGENT: &[u16] = &[404];
const WITH_A_BODY: &[u16] = &[408, 413, 415, 422];
const ALTERING: &[u16] = &[409, 410, 429];
const FETCHING: &[u16] = &[424];

/// The refusals that an operation may give, by status.
pub(super) fn of(operation: &Operation) -> Map<String, Value> {
    let takes_body = !matches!(operation.takes, Takes::Nothing);
    let groups = [
        (ANYONE, true),
        (READING, takes_body || !operation.is_open()),
        (GUARDED, !operation.is_open() || operation.is_signed()),
        (OF_AN_AGENT, operation.reads_the_ledger()),
        (WITH_A_BODY, takes_body),
        (ALTERING, takes_body && operation.reads_the_ledger()),
        (FETCHING, operation.path.ends_with("/skills/install")),
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
    let codes: Vec<&str> = CODES.iter().filter(|row| row.1 == refusal.status).map(|row| row.0).collect();
    let code = json!({"enum": codes});
    let schema = json!({"allOf": [kind::schema("Problem"), {"properties": {"status": {"const": refusal.status}, "code": code}}]});
    let mut example = kind::example("Problem");
    example["status"] = json!(refusal.status);
    example["code"] = json!(codes[0]);
    example["title"] = json!(codes[0].replace('_', " "));
    let retryable = matches!(refusal.status, 429 | 503);
    example["retryable"] = json!(retryable);
    let codes = codes.join("`, `");
    let mut shown = json!({
        "description": format!("{} Codes: `{codes}`.", refusal.when),
        "content": {"application/problem+json": {"schema": schema, "example": example}},
    });
    if retryable {
        shown["headers"] = json!({"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}});
    }
    shown
}
