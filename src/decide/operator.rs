//! The operator plane: what the agent wants known.

use super::Rejection;
use crate::events::Event;
use crate::events::operator::NotificationRequested;
use crate::events::waiting::WakeOn;
use crate::fold::AgentState;
use crate::words::content::{Content, excerpt};
use crate::words::id::{NoticeId, WorkId};
use crate::words::limit::{EXCERPT_BYTES_MAX, OUTBOX_MAX};

/// A private child that can go no further by itself says so: what it waits for, and what it said last.
pub(super) fn ask_supervisor(state: &AgentState, answer: Option<&Content>) -> Vec<Event> {
    let bounded = |text| excerpt(text, EXCERPT_BYTES_MAX);
    let said = answer.map(|answer| format!("\n{}", bounded(answer.excerpt()))).unwrap_or_default();
    let asks = state.waiting.active().find(|(_, wait)| wait.wake == WakeOn::OperatorInput);
    let blocked = || state.works.open.values().find_map(|item| Some(item.blocker.as_ref()?.text.as_str()));
    let reason = asks.map(|(_, wait)| wait.reason.as_str()).or_else(blocked).map(bounded).unwrap_or_default();
    let text = format!("{} needs your input to go on: {reason}{said}", state.agent_id);
    let (notice, work) = (state.briefs.last_notice.next(), state.works.focus);
    vec![NotificationRequested { notice, text: Content::from(text.as_str()), work }.into()]
}

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
