//! Those who have no token: capabilities that reach one agent, and webhooks.

use crate::ask::{Ask, Told, parts, raw};
use crate::daemon::{Daemon, Home, of_kind};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const TRIGGERS: &str = "/control/agents/main/external-triggers";

/// Makes a capability; answers the path below the server by which it is used.
async fn capability(ask: &Ask, mode: &str) -> String {
    let made = ask.post(TRIGGERS, json!({"label": "ci", "delivery_mode": mode})).await.ok();
    let url = made["trigger_url"].as_str().expect("a URL").to_owned();
    url.strip_prefix(&ask.base).unwrap_or_else(|| panic!("{url} is not at {}", ask.base)).to_owned()
}

async fn call(ask: &Ask, path: &str, kind: &str, body: &[u8]) -> Told {
    ask.send("POST", path, |request| request.header("content-type", kind).body(body.to_vec())).await
}

/// Whether any file below `folder` holds `text`.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    let mut entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.any(|path| match path.is_dir() {
        true => is_on_disk(&path, text),
        false => fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes())),
    })
}

async fn message(daemon: &Daemon, told: &Value) -> Value {
    let id = told["message_id"].as_str().expect("a message");
    daemon.get(&format!("/agents/main/messages/{id}")).await
}

#[tokio::test]
async fn a_capability_brings_a_message_with_what_was_sent() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let path = capability(&ask, "enqueue_message").await;
    assert!(path.starts_with("/callbacks/enqueue/cb_"), "{path}");
    for (kind, body, seen) in [
        ("application/json", r#"{"a": 1}"#, json!({"type": "json", "value": {"a": 1}})),
        ("application/vnd.ci+json; charset=utf-8", "[1]", json!({"type": "json", "value": [1]})),
        ("text/plain", "it built", json!({"type": "text", "text": "it built"})),
        ("application/x-www-form-urlencoded", "a=1", json!({"type": "text", "text": "a=1"})),
        ("application/json", "", json!({"type": "text", "text": ""})),
    ] {
        let told = call(&ask, &path, kind, body.as_bytes()).await.ok();
        assert_eq!((&told["agent_id"], &told["disposition"]), (&json!("main"), &json!("enqueued")));
        let message = message(&daemon, &told).await;
        assert_eq!(message["body"], seen, "{kind}");
        assert_eq!((&message["kind"], &message["trust"]), (&json!("callback_event"), &json!("trusted_integration")));
        assert_eq!(message["admission_context"], "external_trigger_capability");
        assert_eq!(message["origin"]["descriptor_id"], "trigger-1");
    }
    call(&ask, &path, "application/json", b"{").await.refused(400, "invalid_json");
    call(&ask, &path, "text/plain", b"\xFF\xFE").await.refused(415, "unsupported_media_type");
    let shown = ask.get("/agents/main/external-triggers/trigger-1").await.ok();
    assert_eq!((&shown["delivery_count"], &shown["trigger_url"]), (&json!(5), &json!(null)));
}

#[tokio::test]
async fn a_hint_wakes_the_agent_and_ends_its_waits_for_the_outside() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "work: ship\nwait external\ndone").await;
    daemon.wait_for("main", "turn_terminal").await;
    let path = capability(&ask, "wake_hint").await;
    let told = call(&ask, &path, "text/plain", b"").await.ok();
    assert_eq!((&told["disposition"], &told["delivery_mode"]), (&json!("woken"), &json!("wake_hint")));
    daemon.wait_for("main", "wait_triggered").await;
    daemon.wait_for("main", "work_item_completed").await;
    let delivered = daemon.wait_for("main", "callback_delivered").await;
    assert_eq!(delivered.data["payload"]["trigger"], "trigger-1");
}

#[tokio::test]
async fn whatever_is_wrong_with_a_capability_is_told_alike() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let revoked = capability(&ask, "wake").await;
    ask.post(&format!("{TRIGGERS}/trigger-1/revoke"), "").await.ok();
    ask.post(&format!("{TRIGGERS}/trigger-1/revoke"), "").await.refused(409, "has_ended");
    let shown = ask.get("/agents/main/external-triggers").await.ok();
    assert_eq!((&shown[0]["status"], &shown[0]["label"]), (&json!("revoked"), &json!("ci")));
    let live = capability(&ask, "wake").await;
    let unknown = format!("/callbacks/wake/cb_{}", "0".repeat(64));
    let other_mode = live.replace("/wake/", "/enqueue/");
    let cut = &live[..live.len() - 1];
    let head = daemon.head("main").await;
    let mut said = Vec::new();
    for path in [&revoked, &unknown, &other_mode, cut, "/callbacks/wake/x", "/callbacks/enqueue/%FF"] {
        let told = call(&ask, path, "application/json", b"{}").await;
        said.push(told.refused(404, "invalid_callback"));
        call(&ask, path, "application/json", b"{").await.refused(400, "invalid_json");
    }
    assert!(said.windows(2).all(|pair| pair[0] == pair[1]), "{said:#?}");
    assert_eq!(daemon.head("main").await, head);
    ask.send("GET", &live, |request| request).await.refused(405, "method_not_allowed");

    for path in [&unknown, &live] {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 262145\r\n\r\n");
        let answer = raw(&daemon, head.as_bytes());
        let (status, body) = parts(&answer);
        assert_eq!(status, 413, "{answer}");
        assert!(body.contains("body_too_large") && body.contains("262144"), "{body}");
    }
    call(&ask, &live, "text/plain", &vec![b'x'; 256 * 1024]).await.ok();
    daemon.control("main", "stop").await;
    call(&ask, &live, "text/plain", b"").await.refused(409, "agent_stopped");
}

