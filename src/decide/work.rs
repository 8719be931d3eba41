//! The work plane: opening, altering, picking, completing and continuing work.

use super::call::Called;
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::work::WorkChange;
use crate::fold::AgentState;
use crate::fold::turn::Calls;
use crate::words::content::Content;
use crate::words::id::WorkId;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkCommand {
    Create {
        change: WorkChange,
    },
    Update {
        work: WorkId,
        change: WorkChange,
    },
    Pick {
        work: WorkId,
    },
    Complete {
        work: WorkId,
        report: Option<Content>,
    },
    /// Runnable work has nobody who continues it, and its time has come.
    Continue {
        work: WorkId,
    },
    /// Blockers are to be looked at again.
    Recheck,
}

pub(super) fn decide(_state: &AgentState, _command: &WorkCommand, _at: Timestamp) -> Result<Decision, Rejection> {
    Err(Rejection::NothingToDo)
}

pub(super) fn create_called(_state: &AgentState, _change: &WorkChange, _focus: bool) -> Called {
    Err(Rejection::NothingToDo)
}

pub(super) fn update_called(_state: &AgentState, _work: WorkId, _change: &WorkChange) -> Called {
    Err(Rejection::NothingToDo)
}

pub(super) fn pick_called(_state: &AgentState, _work: WorkId) -> Called {
    Err(Rejection::NothingToDo)
}

/// Without a report of its own the text of the round is it.
pub(super) fn complete_called(_state: &AgentState, _calls: &Calls, _work: WorkId, _report: Option<&Content>) -> Called {
    Err(Rejection::NothingToDo)
}

/// What runnable work leads to by itself: its first continuation, or its hold.
pub(super) fn follow_up(_state: &AgentState) -> Vec<Event> {
    Vec::new()
}
