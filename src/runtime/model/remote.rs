//! Models behind a network, through genai.
//!
//! genai is told everything: where to ask, with which headers, and for which protocol. It reads no environment and
//! guesses nothing from a model's name. Answers are streamed so that a long one is never an idle connection, and an
//! answer is one only when its stream came to its proper end.

use super::failure::{ATTEMPT_MESSAGE_BYTES_MAX, bounded, failed, of_error_event, of_genai};
use super::{Provider, conversation, raw_text, within_bound};
use crate::context::request::{AssistantPart, ModelAnswer, ModelRequest, RawCall};
use crate::events::turn::{AttemptError, AttemptErrorKind, StopReason, Usage};
use crate::runtime::outbound;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use genai::adapter::AdapterKind;
use genai::chat::{ChatFrameSink, ChatStreamEvent, FrameCtx, RawFrameRef, StreamEnd, ToolCall};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A service's way of being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s chat completions, which many others speak too.
    OpenAi,
    /// Google's generateContent.
    Gemini,
    /// Ollama's own chat.
    Ollama,
}

/// Where a provider is and on whose account it is asked.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The first part of a model reference.
    pub name: String,
    pub protocol: Protocol,
    /// None for the protocol's own service. `OpenAI`'s and Gemini's hold the version, as in `https://host/v1`.
    pub base_url: Option<String>,
    pub api_key: Option<SecretString>,
    /// Whether the key goes into `Authorization: Bearer` even if the protocol has a header of its own.
    pub bearer: bool,
    /// Models that are found by their bare name.
    pub models: Vec<String>,
    /// Longest wait for the answer's headers, and then longest silence within it.
    pub timeout_ms: u64,
}

/// Asks one provider.
pub struct Remote {
    config: ProviderConfig,
    client: Client,
}

/// The HTTP client cannot be built: no roots of trust on this machine, for example.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client for the provider {provider}: {reason}")]
pub struct ClientError {
    pub provider: String,
    pub reason: String,
}

impl Protocol {
    fn adapter(self) -> AdapterKind {
        match self {
            Self::Anthropic => AdapterKind::Anthropic,
            Self::OpenAi => AdapterKind::OpenAI,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    fn base_url_default(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434",
        }
    }

    /// Whether genai hands out a call's arguments as text that grows, and not as a finished value.
    fn streams_arguments(self) -> bool {
        matches!(self, Self::Anthropic | Self::OpenAi)
    }
}

impl ProviderConfig {
    fn url(&self, model: &str) -> String {
        let base = self.base_url.as_deref().unwrap_or(self.protocol.base_url_default()).trim_end_matches('/');
        match self.protocol {
            Protocol::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
            Protocol::OpenAi => format!("{base}/chat/completions"),
            Protocol::Gemini => format!("{base}/models/{model}:streamGenerateContent?alt=sse"),
            Protocol::Ollama => format!("{base}/api/chat"),
        }
    }

