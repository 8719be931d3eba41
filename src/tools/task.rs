//! Tools of the task plane: commands, and what supervises them.

use super::{Tool, invalid, read, schema_of};
use crate::decide::profile::Family;
use crate::events::call::{Action, CallError, ExecRequest};
use crate::events::task::CommandSpec;
use crate::words::id::TaskId;
use crate::words::limit::{
    COMMAND_BYTES_MAX, SHOWN_TOKENS_DEFAULT, SHOWN_TOKENS_MAX, TASK_OUTPUT_BLOCK_MS_DEFAULT, TASK_OUTPUT_BLOCK_MS_MAX,
    YIELD_MS_DEFAULT, YIELD_MS_MAX,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "ExecCommand",
        family: Family::LocalEnvironment,
        description: "Run a shell command. Answers with exit code and output when it ends within yield_time_ms; \
                      otherwise it goes on as a task, and the answer holds its task handle and the output so far.",
        mutates: true,
        schema: schema_of::<ExecCommand>,
        read: |arguments, _| read::<ExecCommand>(arguments)?.action(),
    },
    Tool {
        name: "TaskOutput",
        family: Family::Core,
        description: "Read the output of a task. With block it waits up to timeout_ms for the task to end.",
        mutates: false,
        schema: schema_of::<TaskOutput>,
        read: |arguments, _| read::<TaskOutput>(arguments)?.action(),
    },
];

/// Arguments of ExecCommand.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecCommand {
    /// The command line, read by the shell.
    cmd: String,
    /// Where to run it: a path inside the execution root. The root itself when absent.
    workdir: Option<String>,
    /// The shell that reads it. /bin/sh when absent.
    shell: Option<String>,
    /// Whether the shell is a login shell.
    #[serde(default)]
    login: bool,
    /// How long to wait for its end before it goes on as a task, in milliseconds.
    yield_time_ms: Option<u64>,
    /// The most output to show, in tokens.
    max_output_tokens: Option<u32>,
    /// What to do when an equal command runs already.
    #[serde(default)]
    duplicate_policy: DuplicatePolicy,
}

/// What to do when an equal command runs already.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DuplicatePolicy {
    /// Answer with the handle of the one that runs.
    #[default]
    ReuseRunning,
    /// Run another one.
    StartNew,
}

/// Arguments of TaskOutput.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskOutput {
    /// The task, such as task-3.
    task_id: String,
    /// Whether to wait for its end. True when absent.
    block: Option<bool>,
    /// How long to wait at most, in milliseconds.
    timeout_ms: Option<u64>,
    /// The most output to show, in tokens.
    max_output_tokens: Option<u32>,
}

impl ExecCommand {
    fn action(self) -> Result<Action, CallError> {
        if self.cmd.trim().is_empty() {
            return Err(invalid("cmd", "must not be empty", "give the command line to run"));
        }
        let texts = [("cmd", Some(&self.cmd)), ("workdir", self.workdir.as_ref()), ("shell", self.shell.as_ref())];
        if let Some((field, _)) = texts
            .iter()
            .find(|(_, text)| text.is_some_and(|text| text.len() > COMMAND_BYTES_MAX || text.contains('\0')))
        {
            return Err(invalid(field, "is too long or holds a zero byte", "write the text to a file and run that"));
        }
        let spec = CommandSpec {
            cmd: self.cmd,
            workdir: self.workdir,
            shell: self.shell,
            login: self.login,
            accepts_input: false,
        };
        Ok(Action::Exec(ExecRequest {
            spec,
            yield_ms: self.yield_time_ms.unwrap_or(YIELD_MS_DEFAULT).min(YIELD_MS_MAX),
            shown_tokens: shown_tokens(self.max_output_tokens),
            reuse_running: self.duplicate_policy == DuplicatePolicy::ReuseRunning,
        }))
    }
}

impl TaskOutput {
    fn action(self) -> Result<Action, CallError> {
        let task: TaskId = self
            .task_id
            .parse()
            .map_err(|_| invalid("task_id", "is not a task id", "task ids look like task-3, as ExecCommand gave it"))?;
        let wait_ms = match self.block {
            Some(false) => 0,
            None | Some(true) => self.timeout_ms.unwrap_or(TASK_OUTPUT_BLOCK_MS_DEFAULT).min(TASK_OUTPUT_BLOCK_MS_MAX),
        };
        Ok(Action::TaskOutput { task, offset: None, wait_ms, shown_tokens: shown_tokens(self.max_output_tokens) })
    }
}

fn shown_tokens(asked: Option<u32>) -> u32 {
    asked.unwrap_or(SHOWN_TOKENS_DEFAULT).min(SHOWN_TOKENS_MAX)
}
