//! Timers and waits over HTTP: set, told of, ended.

use crate::ask::Ask;
use crate::daemon::{Home, of_kind};
use serde_json::json;

const TIMERS: &str = "/control/agents/main/timers";

#[tokio::test]
async fn a_timer_fires_once_and_is_remembered() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let set = ask.post(TIMERS, json!({"duration_ms": 1, "summary": "say: time"})).await.ok();
    assert_eq!((&set["id"], &set["repeat"]), (&json!("timer-1"), &json!(false)));
    let fired = daemon.wait_for("main", "timer_fired").await;
    let message = fired.data["payload"]["message"].as_str().expect("a message").to_owned();
    assert_eq!(daemon.answer("main", &message).await["text"], "time");
    let timer = ask.get("/agents/main/timers/timer-1").await.ok();
    assert_eq!((&timer["status"], &timer["fire_count"]), (&json!("completed"), &json!(1)));
    assert!(timer["last_fired_at"].is_string() && timer["next_fire_at"].is_null(), "{timer}");
    assert_eq!(ask.get("/agents/main/timers").await.ok(), json!([timer]));
    ask.post(&format!("{TIMERS}/timer-1/cancel"), "").await.refused(409, "has_ended");
}

#[tokio::test]
async fn a_timer_that_is_cancelled_never_comes() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let body = json!({"duration_ms": 3_600_000, "interval_ms": 60_000, "trust": "trusted_operator"});
    let set = ask.post_as("k", TIMERS, &body).await.ok();
    assert_eq!(ask.post_as("k", TIMERS, &body).await.ok(), set, "the same key sets one timer");
    assert_eq!(daemon.status("main").await["scheduling_posture"]["timers_pending"], 1);
    let listed = ask.get("/agents/list").await.ok();
    assert_eq!(listed[0]["scheduling_posture"]["timers_pending"], 1);
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!((&state["timers"][0], &state["counts"]["timers"]), (&set, &json!(1)));

    ask.post(&format!("{TIMERS}/timer-1/cancel"), "").await.ok();
    let timer = ask.get("/agents/main/timers/timer-1").await.ok();
    assert_eq!((&timer["status"], &timer["fire_count"]), (&json!("cancelled"), &json!(null)));
    assert_eq!(daemon.status("main").await["scheduling_posture"]["timers_pending"], 0);
    ask.get("/agents/main/timers/timer-2").await.refused(404, "not_found");
    ask.get("/agents/main/timers/2").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_wait_is_told_of_and_its_cancelling_lets_the_work_go_on() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "work: ship\nwait external\ndone").await;
    let created = daemon.wait_for("main", "wait_created").await;
    daemon.wait_for("main", "turn_terminal").await;
    let waits = ask.get("/agents/main/waits").await.ok();
    let wait = &waits[0];
    for (name, value) in [
        ("id", json!("wait-1")),
        ("kind", json!("external")),
        ("status", json!("active")),
        ("work_item_id", json!("work-1")),
        ("external_recoverability", json!("weak")),
    ] {
        assert_eq!(wait[name], value, "{name}: {wait}");
    }
    let summary = daemon.status("main").await;
    assert_eq!(summary["active_wait_conditions"], waits);
    assert_eq!(summary["active_waiting_intents"][0]["id"], "wait-1");
    assert_eq!(summary["scheduling_posture"]["evidence"], json!([created.seq]));

    ask.post("/control/agents/main/waits/wait-1/cancel", "").await.ok();
    let over = ask.get("/agents/main/waits/wait-1").await.ok();
    assert_eq!((&over["status"], &over["work_item_id"]), (&json!("cancelled"), &json!("work-1")));
    ask.post("/control/agents/main/waits/wait-1/cancel", "").await.refused(409, "has_ended");
    daemon.wait_for("main", "work_item_completed").await;
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_message_that_waits_can_be_put_aside_and_says_why() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let first = daemon.prompt("main", "$ read go < go").await;
    daemon.wait_for("main", "task_started").await;
    let second = daemon.enqueue("main", "never mind").await;
    ask.post(&format!("/control/agents/main/messages/{second}/drop"), json!({"reason": "a mistake"})).await.ok();
    let told = ask.get(&format!("/agents/main/messages/{second}")).await.ok();
    assert_eq!((&told["outcome"], &told["outcome_detail"]), (&json!("dropped"), &json!("a mistake")));
    ask.post(&format!("/control/agents/main/messages/{first}/drop"), "").await.refused(409, "message_not_waiting");
    gate.open();
    daemon.answer("main", &first).await;
    assert_eq!(of_kind(&daemon.events("main").await, "turn_started").len(), 1);
}
