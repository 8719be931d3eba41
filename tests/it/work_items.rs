//! Work items over HTTP: opened, altered, picked, completed, listed, and looked at by the diagnostics.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home, of_kind};
use serde_json::{Value, json};

const ITEMS: &str = "/control/agents/main/work-items";

async fn open(ask: &Ask, objective: &str) -> String {
    let item = ask.post(ITEMS, json!({"objective": objective})).await.ok();
    item["id"].as_str().expect("an id").to_owned()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item["id"].as_str().expect("an id")).collect()
}

/// A daemon whose agent does nothing by itself: its only run was aborted.
async fn paused(home: &Home) -> Daemon {
    let gate = home.gate("go");
    let daemon = home.serve();
    daemon.prompt("main", "$ read go < go").await;
    daemon.wait_for("main", "task_started").await;
    daemon.abort("main", json!({})).await;
    drop(gate);
    daemon
}

#[tokio::test]
async fn an_item_is_opened_altered_picked_and_completed_for_good() {
    let home = Home::new();
    let daemon = paused(&home).await;
    let ask = Ask::new(&daemon);
    let item = ask.post(ITEMS, json!({"objective": " Fix the build ", "trust": "trusted_operator"})).await.ok();
    assert_eq!((&item["id"], &item["objective"]), (&json!("work-1"), &json!("Fix the build")));
    assert_eq!((&item["state"], &item["plan_status"], &item["revision"]), (&json!("open"), &json!("draft"), &json!(1)));
    assert_eq!(item["is_current"], false, "it steals no focus");

    let plan = "look first, ".repeat(1_000);
    let update = json!({
        "plan": plan, "plan_status": "ready", "constraint": true, "delivery_target": "the repository",
        "todo_list": [{"text": "look", "status": "completed"}, {"text": "mend", "status": "pending"}],
    });
    ask.post(&format!("{ITEMS}/work-1/update"), &update).await.ok();
    ask.post(&format!("{ITEMS}/work-1/pick"), "").await.ok();
    let item = ask.get("/agents/main/work-items/work-1").await.ok();
    assert_eq!(item["plan"], plan.as_str(), "a long plan is told whole");
    assert_eq!((&item["is_current"], &item["revision"]), (&json!(true), &json!(2)));
    assert_eq!(item["todo_list"], update["todo_list"]);

    ask.post(&format!("{ITEMS}/work-1/update"), json!({"blocked_by": "the key is missing"})).await.ok();
    let blocked = ask.get("/agents/main/work-items/work-1").await.ok();
    assert_eq!((&blocked["scheduling"], &blocked["blocked_by"]), (&json!("blocked"), &json!("the key is missing")));
    assert!(blocked["recheck_at"].is_string());
    ask.post(&format!("{ITEMS}/work-1/update"), json!({"blocked_by": ""})).await.ok();

    ask.post(&format!("{ITEMS}/work-1/complete"), json!({"result_summary": "it builds"})).await.ok();
    let done = ask.get("/agents/main/work-items/work-1").await.ok();
    for (name, value) in [
        ("state", json!("completed")),
        ("objective", json!("Fix the build")),
        ("plan", json!(plan)),
        ("plan_status", json!("ready")),
        ("result_summary", json!("it builds")),
        ("todos_unfinished", json!(1)),
        ("revision", json!(4)),
    ] {
        assert_eq!(done[name], value, "{name}: {done}");
    }
    let head = daemon.head("main").await;
    ask.post(&format!("{ITEMS}/work-1/complete"), "{}").await.ok();
    assert_eq!(daemon.head("main").await, head, "completing again changes nothing");
    ask.post(&format!("{ITEMS}/work-1/update"), json!({"plan": "x"})).await.refused(409, "has_ended");
    ask.post(&format!("{ITEMS}/work-1/pick"), "{}").await.refused(409, "has_ended");
    let briefs = daemon.get("/agents/main/briefs").await;
    assert_eq!(briefs.as_array().unwrap().last().unwrap()["text"], "it builds");
}

