//! What a tool call came to, as the model reads it: one envelope for every tool.

use crate::events::task::{Exit, TaskStatus};
use crate::events::turn::{CallError, CallResult, Shown};
use crate::words::id::TaskId;
use serde::Serialize;

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
    failure: Option<&'a str>,
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
        CallResult::Refused(error) => refused(tool, error),
    }
}

/// The shown output that a result carries, if it does.
pub fn output(result: &CallResult) -> Option<&Shown> {
    match result {
        CallResult::Exited { output, .. }
        | CallResult::Promoted { output, .. }
        | CallResult::TaskOutput { output, .. } => Some(output),
        CallResult::AlreadyRunning { .. } | CallResult::Slept | CallResult::Refused(_) => None,
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
        Exit::NotStarted(reason) => End { failure: Some(reason), ..End::default() },
        Exit::Lost => End { failure: Some("interrupted: it may or may not have taken effect"), ..End::default() },
    }
}

fn summary(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::NotStarted(reason) => format!("not started: {reason}"),
        Exit::Lost => "interrupted: it may or may not have taken effect".into(),
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

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain fields are JSON")
}
