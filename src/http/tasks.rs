//! Tasks: their output, their input, their end.

use super::Shared;
use super::extract::{Agent, Body, Public, Query, Rid};
use super::reply::Reply;
use crate::decide::task::TaskCommand;
use crate::decide::{Request, RequestKey};
use crate::events::Cause;
use crate::wire::message::provided_trust;
use crate::words::content::{Blob, Content};
use crate::words::id::{AgentId, TaskId};
use crate::words::limit::{OUTPUT_PAGE_BYTES_DEFAULT, OUTPUT_PAGE_BYTES_MAX};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents/{id}/tasks/{rid}/output", get(output))
        .route("/control/agents/{id}/tasks/{rid}/input", post(input))
        .route("/control/agents/{id}/tasks/{rid}/stop", post(stop))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    /// In bytes, from the beginning of what was kept.
    offset: Option<u64>,
    limit_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputBody {
    text: String,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopBody {
    trust: Option<String>,
}

async fn output(State(app): State<Shared>, Agent(id): Agent, rid: Rid, Query(query): Query<OutputQuery>) -> Reply {
    // An unknown agent is told before an unknown task.
    app.handle.read(&id, |_| ()).await?;
    let task = rid.parse("task")?;
    let bytes_max = query.limit_bytes.unwrap_or(OUTPUT_PAGE_BYTES_DEFAULT).clamp(1, OUTPUT_PAGE_BYTES_MAX);
    Ok(Json(app.handle.task_output(&id, task, query.offset.unwrap_or(0), bytes_max).await?))
}

async fn input(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Body<InputBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let task = rid.parse("task")?;
    let (text, blob) = Content::new(body.value.text);
    done(&app, &id, task, TaskCommand::Input { task, text }, body.key, blob).await
}

async fn stop(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Body<StopBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let task = rid.parse("task")?;
    let command = TaskCommand::Stop { task, reason: "stopped_by_operator".into() };
    done(&app, &id, task, command, body.key, None).await
}

async fn done(
    app: &Shared,
    id: &AgentId,
    task: TaskId,
    command: TaskCommand,
    key: Option<RequestKey>,
    blob: Option<Blob>,
) -> Reply {
    let request = Request { command: command.into(), cause: Cause::Operator, key };
    app.handle.submit(id, request, blob.into_iter().collect()).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "task_id": task})))
}
