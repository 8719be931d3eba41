//! Where an agent works: attached, left, detached; and the worktrees of its tasks.

use super::Shared;
use super::extract::{Agent, Control, Nothing, Public, Query, TrustBody, malformed};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::workspace::WorkspaceCommand;
use crate::decide::{Attribution, Rejection};
use crate::events::Envelope;
use crate::events::agent::Answer;
use crate::events::workspace::Projection;
use crate::fold::AgentState;
use crate::ledger::reader;
use crate::wire::message::says_trust;
use crate::wire::worktree;
use crate::words::id::{AgentId, EventSeq};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

/// The last events, in which worktrees that were settled are looked for.
const EVENTS_LOOKED_AT_MAX: u64 = 4_096;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/worktree-summary", get(worktrees))
        .route("/agents/{id}/worktree-summary", get(worktrees))
        .route("/control/agents/{id}/workspace/attach", post(attach))
        .route("/control/agents/{id}/workspace/exit", post(exit))
        .route("/control/agents/{id}/workspace/detach", post(detach))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttachBody {
    path: String,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetachBody {
    workspace_id: String,
    trust: Option<String>,
}

says_trust!(AttachBody, DetachBody);

async fn attach(State(app): State<Shared>, Public(id): Public, body: Control<AttachBody>) -> Reply {
    let anchor = app.handle.folder(&body.value.path).await?;
    let unfit =
        |reason: String| malformed("invalid_path", &reason).hint("name a folder that is there, by its whole path");
    let anchor = anchor.map_err(unfit)?;
    let command = WorkspaceCommand::Attach { anchor: anchor.clone(), projection: Projection::CanonicalRoot };
    let answer = submit(&app, &id, command, body.by).await?;
    let Answer::Workspace(workspace) = answer else { return Err(unexpected(&answer)) };
    Ok(Json(json!({"ok": true, "agent_id": id, "workspace_id": workspace, "workspace_anchor": anchor})))
}

async fn exit(State(app): State<Shared>, Public(id): Public, body: Control<TrustBody>) -> Reply {
    submit(&app, &id, WorkspaceCommand::Exit, body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id})))
}

async fn detach(State(app): State<Shared>, Public(id): Public, body: Control<DetachBody>) -> Reply {
    let named = body.value.workspace_id;
    if named == "agent_home" {
        let reason = "is the agent's home, which is built in".to_owned();
        return Err(Rejection::Invalid { field: "workspace_id", reason }.into());
    }
    let unknown = |_| Rejection::Unknown { what: "workspace", id: named.clone() };
    let workspace = named.parse().map_err(unknown)?;
    submit(&app, &id, WorkspaceCommand::Detach { workspace }, body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "workspace_id": workspace})))
}

async fn submit(app: &Shared, id: &AgentId, command: WorkspaceCommand, by: Attribution) -> Result<Answer, Failure> {
    let request = by.request(command);
    Ok(app.handle.submit(id, request, Vec::new()).await?)
}

/// Worktrees that tasks hold, then those that were settled not long ago, the newest first.
async fn worktrees(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let held = |state: &AgentState| (worktree::held(state), state.head);
    let (mut shown, head): (Vec<Value>, EventSeq) = app.handle.read(&id, held).await?;
    let (ledger_id, after) = (id.clone(), EventSeq(head.0.saturating_sub(EVENTS_LOOKED_AT_MAX)));
    let settled = app.handle.ledger(&id, move |store| {
        let wanted = usize::try_from(head.0 - after.0).unwrap_or(usize::MAX);
        let events = reader::page(store, &ledger_id, after, wanted)?;
        let envelopes = events.into_iter().rev().map(|event| event.envelope);
        Ok(envelopes.filter_map(|envelope: Envelope| worktree::settled(&envelope)).collect::<Vec<_>>())
    });
    shown.extend(settled.await?);
    Ok(Json(json!({"agent_id": id, "summary": worktree::summary(&shown), "worktrees": shown})))
}
