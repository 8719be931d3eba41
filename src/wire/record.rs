//! Records: briefs, messages, tasks and transcript entries.

use super::event::{content, message_body};
use super::message::origin;
use crate::events::operator::BriefCreated;
use crate::events::queue::{MessageEnqueued, MessageOutcome};
use crate::events::task::{Exit, TaskCreateRequested, TaskExited, TaskStatus};
use crate::events::turn::{Entry, TurnEntry};
use crate::events::{Envelope, Event, TurnEvent};
use crate::words::id::{AgentId, BriefId, RunId};
use crate::words::time::Timestamp;
use serde_json::{Value, json};

/// A brief; `text` is as much of its text as is to be shown.
pub fn brief(agent: &AgentId, brief: &BriefCreated, at: Timestamp, text: &str) -> Value {
    json!({
        "id": brief.brief,
        "agent_id": agent,
        "kind": brief.kind,
        "created_at": at,
        "text": text,
        "text_bytes": brief.text.bytes(),
        "run_id": brief.run,
        "related_message_id": brief.message,
    })
}

/// A message with its outcome, when it has one, and the briefs that answer it.
pub fn message(
    agent: &AgentId,
    message: &MessageEnqueued,
    at: Timestamp,
    text: &str,
    outcome: Option<&MessageOutcome>,
    run: Option<RunId>,
    briefs: &[BriefId],
) -> Value {
    let (outcome, detail) = outcome.map_or((Value::Null, Value::Null), outcome_of);
    json!({
        "id": message.message,
        "agent_id": agent,
        "created_at": at,
        "kind": message.kind,
        "origin": origin(&message.origin),
        "trust": message.trust,
        "authority_class": message.trust.authority_class(),
        "priority": message.lane,
        "body": message_body(message.body_type, text),
        "delivery_surface": message.surface,
        "admission_context": message.admission,
        "metadata": message.metadata.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()),
        "correlation_id": message.correlation_id,
        "causation_id": message.causation_id,
        "outcome": outcome,
        "outcome_detail": detail,
        "run_id": run,
        "brief_ids": briefs,
    })
}

fn outcome_of(outcome: &MessageOutcome) -> (Value, Value) {
    match outcome {
        MessageOutcome::Processed(_) => (json!("processed"), Value::Null),
        MessageOutcome::Aborted(_) => (json!("aborted"), Value::Null),
        MessageOutcome::Interjected(_) => (json!("interjected"), Value::Null),
        MessageOutcome::Coalesced(into) => (json!("coalesced"), json!(into)),
        MessageOutcome::Dropped(reason) => (json!("dropped"), json!(reason)),
    }
}

/// The run that a message's outcome names.
pub fn run_of(outcome: &MessageOutcome) -> Option<RunId> {
    match outcome {
        MessageOutcome::Processed(run) | MessageOutcome::Aborted(run) | MessageOutcome::Interjected(run) => Some(*run),
        MessageOutcome::Coalesced(_) | MessageOutcome::Dropped(_) => None,
    }
}

/// A task; `status` is where it stands.
pub fn task(
    agent: &AgentId,
    task: &TaskCreateRequested,
    (created_at, updated_at): (Timestamp, Timestamp),
    status: TaskStatus,
    exited: Option<&TaskExited>,
) -> Value {
    let (exit_code, signal, failure) = exited.map_or((None, None, None), |exited| match &exited.exit {
        Exit::Code(code) => (Some(*code), None, None),
        Exit::Signal(signal) => (None, Some(*signal), None),
        Exit::NotStarted(reason) => (None, None, Some(reason.as_str())),
        Exit::Reported(_) => (None, None, None),
        Exit::Lost => (None, None, Some("lost: it may or may not have taken effect")),
    });
    json!({
        "id": task.task,
        "agent_id": agent,
        "kind": "command_task",
        "status": status,
        "created_at": created_at,
        "updated_at": updated_at,
        "summary": task.summary,
        "detail": {
            "cmd": task.request.spec.cmd,
            "workdir": task.request.spec.workdir,
            "run_id": task.caller.as_ref().map(|caller| caller.run),
            "exit_code": exit_code,
            "signal": signal,
            "failure": failure,
            "output": exited.map(|exited| content(&exited.output.shown)),
            "output_bytes": exited.map(|exited| exited.output.bytes),
            "output_cut": exited.map(|exited| exited.output.cut),
        },
    })
}

/// A transcript entry; none for an event that is none. `text` is as much of its text as is to be shown.
pub fn transcript_entry(agent: &AgentId, envelope: &Envelope, text: &str) -> Option<Value> {
    let Event::Turn(TurnEvent::Entry(TurnEntry { run, entry })) = &envelope.event else { return None };
    let (kind, round, message, data) = match entry {
        Entry::Incoming { message } => ("incoming_message", None, Some(message), json!({"text": text})),
        Entry::Interjection { message } => ("interjection", None, Some(message), json!({"text": text})),
        Entry::Assistant { round, model, calls, stop, usage, .. } => (
            "assistant_round",
            Some(round),
            None,
            json!({"text": text, "model": model, "calls": calls, "stop_reason": stop, "usage": usage}),
        ),
        Entry::ToolResult { round, call, result } => {
            ("tool_results", Some(round), None, json!({"call": call, "result": result, "text": text}))
        }
    };
    Some(json!({
        "id": format!("{agent}:{}", envelope.seq),
        "agent_id": agent,
        "created_at": envelope.at,
        "event_seq": envelope.seq,
        "run_id": run,
        "kind": kind,
        "round": round,
        "related_message_id": message,
        "data": data,
    }))
}
