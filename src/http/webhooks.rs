//! Webhooks: anybody's, until the agent has a secret that signs them.

use super::Shared;
use super::auth::{Caller, held_off};
use super::extract::{Agent, Control, Public, Raw, check_public, not_json};
use super::ingress::{self, WebhookMode};
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
use axum::{Extension, Json, Router};
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

/// Who sends a webhook, as the connection and the headers tell.
struct Sender {
    caller: Caller,
    peer: Peer,
    headers: HeaderMap,
}

/// On what grounds a webhook is taken in, and its sender's name for it.
type Admitted = (Admission, Option<RequestKey>);

/// A stranger is told of an agent only that it takes what is sent, or that there is none.
async fn webhook(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(caller): Extension<Caller>,
    Agent(id): Agent,
    headers: HeaderMap,
    body: WebhookBody,
) -> Reply {
    let sender = Sender { caller, peer, headers };
    let may_know = app.may_know(&sender.caller, &sender.peer);
    let text = match if body.is_json() { body.json() } else { Err(not_json()) } {
        // What cannot be read is told before there is anything else to tell.
        Err(failure) if !may_know => return Err(failure),
        text => text,
    };
    let (signed, taken) = match admitted(&app, &sender, &id, &body).await {
        Ok((admission, key)) => {
            let by = Attribution { cause: Cause::External, key: key.or(body.key) };
            (admission == Admission::WebhookSigned, take_in_webhook(&app, &id, admission, text, by).await)
        }
        Err(failure) => (false, Err(failure)),
    };
    taken.map_err(|failure| if may_know || signed { failure } else { ingress::hidden(failure) })
}

async fn take_in_webhook(
    app: &Shared,
    id: &AgentId,
    admission: Admission,
    text: Result<String, Failure>,
    by: Attribution,
) -> Reply {
    check_public(app, id).await?;
    let (content, blob) = Content::new(text?);
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
        derived_from: None,
    };
    take_in(app, id, new, blob, by).await
}

/// Whether a webhook must be signed is the core's to say; whether any comes in unsigned, the operator's.
async fn admitted(app: &Shared, sender: &Sender, id: &AgentId, body: &WebhookBody) -> Result<Admitted, Failure> {
    let mode = app.access.webhooks;
    let secrets = app.handle.webhook_secrets(id).await?;
    let checked = signature::check(&sender.headers, &body.bytes, &secrets, app.handle.now());
    match checked {
        Ok(key) if !secrets.is_empty() && mode != WebhookMode::Off => {
            app.count_proven(id)?;
            return Ok((Admission::WebhookSigned, Some(key)));
        }
        _ => app.count_unproven(&sender.caller, &sender.peer, Some(id))?,
    }
    match (mode, checked) {
        (WebhookMode::Open, _) if secrets.is_empty() => Ok((Admission::PublicUnauthenticated, None)),
        (WebhookMode::Open | WebhookMode::Signed, Err(reason)) if !secrets.is_empty() => {
            Err(unsigned(app, sender, id, reason).await)
        }
        _ => Err(ingress::webhooks_refused(mode)),
    }
}

/// That an agent must be sent signed webhooks is told of one that takes any. A stranger hears nothing of the others.
async fn unsigned(app: &Shared, sender: &Sender, id: &AgentId, reason: &'static str) -> Failure {
    let takes_any = app.handle.read(id, |state| state.agent.lifecycle.admits()).await;
    if !app.may_know(&sender.caller, &sender.peer) && !matches!(takes_any, Ok(true)) {
        return Rejection::UnknownAgent.into();
    }
    held_off(app, &sender.peer).unwrap_or_else(|| {
        let mut problem = Problem::from(&Rejection::Unsigned);
        (problem.detail, problem.error) = (reason.into(), reason.into());
        Failure(problem)
    })
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
