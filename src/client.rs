//! A client of the HTTP surface, for the command line.

use crate::runtime::outbound::without_credentials;
use crate::wire::problem::{Problem, UNKNOWN};
use futures::{Stream, StreamExt};
use reqwest::header::LINK;
use reqwest::{Method, Response};
use serde_json::Value;
use sse_stream::SseStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The socket in a home. It needs no token.
    Socket(PathBuf),
    Url(String),
}

/// Asks one server.
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    address: Address,
}

/// Why there is no answer to use.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach holon at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    /// The server's refusal, in its own words.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub struct StreamedEvent {
    pub seq: u64,
    pub kind: String,
    pub data: Value,
}

impl Client {
    /// Connects nowhere yet.
    pub fn new(address: Address, token: Option<String>) -> Result<Self, ClientError> {
        let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).no_proxy();
        let (builder, base) = match &address {
            Address::Socket(path) => (builder.unix_socket(path.clone()), "http://localhost".to_owned()),
            Address::Url(url) => (builder, url.trim_end_matches('/').to_owned()),
        };
        let http = builder.build().map_err(|error| unreachable(&address, &error))?;
        Ok(Self { http, base, token, address })
    }

    /// Whether a server answers at the socket in `path`.
    pub async fn answers(path: &Path) -> bool {
        let client = Self::new(Address::Socket(path.to_owned()), None);
        match client {
            Ok(client) => client.get("/healthz").await.is_ok(),
            Err(_) => false,
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value, ClientError> {
        read(self.send(Method::GET, path, None).await?).await
    }

    /// All entries of a list, page after page.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, ClientError> {
        let mut entries = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let response = accepted(self.send(Method::GET, &path, None).await?).await?;
            next = response.headers().get(LINK).and_then(|link| next_page(link.to_str().ok()?));
            entries.extend(response.json::<Vec<Value>>().await.map_err(unreadable)?);
        }
        Ok(entries)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        read(self.send(Method::POST, path, Some(body)).await?).await
    }

    /// Follows an event stream until it ends.
    pub async fn stream(
        &self,
        path: &str,
    ) -> Result<impl Stream<Item = Result<StreamedEvent, ClientError>> + Unpin + use<>, ClientError> {
        let response = accepted(self.send(Method::GET, path, None).await?).await?;
        let frames = SseStream::from_bytes_stream(response.bytes_stream());
        Ok(Box::pin(frames.filter_map(|frame| {
            std::future::ready(match frame {
                Ok(frame) => frame.data.is_some().then(|| event(frame)),
                Err(error) => Some(Err(ClientError::Unreadable(error.to_string()))),
            })
        })))
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Response, ClientError> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        request.send().await.map_err(|error| unreachable(&self.address, &error))
    }
}

fn event(frame: sse_stream::Sse) -> Result<StreamedEvent, ClientError> {
    let odd = |reason: &str| ClientError::Unreadable(format!("a stream's frame {reason}"));
    let seq = frame.id.as_deref().and_then(|id| id.parse().ok()).ok_or_else(|| odd("has no event_seq"))?;
    let data = serde_json::from_str(frame.data.as_deref().unwrap_or_default());
    let data = data.map_err(|error| odd(&error.to_string()))?;
    Ok(StreamedEvent { seq, kind: frame.event.unwrap_or_default(), data })
}

/// The path of the page that follows, from a `Link` as our server writes it.
fn next_page(link: &str) -> Option<String> {
    let (path, relation) = link.strip_prefix('<')?.split_once('>')?;
    (relation.trim() == "; rel=\"next\"").then(|| path.to_owned())
}

/// A success passes; anything else becomes the problem that it tells.
async fn accepted(response: Response) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.map_err(unreadable)?;
    let problem = serde_json::from_str(&text).unwrap_or_else(|_| {
        Problem::new(status.as_u16(), UNKNOWN, format!("the server answered HTTP {status}: {text}"))
    });
    Err(ClientError::Refused(Box::new(problem)))
}

async fn read(response: Response) -> Result<Value, ClientError> {
    accepted(response).await?.json().await.map_err(unreadable)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err wants")]
fn unreadable(error: reqwest::Error) -> ClientError {
    ClientError::Unreadable(error.to_string())
}

fn unreachable(address: &Address, error: &reqwest::Error) -> ClientError {
    let address = match address {
        Address::Socket(path) => path.display().to_string(),
        Address::Url(url) => without_credentials(url),
    };
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    ClientError::Unreachable { address, reason }
}
