//! The waiting plane: wakes.

use super::queue::{over, owed};
use super::{Decision, Rejection};
use crate::events::agent::{Answer, WakeDisposition};
use crate::events::queue::{MessageKind, Origin, Surface};
use crate::events::waiting::WakeRequested;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::queue::wake_mark;
use crate::words::content::Content;
use crate::words::id::MessageId;
use crate::words::limit::{WAKE_REASONS_MAX, WAKE_TEXT_BYTES_MAX};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingCommand {
    Wake(NewWake),
}

/// A request for the agent's attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWake {
    pub reason: String,
    pub source: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
}

pub(super) fn decide(state: &AgentState, command: &WaitingCommand) -> Result<Decision, Rejection> {
    let WaitingCommand::Wake(wake) = command;
    if state.agent.lifecycle == Lifecycle::Stopped {
        return Err(Rejection::AgentStopped);
    }
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

fn told(
    wake: &NewWake,
    disposition: WakeDisposition,
    message: MessageId,
    mut events: Vec<crate::events::Event>,
) -> Decision {
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
