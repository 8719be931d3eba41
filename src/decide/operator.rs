//! The operator plane: what the agent wants known.

use super::Rejection;
use crate::events::Event;
use crate::events::operator::NotificationRequested;
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::{NoticeId, WorkId};
use crate::words::limit::OUTBOX_MAX;

/// Tells the operator, or the supervisor of a private agent.
pub(super) fn notify(state: &AgentState, text: &Content, work: Option<WorkId>) -> Result<(Event, NoticeId), Rejection> {
    if text.bytes() == 0 {
        return Err(Rejection::Invalid { field: "message", reason: "must not be empty".into() });
    }
    if state.outbox.owed.len() >= OUTBOX_MAX {
        return Err(Rejection::TooMany { what: "notices that wait for delivery", max: OUTBOX_MAX });
    }
    let notice = state.briefs.last_notice.next();
    Ok((NotificationRequested { notice, text: text.clone(), work }.into(), notice))
}
