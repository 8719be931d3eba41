//! Private agents: their parent's alone, and shown to whoever knows them.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// A daemon whose default agent has a child that runs on and on.
async fn parent(home: &Home) -> Daemon {
    let daemon = home.serve();
    daemon.prompt("main", "spawn: wait\n  $ sleep 600\nwait task").await;
    daemon.wait_for("main", "task_child_spawned").await;
    daemon.wait_for("main.c1", "task_started").await;
    daemon
}

#[tokio::test]
async fn a_private_agent_is_listed_to_nobody_and_told_of_by_name() {
    let home = Home::new();
    let daemon = parent(&home).await;
    let ask = Ask::new(&daemon);
    for path in ["/agents/list", "/agents", "/agents?posture=active_turn"] {
        let listed = ask.get(path).await.ok();
        assert!(listed.as_array().unwrap().iter().all(|entry| entry["identity"]["agent_id"] != "main.c1"), "{listed}");
    }
    let status = ask.get("/agents/main.c1/status").await.ok();
    assert_eq!(
        (&status["identity"]["visibility"], &status["agent"]["status"]),
        (&json!("private"), &json!("awake_running"))
    );
    for path in ["state", "tasks", "waits", "work-items", "events", "diagnostics"] {
        ask.get(&format!("/agents/main.c1/{path}")).await.ok();
    }
}

#[tokio::test]
async fn nobody_but_its_parent_writes_to_a_private_agent() {
    let home = Home::new();
    let daemon = parent(&home).await;
    let ask = Ask::new(&daemon);
    let head = daemon.head("main.c1").await;
    let writes: &[(&str, Value)] = &[
        ("/agents/main.c1/enqueue", json!({"text": "x"})),
        ("/webhooks/generic/main.c1", json!({})),
        ("/control/agents/main.c1/prompt", json!({"text": "x"})),
        ("/control/agents/main.c1/wake", json!({"reason": "x"})),
        ("/control/agents/main.c1/control", json!({"action": "stop"})),
        ("/control/agents/main.c1/current-run/abort", json!({})),
        ("/control/agents/main.c1/archive", json!({})),
        ("/control/agents/main.c1/work-items", json!({"objective": "x"})),
        ("/control/agents/main.c1/timers", json!({"duration_ms": 1})),
        ("/control/agents/main.c1/external-triggers", json!({"label": "x"})),
        ("/control/agents/main.c1/tasks/task-1/stop", json!({})),
        ("/control/agents/main.c1/workspace/exit", json!({})),
        ("/control/agents/main.c1/messages/msg-1/drop", json!({})),
    ];
    for (path, body) in writes {
        ask.post(path, body).await.refused(403, "agent_private");
    }
    assert_eq!(daemon.head("main.c1").await, head, "nothing was recorded");
    ask.post("/agents/main.c9/enqueue", json!({"text": "x"})).await.refused(404, "agent_not_found");

    // Its parent's handle is the way to it.
    ask.post("/control/agents/main/tasks/task-1/stop", "").await.ok();
    daemon.wait_for("main.c1", "agent_archived").await;
    let status = ask.get("/agents/main.c1/status").await.ok();
    assert_eq!(status["identity"]["status"], "archived");
}
