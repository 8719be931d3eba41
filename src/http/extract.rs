//! What handlers take in: ids, queries and bodies, each with our own refusals.

use super::Shared;
use super::auth::Caller;
use super::reply::Failure;
use crate::decide::{Attribution, Rejection, RequestKey};
use crate::events::Cause;
use crate::events::agent::Visibility;
use crate::wire::message::{ControlBody, provided_trust, says_trust};
use crate::words::hash::Hash;
use crate::words::id::AgentId;
use crate::words::limit::{REQUEST_BODY_BYTES_MAX, REQUEST_BODY_MS_MAX};
use axum::extract::{FromRequest, FromRequestParts, Path, RawQuery, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The agent of the path; the default agent where the path names none.
pub(super) struct Agent(pub AgentId);

/// The agent of the path, which is to be altered: a private one is its parent's alone.
pub(super) struct Public(pub AgentId);

/// The record of the path, as it was written there.
pub(super) struct Rid(pub String);

/// The query, or the body, of a route that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl ControlBody for Nothing {}

/// A query string, every field of which is known.
pub(super) struct Query<T>(pub T);

/// A JSON body, and the idempotency key that came with it. An empty body is `{}` where `T` needs nothing.
pub(super) struct Body<T> {
    pub value: T,
    pub key: Option<RequestKey>,
    /// Given back when the request is answered.
    room: Room,
}

/// A body of a control route, and who sent it. There is no other way for a control route to come by a request, so none
/// is recorded without its actor.
pub(super) struct Control<T> {
    pub value: T,
    pub by: Attribution,
    /// Given back when the request is answered.
    _room: Room,
}

/// What a body occupies of the room that all of them have together.
type Room = OwnedSemaphorePermit;

/// A body as it came, within the bytes that its route takes.
pub(super) struct Raw<const BYTES_MAX: usize> {
    pub bytes: Vec<u8>,
    /// Its media type, in lower case and without parameters.
    pub kind: Option<String>,
    pub key: Option<RequestKey>,
    _room: Room,
}

impl FromRequestParts<Shared> for Agent {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Failure> {
        let Some(id) = member(parts, app, "id").await? else {
            return Ok(Self(app.handle.settings().default_agent.clone()));
        };
        AgentId::parse(&id).map(Self).map_err(|error| malformed("invalid_agent_id", &error.to_string()))
    }
}

impl FromRequestParts<Shared> for Public {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Failure> {
        let Agent(id) = Agent::from_request_parts(parts, app).await?;
        check_public(app, &id).await?;
        Ok(Self(id))
    }
}

/// Refuses a private agent. Only the runtime gives the id of one, so for all others there is nothing to look up.
pub(super) async fn check_public(app: &Shared, id: &AgentId) -> Result<(), Failure> {
    let is_private =
        id.has_child_form() && app.handle.read(id, |state| state.agent.visibility).await? == Visibility::Private;
    if is_private { Err(Rejection::AgentPrivate.into()) } else { Ok(()) }
}

impl<S: Send + Sync> FromRequestParts<S> for Rid {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(member(parts, state, "rid").await?.unwrap_or_default()))
    }
}

impl Rid {
    /// The id; what is none is no record's.
    pub(super) fn parse<T: FromStr>(&self, what: &'static str) -> Result<T, Failure> {
        self.0.parse().map_err(|_| Rejection::Unknown { what, id: self.0.clone() }.into())
    }
}

/// The decoded part of the path that the route calls `name`, if it has one.
async fn member<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<Option<String>, Failure> {
    let members = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Path(mut members) = members.map_err(|error| malformed("invalid_path", &error.body_text()))?;
    Ok(members.remove(name))
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let RawQuery(query) = match RawQuery::from_request_parts(parts, state).await {
            Ok(query) => query,
            Err(never) => match never {},
        };
        let uri = format!("/?{}", query.unwrap_or_default());
        let uri = uri.parse().map_err(|_| malformed("invalid_query", "the query string cannot be read"))?;
        match axum::extract::Query::<T>::try_from_uri(&uri) {
            Ok(query) => Ok(Self(query.0)),
            Err(error) => Err(malformed("invalid_query", &error.body_text())),
        }
    }
}

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Failure> {
        let (parts, bytes, room) = whole(request, REQUEST_BODY_BYTES_MAX, app).await?;
        if !bytes.is_empty() && !media_type(&parts.headers).is_some_and(|kind| is_json(&kind)) {
            return Err(not_json());
        }
        let key = key(&parts, &bytes)?;
        let value = object(if bytes.is_empty() { b"{}" } else { &bytes })?;
        Ok(Self { value, key, room })
    }
}

impl<T: DeserializeOwned + ControlBody> FromRequest<Shared> for Control<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Failure> {
        let mut actor = Caller::of(request.extensions()).actor;
        let Body { value, key, room } = Body::<T>::from_request(request, app).await?;
        actor.provided_trust = provided_trust(value.trust())?;
        Ok(Self { value, by: Attribution { cause: Cause::Control(actor), key }, _room: room })
    }
}

