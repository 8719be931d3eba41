//! The queue plane: taking messages in.

use super::agent::supervised_by;
use super::waiting::{self, News};
use super::{Decision, Rejection, policy, webhook};
use crate::events::Event;
use crate::events::agent::{Answer, Visibility};
use crate::events::operator::ReplyRoute;
use crate::events::queue::{
    Admission, Author, BodyType, DerivedFrom, Lane, MessageEnqueued, MessageKind, MessageOutcome, MessageSettled,
    Origin, Subject, Surface, Trust,
};
use crate::events::waiting::WaitTrigger;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::queue::Queued;
use crate::fold::turn::Turn;
use crate::words::content::Content;
use crate::words::id::{AgentId, MessageId, TaskId, WorkId};
use crate::words::limit::{
    DROPS_PER_COMMAND_MAX, MESSAGE_BODY_BYTES_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, QUEUE_BODY_BYTES_MAX,
    QUEUE_BODY_BYTES_RESERVED, QUEUE_MESSAGES_MAX, QUEUE_MESSAGES_RESERVED,
};
use crate::words::prompt_text::PromptText;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "messages are what the command is mostly for")]
pub enum QueueCommand {
    Enqueue(NewMessage),
    Drop {
        message: MessageId,
        reason: String,
    },
    /// The oldest of those that are meant are put aside, as many as one command may.
    DropMany {
        which: Which,
        reason: String,
    },
}

/// Which of the messages that wait are meant: those for which all of it is true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Which {
    /// Of one of these kinds; of any, where none is named.
    pub kinds: Vec<MessageKind>,
    /// Taken in before this time.
    pub before: Option<Timestamp>,
}

/// Who sends the messages that wait, as an operator names them, and the kinds that come from there.
pub const SENDERS: &[(&str, &[MessageKind])] = &[
    ("external", &[MessageKind::WebhookEvent, MessageKind::CallbackEvent, MessageKind::ChannelEvent]),
    ("webhook", &[MessageKind::WebhookEvent]),
    ("callback", &[MessageKind::CallbackEvent]),
    ("channel", &[MessageKind::ChannelEvent]),
    ("operator", &[MessageKind::OperatorPrompt, MessageKind::Control]),
    ("timer", &[MessageKind::TimerTick]),
    ("task", &[MessageKind::TaskStatus, MessageKind::TaskResult]),
    ("system", &[MessageKind::SystemTick, MessageKind::InternalFollowup]),
];

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
    /// Where its answer goes back to.
    pub reply_route: Option<ReplyRoute>,
    /// What it rests on, when an agent sends it; it lowers its trust, and never raises it.
    pub derived_from: Option<DerivedFrom>,
}

pub(super) fn decide(state: &AgentState, command: &QueueCommand) -> Result<Decision, Rejection> {
    match command {
        QueueCommand::Enqueue(new) => enqueue(state, new, None),
        QueueCommand::Drop { message, reason } => put_aside(state, *message, reason),
        QueueCommand::DropMany { which, reason } => put_many_aside(state, which, reason),
    }
}

/// Outside ingress: bounded, and refused by a stopped agent. It ends the waits for such news, and is about their work
/// and the work that it is bound to.
pub(super) fn enqueue(state: &AgentState, new: &NewMessage, work: Option<WorkId>) -> Result<Decision, Rejection> {
    webhook::admits(state, new)?;
    admits(state)?;
    if matches!(new.origin, Origin::Operator { .. } | Origin::Channel { .. } | Origin::Webhook { .. }) {
        not_private(state)?;
    }
    if !policy::allows(&new.origin, new.kind) {
        return Err(Rejection::KindOriginMismatch { kind: new.kind.name() });
    }
    if let Some(lane) = new.lane.filter(|lane| !policy::may_name(&new.origin, *lane)) {
        return Err(Rejection::Invalid { field: "priority", reason: format!("{lane} is the operator's") });
    }
    check_bounds(new)?;
    has_room(state, policy::room(&new.origin), new.body.bytes())?;
    let message = state.queue.last.next();
    let ended = news(new, work).map(|news| waiting::ended_by(state, &news)).unwrap_or_default();
    let about = work.map(Subject::Work).into_iter().chain(waiting::subjects(&ended)).collect();
    let event = MessageEnqueued {
        message,
        lane: new.lane.unwrap_or_else(|| policy::lane(new.kind)),
        kind: new.kind,
        trust: policy::trust(&new.origin, new.derived_from.as_ref()),
        origin: new.origin.clone(),
        surface: new.surface,
        admission: new.admission,
        body_type: new.body_type,
        body: new.body.clone(),
        about,
        metadata: new.metadata.clone(),
        correlation_id: new.correlation_id.clone(),
        causation_id: new.causation_id.clone(),
        provided_trust: new.provided_trust,
        reply_route: new.reply_route.clone(),
        derived_from: new.derived_from.clone(),
        author: Author::Sender,
    };
    let mut events = vec![event.into()];
    events.extend(waiting::triggered(&ended, &WaitTrigger::Message(message)));
    Ok(Decision::answering(events, Answer::Message(message)))
}

