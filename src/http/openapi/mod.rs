//! `/openapi.json`: the whole surface as a document, put together from three tables.
//!
//! [`operation`] has a row for each route, [`shape`] one for each shape, and [`refusal`] one for each status that is no
//! success. Parameters, examples and refusals follow from these.

mod kind;
mod operation;
mod refusal;
mod shape;

use super::Shared;
use super::extract::{Nothing, Query};
use axum::routing::get;
use axum::{Json, Router};
pub(super) use operation::{Access, access};
use operation::{Answer, OPERATIONS, Operation, Takes};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

const ABOUT: &str = "The control plane of holon, a headless runtime for long-lived agents. All state is a fold over \
                     the events of one ledger an agent; every write is answered once it is durable, and under an \
                     Idempotency-Key it is done once however often it is sent.";

const TOKENS: &str = "The configured control token, or a named token of the home that has the scope of the operation. \
                      `admin` includes all scopes; `operate` includes `read` and `ingress`.";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/openapi.json", get(served))
}

async fn served(_: Query<Nothing>) -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn document() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let members = paths.entry(operation.path).or_insert_with(|| json!({}));
        members[operation.method] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "holon", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT, "license": {"name": "MIT", "identifier": "MIT"}},
        "paths": paths,
        "components": {
            "schemas": kind::schemas(),
            "responses": refusal::responses(),
            "securitySchemes": {"control_token": {"type": "http", "scheme": "bearer", "description": TOKENS}},
        },
    })
}

fn described(operation: &Operation) -> Value {
    let mut responses = refusal::of(operation);
    responses.insert("200".into(), answer(&operation.answer));
    let mut shown = json!({
        "operationId": id(operation),
        "summary": operation.summary,
        "tags": [operation.subject()],
        "parameters": parameters(operation),
        "responses": responses,
    });
    // Without a token the server runs in local mode, and asks for none.
    shown["security"] = match operation.access {
        Access::Scope(scope) => json!([{"control_token": [scope]}, {}]),
        Access::Open | Access::Anyone => json!([]),
    };
    if let Some(body) = body(&operation.takes) {
        shown["requestBody"] = body;
    }
    shown
}

/// `get_agents_id_status` for `GET /agents/{id}/status`.
fn id(operation: &Operation) -> String {
    let words = operation.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    [operation.method].into_iter().chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation.path.split('/').collect::<Vec<_>>();
    let named = |pair: &[&'static str]| Some((pair[0], pair[1].strip_prefix('{')?.strip_suffix('}')?));
    let in_path = in_path.windows(2).filter_map(named);
    let in_path = in_path.map(|(before, name)| parameter("path", name, kind::path_member(before, name)));
    let in_query = operation.query.iter().map(|(name, kind)| parameter("query", name, kind));
    let in_header = operation.header().into_iter().map(|(name, kind)| parameter("header", name, kind));
    in_path.chain(in_query).chain(in_header).collect()
}

/// A name that ends with `?` may be left out.
fn parameter(place: &str, name: &str, kind: &str) -> Value {
    let (bare, is_required) = kind::name(name);
    json!({
        "name": bare,
        "in": place,
        "required": is_required,
        "schema": kind::schema(kind),
        "example": kind::example(kind),
    })
}

/// The examples of what is answered are those of the shapes.
fn answer(answer: &Answer) -> Value {
    let (media_type, content) = match answer {
        Answer::Json(kind) | Answer::Page(kind) => ("application/json", json!({"schema": kind::schema(kind)})),
        Answer::Text(media_type, example) => (*media_type, json!({"schema": {"type": "string"}, "example": example})),
    };
    let mut shown = json!({"description": "Done.", "content": {media_type: content}});
    if matches!(answer, Answer::Page(_)) {
        let link = "The path of the next page, as rel=next; absent on the last one.";
        shown["headers"] = json!({"Link": {"description": link, "schema": {"type": "string"}}});
    }
    shown
}

fn body(takes: &Takes) -> Option<Value> {
    let (is_required, content) = match takes {
        Takes::Nothing => return None,
        Takes::Json(kind, example) => {
            let example: Value = serde_json::from_str(example).expect("the table's examples are JSON");
            let content = json!({"schema": kind::schema(kind), "example": example});
            (kind::has_required(kind), json!({"application/json": content}))
        }
        Takes::AnyJson(example) => {
            let example: Value = serde_json::from_str(example).expect("the table's examples are JSON");
            (true, json!({"application/json": {"schema": {}, "example": example}}))
        }
        Takes::JsonOrText => {
            let text = json!({"schema": {"type": "string"}, "example": "the build is green"});
            let json = json!({"schema": {}, "example": {"status": "green"}});
            (false, json!({"application/json": json, "text/plain": text}))
        }
    };
    Some(json!({"required": is_required, "content": content}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_of_the_router_is_in_the_table_and_every_row_leads_to_a_route() {
        let router = format!("{:?}", crate::http::routes());
        // The router shows its paths, in quotes, in its debug form and nowhere else.
        let is_route = |text: &&str| text.starts_with('/') && !text.contains("__private__");
        let served: BTreeSet<&str> = router.split('"').filter(is_route).collect();
        let rows: BTreeSet<&str> = OPERATIONS.iter().map(|operation| operation.path).collect();
        assert!(served.len() > 50, "{router}");
        assert_eq!(served.difference(&rows).collect::<Vec<_>>(), Vec::<&&str>::new(), "routes without a row");
        assert_eq!(rows.difference(&served).collect::<Vec<_>>(), Vec::<&&str>::new(), "rows without a route");
    }

    #[test]
    fn no_two_operations_have_one_name() {
        let names: BTreeSet<String> = OPERATIONS.iter().map(id).collect();
        assert_eq!(names.len(), OPERATIONS.len());
    }

    #[test]
    fn every_shape_is_used() {
        let document = DOCUMENT.to_string();
        for name in kind::schemas().as_object().expect("shapes").keys() {
            assert!(document.contains(&format!("\"#/components/schemas/{name}\"")), "{name}");
        }
    }
}
