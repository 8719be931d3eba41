//! A stand-in for the model services, on a port of this machine.
//!
//! It speaks Anthropic's Messages and `OpenAI`'s chat completions, always streaming, and answers each request with the
//! next reply of a queue. It has a thread of its own, so it outlives the runtimes and processes that a test stops.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use futures::StreamExt;
use futures::future::Either;
use futures::stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest wait for requests that a test expects.
const PATIENCE: Duration = Duration::from_secs(30);
/// A request that the server reads.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The running server; dropping it stops it and breaks its connections.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// How the server meets a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Streams in the protocol that the request's path calls for.
    Stream(Answer, Ending),
    /// Gives exactly this.
    Plain { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Takes the request and never answers.
    Hang,
}

/// How a stream ends, where it does before its time after that many frames.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Whole,
    /// The connection breaks.
    Broken(usize),
    /// The HTTP answer ends in order, the protocol's does not.
    Short(usize),
    /// Nothing more comes.
    Silent(usize),
    /// An error event comes, and the HTTP answer ends in order.
    Error(usize, Value),
}

/// What the model says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// As Anthropic puts it: `end_turn`, `tool_use`, `max_tokens`.
    pub(crate) stop: &'static str,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// A tool call of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// Sent as it is, in several pieces.
    pub(crate) arguments: String,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), stop: "end_turn", input_tokens: 25, output_tokens: 7, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn call(mut self, id: &str, tool: &str, arguments: &str) -> Self {
        self.calls.push(Call { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() });
        self.stop = "tool_use";
        self
    }

    #[must_use]
    pub(crate) fn stopped(mut self, stop: &'static str) -> Self {
        self.stop = stop;
        self
    }

    #[must_use]
    pub(crate) fn whole(self) -> Reply {
        Reply::Stream(self, Ending::Whole)
    }

    #[must_use]
    pub(crate) fn ending(self, ending: Ending) -> Reply {
        Reply::Stream(self, ending)
    }
}

impl Reply {
    pub(crate) fn status(status: u16, body: &str) -> Self {
        Self::Plain { status, headers: vec![("content-type", "application/json".to_owned())], body: body.to_owned() }
    }

    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Plain { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    changed: Condvar,
}

#[derive(Default)]
struct Book {
    replies: VecDeque<Reply>,
    /// Answers what finds the queue empty.
    otherwise: Option<Script>,
    received: Vec<Received>,
    purchases: usize,
}

type Script = Box<dyn FnMut(&Received) -> Reply + Send>;

impl ModelServer {
    pub(crate) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a listener for tokio");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let app = Router::new().fallback(meet).with_state(Arc::clone(&shared));
        let thread = std::thread::spawn(move || serve(listener, app, stopped));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// `http://127.0.0.1:<port>`, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a reply to the end of the queue. A request that finds the queue empty is told so with status 500.
    pub(crate) fn reply(&self, reply: Reply) {
        self.shared.book().replies.push_back(reply);
    }

    /// Answers whatever finds the queue empty, by what it asks.
    pub(crate) fn otherwise(&self, script: impl FnMut(&Received) -> Reply + Send + 'static) {
        self.shared.book().otherwise = Some(Box::new(script));
    }

    /// Every request so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.book().received.clone()
    }

    /// Answers begun: what a service would have put on the bill.
    pub(crate) fn purchases(&self) -> usize {
        self.shared.book().purchases
    }

    /// Blocks until there have been that many requests.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let few = |book: &mut Book| book.received.len() < count;
        let waiting = self.shared.changed.wait_timeout_while(self.shared.book(), PATIENCE, few).expect("a book");
        assert!(!waiting.1.timed_out(), "{} of {count} requests came", waiting.0.received.len());
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the model server panicked");
        }
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("a book")
    }

    fn enter(&self, received: Received) -> Option<Reply> {
        let mut guard = self.book();
        let book = &mut *guard;
        let scripted = || book.otherwise.as_mut().map(|script| script(&received));
        let reply = book.replies.pop_front().or_else(scripted);
        book.received.push(received);
        book.purchases += usize::from(matches!(reply, Some(Reply::Stream(..))));
        self.changed.notify_all();
        reply
    }
}

fn serve(listener: std::net::TcpListener, app: Router, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let serving = std::pin::pin!(async { axum::serve(listener, app).await });
        if let Either::Left((served, _)) = futures::future::select(serving, stopped).await {
            served.expect("serving");
        }
    });
}

async fn meet(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await.expect("a body");
    let path = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    match shared.enter(Received { path: path.clone(), headers, body }) {
        None => plain(500, &[], "the test queued no reply".to_owned()),
        Some(Reply::Plain { status, headers, body }) => plain(status, &headers, body),
        Some(Reply::Hang) => std::future::pending().await,
        Some(Reply::Stream(answer, ending)) => streamed(frames(&path, &answer), &ending),
    }
}

