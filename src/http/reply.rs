//! Answers: JSON, and the one shape of an error.

use crate::decide::Rejection;
use crate::runtime::handle::SubmitError;
use crate::wire::message::BodyError;
use crate::wire::problem::Problem;
use axum::Json;
use axum::http::header::{CONTENT_TYPE, LINK, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// A problem on its way to the client.
#[derive(Debug)]
pub(super) struct Failure(pub Problem);

pub(super) type Reply = Result<Json<Value>, Failure>;

/// Seconds after which an overloaded or failing runtime may be asked again, when the problem does not say.
const RETRY_AFTER_SECONDS: u64 = 1;

/// A page of a list, and the path of the one that follows.
pub(super) fn page(entries: Vec<Value>, next: Option<String>) -> Result<Response, Failure> {
    let mut response = Json(entries).into_response();
    if let Some(path) = next {
        let link = format!("<{path}>; rel=\"next\"").parse();
        let unfit = |_| Failure::new(StatusCode::BAD_REQUEST, "invalid_cursor", "the cursor fits no header");
        response.headers_mut().insert(LINK, link.map_err(unfit)?);
    }
    Ok(response)
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self(Problem::new(status.as_u16(), code, detail))
    }

    pub(super) fn hint(self, hint: &str) -> Self {
        Self(self.0.hint(hint))
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let text = error.to_string();
        match error {
            SubmitError::Rejected(rejection) => rejection.into(),
            SubmitError::Quarantined { agent, reason } => {
                let mut problem = Problem::new(503, "agent_quarantined", text)
                    .with("agent_id", agent.as_str())
                    .with("reason", reason)
                    .hint("its ledger is damaged: run holon ledger verify, then restore the home from a backup");
                problem.retryable = false;
                Self(problem)
            }
            SubmitError::Overloaded => Self(Problem::new(429, "overloaded", text).hint("send fewer requests at once")),
            SubmitError::ShuttingDown => Self(going_down()),
            SubmitError::Unavailable(reason) => {
                tracing::error!(reason, "the ledger is unavailable");
                Self(Problem::new(503, "ledger_unavailable", text).hint("nothing was recorded; try again"))
            }
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self(Problem::from(&rejection))
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        let text = error.to_string();
        match error {
            BodyError::Forbidden(_) => Self(Problem::new(403, "not_allowed", text)),
            BodyError::Invalid { field, .. } => {
                let problem = Problem::new(422, "invalid_field", text).with("field", field);
                Self(problem.hint("correct what is named, and send it again"))
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if problem.retryable {
            let seconds = problem.more.get("retry_after").and_then(Value::as_u64);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.unwrap_or(RETRY_AFTER_SECONDS)));
        }
        // What must be signed is let in by no token.
        if status == StatusCode::UNAUTHORIZED && problem.code != Rejection::Unsigned.code() {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

pub(super) fn going_down() -> Problem {
    Problem::new(503, "shutting_down", "the server goes down").hint("ask again when it is back")
}

pub(super) async fn unknown_route(uri: Uri) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "route_not_found", format!("there is no route {}", uri.path()))
}

/// The router adds `Allow`, for it knows the methods of the route.
pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> Failure {
    let detail = format!("{} does not take {method}", uri.path());
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}
