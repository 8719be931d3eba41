//! Tool calls that need the outside: one attempt each, and what it brings back.
//!
//! **Invariant:** what is made here leaves no trace but its end: an attempt that dies is made again by the next boot,
//! or is told to be of unknown effect where that could harm (architecture 11).

use crate::decide::Request;
use crate::decide::call::CallEnd;
use crate::decide::turn::TurnCommand;
use crate::events::Cause;
use crate::events::call::{Action, CallError, CallResult, Shown, View};
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::tools;
use crate::words::content::{Blob, Content};
use crate::words::id::{EventSeq, RunId};
use std::sync::Arc;

/// A call that is to be made, as the state describes it.
pub(in crate::runtime) struct OutsideCall {
    run: RunId,
    attempt: EventSeq,
    action: Action,
    /// The state that the call sees: durable, as it was when the call began.
    state: Box<AgentState>,
}

/// How a call ended, and the payloads that its end names.
pub(super) type Ended = (CallEnd, Vec<Blob>);

impl OutsideCall {
    pub(crate) fn of(state: &AgentState, run: RunId, attempt: EventSeq, action: Action) -> Self {
        Self { run, attempt, action, state: Box::new(state.clone()) }
    }

    /// Makes the call and says what came of it.
    pub(crate) async fn make(self, shared: Arc<Shared>) -> What {
        let (run, attempt) = (self.run, self.attempt);
        let (end, blobs) = self.act(&shared).await;
        let keeper = shared.blobs.clone();
        let kept = tokio::task::spawn_blocking(move || keeper.keep_large(blobs)).await;
        let (end, blobs) = match kept {
            Ok(Ok(blobs)) => (end, blobs),
            Ok(Err(error)) => (refused("not_kept", &error.to_string()), Vec::new()),
            Err(error) => (refused("not_kept", &error.to_string()), Vec::new()),
        };
        What::Command { request: Request::new(TurnCommand::EndCall { run, attempt, end }, Cause::Run(run)), blobs }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other calls are decided without the outside")]
    async fn act(self, _shared: &Arc<Shared>) -> Ended {
        match &self.action {
            Action::Look(view) => self.look(view),
            _ => (refused("not_available", "this runtime cannot make the call"), Vec::new()),
        }
    }

    /// A part of the state, as JSON.
    fn look(&self, view: &View) -> Ended {
        match tools::view::render(&self.state, view) {
            Some(value) => viewed(value.to_string()),
            None => (refused("not_found", "nothing of that name is open or kept"), Vec::new()),
        }
    }
}

/// A text that the call is shown whole.
pub(super) fn viewed(text: String) -> Ended {
    let bytes = text.len() as u64;
    let (text, blob) = Content::new(text);
    (CallEnd::Result(CallResult::Viewed(Shown { text, bytes, cut: false })), blob.into_iter().collect())
}

/// A refusal by the outside.
pub(super) fn refused(kind: &str, message: &str) -> CallEnd {
    let (kind, message) = (kind.to_owned(), message.to_owned());
    CallEnd::Result(CallResult::Refused(CallError { kind, field: None, message, hint: None }))
}
