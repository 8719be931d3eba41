//! Who did it: each control mutation is recorded with its actor.

use crate::ask::Ask;
use crate::cli::say;
use crate::daemon::{Daemon, Home, of_kind};
use crate::openapi::{Operation, operations};
use serde_json::{Value, json};
use std::path::Path;

pub const CONTROL: &str = "control-token-of-32-bytes-or-so";

/// What changes an agent by the control plane, and leaves it there for the next.
fn mutations() -> Vec<Operation> {
    let mut mutations = operations();
    mutations.retain(|operation| {
        operation.method == "POST"
            && operation.template.starts_with("/control/agents/")
            && !operation.template.ends_with("/archive")
    });
    mutations
}

async fn all_events(daemon: &Daemon) -> Vec<Value> {
    let mut events = Vec::new();
    for ledger in daemon.get("/ledgers").await.as_array().expect("ledgers") {
        events.extend(daemon.events(ledger["agent_id"].as_str().expect("an id")).await);
    }
    events
}

fn actors<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["provenance"]["actor"]).collect()
}

#[tokio::test]
async fn no_control_mutation_is_recorded_without_its_actor() {
    let daemon = Home::new().environment("HOLON_CONTROL_TOKEN", CONTROL).serve();
    let ask = Ask::new(&daemon).with_token(CONTROL);
    let mut taken = 0;
    for operation in mutations() {
        let (_, example) = operation.body().expect("every control route takes a body");
        let told = ask.post(&operation.path(), example).await;
        taken += usize::from(told.status == 200);
    }
    assert!(taken > 10, "most examples are taken: {taken}");
    let events = all_events(&daemon).await;
    let nameless: Vec<&Value> = events.iter().filter(|event| event["cause"] == "operator").collect();
    assert!(nameless.is_empty(), "{nameless:#?}");
    let by_control: Vec<&Value> =
        events.iter().map(|event| &event["provenance"]["actor"]).filter(|actor| !actor.is_null()).collect();
    assert!(by_control.len() > 10, "{}", by_control.len());
    for actor in by_control {
        assert_eq!((&actor["token"], &actor["surface"]), (&json!("control"), &json!("http")), "{actor}");
        assert!(actor["peer"]["address"].as_str().is_some_and(|text| text.starts_with("127.0.0.1:")), "{actor}");
    }
}

#[test]
fn no_surface_makes_a_nameless_control_request() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        assert!(!text.contains("Cause::Operator"), "{}", entry.path().display());
        let made = text.matches("Cause::Control(").count();
        let expected = usize::from(entry.file_name() == "extract.rs");
        assert_eq!(made, expected, "{}: an actor is taken from the request in one place", entry.path().display());
    }
}

#[tokio::test]
async fn over_the_socket_the_kernel_names_the_process() {
    let daemon = Home::new().serve();
    daemon.create("worker").await;
    daemon.post("/control/agents/worker/control", json!({"action": "stop", "trust": "untrusted_external"})).await;
    let events = daemon.events("worker").await;
    let [created] = actors(&events, "agent_created")[..] else { panic!("one creation") };
    assert_eq!((&created["token"], &created["surface"]), (&Value::Null, &json!("socket")));
    let local = &created["peer"]["local"];
    assert_eq!(local["pid"], std::process::id());
    assert_eq!(local["uid"], rustix::process::getuid().as_raw());
    assert!(local["program"].as_str().is_some_and(|name| !name.is_empty()), "{local}");
    let [stopped] = actors(&events, "agent_stopped")[..] else { panic!("one stop") };
    assert_eq!(stopped["provided_trust"], "untrusted_external", "what is claimed is recorded, and it elevated nothing");
}

#[tokio::test]
async fn an_operator_reads_the_token_and_the_surface_and_no_process() {
    let daemon = Home::new().serve();
    daemon.create("worker").await;
    let page = daemon.get("/agents/worker/events").await;
    let actor = &page["events"][0]["provenance"]["actor"];
    assert_eq!(*actor, json!({"token": null, "surface": "socket"}));
}

#[tokio::test]
async fn events_and_status_say_who_cancelled_the_run() {
    let home = Home::new().environment("HOLON_CONTROL_TOKEN", CONTROL);
    let (gate, mut signs) = (home.gate("gate"), home.signs("signs"));
    let daemon = home.serve();
    let ask = Ask::new(&daemon).with_token(CONTROL);
    ask.post("/control/agents/main/prompt", json!({"text": "$ echo > signs; read go < gate"})).await.ok();
    signs.next().await;
    ask.post("/control/agents/main/current-run/abort", json!({})).await.ok();
    let controlled = daemon.status("main").await["controlled_by"].clone();
    for what in ["prompt", "abort", "lifecycle"] {
        assert_eq!(controlled[what]["actor"], json!({"token": "control", "surface": "http"}), "{what}: {controlled}");
    }
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "current_run_aborted").len(), 1);
    let status = say(&home, &["status"]).data().to_owned();
    assert!(status.contains("last abort by     token control, over http"), "{status}");
    let listed = say(&home, &["events"]).data().to_owned();
    let line = listed.lines().find(|line| line.contains("current_run_aborted")).expect("the abort");
    assert!(line.contains("[token control, over http]"), "{line}");
    gate.open();
}