/// What of the queue's room a sender may fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// All but what is kept for the operator and the runtime, so that nobody else locks them out.
    Shared,
    Whole,
}

/// Whether a message of so many bytes has its place.
pub(super) fn has_room(state: &AgentState, room: Room, bytes: u64) -> Result<(), Rejection> {
    let (messages, body_bytes) = match room {
        Room::Shared => (QUEUE_MESSAGES_RESERVED, QUEUE_BODY_BYTES_RESERVED),
        Room::Whole => (0, 0),
    };
    let waiting = state.queue.waiting.len();
    let fits =
        waiting < QUEUE_MESSAGES_MAX - messages && state.queue.body_bytes + bytes <= QUEUE_BODY_BYTES_MAX - body_bytes;
    if fits { Ok(()) } else { Err(Rejection::QueueFull { waiting }) }
}

/// What the supervisor of a private child has to say, by the task that the child is to it. The child takes it as a task
/// of its own.
pub(super) fn take_input(
    state: &AgentState,
    task: TaskId,
    from: &AgentId,
    text: &Content,
    derived_from: DerivedFrom,
) -> Result<Vec<Event>, Rejection> {
    supervised_by(state, from)?;
    let input = NewMessage {
        kind: MessageKind::InternalFollowup,
        lane: Some(Lane::Next),
        origin: Origin::Task { task },
        surface: Surface::TaskRejoin,
        admission: Admission::RuntimeOwned,
        body_type: BodyType::Text,
        body: text.clone(),
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        reply_route: None,
        derived_from: Some(derived_from.of(from)),
    };
    Ok(enqueue(state, &input, None)?.own)
}

/// What a message is news of. The supervisor of a private child is its operator.
fn news(new: &NewMessage, work: Option<WorkId>) -> Option<News> {
    match new.origin {
        Origin::Operator { .. } => Some(News::Operator),
        Origin::Task { .. } if new.kind == MessageKind::InternalFollowup => Some(News::Operator),
        Origin::Channel { .. } | Origin::Webhook { .. } | Origin::Callback { .. } => Some(News::External(work)),
        Origin::Timer { .. } | Origin::System { .. } | Origin::Task { .. } => None,
    }
}

