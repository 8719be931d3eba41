//! Floor 4, first half: the tools a model sees.
//!
//! [`PLANES`] is the one list: name, family, description, schema, and how the arguments are read. Each plane has its
//! file here. Parsing gives a typed action, which the core decides on; [`result`] renders what came of it, and
//! [`view`] what a call looks at.

mod agent;
mod memory;
pub mod patch;
pub mod result;
mod task;
pub mod view;
mod waiting;
mod work;
mod workspace;

use crate::context::request::{RawCall, ToolSchema};
use crate::decide::profile::{Family, grants};
use crate::events::agent::Preset;
use crate::events::call::{Action, Call, CallError};
use crate::events::codec;
use crate::events::turn::StopReason;
use crate::words::content::{Blob, Content, excerpt};
use crate::words::limit::{
    CALL_NAME_BYTES_MAX, CALL_TEXT_BYTES_MAX, CALLS_PER_ROUND_BYTES_MAX, CALLS_PER_ROUND_MAX, EXCERPT_BYTES_MAX,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// One tool.
pub struct Tool {
    pub name: &'static str,
    pub family: Family,
    pub description: &'static str,
    /// Whether a call changes something outside the agent.
    pub mutates: bool,
    schema: fn() -> schemars::Schema,
    /// Longer texts are stored beside the call that names them.
    read: fn(&str, &mut Vec<Blob>) -> Result<Action, CallError>,
}

/// Every tool there is, plane by plane, in the order in which a model sees them.
pub const PLANES: &[&[Tool]] =
    &[task::TOOLS, work::TOOLS, waiting::TOOLS, agent::TOOLS, memory::TOOLS, workspace::TOOLS];

fn catalogue() -> impl Iterator<Item = &'static Tool> {
    PLANES.iter().flat_map(|tools| tools.iter())
}

/// The tools as an agent of this preset is told of them.
pub fn schemas(preset: Preset) -> Vec<ToolSchema> {
    let schema = |tool: &Tool| ToolSchema {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: serde_json::to_string(&(tool.schema)()).expect("a schema of ours is JSON"),
    };
    catalogue().filter(|tool| grants(preset, tool.family)).map(schema).collect()
}

/// Reads the calls of a model round. A call that cannot be read becomes one that is refused, and the turn goes on.
/// Texts that the calls name are to be stored with them.
pub fn read_calls(calls: &[RawCall], stop: StopReason) -> (Vec<Call>, Vec<Blob>) {
    let last = calls.len().saturating_sub(1);
    let mut room_bytes = CALLS_PER_ROUND_BYTES_MAX;
    let mut blobs = Vec::new();
    let read = |(index, raw): (usize, &RawCall)| {
        let cut = stop == StopReason::MaxTokens && index == last;
        let action = if index >= CALLS_PER_ROUND_MAX { Err(too_many()) } else { action(raw, cut, &mut blobs) };
        let action = action.and_then(|action| fit(action, &mut room_bytes));
        Call { id: raw.id.clone(), tool: raw.tool.clone(), action: action.unwrap_or_else(Action::Refused) }
    };
    (calls.iter().enumerate().map(read).collect(), blobs)
}

/// `cut`: the answer ended here for want of tokens, so the arguments may be only a part of what was meant.
fn action(raw: &RawCall, cut: bool, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
    let Some(tool) = catalogue().find(|tool| tool.name == raw.tool) else {
        let names = catalogue().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        return Err(error("unknown_tool", None, "there is no such tool", &format!("the tools are {names}")));
    };
    if cut && tool.mutates {
        let hint = "ask for less in one round";
        return Err(error("truncated_mutation_tool_call", None, "the answer was cut within this call", hint));
    }
    (tool.read)(&raw.arguments, blobs)
}

/// All calls of a round are one event, which has its bound.
fn fit(action: Action, room_bytes: &mut usize) -> Result<Action, CallError> {
    let bytes = codec::to_bytes(&action).len();
    let Some(rest_bytes) = room_bytes.checked_sub(bytes) else {
        let hint = "write long texts to files, or make the remaining calls in the next round";
        return Err(error("round_too_long", None, "the calls of this round are too long together", hint));
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
    let hint = "give the arguments as the tool's schema says";
    if !arguments.trim_start().starts_with('{') {
        return Err(error("invalid_tool_input", None, "the arguments are not an object", hint));
    }
    serde_json::from_str(arguments).map_err(|fault| {
        let text = fault.to_string();
        // The model's own words may be in there, at any length.
        let field = field::<T>(arguments, &text);
        let field = field.as_deref().map(|field| excerpt(field, CALL_NAME_BYTES_MAX));
        error("invalid_tool_input", field, excerpt(&text, EXCERPT_BYTES_MAX), hint)
    })
}

/// The field that a fault is about: the one that it names, or the one that cannot be read even by itself.
fn field<T: DeserializeOwned>(arguments: &str, fault: &str) -> Option<String> {
    let named = |fault: &str| {
        let name = fault.strip_prefix("missing field `").or_else(|| fault.strip_prefix("unknown field `"))?;
        name.split('`').next().map(str::to_owned)
    };
    let unread = || {
        let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).ok()?;
        members.into_iter().find_map(|(name, value)| {
            let alone = serde_json::Value::Object([(name.clone(), value)].into_iter().collect());
            let fault = serde_json::from_value::<T>(alone).err()?.to_string();
            named(&fault).is_none().then_some(name)
        })
    };
    named(fault).or_else(unread)
}

fn invalid(field: &str, message: &str, hint: &str) -> CallError {
    error("invalid_tool_input", Some(field), &format!("{field} {message}"), hint)
}

fn error(kind: &str, field: Option<&str>, message: &str, hint: &str) -> CallError {
    CallError { kind: kind.into(), field: field.map(str::to_owned), message: message.into(), hint: Some(hint.into()) }
}

/// A longer text of a call: kept beside it when it does not fit into its event.
fn text(field: &str, text: String, blobs: &mut Vec<Blob>) -> Result<Content, CallError> {
    if text.len() > CALL_TEXT_BYTES_MAX {
        return Err(invalid(field, "is too long", "write the text to a file and name that"));
    }
    let (content, blob) = Content::new(text);
    blobs.extend(blob);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::limit::COMMAND_BYTES_MAX;

    fn call(tool: &str, arguments: &str) -> Action {
        let raw = RawCall { id: "call-1".into(), tool: tool.into(), arguments: arguments.into() };
        read_calls(&[raw], StopReason::ToolUse).0.remove(0).action
    }

    #[test]
    fn a_command_cut_by_the_answers_end_is_not_run() {
        let raw =
            |id: &str| RawCall { id: id.into(), tool: "ExecCommand".into(), arguments: r#"{"cmd":"rm x"}"#.into() };
        let (calls, _) = read_calls(&[raw("1"), raw("2")], StopReason::MaxTokens);
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
        let (calls, _) = read_calls(&[raw.clone(), raw.clone(), raw.clone(), raw], StopReason::ToolUse);
        assert!(calls[..3].iter().all(|call| matches!(call.action, Action::Exec(_))));
        assert!(matches!(&calls[3].action, Action::Refused(error) if error.kind == "round_too_long"));
    }

    #[test]
    fn schemas_are_closed_objects() {
        for tool in schemas(Preset::PublicNamed) {
            let schema: serde_json::Value = serde_json::from_str(&tool.parameters).unwrap();
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            assert_eq!(schema["type"], "object", "{}", tool.name);
        }
    }
}
