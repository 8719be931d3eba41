//! Events as clients see them, in two projections (wire, Events).
//!
//! `local_debug` is the raw record. `operator` holds user-facing facts, provenance and bounded summaries: no prompts, no
//! arguments or output of tools, no paths. What it leaves out is listed in `redactions`.

use super::actor::ActorView;
use crate::events::call::CallResult;
use crate::events::codec;
use crate::events::queue::{Admission, BodyType, QueueEvent, Subject, Surface, Trust};
use crate::events::task::Exit;
use crate::events::turn::{Entry, TurnEvent};
use crate::events::work::{WorkEvent, WorkItemCreated, WorkItemUpdated};
use crate::events::{
    AgentEvent, Cause, Envelope, Event, HomeEvent, MemoryEvent, OperatorEvent, TaskEvent, WaitingEvent, WorkspaceEvent,
};
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq, MessageId};
use crate::words::time::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::io::Write;

/// How much of an event a reader is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Projection {
    #[default]
    Operator,
    LocalDebug,
}

impl Projection {
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::LocalDebug => "local_debug",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "operator" => Some(Self::Operator),
            "local_debug" => Some(Self::LocalDebug),
            _ => None,
        }
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    id: Id<'a>,
    event_seq: u64,
    ts: Timestamp,
    agent_id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    schema_version: u8,
    projection: ShownProjection,
    provenance: Provenance<'a>,
    payload: Payload<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_hash: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a Cause>,
}

/// A raw body goes straight into the text; only what is redacted is built as a value first.
#[derive(Serialize)]
#[serde(untagged)]
enum Payload<'a> {
    Raw(&'a Event),
    Redacted(Value),
}

/// `agent:seq`.
struct Id<'a>(&'a AgentId, EventSeq);

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}:{}", self.0, self.1))
    }
}

/// Where a message came from, under the names of the seed, and who asked for a control mutation.
#[derive(Serialize)]
struct Provenance<'a> {
    #[serde(flatten)]
    message: Option<MessageProvenance<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<ActorView<'a>>,
}

#[derive(Serialize)]
struct MessageProvenance<'a> {
    origin: Value,
    trust: Trust,
    authority_class: &'static str,
    delivery_surface: Surface,
    admission_context: Admission,
    message_id: MessageId,
    correlation_id: Option<&'a str>,
    causation_id: Option<&'a str>,
    derived_from: Value,
}

#[derive(Serialize)]
struct ShownProjection {
    name: &'static str,
    raw_payload_included: bool,
    redactions: Vec<String>,
}

/// One event as JSON text.
pub fn render(agent: &AgentId, envelope: &Envelope, previous: Hash, hash: Hash, projection: Projection) -> String {
    serde_json::to_string(&shown(agent, envelope, previous, hash, projection)).expect("plain fields are JSON")
}

/// One event as a frame of a stream, under the cursor by which that stream is resumed.
pub fn write_frame(
    frames: &mut Vec<u8>,
    cursor: u64,
    agent: &AgentId,
    envelope: &Envelope,
    previous: Hash,
    hash: Hash,
    projection: Projection,
) {
    let shown = shown(agent, envelope, previous, hash, projection);
    let written = write!(frames, "id: {cursor}\nevent: {}\ndata: ", shown.kind);
    let written = written.and_then(|()| Ok(serde_json::to_writer(&mut *frames, &shown)?));
    written.expect("plain fields are JSON, and memory takes them");
    frames.extend_from_slice(b"\n\n");
}

fn shown<'a>(
    agent: &'a AgentId,
    envelope: &'a Envelope,
    previous: Hash,
    hash: Hash,
    projection: Projection,
) -> Shown<'a> {
    let raw = projection == Projection::LocalDebug;
    let (payload, redactions) = if raw {
        (Payload::Raw(&envelope.event), Vec::new())
    } else {
        let (payload, redactions) = redact(agent, envelope);
        (Payload::Redacted(payload), redactions)
    };
    Shown {
        id: Id(agent, envelope.seq),
        event_seq: envelope.seq.0,
        ts: envelope.at,
        agent_id: agent.as_str(),
        kind: envelope.event.kind(),
        schema_version: codec::version(&envelope.event),
        projection: ShownProjection { name: projection.name(), raw_payload_included: raw, redactions },
        provenance: Provenance {
            message: message_provenance(&envelope.event),
            actor: envelope.cause.actor().map(|actor| ActorView::of(actor, projection)),
        },
        payload,
        hash: raw.then_some(hash),
        prev_hash: raw.then_some(previous),
        cause: raw.then_some(&envelope.cause),
    }
}