#[tokio::test]
async fn a_token_is_shown_once_and_kept_nowhere() {
    let home = Home::new().environment("HOLON_LOG", "trace");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let body = json!({"label": "ci"});
    let made = ask.post_as("k", TRIGGERS, &body).await.ok();
    let url = made["trigger_url"].as_str().expect("a URL").to_owned();
    let token = url.rsplit('/').next().expect("a token").to_owned();
    let path = url.strip_prefix(&ask.base).expect("ours");
    call(&ask, path, "text/plain", b"hello").await.ok();
    let again = ask.post_as("k", TRIGGERS, &body).await.ok();
    assert_eq!((&again["id"], &again["trigger_url"]), (&made["id"], &json!(null)), "a second answer holds no secret");
    assert_eq!(of_kind(&daemon.events("main").await, "external_trigger_created").len(), 1);
    for path in ["events?projection=local_debug", "events", "state", "status", "external-triggers", "briefs"] {
        let shown = ask.get(&format!("/agents/main/{path}")).await;
        assert!(!shown.text.contains(&token), "{path}");
    }
    daemon.stop();
    assert!(!home.log().contains(&token), "the log");
    assert!(!is_on_disk(&home.path(), &token), "the home");

    let daemon = home.serve();
    let path = path.to_owned();
    call(&Ask::new(&daemon), &path, "text/plain", b"later").await.ok();
}

#[tokio::test]
async fn a_webhook_is_anybodys_and_needs_no_token() {
    let home = Home::new().environment("HOLON_CONTROL_TOKEN", "the-operators-secret");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    ask.get("/agents/main/status").await.refused(401, "unauthorized");
    let path = "/webhooks/generic/main";
    for body in [json!({"event": "ci"}), json!([1, 2]), json!("text"), json!(null)] {
        let told = ask.post(path, &body).await.ok();
        let message = message(&daemon, &told).await;
        assert_eq!(message["body"], json!({"type": "json", "value": body}));
        for (name, value) in [
            ("kind", "webhook_event"),
            ("trust", "trusted_integration"),
            ("priority", "normal"),
            ("delivery_surface", "http_webhook"),
            ("admission_context", "public_unauthenticated"),
        ] {
            assert_eq!(message[name], value, "{name}");
        }
    }
    let first = ask.post_as("delivery-1", path, "{}").await.ok();
    assert_eq!(ask.post_as("delivery-1", path, "{}").await.ok(), first, "a delivery that is repeated is one message");
    ask.post(path, "{").await.refused(400, "invalid_json");
    ask.post(path, "").await.refused(400, "invalid_json");
    call(&ask, path, "text/plain", b"{}").await.refused(415, "unsupported_media_type");
    ask.post("/webhooks/generic/nobody", "{}").await.refused(404, "agent_not_found");
    ask.post("/webhooks/generic/a%2Fb", "{}").await.refused(400, "invalid_agent_id");

    let operator = ask.with_token("the-operators-secret");
    let made = operator.post(TRIGGERS, json!({"label": "ci"})).await.ok();
    let capability = made["trigger_url"].as_str().unwrap().strip_prefix(&ask.base).unwrap().to_owned();
    call(&ask, &capability, "text/plain", b"hello").await.ok();
    ask.post(TRIGGERS, json!({"label": "ci"})).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_private_agent_is_reached_by_the_capability_that_it_made() {
    let call = |tool: &str, arguments: Value| json!({"calls": [{"tool": tool, "arguments": arguments}]});
    // The parent and its child follow the same script; what a child may not do is refused, and it goes on.
    let rounds = json!([
        call("SpawnAgent", json!({"initial_message": "wait for the build"})),
        call("CreateExternalTrigger", json!({"mode": "enqueue", "label": "ci"})),
        call("WaitFor", json!({"wake": "external", "reason": "the build"})),
    ]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let daemon = home.serve();
    daemon.prompt("main", "start").await;
    daemon.wait_for("main", "task_child_spawned").await;
    daemon.wait_for("main.c1", "wait_created").await;
    let file = home.path().join("triggers").join("main.c1-trigger-1.url");
    let urls = fs::read_to_string(file).expect("the agent has its URL");
    let url = urls.lines().find(|url| url.contains("/enqueue/")).expect("a URL for each mode");
    let ask = Ask::new(&daemon);
    let path = url.strip_prefix(&ask.base).expect("it names the server that answers");
    let told = call_text(&ask, path, "it built").await.ok();
    assert_eq!((&told["agent_id"], &told["disposition"]), (&json!("main.c1"), &json!("enqueued")));
    daemon.wait_for("main.c1", "wait_triggered").await;
    daemon.wait_for("main", "task_exited").await;
    daemon.wait_for("main.c1", "agent_archived").await;
    call_text(&ask, path, "again").await.refused(404, "invalid_callback");
}

async fn call_text(ask: &Ask, path: &str, text: &str) -> Told {
    call(ask, path, "text/plain", text.as_bytes()).await
}
