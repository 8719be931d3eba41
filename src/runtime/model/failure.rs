//! What a failed model call is in our terms: its kind decides whether it is tried again.

use crate::events::turn::{AttemptError, AttemptErrorKind};
use genai::webc::StreamTimeout;
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use std::error::Error;
use std::time::Duration;

/// The message of a failed attempt.
pub const ATTEMPT_MESSAGE_BYTES_MAX: usize = 500;

/// How services say that a prompt is too long; only some of them have a code for it.
const CONTEXT_PHRASES: &[&str] = &[
    "prompt is too long",
    "context_length",
    "context length",
    "context limit",
    "context window",
    "context_size",
    "context size",
    "input token count",
    "request_too_large",
];

/// Parts of the error names that services put into a stream, and what they mean; the first that fits counts.
const NAMES: &[(&str, AttemptErrorKind)] = &[
    ("overloaded", AttemptErrorKind::Server),
    ("unavailable", AttemptErrorKind::Server),
    ("rate_limit", AttemptErrorKind::RateLimited),
    ("quota", AttemptErrorKind::RateLimited),
    ("resource_exhausted", AttemptErrorKind::RateLimited),
    ("timeout", AttemptErrorKind::Timeout),
    ("deadline_exceeded", AttemptErrorKind::Timeout),
    ("authenti", AttemptErrorKind::Authentication),
    ("permission", AttemptErrorKind::Authentication),
    ("api_key", AttemptErrorKind::Authentication),
    ("billing", AttemptErrorKind::Authentication),
    ("invalid", AttemptErrorKind::InvalidRequest),
    ("not_found", AttemptErrorKind::InvalidRequest),
];

/// A failed attempt that no HTTP answer is behind.
pub fn failed(kind: AttemptErrorKind, message: impl Into<String>) -> AttemptError {
    AttemptError { kind, status: None, message: bounded(message.into()), retry_after_ms: None }
}

/// Cuts a message to [`ATTEMPT_MESSAGE_BYTES_MAX`].
pub(super) fn bounded(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(ATTEMPT_MESSAGE_BYTES_MAX));
    message
}

/// Reads a failure of genai. The message is not bounded yet: secrets have to go first.
pub(super) fn of_genai(error: &genai::Error) -> AttemptError {
    if let genai::Error::WebStream { error, .. } = error {
        of_transport(error.as_ref())
    } else if let genai::Error::HttpError { status, body, headers, .. } = error {
        of_status(*status, body, headers)
    } else if let genai::Error::ChatResponse { body, .. } = error {
        of_error_event(body)
    } else if is_unreadable(error) {
        unbounded(AttemptErrorKind::InvalidAnswer, format!("the answer cannot be read: {error}"))
    } else {
        unbounded(AttemptErrorKind::InvalidRequest, format!("the request cannot be made: {error}"))
    }
}

fn is_unreadable(error: &genai::Error) -> bool {
    use genai::Error::{InvalidJsonResponseElement, JsonValueExt, SerdeJson, StreamParse};
    matches!(error, StreamParse { .. } | JsonValueExt(_) | SerdeJson(_) | InvalidJsonResponseElement { .. })
}

fn unbounded(kind: AttemptErrorKind, message: String) -> AttemptError {
    AttemptError { kind, status: None, message, retry_after_ms: None }
}

