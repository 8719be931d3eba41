//! What a model is asked and what it answers, in no provider's terms.

use crate::events::turn::{SectionKind, StopReason, Usage};
use serde::{Deserialize, Serialize};

/// A model round as every provider takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest {
    /// The model's name within its provider: `claude-sonnet-4-5` of `anthropic/claude-sonnet-4-5`.
    pub model: String,
    /// In the order in which they are said.
    pub parts: Vec<Part>,
    pub tools: Vec<ToolSchema>,
    pub output_tokens_max: u32,
    /// Model rounds the agent had recorded before this one.
    pub rounds_before: u64,
}

/// One part of a prompt, in somebody's voice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    System(String),
    User(String),
    Assistant(AssistantPart),
    ToolResult(ToolResultPart),
}

/// What a model said. Its JSON form is the bytes of an `assistant` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantPart {
    pub text: String,
    pub calls: Vec<RawCall>,
}

/// A tool call as a model gives it, its arguments unread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawCall {
    pub id: String,
    pub tool: String,
    /// JSON text, kept as it came.
    pub arguments: String,
}

/// What a tool call came to. Its JSON form is the bytes of a `tool_result` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultPart {
    pub call_id: String,
    pub tool: String,
    /// The result's envelope, as JSON text.
    pub text: String,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments, as JSON text.
    pub parameters: String,
}

/// A finished model round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    pub said: AssistantPart,
    pub stop: StopReason,
    pub usage: Usage,
}

/// Stored section bytes that cannot be what they are said to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored {kind} section cannot be read: {reason}")]
pub struct PartError {
    pub kind: SectionKind,
    pub reason: String,
}

impl Part {
    /// Reads a section's stored bytes back into the part they were written from.
    pub fn read(kind: SectionKind, bytes: &[u8]) -> Result<Self, PartError> {
        let fault = |reason: String| PartError { kind, reason };
        let text = || String::from_utf8(bytes.to_vec()).map_err(|error| fault(error.to_string()));
        Ok(match kind {
            SectionKind::Contract | SectionKind::Guidance | SectionKind::Inherited => Self::System(text()?),
            SectionKind::EarlierMessage
            | SectionKind::Message
            | SectionKind::Interjection
            | SectionKind::Episode
            | SectionKind::Memory
            | SectionKind::Work
            | SectionKind::Recap => Self::User(text()?),
            SectionKind::EarlierAnswer => Self::Assistant(AssistantPart { text: text()?, calls: Vec::new() }),
            SectionKind::Assistant => {
                Self::Assistant(serde_json::from_slice(bytes).map_err(|error| fault(error.to_string()))?)
            }
            SectionKind::ToolResult => {
                Self::ToolResult(serde_json::from_slice(bytes).map_err(|error| fault(error.to_string()))?)
            }
        })
    }
}
