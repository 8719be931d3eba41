//! External triggers: capabilities by which the outside world reaches an agent.
//!
//! **Invariant:** only the hash of a token is known here.

use super::call::Called;
use super::queue::{NewMessage, Room, admits, enqueue, over};
use super::waiting::{NewWake, wake_up};
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::agent::{Answer, WakeDisposition};
use crate::events::call::{Action, CallResult};
use crate::events::queue::{Admission, BodyType, DerivedFrom, MessageKind, Origin, Surface, Trust};
use crate::events::waiting::{CallbackDelivered, DeliveryMode, TriggerCreated, TriggerRevoked};
use crate::fold::AgentState;
use crate::fold::turn::Calls;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{TriggerId, WorkId};
use crate::words::limit::{NAME_BYTES_MAX, TRIGGERS_MAX};
use serde::{Deserialize, Serialize};

/// What came through a capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCallback {
    pub token_hash: Hash,
    /// As the route names it; it must be the capability's.
    pub mode: DeliveryMode,
    pub body_type: BodyType,
    pub body: Content,
}

pub(super) fn create(
    state: &AgentState,
    mode: DeliveryMode,
    label: &str,
    work: Option<WorkId>,
    token_hash: Hash,
) -> Result<(Event, TriggerId), Rejection> {
    if label.trim().is_empty() {
        return Err(Rejection::Invalid { field: "label", reason: "must not be empty".into() });
    }
    if label.len() > NAME_BYTES_MAX {
        return Err(over("label", NAME_BYTES_MAX));
    }
    if let Some(work) = work.filter(|work| !state.works.open.contains_key(work)) {
        let reason = format!("names {work}, which is not open");
        return Err(Rejection::Invalid { field: "work_item_id", reason });
    }
    if state.waiting.triggers.len() >= TRIGGERS_MAX {
        return Err(Rejection::TooMany { what: "external triggers", max: TRIGGERS_MAX });
    }
    if state.waiting.triggers.values().any(|other| other.token_hash == token_hash) {
        return Err(Rejection::Invalid { field: "token", reason: "was drawn before".into() });
    }
    let trigger = state.waiting.last_trigger.next();
    Ok((TriggerCreated { trigger, mode, token_hash, label: label.to_owned(), work }.into(), trigger))
}

/// Records the capability that the runtime drew for the call that is next.
pub(super) fn create_called(state: &AgentState, calls: &Calls, token_hash: Hash, file: &str) -> Called {
    let Some(Action::CreateTrigger { mode, label, work }) = calls.next().map(|call| &call.action) else {
        return Err(Rejection::StaleAttempt);
    };
    let (event, trigger) = create(state, *mode, label, *work, token_hash)?;
    Ok((vec![event], CallResult::TriggerCreated { trigger, file: file.to_owned() }))
}

pub(super) fn revoke(state: &AgentState, trigger: TriggerId, reason: &str) -> Result<Vec<Event>, Rejection> {
    let (what, id) = ("external trigger", trigger.to_string());
    match state.waiting.triggers.get(&trigger) {
        Some(_) => Ok(vec![TriggerRevoked { trigger, reason: reason.to_owned() }.into()]),
        None if trigger.0 > 0 && trigger <= state.waiting.last_trigger => Err(Rejection::Ended { what, id }),
        None => Err(Rejection::Unknown { what, id }),
    }
}

/// Takes in what came. Whoever does not hold the capability learns nothing.
pub(super) fn deliver(state: &AgentState, callback: &NewCallback) -> Result<Decision, Rejection> {
    let held = state.waiting.triggers.iter().find(|(_, trigger)| trigger.token_hash == callback.token_hash);
    let (id, trigger) = held.ok_or(Rejection::NoCapability)?;
    if trigger.mode != callback.mode {
        return Err(Rejection::NoCapability);
    }
    admits(state)?;
    let work = trigger.work.filter(|work| state.works.open.contains_key(work));
    let mut decision = match callback.mode {
        DeliveryMode::Wake => wake_up(state, &wake(*id, &trigger.label, callback), work, Room::Shared)?,
        DeliveryMode::Enqueue => enqueue(state, &message(*id, &trigger.label, callback), work)?,
    };
    let message = match &decision.answer {
        Some(Answer::Woken { disposition: WakeDisposition::Ignored, .. }) => return Ok(decision),
        Some(Answer::Message(message) | Answer::Woken { message, .. }) => *message,
        Some(_) | None => return Err(Rejection::NothingToDo),
    };
    decision.own.push(CallbackDelivered { trigger: *id, message }.into());
    Ok(decision)
}

/// A hint, with what came along.
fn wake(id: TriggerId, label: &str, callback: &NewCallback) -> NewWake {
    let body = Some(&callback.body).filter(|body| body.bytes() > 0).cloned();
    NewWake {
        reason: label.to_owned(),
        source: Some(id.to_string()),
        correlation_id: None,
        causation_id: None,
        body,
        derived_from: Some(DerivedFrom::directly(Trust::TrustedIntegration)),
    }
}

fn message(id: TriggerId, label: &str, callback: &NewCallback) -> NewMessage {
    NewMessage {
        kind: MessageKind::CallbackEvent,
        lane: None,
        origin: Origin::Callback { descriptor_id: id.to_string(), source: Some(label.to_owned()) },
        surface: Surface::HttpCallbackEnqueue,
        admission: Admission::ExternalTriggerCapability,
        body_type: callback.body_type,
        body: callback.body.clone(),
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        reply_route: None,
        derived_from: None,
    }
}