fn of_transport(error: &(dyn Error + Send + Sync + 'static)) -> AttemptError {
    if let Some(inner) = error.downcast_ref::<genai::Error>() {
        return of_genai(inner);
    }
    let kind = match error.downcast_ref::<reqwest::Error>() {
        Some(inner) if inner.is_timeout() => AttemptErrorKind::Timeout,
        Some(inner) if inner.is_builder() => AttemptErrorKind::NotConfigured,
        None if error.is::<StreamTimeout>() => AttemptErrorKind::Timeout,
        None if error.is::<std::string::FromUtf8Error>() => AttemptErrorKind::InvalidAnswer,
        Some(_) | None => AttemptErrorKind::Connection,
    };
    unbounded(kind, with_sources(error))
}

/// The outermost error alone rarely says what went wrong.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

fn of_status(status: StatusCode, body: &str, headers: &HeaderMap) -> AttemptError {
    let kind = kind_of_status(status.as_u16());
    let too_long = kind == AttemptErrorKind::InvalidRequest && names_context(body);
    AttemptError {
        kind: if too_long { AttemptErrorKind::ContextLength } else { kind },
        status: Some(status.as_u16()),
        message: format!("HTTP {}: {}", status.as_u16(), explanation(body)),
        retry_after_ms: retry_after_ms(headers),
    }
}

fn kind_of_status(status: u16) -> AttemptErrorKind {
    match status {
        401..=403 => AttemptErrorKind::Authentication,
        408 => AttemptErrorKind::Timeout,
        413 => AttemptErrorKind::ContextLength,
        429 => AttemptErrorKind::RateLimited,
        500..=599 => AttemptErrorKind::Server,
        _ => AttemptErrorKind::InvalidRequest,
    }
}

fn names_context(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    CONTEXT_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// The sentence that an error body holds, or the body itself.
fn explanation(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.trim().to_owned() };
    sentence(&value).map_or_else(|| value.to_string(), str::to_owned)
}

fn sentence(value: &Value) -> Option<&str> {
    ["/error/message", "/message", "/error", "/detail"].iter().find_map(|place| value.pointer(place)?.as_str())
}

/// Reads an error that came as an event of a stream, when the status had been 200.
pub(super) fn of_error_event(body: &Value) -> AttemptError {
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
    let name = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let names = ["type", "code", "status"].map(name).join(" ");
    let message = sentence(body).map_or_else(|| body.to_string(), str::to_owned);
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let kind = if names_context(&names) || names_context(&message) {
        AttemptErrorKind::ContextLength
    } else if let Some(code) = code.filter(|code| (400..600).contains(code)) {
        kind_of_status(code)
    } else if names.trim().is_empty() && sentence(body).is_none() {
        AttemptErrorKind::InvalidAnswer
    } else {
        kind_of_name(&names)
    };
    unbounded(kind, format!("in the middle of the answer: {message}"))
}

fn kind_of_name(names: &str) -> AttemptErrorKind {
    NAMES.iter().find(|(part, _)| names.contains(part)).map_or(AttemptErrorKind::Server, |(_, kind)| *kind)
}

/// How long the service asks us to wait. A date counts from the answer's own date, so no clock of ours is asked.
pub(in crate::runtime) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |value: &reqwest::header::HeaderValue| value.to_str().ok().map(|text| text.trim().to_owned());
    if let Some(wait) = headers.get("retry-after-ms").and_then(text).and_then(|wait| wait.parse::<f64>().ok()) {
        return milliseconds(wait / 1_000.0);
    }
    let wait = headers.get(RETRY_AFTER).and_then(text)?;
    if let Ok(seconds) = wait.parse::<f64>() {
        return milliseconds(seconds);
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let wait_ms = date(&wait)?.as_millisecond() - date(&headers.get(DATE).and_then(text)?)?.as_millisecond();
    Some(u64::try_from(wait_ms).unwrap_or(0))
}

fn milliseconds(seconds: f64) -> Option<u64> {
    u64::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    const DATE_THEN: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");

    type Pairs = &'static [(&'static str, &'static str)];

    fn headers(pairs: Pairs) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let cases: [(Pairs, Option<u64>); 9] = [
            (&[], None),
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (&[("retry-after", "7"), ("retry-after-ms", "1250")], Some(1_250)),
            (&[DATE_THEN, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30_000)),
            (&[DATE_THEN, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], None),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "soon")], None),
        ];
        for (pairs, expected) in cases {
            assert_eq!(retry_after_ms(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_status_and_its_body_give_the_kind() {
        use AttemptErrorKind as Kind;
        let cases = [
            (400, r#"{"error":{"message":"max_tokens: must be positive"}}"#, Kind::InvalidRequest),
            (400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#, Kind::ContextLength),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"too many"}}"#, Kind::ContextLength),
            (401, "", Kind::Authentication),
            (403, "", Kind::Authentication),
            (404, r#"{"error":"model not found"}"#, Kind::InvalidRequest),
            (408, "", Kind::Timeout),
            (413, "", Kind::ContextLength),
            (422, "", Kind::InvalidRequest),
            (429, "", Kind::RateLimited),
            (500, "the context window of our server broke", Kind::Server),
            (529, "", Kind::Server),
        ];
        for (status, body, kind) in cases {
            let error = of_status(StatusCode::from_u16(status).expect("a status"), body, &HeaderMap::new());
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{status} {body}");
        }
    }

    #[test]
    fn an_error_event_gives_the_kind_by_its_name() {
        use AttemptErrorKind as Kind;
        let cases = [
            (json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), Kind::Server),
            (json!({"type": "error", "error": {"type": "api_error", "message": "Internal"}}), Kind::Server),
            (json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}), Kind::RateLimited),
            (json!({"type": "error", "error": {"type": "authentication_error"}}), Kind::Authentication),
            (json!({"message": "The server had an error", "type": "server_error"}), Kind::Server),
            (json!({"message": "Provider returned error", "code": 429}), Kind::RateLimited),
            (json!({"message": "too long", "code": "context_length_exceeded"}), Kind::ContextLength),
            (json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "later"}}), Kind::Server),
            (json!({"error": "model runner has stopped"}), Kind::Server),
            (Value::Null, Kind::InvalidAnswer),
            (json!({"finishReason": null, "usageMetadata": null}), Kind::InvalidAnswer),
        ];
        for (body, kind) in cases {
            assert_eq!(of_error_event(&body).kind, kind, "{body}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = bounded("é".repeat(400));
        assert_eq!(message.len(), ATTEMPT_MESSAGE_BYTES_MAX);
        assert_eq!(bounded(format!("a{message}")).len(), ATTEMPT_MESSAGE_BYTES_MAX - 1);
    }
}
