//! A model round in genai's terms.

use super::failure::failed;
use super::remote::Protocol;
use crate::context::request::{AssistantPart, ModelRequest, Part, RawCall, ToolResultPart, ToolSchema};
use crate::events::turn::{AttemptError, AttemptErrorKind};
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, ReasoningEffort, Tool, ToolCall,
    ToolResponse,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// What is asked of the service: the conversation and the tools.
pub(super) fn chat_request(protocol: Protocol, request: &ModelRequest) -> Result<ChatRequest, AttemptError> {
    let mut messages = Vec::new();
    for part in &request.parts {
        say(protocol, part, &mut messages);
    }
    if protocol == Protocol::Anthropic {
        mark_for_caching(&mut messages);
    }
    let tools = request.tools.iter().map(tool).collect::<Result<Vec<_>, _>>()?;
    let conversation = ChatRequest::from_messages(messages);
    Ok(if tools.is_empty() { conversation } else { conversation.with_tools(tools) })
}

/// How it is asked. The timeout holds for the headers and then for each silence of the stream.
pub(super) fn chat_options(protocol: Protocol, request: &ModelRequest, timeout_ms: u64) -> ChatOptions {
    let timeout = Duration::from_millis(timeout_ms);
    let options = ChatOptions::default()
        .with_max_tokens(request.output_tokens_max)
        .with_stream_header_timeout(timeout)
        .with_stream_read_timeout(timeout)
        .with_capture_usage(true)
        .with_capture_tool_calls(true);
    match stated_effort(protocol) {
        Some(effort) => options.with_reasoning_effort(effort),
        None => options,
    }
}

/// An effort that changes nothing, said only because genai otherwise reads one from the end of a model's name and
/// takes it off the name. For Anthropic it does switch off the thinking of models that think unasked: their thinking
/// blocks would have to be sent back, and an [`AssistantPart`] has no place for them.
fn stated_effort(protocol: Protocol) -> Option<ReasoningEffort> {
    match protocol {
        Protocol::Anthropic => Some(ReasoningEffort::Zero),
        Protocol::OpenAi => Some(ReasoningEffort::Budget(0)),
        Protocol::Gemini | Protocol::Ollama => None,
    }
}

fn say(protocol: Protocol, part: &Part, messages: &mut Vec<ChatMessage>) {
    match part {
        Part::System(text) => messages.push(ChatMessage::system(text.as_str())),
        Part::User(text) => messages.push(ChatMessage::user(text.as_str())),
        Part::Assistant(said) => messages.extend(assistant(said)),
        Part::ToolResult(result) => tool_result(protocol, result, messages),
    }
}

/// None when nothing was said: services refuse empty messages and blank texts.
fn assistant(said: &AssistantPart) -> Option<ChatMessage> {
    let text = (!said.text.trim().is_empty()).then(|| ContentPart::from_text(said.text.as_str()));
    let calls = said.calls.iter().map(|call| ContentPart::ToolCall(tool_call(call)));
    let content: Vec<ContentPart> = text.into_iter().chain(calls).collect();
    (!content.is_empty()).then(|| ChatMessage::assistant(content))
}

fn tool_call(call: &RawCall) -> ToolCall {
    ToolCall {
        call_id: call.id.clone(),
        fn_name: call.tool.clone(),
        fn_arguments: arguments(&call.arguments),
        thought_signatures: None,
    }
}

/// Services take back an object only; what a model wrote instead of one is wrapped, so that it still sees it.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => Value::Object(Map::from_iter([("unreadable".to_owned(), Value::String(text.to_owned()))])),
    }
}

/// The results of one round go into one message, as Anthropic and Gemini demand. genai would keep only the last of
/// them for Ollama.
fn tool_result(protocol: Protocol, result: &ToolResultPart, messages: &mut Vec<ChatMessage>) {
    let response = ToolResponse::new(&result.call_id, &result.text).with_fn_name(&result.tool);
    match messages.last_mut() {
        Some(last) if last.role == ChatRole::Tool && protocol != Protocol::Ollama => last.content.push(response),
        Some(_) | None => messages.push(ChatMessage::from(response)),
    }
}

/// Anthropic caches up to a mark. The first covers the tools and the contract, the second the conversation so far,
/// which the next round of a turn repeats.
fn mark_for_caching(messages: &mut [ChatMessage]) {
    let system = messages.iter().rposition(|message| message.role == ChatRole::System);
    let last = messages.len().checked_sub(1);
    for index in system.into_iter().chain(last) {
        messages[index].options = Some(CacheControl::Ephemeral.into());
    }
}

fn tool(schema: &ToolSchema) -> Result<Tool, AttemptError> {
    let parameters = serde_json::from_str(&schema.parameters).map_err(|error| {
        let message = format!("the schema of the tool {} is not JSON: {error}", schema.name);
        failed(AttemptErrorKind::InvalidRequest, message)
    })?;
    Ok(Tool::new(schema.name.as_str()).with_description(schema.description.as_str()).with_schema(parameters))
}
