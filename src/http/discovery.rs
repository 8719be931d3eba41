//! Who answers here, and whether it is well.

use super::Shared;
use super::reply::{Failure, Reply};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

/// What a client may rely on: the seed's names, then ours.
const CAPABILITIES: &[&str] = &[
    "agents.list",
    "agents.state",
    "agents.events",
    "agents.control",
    "tui.remote",
    "agents.events.resume",
    "events.stream",
    "events.schema",
    "agents.ledger",
    "agents.work_items",
    "agents.tasks",
    "agents.timers",
    "agents.waits",
    "agents.external_triggers",
    "agents.workspace",
    "agents.diagnostics",
    "agents.debug_prompt",
    "agents.model",
    "models",
    "metrics",
    "callbacks",
    "webhooks",
    "idempotency",
    "openapi",
];

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/", get(root))
        .route("/handshake", get(handshake))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
}

async fn root(State(app): State<Shared>) -> Json<Value> {
    Json(json!({"ok": true, "default_agent": app.handle.settings().default_agent}))
}

/// In bearer mode anyone may ask this, so it names no paths then.
async fn handshake(State(app): State<Shared>) -> Json<Value> {
    let bearer = app.requires_token();
    let mut runtime = json!({
        "default_agent": app.handle.settings().default_agent,
        "listen": app.place.listen,
        "advertise_url": app.place.public_base_url,
    });
    if !bearer {
        runtime["workspace_dir"] = json!(app.handle.settings().workspace);
        runtime["home_dir"] = json!(app.place.home);
    }
    Json(json!({
        "ok": true,
        "protocol": {"name": "holon-control", "version": 1},
        "auth": {"mode": if bearer { "bearer" } else { "local" }, "required": bearer},
        "capabilities": CAPABILITIES,
        "runtime": runtime,
    }))
}

async fn health() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// Ready: the ledger can be read.
async fn ready(State(app): State<Shared>) -> Reply {
    let agent = app.handle.settings().default_agent.clone();
    match app.handle.exists(&agent) {
        Ok(true) => Ok(Json(json!({"ok": true}))),
        Ok(false) => {
            Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the default agent is not there yet"))
        }
        Err(error) => Err(error.into()),
    }
}
