//! Clients that are slow, idle or many: others are served meanwhile, and what they cost is bounded. For readers that do
//! not read see `stream`.

use crate::ask::{Ask, connect, parts};
use crate::daemon::{Daemon, Home, PATIENCE, resident};
use holon::words::limit::{REQUEST_BODIES_BYTES_MAX, REQUEST_BODY_BYTES_MAX};
use reqwest::Method;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

/// What all that is done here may add to the daemon's memory.
const GROWTH_KIB_MAX: u64 = 64 * 1024;
/// Longer than a request takes while a thousand others do nothing; shorter than these are kept.
const PROMPTLY: Duration = Duration::from_secs(5);

pub const STATUS: &[u8] = b"GET /agents/main/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// By how much it has grown, which is bounded.
fn growth(daemon: &Daemon, before: u64) -> String {
    let after = resident(daemon);
    assert!(after < before + GROWTH_KIB_MAX, "{before} KiB became {after} KiB");
    format!("{before} KiB became {after} KiB")
}

/// Prompts, reads and new connections, answered while others hold theirs.
async fn check_service(daemon: &Daemon) {
    let ask = Ask::new(daemon);
    let served = async {
        for _ in 0..20 {
            ask.post("/agents/main/enqueue", json!({"text": "x"})).await.ok();
            ask.send("GET", "/agents/main/status", |request| request.header("connection", "close")).await.ok();
        }
    };
    tokio::time::timeout(PROMPTLY, served).await.expect("others are served promptly");
}

/// Waits until the bodies under way have so many bytes together.
pub async fn taken_in(daemon: &Daemon, bytes: usize) {
    let ask = Ask::new(daemon);
    let gauge = format!("\nholon_request_bodies_bytes {bytes}\n");
    let shown = async { while !ask.get("/metrics").await.text.contains(&gauge) {} };
    tokio::time::timeout(PATIENCE, shown).await.expect("the daemon reads what was sent");
}

/// What the daemon says before it closes the connection.
pub fn last_words(mut connection: TcpStream) -> String {
    let mut said = Vec::new();
    // A connection that is reset is closed as well.
    let _ = connection.read_to_end(&mut said);
    String::from_utf8(said).expect("text")
}

