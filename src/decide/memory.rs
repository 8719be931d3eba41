//! The memory plane: notes of the agent, and the episodes that hold its turns.

use super::Rejection;
use crate::events::Event;
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::WorkId;

/// Writes a note over, or removes it.
pub(super) fn update(
    _state: &AgentState,
    _entry: &str,
    _text: Option<&Content>,
    _work: Option<WorkId>,
) -> Result<Vec<Event>, Rejection> {
    Err(Rejection::NothingToDo)
}
