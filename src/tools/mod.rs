//! Floor 4, first half: the tools a model sees.
//!
//! [`CATALOGUE`] is the one list: name, family, description, schema, and how the arguments are read. Parsing gives a
//! typed action, which the core decides on; [`result`] renders what came of it.

pub mod result;

use crate::context::request::{RawCall, ToolSchema};
use crate::events::task::CommandSpec;
use crate::events::turn::{Action, Call, CallError, ExecRequest, StopReason};
use crate::words::content::excerpt;
use crate::words::id::TaskId;
use crate::words::limit::{
    CALL_NAME_BYTES_MAX, CALLS_PER_ROUND_MAX, COMMAND_BYTES_MAX, COMMANDS_PER_ROUND_BYTES_MAX, EXCERPT_BYTES_MAX,
    SHOWN_TOKENS_DEFAULT, SHOWN_TOKENS_MAX, TASK_OUTPUT_BLOCK_MS_DEFAULT, TASK_OUTPUT_BLOCK_MS_MAX, YIELD_MS_DEFAULT,
    YIELD_MS_MAX,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A capability family of the profile seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Core,
    LocalEnvironment,
}

/// One tool.
pub struct Tool {
    pub name: &'static str,
    pub family: Family,
    pub description: &'static str,
    /// Whether a call changes something outside the agent.
    pub mutates: bool,
    schema: fn() -> schemars::Schema,
    read: fn(&str) -> Result<Action, CallError>,
}

/// Every tool there is, in the order in which a model sees them.
pub const CATALOGUE: &[Tool] = &[
    Tool {
        name: "ExecCommand",
        family: Family::LocalEnvironment,
        description: "Run a shell command. Answers with exit code and output when it ends within yield_time_ms; \
                      otherwise it goes on as a task, and the answer holds its task handle and the output so far.",
        mutates: true,
        schema: schema_of::<ExecCommand>,
        read: |arguments| read::<ExecCommand>(arguments)?.action(),
    },
    Tool {
        name: "TaskOutput",
        family: Family::Core,
        description: "Read the output of a task. With block it waits up to timeout_ms for the task to end.",
        mutates: false,
        schema: schema_of::<TaskOutput>,
        read: |arguments| read::<TaskOutput>(arguments)?.action(),
    },
    Tool {
        name: "Sleep",
        family: Family::Core,
        description: "End this turn. The agent is woken by whatever comes next.",
        mutates: false,
        schema: schema_of::<Sleep>,
        read: |arguments| Ok(read::<Sleep>(arguments)?.action()),
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

/// Arguments of Sleep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sleep {
    /// Why, for people.
    reason: Option<String>,
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
        Ok(Action::TaskOutput { task, wait_ms, shown_tokens: shown_tokens(self.max_output_tokens) })
    }
}

impl Sleep {
    fn action(self) -> Action {
        Action::Sleep { reason: self.reason.map(|reason| excerpt(&reason, EXCERPT_BYTES_MAX).to_owned()) }
    }
}

fn shown_tokens(asked: Option<u32>) -> u32 {
    asked.unwrap_or(SHOWN_TOKENS_DEFAULT).min(SHOWN_TOKENS_MAX)
}

/// The tools as a model is told of them.
pub fn schemas() -> Vec<ToolSchema> {
    let schema = |tool: &Tool| ToolSchema {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: serde_json::to_string(&(tool.schema)()).expect("a schema of ours is JSON"),
    };
    CATALOGUE.iter().map(schema).collect()
}

/// Reads the calls of a model round. A call that cannot be read becomes one that is refused, and the turn goes on.
pub fn read_calls(calls: &[RawCall], stop: StopReason) -> Vec<Call> {
    let last = calls.len().saturating_sub(1);
    let mut room_bytes = COMMANDS_PER_ROUND_BYTES_MAX;
    let read = |(index, raw): (usize, &RawCall)| {
        let cut = stop == StopReason::MaxTokens && index == last;
        let action = if index >= CALLS_PER_ROUND_MAX { Err(too_many()) } else { action(raw, cut) };
        let action = action.and_then(|action| fit(action, &mut room_bytes));
        Call { id: raw.id.clone(), tool: raw.tool.clone(), action: action.unwrap_or_else(Action::Refused) }
    };
    calls.iter().enumerate().map(read).collect()
}

/// `cut`: the answer ended here for want of tokens, so the arguments may be only a part of what was meant.
fn action(raw: &RawCall, cut: bool) -> Result<Action, CallError> {
    let Some(tool) = CATALOGUE.iter().find(|tool| tool.name == raw.tool) else {
        let names = CATALOGUE.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        return Err(error("unknown_tool", None, "there is no such tool", &format!("the tools are {names}")));
    };
    if cut && tool.mutates {
        let hint = "ask for less in one round";
        return Err(error("truncated_mutation_tool_call", None, "the answer was cut within this call", hint));
    }
    (tool.read)(&raw.arguments)
}