#[tokio::test]
async fn slow_heads_slow_bodies_and_idle_connections_hold_up_nobody() {
    let daemon = Home::new().serve();
    check_service(&daemon).await;
    let before = resident(&daemon);
    let head = "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let body = format!("{head}Content-Length: 1000000\r\n\r\n{{\"text\": \"");
    let hold = |count: usize, begun: &str| -> Vec<TcpStream> {
        (0..count).map(|_| connect(&daemon, begun.as_bytes())).collect()
    };
    let (idle, mut heads, mut bodies) = (hold(1_000, ""), hold(100, head), hold(100, &body));
    check_service(&daemon).await;
    println!("1,000 idle connections, 100 slow heads and 100 slow bodies: {}", growth(&daemon, before));

    // One more byte now and then gives no more time.
    for connection in heads.iter_mut().chain(&mut bodies) {
        connection.write_all(b"x").expect("it is open");
    }
    let closed = tokio::task::spawn_blocking(move || {
        let silent = idle.into_iter().chain(heads).map(last_words).filter(String::is_empty).count();
        (silent, bodies.into_iter().map(last_words).collect::<Vec<_>>())
    });
    let (silent, answers) = closed.await.expect("all are closed");
    assert_eq!(silent, 1_100, "who brings no request is not answered");
    for answer in answers {
        let (status, body) = parts(&answer);
        assert_eq!(status, 408, "{answer}");
        assert!(body.contains("body_too_slow"), "{body}");
    }
    check_service(&daemon).await;
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused_without_being_taken_in() {
    let daemon = Home::new().serve();
    check_service(&daemon).await;
    let before = resident(&daemon);
    let head = "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n";
    for length in ["Content-Length: 104857600", "Transfer-Encoding: chunked"] {
        let mut connection = connect(&daemon, format!("{head}{length}\r\n\r\n").as_bytes());
        let chunk = format!("100000\r\n{}\r\n", " ".repeat(0x0010_0000));
        let sent = (0..100).take_while(|_| connection.write_all(chunk.as_bytes()).is_ok()).count();
        assert!(sent < 100, "{length}: it does not listen to the end");
        check_service(&daemon).await;
    }
    println!("100 MB sent: {}", growth(&daemon, before));
}

#[tokio::test]
async fn bodies_under_way_have_so_much_room_together_and_what_comes_beyond_it_is_told_to_come_again() {
    let daemon = Home::new().serve();
    check_service(&daemon).await;
    let before = resident(&daemon);
    let head = "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let almost =
        format!("{head}Content-Length: {REQUEST_BODY_BYTES_MAX}\r\n\r\n{}", " ".repeat(REQUEST_BODY_BYTES_MAX - 1));
    let count = REQUEST_BODIES_BYTES_MAX / REQUEST_BODY_BYTES_MAX;
    let held: Vec<TcpStream> = (0..count).map(|_| connect(&daemon, almost.as_bytes())).collect();
    taken_in(&daemon, held.len() * (REQUEST_BODY_BYTES_MAX - 1)).await;
    println!(
        "{count} bodies but for a byte each: {}",
        growth(&daemon, before + REQUEST_BODIES_BYTES_MAX as u64 / 1024)
    );
    let ask = Ask::new(&daemon);
    let refused = ask.post("/enqueue", json!({"text": "x".repeat(100)})).await;
    assert_eq!(refused.header("retry-after"), "1");
    refused.refused(503, "overloaded");
    ask.get("/agents/main/status").await.ok();
    drop(held);
    taken_in(&daemon, 0).await;
    check_service(&daemon).await;
}

/// A daemon that may open 256 files, which makes 64 connections for each listener, half of them for one peer.
pub fn limited(home: &Home) -> Daemon {
    let mut limited = Command::new("/bin/sh");
    let serve = home.holon(&["serve", "--listen", "127.0.0.1:0"]);
    limited.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    limited.env_clear().current_dir(home.workspace());
    limited.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    home.serve_by(limited)
}

/// Waits until a connection is served again.
async fn served(daemon: &Daemon) {
    let served = async {
        while !last_words(connect(daemon, STATUS)).starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("a place that is free is taken");
}

#[tokio::test]
async fn a_connection_too_many_is_told_to_come_again_and_work_goes_on() {
    let home = Home::new();
    let daemon = limited(&home);
    let mut held: Vec<TcpStream> = (0..32).map(|_| connect(&daemon, b"")).collect();
    let refused = last_words(connect(&daemon, STATUS));
    let (status, body) = parts(&refused);
    assert_eq!(status, 503, "{refused}");
    assert!(refused.contains("Retry-After: 1") && body.contains("too_many_connections"), "{refused}");

    // The socket has places of its own, and what a command needs is left when these are taken as well.
    let socket = home.path().join("holon.sock");
    let _held_too: Vec<UnixStream> = (0..60).map(|_| UnixStream::connect(&socket).expect("it listens")).collect();
    let message = daemon.prompt("main", "$ echo through the socket").await;
    let answer = daemon.answer("main", &message).await;
    assert!(answer["text"].as_str().is_some_and(|text| text.contains("through the socket")), "{answer}");

    drop(held.pop());
    served(&daemon).await;
}

#[tokio::test]
async fn streams_leave_places_for_those_who_ask_something_else() {
    let daemon = limited(&Home::new());
    let mut streams = Vec::new();
    for number in 0..51 {
        // No peer may hold more than its share.
        let ask = Ask::from_address(&daemon, Ipv4Addr::new(127, 0, 0, 2 + number % 10));
        streams.push(ask.request(Method::GET, "/events/stream").send().await.expect("a stream"));
    }
    let ask = Ask::new(&daemon);
    assert!(streams.iter().all(|stream| stream.status() == 200));
    ask.get("/events/stream").await.refused(503, "too_many_streams");
    served(&daemon).await;
    drop(streams.pop());
    let subscribed =
        async { while ask.request(Method::GET, "/events/stream").send().await.expect("told").status() != 200 {} };
    tokio::time::timeout(PATIENCE, subscribed).await.expect("a place that is free is taken");
}

#[tokio::test]
async fn who_asks_and_asks_and_reads_no_answer_loses_the_connection() {
    let daemon = Home::new().serve();
    check_service(&daemon).await;
    let before = resident(&daemon);
    let mut connection = connect(&daemon, b"");
    connection.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let requests = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    let cut = tokio::task::spawn_blocking(move || {
        loop {
            if let Err(error) = connection.write_all(&requests) {
                return error.kind();
            }
        }
    });
    let kind = cut.await.expect("told");
    assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
    println!("requests without end: {}", growth(&daemon, before));
    check_service(&daemon).await;
}
