//! Plain HTTP to a daemon over TCP: whole answers with their headers, and bytes as a client would never send them.

use crate::contract;
use crate::daemon::{Daemon, PATIENCE};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// A client of a daemon's TCP listener.
#[derive(Clone)]
pub struct Ask {
    http: reqwest::Client,
    pub base: String,
    token: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Told {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// Method and path, for messages.
    asked: String,
}

impl Ask {
    pub fn new(daemon: &Daemon) -> Self {
        Self::from_address(daemon, Ipv4Addr::LOCALHOST)
    }

    /// A client at another address of this machine: all of 127.0.0.0/8 is its own.
    pub fn from_address(daemon: &Daemon, address: Ipv4Addr) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).local_address(Some(address.into()));
        Self { http: http.build().expect("a client"), base: daemon.url.clone(), token: None }
    }

    /// The same client, of another daemon.
    pub fn at(&self, daemon: &Daemon) -> Self {
        Self { base: daemon.url.clone(), ..self.clone() }
    }

    /// The same with a control token.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Told {
        self.send("GET", path, |request| request).await
    }

    /// Posts `body` as it is, said to be JSON.
    pub async fn post(&self, path: &str, body: impl ToString) -> Told {
        let body = body.to_string();
        self.send("POST", path, |request| request.header(CONTENT_TYPE, "application/json").body(body)).await
    }

    /// Posts `body` under an idempotency key.
    pub async fn post_as(&self, key: &str, path: &str, body: impl ToString) -> Told {
        let body = body.to_string();
        let dress = |request: reqwest::RequestBuilder| {
            request.header(CONTENT_TYPE, "application/json").header("Idempotency-Key", key).body(body)
        };
        self.send("POST", path, dress).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        dress: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Told {
        let asked = format!("{method} {path}");
        let request = self.request(method.parse().expect("a method"), path);
        let answer = dress(request).send().await.unwrap_or_else(|error| panic!("{asked}: {error:?}"));
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let text = answer.text().await.unwrap_or_else(|error| panic!("{asked}: {error:?}"));
        let told = Told { status, headers, text, asked };
        if told.header("content-type").ends_with("json") && method != "HEAD" {
            contract::hold(method, path, status, &told.json());
        }
        told
    }
}

impl Told {
    /// The answer of a success.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}: {}", self.asked, self.text);
        assert_eq!(self.header("content-type"), "application/json", "{}", self.asked);
        self.json()
    }

    /// A refusal: its status and code, in the one shape that all have.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let problem = self.problem();
        assert_eq!((self.status, problem["code"].as_str()), (status, Some(code)), "{}: {}", self.asked, self.text);
        problem
    }

    /// The problem that a refusal tells.
    #[track_caller]
    pub fn problem(&self) -> Value {
        let shown = format!("{} -> {}: {}", self.asked, self.status, self.text);
        assert!((400..500).contains(&self.status) || self.status == 503, "not a refusal: {shown}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{shown}");
        let problem = self.json();
        for name in ["type", "title", "detail", "error", "code"] {
            assert!(problem[name].as_str().is_some_and(|text| !text.is_empty()), "no {name}: {shown}");
        }
        assert_eq!(problem["status"], self.status, "{shown}");
        assert_eq!(problem["ok"], false, "{shown}");
        assert_eq!(problem["error"], problem["detail"], "{shown}");
        assert!(problem["retryable"].is_boolean(), "{shown}");
        assert_eq!(problem["retryable"] == true, self.headers.contains_key("retry-after"), "{shown}");
        problem
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a plain header"))
    }
}

/// Opens a connection and sends `bytes`.
pub fn connect(daemon: &Daemon, bytes: &[u8]) -> TcpStream {
    let address = daemon.url.trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    connection.write_all(bytes).expect("it takes the request");
    connection
}

/// Sends `bytes` and reads until the daemon closes the connection.
pub fn raw(daemon: &Daemon, bytes: &[u8]) -> String {
    let mut answer = Vec::new();
    connect(daemon, bytes).read_to_end(&mut answer).expect("it answers");
    String::from_utf8(answer).expect("text")
}

/// Status and body of a raw answer.
pub fn parts(answer: &str) -> (u16, &str) {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    status.zip(body).unwrap_or_else(|| panic!("not an answer: {answer:?}"))
}
