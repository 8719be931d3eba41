//! Messages in and out (control-plane seed, Enqueue and Message shapes).

use crate::decide::queue::{NewMessage, QueueCommand, SENDERS, Which};
use crate::decide::waiting::NewWake;
use crate::events::queue::{Admission, BodyType, DerivedFrom, Lane, MessageKind, Origin, Surface, Trust};
use crate::words::content::{Blob, Content};
use crate::words::id::TokenName;
use crate::words::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// A refusal of a body, before the core is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Well-formed, and not allowed to this caller.
    #[error("{0}")]
    Forbidden(String),
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
}

/// `POST /agents/:id/enqueue`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnqueueBody {
    kind: Option<String>,
    priority: Option<String>,
    trust: Option<String>,
    /// Ignored: authority follows from trust.
    #[serde(rename = "authority_class")]
    _authority_class: Option<Value>,
    body: Option<MessageBody>,
    text: Option<String>,
    json: Option<Value>,
    metadata: Option<Value>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    origin: Option<PublicOrigin>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessageBody {
    Text { text: String },
    Json { value: Value },
    Brief { title: Option<String>, text: String, attachments: Option<Value> },
}

/// The origins of the seed. Only two of them are a public caller's to name.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PublicOrigin {
    Operator {},
    Channel { channel_id: String, sender_id: Option<String> },
    Webhook { source: String, event_type: Option<String> },
    Callback {},
    Timer {},
    System {},
    Task {},
}

/// `POST /control/agents/:id/prompt`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptBody {
    pub text: String,
}

/// `POST /control/agents/:id/messages/drop`: all that wait, where neither sender nor time is named.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DropManyBody {
    from: Option<String>,
    before: Option<Timestamp>,
    reason: Option<String>,
    trust: Option<String>,
}

/// `POST /control/agents/:id/wake`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeBody {
    reason: String,
    source: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
}

impl EnqueueBody {
    /// The message of a public caller: it chooses neither trust, nor the highest lane, nor a runtime's kind.
    pub fn message(self) -> Result<(NewMessage, Option<Blob>), BodyError> {
        let kind = parse("kind", self.kind.as_deref(), MessageKind::WebhookEvent, MessageKind::from_name)?;
        let lane = parse("priority", self.priority.as_deref(), Lane::Normal, lane)?;
        let (origin, its_kind) = public_origin(self.origin)?;
        if self.trust.is_some() {
            return Err(BodyError::Forbidden("public callers may not set trust".into()));
        }
        if lane == Lane::Interject {
            return Err(BodyError::Forbidden("public callers may not use the interject priority".into()));
        }
        if !matches!(kind, MessageKind::WebhookEvent | MessageKind::ChannelEvent) {
            return Err(BodyError::Forbidden(format!("public callers may not send {kind}")));
        }
        if kind != its_kind {
            return Err(BodyError::Forbidden("message kind does not match origin".into()));
        }
        let (body_type, text) = body(self.body, self.text, self.json);
        let (body, blob) = Content::new(text);
        let new = NewMessage {
            kind,
            lane: Some(lane),
            origin,
            surface: Surface::HttpPublicEnqueue,
            admission: Admission::PublicUnauthenticated,
            body_type,
            body,
            metadata: self.metadata.filter(|value| !value.is_null()).map(|value| value.to_string()),
            correlation_id: self.correlation_id,
            causation_id: self.causation_id,
            provided_trust: None,
            reply_route: None,
            derived_from: None,
        };
        Ok((new, blob))
    }
}

impl PromptBody {
    /// An operator's prompt. The actor is the token's name, by which the agent is told who speaks.
    pub fn message(self, actor: &TokenName, surface: Surface, admission: Admission) -> (NewMessage, Option<Blob>) {
        let (body, blob) = Content::new(self.text);
        let new = NewMessage {
            kind: MessageKind::OperatorPrompt,
            lane: None,
            origin: Origin::Operator { actor_id: Some(actor.to_string()) },
            surface,
            admission,
            body_type: BodyType::Text,
            body,
            metadata: None,
            correlation_id: None,
            causation_id: None,
            provided_trust: None,
            reply_route: None,
            derived_from: None,
        };
        (new, blob)
    }
}

/// Why a message is put aside, if nobody says.
pub const DROPPED_BY_OPERATOR: &str = "dropped_by_operator";

impl DropManyBody {
    pub fn command(self) -> Result<QueueCommand, BodyError> {
        let kinds = match &self.from {
            None => Vec::new(),
            Some(name) => kinds_from(name)?.to_vec(),
        };
        let reason = self.reason.unwrap_or_else(|| DROPPED_BY_OPERATOR.into());
        Ok(QueueCommand::DropMany { which: Which { kinds, before: self.before }, reason })
    }
}

