//! Records: briefs, notices, messages, tasks and transcript entries.

use super::event::{content, message_body};
use super::message::{derived_from, origin};
use crate::events::call::ExecRequest;
use crate::events::operator::{BriefCreated, NotificationRequested};
use crate::events::queue::{MessageEnqueued, MessageOutcome};
use crate::events::task::{Caller, Exit, TaskEvent, TaskExited, TaskStatus, WorkspaceMode};
use crate::events::turn::{Entry, TurnEntry};
use crate::events::{Envelope, Event, OperatorEvent, TurnEvent};
use crate::fold::task::{Job, Task};
use crate::tools::view;
use crate::words::id::{AgentId, BriefId, EventSeq, RunId, TaskId, WorkId};
use crate::words::limit::NOTICE_SUMMARY_CHARS_MAX;
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
        "derived_from": derived_from(message.derived_from.as_ref()),
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

/// A task that has not ended.
pub fn open_task(agent: &AgentId, id: TaskId, task: &Task) -> Value {
    let updated_at = task.attempt.map_or(task.requested_at, |attempt| attempt.at);
    let detail = match &task.job {
        Job::Command(request) => command_detail(request, task.caller.as_ref()),
        Job::Child(child) => child_detail(&child.agent, child.mode),
    };
    let mut shown = task_view(agent, id, task.kind(), task.status(), (task.requested_at, updated_at));
    shown["summary"] = json!(task.summary);
    shown["work_item_id"] = json!(task.work);
    shown["stopping"] = json!(task.stopping);
    shown["inputs_waiting"] = json!(task.inputs.len());
    shown["detail"] = detail;
    if let Some(child) = task.child() {
        shown["detail"]["child_lifecycle"] = json!(child.lifecycle);
    }
    shown
}

/// A task that has ended, told by its first and its last event.
pub fn ended_task(agent: &AgentId, first: &Envelope, last: &Envelope) -> Option<Value> {
    let Event::Task(begun) = &first.event else { return None };
    let Event::Task(TaskEvent::Exited(exited)) = &last.event else { return None };
    let (kind, summary, work, detail) = begun_as(begun)?;
    let mut shown = task_view(agent, exited.task, kind, exited.status, (first.at, last.at));
    shown["summary"] = json!(summary);
    shown["work_item_id"] = json!(work);
    shown["detail"] = detail;
    end(&mut shown["detail"], exited);
    Some(shown)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event begins a task")]
fn begun_as(begun: &TaskEvent) -> Option<(&'static str, &str, Option<WorkId>, Value)> {
    match begun {
        TaskEvent::CreateRequested(task) => {
            let detail = command_detail(&task.request, task.caller.as_ref());
            Some(("command_task", &task.summary, task.work, detail))
        }
        TaskEvent::ChildSpawned(task) => {
            Some(("child_agent_task", &task.summary, task.work, child_detail(&task.child, task.mode)))
        }
        _ => None,
    }
}

fn task_view(
    agent: &AgentId,
    id: TaskId,
    kind: &str,
    status: TaskStatus,
    (created_at, updated_at): (Timestamp, Timestamp),
) -> Value {
    json!({
        "id": id,
        "agent_id": agent,
        "kind": kind,
        "status": status,
        "created_at": created_at,
        "updated_at": updated_at,
    })
}

fn command_detail(request: &ExecRequest, caller: Option<&Caller>) -> Value {
    json!({
        "cmd": request.spec.cmd,
        "workdir": request.spec.workdir,
        "accepts_input": request.spec.accepts_input,
        "run_id": caller.map(|caller| caller.run),
        "exit_code": null,
        "signal": null,
        "failure": null,
        "output": null,
        "output_bytes": null,
        "output_cut": null,
    })
}

fn child_detail(child: &AgentId, mode: WorkspaceMode) -> Value {
    json!({"child_agent_id": child, "workspace_mode": mode, "accepts_input": true, "failure": null, "output": null})
}

fn end(detail: &mut Value, exited: &TaskExited) {
    match &exited.exit {
        Exit::Code(code) => detail["exit_code"] = json!(code),
        Exit::Signal(signal) => detail["signal"] = json!(signal),
        Exit::NotStarted(reason) => detail["failure"] = json!(reason),
        Exit::Lost => detail["failure"] = json!("lost: it may or may not have taken effect"),
        Exit::Reported(_) => {}
        Exit::LimitExceeded { limit, max } => detail["failure"] = json!(limit.exceeded(*max)),
    }
    detail["output"] = content(&exited.output.shown);
    detail["output_bytes"] = json!(exited.output.bytes);
    detail["output_cut"] = json!(exited.output.cut);
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

/// A notice that has a record of its own.
pub fn told_notice(agent: &AgentId, first: &Envelope, _last: &Envelope) -> Option<Value> {
    let Event::Operator(OperatorEvent::NotificationRequested(requested)) = &first.event else { return None };
    Some(notice(agent, requested, (first.seq, first.at)))
}

/// Something that the agent wanted known. A private one tells its supervisor, whose id its own begins with.
pub fn notice(agent: &AgentId, requested: &NotificationRequested, (seq, at): (EventSeq, Timestamp)) -> Value {
    let parent = agent.has_child_form().then(|| agent.as_str().rsplit_once('.')).flatten().map(|(parent, _)| parent);
    let text = requested.text.excerpt();
    json!({
        "notification_id": requested.notice,
        "agent_id": agent,
        "requested_by_agent_id": agent,
        "target_operator_boundary": if parent.is_some() { "parent_supervisor" } else { "primary_operator" },
        "target_parent_agent_id": parent,
        "message": text,
        "text": view::text(&requested.text),
        "summary": text.chars().take(NOTICE_SUMMARY_CHARS_MAX).collect::<String>(),
        "work_item_id": requested.work,
        "created_at": at,
        "event_seq": seq,
    })
}
