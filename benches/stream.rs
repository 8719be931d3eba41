//! Streams: delivery to many subscribers, replay of a history, and memory, each beside bare sockets.

#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    unreachable_pub,
    reason = "a benchmark reads the clock, prints, may fail by a panic, and shares more than each one uses"
)]

mod common;

use common::ledger::Author;
use common::server::{Server, prepare};
use common::socket::{Connection, get, post};
use common::{Target, alone, child, figure, folder, median, percentile, role, scale, title};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::LocalSet;

const SUBSCRIBERS: usize = 1_000;
const DELIVERIES: usize = 100;
const HISTORY_EVENTS: u64 = 50_000;
const REPLAYS: usize = 5;
const FIRST_BYTES: usize = 20;

fn main() {
    if let Some((role, arguments)) = role() {
        return if role == "fan" { fan_out() } else { replay_bytes(&arguments[0]) };
    }
    allow_files(4 * SUBSCRIBERS as u64);
    let folder = folder();
    let home = folder.path().join("home");
    let events = HISTORY_EVENTS * scale() as u64;
    prepare(&home, |store| Author::paused("long").write_history(store, events));
    let holon = Server::daemon(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, replay(&holon, folder.path(), events));
    LocalSet::new().block_on(&runtime, delivery(&holon));
}

/// Each subscriber is a socket here and one in the server.
fn allow_files(count: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.current.max(Some(count));
    setrlimit(Resource::Nofile, limit).expect("as many open files");
}

// Replay.

async fn replay(holon: &Server, folder: &std::path::Path, events: u64) {
    title("replay of a history over a stream");
    let request = get("/agents/long/events/stream?after_seq=0&projection=local_debug");
    let captured = capture(holon.address, &request, events).await;
    let path = folder.join("frames");
    std::fs::write(&path, &captured).expect("a file");
    let bare = Server::start(child("replay", &[path.display().to_string()]));
    let (mut ours_took, mut bare_took) = (Vec::new(), Vec::new());
    for _ in 0..REPLAYS {
        ours_took.push(megabytes_per_second(holon.address, &request, captured.len()).await);
        bare_took.push(megabytes_per_second(bare.address, &request, captured.len()).await);
    }
    let what = format!("{events} events, {} bytes a frame", captured.len() as u64 / events);
    figure(&what, median(&ours_took), median(&bare_took), "MB/s", Target::AtLeast(0.5));
    let mut first = Vec::new();
    for _ in 0..FIRST_BYTES {
        first.push(first_frame_milliseconds(holon.address, &request).await);
    }
    alone("first byte of the first frame, median", median(&first), "ms", Target::AtMost(5.0));
}

/// The whole answer as it comes over the socket, its head included.
async fn capture(address: SocketAddr, request: &[u8], events: u64) -> Vec<u8> {
    let mut connection = Connection::open(address).await;
    connection.send(request).await;
    let last = format!("id: {events}\n").into_bytes();
    let (mut found, mut searched) = (false, 0);
    loop {
        let bytes = connection.more().await;
        found = found || bytes[searched..].windows(last.len()).any(|window| window == last);
        searched = bytes.len().saturating_sub(last.len());
        if found && bytes.ends_with(b"\n\n\r\n") {
            return std::mem::take(bytes);
        }
    }
}

async fn megabytes_per_second(address: SocketAddr, request: &[u8], bytes: usize) -> f64 {
    let mut connection = Connection::open(address).await;
    let start = Instant::now();
    connection.send(request).await;
    let mut missing = bytes;
    while missing > 0 {
        let buffer = connection.more().await;
        missing = missing.saturating_sub(buffer.len());
        buffer.clear();
    }
    bytes as f64 / start.elapsed().as_secs_f64() / 1e6
}

async fn first_frame_milliseconds(address: SocketAddr, request: &[u8]) -> f64 {
    let mut connection = Connection::open(address).await;
    let start = Instant::now();
    connection.send(request).await;
    while !connection.more().await.windows(4).any(|four| four == b"id: ") {}
    start.elapsed().as_secs_f64() * 1e3
}

/// The child: the captured bytes to whoever asks, in pieces as large as ours.
fn replay_bytes(path: &str) {
    let bytes = std::fs::read(path).expect("the frames");
    let listener = listen();
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let asked = stream.read(&mut [0; 1024]).expect("a request");
        assert!(asked > 0, "somebody asks");
        for piece in bytes.chunks(256 * 1024) {
            stream.write_all(piece).expect("somebody reads");
        }
    }
}

// Delivery.

/// When the frames of one delivery came in.
#[derive(Default)]
struct Receipts {
    milliseconds: Vec<f64>,
    sent: Option<Instant>,
    missing: usize,
}

#[derive(Clone, Default)]
struct Audience {
    receipts: Rc<RefCell<Receipts>>,
    complete: Rc<Notify>,
}