/// All calls of a round are one event, which has its bound.
fn fit(action: Action, room_bytes: &mut usize) -> Result<Action, CallError> {
    let Action::Exec(ExecRequest { spec, .. }) = &action else { return Ok(action) };
    let texts = [Some(&spec.cmd), spec.workdir.as_ref(), spec.shell.as_ref()];
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    let Some(rest_bytes) = room_bytes.checked_sub(bytes) else {
        let hint = "write long texts to files, or make the remaining calls in the next round";
        return Err(error("round_too_long", None, "the commands of this round are too long together", hint));
    };
    *room_bytes = rest_bytes;
    Ok(action)
}

fn too_many() -> CallError {
    let message = format!("a round may hold {CALLS_PER_ROUND_MAX} calls");
    error("too_many_calls", None, &message, "make the remaining calls in the next round")
}

fn schema_of<T: JsonSchema>() -> schemars::Schema {
    schemars::schema_for!(T)
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, CallError> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments).map_err(|fault| {
        let text = fault.to_string();
        // The model's own words may be in there, at any length.
        let field = text.split('`').nth(1).map(|field| excerpt(field, CALL_NAME_BYTES_MAX));
        let message = excerpt(&text, EXCERPT_BYTES_MAX);
        error("invalid_tool_input", field, message, "give the arguments as the tool's schema says")
    })
}

fn invalid(field: &str, message: &str, hint: &str) -> CallError {
    error("invalid_tool_input", Some(field), &format!("{field} {message}"), hint)
}

fn error(kind: &str, field: Option<&str>, message: &str, hint: &str) -> CallError {
    CallError { kind: kind.into(), field: field.map(str::to_owned), message: message.into(), hint: Some(hint.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &str) -> Action {
        let raw = RawCall { id: "call-1".into(), tool: tool.into(), arguments: arguments.into() };
        read_calls(&[raw], StopReason::ToolUse).remove(0).action
    }

    fn refusal(tool: &str, arguments: &str) -> (String, Option<String>) {
        match call(tool, arguments) {
            Action::Refused(error) => (error.kind, error.field),
            action @ (Action::Exec(_) | Action::TaskOutput { .. } | Action::Sleep { .. }) => {
                panic!("{tool} {arguments} was read as {action:?}")
            }
        }
    }

    #[test]
    fn refused_arguments_name_their_field() {
        let field = |field: &str| ("invalid_tool_input".to_owned(), Some(field.to_owned()));
        assert_eq!(refusal("ExecCommand", "{}"), field("cmd"));
        assert_eq!(refusal("ExecCommand", r#"{"cmd":"ls","colour":1}"#), field("colour"));
        assert_eq!(refusal("ExecCommand", r#"{"cmd":"  "}"#), field("cmd"));
        assert_eq!(refusal("TaskOutput", r#"{"task_id":"7"}"#), field("task_id"));
        assert_eq!(refusal("Fly", "{}"), ("unknown_tool".into(), None));
        assert_eq!(refusal("ExecCommand", "{\"cmd\":").0, "invalid_tool_input");
    }

    #[test]
    fn a_command_cut_by_the_answers_end_is_not_run() {
        let raw =
            |id: &str| RawCall { id: id.into(), tool: "ExecCommand".into(), arguments: r#"{"cmd":"rm x"}"#.into() };
        let calls = read_calls(&[raw("1"), raw("2")], StopReason::MaxTokens);
        assert!(matches!(calls[0].action, Action::Exec(_)), "it was complete");
        assert!(matches!(&calls[1].action, Action::Refused(error) if error.kind == "truncated_mutation_tool_call"));
    }

    #[test]
    fn what_a_model_says_at_any_length_is_kept_within_the_events_bound() {
        let long = "x".repeat(4 * COMMAND_BYTES_MAX);
        let Action::Sleep { reason } = call("Sleep", &format!(r#"{{"reason":"{long}"}}"#)) else { panic!("not read") };
        assert_eq!(reason.map(|reason| reason.len()), Some(EXCERPT_BYTES_MAX));

        let Action::Refused(error) = call("Sleep", &format!(r#"{{"{long}":1}}"#)) else { panic!("not refused") };
        assert!(error.message.len() <= EXCERPT_BYTES_MAX && error.field.unwrap().len() <= CALL_NAME_BYTES_MAX);

        let cmd = "x".repeat(COMMAND_BYTES_MAX - 1);
        let raw = RawCall { id: "1".into(), tool: "ExecCommand".into(), arguments: format!(r#"{{"cmd":"{cmd}"}}"#) };
        let calls = read_calls(&[raw.clone(), raw.clone(), raw.clone(), raw], StopReason::ToolUse);
        assert!(calls[..3].iter().all(|call| matches!(call.action, Action::Exec(_))));
        assert!(matches!(&calls[3].action, Action::Refused(error) if error.kind == "round_too_long"));
    }

    #[test]
    fn schemas_are_closed_objects() {
        for tool in schemas() {
            let schema: serde_json::Value = serde_json::from_str(&tool.parameters).unwrap();
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }
}
