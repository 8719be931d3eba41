//! Bodies: what every POST takes, and what it refuses.

use crate::ask::{Ask, Told, connect, parts, raw};
use crate::daemon::Home;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// A body that each POST takes, with the fields that it knows.
fn posts() -> Vec<(&'static str, Value)> {
    vec![
        ("/agents/main/enqueue", json!({"text": "x"})),
        ("/enqueue", json!({"text": "x"})),
        ("/control/agents/other/create", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/prompt", json!({"text": "x"})),
        ("/control/agents/main/control", json!({"action": "start"})),
        ("/control/agents/main/current-run/abort", json!({"mode": "stop_after_abort"})),
        ("/control/agents/main/wake", json!({"reason": "x"})),
        ("/control/agents/main/work-items", json!({"objective": "x", "trust": "trusted_operator"})),
        ("/control/agents/main/work-items/work-1/update", json!({"objective": "x", "blocked_by": "x"})),
        ("/control/agents/main/work-items/work-1/pick", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/work-items/work-1/complete", json!({"result_summary": "x"})),
        ("/control/agents/main/tasks/task-1/input", json!({"text": "x"})),
        ("/control/agents/main/tasks/task-1/stop", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/tasks", json!({"summary": "x", "cmd": "x"})),
        ("/control/agents/main/webhook-secret", json!({"action": "clear", "trust": "trusted_operator"})),
        ("/control/agents/main/timers", json!({"duration_ms": 9, "summary": "x"})),
        ("/control/agents/main/timers/timer-1/cancel", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/waits/wait-1/cancel", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/external-triggers", json!({"label": "x", "delivery_mode": "wake_hint"})),
        ("/control/agents/main/external-triggers/trigger-1/revoke", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/messages/msg-1/drop", json!({"reason": "x"})),
        ("/control/agents/main/workspace/attach", json!({"path": "/"})),
        ("/control/agents/main/workspace/exit", json!({"trust": "trusted_operator"})),
        ("/control/agents/main/workspace/detach", json!({"workspace_id": "ws-1"})),
        ("/control/agents/main/archive", json!({"trust": "trusted_operator"})),
        ("/control/runtime/shutdown", json!({})),
    ]
}

#[tokio::test]
async fn a_body_that_is_not_json_is_malformed_and_one_of_another_shape_is_invalid() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for (path, body) in posts() {
        for text in [
            "{",
            "not json",
            "{\"text\":\"\\ud800\"}",
            "{\"text\": 01}",
            "{\"json\": 1e999}",
            "{} {}",
            " ",
            &"[".repeat(100_000),
        ] {
            ask.post(path, text).await.refused(400, "invalid_json");
        }
        ask.send("POST", path, |request| request.header("content-type", "application/json").body(&b"\"\xff\""[..]))
            .await
            .refused(400, "invalid_json");
        for text in ["null", "[]", "\"x\"", "7"] {
            ask.post(path, text).await.refused(422, "invalid_field");
        }
        let unknown = ask.post(path, with(&body, "bogus", json!(1))).await;
        assert_eq!(unknown.refused(422, "invalid_field")["field"], "bogus", "{path}");
        for (name, value) in body.as_object().unwrap() {
            for wrong in [json!(-5), json!([]), json!({"a": 1}), json!(true)] {
                let told = ask.post(path, with(&body, name, wrong.clone())).await;
                assert_eq!(told.refused(422, "invalid_field")["field"], *name, "{path} {wrong}");
            }
            let twice = format!("{{\"{name}\":{value},\"{name}\":{value}}}");
            assert_eq!(ask.post(path, twice).await.refused(422, "invalid_field")["field"], *name, "{path}");
        }
    }
    for (path, field) in [("prompt", "text"), ("control", "action"), ("wake", "reason")] {
        for body in ["{}", ""] {
            let told = ask.post(&format!("/control/agents/main/{path}"), body).await;
            assert_eq!(told.refused(422, "invalid_field")["field"], field, "{path}");
        }
    }
    assert_eq!(ask.get("/agents/main/ledger").await.ok()["events"], crate::daemon::BORN, "nothing was recorded");
}

#[tokio::test]
async fn a_value_of_another_shape_is_not_repeated_for_it_may_be_a_secret() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for (path, body, field, expected) in [
        (
            "operator-bindings",
            json!({"delivery_auth": "Bearer SECRET"}),
            "delivery_auth",
            "invalid type: string, expected",
        ),
        ("timers", json!({"duration_ms": "\", expected SECRET"}), "duration_ms", "invalid type: string, expected u64"),
        ("prompt", json!({"text": 90_210}), "text", "invalid type: integer, expected a string"),
        ("skills/install", json!({"kind": {"kind": "SECRET"}}), "kind", "expected"),
        (
            "work-items/work-1/update",
            json!({"depends_on": ["SECRET"]}),
            "depends_on[0]",
            "invalid value: string, expected",
        ),
        ("wake", json!({"reason": null}), "reason", "invalid type: null, expected a string"),
    ] {
        let problem = ask.post(&format!("/control/agents/main/{path}"), body).await.refused(422, "invalid_field");
        assert!(problem["field"].as_str().is_some_and(|told| told.starts_with(field)), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|told| told.contains(expected)), "{problem}");
        let told = problem.to_string();
        assert!(!told.contains("SECRET") && !told.contains("90210"), "{told}");
    }
}

fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}

