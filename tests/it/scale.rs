//! Many readers, many agents, many timers.
//!
//! `HOLON_TEST_AGENTS=10000 cargo test --release --test it scale:: -- --nocapture` measures a larger home, and then
//! requires of it what the bars require; without it the tests are small enough for every day.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home, PATIENCE, resident};
use futures::{StreamExt, stream};
use holon::client::{Address, Client, StreamedEvent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SUBSCRIBERS: usize = 1_000;
const AGENTS_DEFAULT: usize = 300;
/// A clock tick of `/proc`, the same on every Linux.
const TICK_MS: u64 = 10;
/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Setting a timer takes a turn; so many times as long as creating an agent is longer than it takes.
const SETTING_IS_CREATING: u32 = 15;

/// Lets this process open as many files as it may.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).expect("up to the maximum");
}

/// `holon serve` under the soft limit of descriptors that most systems set.
fn serve_with_few_descriptors(home: &Home) -> Daemon {
    let serve = home.holon(&["serve", "--listen", "127.0.0.1:0"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -Sn 256 && exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    limited.env_clear().current_dir(home.workspace());
    limited.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    home.serve_by(limited)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_subscribers_all_see_every_event() {
    raise_descriptors();
    let home = Home::new();
    let daemon = serve_with_few_descriptors(&home);
    let client = Client::new(Address::Url(daemon.url.clone()), None).expect("a client");
    let path = "/agents/main/events/stream?after_seq=0";
    let mut streams = Vec::with_capacity(SUBSCRIBERS);
    for _ in 0..SUBSCRIBERS {
        streams.push(client.stream(path).await.expect("a place for everyone"));
    }
    for number in 0..20 {
        daemon.prompt("main", &format!("say: {number}")).await;
    }
    let last = daemon.prompt("main", "say: last").await;
    daemon.settled("main", &last).await;
    let ledger = daemon.get("/agents/main/events?order=asc&limit=512").await;
    let ledger = ledger["events"].as_array().expect("events");
    let readers = streams.into_iter().map(|mut stream| async move {
        for recorded in ledger {
            let event = tokio::time::timeout(PATIENCE, stream.next()).await.expect("in time");
            assert_eq!(&event.expect("it goes on").expect("a frame").data, recorded);
        }
    });
    futures::future::join_all(readers).await;
}

#[tokio::test]
async fn a_daemon_takes_the_descriptors_it_may_have_and_commands_do_not_inherit_them() {
    let home = Home::new();
    let daemon = serve_with_few_descriptors(&home);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "the soft limit is the hard one: {line}");
    let message = daemon.prompt("main", "$ ulimit -Sn").await;
    let brief = daemon.answer("main", &message).await;
    assert!(brief["text"].as_str().unwrap().contains("256"), "as it was for the daemon: {brief}");
}

fn agents() -> usize {
    std::env::var("HOLON_TEST_AGENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(AGENTS_DEFAULT)
}

fn agent(number: usize) -> String {
    format!("agent-{number:06}")
}

async fn create(daemon: &Daemon, count: usize) {
    let ask = Ask::new(daemon);
    let creations = (0..count).map(|number| {
        let ask = ask.clone();
        async move { ask.post(&format!("/control/agents/{}/create", agent(number)), "{}").await.ok() }
    });
    stream::iter(creations).buffer_unordered(AT_ONCE).for_each(|_| std::future::ready(())).await;
}

/// All agents, as their pages of `limit` show them; each page names the next.
async fn listed(daemon: &Daemon, limit: usize) -> Vec<String> {
    let ask = Ask::new(daemon);
    let mut ids = Vec::new();
    let mut path = format!("/agents/list?limit={limit}");
    loop {
        let told = ask.get(&path).await;
        let page = told.ok();
        let page = page.as_array().expect("a list");
        assert!(page.len() <= limit);
        ids.extend(page.iter().map(|entry| entry["identity"]["agent_id"].as_str().expect("an id").to_owned()));
        let link = told.header("link");
        if link.is_empty() {
            return ids;
        }
        assert_eq!(page.len(), limit, "a page before others is full");
        path = link
            .strip_prefix('<')
            .and_then(|link| link.strip_suffix(">; rel=\"next\""))
            .expect("a next page")
            .to_owned();
    }
}

/// Processor time that a daemon has used.
fn used(daemon: &Daemon) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.id())).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    Duration::from_millis(ticks * TICK_MS)
}

