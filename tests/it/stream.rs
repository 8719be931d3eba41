//! Following a ledger: pages and streams, from anywhere, at any pace, over restarts.

use crate::ask::{Ask, connect};
use crate::daemon::{BORN, Daemon, Home, PATIENCE, resident};
use futures::StreamExt;
use holon::client::{Client, StreamedEvent};
use proptest::prelude::{Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

const RAW: &str = "/agents/main/events/stream?projection=local_debug";

/// Lets an agent's ledger grow by `events`, without a turn: starting and stopping is one event each.
async fn grow(daemon: &Daemon, agent: &str, events: usize) {
    for number in 0..events {
        let action = if number % 2 == 0 { "stop" } else { "start" };
        daemon.post(&format!("/control/agents/{agent}/control"), json!({"action": action})).await;
    }
}

/// An agent whose ledger has `events` events.
async fn grown(daemon: &Daemon, agent: &str, events: usize) {
    daemon.post(&format!("/control/agents/{agent}/create"), json!({})).await;
    grow(daemon, agent, events - 1).await;
}

/// Reads a stream until it has shown event `until`.
async fn follow(client: &Client, path: &str, until: u64) -> Vec<StreamedEvent> {
    let mut stream = client.stream(path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
    let mut seen: Vec<StreamedEvent> = Vec::new();
    let reading = async {
        while seen.last().is_none_or(|event| event.seq < until) {
            let event = stream.next().await.unwrap_or_else(|| panic!("{path}: ended after {:?}", seen.last()));
            seen.push(event.unwrap_or_else(|error| panic!("{path}: {error:?}")));
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{path}: nothing came"));
    seen
}

/// Requires `seen` to be the events of the ledger after `after`, each once and in order.
fn agrees(seen: &[StreamedEvent], ledger: &[Value], after: u64) {
    for (offset, event) in seen.iter().enumerate() {
        let seq = after + offset as u64 + 1;
        assert_eq!(event.seq, seq, "no gap and no repetition");
        let recorded = &ledger[seq as usize - 1];
        assert_eq!(&event.data, recorded);
        assert_eq!(event.kind, recorded["type"]);
    }
}

#[tokio::test]
async fn a_stream_is_the_ledger_from_wherever_it_starts() {
    let daemon = Home::new().serve();
    grow(&daemon, "main", 600).await;
    let ledger = daemon.events("main").await;
    let head = ledger.len() as u64;
    assert_eq!(head, BORN + 600);
    assert!(ledger.windows(2).all(|pair| pair[1]["prev_hash"] == pair[0]["hash"]), "the links join");
    for after in [0, 1, 63, 64, 65, 300, 511, 512, head - 1] {
        let seen = follow(&daemon.client, &format!("{RAW}&after_seq={after}"), head).await;
        assert_eq!(seen.len() as u64, head - after);
        agrees(&seen, &ledger, after);
    }
    let ask = Ask::new(&daemon);
    let resumed =
        ask.send("GET", &format!("{RAW}&after_seq=0&limit=2"), |request| request.header("Last-Event-ID", "599")).await;
    assert!(resumed.text.starts_with("retry: 1000\n\nid: 600\n"), "what the client has seen wins: {}", resumed.text);
}

#[tokio::test]
async fn a_frame_has_the_seq_the_kind_and_the_event() {
    let daemon = Home::new().serve();
    grow(&daemon, "main", 2).await;
    let ask = Ask::new(&daemon);
    let told = ask.get("/agents/main/events/stream?after_seq=2&limit=3").await;
    assert_eq!(told.header("content-type"), "text/event-stream");
    assert_eq!(told.header("cache-control"), "no-store");
    let mut frames = told.text.split("\n\n");
    assert_eq!(frames.next(), Some("retry: 1000"));
    for (seq, kind) in [(3, "workspace_entered"), (4, "agent_stopped"), (5, "agent_started")] {
        let lines: Vec<&str> = frames.next().expect("a frame").lines().collect();
        assert_eq!(lines[..2], [format!("id: {seq}"), format!("event: {kind}")]);
        let data: Value = serde_json::from_str(lines[2].strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(
            (&data["event_seq"], &data["type"], &data["id"]),
            (&json!(seq), &json!(kind), &json!(format!("main:{seq}")))
        );
        assert_eq!(data["projection"]["name"], "operator");
        assert_eq!(lines.len(), 3);
    }
    assert_eq!((frames.next(), frames.next()), (Some(""), None), "the limit ends it");
}

#[tokio::test]
async fn a_limit_ends_a_stream_after_as_many_events() {
    let daemon = Home::new().serve();
    grow(&daemon, "main", 299).await;
    let ask = Ask::new(&daemon);
    for (after, limit) in [(0, 1), (0, 256), (0, 257), (40, 260), (299, 1), (7, 0)] {
        let told = ask.get(&format!("{RAW}&after_seq={after}&limit={limit}")).await;
        let ids: Vec<u64> = told.text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
        assert_eq!(ids, (after + 1..=after + limit).collect::<Vec<u64>>(), "{limit} after {after}");
    }
}

#[tokio::test]
async fn a_stream_that_names_no_start_begins_at_the_tail() {
    let daemon = Home::new().serve();
    grow(&daemon, "main", 10).await;
    let mut tail = daemon.client.stream(RAW).await.unwrap();
    grow(&daemon, "main", 1).await;
    assert_eq!(tail.next().await.unwrap().unwrap().seq, BORN + 11);
}

#[tokio::test]
async fn a_cursor_beyond_the_head_is_told_where_the_head_is() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for beyond in [BORN + 1, 999, u64::MAX] {
        let problem =
            ask.get(&format!("/agents/main/events/stream?after_seq={beyond}")).await.refused(404, "cursor_not_found");
        assert_eq!(
            (&problem["head"], &problem["after_seq"], &problem["event_seq"]),
            (&json!(BORN), &json!(beyond), &json!(beyond))
        );
        let resumed =
            ask.send("GET", "/agents/main/events/stream", |request| request.header("Last-Event-ID", beyond)).await;
        assert_eq!(resumed.refused(404, "cursor_not_found")["head"], BORN);
    }
    for odd in ["x", "-1", "", "1.0"] {
        let told = ask.send("GET", "/agents/main/events/stream", |request| request.header("Last-Event-ID", odd)).await;
        told.refused(400, "invalid_header");
    }
}

#[tokio::test]
async fn a_client_goes_on_after_a_restart_where_it_was() {
    let home = Home::new();
    let daemon = home.serve();
    grow(&daemon, "main", 20).await;
    let seen = follow(&daemon.client, &format!("{RAW}&after_seq=0&limit=9"), 9).await;
    daemon.kill();

    let daemon = home.serve();
    grow(&daemon, "main", 20).await;
    let ask = Ask::new(&daemon);
    let last = seen.last().expect("some").seq;
    let resumed = ask.send("GET", &format!("{RAW}&limit=30"), |request| request.header("Last-Event-ID", last)).await;
    let datas = resumed.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let shown: Vec<Value> = datas.map(|data| serde_json::from_str(data).unwrap()).collect();
    let ledger = daemon.events("main").await;
    assert_eq!(
        seen.iter().map(|event| &event.data).chain(&shown).collect::<Vec<_>>(),
        ledger[..39].iter().collect::<Vec<_>>()
    );
}

/// Takes an agent's messages in as fast as it can, from several writers at once; answers the head after the last.
async fn write_at_once(daemon: &Daemon, writers: usize, messages: usize) -> u64 {
    let ask = Ask::new(daemon);
    let writer = |writer: usize| {
        let ask = ask.clone();
        async move {
            for number in 0..messages {
                ask.post("/enqueue", json!({"text": format!("{writer}/{number}")})).await.ok();
            }
        }
    };
    futures::future::join_all((0..writers).map(writer)).await;
    ask.get("/agents/main/ledger").await.ok()["event_seq"].as_u64().expect("a seq")
}

/// Opens a stream of everything over a connection that is never read from.
fn stall(daemon: &Daemon) -> std::net::TcpStream {
    connect(daemon, format!("GET {RAW}&after_seq=0 HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

/// Reads the ids of a stream a few bytes at a time, up to `until`.
fn read_slowly(daemon: &Daemon, until: u64) -> Vec<u64> {
    let connection = stall(daemon);
    let mut lines = BufReader::with_capacity(512, connection).lines();
    let mut ids = Vec::new();
    while ids.last().is_none_or(|id| *id < until) {
        let line = lines.next().expect("it goes on").expect("text");
        ids.extend(line.strip_prefix("id: ").map(|id| id.parse::<u64>().expect("a seq")));
        std::thread::yield_now();
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_sees_every_event_while_writers_write_and_others_stall() {
    let daemon =
        Home::new().configured("ingress_per_minute_of_peer = 60000\ningress_per_minute_of_agent = 60000").serve();
    let _stalled = stall(&daemon);
    let clients: Vec<Client> = (0..6).map(|_| daemon.another_client()).collect();
    let mut tails = Vec::new();
    for client in &clients {
        tails.push(client.stream(RAW).await.expect("a stream"));
    }
    let started = tokio::time::Instant::now();
    let head =
        tokio::time::timeout(PATIENCE, write_at_once(&daemon, 4, 100)).await.expect("nobody holds the writers up");
    eprintln!("{head} events at {:?}", started.elapsed());
    let ledger = daemon.events("main").await;
    assert!(head > 400);
    for tail in &mut tails {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event: &StreamedEvent| event.seq < head) {
            let event = tokio::time::timeout(PATIENCE, tail.next()).await.expect("in time");
            seen.push(event.expect("it goes on").expect("a frame"));
        }
        agrees(&seen, &ledger, BORN);
    }
    let seen = follow(&clients[0], &format!("{RAW}&after_seq=0"), head).await;
    agrees(&seen, &ledger, 0);
    let ids = tokio::task::block_in_place(|| read_slowly(&daemon, head));
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "the slow one misses nothing");
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_reader_that_never_reads_costs_no_memory_that_grows() {
    let daemon = Home::new().serve();
    grow(&daemon, "main", 2_000).await;
    let stalled: Vec<_> = (0..50).map(|_| stall(&daemon)).collect();
    follow(&daemon.client, &format!("{RAW}&after_seq=0"), 2_001).await;
    let before = resident(&daemon);
    grow(&daemon, "main", 2_000).await;
    follow(&daemon.client, &format!("{RAW}&after_seq=0"), 4_001).await;
    let grown = resident(&daemon).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more beside 50 readers that do not read");
    assert!(Ask::new(&daemon).get("/metrics").await.text.contains("\nholon_subscribers 50\n"));
    drop(stalled);
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let daemon = Home::new().serve();
    let mut connection = connect(&daemon, b"GET /agents/main/events/stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let heard = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        let mut piece = [0; 256];
        while !text.ends_with(": heartbeat\n\n") {
            let read = connection.read(&mut piece).expect("it goes on");
            assert!(read > 0, "ended: {text}");
            text.push_str(std::str::from_utf8(&piece[..read]).expect("text"));
        }
        text
    });
    let text = heard.await.expect("heard");
    assert!(text.ends_with("\r\n\r\nretry: 1000\n\n: heartbeat\n\n"), "{text}");
}

#[tokio::test]
async fn streams_end_when_the_daemon_does() {
    let home = Home::new();
    let daemon = home.serve();
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(daemon.client.stream(RAW).await.expect("a stream"));
    }
    let asked = tokio::time::Instant::now();
    daemon.post("/control/runtime/shutdown", json!({})).await;
    for stream in &mut streams {
        let last = tokio::time::timeout(Duration::from_secs(4), stream.next()).await.expect("at once");
        assert!(last.is_none(), "{last:?}");
    }
    assert!(daemon.ended().success());
    assert!(asked.elapsed() < Duration::from_secs(5), "nothing is waited for: {:?}", asked.elapsed());
    assert!(!home.path().join("holon.sock").exists(), "the socket's file is gone");
}

/// What a page must be, said without arithmetic on seqs.
fn model(ledger: &[Value], query: &PageQuery) -> Value {
    let seq = |event: &Value| event["event_seq"].as_u64().expect("a seq");
    let within = |event: &&Value| {
        query.after.is_none_or(|after| seq(event) > after) && query.before.is_none_or(|before| seq(event) < before)
    };
    let mut events: Vec<&Value> = ledger.iter().filter(within).collect();
    if !query.ascending {
        events.reverse();
    }
    let limit = query.limit.unwrap_or(128).clamp(1, 512);
    events.truncate(limit);
    let seqs: Vec<u64> = events.iter().map(|event| seq(event)).collect();
    let (oldest, newest) = (seqs.iter().min(), seqs.iter().max());
    json!({
        "events": events,
        "oldest_seq": oldest,
        "newest_seq": newest,
        "order": if query.ascending { "asc" } else { "desc" },
        "limit": limit,
    })
}

#[derive(Clone, Debug)]
struct PageQuery {
    before: Option<u64>,
    after: Option<u64>,
    limit: Option<usize>,
    ascending: bool,
}

impl PageQuery {
    fn path(&self, agent: &str) -> String {
        let mut path = format!(
            "/agents/{agent}/events?projection=local_debug&order={}",
            if self.ascending { "asc" } else { "desc" }
        );
        for (name, value) in
            [("before_seq", self.before), ("after_seq", self.after), ("limit", self.limit.map(|limit| limit as u64))]
        {
            path.extend(value.map(|value| format!("&{name}={value}")));
        }
        path
    }
}

/// Whether there is anything before and after a page. An empty one lies where its bounds put it.
fn neighbours(query: &PageQuery, page: &Value, head: u64) -> (bool, bool) {
    match (page["oldest_seq"].as_u64(), page["newest_seq"].as_u64()) {
        (Some(oldest), Some(newest)) => (oldest > 1, newest < head),
        _ => (query.after.is_some_and(|after| after.min(head) > 0), query.before.is_some_and(|before| before <= head)),
    }
}

#[test]
fn a_page_is_the_part_of_the_ledger_that_was_asked_for() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let daemon = Home::new().serve();
    let sizes = [1_usize, 2, 5, 70];
    let ledgers: Vec<(String, Vec<Value>)> = runtime.block_on(async {
        let mut ledgers = Vec::new();
        for size in sizes {
            let agent = format!("agent-{size}");
            grown(&daemon, &agent, size).await;
            ledgers.push((agent.clone(), daemon.events(&agent).await));
        }
        ledgers
    });
    let near = |range: std::ops::Range<u64>| {
        prop::option::of(prop::strategy::Union::new([
            range.clone().boxed(),
            (u64::MAX - 1..=u64::MAX).boxed(),
            range.boxed(),
        ]))
    };
    let limit = prop::option::of(prop::strategy::Union::new([(0..8_usize).boxed(), (60..600_usize).boxed()]));
    let strategy = (0..sizes.len(), near(0..75), near(0..75), limit, any::<bool>());
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&strategy, |(which, before, after, limit, ascending)| {
        let (agent, ledger) = &ledgers[which];
        let query = PageQuery { before, after, limit, ascending };
        let mut page = runtime.block_on(daemon.get(&query.path(agent)));
        let members = page.as_object_mut().expect("a page");
        let told = (members.remove("has_older").expect("has_older"), members.remove("has_newer").expect("has_newer"));
        assert_eq!(page, model(ledger, &query), "{query:?} of {agent}");
        let (older, newer) = neighbours(&query, &page, ledger.len() as u64);
        assert_eq!(told, (json!(older), json!(newer)), "{query:?} of {agent}");
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn pages_follow_on_one_another_in_both_orders() {
    let daemon = Home::new().serve();
    grown(&daemon, "long", 530).await;
    let ledger = daemon.events("long").await;
    let page = daemon.get("/agents/long/events?limit=9999&projection=local_debug").await;
    assert_eq!((page["limit"].as_u64(), page["events"].as_array().map(Vec::len)), (Some(512), Some(512)));
    for order in ["asc", "desc"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = daemon
                .get(&format!("/agents/long/events?projection=local_debug&limit=100&order={order}{cursor}"))
                .await;
            seen.extend(page["events"].as_array().expect("events").iter().cloned());
            let (more, next) = match order {
                "asc" => (&page["has_newer"], format!("&after_seq={}", page["newest_seq"])),
                _ => (&page["has_older"], format!("&before_seq={}", page["oldest_seq"])),
            };
            if more == false {
                break;
            }
            cursor = next;
        }
        if order == "desc" {
            seen.reverse();
        }
        assert_eq!(seen, ledger, "{order}");
    }
}
