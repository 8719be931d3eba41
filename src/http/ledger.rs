//! The ledger itself: where it ends, and whether it is whole.

use super::Shared;
use super::extract::{Agent, Nothing, Query};
use super::reply::Reply;
use crate::decide::Rejection;
use crate::offline::stats::stats;
use crate::runtime::handle::SubmitError;
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/agents/{id}/ledger", get(head)).route("/agents/{id}/ledger/verify", get(verify))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadQuery {
    /// Whether to count what lies in it, which reads all of it.
    #[serde(default)]
    stats: bool,
}

async fn head(State(app): State<Shared>, Agent(id): Agent, Query(query): Query<HeadQuery>) -> Reply {
    let ledger_id = id.clone();
    let head = app.handle.ledger(&id, move |store| Ok(store.head(&ledger_id)?)).await?;
    let head = head.ok_or(Rejection::UnknownAgent)?;
    let mut answer = json!({"agent_id": id, "event_seq": head.seq, "hash": head.hash, "events": head.seq});
    if query.stats {
        let ledger_id = id.clone();
        let counted = app.handle.ledger(&id, move |store| Ok(stats(store, Some(&ledger_id))?)).await?;
        answer["stats"] = json!(counted);
    }
    Ok(Json(answer))
}

/// Damage is an answer here, not a failure.
async fn verify(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
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