#[tokio::test]
async fn many_agents_are_all_there_after_a_restart_and_cost_nothing_at_rest() {
    let count = agents();
    let home = Home::new();
    let daemon = home.serve();
    let empty = resident(&daemon);
    let began = Instant::now();
    create(&daemon, count).await;
    eprintln!("{count} agents made in {:?}", began.elapsed());
    assert!(daemon.stop().success());

    let began = Instant::now();
    let daemon = home.serve();
    eprintln!("ready again after {:?}", began.elapsed());
    let mut expected: Vec<String> = (0..count).map(agent).collect();
    expected.push("main".into());
    for limit in [7, 100, 1_000] {
        if count / limit < 100 {
            assert_eq!(listed(&daemon, limit).await, expected, "{limit} a page");
        }
    }
    let began = Instant::now();
    let first: Value = daemon.get("/agents/list").await;
    eprintln!("a page of {} in {:?}", first.as_array().map_or(0, Vec::len), began.elapsed());
    let rest = resident(&daemon);
    let per_agent = rest.saturating_sub(empty) * 1_024 / count as u64;
    eprintln!("{empty} KiB without agents, {rest} KiB with them: {per_agent} bytes an agent");
    let status = daemon.get("/control/runtime/status").await;
    assert_eq!(status["activity"]["active_agent_count"], 0, "looking wakes nobody: {status}");
    for agent in [&expected[0], &expected[count / 2], &expected[count - 1]] {
        daemon.post(&format!("/agents/{agent}/enqueue"), json!({"text": "x"})).await;
    }
    if std::env::var_os("HOLON_TEST_AGENTS").is_some() {
        at_rest(&daemon).await;
    }
}

/// What became of a timer: how late it fired, and how late the turn began that it brought, in milliseconds.
async fn lateness(daemon: &Daemon, agent: &str) -> (i64, i64) {
    let ended = |event: &StreamedEvent| event.kind == "turn_terminal" && event.data["payload"]["run"] == "run-2";
    let events = daemon.watch(agent, 0, ended).await;
    let only = |kind: &str, run: Option<&str>| {
        let is_it = |event: &&StreamedEvent| event.kind == kind && event.data["payload"]["run"].as_str() == run;
        let mut found = events.iter().filter(is_it);
        let event = found.next().unwrap_or_else(|| panic!("{agent} has no {kind}"));
        assert!(found.next().is_none(), "{agent} has two {kind}");
        event
    };
    let at = |event: &StreamedEvent| {
        let ts = event.data["ts"].as_str().expect("a time");
        ts.parse::<jiff::Timestamp>().expect("a time").as_millisecond()
    };
    let created = only("timer_created", None);
    let due = at(created) + created.data["payload"]["duration_ms"].as_i64().expect("a number");
    (at(only("timer_fired", None)) - due, at(only("turn_started", Some("run-2"))) - due)
}

fn print_spread(what: &str, mut late_ms: Vec<i64>) {
    late_ms.sort_unstable();
    let at = |percent: usize| late_ms[(late_ms.len() - 1) * percent / 100];
    eprintln!("{what}: p50 {} ms, p99 {} ms, at most {} ms late", at(50), at(99), at(100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_due_at_once_fire_on_time_for_agents_that_nobody_has_loaded() {
    let count = agents();
    let home = Home::new();
    let daemon = home.serve();
    let began = Instant::now();
    create(&daemon, count).await;
    let due = Instant::now() + began.elapsed() * SETTING_IS_CREATING + Duration::from_secs(5);
    let agents: Vec<String> = (0..count).map(agent).collect();
    let began = Instant::now();
    let set = stream::iter(&agents).for_each_concurrent(AT_ONCE, async |agent| {
        let wait = due.saturating_duration_since(Instant::now());
        let message = daemon.prompt(agent, &format!("timer {}ms: look", wait.as_millis())).await;
        daemon.settled(agent, &message).await;
    });
    set.await;
    eprintln!("{count} timers set in {:?}", began.elapsed());
    assert!(daemon.stop().success());
    let daemon = home.serve();
    assert!(Instant::now() < due, "all are set, and none is loaded, before the time comes");

    tokio::time::sleep(due - Instant::now()).await;
    // The last is looked at first, so that the others are done with when they are looked at.
    lateness(&daemon, &agents[count - 1]).await;
    let late = stream::iter(&agents).map(|agent| lateness(&daemon, agent)).buffer_unordered(AT_ONCE);
    let (fired, begun): (Vec<i64>, Vec<i64>) = late.collect::<Vec<_>>().await.into_iter().unzip();
    assert!(fired.iter().all(|late_ms| *late_ms >= 0), "no timer fires before its time");
    let latest = fired.iter().max().copied();
    print_spread("fired", fired);
    print_spread("turns begun", begun);
    if std::env::var_os("HOLON_TEST_AGENTS").is_some() {
        assert!(latest < Some(5_000), "due agents are scheduled within 5 s");
    }
}

/// Requires that an idle daemon uses no processor time to speak of.
async fn at_rest(daemon: &Daemon) {
    // Agents that have just worked stay loaded for a while.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = used(daemon);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let grown = used(daemon) - before;
    eprintln!("{grown:?} of processor time in 30 s");
    assert!(grown < Duration::from_millis(20));
}
