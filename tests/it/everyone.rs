//! Following all public agents at once: one order, one cursor.

use crate::ask::{Ask, connect};
use crate::daemon::{Daemon, Home, PATIENCE};
use futures::StreamExt;
use holon::client::StreamedEvent;
use holon::events::{PLANES, schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

const ALL: &str = "/events/stream?projection=local_debug";

async fn take(daemon: &Daemon, path: &str, events: usize) -> Vec<StreamedEvent> {
    let stream = daemon.client.stream(path).await.unwrap_or_else(|error| panic!("{path}: {error:?}"));
    let reading = stream.take(events).map(|event| event.expect("an event")).collect();
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| panic!("{path}: nothing came"))
}

/// The ids of what an agent has recorded.
async fn ids(daemon: &Daemon, agent: &str) -> Vec<Value> {
    daemon.events(agent).await.into_iter().map(|mut event| event["id"].take()).collect()
}

fn of<'a>(seen: &'a [StreamedEvent], agent: &str) -> Vec<&'a Value> {
    seen.iter().filter(|event| event.data["agent_id"] == agent).map(|event| &event.data["id"]).collect()
}

#[tokio::test]
async fn everything_that_public_agents_do_comes_once_and_in_one_order() {
    let home = Home::new();
    let daemon = home.serve();
    for agent in ["alpha", "bravo"] {
        daemon.create(agent).await;
        for action in ["stop", "start", "stop"] {
            daemon.control(agent, action).await;
        }
    }
    let message = daemon.prompt("main", "$ true").await;
    daemon.answer("main", &message).await;
    let agents = ["main", "alpha", "bravo"];
    let mut recorded = Vec::new();
    for agent in agents {
        recorded.push(ids(&daemon, agent).await);
    }
    let total = recorded.iter().map(Vec::len).sum();
    let seen = take(&daemon, &format!("{ALL}&after_seq=0"), total).await;
    for (agent, recorded) in agents.iter().zip(&recorded) {
        assert_eq!(of(&seen, agent), recorded.iter().collect::<Vec<_>>());
    }
    assert!(seen.windows(2).all(|pair| pair[0].seq < pair[1].seq), "the cursor rises");
    let stops: Vec<&Value> =
        seen.iter().filter(|event| event.kind == "agent_stopped").map(|event| &event.data["id"]).collect();
    assert_eq!(stops, ["alpha:2", "alpha:4", "bravo:2", "bravo:4"], "the order is that of the commits");

    // A client that comes back goes on where it was, over a restart as well.
    assert!(daemon.stop().success());
    let daemon = home.serve();
    let middle = seen[total / 2].seq;
    let rest = take(&daemon, &format!("{ALL}&after_seq={middle}"), total - total / 2 - 1).await;
    let data = |events: &[StreamedEvent]| events.iter().map(|event| event.data.clone()).collect::<Vec<_>>();
    assert_eq!(data(&rest), data(&seen[total / 2 + 1..]));
    let ask = Ask::new(&daemon);
    let path = format!("{ALL}&after_seq=0&limit=1");
    let resumed = ask.send("GET", &path, |request| request.header("Last-Event-ID", middle.to_string())).await;
    assert!(resumed.text.contains(&format!("\nid: {}\n", rest[0].seq)), "what was seen wins: {}", resumed.text);
    let beyond = ask.get("/events/stream?after_seq=999999").await.refused(404, "cursor_not_found");
    assert_eq!((&beyond["after_seq"], beyond["head"].is_u64()), (&json!(999_999), true));
}

#[tokio::test]
async fn a_follower_of_all_hears_of_agents_born_after_it_came() {
    let daemon = Home::new().serve();
    let mut stream = daemon.client.stream("/events/stream").await.expect("a stream");
    daemon.create("late").await;
    daemon.control("late", "stop").await;
    let mut seen = Vec::new();
    let reading = async {
        while seen.last().is_none_or(|kind| kind != "agent_stopped") {
            let event = stream.next().await.expect("it goes on").expect("an event");
            if event.data["agent_id"] == "late" {
                assert_eq!(event.data["projection"]["name"], "operator");
                seen.push(event.kind);
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it is told in time");
    assert_eq!(seen.first().map(String::as_str), Some("agent_created"));
}

#[tokio::test]
async fn private_agents_are_left_out_and_hold_nothing_up() {
    let home = Home::new();
    let daemon = home.serve();
    let message = daemon.prompt("main", "spawn: $ true").await;
    daemon.answer("main", &message).await;
    daemon.create("after").await;
    let children = daemon.events("main.c1").await;
    assert!(!children.is_empty(), "there is a private agent");
    let mut stream = daemon.client.stream(&format!("{ALL}&after_seq=0")).await.expect("a stream");
    let reading = async {
        loop {
            let event = stream.next().await.expect("it goes on").expect("an event");
            assert_ne!(event.data["agent_id"], "main.c1", "{}", event.data);
            if event.data["agent_id"] == "after" {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("it is told in time");
}

#[tokio::test]
async fn silence_is_filled_while_only_private_agents_are_busy() {
    let home = Home::new();
    let daemon = home.serve();
    let busy = "  $ sleep 1\n".repeat(100);
    daemon.prompt("main", &format!("spawn: work\n{busy}wait task")).await;
    daemon.wait_for("main", "turn_terminal").await;
    daemon.wait_for("main.c1", "turn_started").await;
    let before = daemon.head("main.c1").await;
    let connection = connect(&daemon, b"GET /events/stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let heard = tokio::task::spawn_blocking(move || {
        let lines = BufReader::new(connection).lines().map(|line| line.expect("it goes on"));
        lines.skip_while(|line| line != "retry: 1000").find(|line| line.starts_with(':') || line.starts_with("id:"))
    });
    assert_eq!(heard.await.expect("heard").as_deref(), Some(": heartbeat"), "nothing else is to be told");
    assert!(daemon.head("main.c1").await > before + 5, "it was busy");
}

#[tokio::test]
async fn the_catalogue_names_every_kind_and_every_type() {
    let daemon = Home::new().serve();
    let catalogue = Ask::new(&daemon).get("/schema/events").await.ok();
    let events = catalogue["events"].as_array().expect("events");
    let kinds: BTreeSet<&str> = events.iter().map(|event| event["type"].as_str().expect("a name")).collect();
    let written: BTreeSet<&str> = PLANES.iter().flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.kind)).collect();
    assert_eq!(kinds, written);
    for event in events {
        assert!(event["meaning"].as_str().is_some_and(|text| !text.is_empty()), "{event}");
        assert!(event["tag"].is_u64() && event["schema_version"].is_u64() && event["fields"].is_array(), "{event}");
    }
    let shapes = catalogue["shapes"].as_array().expect("shapes");
    assert_eq!(shapes.len(), schema::SHAPES.len());
    let message = daemon.prompt("main", "$ true").await;
    daemon.answer("main", &message).await;
    for event in daemon.events("main").await {
        let row = events.iter().find(|row| row["type"] == event["type"]).expect("its kind is there");
        let fields = row["fields"].as_array().expect("fields").iter().map(|field| &field["name"]);
        let members = event["payload"].as_object().expect("members").keys();
        assert_eq!(
            members.collect::<BTreeSet<_>>(),
            fields.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>().iter().collect::<BTreeSet<_>>(),
            "{event}"
        );
    }
}