fn json_of<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("plain fields are JSON")
}

fn body(event: &Event) -> Value {
    json_of(event)
}

fn message_provenance(event: &Event) -> Option<MessageProvenance<'_>> {
    let Event::Queue(QueueEvent::Enqueued(message)) = event else { return None };
    Some(MessageProvenance {
        origin: super::message::origin(&message.origin),
        trust: message.trust,
        authority_class: message.trust.authority_class(),
        delivery_surface: message.surface,
        admission_context: message.admission,
        message_id: message.message,
        correlation_id: message.correlation_id.as_deref(),
        causation_id: message.causation_id.as_deref(),
        derived_from: super::message::derived_from(message.derived_from.as_ref()),
    })
}

/// The operator's view of a body, and what it leaves out.
fn redact(agent: &AgentId, envelope: &Envelope) -> (Value, Vec<String>) {
    match &envelope.event {
        Event::Operator(OperatorEvent::BindingUpserted(bound)) => {
            let mut shown = without(&envelope.event, &["terms"]);
            let terms = &bound.terms;
            add(&mut shown, "binding_id", terms.name.clone());
            add(&mut shown, "transport", terms.transport.clone());
            add(&mut shown, "operator_actor_id", terms.operator_actor_id.clone());
            (shown, list(&["terms"]))
        }
        Event::Operator(
            OperatorEvent::BindingRevoked(_)
            | OperatorEvent::DeliverySubmitted(_)
            | OperatorEvent::DeliveryCompleted(_)
            | OperatorEvent::DeliveryFailed(_)
            | OperatorEvent::DeliveryAbandoned(_),
        ) => (body(&envelope.event), Vec::new()),
        Event::Operator(OperatorEvent::BriefCreated(brief)) => {
            // A stored text is told by its beginning; the briefs of the agent have it whole.
            let cut: &[&str] = if brief.text.stored().is_some() { &["text"] } else { &[] };
            (super::record::brief(agent, brief, envelope.at, brief.text.excerpt()), list(cut))
        }
        Event::Queue(QueueEvent::Enqueued(message)) => {
            let mut shown = without(&envelope.event, &["body", "metadata"]);
            add(&mut shown, "body_bytes", message.body.bytes());
            add(&mut shown, "about", message.about.iter().map(subject).collect::<Vec<_>>());
            (shown, list(&["body", "metadata"]))
        }
        Event::Turn(TurnEvent::RoundRequested(round)) => {
            let mut shown = without(&envelope.event, &["added"]);
            add(&mut shown, "added_sections", round.added.len());
            (shown, list(&["added"]))
        }
        Event::Turn(TurnEvent::Entry(entry)) => turn_entry(entry),
        Event::Turn(TurnEvent::RoundAttemptFailed(failed)) => {
            // A provider's message may repeat the prompt.
            let error = &failed.error;
            let mut shown = without(&envelope.event, &["error"]);
            let told = json!({"kind": error.kind, "status": error.status, "retry_after_ms": error.retry_after_ms});
            add(&mut shown, "error", told);
            (shown, list(&["error.message"]))
        }
        Event::Task(TaskEvent::CreateRequested(_)) => {
            (without(&envelope.event, &["request", "summary"]), list(&["request", "summary"]))
        }
        Event::Task(TaskEvent::Exited(exited)) => {
            let mut shown = without(&envelope.event, &["output"]);
            add(&mut shown, "output_bytes", exited.output.bytes);
            match &exited.exit {
                // The reason may name the program or the folder.
                Exit::NotStarted(_) => {
                    add(&mut shown, "exit", "NotStarted");
                    (shown, list(&["output", "exit"]))
                }
                Exit::Code(_) | Exit::Signal(_) | Exit::Lost | Exit::Reported(_) | Exit::LimitExceeded { .. } => {
                    (shown, list(&["output"]))
                }
            }
        }
        Event::Agent(AgentEvent::RequestAnswered(_)) => {
            (without(&envelope.event, &["key", "fingerprint", "speaker"]), list(&["key", "fingerprint", "speaker"]))
        }
        Event::Agent(AgentEvent::Inherited(_)) => hide(&envelope.event, &["view"]),
        Event::Agent(AgentEvent::Reported(_)) => hide(&envelope.event, &["report"]),
        Event::Task(TaskEvent::ChildSpawned(_)) => hide(&envelope.event, &["summary"]),
        Event::Task(TaskEvent::Supervised(_)) => hide(&envelope.event, &["supervisor"]),
        Event::Task(TaskEvent::InputRequested(_)) => hide(&envelope.event, &["text"]),
        Event::Work(event) => work(envelope, event),
        Event::Waiting(WaitingEvent::TriggerCreated(_)) => hide(&envelope.event, &["token_hash"]),
        Event::Waiting(WaitingEvent::WebhookSecretSet(_)) => hide(&envelope.event, &["secret"]),
        // What a timer says and what a wake brings are what the agent is told by them.
        Event::Waiting(WaitingEvent::TimerCreated(_)) => hide(&envelope.event, &["summary"]),
        Event::Waiting(WaitingEvent::WakeRequested(_)) => hide(&envelope.event, &["body"]),
        Event::Workspace(event) => workspace(envelope, event),
        Event::Memory(MemoryEvent::Updated(_)) => hide(&envelope.event, &["text"]),
        Event::Memory(MemoryEvent::EpisodeFinalized(_)) => hide(&envelope.event, &["digest"]),
        Event::Operator(OperatorEvent::NotificationRequested(notice)) => {
            let mut shown = without(&envelope.event, &["text"]);
            add(&mut shown, "text", notice.text.excerpt());
            (shown, list(if notice.text.stored().is_some() { &["text"] } else { &[] }))
        }
        // Settings name paths.
        Event::Home(HomeEvent::SettingsChanged(_)) => hide(&envelope.event, &["settings"]),
        Event::Home(HomeEvent::TokenCreated(_)) => hide(&envelope.event, &["token_hash"]),
        Event::Home(_) | Event::Agent(_) | Event::Queue(_) | Event::Turn(_) | Event::Task(_) | Event::Waiting(_) => {
            (body(&envelope.event), Vec::new())
        }
    }
}

