//! The ledger itself: where it ends, and whether it is whole.

use super::Shared;
use super::extract::{Agent, Nothing, Query, malformed};
use super::reply::{Failure, Reply, page};
use crate::decide::Rejection;
use crate::ledger::{Head, Store};
use crate::offline::prompt::PromptError;
use crate::offline::stats::stats;
use crate::offline::{self};
use crate::runtime::handle::SubmitError;
use crate::words::id::{AgentId, RunId};
use crate::words::limit::{AGENTS_PAGE_DEFAULT, PAGE_MAX};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/ledgers", get(heads))
        .route("/home/ledger", get(head_of_home))
        .route("/home/ledger/verify", get(verify_home))
        .route("/agents/{id}/ledger", get(head))
        .route("/agents/{id}/ledger/verify", get(verify))
        .route("/agents/{id}/ledger/prompt", get(prompt))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptQuery {
    run: String,
    /// The last one when absent.
    round: Option<u32>,
}

/// The prompt of a past round, as the model got it.
async fn prompt(State(app): State<Shared>, Agent(id): Agent, Query(query): Query<PromptQuery>) -> Reply {
    let run: RunId = query.run.parse().map_err(|_| malformed("invalid_run_id", "run is an id such as run-3"))?;
    app.handle.read(&id, |_| ()).await?;
    let (ledger_id, blobs) = (id.clone(), app.handle.blobs().clone());
    let read = move |store: &dyn Store| match offline::prompt::prompt(store, &blobs, &ledger_id, run, query.round) {
        Err(PromptError::Ledger(error)) => Err(error),
        prompt => Ok(prompt),
    };
    match app.handle.ledger(&id, read).await? {
        Ok(prompt) => Ok(Json(json!(prompt))),
        Err(PromptError::NoRun { .. } | PromptError::NoRound { .. }) => {
            Err(Rejection::Unknown { what: "round of", id: run.to_string() }.into())
        }
        Err(error) => Err(SubmitError::Unavailable(error.to_string()).into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadsQuery {
    limit: Option<usize>,
    /// The last agent of the page before.
    cursor: Option<String>,
}

/// Where every ledger ends. Those of private agents are among them: an audit leaves none out.
async fn heads(State(app): State<Shared>, Query(query): Query<HeadsQuery>) -> Result<Response, Failure> {
    let limit = query.limit.unwrap_or(AGENTS_PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let after = query.cursor.as_deref().map(AgentId::parse).transpose();
    let after = after.map_err(|error| malformed("invalid_cursor", &error.to_string()))?;
    let heads = app.handle.heads(after, limit + 1).await?;
    let next = heads.get(limit - 1).filter(|_| heads.len() > limit);
    let next = next.map(|(id, _)| format!("/ledgers?limit={limit}&cursor={id}"));
    let shown =
        heads.iter().take(limit).map(|(id, head)| json!({"agent_id": id, "event_seq": head.seq, "hash": head.hash}));
    page(shown.collect(), next)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadQuery {
    /// Whether to count what lies in it, which reads all of it.
    #[serde(default)]
    stats: bool,
}

async fn head(State(app): State<Shared>, Agent(id): Agent, Query(query): Query<HeadQuery>) -> Reply {
    let mut answer = head_of(&app, &id).await?;
    if query.stats {
        let ledger_id = id.clone();
        let counted = app.handle.ledger(&id, move |store| Ok(stats(store, Some(&ledger_id))?)).await?;
        answer["stats"] = json!(counted);
    }
    Ok(Json(answer))
}

async fn head_of_home(State(app): State<Shared>, _: Query<Nothing>) -> Reply {
    Ok(Json(head_of(&app, &AgentId::home()).await?))
}

async fn head_of(app: &Shared, id: &AgentId) -> Result<Value, Failure> {
    let ledger_id = id.clone();
    let head = app.handle.ledger(id, move |store| Ok(store.head(&ledger_id)?)).await?;
    let head = head.ok_or(Rejection::UnknownAgent)?;
    Ok(json!({"agent_id": id, "event_seq": head.seq, "hash": head.hash, "events": head.seq}))
}

async fn verify_home(State(app): State<Shared>, _: Query<Nothing>) -> Reply {
    verified(&AgentId::home(), app.handle.verify_home().await)
}

/// Damage is an answer here, not a failure.
async fn verify(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    if !app.handle.exists(&id)? {
        return Err(Rejection::UnknownAgent.into());
    }
    verified(&id, app.handle.verify(&id).await)
}

fn verified(id: &AgentId, outcome: Result<Head, SubmitError>) -> Reply {
    match outcome {
        Ok(head) => Ok(Json(json!({
            "ok": true, "agent_id": id, "event_seq": head.seq, "hash": head.hash, "events": head.seq, "damage": null,
        }))),
        Err(SubmitError::Quarantined { reason, .. }) => {
            Ok(Json(json!({"ok": false, "agent_id": id, "damage": reason})))
        }
        Err(error) => Err(error.into()),
    }
}