    fn headers(&self) -> Vec<(String, String)> {
        let version = ("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned());
        let version = (self.protocol == Protocol::Anthropic).then_some(version);
        let key = self.api_key.as_ref().map(|key| self.key_header(key.expose_secret()));
        version.into_iter().chain(key).collect()
    }

    fn key_header(&self, key: &str) -> (String, String) {
        match self.protocol {
            Protocol::Anthropic if !self.bearer => ("x-api-key".to_owned(), key.to_owned()),
            Protocol::Gemini if !self.bearer => ("x-goog-api-key".to_owned(), key.to_owned()),
            Protocol::Anthropic | Protocol::Gemini | Protocol::OpenAi | Protocol::Ollama => {
                ("authorization".to_owned(), format!("Bearer {key}"))
            }
        }
    }
}

impl Remote {
    /// # Errors
    /// When the base URL is none, or the HTTP client cannot be built.
    pub fn new(config: ProviderConfig) -> Result<Self, ClientError> {
        let fault = |reason: String| ClientError { provider: config.name.clone(), reason };
        if let Some(reason) = config.base_url.as_deref().and_then(url_fault) {
            return Err(fault(reason.to_owned()));
        }
        let timeout = Duration::from_millis(config.timeout_ms);
        let http = outbound::client(&config.url("")).connect_timeout(timeout).build();
        let http = http.map_err(|error| fault(error.to_string()))?;
        let client = Client::builder().with_reqwest(http).build().map_err(|error| fault(error.to_string()))?;
        Ok(Self { config, client })
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, AttemptError> {
        let heard = Arc::new(Heard::default());
        let protocol = self.config.protocol;
        let options = conversation::chat_options(protocol, request, self.config.timeout_ms)
            .with_raw_frame_sink_arc(Arc::clone(&heard) as Arc<dyn ChatFrameSink>);
        let conversation = conversation::chat_request(protocol, request)?;
        let target = self.target(&request.model);
        let answering = self.client.exec_chat_stream(target, conversation, Some(&options)).await;
        let stream = answering.map_err(|error| self.without_key(of_genai(&error)))?.stream;
        match self.listen(stream).await? {
            Some(answer) => Ok(answer),
            None => Err(self.without_key(heard.cut_short())),
        }
    }

    /// None when the stream is over and the answer is not.
    async fn listen(
        &self,
        mut stream: impl Stream<Item = genai::Result<ChatStreamEvent>> + Unpin,
    ) -> Result<Option<ModelAnswer>, AttemptError> {
        let mut answer = Answering { protocol: self.config.protocol, said: AssistantPart::default() };
        while let Some(event) = stream.next().await {
            if let Some(end) = answer.hear(event.map_err(|error| self.without_key(of_genai(&error)))?)? {
                return answer.finish(&end);
            }
        }
        Ok(None)
    }

    /// Complete with its address and headers, so that genai resolves neither.
    fn target(&self, model: &str) -> ServiceTarget {
        let url = self.config.url(model);
        ServiceTarget {
            endpoint: Endpoint::from_owned(url.as_str()),
            auth: AuthData::RequestOverride { url, headers: Headers::from(self.config.headers()) },
            model: ModelIden::new(self.config.protocol.adapter(), model.to_owned()),
        }
    }

    /// Some services repeat the key in their answers, and a URL may hold a password. Cutting comes after taking it out: half a key would not be
    /// recognized.
    fn without_key(&self, mut failure: AttemptError) -> AttemptError {
        if let Some(key) = self.config.api_key.as_ref().map(ExposeSecret::expose_secret).filter(|key| !key.is_empty()) {
            failure.message = failure.message.replace(key, "[key]");
        }
        if let Some(url) = &self.config.base_url {
            failure.message = failure.message.replace(url, &outbound::without_credentials(url));
        }
        failure.message = bounded(failure.message);
        failure
    }
}

/// Why a text is no base URL; none when it is one. The text may hold a key, so it is not repeated.
fn url_fault(base_url: &str) -> Option<&'static str> {
    match Url::parse(base_url) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("its base_url begins with neither http:// nor https://")
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            Some("its base_url has a query, which is no part of it")
        }
        Ok(_) => None,
        Err(_) => Some("its base_url is not a URL"),
    }
}

impl Provider for Remote {
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>> {
        Box::pin(self.ask(request))
    }
}

/// The last that a stream held in the protocol's form, cut to the length of a message; genai's events do not tell.
#[derive(Debug, Default)]
struct Heard {
    last: Mutex<String>,
}

impl ChatFrameSink for Heard {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        if !frame.data.is_empty() {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.clear();
            last.push_str(&frame.data[..frame.data.floor_char_boundary(ATTEMPT_MESSAGE_BYTES_MAX)]);
        }
    }
}

impl Heard {
    /// Why there is no answer although nothing failed. genai passes over the error lines of Ollama.
    fn cut_short(&self) -> AttemptError {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_str::<Value>(&last) {
            Ok(event) if event.get("error").is_some() => of_error_event(&event),
            Ok(_) | Err(_) if last.is_empty() => failed(
                AttemptErrorKind::InvalidAnswer,
                "what came is not a stream of this protocol: check the base URL",
            ),
            Ok(_) | Err(_) => failed(AttemptErrorKind::Connection, "the stream ended before the answer did"),
        }
    }
}

