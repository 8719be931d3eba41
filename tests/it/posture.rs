//! What every surface says an agent is doing, and the places that a host has.

use crate::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// More agents than a host runs turns or model calls at once.
const AGENTS: usize = 70;
const TURNS_MAX: usize = 64;

/// The posture that status, list, CLI and state agree on, with its reason.
async fn agreed(home: &Home, daemon: &Daemon, agent: &str) -> String {
    let posture = daemon.status(agent).await["scheduling_posture"].take();
    let list = daemon.get("/agents/list").await;
    let listed = list.as_array().unwrap().iter().find(|entry| entry["identity"]["agent_id"] == agent);
    assert_eq!(listed.expect("it is listed")["scheduling_posture"], posture);
    let state = daemon.get(&format!("/agents/{agent}/state")).await;
    assert_eq!(state["agent"]["scheduling_posture"], posture);
    let shown = home.run(&["status", "--agent", agent, "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["scheduling_posture"], posture);
    let named = format!("{} ({})", posture["posture"].as_str().unwrap(), posture["reason"].as_str().unwrap());
    let text = home.run(&["status", "--agent", agent]);
    assert!(String::from_utf8_lossy(&text.stdout).contains(&named), "{text:?}");
    for seq in posture["evidence"].as_array().expect("evidence") {
        assert!(seq.as_u64().is_some_and(|seq| seq >= 1), "{posture}");
    }
    named
}

#[tokio::test]
async fn every_surface_tells_the_same_posture() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    assert_eq!(agreed(&home, &daemon, "main").await, "idle (nothing_open)");
    let message = daemon.prompt("main", "$ read go < go").await;
    daemon.wait_for("main", "task_started").await;
    assert_eq!(agreed(&home, &daemon, "main").await, "active_turn (turn_running)");
    let evidence = daemon.status("main").await["scheduling_posture"]["evidence"].clone();
    let started = daemon.wait_for("main", "turn_started").await.seq;
    assert_eq!(evidence, json!([started]));
    gate.open();
    daemon.answer("main", &message).await;
    assert_eq!(agreed(&home, &daemon, "main").await, "idle (nothing_open)");

    daemon.prompt("main", "$ read go < go").await;
    daemon.wait("main", 0, |event| event.data["payload"]["task"] == "task-2" && event.kind == "task_started").await;
    daemon.abort("main", json!({})).await;
    daemon.wait("main", 0, |event| event.data["payload"]["task"] == "task-2" && event.kind == "task_exited").await;
    assert_eq!(agreed(&home, &daemon, "main").await, "archived (paused)");
    daemon.control("main", "stop").await;
    assert_eq!(agreed(&home, &daemon, "main").await, "archived (stopped)");
    daemon.control("main", "start").await;
    assert_eq!(agreed(&home, &daemon, "main").await, "idle (nothing_open)");
}

#[tokio::test]
async fn more_agents_than_places_all_finish() {
    let home = Home::new().scripted(&json!({"rounds": [{"wait_for": "go", "text": "finished"}]}));
    let daemon = home.serve();
    let names: Vec<String> = (1..=AGENTS).map(|number| format!("agent-{number}")).collect();
    for name in &names {
        daemon.create(name).await;
        daemon.prompt(name, "work").await;
    }
    for name in &names[..TURNS_MAX] {
        daemon.wait_for(name, "round_attempted").await;
    }
    for name in &names[TURNS_MAX..] {
        assert_eq!(agreed(&home, &daemon, name).await, "has_queued_input (message_waiting)");
    }
    let limits = daemon.get("/control/runtime/status").await["limits"].clone();
    assert_eq!(limits["turns"], json!({"running": TURNS_MAX, "waiting": AGENTS - TURNS_MAX, "max": 64, "share": 32}));
    assert_eq!(limits["model_calls"], json!({"running": 32, "waiting": 32, "max": 32, "share": 16}));
    std::fs::write(home.workspace().join("go"), "").unwrap();
    for name in &names {
        assert_eq!(daemon.answer(name, "msg-1").await["text"], "finished", "{name}");
    }
}
