//! What the server counts of itself.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home};
use std::collections::BTreeMap;

/// Every series with its value.
async fn series(daemon: &Daemon) -> BTreeMap<String, f64> {
    let told = Ask::new(daemon).get("/metrics").await;
    assert_eq!(told.status, 200);
    assert!(told.header("content-type").starts_with("text/plain; version=0.0.4"));
    let mut found = BTreeMap::new();
    let mut described = Vec::new();
    for line in told.text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            described.push(rest.split(' ').next().unwrap().to_owned());
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(described.iter().any(|known| name.starts_with(known.as_str())), "{name} is described");
            let before = found.insert(name.to_owned(), value.parse().expect("a number"));
            assert_eq!(before, None, "{name} is told once");
        }
    }
    found
}

#[tokio::test]
async fn appends_queues_postures_and_effects_are_counted() {
    let home = Home::new();
    let gate = home.gate("gate");
    let mut signs = home.signs("signs");
    let daemon = home.serve();
    let before = series(&daemon).await;
    assert_eq!(before["holon_agents{posture=\"idle\"}"], 1.0);
    let message = daemon.prompt("main", "$ echo > signs; read go < gate").await;
    signs.next().await;
    let during = series(&daemon).await;
    assert_eq!(during["holon_agents{posture=\"active_turn\"}"], 1.0);
    assert_eq!(during["holon_effects{kind=\"command\",state=\"running\"}"], 1.0);
    assert_eq!(during["holon_effects{kind=\"turn\",state=\"running\"}"], 1.0);
    assert_eq!(during["holon_loops_awake"], 1.0);
    daemon.enqueue("main", "later").await;
    daemon.create("second").await;
    let stream = daemon.client.stream("/events/stream").await.expect("a stream");
    let waiting = series(&daemon).await;
    assert_eq!(waiting["holon_queue_depth"], 1.0);
    assert_eq!(waiting["holon_subscribers"], 1.0);
    drop(stream);
    gate.open();
    daemon.answer("main", &message).await;

    let after = series(&daemon).await;
    let home = daemon.get("/home/ledger").await["event_seq"].as_u64().expect("a number");
    let heads: u64 = daemon.head("main").await + daemon.head("second").await + home;
    assert!(after["holon_events_total"] > before["holon_events_total"]);
    assert!(after["holon_events_total"] <= heads as f64, "nothing is counted twice");
    let commits = after["holon_commits_total"];
    assert!(commits > before["holon_commits_total"] && commits <= after["holon_events_total"]);
    assert!(commits <= after["holon_append_seconds_count"], "a transaction holds an append or more");
    assert_eq!(after["holon_append_seconds_bucket{le=\"+Inf\"}"], after["holon_append_seconds_count"]);
    assert_eq!(after["holon_subscribers_behind"], 0.0);
    assert!(after["holon_append_seconds_sum"] > 0.0);
    assert_eq!(after["holon_append_failures_total"], 0.0);
    let names = |series: &BTreeMap<String, f64>| series.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "no agent and no event brings a series of its own");
}