impl Audience {
    /// Counts each frame that comes over a connection.
    fn listen(&self, mut connection: Connection) {
        let this = self.clone();
        tokio::task::spawn_local(async move {
            loop {
                let buffer = connection.more().await;
                let frames = buffer.windows(2).filter(|two| two == b"\n\n").count();
                if frames > 0 {
                    buffer.clear();
                    this.received(frames);
                }
            }
        });
    }

    fn received(&self, frames: usize) {
        let mut receipts = self.receipts.borrow_mut();
        let Some(sent) = receipts.sent else { return };
        receipts.milliseconds.push(sent.elapsed().as_secs_f64() * 1e3);
        receipts.missing = receipts.missing.saturating_sub(frames);
        if receipts.missing == 0 {
            self.complete.notify_one();
        }
    }

    fn send_begins(&self) -> Instant {
        let now = Instant::now();
        let mut receipts = self.receipts.borrow_mut();
        (receipts.sent, receipts.missing) = (Some(now), SUBSCRIBERS);
        now
    }

    fn milliseconds(&self) -> Vec<f64> {
        self.receipts.borrow().milliseconds.clone()
    }
}

async fn delivery(holon: &Server) {
    title(&format!("delivery to {SUBSCRIBERS} subscribers"));
    let (ours, memory_bytes) = subscribe(holon).await;
    let fan = Server::start(child("fan", &[]));
    let bare = Audience::default();
    let mut control = Connection::open(fan.address).await;
    for _ in 0..SUBSCRIBERS {
        bare.listen(Connection::open(fan.address).await);
    }
    let mut writer = Connection::open(holon.address).await;
    let message = post("/agents/main/enqueue", &format!(r#"{{"text":"{}"}}"#, "x".repeat(256)));
    let frame = [vec![b'x'; frame_bytes(holon).await - 2], b"\n\n".to_vec()].concat();
    let length = (frame.len() as u32).to_le_bytes();
    let control_message = [&length[..], &frame].concat();
    let mut appends = Vec::new();
    for _ in 0..DELIVERIES {
        let sent = ours.send_begins();
        writer.send(&message).await;
        writer.answer().await;
        appends.push(sent.elapsed().as_secs_f64() * 1e3);
        ours.complete.notified().await;
        bare.send_begins();
        control.send(&control_message).await;
        bare.complete.notified().await;
    }
    let append = percentile(&appends, 99);
    let (ours, bare) = (ours.milliseconds(), bare.milliseconds());
    let bound = append + 1.5 * percentile(&bare, 99);
    alone("append, p99", append, "ms", Target::None);
    figure("from append to receipt, median", median(&ours), median(&bare), "ms", Target::None);
    figure("from append to receipt, p99", percentile(&ours, 99), percentile(&bare, 99), "ms", Target::None);
    figure("the same, beside append p99 + 1.5 x bare p99", percentile(&ours, 99), bound, "ms", Target::AtMost(1.0));
    alone("memory of a subscriber beside its connection", memory_bytes / 1024.0, "KiB", Target::AtMost(2.0));
}

/// Connects, then subscribes; tells what the second step costs the server for each.
async fn subscribe(holon: &Server) -> (Audience, f64) {
    let mut connections = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let mut connection = Connection::open(holon.address).await;
        connection.send(&get("/healthz")).await;
        connection.answer().await;
        connections.push(connection);
    }
    let before = holon.usage().memory_bytes;
    for connection in &mut connections {
        connection.send(&get("/agents/main/events/stream")).await;
        connection.head().await;
        connection.opening().await;
    }
    let after = holon.usage().memory_bytes;
    let audience = Audience::default();
    connections.into_iter().for_each(|connection| audience.listen(connection));
    (audience, after.saturating_sub(before) as f64 / SUBSCRIBERS as f64)
}

/// How large the frame of a message is.
async fn frame_bytes(holon: &Server) -> usize {
    let mut connection = Connection::open(holon.address).await;
    connection.send(&get("/agents/main/events/stream?after_seq=1&limit=1")).await;
    connection.head().await;
    loop {
        let bytes = connection.more().await;
        if let Some(start) = bytes.windows(4).position(|four| four == b"id: ") {
            return bytes.len() - start;
        }
    }
}

/// The child: the first connection says what to send, all others get it.
fn fan_out() {
    let listener = listen();
    let mut control = listener.accept().expect("the control").0;
    let mut audience: Vec<_> = (0..SUBSCRIBERS).map(|_| listener.accept().expect("a subscriber").0).collect();
    audience.iter().for_each(|stream| stream.set_nodelay(true).expect("an option"));
    let mut length = [0; 4];
    while control.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        control.read_exact(&mut frame).expect("the frame");
        audience.iter_mut().for_each(|stream| stream.write_all(&frame).expect("somebody reads"));
    }
}

fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    std::io::stdout().flush().expect("somebody reads");
    listener
}
