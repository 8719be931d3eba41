//! Timers, waits and external triggers, as an operator sets and ends them.

use super::Shared;
use super::extract::{Control, Public, Rid, TrustBody};
use super::kinds::{self, TIMERS, TRIGGERS};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::Attribution;
use crate::decide::waiting::WaitingCommand;
use crate::events::agent::Answer;
use crate::runtime::handle::NewTrigger;
use crate::wire::message::{BodyError, says_trust};
use crate::wire::waiting::delivery_mode_named;
use crate::words::id::{AgentId, WorkId};
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/control/agents/{id}/timers", post(create_timer))
        .route("/control/agents/{id}/timers/{rid}/cancel", post(cancel_timer))
        .route("/control/agents/{id}/waits/{rid}/cancel", post(cancel_wait))
        .route("/control/agents/{id}/external-triggers", post(create_trigger))
        .route("/control/agents/{id}/external-triggers/{rid}/revoke", post(revoke_trigger))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimerBody {
    duration_ms: u64,
    interval_ms: Option<u64>,
    summary: Option<String>,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggerBody {
    /// What people call it.
    label: String,
    /// A hint when not given.
    delivery_mode: Option<String>,
    work_item_id: Option<WorkId>,
    trust: Option<String>,
}

says_trust!(TimerBody, TriggerBody);

async fn create_timer(State(app): State<Shared>, Public(id): Public, body: Control<TimerBody>) -> Reply {
    let TimerBody { duration_ms, interval_ms, summary, .. } = body.value;
    let command = WaitingCommand::CreateTimer { duration_ms, interval_ms, summary };
    let answer = submit(&app, &id, command, body.by).await?;
    let Answer::Timer(timer) = answer else { return Err(unexpected(&answer)) };
    kinds::one(&TIMERS, &app, &id, &timer.to_string()).await
}

async fn cancel_timer(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<TrustBody>) -> Reply {
    let timer = rid.parse("timer")?;
    submit(&app, &id, WaitingCommand::CancelTimer { timer }, body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "timer_id": timer})))
}

async fn cancel_wait(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<TrustBody>) -> Reply {
    let wait = rid.parse("wait")?;
    submit(&app, &id, WaitingCommand::CancelWait { wait }, body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "wait_id": wait})))
}

/// The URL is shown here and nowhere else. A request that was answered before is told of its trigger without it.
async fn create_trigger(State(app): State<Shared>, Public(id): Public, body: Control<TriggerBody>) -> Reply {
    let TriggerBody { label, delivery_mode, work_item_id: work, .. } = body.value;
    let name = delivery_mode.as_deref().unwrap_or("wake_hint");
    let mode = delivery_mode_named(name).ok_or_else(|| BodyError::Invalid {
        field: "delivery_mode",
        reason: format!("is wake_hint or enqueue_message, not {name:?}"),
    })?;
    let created = app.handle.create_trigger(&id, NewTrigger { mode, label, work }, body.by).await?;
    let mut shown = kinds::one(&TRIGGERS, &app, &id, &created.trigger.to_string()).await?;
    shown.0["trigger_url"] = json!(created.url);
    Ok(shown)
}

async fn revoke_trigger(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<TrustBody>) -> Reply {
    let trigger = rid.parse("external trigger")?;
    submit(&app, &id, WaitingCommand::RevokeTrigger { trigger }, body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "external_trigger_id": trigger})))
}

async fn submit(app: &Shared, id: &AgentId, command: WaitingCommand, by: Attribution) -> Result<Answer, Failure> {
    let request = by.request(command);
    Ok(app.handle.submit(id, request, Vec::new()).await?)
}
