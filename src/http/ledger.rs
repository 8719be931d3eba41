//! The ledger itself: where it ends, and whether it is whole.

use super::Shared;
use super::extract::Agent;
use super::reply::Reply;
use crate::decide::Rejection;
use crate::runtime::handle::SubmitError;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/agents/{id}/ledger", get(head)).route("/agents/{id}/ledger/verify", get(verify))
}

async fn head(State(app): State<Shared>, Agent(id): Agent) -> Reply {
    let ledger_id = id.clone();
    let head = app.handle.ledger(&id, move |store| Ok(store.head(&ledger_id)?)).await?;
    let head = head.ok_or(Rejection::UnknownAgent)?;
    Ok(Json(json!({"agent_id": id, "event_seq": head.seq, "hash": head.hash, "events": head.seq})))
}

/// Damage is an answer here, not a failure.
async fn verify(State(app): State<Shared>, Agent(id): Agent) -> Reply {
    if !app.handle.exists(&id)? {
        return Err(Rejection::UnknownAgent.into());
    }
    match app.handle.verify(&id).await {
        Ok(head) => Ok(Json(json!({
            "ok": true, "agent_id": id, "event_seq": head.seq, "hash": head.hash, "events": head.seq, "damage": null,
        }))),
        Err(SubmitError::Quarantined { reason, .. }) => {
            Ok(Json(json!({"ok": false, "agent_id": id, "damage": reason})))
        }
        Err(error) => Err(error.into()),
    }
}