fn plain(status: u16, headers: &[(&'static str, String)], body: String) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value));
    builder.body(Body::from(body)).expect("a response")
}

fn streamed(frames: Vec<String>, ending: &Ending) -> Response<Body> {
    let (count, error) = match ending {
        Ending::Whole => (frames.len(), None),
        Ending::Broken(count) | Ending::Short(count) | Ending::Silent(count) => (*count, None),
        Ending::Error(count, error) => (*count, Some(format!("event: error\ndata: {error}\n\n"))),
    };
    let sent = frames.into_iter().take(count).chain(error).flat_map(|frame| halves(frame.as_bytes()));
    let sent: Vec<io::Result<Bytes>> = sent.map(Ok).collect();
    // Yielding makes hyper send each piece by itself.
    let sent = stream::iter(sent).then(|piece| async {
        tokio::task::yield_now().await;
        piece
    });
    let broken = || stream::iter([Err(io::Error::other("the connection breaks here"))]);
    let body = match ending {
        Ending::Whole | Ending::Short(_) | Ending::Error(..) => Body::from_stream(sent),
        Ending::Broken(_) => Body::from_stream(sent.chain(broken())),
        Ending::Silent(_) => Body::from_stream(sent.chain(stream::pending())),
    };
    Response::builder().header("content-type", "text/event-stream").body(body).expect("a response")
}

/// In the middle of a frame, and of a character where there is one.
fn halves(bytes: &[u8]) -> [Bytes; 2] {
    let wide = bytes.iter().position(|byte| !byte.is_ascii()).map(|first| first + 1);
    let (first, second) = bytes.split_at(wide.unwrap_or(bytes.len() / 2));
    [Bytes::copy_from_slice(first), Bytes::copy_from_slice(second)]
}

fn frames(path: &str, answer: &Answer) -> Vec<String> {
    match path {
        path if path.ends_with("/v1/messages") => anthropic_frames(answer),
        path if path.ends_with("/chat/completions") => openai_frames(answer),
        path => panic!("no protocol for {path}"),
    }
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(characters.len().div_ceil(3).max(1)).map(|piece| piece.iter().collect()).collect()
}

fn anthropic_frames(answer: &Answer) -> Vec<String> {
    let usage = json!({"input_tokens": answer.input_tokens, "output_tokens": 1});
    let message = json!({"id": "msg_1", "role": "assistant", "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let mut index = 0;
    if !answer.text.is_empty() {
        let delta = |piece: String| json!({"type": "text_delta", "text": piece});
        let block = json!({"type": "text", "text": ""});
        events.extend(anthropic_block(index, &block, pieces(&answer.text).into_iter().map(delta).collect()));
        index += 1;
    }
    for call in &answer.calls {
        let delta = |piece: String| json!({"type": "input_json_delta", "partial_json": piece});
        let block = json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}});
        events.extend(anthropic_block(index, &block, pieces(&call.arguments).into_iter().map(delta).collect()));
        index += 1;
    }
    if answer.stop == "max_tokens" {
        events.pop();
    }
    let delta = json!({"stop_reason": answer.stop, "stop_sequence": null});
    let usage = json!({"output_tokens": answer.output_tokens});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type")))
        .collect()
}

fn anthropic_block(index: usize, block: &Value, deltas: Vec<Value>) -> Vec<Value> {
    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = json!({"type": "content_block_stop", "index": index});
    std::iter::once(start).chain(deltas.into_iter().map(delta)).chain([stop]).collect()
}

fn openai_frames(answer: &Answer) -> Vec<String> {
    let reason = match answer.stop {
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        _ => "stop",
    };
    let choice =
        |delta: Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let mut chunks = vec![choice(json!({"role": "assistant", "content": ""}), Value::Null)];
    let text = pieces(&answer.text).into_iter().map(|piece| json!({"content": piece}));
    let calls = answer.calls.iter().enumerate().flat_map(|(index, call)| openai_call(index, call));
    chunks.extend(text.chain(calls).map(|delta| choice(delta, Value::Null)));
    chunks.push(choice(json!({}), json!(reason)));
    let usage = json!({"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens});
    chunks.push(json!({"choices": [], "usage": usage}));
    let done = "data: [DONE]\n\n".to_owned();
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).chain([done]).collect()
}

fn openai_call(index: usize, call: &Call) -> Vec<Value> {
    let function = json!({"name": call.tool, "arguments": ""});
    let start = json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]});
    let delta = |piece: String| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
    std::iter::once(start).chain(pieces(&call.arguments).into_iter().map(delta)).collect()
}