#[tokio::test]
async fn items_are_paged_what_is_open_first_and_none_is_left_out() {
    let home = Home::new();
    let daemon = paused(&home).await;
    let ask = Ask::new(&daemon);
    for number in 1..=7 {
        open(&ask, &format!("item {number}")).await;
    }
    for done in ["work-2", "work-5", "work-6"] {
        ask.post(&format!("{ITEMS}/{done}/complete"), "{}").await.ok();
    }
    let order = ["work-7", "work-4", "work-3", "work-1", "work-6", "work-5", "work-2"];
    assert_eq!(ids(&ask.get("/agents/main/work-items").await.ok()), order);
    for limit in 1..=8 {
        let pages = daemon.client.list(&format!("/agents/main/work-items?limit={limit}")).await.expect("pages");
        assert_eq!(ids(&json!(pages)), order, "by {limit}");
    }
    let first = ask.get("/agents/main/work-items?limit=4").await;
    let next = first.header("link").split(['<', '>']).nth(1).expect("a link").to_owned();
    // One that ends between two pages is told of again.
    ask.post(&format!("{ITEMS}/work-3/complete"), "{}").await.ok();
    assert_eq!(ids(&ask.get(&next).await.ok()), ["work-6", "work-5", "work-3", "work-2"]);
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!(ids(&state["work_items"]), ["work-1", "work-4", "work-7"]);
    assert_eq!(state["counts"]["work_items"], 3);
    for number in 8..=60 {
        open(&ask, &format!("item {number}")).await;
    }
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!(
        (ids(&state["work_items"]).len(), &state["counts"]["work_items"]),
        (50, &json!(56)),
        "a list has its end"
    );
}

#[tokio::test]
async fn the_same_key_opens_one_item_and_another_body_is_refused() {
    let home = Home::new();
    let daemon = paused(&home).await;
    let ask = Ask::new(&daemon);
    let first = ask.post_as("k", ITEMS, json!({"objective": "once"})).await.ok();
    assert_eq!(ask.post_as("k", ITEMS, json!({"objective": "once"})).await.ok(), first);
    ask.post_as("k", ITEMS, json!({"objective": "twice"})).await.refused(422, "idempotency_key_reused");
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "work_item_created").len(), 1);
}

#[tokio::test]
async fn the_diagnostics_name_what_nothing_will_take_up() {
    let home = Home::new();
    let daemon = paused(&home).await;
    let ask = Ask::new(&daemon);
    open(&ask, "can go on").await;
    open(&ask, "cannot").await;
    ask.post(&format!("{ITEMS}/work-2/update"), json!({"blocked_by": "a review"})).await.ok();
    let told = ask.get("/agents/main/diagnostics").await.ok();
    let named = |told: &Value| -> Vec<(String, String)> {
        let entries = told["diagnostics"].as_array().expect("diagnostics");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        entries.iter().map(|entry| (text(&entry["kind"]), text(&entry["work_item_id"]))).collect()
    };
    let kind = |kind: &str, work: &str| (kind.to_owned(), work.to_owned());
    assert_eq!(named(&told), [kind("idle_with_runnable_work", "work-1"), kind("blocker_without_wait", "work-2")]);
    for work in ["work-1", "work-2"] {
        ask.post(&format!("{ITEMS}/{work}/complete"), "{}").await.ok();
    }
    daemon.control("main", "start").await;
    daemon.prompt("main", "work: ship\nwait external").await;
    daemon.wait_for("main", "wait_created").await;
    daemon.wait("main", 0, |event| event.kind == "turn_terminal" && event.data["payload"]["run"] == "run-2").await;
    let told = ask.get("/agents/main/diagnostics").await.ok();
    assert_eq!(named(&told), [kind("weak_external_wait", "work-3")], "{told}");
    assert_eq!(told["posture"], "waiting_for_external");
    let posture = daemon.status("main").await["scheduling_posture"].clone();
    assert_eq!(posture["has_weak_external_wait"], true);
    let listed = ask.get("/agents?posture=waiting_for_external").await.ok();
    assert_eq!(listed[0]["scheduling_posture"], posture);
    assert_eq!(ask.get("/agents?posture=idle").await.ok(), json!([]));
}
