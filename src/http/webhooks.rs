//! Webhooks: anybody's, until the agent has a secret that signs them.

use super::Shared;
use super::auth::held_off;
use super::extract::{Control, Public, Raw, not_json};
use super::messages::take_in;
use super::peer::Peer;
use super::reply::{Failure, Reply};
use super::signature;
use crate::decide::queue::NewMessage;
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Attribution, Rejection, RequestKey};
use crate::events::Cause;
use crate::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use crate::wire::message::{BodyError, says_trust};
use crate::wire::problem::Problem;
use crate::words::content::Content;
use crate::words::id::AgentId;
use crate::words::limit::REQUEST_BODY_BYTES_MAX;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

type WebhookBody = Raw<REQUEST_BODY_BYTES_MAX>;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/webhooks/generic/{id}", post(webhook))
        .route("/control/agents/{id}/webhook-secret", post(alter_secret))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretBody {
    /// `set`, `rotate` or `clear`.
    action: String,
    /// One is drawn where none is given.
    secret: Option<SecretString>,
    trust: Option<String>,
}

says_trust!(SecretBody);

async fn webhook(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Public(id): Public,
    headers: HeaderMap,
    body: WebhookBody,
) -> Reply {
    let (admission, key) = admitted(&app, &peer, &id, &headers, &body).await?;
    if !body.is_json() {
        return Err(not_json());
    }
    let (content, blob) = Content::new(body.json()?);
    let new = NewMessage {
        kind: MessageKind::WebhookEvent,
        lane: None,
        origin: Origin::Webhook { source: "generic_webhook".into(), event_type: None },
        surface: Surface::HttpWebhook,
        admission,
        body_type: BodyType::Json,
        body: content,
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        reply_route: None,
    };
    let by = Attribution { cause: Cause::External, key: key.or(body.key) };
    take_in(&app, &id, new, blob, by).await
}

/// On what grounds a webhook comes, and its sender's name for it. Whether it must be signed is the core's to say.
async fn admitted(
    app: &Shared,
    peer: &Peer,
    id: &AgentId,
    headers: &HeaderMap,
    body: &WebhookBody,
) -> Result<(Admission, Option<RequestKey>), Failure> {
    let secrets = app.handle.webhook_secrets(id).await?;
    if secrets.is_empty() {
        return Ok((Admission::PublicUnauthenticated, None));
    }
    match signature::check(headers, &body.bytes, &secrets, app.handle.now()) {
        Ok(key) => Ok((Admission::WebhookSigned, key)),
        Err(reason) => Err(held_off(app, peer).unwrap_or_else(|| {
            let mut problem = Problem::from(&Rejection::Unsigned);
            (problem.detail, problem.error) = (reason.into(), reason.into());
            Failure(problem)
        })),
    }
}

/// What webhooks are signed with is set; rotated, so that the secret before is accepted a day longer; or cleared.
async fn alter_secret(State(app): State<Shared>, Public(id): Public, body: Control<SecretBody>) -> Reply {
    let SecretBody { action, secret, .. } = body.value;
    let unfit = secret.as_ref().and_then(|secret| signature::unfit(secret.expose_secret()));
    if let Some(reason) = unfit.or((action == "clear" && secret.is_some()).then_some("is not given to clear it")) {
        return Err(BodyError::Invalid { field: "secret", reason: reason.into() }.into());
    }
    let drawn = match action.as_str() {
        "set" | "rotate" => app.handle.set_webhook_secret(&id, secret, action == "rotate", body.by).await?,
        "clear" => {
            let command = WaitingCommand::ClearWebhookSecret;
            let request = body.by.request(command);
            app.handle.submit(&id, request, Vec::new()).await?;
            None
        }
        // What is not known is not told back: it may be the secret.
        _ => return Err(BodyError::Invalid { field: "action", reason: "is set, rotate or clear".into() }.into()),
    };
    // A secret that was drawn is shown here and nowhere else.
    let drawn = drawn.as_ref().map(ExposeSecret::expose_secret);
    Ok(Json(json!({"ok": true, "agent_id": id, "action": action, "secret": drawn})))
}
