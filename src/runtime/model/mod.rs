//! Model providers: who answers a model round.

use crate::context::request::{ModelAnswer, ModelRequest};
use crate::events::turn::AttemptError;
use futures::future::BoxFuture;

/// Answers model rounds. A provider makes one attempt: retries and fallback are owed by the agent's state.
pub trait Provider: Send + Sync {
    /// Dropping the future cancels the call.
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>>;
}
