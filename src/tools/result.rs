//! What a tool call came to, as the model reads it: one envelope for every tool.

use crate::events::call::{CallError, CallResult, PatchedFile, Shown};
use crate::events::task::{Exit, TaskStatus};
use crate::events::workspace::WorkspaceName;
use crate::words::id::TaskId;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Fields follow each other as they stand here, so that the same result has the same bytes.
#[derive(Serialize)]
struct Envelope<'a, R> {
    tool_name: &'a str,
    status: &'static str,
    summary_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorResult<'a>>,
}

#[derive(Serialize)]
struct ErrorResult<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    retryable: bool,
}

#[derive(Serialize)]
struct Completed<'a> {
    disposition: &'static str,
    task_id: String,
    #[serde(flatten)]
    end: End<'a>,
    duration_ms: u64,
    #[serde(flatten)]
    output: Output<'a>,
}

#[derive(Serialize)]
struct Handed<'a> {
    disposition: &'static str,
    task_handle: Handle<'a>,
}

#[derive(Serialize)]
struct Handle<'a> {
    task_id: String,
    task_kind: &'static str,
    status: TaskStatusName,
    initial_output: Option<&'a str>,
}

type TaskStatusName = &'static str;

#[derive(Serialize)]
struct TaskOutputResult<'a> {
    retrieval_status: &'static str,
    task_id: String,
    status: TaskStatusName,
    #[serde(flatten)]
    end: End<'a>,
    #[serde(flatten)]
    output: Output<'a>,
}

#[derive(Default, Serialize)]
struct End<'a> {
    exit_code: Option<i32>,
    signal: Option<i32>,
    failure: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Output<'a> {
    output: &'a str,
    output_bytes: u64,
    truncated: bool,
}

#[derive(Serialize)]
struct Nothing {}

/// Renders a result. `text` is the whole shown output, where the result has one.
pub fn render(tool: &str, result: &CallResult, text: &str) -> String {
    match result {
        CallResult::Exited { task, exit, duration_ms, output } => {
            let end = end(exit);
            let result = Completed {
                disposition: "completed",
                task_id: task.to_string(),
                end,
                duration_ms: *duration_ms,
                output: shown(output, text),
            };
            success(tool, summary(exit), result)
        }
        CallResult::Promoted { task, .. } => {
            let result = Handed { disposition: "promoted_to_task", task_handle: handle(*task, Some(text)) };
            success(tool, format!("the command goes on as {task}"), result)
        }
        CallResult::AlreadyRunning { task } => {
            let result = Handed { disposition: "already_running", task_handle: handle(*task, None) };
            success(tool, format!("an equal command runs as {task}"), result)
        }
        CallResult::TaskOutput { task, status, exit, output } => {
            let result = TaskOutputResult {
                retrieval_status: if exit.is_some() { "success" } else { "timeout" },
                task_id: task.to_string(),
                status: status.name(),
                end: exit.as_ref().map(end).unwrap_or_default(),
                output: shown(output, text),
            };
            success(tool, exit.as_ref().map_or_else(|| running(*status), summary), result)
        }
        CallResult::Slept => success(tool, "the turn ends".into(), Nothing {}),
        CallResult::Viewed(_) => match RawValue::from_string(text.to_owned()) {
            Ok(view) => success(tool, String::new(), view),
            Err(_) => success(tool, String::new(), json!({"text": text})),
        },
        CallResult::Interrupted => {
            let text = "interrupted: the runtime went down meanwhile; it may or may not have taken effect";
            let kind = "interrupted".into();
            let error =
                CallError { kind, field: None, message: text.into(), hint: Some("look before you repeat it".into()) };
            refused(tool, &error)
        }
        CallResult::Refused(error) => refused(tool, error),
        CallResult::TaskInput { .. }
        | CallResult::TaskStop { .. }
        | CallResult::Waiting { .. }
        | CallResult::TimerSet { .. }
        | CallResult::TimerCancelled { .. }
        | CallResult::TriggerCreated { .. }
        | CallResult::TriggerRevoked { .. }
        | CallResult::WorkWritten { .. }
        | CallResult::MemoryWritten { .. }
        | CallResult::Enqueued { .. }
        | CallResult::Notified { .. }
        | CallResult::Patched { .. }
        | CallResult::InWorkspace { .. }
        | CallResult::Detached { .. }
        | CallResult::Spawned { .. } => {
            let (summary, members) = told(result);
            success(tool, summary, members)
        }
    }
}

