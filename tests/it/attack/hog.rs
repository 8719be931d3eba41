//! One agent that takes all it can get: of the places where commands run, of the turns, of the queue.

use super::errand::until;
use crate::daemon::{Daemon, Home, of_kind};
use crate::host::{at_rest, create, main_agent, parts, prompt};
use holon::ledger::memory::MemoryStore;
use holon::runtime::host::{Host, Parts};
use holon::runtime::permit::PermitKind;
use holon::runtime::settings::Settings;
use holon::words::id::AgentId;
use holon::words::limit::BACKGROUND_COMMANDS_MAX;
use holon::words::time::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

/// The time between an agent's asking for a command and its start.
fn waited_ms(events: &[Value]) -> u64 {
    let at = |kind: &str| {
        let event = events.iter().find(|event| event["type"] == kind).expect("it was recorded");
        Timestamp::parse(event["ts"].as_str().expect("a time")).expect("a time")
    };
    at("task_started").since_ms(at("task_create_requested"))
}

#[tokio::test]
async fn forty_endless_commands_of_one_agent_keep_no_other_from_starting() {
    let daemon = Home::new().serve();
    daemon.create("hog").await;
    daemon.create("victim").await;
    let mut refused = 0;
    for number in 0..40 {
        let command = json!({"summary": "serve", "cmd": format!("sleep 1000 # {number}")});
        if let Err(error) = daemon.client.post("/control/agents/hog/tasks", &command).await {
            assert!(error.to_string().contains("commands in the background"), "{error}");
            refused += 1;
        }
    }
    assert_eq!(refused, 40 - BACKGROUND_COMMANDS_MAX, "what is more is refused, and told why");
    let mut begun = 0;
    let all_begun = |event: &holon::client::StreamedEvent| {
        begun += usize::from(event.kind == "task_started");
        begun == BACKGROUND_COMMANDS_MAX
    };
    daemon.wait("hog", 0, all_begun).await;
    let message = daemon.prompt("victim", "$ echo I am a victim").await;
    assert_eq!(daemon.settled("victim", &message).await, "processed");
    let waited = waited_ms(&daemon.events("victim").await);
    assert!(waited < 1_000, "the command waited for {waited} ms");
    daemon.control("hog", "stop").await;
    let mut ended = 0;
    daemon
        .wait("hog", 0, |event| {
            ended += usize::from(event.kind == "task_exited");
            ended == BACKGROUND_COMMANDS_MAX
        })
        .await;
}

#[tokio::test]
async fn an_agent_that_waits_for_its_turn_says_so() {
    let folder = TempDir::new().unwrap();
    let parts = parts("builtin/runbook", Arc::new(MemoryStore::default()), folder.path(), 1);
    let settings = Settings { turns_max: 1, ..parts.settings.clone() };
    let host = Host::start(Parts { settings, ..parts }).await.unwrap();
    let (handle, main, other) = (host.handle(), main_agent(), AgentId::parse("other").unwrap());
    create(&handle, &other).await;
    let gate = folder.path().join("workspace/go");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    handle.submit(&main, prompt("$ cat go"), Vec::new()).await.unwrap();
    until(&handle, &main, |state| state.tasks.open.values().any(|task| task.attempt.is_some())).await;

    handle.submit(&other, prompt("say: me too"), Vec::new()).await.unwrap();
    let waits = loop {
        match handle.waits_for_permit(&other).pop() {
            Some(waits) => break waits,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!((waits.kind, &waits.agent_id), (PermitKind::Turn, &other));
    assert_eq!(handle.waiting_for_permit(10), [waits]);
    assert_eq!(handle.waits_for_permit(&main), []);
    tokio::task::spawn_blocking(move || std::fs::write(&gate, "go\n").unwrap()).await.unwrap();
    assert_eq!(at_rest(&handle, &other).await, (1, 1));
    assert_eq!(handle.waiting_for_permit(10), []);
    host.shutdown().await;
}

/// Withholds `main` from the scheduler, so that what comes waits.
async fn paused(home: &Home) -> Daemon {
    let daemon = home.serve();
    daemon.prompt("main", "$ sleep 1000").await;
    daemon.wait_for("main", "task_started").await;
    daemon.abort("main", json!({})).await;
    daemon
}

#[tokio::test]
async fn a_flood_is_put_aside_by_one_verb_and_stays_readable() {
    let home = Home::new();
    let daemon = paused(&home).await;
    let mut flood = Vec::new();
    for number in 0..3 {
        flood.push(daemon.enqueue("main", &format!("noise {number}")).await);
    }
    let wanted = daemon.prompt("main", "say: still here").await;
    let run = home.run(&["agent", "drop-messages", "main", "--from", "external", "--reason", "a flood"]);
    assert_eq!(String::from_utf8_lossy(&run.stdout), "3 messages of main were put aside\n");
    for message in &flood {
        let told = daemon.get(&format!("/agents/main/messages/{message}")).await;
        assert_eq!((&told["outcome"], &told["outcome_detail"]), (&json!("dropped"), &json!("a flood")));
    }
    let settled = daemon.events("main").await;
    assert!(of_kind(&settled, "message_settled").iter().all(|settled| settled["message"] != wanted.as_str()));

    let before = json!({"before": "2020-01-01T00:00:00Z"});
    let none = daemon.post("/control/agents/main/messages/drop", before).await;
    assert_eq!((&none["dropped"], &none["left"]), (&json!(0), &json!(0)));
    let problem = daemon.refusal("/control/agents/main/messages/drop", json!({"from": "nobody"})).await;
    assert_eq!((problem.status, problem.code.as_str()), (422, "invalid_field"));
    let which = home.run(&["agent", "drop-messages", "main"]);
    assert_eq!(which.status.code(), Some(2), "all of them are dropped only if that is said");
    assert!(home.run(&["agent", "drop-messages", "--all"]).status.success());
    assert_eq!(daemon.status("main").await["agent"]["pending"], 0);
}
