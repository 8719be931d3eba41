//! Timers: messages that time brings.

use super::Rejection;
use super::queue::{OwnMessage, admits, over};
use crate::events::Event;
use crate::events::queue::{MessageKind, Origin, Subject};
use crate::events::waiting::{TimerCancelled, TimerCreated, TimerFired};
use crate::fold::AgentState;
use crate::fold::turn::Turn;
use crate::words::content::Content;
use crate::words::id::TimerId;
use crate::words::limit::{NOTE_BYTES_MAX, TIMER_INTERVAL_MS_MIN, TIMERS_MAX, WAIT_MS_MAX, WAIT_MS_MIN};
use crate::words::prompt_text::PromptText;
use crate::words::time::Timestamp;

pub(super) fn set(
    state: &AgentState,
    duration_ms: u64,
    interval_ms: Option<u64>,
    summary: Option<&str>,
    turn: Option<&Turn>,
) -> Result<(Vec<Event>, TimerId), Rejection> {
    let outside = |field, least| {
        let reason = format!("is not between {least} and {WAIT_MS_MAX}");
        Err(Rejection::Invalid { field, reason })
    };
    if !(WAIT_MS_MIN..=WAIT_MS_MAX).contains(&duration_ms) {
        return outside("duration_ms", WAIT_MS_MIN);
    }
    if interval_ms.is_some_and(|interval| !(TIMER_INTERVAL_MS_MIN..=WAIT_MS_MAX).contains(&interval)) {
        return outside("interval_ms", TIMER_INTERVAL_MS_MIN);
    }
    if summary.is_some_and(|summary| summary.len() > NOTE_BYTES_MAX) {
        return Err(over("summary", NOTE_BYTES_MAX));
    }
    if state.waiting.timers.len() >= TIMERS_MAX {
        return Err(Rejection::TooMany { what: "timers", max: TIMERS_MAX });
    }
    let (timer, summary) = (state.waiting.last_timer.next(), summary.map(str::to_owned));
    let work = turn.and_then(|turn| turn.work).filter(|work| state.works.open.contains_key(work));
    let derived_from = turn.map(|turn| turn.derived.clone());
    Ok((vec![TimerCreated { timer, duration_ms, interval_ms, summary, work, derived_from }.into()], timer))
}

pub(super) fn cancel(state: &AgentState, timer: TimerId, reason: &str) -> Result<Vec<Event>, Rejection> {
    let (what, id) = ("timer", timer.to_string());
    match state.waiting.timers.get(&timer) {
        Some(_) => Ok(vec![TimerCancelled { timer, reason: reason.to_owned() }.into()]),
        None if timer.0 > 0 && timer <= state.waiting.last_timer => Err(Rejection::Ended { what, id }),
        None => Err(Rejection::Unknown { what, id }),
    }
}

/// While a tick of the timer waits the next one is not owed, so that ticks do not pile up.
pub(super) fn fire(state: &AgentState, id: TimerId, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    admits(state)?;
    let timer = state.waiting.timers.get(&id).filter(|timer| timer.due <= at).ok_or(Rejection::NothingToDo)?;
    if state.queue.about(&Subject::Timer(id)).next().is_some() {
        return Err(Rejection::NothingToDo);
    }
    let work = timer.work.filter(|work| state.works.open.contains_key(work)).map(Subject::Work);
    let about = [Subject::Timer(id)].into_iter().chain(work);
    let (kind, origin, derived) = (MessageKind::TimerTick, Origin::Timer { timer_id: id }, timer.derived.clone());
    let tick = match &timer.summary {
        Some(text) => OwnMessage::passing_on(kind, origin, Content::from(text.as_str()), derived),
        None => OwnMessage::new(kind, origin, PromptText::new().own(id).own(" is due."), derived),
    };
    let (message, tick) = tick.about(about).enqueued(state);
    Ok(vec![TimerFired { timer: id, message }.into(), tick])
}