/// A line for people, and the members, of a result that is about an id or two.
#[expect(clippy::wildcard_enum_match_arm, reason = "the caller has sorted out all others")]
fn told(result: &CallResult) -> (String, Value) {
    match result {
        CallResult::TaskInput { task, bytes } => {
            (format!("{bytes} bytes go to {task}"), json!({"task_id": task, "bytes": bytes}))
        }
        CallResult::TaskStop { task, status } => {
            (format!("{task} is {status}"), json!({"task_id": task, "status": status.name()}))
        }
        CallResult::Waiting { wait } => (format!("the turn ends; {wait} goes on"), json!({"wait_id": wait})),
        CallResult::TimerSet { timer } => (format!("{timer} is set"), json!({"timer_id": timer})),
        CallResult::TimerCancelled { timer } => (format!("{timer} is cancelled"), json!({"timer_id": timer})),
        CallResult::TriggerCreated { trigger, file } => (
            format!("{trigger} is set; its URL is in the file {file}, which commands may read and nobody should print"),
            json!({"external_trigger_id": trigger, "url_file": file}),
        ),
        CallResult::TriggerRevoked { trigger } => {
            (format!("{trigger} is revoked"), json!({"external_trigger_id": trigger}))
        }
        CallResult::WorkWritten { work, revision, notes } => (
            [format!("{work} is at revision {revision}")]
                .into_iter()
                .chain(notes.clone())
                .collect::<Vec<_>>()
                .join("; "),
            json!({"work_item_id": work, "revision": revision, "notes": notes}),
        ),
        CallResult::MemoryWritten { entry } => (format!("{entry} is kept"), json!({"entry": entry})),
        CallResult::Enqueued { message } => (format!("{message} waits"), json!({"message_id": message})),
        CallResult::Notified { notice } => (format!("{notice} is told"), json!({"notice_id": notice})),
        CallResult::Patched { files } => {
            let shown = |file: &PatchedFile| json!({"path": file.path, "change": file.change.name(), "added": file.added, "removed": file.removed});
            let files: Vec<Value> = files.iter().map(shown).collect();
            (format!("{} files changed", files.len()), json!({"files": files}))
        }
        CallResult::InWorkspace { workspace, root, cwd } => {
            let name = workspace_name(workspace);
            (format!("in {name}"), json!({"workspace_id": name, "execution_root": root, "cwd": cwd}))
        }
        CallResult::Detached { workspace } => (format!("{workspace} is detached"), json!({"workspace_id": workspace})),
        CallResult::Spawned { agent, task } => {
            let handle = task.map(|task| {
                json!({
                    "task_id": task, "task_kind": "child_agent_task", "status": TaskStatus::Running.name(),
                    "initial_output": null,
                })
            });
            (format!("{agent} is born"), json!({"agent_id": agent, "task_handle": handle}))
        }
        _ => (String::new(), json!({})),
    }
}

/// A workspace as models and clients name it.
pub fn workspace_name(workspace: &WorkspaceName) -> String {
    match workspace {
        WorkspaceName::AgentHome => "agent_home".into(),
        WorkspaceName::Attached(id) => id.to_string(),
    }
}

fn handle(task: TaskId, initial_output: Option<&str>) -> Handle<'_> {
    let status = TaskStatus::Running.name();
    Handle { task_id: task.to_string(), task_kind: "command_task", status, initial_output }
}

fn shown<'a>(output: &Shown, text: &'a str) -> Output<'a> {
    Output { output: text, output_bytes: output.bytes, truncated: output.cut }
}

fn end(exit: &Exit) -> End<'_> {
    match exit {
        Exit::Code(code) => End { exit_code: Some(*code), ..End::default() },
        Exit::Signal(signal) => End { signal: Some(*signal), ..End::default() },
        Exit::NotStarted(reason) => End { failure: Some(reason.into()), ..End::default() },
        Exit::Reported(_) => End::default(),
        Exit::Lost => {
            End { failure: Some("interrupted: it may or may not have taken effect".into()), ..End::default() }
        }
        Exit::LimitExceeded { limit, max } => End { failure: Some(limit.exceeded(*max).into()), ..End::default() },
    }
}

fn summary(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::NotStarted(reason) => format!("not started: {reason}"),
        Exit::Reported(_) => "the child has reported".into(),
        Exit::Lost => "interrupted: it may or may not have taken effect".into(),
        Exit::LimitExceeded { limit, max } => limit.exceeded(*max),
    }
}

fn running(status: TaskStatus) -> String {
    format!("the task is {status}")
}

fn success<R: Serialize>(tool: &str, summary_text: String, result: R) -> String {
    json(&Envelope { tool_name: tool, status: "success", summary_text, result: Some(result), error: None })
}

fn refused(tool: &str, error: &CallError) -> String {
    let result = ErrorResult {
        kind: &error.kind,
        field: error.field.as_deref(),
        message: &error.message,
        hint: error.hint.as_deref(),
        retryable: false,
    };
    let summary_text = error.message.clone();
    json(&Envelope::<Nothing> { tool_name: tool, status: "error", summary_text, result: None, error: Some(result) })
}

/// On one line, whatever a reader takes for the end of one: a result is no place for a label.
fn json<T: Serialize>(value: &T) -> String {
    let text = serde_json::to_string(value).expect("plain fields are JSON");
    let breaks = [('\u{85}', "\\u0085"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    breaks
        .iter()
        .fold(text, |text, (sign, escape)| if text.contains(*sign) { text.replace(*sign, escape) } else { text })
}