#[tokio::test]
async fn a_body_of_another_type_is_unsupported() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for (path, body) in posts() {
        for kind in ["text/plain", "application/x-www-form-urlencoded", "", "json", "application/jsonx"] {
            let told =
                ask.send("POST", path, |request| request.header("content-type", kind).body(body.to_string())).await;
            told.refused(415, "unsupported_media_type");
        }
        let told = ask.send("POST", path, |request| request.body(body.to_string())).await;
        told.refused(415, "unsupported_media_type");
    }
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/cloudevents+json"] {
        let told = ask.send("POST", "/enqueue", |request| request.header("content-type", kind).body("{}")).await;
        told.ok();
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_however_it_is_sent() {
    let daemon = Home::new().serve();
    let head = |path: &str, length: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n{length}\r\n\r\n"
        )
    };
    for (path, _) in posts() {
        let announced = raw(&daemon, head(path, "Content-Length: 3145728").as_bytes());
        let (status, body) = parts(&announced);
        assert_eq!(status, 413, "{path}: {announced}");
        assert!(body.contains("2097152"), "it says how large a body may be: {body}");

        let mut connection = connect(&daemon, head(path, "Transfer-Encoding: chunked").as_bytes());
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        // The daemon may hang up before it has been sent everything.
        let sent = (0..48).take_while(|_| connection.write_all(chunk.as_bytes()).is_ok()).count();
        assert!(sent >= 32, "{path}: up to the limit it listens");
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || parts(&answer).0 == 413, "{path}: {answer}");
    }
    let ask = Ask::new(&daemon);
    let told = ask.post("/enqueue", json!({"text": "x".repeat(1024 * 1024 + 1)})).await;
    told.refused(422, "invalid_field");
    ask.post("/enqueue", json!({"text": "x".repeat(1024 * 1024)})).await.ok();
}

#[tokio::test]
async fn what_is_optional_may_be_null_or_left_out() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let nulls = json!({"kind": null, "priority": null, "trust": null, "body": null, "text": null, "json": null,
        "origin": null, "metadata": null, "correlation_id": null, "causation_id": null});
    for body in ["", "{}", &nulls.to_string()] {
        let sent = ask.post("/enqueue", body).await.ok();
        let message = ask.get(&format!("/agents/main/messages/{}", sent["message_id"].as_str().unwrap())).await.ok();
        assert_eq!(message["body"], json!({"type": "text", "text": ""}));
        assert_eq!(message["origin"], json!({"kind": "webhook", "source": "http", "event_type": null}));
        assert_eq!(message["metadata"], Value::Null);
    }
    ask.post("/control/agents/a/create", "").await.ok();
    ask.post("/control/agents/a/create", json!({"template": null, "trust": null})).await.ok();
    let told =
        ask.post("/control/agents/a/current-run/abort", json!({"run_id": null, "mode": null, "trust": null})).await;
    told.refused(409, "no_current_run");
    let told = ask.post(
        "/control/agents/main/wake",
        json!({"reason": "x", "source": null, "correlation_id": null, "causation_id": null}),
    );
    told.await.ok();
}

#[tokio::test]
async fn control_bodies_are_checked_by_what_they_mean() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let field = |told: Told| told.refused(422, "invalid_field")["field"].clone();
    assert_eq!(field(ask.post("/control/agents/main/control", json!({"action": "pause"})).await), "action");
    assert_eq!(
        field(ask.post("/control/agents/main/control", json!({"action": "stop", "trust": "root"})).await),
        "trust"
    );
    assert_eq!(field(ask.post("/control/agents/main/current-run/abort", json!({"mode": "now"})).await), "mode");
    assert_eq!(field(ask.post("/control/agents/main/wake", json!({"reason": " \n"})).await), "reason");
    assert_eq!(field(ask.post("/control/agents/main/wake", json!({"reason": "x".repeat(4097)})).await), "reason");
    assert_eq!(field(ask.post("/control/agents/a/create", json!({"template": "t"})).await), "template");
    assert_eq!(field(ask.post("/enqueue", json!({"priority": "asap"})).await), "priority");
    assert_eq!(field(ask.post("/enqueue", json!({"kind": "gossip"})).await), "kind");
    assert_eq!(field(ask.post("/enqueue", json!({"metadata": {"x": "y".repeat(20_000)}})).await), "metadata");
    assert_eq!(field(ask.post("/enqueue", json!({"correlation_id": "y".repeat(257)})).await), "correlation_id");
    assert_eq!(ask.get("/agents/main/ledger").await.ok()["events"], crate::daemon::BORN, "nothing was recorded");
}

