//! A server that goes down: what is under way ends, what comes meanwhile is refused, and it says so by its exit code.

use crate::ask::{connect, parts};
use crate::daemon::{Daemon, Home, PATIENCE, of_kind};
use crate::slow::{STATUS, last_words, taken_in};
use futures::StreamExt;
use nix::sys::signal::Signal;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use tokio::time::timeout;

const BODY: &str = r#"{"text": "under way"}"#;

/// A request whose body has come but for its end.
async fn begin(daemon: &Daemon) -> TcpStream {
    let head = "POST /agents/main/enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let begun = format!("{head}\r\nContent-Length: {}\r\n\r\n{}", BODY.len(), &BODY[..BODY.len() - 1]);
    let connection = connect(daemon, begun.as_bytes());
    taken_in(daemon, BODY.len() - 1).await;
    connection
}

/// Waits until the daemon refuses what comes.
async fn refuses(daemon: &Daemon) {
    let refused = async {
        let mut told = String::new();
        while !told.contains("shutting_down") {
            tokio::task::yield_now().await;
            told = last_words(connect(daemon, STATUS));
        }
        told
    };
    let told = timeout(PATIENCE, refused).await.expect("it goes down");
    assert!(parts(&told).0 == 503 && told.to_lowercase().contains("retry-after: 1"), "{told}");
}

/// By a signal, or by the route.
async fn tell(daemon: &Daemon, signal: Option<Signal>) {
    match signal {
        Some(signal) => daemon.signal(signal),
        None => drop(daemon.post("/control/runtime/shutdown", json!({})).await),
    }
}

#[tokio::test]
async fn what_is_under_way_is_answered_streams_end_and_what_comes_meanwhile_is_refused() {
    for signal in [Some(Signal::SIGTERM), Some(Signal::SIGINT), None] {
        let home = Home::new();
        let daemon = home.serve();
        let mut stream = daemon.client.stream("/agents/main/events/stream?after_seq=0").await.expect("a stream");
        let mut under_way = begin(&daemon).await;
        tell(&daemon, signal).await;
        refuses(&daemon).await;
        let ended = async { while stream.next().await.transpose().expect("whole frames").is_some() {} };
        timeout(PATIENCE, ended).await.expect("the stream ends");
        under_way.write_all(&BODY.as_bytes()[BODY.len() - 1..]).expect("it listens");
        let answer = last_words(under_way);
        assert_eq!(parts(&answer).0, 200, "{signal:?}: {answer}");
        assert!(daemon.ended().success(), "{signal:?}");

        let daemon = home.serve();
        let events = daemon.events("main").await;
        let taken = of_kind(&events, "message_enqueued");
        assert!(taken[0].to_string().contains("under way") && daemon.is_whole("main").await, "{taken:?}");
    }
}

#[tokio::test]
async fn who_tells_it_twice_does_not_wait_for_what_is_under_way() {
    let home = Home::new();
    let daemon = home.serve();
    let _under_way = begin(&daemon).await;
    tell(&daemon, Some(Signal::SIGTERM)).await;
    refuses(&daemon).await;
    tell(&daemon, Some(Signal::SIGINT)).await;
    assert_eq!(daemon.ended().code(), Some(1), "it did not end in peace");
    assert!(home.log().contains("told to end at once"), "{}", home.log());
    assert!(home.serve().is_whole("main").await);
}
