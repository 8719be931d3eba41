//! Operator bindings: transports by which the operator is reached, and speaks.

use super::Shared;
use super::extract::{Control, Public, Rid, TrustBody};
use super::kinds::{self, BINDINGS};
use super::messages::unexpected;
use super::reply::{Failure, Reply};
use crate::decide::Rejection;
use crate::decide::operator::OperatorCommand;
use crate::events::actor::ActorPeer;
use crate::events::agent::Answer;
use crate::wire::binding::{BindingBody, IngressBody};
use crate::wire::message::BodyError;
use crate::words::limit::URL_BYTES_MAX;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use reqwest::Url;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/control/agents/{id}/operator-bindings", post(bind))
        .route("/control/agents/{id}/operator-bindings/{rid}/revoke", post(revoke))
        .route("/control/agents/{id}/operator-ingress", post(ingress))
}

async fn bind(State(app): State<Shared>, Public(id): Public, body: Control<BindingBody>) -> Reply {
    if body.value.target_agent_id.as_ref().is_some_and(|target| target != id.as_str()) {
        return Err(invalid("target_agent_id", "must be the agent of the route"));
    }
    let url = callback_url(&body.value.delivery_callback_url)?;
    let (terms, bearer_token) = body.value.terms(url.origin().ascii_serialization())?;
    let binding = app.handle.bind(&id, terms, (url, bearer_token), body.by).await?;
    let shown = kinds::one(&BINDINGS, &app, &id, &binding.to_string()).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "binding": shown.0})))
}

/// An absolute URL of the web. A password in it would be told to whoever reads the request's errors.
fn callback_url(text: &str) -> Result<Url, Failure> {
    const FIELD: &str = "delivery_callback_url";
    if text.trim().is_empty() || text.len() > URL_BYTES_MAX {
        return Err(invalid(FIELD, "is a URL of at most 4 KiB"));
    }
    let url = Url::parse(text).map_err(|error| invalid(FIELD, &format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid(FIELD, "must begin with http:// or https:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(FIELD, "must not hold a user or a password: use delivery_auth"));
    }
    Ok(url)
}

fn invalid(field: &'static str, reason: &str) -> Failure {
    BodyError::Invalid { field, reason: reason.to_owned() }.into()
}

/// What the binding was still owed is told with it.
async fn revoke(State(app): State<Shared>, Public(id): Public, Rid(rid): Rid, body: Control<TrustBody>) -> Reply {
    let binding = app.handle.unbind(&id, rid, body.by).await?;
    kinds::one(&BINDINGS, &app, &id, &binding.to_string()).await
}

async fn ingress(State(app): State<Shared>, Public(id): Public, body: Control<IngressBody>) -> Reply {
    if let Some(ActorPeer::AgentProcess(_)) = body.by.cause.actor().map(|actor| &actor.peer) {
        return Err(Rejection::NotBound { reason: "an agent's command is no operator's transport" }.into());
    }
    let name = body.value.binding_id.clone();
    let bound =
        move |state: &crate::fold::AgentState| state.bindings.named(&name).map(|(_, binding)| binding.terms.clone());
    let terms = app.handle.read(&id, bound).await?;
    let (new, blob) = body.value.ingress(terms.as_ref());
    let request = body.by.request(OperatorCommand::Ingress(new));
    let answer = app.handle.submit(&id, request, blob.into_iter().collect()).await?;
    let Answer::Message(message) = answer else { return Err(unexpected(&answer)) };
    Ok(Json(json!({"ok": true, "agent_id": id, "message_id": message})))
}