fn turn_entry(entry: &crate::events::turn::TurnEntry) -> (Value, Vec<String>) {
    let run_id = entry.run;
    match &entry.entry {
        Entry::Incoming { message } => {
            (json!({"run": run_id, "kind": "incoming_message", "message": message}), Vec::new())
        }
        Entry::Interjection { message } => {
            (json!({"run": run_id, "kind": "interjection", "message": message}), Vec::new())
        }
        Entry::Assistant { round, attempt, model, text, calls, stop, usage, answer: _ } => {
            let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
            let shown = json!({
                "run": run_id, "kind": "assistant_round", "round": round, "attempt": attempt, "model": model,
                "tools": tools, "text_bytes": text.bytes(), "stop_reason": stop, "usage": usage,
            });
            (shown, list(&["text", "answer", "calls"]))
        }
        Entry::ToolResult { round, call, result } => {
            let shown = json!({
                "run": run_id, "kind": "tool_result", "round": round, "call": call, "result": result_name(result),
            });
            (shown, list(&["result"]))
        }
    }
}

fn result_name(result: &CallResult) -> &'static str {
    match result {
        CallResult::Exited { .. } => "exited",
        CallResult::Promoted { .. } => "promoted_to_task",
        CallResult::AlreadyRunning { .. } => "already_running",
        CallResult::TaskOutput { .. } => "task_output",
        CallResult::TaskInput { .. } => "task_input",
        CallResult::TaskStop { .. } => "task_stop",
        CallResult::Slept => "slept",
        CallResult::Waiting { .. } => "waiting",
        CallResult::TimerSet { .. } => "timer_set",
        CallResult::TimerCancelled { .. } => "timer_cancelled",
        CallResult::TriggerCreated { .. } => "trigger_created",
        CallResult::TriggerRevoked { .. } => "trigger_revoked",
        CallResult::WorkWritten { .. } => "work_written",
        CallResult::MemoryWritten { .. } => "memory_written",
        CallResult::Enqueued { .. } => "enqueued",
        CallResult::Notified { .. } => "notified",
        CallResult::Viewed(_) => "viewed",
        CallResult::Patched { .. } => "patched",
        CallResult::InWorkspace { .. } => "in_workspace",
        CallResult::Detached { .. } => "detached",
        CallResult::Spawned { .. } => "spawned",
        CallResult::Interrupted => "interrupted",
        CallResult::Refused(_) => "refused",
    }
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Task(id) => id.to_string(),
        Subject::Work(id) => id.to_string(),
        Subject::Wait(id) => id.to_string(),
        Subject::Timer(id) => id.to_string(),
        Subject::Trigger(id) => id.to_string(),
    }
}

