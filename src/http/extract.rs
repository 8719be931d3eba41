//! What handlers take in: ids, queries and bodies, each with our own refusals.

use super::reply::Failure;
use crate::decide::RequestKey;
use crate::words::hash::Hash;
use crate::words::id::AgentId;
use crate::words::limit::{REQUEST_BODY_BYTES_MAX, REQUEST_BODY_MS_MAX};
use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, RawQuery, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// The agent of the path.
pub(super) struct Agent(pub AgentId);

/// The record of the path, as it was written there.
pub(super) struct Rid(pub String);

/// The query, or the body, of a route that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// A query string, every field of which is known.
pub(super) struct Query<T>(pub T);

/// A JSON body, and the idempotency key that came with it. An empty body is `{}` where `T` needs nothing.
pub(super) struct Body<T> {
    pub value: T,
    pub key: Option<RequestKey>,
}

impl<S: Send + Sync> FromRequestParts<S> for Agent {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let id = member(parts, state, "id").await?;
        AgentId::parse(&id).map(Self).map_err(|error| malformed("invalid_agent_id", &error.to_string()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Rid {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        member(parts, state, "rid").await.map(Self)
    }
}

/// The decoded part of the path that the route calls `name`.
async fn member<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String, Failure> {
    let members = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Path(mut members) = members.map_err(|error| malformed("invalid_path", &error.body_text()))?;
    Ok(members.remove(name).unwrap_or_default())
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

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        if announced(&parts.headers).is_some_and(|length| length > REQUEST_BODY_BYTES_MAX as u64) {
            return Err(too_large());
        }
        let whole =
            tokio::time::timeout(Duration::from_millis(REQUEST_BODY_MS_MAX), to_bytes(body, REQUEST_BODY_BYTES_MAX));
        let bytes = whole.await.map_err(|_| too_slow())?.map_err(|error| cut(&error))?;
        if !bytes.is_empty() && !is_json(&parts.headers) {
            let detail = "the body must be sent as Content-Type: application/json";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
        let key = key(&parts, &bytes)?;
        let value = object(if bytes.is_empty() { b"{}" } else { &bytes })?;
        Ok(Self { value, key })
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
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

fn too_large() -> Failure {
    let detail = format!("the body is larger than {REQUEST_BODY_BYTES_MAX} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

fn too_slow() -> Failure {
    let detail = format!("the body did not arrive within {} seconds", REQUEST_BODY_MS_MAX / 1_000);
    Failure::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
}

/// The reader stopped: at the limit, or because the client did.
fn cut(error: &axum::Error) -> Failure {
    let text = error.to_string();
    if text.contains("length limit") { too_large() } else { malformed("body_not_received", &text) }
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
    let text = error.inner().to_string();
    // A field that is missing is on no path; its name is in the text.
    let path = Some(error.path().to_string()).filter(|path| path != ".");
    let field = path.or_else(|| text.split('`').nth(1).map(str::to_owned));
    match field {
        Some(field) => Failure(invalid(text).0.with("field", field)),
        None => invalid(text),
    }
}

fn invalid(detail: String) -> Failure {
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail)
}

pub(super) fn malformed(code: &str, detail: &str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, code, detail)
}
