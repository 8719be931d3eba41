//! Work items, as an operator opens and alters them.

use super::Shared;
use super::extract::{Body, Public, Rid, TrustBody};
use super::kinds::{self, WORK_ITEMS};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::work::WorkCommand;
use crate::decide::{Request, RequestKey};
use crate::events::Cause;
use crate::events::agent::Answer;
use crate::wire::message::provided_trust;
use crate::wire::work::{CreateBody, UpdateBody, long_text};
use crate::words::content::Blob;
use crate::words::id::{AgentId, WorkId};
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/control/agents/{id}/work-items", post(create))
        .route("/control/agents/{id}/work-items/{rid}/update", post(update))
        .route("/control/agents/{id}/work-items/{rid}/pick", post(pick))
        .route("/control/agents/{id}/work-items/{rid}/complete", post(complete))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    result_summary: Option<String>,
    trust: Option<String>,
}

async fn create(State(app): State<Shared>, Public(id): Public, body: Body<CreateBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let change = body.value.change()?;
    let work = submit(&app, &id, WorkCommand::Create { change }, body.key, Vec::new()).await?;
    kinds::one(&WORK_ITEMS, &app, &id, &work.to_string()).await
}

async fn update(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Body<UpdateBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let work = rid.parse("work item")?;
    let (change, blobs) = body.value.change()?;
    done(&app, &id, WorkCommand::Update { work, change }, body.key, blobs).await
}

async fn pick(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Body<TrustBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let work = rid.parse("work item")?;
    done(&app, &id, WorkCommand::Pick { work }, body.key, Vec::new()).await
}

async fn complete(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Body<CompleteBody>) -> Reply {
    provided_trust(body.value.trust.as_deref())?;
    let work = rid.parse("work item")?;
    let mut blobs = Vec::new();
    let report = body.value.result_summary.filter(|report| !report.trim().is_empty());
    let report = report.map(|report| long_text("result_summary", report, &mut blobs)).transpose()?;
    done(&app, &id, WorkCommand::Complete { work, report }, body.key, blobs).await
}

async fn done(app: &Shared, id: &AgentId, command: WorkCommand, key: Option<RequestKey>, blobs: Vec<Blob>) -> Reply {
    let work = submit(app, id, command, key, blobs).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "work_item_id": work})))
}

async fn submit(
    app: &Shared,
    id: &AgentId,
    command: WorkCommand,
    key: Option<RequestKey>,
    blobs: Vec<Blob>,
) -> Result<WorkId, Failure> {
    let request = Request { command: command.into(), cause: Cause::Operator, key };
    let answer = app.handle.submit(id, request, blobs).await?;
    let Answer::Work(work) = answer else { return Err(unexpected(&answer)) };
    Ok(work)
}
