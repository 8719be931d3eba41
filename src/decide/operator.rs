//! The operator plane: what the agent wants known.

use super::Rejection;
use crate::events::Event;
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::{NoticeId, WorkId};

/// Tells the operator, or the supervisor of a private agent.
pub(super) fn notify(
    _state: &AgentState,
    _text: &Content,
    _work: Option<WorkId>,
) -> Result<(Event, NoticeId), Rejection> {
    Err(Rejection::NothingToDo)
}