impl<const BYTES_MAX: usize> FromRequest<Shared> for Raw<BYTES_MAX> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &Shared) -> Result<Self, Failure> {
        let (parts, bytes, room) = whole(request, BYTES_MAX, app).await?;
        let (kind, key) = (media_type(&parts.headers), key(&parts, &bytes)?);
        Ok(Self { bytes, kind, key, _room: room })
    }
}

impl<const BYTES_MAX: usize> Raw<BYTES_MAX> {
    pub(super) fn is_json(&self) -> bool {
        self.kind.as_deref().is_some_and(is_json)
    }

    /// Any JSON at all, as text.
    pub(super) fn json(&self) -> Result<String, Failure> {
        let value = serde_json::from_slice::<Value>(&self.bytes);
        value.map(|value| value.to_string()).map_err(|error| malformed("invalid_json", &error.to_string()))
    }
}

/// Reads a body to its end, within its bytes and its time, and while there is room for it beside the others.
async fn whole(request: Request, bytes_max: usize, app: &Shared) -> Result<(Parts, Vec<u8>, Room), Failure> {
    let (parts, body) = request.into_parts();
    let length = announced(&parts.headers).unwrap_or(0);
    if length > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    if length > app.bodies.available_permits() as u64 {
        return Err(no_room());
    }
    let whole = tokio::time::timeout(Duration::from_millis(REQUEST_BODY_MS_MAX), read(body, bytes_max, app));
    let (bytes, room) = whole.await.map_err(|_| too_slow())??;
    Ok((parts, bytes, room))
}

/// Room is taken for what has come, not for what was announced: who sends nothing keeps nobody out.
async fn read(body: axum::body::Body, bytes_max: usize, app: &Shared) -> Result<(Vec<u8>, Room), Failure> {
    let (mut bytes, mut room) = (Vec::new(), taken(app, 0)?);
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| malformed("body_not_received", &error.to_string()))?;
        if chunk.len() > bytes_max - bytes.len() {
            return Err(too_large(bytes_max));
        }
        room.merge(taken(app, chunk.len())?);
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, room))
}

fn taken(app: &Shared, bytes: usize) -> Result<Room, Failure> {
    let bytes = u32::try_from(bytes).map_err(|_| no_room())?;
    app.bodies.clone().try_acquire_many_owned(bytes).map_err(|_| no_room())
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub(super) fn media_type(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())?;
    Some(kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(super) fn is_json(kind: &str) -> bool {
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The caller's name for the request. What it names is the route and the body, byte for byte.
fn key(parts: &Parts, body: &[u8]) -> Result<Option<RequestKey>, Failure> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().map_err(|_| malformed("invalid_header", "Idempotency-Key must be plain text"))?;
    let mut request = format!("{} {}\n", parts.method, parts.uri.path()).into_bytes();
    request.extend_from_slice(body);
    Ok(Some(RequestKey { key: key.to_owned(), fingerprint: Hash::of(&request) }))
}

/// A body that says no more than whom the caller speaks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustBody {
    trust: Option<String>,
}

says_trust!(TrustBody);

pub(super) fn not_json() -> Failure {
    let detail = "the body must be sent as Content-Type: application/json";
    Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

fn too_large(bytes_max: usize) -> Failure {
    let detail = format!("the body is larger than {bytes_max} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn too_slow() -> Failure {
    let detail = format!("the body did not arrive within {} seconds", REQUEST_BODY_MS_MAX / 1_000);
    Failure::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
}

fn no_room() -> Failure {
    let detail = "the bodies of other requests take all the room there is";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail).hint("send fewer large bodies at once")
}

/// Reads a JSON object: what is not JSON is malformed, and a value of another shape is invalid and names its field.
fn object<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    shaped(text).map_err(|misshapen| match serde_json::from_slice::<Value>(text) {
        Ok(_) => misshapen,
        Err(error) => malformed("invalid_json", &error.to_string()),
    })
}

fn shaped<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    // A sequence of the fields' values would pass for the object otherwise.
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(invalid("the body must be a JSON object".into()));
    }
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| misshapen(&error))?;
    json.end().map_err(|error| invalid(error.to_string()))?;
    Ok(value)
}

fn misshapen(error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let text = without_value(error.inner().to_string());
    // A field that is missing is on no path; its name is in the text.
    let path = Some(error.path().to_string()).filter(|path| path != ".");
    let field = path.or_else(|| text.split('`').nth(1).map(str::to_owned));
    match field {
        Some(field) => Failure(invalid(text).0.with("field", field)),
        None => invalid(text),
    }
}

/// The kind of what came, and what was expected. The value between them may be a secret in the wrong place.
fn without_value(text: String) -> String {
    let repeats = ["invalid type: ", "invalid value: ", "unknown variant "].iter().any(|start| text.starts_with(start));
    match (text.find(['"', '`']), text.rfind(", expected ")) {
        (Some(value), Some(expected)) if repeats && value < expected => {
            format!("{}{}", text[..value].trim_end(), &text[expected..])
        }
        _ => text,
    }
}

fn invalid(detail: String) -> Failure {
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail)
}

pub(super) fn malformed(code: &str, detail: &str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, code, detail)
}
