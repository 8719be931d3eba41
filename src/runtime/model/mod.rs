//! Model providers: who answers a model round.
//!
//! [`catalog`] finds the provider that a reference such as `anthropic/claude-sonnet-4-5` names. [`remote`] speaks to
//! the services (`conversation` puts the request in their terms, [`failure`] reads their failures), [`scripted`]
//! answers from a file, and [`runbook`] needs no model at all.
//!
//! **Invariant:** a provider makes one attempt and keeps nothing between two: what has been said is in the request.

pub mod catalog;
mod conversation;
pub mod failure;
pub mod remote;
pub mod runbook;
pub mod scripted;

use crate::context::request::{AssistantPart, ModelAnswer, ModelRequest};
use crate::events::turn::{AttemptError, AttemptErrorKind};
use crate::words::limit::MODEL_TEXT_BYTES_MAX;
use futures::future::BoxFuture;
use serde_json::Value;

/// Answers model rounds. A provider makes one attempt: retries and fallback are owed by the agent's state.
pub trait Provider: Send + Sync {
    /// Dropping the future cancels the call.
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>>;
}

/// Refuses an answer that is larger than [`MODEL_TEXT_BYTES_MAX`].
fn within_bound(said: &AssistantPart) -> Result<(), AttemptError> {
    let arguments: usize = said.calls.iter().map(|call| call.arguments.len()).sum();
    if said.text.len() + arguments <= MODEL_TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the answer is longer than {MODEL_TEXT_BYTES_MAX} bytes");
    Err(failure::failed(AttemptErrorKind::InvalidAnswer, message))
}

/// A text stands for itself, whatever is in it; any other value for its JSON.
fn raw_text(value: Value) -> String {
    if let Value::String(text) = value { text } else { value.to_string() }
}
