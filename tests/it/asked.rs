//! What a model service was asked, in words that the protocols share.

use crate::model_server::Received;
use serde_json::{Value, json};

/// A request in the words that both protocols share.
pub struct Asked {
    /// Name, description, and schema of the arguments.
    pub tools: Vec<(String, String, Value)>,
    pub said: Vec<Said>,
    pub streams: bool,
}

/// Something said in it. A call is its id, its tool and its arguments; a result names the id.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    System(String),
    User(String),
    Assistant { text: String, calls: Vec<(String, String, Value)> },
    Result { call: String, text: String },
}

impl Asked {
    pub fn read(received: &Received) -> Self {
        let read: fn(&Value) -> Self =
            if received.path.ends_with("/v1/messages") { Self::read_anthropic } else { Self::read_openai };
        read(&received.body)
    }

    fn read_anthropic(body: &Value) -> Self {
        let tool = |tool: &Value| (text(&tool["name"]), text(&tool["description"]), tool["input_schema"].clone());
        let system = blocks(&body["system"]).into_iter().map(|block| Said::System(text(&block["text"])));
        let said = list(&body["messages"]).iter().flat_map(anthropic_message);
        Self {
            tools: list(&body["tools"]).iter().map(tool).collect(),
            said: system.chain(said).collect(),
            streams: body["stream"] == true,
        }
    }

    fn read_openai(body: &Value) -> Self {
        let tool = |tool: &Value| {
            let function = &tool["function"];
            (text(&function["name"]), text(&function["description"]), function["parameters"].clone())
        };
        Self {
            tools: list(&body["tools"]).iter().map(tool).collect(),
            said: list(&body["messages"]).iter().map(openai_message).collect(),
            streams: body["stream"] == true,
        }
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|(name, ..)| name == tool)
    }

    /// Calls that the turn has made so far.
    pub fn calls(&self) -> usize {
        let calls = self.said.iter().map(|said| match said {
            Said::Assistant { calls, .. } => calls.len(),
            Said::System(_) | Said::User(_) | Said::Result { .. } => 0,
        });
        calls.sum()
    }

    /// The message that the turn is about.
    pub fn message(&self) -> &str {
        let message = self.said.iter().rev().find_map(|said| match said {
            Said::User(text) => Some(text.as_str()),
            Said::System(_) | Said::Assistant { .. } | Said::Result { .. } => None,
        });
        message.expect("a message")
    }
}

fn anthropic_message(message: &Value) -> Vec<Said> {
    let blocks = blocks(&message["content"]);
    if message["role"] == "assistant" {
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        let calls = calls.map(|call| (text(&call["id"]), text(&call["name"]), call["input"].clone())).collect();
        let text = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        return vec![Said::Assistant { text, calls }];
    }
    let said = |block: &Value| match block["type"].as_str() {
        Some("tool_result") => Said::Result { call: text(&block["tool_use_id"]), text: plain(&block["content"]) },
        Some("text") => Said::User(text(&block["text"])),
        other => panic!("a user says {other:?}"),
    };
    blocks.iter().map(said).collect()
}

fn openai_message(message: &Value) -> Said {
    let said = plain(&message["content"]);
    match message["role"].as_str() {
        Some("system") => Said::System(said),
        Some("user") => Said::User(said),
        Some("tool") => Said::Result { call: text(&message["tool_call_id"]), text: said },
        Some("assistant") => {
            let arguments = |call: &Value| serde_json::from_str(&text(&call["function"]["arguments"])).expect("JSON");
            let call = |call: &Value| (text(&call["id"]), text(&call["function"]["name"]), arguments(call));
            let calls = message["tool_calls"].as_array().map(|calls| calls.iter().map(call).collect());
            Said::Assistant { text: said, calls: calls.unwrap_or_default() }
        }
        other => panic!("{other:?} says something"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Blocks of a content, which may be a text that stands for one.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        content => list(content).to_vec(),
    }
}

fn plain(content: &Value) -> String {
    blocks(content).iter().map(|block| text(&block["text"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
