//! The queue plane: taking messages in.

use super::{Decision, Rejection, policy};
use crate::events::Event;
use crate::events::agent::Answer;
use crate::events::queue::{
    Admission, BodyType, Lane, MessageEnqueued, MessageKind, MessageOutcome, MessageSettled, Origin, Subject, Surface,
    Trust,
};
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::words::content::Content;
use crate::words::id::{MessageId, WorkId};
use crate::words::limit::{
    MESSAGE_BODY_BYTES_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, QUEUE_BODY_BYTES_MAX, QUEUE_MESSAGES_MAX,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueCommand {
    Enqueue(NewMessage),
    Drop { message: MessageId, reason: String },
}

/// A message as a surface hands it in. Trust follows from the origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMessage {
    pub kind: MessageKind,
    /// The lane the sender chose, where it may.
    pub lane: Option<Lane>,
    pub origin: Origin,
    pub surface: Surface,
    pub admission: Admission,
    pub body_type: BodyType,
    pub body: Content,
    pub metadata: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
    pub provided_trust: Option<Trust>,
}

pub(super) fn decide(state: &AgentState, command: &QueueCommand) -> Result<Decision, Rejection> {
    match command {
        QueueCommand::Enqueue(new) => enqueue(state, new),
        QueueCommand::Drop { message, reason } => put_aside(state, *message, reason),
    }
}

/// Outside ingress: bounded, and refused by a stopped agent.
fn enqueue(state: &AgentState, new: &NewMessage) -> Result<Decision, Rejection> {
    admits(state)?;
    if !policy::allows(&new.origin, new.kind) {
        return Err(Rejection::KindOriginMismatch { kind: new.kind.name() });
    }
    if let Some(lane) = new.lane.filter(|lane| !policy::may_name(&new.origin, *lane)) {
        return Err(Rejection::Invalid { field: "priority", reason: format!("{lane} is the operator's") });
    }
    check_bounds(new)?;
    let waiting = state.queue.waiting.len();
    if waiting >= QUEUE_MESSAGES_MAX || state.queue.body_bytes + new.body.bytes() > QUEUE_BODY_BYTES_MAX {
        return Err(Rejection::QueueFull { waiting });
    }
    let message = state.queue.last.next();
    let event = MessageEnqueued {
        message,
        lane: new.lane.unwrap_or_else(|| policy::lane(new.kind)),
        kind: new.kind,
        trust: policy::trust(&new.origin),
        origin: new.origin.clone(),
        surface: new.surface,
        admission: new.admission,
        body_type: new.body_type,
        body: new.body.clone(),
        about: Vec::new(),
        metadata: new.metadata.clone(),
        correlation_id: new.correlation_id.clone(),
        causation_id: new.causation_id.clone(),
        provided_trust: new.provided_trust,
    };
    Ok(Decision::answering(vec![event.into()], Answer::Message(message)))
}

/// A message of the agent to itself.
pub(super) fn enqueue_to_self(
    _state: &AgentState,
    _text: &Content,
    _work: Option<WorkId>,
) -> Result<(Event, MessageId), Rejection> {
    Err(Rejection::NothingToDo)
}

fn check_bounds(new: &NewMessage) -> Result<(), Rejection> {
    if new.body.bytes() > MESSAGE_BODY_BYTES_MAX as u64 {
        return Err(over("body", MESSAGE_BODY_BYTES_MAX));
    }
    if new.metadata.as_ref().is_some_and(|text| text.len() > METADATA_BYTES_MAX) {
        return Err(over("metadata", METADATA_BYTES_MAX));
    }
    let (first, second) = names(&new.origin);
    let named = [
        ("origin", first),
        ("origin", second),
        ("correlation_id", new.correlation_id.as_deref()),
        ("causation_id", new.causation_id.as_deref()),
    ];
    match named.iter().find(|(_, name)| name.is_some_and(|name| name.len() > NAME_BYTES_MAX)) {
        Some((field, _)) => Err(over(field, NAME_BYTES_MAX)),
        None => Ok(()),
    }
}

pub(super) fn over(field: &'static str, bytes_max: usize) -> Rejection {
    Rejection::Invalid { field, reason: format!("is longer than {bytes_max} bytes") }
}

/// The texts of an origin that its sender chose.
fn names(origin: &Origin) -> (Option<&str>, Option<&str>) {
    match origin {
        Origin::Operator { actor_id } => (actor_id.as_deref(), None),
        Origin::Channel { channel_id, sender_id } => (Some(channel_id), sender_id.as_deref()),
        Origin::Webhook { source, event_type } => (Some(source), event_type.as_deref()),
        Origin::Callback { descriptor_id, source } => (Some(descriptor_id), source.as_deref()),
        Origin::System { subsystem } => (Some(subsystem), None),
        Origin::Timer { .. } | Origin::Task { .. } => (None, None),
    }
}

/// Whether the agent takes messages in.
pub(super) fn admits(state: &AgentState) -> Result<(), Rejection> {
    match state.agent.lifecycle {
        Lifecycle::Active | Lifecycle::Paused => Ok(()),
        Lifecycle::Stopped => Err(Rejection::AgentStopped),
        Lifecycle::Archiving | Lifecycle::Archived => Err(Rejection::AgentArchived),
        Lifecycle::Unborn => Err(Rejection::UnknownAgent),
    }
}

fn put_aside(state: &AgentState, message: MessageId, reason: &str) -> Result<Decision, Rejection> {
    if !state.queue.waiting.contains_key(&message) {
        return Err(Rejection::MessageNotWaiting);
    }
    if reason.len() > NAME_BYTES_MAX {
        return Err(over("reason", NAME_BYTES_MAX));
    }
    let outcome = MessageOutcome::Dropped(reason.to_owned());
    Ok(Decision::of(vec![MessageSettled { message, outcome }.into()]))
}

/// A message that the runtime itself owes: always taken, bounded by the record that owes it.
pub(super) fn owed(
    state: &AgentState,
    kind: MessageKind,
    origin: Origin,
    surface: Surface,
    body: Content,
    about: Vec<Subject>,
) -> (MessageId, Event) {
    debug_assert!(policy::allows(&origin, kind), "the matrix binds the runtime too");
    let message = state.queue.last.next();
    let event = MessageEnqueued {
        message,
        lane: policy::lane(kind),
        kind,
        trust: policy::trust(&origin),
        origin,
        surface,
        admission: Admission::RuntimeOwned,
        body_type: BodyType::Text,
        body,
        about,
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
    };
    (message, event.into())
}
