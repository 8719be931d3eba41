//! Tool results as the runbook takes them.

use serde::Deserialize;

/// The statuses of a task that has ended.
const ENDED: &[&str] = &["completed", "failed", "cancelled", "interrupted"];

/// A tool result as the runbook takes it.
pub(super) enum Reading {
    /// It goes on as this task.
    Running(String),
    Ended(Ending),
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    pub failed: bool,
    pub outcome: String,
    pub output: String,
    /// Bytes of the whole output, when `output` leaves something out.
    pub cut_from_bytes: Option<u64>,
    /// The work item that it names.
    pub work: Option<String>,
}

/// A tool result's envelope.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum Envelope {
    Success {
        #[serde(default)]
        summary_text: String,
        #[serde(default)]
        result: Outcome,
    },
    Error {
        error: Refusal,
    },
}

#[derive(Deserialize)]
struct Refusal {
    kind: String,
    message: String,
    hint: Option<String>,
}

/// What the results of `ExecCommand` and `TaskOutput` have between them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Outcome {
    task_handle: Option<TaskHandle>,
    task_id: Option<String>,
    work_item_id: Option<String>,
    disposition: Option<String>,
    status: Option<String>,
    exit_code: Option<i64>,
    signal: Option<i64>,
    failure: Option<String>,
    output: String,
    output_bytes: u64,
    truncated: bool,
}

#[derive(Deserialize)]
struct TaskHandle {
    task_id: String,
}

impl Reading {
    pub(super) fn of(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(Envelope::Success { summary_text, result }) => result.read(summary_text),
            Ok(Envelope::Error { error }) => Self::Ended(error.ending()),
            Err(error) => Self::Ended(Ending::failed(format!("its result cannot be read: {error}"))),
        }
    }
}

impl Outcome {
    fn read(self, summary: String) -> Reading {
        if let Some(handle) = self.task_handle {
            return Reading::Running(handle.task_id);
        }
        match (&self.status, &self.task_id) {
            (Some(status), Some(task)) if !ENDED.contains(&status.as_str()) => Reading::Running(task.clone()),
            (None, _) if self.disposition.is_none() => {
                Reading::Ended(Ending { work: self.work_item_id, ..Ending::succeeded(summary) })
            }
            (Some(_) | None, _) => Reading::Ended(self.exit()),
        }
    }

    fn exit(self) -> Ending {
        let outcome = match (self.failure, self.signal, self.exit_code) {
            (Some(failure), ..) => failure,
            (None, Some(signal), _) => format!("ended by signal {signal}"),
            (None, None, Some(code)) => format!("exit {code}"),
            (None, None, None) => self.status.clone().unwrap_or_else(|| "ended without an exit code".to_owned()),
        };
        let cut_from_bytes = self.truncated.then_some(self.output_bytes);
        let failed = outcome != "exit 0" && self.status.as_deref() != Some("completed");
        Ending { failed, outcome, output: self.output, cut_from_bytes, work: None }
    }
}

impl Refusal {
    fn ending(self) -> Ending {
        let hint = self.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Ending::failed(format!("{}: {}{hint}", self.kind, self.message))
    }
}

impl Ending {
    pub(super) fn failed(outcome: String) -> Self {
        Self { failed: true, outcome, output: String::new(), cut_from_bytes: None, work: None }
    }

    pub(super) fn succeeded(outcome: String) -> Self {
        Self { failed: false, ..Self::failed(outcome) }
    }
}
