//! What comes into an agent's loop.

use super::handle::SubmitError;
use super::permit::Permit;
use crate::context::Contents;
use crate::decide::Request;
use crate::events::agent::Answer;
use crate::fold::AgentState;
use crate::fold::owed::Effect;
use crate::words::content::Blob;
use crate::words::id::TaskId;
use tokio::sync::oneshot;

pub(super) enum Mail {
    Submit(Submission),
    /// Looks at the state as it is durable.
    Read(Box<dyn FnOnce(&AgentState) + Send>),
    Outcome(Outcome),
    /// A place among the host's active turns.
    Place(Permit),
    /// A place in the background, for a command that no call waits for.
    Background {
        task: TaskId,
        place: Permit,
    },
    /// Something may be due.
    Nudge,
    /// The host goes down.
    Shutdown,
}

/// A command from outside the loop.
pub(super) struct Submission {
    pub request: Request,
    pub blobs: Vec<Blob>,
    pub reply: oneshot::Sender<Result<Answer, SubmitError>>,
}

/// What came of an effect.
pub(super) struct Outcome {
    pub effect: Effect,
    pub what: What,
}

pub(crate) enum What {
    /// To be decided. Large payloads are files already.
    Command { request: Request, blobs: Vec<Blob> },
    /// A command whose start has got its place.
    Placed { request: Request, permit: Permit },
    /// What a prompt is made of.
    Contents(Contents),
    /// Done, with nothing to tell; it stays marked until it is not owed any more.
    Nothing,
    /// It could not be done here: the code failed.
    Panicked,
}

impl What {
    pub(super) fn command(request: Request) -> Self {
        Self::Command { request, blobs: Vec::new() }
    }
}
