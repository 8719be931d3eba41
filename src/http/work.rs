//! Work items, as an operator opens and alters them.

use super::Shared;
use super::extract::{Control, Public, Rid, TrustBody};
use super::kinds::{self, WORK_ITEMS};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::Attribution;
use crate::decide::work::WorkCommand;
use crate::events::agent::Answer;
use crate::wire::message::says_trust;
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

says_trust!(CompleteBody);

async fn create(State(app): State<Shared>, Public(id): Public, body: Control<CreateBody>) -> Reply {
    let change = body.value.change()?;
    let work = submit(&app, &id, WorkCommand::Create { change }, body.by, Vec::new()).await?;
    kinds::one(&WORK_ITEMS, &app, &id, &work.to_string()).await
}

async fn update(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<UpdateBody>) -> Reply {
    let work = rid.parse("work item")?;
    let (change, blobs) = body.value.change()?;
    done(&app, &id, WorkCommand::Update { work, change }, body.by, blobs).await
}

async fn pick(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<TrustBody>) -> Reply {
    let work = rid.parse("work item")?;
    done(&app, &id, WorkCommand::Pick { work }, body.by, Vec::new()).await
}

async fn complete(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<CompleteBody>) -> Reply {
    let work = rid.parse("work item")?;
    let mut blobs = Vec::new();
    let report = body.value.result_summary.filter(|report| !report.trim().is_empty());
    let report = report.map(|report| long_text("result_summary", report, &mut blobs)).transpose()?;
    done(&app, &id, WorkCommand::Complete { work, report }, body.by, blobs).await
}

async fn done(app: &Shared, id: &AgentId, command: WorkCommand, by: Attribution, blobs: Vec<Blob>) -> Reply {
    let work = submit(app, id, command, by, blobs).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "work_item_id": work})))
}

async fn submit(
    app: &Shared,
    id: &AgentId,
    command: WorkCommand,
    by: Attribution,
    blobs: Vec<Blob>,
) -> Result<WorkId, Failure> {
    let request = by.request(command);
    let answer = app.handle.submit(id, request, blobs).await?;
    let Answer::Work(work) = answer else { return Err(unexpected(&answer)) };
    Ok(work)
}