/// The kinds of messages that come from a sender of that name.
fn kinds_from(name: &str) -> Result<&'static [MessageKind], BodyError> {
    let sender = SENDERS.iter().find(|(sender, _)| *sender == name);
    sender.map(|(_, kinds)| *kinds).ok_or_else(|| {
        let names: Vec<&str> = SENDERS.iter().map(|(sender, _)| *sender).collect();
        BodyError::Invalid { field: "from", reason: format!("is one of {}, not {name:?}", names.join(", ")) }
    })
}

impl From<WakeBody> for NewWake {
    fn from(body: WakeBody) -> Self {
        let WakeBody { reason, source, correlation_id, causation_id } = body;
        Self { reason, source, correlation_id, causation_id, body: None, derived_from: None }
    }
}

/// `interrupt` is the older name of the highest lane.
fn lane(name: &str) -> Option<Lane> {
    if name == "interrupt" { Some(Lane::Interject) } else { Lane::from_name(name) }
}

fn parse<T>(
    field: &'static str,
    name: Option<&str>,
    default: T,
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<T, BodyError> {
    let Some(name) = name else { return Ok(default) };
    from_name(name).ok_or_else(|| BodyError::Invalid { field, reason: format!("cannot be {name:?}") })
}

fn public_origin(origin: Option<PublicOrigin>) -> Result<(Origin, MessageKind), BodyError> {
    let denied = |name: &str| Err(BodyError::Forbidden(format!("public callers may not be of the {name} origin")));
    match origin {
        None => Ok((Origin::Webhook { source: "http".into(), event_type: None }, MessageKind::WebhookEvent)),
        Some(PublicOrigin::Webhook { source, event_type }) => {
            Ok((Origin::Webhook { source, event_type }, MessageKind::WebhookEvent))
        }
        Some(PublicOrigin::Channel { channel_id, sender_id }) => {
            Ok((Origin::Channel { channel_id, sender_id }, MessageKind::ChannelEvent))
        }
        Some(PublicOrigin::Operator {}) => denied("operator"),
        Some(PublicOrigin::Callback {}) => denied("callback"),
        Some(PublicOrigin::Timer {}) => denied("timer"),
        Some(PublicOrigin::System {}) => denied("system"),
        Some(PublicOrigin::Task {}) => denied("task"),
    }
}

/// `body` wins over `text`, and `text` over `json`.
fn body(body: Option<MessageBody>, text: Option<String>, json: Option<Value>) -> (BodyType, String) {
    match (body, text, json) {
        (Some(MessageBody::Text { text }), _, _) | (None, Some(text), _) => (BodyType::Text, text),
        (Some(MessageBody::Json { value }), _, _) | (None, None, Some(value)) => (BodyType::Json, value.to_string()),
        (Some(MessageBody::Brief { title, text, attachments }), _, _) => {
            (BodyType::Brief, json!({"title": title, "text": text, "attachments": attachments}).to_string())
        }
        (None, None, None) => (BodyType::Text, String::new()),
    }
}

/// An origin under the names of the seed.
pub fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Operator { actor_id } => json!({"kind": "operator", "actor_id": actor_id}),
        Origin::Channel { channel_id, sender_id } => {
            json!({"kind": "channel", "channel_id": channel_id, "sender_id": sender_id})
        }
        Origin::Webhook { source, event_type } => {
            json!({"kind": "webhook", "source": source, "event_type": event_type})
        }
        Origin::Callback { descriptor_id, source } => {
            json!({"kind": "callback", "descriptor_id": descriptor_id, "source": source})
        }
        Origin::Timer { timer_id } => json!({"kind": "timer", "timer_id": timer_id}),
        Origin::System { subsystem } => json!({"kind": "system", "subsystem": subsystem}),
        Origin::Task { task } => json!({"kind": "task", "task_id": task}),
    }
}

/// The body of a control route. It may claim a trust, which is recorded and elevates nothing.
pub trait ControlBody {
    fn trust(&self) -> Option<&str> {
        None
    }
}

/// Bodies with a member `trust`.
macro_rules! says_trust {
    ($($body:ty),+) => {$(
        impl $crate::wire::message::ControlBody for $body {
            fn trust(&self) -> Option<&str> {
                self.trust.as_deref()
            }
        }
    )+};
}
pub(crate) use says_trust;

says_trust!(DropManyBody);
impl ControlBody for PromptBody {}
impl ControlBody for WakeBody {}

/// What a message rests on that an agent or the runtime made.
pub fn derived_from(from: Option<&DerivedFrom>) -> Value {
    from.map_or(Value::Null, |from| json!({"trust": from.trust, "agent_id": from.agent, "message_id": from.message}))
}

/// The trust that a control body names, if it is one. It is recorded and elevates nothing.
pub fn provided_trust(name: Option<&str>) -> Result<Option<Trust>, BodyError> {
    let Some(name) = name else { return Ok(None) };
    let trust = Trust::from_name(name);
    let unknown = || BodyError::Invalid { field: "trust", reason: format!("cannot be {name:?}") };
    trust.map(Some).ok_or_else(unknown)
}
