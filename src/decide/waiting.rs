//! The waiting plane: wakes.

use super::call::Called;
use super::queue::{admits, over, owed};
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::agent::{Answer, WakeDisposition};
use crate::events::call::WaitFor;
use crate::events::queue::{BodyType, MessageKind, Origin, Subject, Surface};
use crate::events::waiting::{DeliveryMode, WakeRequested};
use crate::fold::AgentState;
use crate::fold::queue::wake_mark;
use crate::fold::turn::{Calls, Turn};
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{MessageId, RunId, TimerId, TriggerId, WaitId, WorkId};
use crate::words::limit::{WAKE_REASONS_MAX, WAKE_TEXT_BYTES_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingCommand {
    Wake(NewWake),
    CreateTimer {
        duration_ms: u64,
        interval_ms: Option<u64>,
        summary: Option<String>,
    },
    CancelTimer {
        timer: TimerId,
    },
    /// A timer's time has come.
    FireTimer {
        timer: TimerId,
    },
    CancelWait {
        wait: WaitId,
    },
    /// A wait's time has come.
    EndWait {
        wait: WaitId,
    },
    /// The token was drawn by the runtime; it is shown to the caller and kept nowhere.
    CreateTrigger {
        mode: DeliveryMode,
        label: String,
        work: Option<WorkId>,
        token_hash: Hash,
    },
    RevokeTrigger {
        trigger: TriggerId,
    },
    /// Somebody used a capability.
    Callback(NewCallback),
}

/// What came through a capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCallback {
    pub token_hash: Hash,
    /// As the route names it; it must be the capability's.
    pub mode: DeliveryMode,
    pub body_type: BodyType,
    pub body: Content,
}

/// What WaitFor asks for.
pub(super) struct NewWait {
    pub wake: WaitFor,
    pub reason: String,
    pub work: Option<WorkId>,
    pub recheck_after_ms: Option<u64>,
    pub no_fallback_reason: Option<String>,
}

/// A request for the agent's attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWake {
    pub reason: String,
    pub source: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
}

pub(super) fn decide(state: &AgentState, command: &WaitingCommand, _at: Timestamp) -> Result<Decision, Rejection> {
    match command {
        WaitingCommand::Wake(wake) => wake_up(state, wake),
        WaitingCommand::CreateTimer { .. }
        | WaitingCommand::CancelTimer { .. }
        | WaitingCommand::FireTimer { .. }
        | WaitingCommand::CancelWait { .. }
        | WaitingCommand::EndWait { .. }
        | WaitingCommand::CreateTrigger { .. }
        | WaitingCommand::RevokeTrigger { .. }
        | WaitingCommand::Callback(_) => Err(Rejection::NothingToDo),
    }
}

/// Records a wait and ends the turn after the round.
pub(super) fn wait_for(_state: &AgentState, _turn: &Turn, _new: &NewWait) -> Called {
    Err(Rejection::NothingToDo)
}

pub(super) fn set_timer(
    _state: &AgentState,
    _duration_ms: u64,
    _interval_ms: Option<u64>,
    _summary: Option<&str>,
    _work: Option<WorkId>,
) -> Result<(Vec<Event>, TimerId), Rejection> {
    Err(Rejection::NothingToDo)
}

pub(super) fn cancel_timer(_state: &AgentState, _timer: TimerId, _reason: &str) -> Result<Vec<Event>, Rejection> {
    Err(Rejection::NothingToDo)
}

pub(super) fn revoke_trigger(_state: &AgentState, _trigger: TriggerId, _reason: &str) -> Result<Vec<Event>, Rejection> {
    Err(Rejection::NothingToDo)
}

pub(super) fn create_trigger_called(_state: &AgentState, _calls: &Calls, _token_hash: Hash, _file: &str) -> Called {
    Err(Rejection::NothingToDo)
}

/// The triggered waits that a turn takes up as it begins: those that its message names, of its work, of the agent.
pub(super) fn consume(_state: &AgentState, _run: RunId, _about: &[Subject], _work: Option<WorkId>) -> Vec<Event> {
    Vec::new()
}

fn wake_up(state: &AgentState, wake: &NewWake) -> Result<Decision, Rejection> {
    admits(state)?;
    check_bounds(wake)?;
    let Some((message, tick)) = state.queue.wake_tick() else { return Ok(woken(state, wake)) };
    let mark = wake_mark(&wake.reason, wake.source.as_deref());
    if tick.wakes.iter().any(|named| named.mark == mark) {
        return Ok(told(wake, WakeDisposition::Ignored, message, Vec::new()));
    }
    if tick.wakes.len() >= WAKE_REASONS_MAX {
        return Err(Rejection::QueueFull { waiting: tick.wakes.len() });
    }
    Ok(told(wake, WakeDisposition::Coalesced, message, Vec::new()))
}

fn check_bounds(wake: &NewWake) -> Result<(), Rejection> {
    if wake.reason.trim().is_empty() {
        return Err(Rejection::Invalid { field: "reason", reason: "must not be empty".into() });
    }
    let texts = [
        ("reason", Some(&wake.reason)),
        ("source", wake.source.as_ref()),
        ("correlation_id", wake.correlation_id.as_ref()),
        ("causation_id", wake.causation_id.as_ref()),
    ];
    match texts.iter().find(|(_, text)| text.is_some_and(|text| text.len() > WAKE_TEXT_BYTES_MAX)) {
        Some((field, _)) => Err(over(field, WAKE_TEXT_BYTES_MAX)),
        None => Ok(()),
    }
}

/// A tick of its own; later wakes join it for as long as it waits.
fn woken(state: &AgentState, wake: &NewWake) -> Decision {
    let origin = Origin::System { subsystem: "wake".into() };
    let body = Content::from("The agent was woken.");
    let (message, tick) = owed(state, MessageKind::SystemTick, origin, Surface::RuntimeSystem, body, Vec::new());
    told(wake, WakeDisposition::Woken, message, vec![tick])
}

fn told(wake: &NewWake, disposition: WakeDisposition, message: MessageId, mut events: Vec<Event>) -> Decision {
    // A wake that says nothing new leaves no event: repeating it cannot grow the ledger.
    if disposition != WakeDisposition::Ignored {
        let event = WakeRequested {
            reason: wake.reason.clone(),
            source: wake.source.clone(),
            correlation_id: wake.correlation_id.clone(),
            causation_id: wake.causation_id.clone(),
            disposition,
            message,
        };
        events.push(event.into());
    }
    Decision::answering(events, Answer::Woken { disposition, message })
}