/// An answer while it comes.
struct Answering {
    protocol: Protocol,
    said: AssistantPart,
}

impl Answering {
    fn hear(&mut self, event: ChatStreamEvent) -> Result<Option<StreamEnd>, AttemptError> {
        match event {
            ChatStreamEvent::Chunk(chunk) => self.said.text.push_str(&chunk.content),
            ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call),
            ChatStreamEvent::End(end) => return Ok(Some(end)),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
        }
        within_bound(&self.said)?;
        Ok(None)
    }

    fn call(&mut self, call: ToolCall) {
        let ToolCall { call_id, fn_name, fn_arguments, .. } = call;
        if self.protocol.streams_arguments() {
            self.growing_call(call_id, fn_name, raw_text(fn_arguments));
        } else if fn_arguments.is_null() {
            self.whole_call(call_id, fn_name, String::new());
        } else {
            self.whole_call(call_id, fn_name, fn_arguments.to_string());
        }
    }

    /// genai repeats a growing call as a whole, so its text is taken, not appended.
    fn growing_call(&mut self, id: String, tool: String, arguments: String) {
        match self.said.calls.iter_mut().find(|known| known.id == id) {
            Some(known) => known.arguments = arguments,
            None => self.said.calls.push(RawCall { id, tool, arguments }),
        }
    }

    /// genai numbers calls without an id anew in each chunk.
    fn whole_call(&mut self, id: String, tool: String, arguments: String) {
        let taken = self.said.calls.iter().any(|known| known.id == id);
        let id = if taken { format!("call#{tool}#{}", self.said.calls.len()) } else { id };
        self.said.calls.push(RawCall { id, tool, arguments });
    }

    /// None when genai made the end up because the stream was over.
    fn finish(mut self, end: &StreamEnd) -> Result<Option<ModelAnswer>, AttemptError> {
        if !self.protocol.streams_arguments() && end.captured_stop_reason.is_none() {
            return Ok(None);
        }
        self.check_calls(end)?;
        let stop = stop_reason(end, !self.said.calls.is_empty());
        self.fill_empty_arguments(stop);
        let usage = end.captured_usage.as_ref();
        let tokens = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
        let usage = Usage {
            input_tokens: tokens(usage.and_then(|usage| usage.prompt_tokens)),
            output_tokens: tokens(usage.and_then(|usage| usage.completion_tokens)),
        };
        Ok(Some(ModelAnswer { said: self.said, stop, usage }))
    }

    /// genai keeps calls by their index and we by their id: a service that mixes them up has lost a call.
    fn check_calls(&self, end: &StreamEnd) -> Result<(), AttemptError> {
        let captured = end.captured_tool_calls().map_or(0, |calls| calls.len());
        if captured == self.said.calls.len() {
            return Ok(());
        }
        Err(failed(AttemptErrorKind::InvalidAnswer, "the ids and the indexes of the tool calls do not agree"))
    }

    /// A call without arguments comes as no text at all, unless it was cut before the first of it.
    fn fill_empty_arguments(&mut self, stop: StopReason) {
        let whole = if stop == StopReason::MaxTokens { self.said.calls.len().saturating_sub(1) } else { usize::MAX };
        for call in self.said.calls.iter_mut().take(whole).filter(|call| call.arguments.is_empty()) {
            "{}".clone_into(&mut call.arguments);
        }
    }
}

/// Some services, Gemini among them, say `stop` where they call tools.
fn stop_reason(end: &StreamEnd, calls: bool) -> StopReason {
    use genai::chat::StopReason as Said;
    match &end.captured_stop_reason {
        Some(Said::MaxTokens(_)) => StopReason::MaxTokens,
        Some(Said::Completed(_) | Said::ToolCall(_)) if calls => StopReason::ToolUse,
        Some(Said::Completed(_)) => StopReason::EndTurn,
        Some(Said::ToolCall(_) | Said::ContentFilter(_) | Said::StopSequence(_) | Said::Other(_)) | None => {
            StopReason::Other
        }
    }
}