/// Objectives and reports are the operator's to read; plans and notes of the model are not.
fn work(envelope: &Envelope, event: &WorkEvent) -> (Value, Vec<String>) {
    match event {
        WorkEvent::Created(WorkItemCreated { change, .. }) | WorkEvent::Updated(WorkItemUpdated { change, .. }) => {
            let mut shown = without(&envelope.event, &["change"]);
            add(&mut shown, "objective", change.objective.clone());
            add(&mut shown, "plan_status", json_of(&change.plan_status));
            add(&mut shown, "todos", change.todos.as_ref().map(Vec::len));
            (shown, list(&["change"]))
        }
        WorkEvent::Completed(completed) => {
            let mut shown = without(&envelope.event, &["report"]);
            add(&mut shown, "report", completed.report.excerpt());
            (shown, list(if completed.report.stored().is_some() { &["report"] } else { &[] }))
        }
        WorkEvent::Picked(_) | WorkEvent::Continued(_) | WorkEvent::Held(_) | WorkEvent::Rechecked(_) => {
            (body(&envelope.event), Vec::new())
        }
    }
}

/// Paths stay with those who may see the machine.
fn workspace(envelope: &Envelope, event: &WorkspaceEvent) -> (Value, Vec<String>) {
    let hidden: &[&str] = match event {
        WorkspaceEvent::Attached(_) => &["anchor"],
        WorkspaceEvent::Entered(_) => &["execution_root", "cwd"],
        WorkspaceEvent::WorktreeCreated(_) | WorkspaceEvent::WorktreeRemoved(_) => &["worktree"],
        WorkspaceEvent::WorktreeRetained(_) => &["worktree", "summary"],
        WorkspaceEvent::WorktreeLeft(_) => &["worktree", "reason"],
        WorkspaceEvent::GuidanceRead(_) => &["content"],
        WorkspaceEvent::SkillInstalled(_) => &["folder"],
        WorkspaceEvent::Exited(_) | WorkspaceEvent::Detached(_) | WorkspaceEvent::SkillUninstalled(_) => &[],
    };
    hide(&envelope.event, hidden)
}

/// An event without some of its members.
fn hide(event: &Event, names: &[&str]) -> (Value, Vec<String>) {
    (without(event, names), list(names))
}

fn without(event: &Event, names: &[&str]) -> Value {
    let Value::Object(mut members) = body(event) else { return Value::Object(Map::new()) };
    for name in names {
        members.remove(*name);
    }
    Value::Object(members)
}

fn add(value: &mut Value, name: &str, member: impl Into<Value>) {
    if let Value::Object(members) = value {
        members.insert(name.into(), member.into());
    }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A body as a client reads it (control-plane seed, MessageBody). `text` is the whole of it.
pub fn message_body(kind: BodyType, text: &str) -> Value {
    match kind {
        BodyType::Text => json!({"type": "text", "text": text}),
        BodyType::Json => json!({"type": "json", "value": serde_json::from_str::<Value>(text).unwrap_or(Value::Null)}),
        BodyType::Brief => {
            let mut value = serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
            add(&mut value, "type", "brief");
            value
        }
    }
}

/// How a content is told of where its text is not shown.
pub fn content(content: &Content) -> Value {
    json!({"bytes": content.bytes(), "excerpt": content.excerpt(), "hash": content.stored()})
}
