//! Requests that nobody would send, sent: to every documented route, and to none.
//!
//! `HOLON_FUZZ_SECONDS=3600 cargo test fuzz` looks further. Every answer in JSON is held against the document, too.

use crate::ask::{Ask, connect};
use crate::contract::document;
use crate::daemon::{Daemon, Home, resident};
use crate::openapi::{Operation, operations};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

const SECONDS_DEFAULT: u64 = 5;
const SENDERS: u64 = 4;
/// What the daemon may grow by, once it is warm.
const GROWTH_KIB_MAX: u64 = 32 * 1024;

/// Routes that end the agent or the daemon, or whose answers have no end.
const LEFT_OUT: &[&str] = &["/stream", "/archive", "/runtime/shutdown"];

const IDS: &[&str] = &["main", "main", "other", "nobody"];
const RECORDS: &[&str] = &["msg", "work", "task", "timer", "wait", "trigger", "opbind", "notice", "ws"];

const WORDS: &[&str] = &[
    "",
    "text",
    "json",
    "brief",
    "channel",
    "webhook",
    "operator",
    "normal",
    "interject",
    "webhook_event",
    "start",
    "set",
    "\u{0}",
    "\u{10FFFF}",
    "../../etc",
    "trusted_operator",
    "run-1",
    "work-1",
    "ws-1",
    "opbind-1",
    "enqueue_message",
    "/",
    "http://127.0.0.1:1/",
    "in_progress",
    "open-2",
    "18446744073709551616",
    "-1",
    "1e999",
];

/// xorshift64*, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.roll(choices.len())]
    }

    fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        let length = self.roll(length_max);
        (0..length).map(|_| self.roll(256) as u8).collect()
    }

    /// Text that a path or a query may hold, encoded where it must be.
    fn encoded(&mut self) -> String {
        let byte = |byte: u8| match byte {
            plain if plain.is_ascii_alphanumeric() => char::from(plain).to_string(),
            other => format!("%{other:02X}"),
        };
        self.bytes(12).into_iter().map(byte).collect()
    }

    fn json(&mut self, names: &[&str], depth: usize) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(usize::MAX) as i64 - (1 << 29)),
            3 => json!(f64::MAX / (1 + self.roll(9)) as f64),
            4 => json!(self.of(WORDS)),
            5 => (0..self.roll(4)).map(|_| self.json(names, depth - 1)).collect(),
            _ => {
                let member = |dice: &mut Self| ((*dice.of(names)).to_owned(), dice.json(names, depth - 1));
                Value::Object((0..self.roll(5)).map(|_| member(self)).collect())
            }
        }
    }

    /// A documented path, its parameters filled with what fits, what might, and what cannot.
    fn path(&mut self, operation: &Operation) -> String {
        let record = match self.roll(4) {
            0 => self.encoded(),
            _ => format!("{}-{}", self.of(RECORDS), self.roll(6)),
        };
        let id = if self.roll(6) == 0 { self.encoded() } else { (*self.of(IDS)).to_owned() };
        let path = operation.template.replace("{id}", &id).replace("{rid}", &record).replace("{token}", &record);
        let names: Vec<&str> = operation.parameters("query").filter_map(|told| told["name"].as_str()).collect();
        let asked: Vec<String> = (0..self.roll(3)).map(|_| self.asked(&names)).collect();
        if asked.is_empty() { path } else { format!("{path}?{}", asked.join("&")) }
    }

    fn asked(&mut self, names: &[&str]) -> String {
        let name = if names.is_empty() || self.roll(4) == 0 { self.encoded() } else { (*self.of(names)).to_owned() };
        let known =
            ["0", "1", "7", "asc", "operator", "local_debug", "idle", "open-2", "ended-2", "99999999999999999999"];
        let value = if self.roll(2) == 0 { self.encoded() } else { (*self.of(&known)).to_owned() };
        format!("{name}={value}")
    }

    /// The documented body with a member altered, something else altogether, or no JSON.
    fn body(&mut self, operation: &Operation, names: &[&str]) -> Vec<u8> {
        match (self.roll(8), operation.body()) {
            (0, _) => self.bytes(64),
            (1, _) | (_, None) => self.json(names, 3).to_string().into_bytes(),
            (_, Some((_, example))) => {
                let mut body = example.clone();
                if let Some(members) = body.as_object_mut() {
                    let known: Vec<String> = members.keys().cloned().collect();
                    let name = if known.is_empty() || self.roll(5) == 0 {
                        (*self.of(names)).into()
                    } else {
                        self.of(&known).clone()
                    };
                    members.insert(name, self.json(names, 2));
                }
                body.to_string().into_bytes()
            }
        }
    }
}

/// The names of all members that clients send.
fn members() -> Vec<&'static str> {
    let shapes = document()["components"]["schemas"].as_object().expect("shapes").values();
    let members = shapes.filter_map(|shape| shape["properties"].as_object()).flat_map(|members| members.keys());
    members.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
}

