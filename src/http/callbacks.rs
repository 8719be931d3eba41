//! Capabilities: the way in for those who are given no token.

use super::Shared;
use super::auth::Caller;
use super::extract::Raw;
use super::messages::unexpected;
use super::peer::Peer;
use super::reply::{Failure, Reply};
use crate::decide::trigger::NewCallback;
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Rejection, Request};
use crate::events::Cause;
use crate::events::agent::Answer;
use crate::events::queue::BodyType;
use crate::events::waiting::DeliveryMode;
use crate::wire::waiting::delivery_mode;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::AgentId;
use crate::words::limit::CALLBACK_BODY_BYTES_MAX;
use axum::extract::{ConnectInfo, FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::json;

type CallbackBody = Raw<CALLBACK_BODY_BYTES_MAX>;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/callbacks/wake/{token}", post(wake)).route("/callbacks/enqueue/{token}", post(enqueue))
}

async fn wake(State(app): State<Shared>, holder: Holder, body: CallbackBody) -> Reply {
    deliver(&app, DeliveryMode::Wake, holder, body).await
}

async fn enqueue(State(app): State<Shared>, holder: Holder, body: CallbackBody) -> Reply {
    deliver(&app, DeliveryMode::Enqueue, holder, body).await
}

/// The hash of the token in the path, and the agent that a live one belongs to.
struct Holder {
    token_hash: Hash,
    agent: Option<AgentId>,
}

/// Guesses are counted for their peer; what a capability brings, for its agent.
impl FromRequestParts<Shared> for Holder {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Failure> {
        let token = Path::<String>::from_request_parts(parts, app).await;
        let token_hash = Hash::of(token.map(|Path(token)| token).unwrap_or_default().as_bytes());
        let agent = app.handle.holder(token_hash).await?;
        match (&agent, parts.extensions.get::<Caller>(), parts.extensions.get::<ConnectInfo<Peer>>()) {
            (Some(agent), ..) => app.count_proven(agent)?,
            (None, Some(caller), Some(ConnectInfo(peer))) => app.count_unproven(caller, peer, None)?,
            (None, ..) => {}
        }
        Ok(Self { token_hash, agent })
    }
}

/// Whatever is wrong with a token, it is answered alike, after the same look for its hash: whether it ever opened
/// anything is not told.
async fn deliver(app: &Shared, mode: DeliveryMode, holder: Holder, body: CallbackBody) -> Reply {
    let (body_type, text) = read(&body)?;
    let Holder { token_hash, agent } = holder;
    let agent = agent.ok_or(Rejection::NoCapability)?;
    let (body_content, blob) = Content::new(text);
    let command = WaitingCommand::Callback(NewCallback { token_hash, mode, body_type, body: body_content });
    let request = Request { command: command.into(), cause: Cause::External, key: body.key };
    // A hint is told of in its tick; only a message holds its whole body.
    let blobs = blob.into_iter().filter(|_| mode == DeliveryMode::Enqueue).collect();
    let answer = app.handle.submit(&agent, request, blobs).await?;
    let told = match (mode, &answer) {
        (DeliveryMode::Wake, Answer::Woken { disposition, message }) => Some((disposition.name(), *message)),
        (DeliveryMode::Enqueue, Answer::Message(message)) => Some(("enqueued", *message)),
        (DeliveryMode::Wake | DeliveryMode::Enqueue, _) => None,
    };
    let (disposition, message) = told.ok_or_else(|| unexpected(&answer))?;
    Ok(Json(json!({
        "ok": true,
        "agent_id": agent,
        "delivery_mode": delivery_mode(mode),
        "disposition": disposition,
        "message_id": message,
    })))
}

/// JSON that is said to be such, or else text.
fn read(body: &CallbackBody) -> Result<(BodyType, String), Failure> {
    if body.is_json() && !body.bytes.is_empty() {
        return Ok((BodyType::Json, body.json()?));
    }
    let text = std::str::from_utf8(&body.bytes).map_err(|_| {
        let detail = "the body must be JSON, sent as application/json, or text";
        Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    })?;
    Ok((BodyType::Text, text.to_owned()))
}