/// A message of the agent to itself, about the work it was on.
pub(super) fn enqueue_to_self(
    state: &AgentState,
    turn: &Turn,
    text: &Content,
) -> Result<(Event, MessageId), Rejection> {
    has_room(state, Room::Shared, text.bytes())?;
    let about = turn.work.filter(|work| state.works.open.contains_key(work)).map(Subject::Work);
    let origin = Origin::System { subsystem: "self".into() };
    let (kind, lane) = (MessageKind::InternalFollowup, Lane::Normal);
    let own = OwnMessage::passing_on(kind, origin, text.clone(), turn.derived.clone());
    let (message, event) = own.in_lane(lane).about(about).enqueued(state);
    Ok((event, message))
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

/// A private agent hears its supervisor, and whoever it gave a capability to (semantics 1).
pub(super) fn not_private(state: &AgentState) -> Result<(), Rejection> {
    match state.agent.visibility {
        Visibility::Public => Ok(()),
        Visibility::Private => Err(Rejection::AgentPrivate),
    }
}

fn put_aside(state: &AgentState, message: MessageId, reason: &str) -> Result<Decision, Rejection> {
    if !state.queue.waiting.contains_key(&message) {
        return Err(Rejection::MessageNotWaiting);
    }
    Ok(Decision::of(vec![dropped(message, reason)?]))
}

fn put_many_aside(state: &AgentState, which: &Which, reason: &str) -> Result<Decision, Rejection> {
    let is_meant = |queued: &Queued| {
        (which.kinds.is_empty() || which.kinds.contains(&queued.kind))
            && which.before.is_none_or(|before| queued.at < before)
    };
    let meant: Vec<MessageId> =
        state.queue.waiting.iter().filter(|(_, queued)| is_meant(queued)).map(|(id, _)| *id).collect();
    let first = &meant[..meant.len().min(DROPS_PER_COMMAND_MAX)];
    let events = first.iter().map(|message| dropped(*message, reason)).collect::<Result<Vec<_>, _>>()?;
    let answer = Answer::Dropped { dropped: first.len() as u64, left: (meant.len() - first.len()) as u64 };
    Ok(Decision::answering(events, answer))
}

fn dropped(message: MessageId, reason: &str) -> Result<Event, Rejection> {
    if reason.len() > NAME_BYTES_MAX {
        return Err(over("reason", NAME_BYTES_MAX));
    }
    Ok(MessageSettled { message, outcome: MessageOutcome::Dropped(reason.to_owned()) }.into())
}

/// The first message of an agent that is born.
pub(super) fn opening(origin: Origin, body: Content, derived: DerivedFrom) -> Event {
    let unborn = AgentState::unborn(AgentId::parse("unborn").expect("a valid id"));
    OwnMessage::passing_on(MessageKind::InternalFollowup, origin, body, derived).enqueued(&unborn).1
}

/// A message that the runtime itself owes: always taken, bounded by the record that owes it.
pub(super) struct OwnMessage {
    kind: MessageKind,
    /// Where it is not the usual one of its kind.
    lane: Option<Lane>,
    origin: Origin,
    body: Content,
    author: Author,
    about: Vec<Subject>,
    derived: DerivedFrom,
}

impl OwnMessage {
    /// A message in words of the runtime's own, in which others are quoted.
    pub(super) fn new(kind: MessageKind, origin: Origin, text: PromptText, derived: DerivedFrom) -> Self {
        Self::by(Author::Runtime, kind, origin, text.into_content(), derived)
    }

    /// A message that passes on what somebody else said, word for word.
    pub(super) fn passing_on(kind: MessageKind, origin: Origin, text: Content, derived: DerivedFrom) -> Self {
        Self::by(Author::Sender, kind, origin, text, derived)
    }

    fn by(author: Author, kind: MessageKind, origin: Origin, body: Content, derived: DerivedFrom) -> Self {
        debug_assert!(policy::allows(&origin, kind), "the matrix binds the runtime too");
        Self { kind, lane: None, origin, body, author, about: Vec::new(), derived }
    }

    pub(super) fn in_lane(self, lane: Lane) -> Self {
        Self { lane: Some(lane), ..self }
    }

    pub(super) fn about(self, about: impl IntoIterator<Item = Subject>) -> Self {
        Self { about: about.into_iter().collect(), ..self }
    }

    /// The event, and the id that the message has.
    pub(super) fn enqueued(self, state: &AgentState) -> (MessageId, Event) {
        let Self { kind, lane, origin, body, author, about, derived } = self;
        let message = state.queue.last.next();
        let event = MessageEnqueued {
            message,
            lane: lane.unwrap_or_else(|| policy::lane(kind)),
            kind,
            trust: policy::trust(&origin, Some(&derived)),
            surface: policy::own_surface(&origin),
            origin,
            admission: Admission::RuntimeOwned,
            body_type: BodyType::Text,
            body,
            about,
            metadata: None,
            correlation_id: None,
            causation_id: None,
            provided_trust: None,
            reply_route: None,
            derived_from: Some(derived),
            author,
        };
        (message, event.into())
    }
}
