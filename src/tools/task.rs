//! Tools of the task plane: commands, and what supervises them.

use super::waiting::Nothing;
use super::{Tool, invalid, read, schema_of, text};
use crate::decide::profile::Family;
use crate::decide::task::unfit;
use crate::events::call::{Action, CallError, ExecRequest, View};
use crate::events::task::CommandSpec;
use crate::words::content::excerpt;
use crate::words::id::TaskId;
use crate::words::limit::{
    EXCERPT_BYTES_MAX, SHOWN_TOKENS_DEFAULT, SHOWN_TOKENS_MAX, TASK_OUTPUT_BLOCK_MS_DEFAULT, TASK_OUTPUT_BLOCK_MS_MAX,
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
    Tool {
        name: "TaskList",
        family: Family::Core,
        description: "List the tasks that are open: commands that go on, and children.",
        mutates: false,
        schema: schema_of::<Nothing>,
        read: |arguments, _| read::<Nothing>(arguments).map(|Nothing {}| Action::Look(View::Tasks)),
    },
    Tool {
        name: "TaskStatus",
        family: Family::Core,
        description: "Show where a task stands.",
        mutates: false,
        schema: schema_of::<OneTask>,
        read: |arguments, _| Ok(Action::Look(View::Task(read::<OneTask>(arguments)?.task()?))),
    },
    Tool {
        name: "TaskInput",
        family: Family::Core,
        description: "Write to the standard input of a command that accepts it, or send a child a message.",
        mutates: true,
        schema: schema_of::<TaskInput>,
        read: |arguments, blobs| {
            let TaskInput { task_id, text: input } = read(arguments)?;
            Ok(Action::TaskInput { task: task(&task_id)?, text: text("text", input, blobs)? })
        },
    },
    Tool {
        name: "TaskStop",
        family: Family::Core,
        description: "End a task: a command and all it started, or a child.",
        mutates: true,
        schema: schema_of::<OneTask>,
        read: |arguments, _| Ok(Action::TaskStop { task: read::<OneTask>(arguments)?.task()? }),
    },
];

/// Arguments of TaskStatus and TaskStop.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneTask {
    /// The task, such as task-3.
    task_id: String,
}

/// Arguments of TaskInput.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskInput {
    /// The task, such as task-3.
    task_id: String,
    text: String,
}

impl OneTask {
    fn task(&self) -> Result<TaskId, CallError> {
        task(&self.task_id)
    }
}

fn task(id: &str) -> Result<TaskId, CallError> {
    id.parse().map_err(|_| invalid("task_id", "is not a task id", "task ids look like task-3, as ExecCommand gave it"))
}

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
    /// Whether its standard input stays open for TaskInput.
    #[serde(default)]
    accepts_input: bool,
    /// What it is for, for people.
    summary: Option<String>,
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
    /// The byte to begin at, to read the kept output page by page.
    offset: Option<u64>,
    /// The most output to show, in tokens.
    max_output_tokens: Option<u32>,
}

impl ExecCommand {
    fn action(self) -> Result<Action, CallError> {
        let spec = CommandSpec {
            cmd: self.cmd,
            workdir: self.workdir,
            shell: self.shell,
            login: self.login,
            accepts_input: self.accepts_input,
        };
        if let Some((field, reason)) = unfit(&spec) {
            return Err(invalid(field, reason, "give the command line to run; a long text is written to a file first"));
        }
        Ok(Action::Exec(ExecRequest {
            spec,
            yield_ms: self.yield_time_ms.unwrap_or(YIELD_MS_DEFAULT).min(YIELD_MS_MAX),
            shown_tokens: shown_tokens(self.max_output_tokens),
            reuse_running: self.duplicate_policy == DuplicatePolicy::ReuseRunning,
            summary: self.summary.map(|summary| excerpt(&summary, EXCERPT_BYTES_MAX).to_owned()),
        }))
    }
}

impl TaskOutput {
    fn action(self) -> Result<Action, CallError> {
        let task = task(&self.task_id)?;
        let wait_ms = match self.block {
            Some(false) => 0,
            None | Some(true) => self.timeout_ms.unwrap_or(TASK_OUTPUT_BLOCK_MS_DEFAULT).min(TASK_OUTPUT_BLOCK_MS_MAX),
        };
        Ok(Action::TaskOutput {
            task,
            offset: self.offset,
            wait_ms,
            shown_tokens: shown_tokens(self.max_output_tokens),
        })
    }
}

fn shown_tokens(asked: Option<u32>) -> u32 {
    asked.unwrap_or(SHOWN_TOKENS_DEFAULT).min(SHOWN_TOKENS_MAX)
}