#[tokio::test]
async fn what_a_write_may_not_say_is_refused_by_name() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let long = "x".repeat(300 * 1024);
    for (path, body, status, code, field) in [
        ("work-items", json!({}), 422, "invalid_field", "objective"),
        ("work-items", json!({"objective": "  "}), 422, "invalid_field", "objective"),
        ("work-items", json!({"objective": 7}), 422, "invalid_field", "objective"),
        ("work-items", json!({"objective": "x", "plan": "y"}), 422, "invalid_field", "plan"),
        ("work-items", json!({"objective": "x", "trust": "boss"}), 422, "invalid_field", "trust"),
        ("work-items", json!({"objective": long}), 422, "invalid_field", "objective"),
        ("work-items/work-1/update", json!({"plan": long}), 422, "invalid_field", "plan"),
        ("work-items/work-1/update", json!({"plan_status": "done"}), 422, "invalid_field", "plan_status"),
        ("work-items/work-1/update", json!({"recheck_after_ms": 5}), 422, "invalid_field", "recheck_after_ms"),
        ("work-items/work-1/update", json!({"depends_on": ["x"]}), 422, "invalid_field", "depends_on[0]"),
        ("work-items/work-1/update", json!({"depends_on": ["work-9"]}), 422, "invalid_field", "depends_on"),
        ("work-items/work-1/update", json!({"depends_on": ["work-1"]}), 422, "invalid_field", "depends_on"),
        ("work-items/work-1/update", json!({"todo_list": [{"text": "a"}]}), 422, "invalid_field", "todo_list[0]"),
        (
            "work-items/work-1/update",
            json!({"todo_list": [{"text": "a", "status": "?"}]}),
            422,
            "invalid_field",
            "todo_list",
        ),
        ("work-items/work-9/update", json!({"plan": "x"}), 404, "not_found", ""),
        ("work-items/9/pick", json!({}), 404, "not_found", ""),
        ("work-items/work-9/complete", json!({}), 404, "not_found", ""),
        ("tasks/task-9/stop", json!({}), 404, "not_found", ""),
        ("tasks/x/stop", json!({}), 404, "not_found", ""),
        ("tasks/task-9/input", json!({"text": "x"}), 404, "not_found", ""),
        ("tasks/task-9/input", json!({}), 422, "invalid_field", "text"),
        ("timers", json!({}), 422, "invalid_field", "duration_ms"),
        ("timers", json!({"duration_ms": 0}), 422, "invalid_field", "duration_ms"),
        ("timers", json!({"duration_ms": -1}), 422, "invalid_field", "duration_ms"),
        ("timers", json!({"duration_ms": u64::MAX}), 422, "invalid_field", "duration_ms"),
        ("timers", json!({"duration_ms": 9, "interval_ms": 9}), 422, "invalid_field", "interval_ms"),
        ("timers", json!({"duration_ms": 9, "summary": long}), 422, "invalid_field", "summary"),
        ("timers/timer-9/cancel", json!({}), 404, "not_found", ""),
        ("waits/wait-9/cancel", json!({}), 404, "not_found", ""),
        ("waits/wait-9/cancel", json!({"force": true}), 422, "invalid_field", "force"),
        ("external-triggers", json!({}), 422, "invalid_field", "label"),
        ("external-triggers", json!({"label": " "}), 422, "invalid_field", "label"),
        ("external-triggers", json!({"label": "x", "delivery_mode": "fax"}), 422, "invalid_field", "delivery_mode"),
        ("external-triggers", json!({"label": "x", "work_item_id": "work-9"}), 422, "invalid_field", "work_item_id"),
        ("external-triggers/trigger-9/revoke", json!({}), 404, "not_found", ""),
        ("messages/msg-9/drop", json!({}), 409, "message_not_waiting", ""),
        ("messages/9/drop", json!({}), 404, "message_not_found", ""),
        ("workspace/attach", json!({}), 422, "invalid_field", "path"),
        ("workspace/attach", json!({"path": "/no/such/folder"}), 400, "invalid_path", ""),
        ("workspace/attach", json!({"path": "/etc/hostname"}), 400, "invalid_path", ""),
        ("workspace/attach", json!({"path": "workspace"}), 400, "invalid_path", ""),
        ("workspace/attach", json!({"path": "/a\u{0}b"}), 400, "invalid_path", ""),
        ("workspace/detach", json!({"workspace_id": "ws-9"}), 404, "not_found", ""),
        ("workspace/detach", json!({"workspace_id": "x"}), 404, "not_found", ""),
        ("workspace/detach", json!({"workspace_id": "ws-1"}), 422, "invalid_field", "workspace_id"),
        ("workspace/detach", json!({"workspace_id": "agent_home"}), 422, "invalid_field", "workspace_id"),
        ("archive", json!({"now": true}), 422, "invalid_field", "now"),
    ] {
        if path == "work-items/work-1/update" && ask.get("/agents/main/work-items/work-1").await.status == 404 {
            ask.post("/control/agents/main/work-items", json!({"objective": "there"})).await.ok();
        }
        let problem = ask.post(&format!("/control/agents/main/{path}"), &body).await.refused(status, code);
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{path} {body:.80}: {problem}");
    }
    assert!(daemon.is_whole("main").await);
}
