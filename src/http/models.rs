//! Models: which there are, and what an agent would send to one.

use super::Shared;
use super::extract::{Control, Nothing, Public, Query, TrustBody};
use super::reply::Reply;
use crate::decide::Attribution;
use crate::decide::agent::AgentCommand;
use crate::events::queue::{Admission, Surface};
use crate::fold::AgentState;
use crate::runtime::model::catalog::ModelError;
use crate::runtime::preview::Shown;
use crate::wire::agent;
use crate::wire::message::{BodyError, PromptBody, says_trust};
use crate::words::id::{AgentId, TokenName};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/models", get(models))
        .route("/control/agents/{id}/model", post(choose))
        .route("/control/agents/{id}/model/clear", post(clear))
        .route("/control/agents/{id}/debug-prompt", post(debug_prompt))
}

/// The models known by name. Others are reached as `provider/model`.
async fn models(State(app): State<Shared>, _: Query<Nothing>) -> Json<Value> {
    let available = app.handle.models();
    let shown = |reference: &String| {
        let (provider, name) = reference.split_once('/').unwrap_or(("", reference));
        json!({
            "id": reference,
            "model_ref": reference,
            "display_name": name,
            "provider": provider,
            "description": format!("{name} of {provider}"),
            "source": if provider == "builtin" { "built_in_catalog" } else { "config_override" },
        })
    };
    let shown: Vec<Value> = available.keys().map(shown).collect();
    Json(json!({"available_models": shown, "model_availability": available}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelBody {
    model: String,
    trust: Option<String>,
}

/// The model that the agent's turns ask first, from the next one on.
async fn choose(State(app): State<Shared>, Public(id): Public, body: Control<ModelBody>) -> Reply {
    let unknown = |error: ModelError| BodyError::Invalid { field: "model", reason: error.to_string() };
    let model = app.handle.model_in_full(&body.value.model).map_err(unknown)?;
    altered(&app, &id, Some(model), body.by).await
}

async fn clear(State(app): State<Shared>, Public(id): Public, body: Control<TrustBody>) -> Reply {
    altered(&app, &id, None, body.by).await
}

async fn altered(app: &Shared, id: &AgentId, model: Option<String>, by: Attribution) -> Reply {
    let command = AgentCommand::ChooseModel { model };
    app.handle.submit(id, by.request(command), Vec::new()).await?;
    let shown = app.clone();
    let model = move |state: &AgentState| agent::model(state.agent.model.as_ref(), &shown.setting(""));
    let model = app.handle.read(id, model).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "model": model})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DebugBody {
    text: String,
    trust: Option<String>,
}

says_trust!(ModelBody, DebugBody);

/// What the agent would be sent if this were prompted now. Nothing is enqueued and nobody is asked.
async fn debug_prompt(State(app): State<Shared>, Public(id): Public, body: Control<DebugBody>) -> Reply {
    let prompt = PromptBody { text: body.value.text };
    let (new, blob) = prompt.message(&TokenName::control(), Surface::HttpControlPrompt, Admission::LocalProcess);
    let preview = app.handle.preview(&id, body.by.cause, new, blob).await?;
    let section = |shown: &Shown| json!({"kind": shown.kind, "bytes": shown.text.len()});
    Ok(Json(json!({
        "ok": true,
        "agent_id": id,
        "model": preview.model,
        "sections": preview.sections.iter().map(section).collect::<Vec<_>>(),
        "dump": dump(&preview.sections),
    })))
}

fn dump(sections: &[Shown]) -> String {
    let part = |shown: &Shown| format!("=== {} ===\n{}\n", shown.kind, shown.text.trim_end());
    sections.iter().map(part).collect::<Vec<_>>().join("\n")
}