fn targets() -> Vec<Operation> {
    let left_out = |template: &str| LEFT_OUT.iter().any(|end| template.ends_with(end));
    operations().into_iter().filter(|operation| !left_out(operation.template)).collect()
}

/// Sends requests until it is stopped.
async fn send_for_ever(ask: Ask, seed: u64) {
    let (targets, names) = (targets(), members());
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for sent in 0_u64.. {
        let operation = dice.of(&targets);
        let (path, body) = (dice.path(operation), dice.body(operation, &names));
        let method = if dice.roll(8) == 0 { *dice.of(&["GET", "POST", "PUT", "HEAD"]) } else { &operation.method };
        let kind = *dice.of(&["application/json", "application/json", "application/json", "text/plain", "x/\u{7f}"]);
        let header = (
            *dice.of(&["idempotency-key", "last-event-id", "content-encoding", "range"]),
            *dice.of(&["", "k1", "k2", "7"]),
        );
        let told = ask.send(method, &path, |request| {
            let request = if header.1.is_empty() { request } else { request.header(header.0, header.1) };
            let is_read = matches!(method, "GET" | "HEAD");
            if is_read || kind.contains('\u{7f}') {
                request
            } else {
                request.header("content-type", kind).body(body.clone())
            }
        });
        let told = told.await;
        let body = String::from_utf8_lossy(&body);
        assert!(told.status < 500, "seed {seed}, request {sent}: {method} {path} {body}: {}", told.text);
        if told.status >= 400 && method != "HEAD" {
            told.problem();
        }
    }
}

/// Sends what is not quite HTTP until it is stopped; whatever is answered is no failure of the server's.
fn send_heads(daemon: &Daemon, seed: u64, count: usize) {
    const PARTS: &[&str] = &[
        "GET / HTTP/1.1\r\n",
        "POST /enqueue HTTP/1.1\r\n",
        "GET /agents/main/state HTTP/1.0\r\n",
        "Host: localhost\r\n",
        "Host: \r\n",
        "Host: a\r\nHost: b\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\nContent-Length: 3\r\n",
        "Content-Type: application/json\r\n",
        "Idempotency-Key: \u{1}\r\n",
        "Authorization: Bearer \r\n",
        "Expect: 100-continue\r\n",
        "Upgrade: h2c\r\nConnection: upgrade\r\n",
        ": \r\n",
        "a b: c\r\n",
        "\r\n",
        "\r\n\r\n",
        "{\"text\":\"x\"}",
        "ffffffffffffffff1\r\nx\r\n",
        "0\r\n\r\n",
    ];
    let mut dice = Dice(seed);
    for _ in 0..count {
        let mut head = Vec::new();
        for _ in 0..1 + dice.roll(7) {
            head.extend_from_slice(dice.of(PARTS).as_bytes());
            let noise = if dice.roll(6) == 0 { 16 } else { 1 };
            head.extend(dice.bytes(noise));
        }
        let mut connection = connect(daemon, b"");
        // A server that has seen enough closes before it has read all.
        let _ = connection.write_all(&head).and_then(|()| connection.shutdown(Shutdown::Write));
        let mut said = Vec::new();
        let _ = connection.read_to_end(&mut said);
        let failed = said.starts_with(b"HTTP/1.1 5") || said.starts_with(b"HTTP/1.0 5");
        assert!(!failed, "{} -> {}", String::from_utf8_lossy(&head), String::from_utf8_lossy(&said));
    }
}

fn seconds() -> u64 {
    let chosen = std::env::var("HOLON_FUZZ_SECONDS").ok();
    chosen.map_or(SECONDS_DEFAULT, |text| text.parse().expect("HOLON_FUZZ_SECONDS is a number of seconds"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_sent_is_answered_or_refused_in_the_one_shape() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let fuzz = |seconds: u64, seed: u64| {
        let senders = (0..SENDERS).map(|sender| send_for_ever(ask.clone(), 1 + seed + sender));
        tokio::time::timeout(Duration::from_secs(seconds), futures::future::join_all(senders))
    };
    send_heads(&daemon, 7, 200);
    fuzz(seconds().div_ceil(4), 0).await.expect_err("it goes on for ever");
    let warm = resident(&daemon);
    send_heads(&daemon, 11, 200);
    fuzz(seconds(), SENDERS).await.expect_err("it goes on for ever");
    let after = resident(&daemon);
    println!("warm {warm} KiB, after {} s more {after} KiB", seconds());
    assert!(after < warm + GROWTH_KIB_MAX, "{warm} KiB became {after} KiB");
    assert!(daemon.is_whole("main").await);
    assert_eq!(ask.get("/healthz").await.ok()["ok"], true);
}
