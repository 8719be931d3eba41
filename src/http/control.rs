//! The control plane: creating, starting, stopping and aborting; the runtime itself.

use super::Shared;
use super::extract::{Agent, Control, Nothing, Public, Query, TrustBody, malformed};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::Rejection;
use crate::decide::agent::{AgentCommand, NewAgent};
use crate::decide::home::HomeCommand;
use crate::events::agent::{Answer, Role};
use crate::events::turn::AbortMode;
use crate::wire::agent;
use crate::wire::message::{BodyError, says_trust};
use crate::words::id::{AgentId, RunId};
use crate::words::limit::PAGE_DEFAULT;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/control/agents/{id}/create", post(create))
        .route("/control/agents/{id}/control", post(control))
        .route("/control/agents/{id}/archive", post(archive))
        .route("/control/agents/{id}/current-run/abort", post(abort))
        .route("/control/runtime/status", get(runtime_status))
        .route("/control/runtime/readiness", get(readiness))
        .route("/control/runtime/shutdown", post(shutdown))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    template: Option<String>,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionBody {
    action: String,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AbortBody {
    run_id: Option<String>,
    mode: Option<String>,
    trust: Option<String>,
}

says_trust!(CreateBody, ActionBody, AbortBody);

async fn create(State(app): State<Shared>, Agent(id): Agent, body: Control<CreateBody>) -> Reply {
    let chosen = AgentId::chosen(id.as_str());
    chosen.map_err(|error| malformed("invalid_agent_id", &error.to_string()))?;
    if body.value.template.is_some() {
        return Err(
            BodyError::Invalid { field: "template", reason: "is not supported yet: leave it out".into() }.into()
        );
    }
    let new = NewAgent { agent_id: id.clone(), role: Role::Named, template: None };
    let request = body.by.request(AgentCommand::Create(new));
    app.handle.submit(&id, request, Vec::new()).await?;
    let (shown, home) = (app.clone(), app.home(&id));
    let record = app.handle.read(&id, move |state| agent::identity_record(state, &shown.setting(&home)));
    Ok(Json(record.await?))
}

async fn control(State(app): State<Shared>, Public(id): Public, body: Control<ActionBody>) -> Reply {
    let command = match body.value.action.as_str() {
        "start" => AgentCommand::Start,
        "stop" => AgentCommand::Stop,
        other => return Err(invalid("action", format!("is start or stop, not {other:?}"))),
    };
    let request = body.by.request(command);
    app.handle.submit(&id, request, Vec::new()).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "action": body.value.action})))
}

/// The agent is to end; how far it is with that stands in the answer.
async fn archive(State(app): State<Shared>, Public(id): Public, body: Control<TrustBody>) -> Reply {
    let request = body.by.request(AgentCommand::Archive);
    app.handle.submit(&id, request, Vec::new()).await?;
    let lifecycle = app.handle.read(&id, |state| state.agent.lifecycle).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "lifecycle": lifecycle})))
}

async fn abort(State(app): State<Shared>, Public(id): Public, body: Control<AbortBody>) -> Reply {
    let mode = match body.value.mode.as_deref() {
        None | Some("stop_after_abort" | "pause_after_abort") => AbortMode::StopAfterAbort,
        Some("idle_after_abort") => AbortMode::IdleAfterAbort,
        Some(other) => {
            return Err(invalid("mode", format!("is stop_after_abort or idle_after_abort, not {other:?}")));
        }
    };
    // A guard that is no run's id at all is no current run's either: zero is never one.
    let run = body.value.run_id.as_deref().map(|text| text.parse().unwrap_or(RunId(0)));
    let request = body.by.request(AgentCommand::Abort { run, mode });
    match app.handle.submit(&id, request, Vec::new()).await {
        Ok(Answer::Aborted(run)) => {
            Ok(Json(json!({"ok": true, "aborted": true, "agent_id": id, "run_id": run, "mode": mode})))
        }
        Ok(other) => Err(unexpected(&other)),
        Err(error) => Err(named(Failure::from(error), body.value.run_id.as_deref())),
    }
}

/// A stale guard is told back as it was sent.
fn named(failure: Failure, run: Option<&str>) -> Failure {
    match run {
        Some(run) if failure.0.code == "stale_run_id" => Failure(failure.0.with("requested_run_id", run)),
        _ => failure,
    }
}

fn invalid(field: &'static str, reason: String) -> Failure {
    Failure::from(Rejection::Invalid { field, reason })
}

async fn runtime_status(State(app): State<Shared>, _: Query<Nothing>) -> Reply {
    let occupancy = app.handle.occupancy();
    let mut shown = runtime(&app);
    shown["activity"] = json!({
        "state": if occupancy.turns.running > 0 { "processing" } else { "idle" },
        "active_agent_count": occupancy.agents_awake,
        "active_task_count": occupancy.commands.running + occupancy.background_commands.running,
        "processing_agent_count": occupancy.turns.running,
    });
    shown["limits"] = json!({
        "turns": occupancy.turns,
        "model_calls": occupancy.model_calls,
        "commands": occupancy.commands,
        "background_commands": occupancy.background_commands,
    });
    shown["waiting_for_permit"] = json!(app.handle.waiting_for_permit(PAGE_DEFAULT));
    let quarantined = app.handle.quarantined().into_iter();
    shown["quarantined"] = quarantined.map(|(id, reason)| json!({"agent_id": id, "reason": reason})).collect();
    Ok(Json(shown))
}

/// The same without what changes while it runs.
async fn readiness(State(app): State<Shared>, _: Query<Nothing>) -> Reply {
    Ok(Json(runtime(&app)))
}

fn runtime(app: &Shared) -> Value {
    let settings = app.handle.settings();
    json!({
        "ok": true,
        "healthy": true,
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "home_dir": app.place.home,
        "socket_path": app.place.socket,
        "http_addr": app.place.listen.map_or_else(String::new, |address| address.to_string()),
        "started_at": app.place.started_at,
        "config_fingerprint": app.place.fingerprint,
        "boot": app.handle.boot(),
        "startup_surface": {
            "home_dir": app.place.home,
            "workspace_dir": settings.workspace,
            "default_agent_id": settings.default_agent,
            "control_token_configured": app.auth.has_control_token(),
        },
        "runtime_surface": {"model_default": settings.models.first(), "model_fallbacks": settings.models.get(1..)},
    })
}

/// The server goes down even where its ledger cannot say who asked.
async fn shutdown(State(app): State<Shared>, body: Control<Nothing>) -> Reply {
    let command = HomeCommand::ShutDown { reason: "requested".into() };
    if let Err(error) = app.handle.submit_home(command, body.by.cause).await {
        tracing::warn!(%error, "the shutdown is not recorded in the home's ledger");
    }
    app.shut_down();
    Ok(Json(json!({
        "ok": true,
        "pid": std::process::id(),
        "home_dir": app.place.home,
        "shutdown_requested": true,
    })))
}
