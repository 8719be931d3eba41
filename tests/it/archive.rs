//! Agents that end: what is open is ended, the ledger is sealed, and reads go on.

use crate::ask::Ask;
use crate::daemon::Home;
use serde_json::json;

#[tokio::test]
async fn an_archived_agent_is_read_and_never_written_again() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.create("other").await;
    ask.post("/control/agents/other/timers", json!({"duration_ms": 3_600_000})).await.ok();
    ask.post("/control/agents/other/work-items", json!({"objective": "unfinished"})).await.ok();
    daemon.prompt("other", "$ read go < go").await;
    daemon.wait_for("other", "task_started").await;
    let archived = ask.post_as("k", "/control/agents/other/archive", "{}").await.ok();
    assert_eq!((&archived["ok"], &archived["agent_id"]), (&json!(true), &json!("other")));
    daemon.wait_for("other", "agent_archived").await;
    drop(gate);

    let head = daemon.head("other").await;
    ask.post_as("k", "/control/agents/other/archive", "{}").await.ok();
    ask.post("/control/agents/other/archive", "{}").await.ok();
    let writes = [
        ("/agents/other/enqueue", json!({"text": "x"})),
        ("/webhooks/generic/other", json!({})),
        ("/control/agents/other/prompt", json!({"text": "x"})),
        ("/control/agents/other/wake", json!({"reason": "x"})),
        ("/control/agents/other/control", json!({"action": "start"})),
        ("/control/agents/other/create", json!({})),
        ("/control/agents/other/work-items", json!({"objective": "x"})),
        ("/control/agents/other/work-items/work-1/complete", json!({})),
        ("/control/agents/other/timers", json!({"duration_ms": 1})),
        ("/control/agents/other/timers/timer-1/cancel", json!({})),
        ("/control/agents/other/external-triggers", json!({"label": "x"})),
        ("/control/agents/other/workspace/attach", json!({"path": "/"})),
    ];
    for (path, body) in &writes {
        ask.post(path, body).await.refused(410, "agent_archived");
        ask.post_as("another", path, body).await.refused(410, "agent_archived");
    }
    ask.post_as("another", "/control/agents/other/archive", "{}").await.refused(410, "agent_archived");
    assert_eq!(daemon.head("other").await, head, "the ledger is sealed");
    for path in ["status", "state", "timers", "work-items", "tasks", "briefs", "events", "ledger/verify"] {
        ask.get(&format!("/agents/other/{path}")).await.ok();
    }
    let status = ask.get("/agents/other/status").await.ok();
    assert_eq!(status["lifecycle"]["state"], "archived");
    assert_eq!(status["lifecycle"]["accepts_external_messages"], false);
    assert!(daemon.is_whole("other").await);

    daemon.kill();
    let daemon = home.serve();
    assert_eq!(daemon.head("other").await, head, "nothing is left to do for it");
    assert!(daemon.is_whole("other").await);
}

#[tokio::test]
async fn an_agent_with_nothing_open_ends_at_once_and_its_key_is_remembered() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.create("other").await;
    let archived = ask.post_as("k", "/control/agents/other/archive", "{}").await.ok();
    assert_eq!(archived["lifecycle"], "archived");
    assert_eq!(ask.post_as("k", "/control/agents/other/archive", "{}").await.ok(), archived);
    assert!(daemon.is_whole("other").await);
}
