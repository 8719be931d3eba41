//! What comes in: public callers, operators and wakes, and requests that are sent twice.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home};
use serde_json::{Value, json};

const ENQUEUE: &str = "/agents/main/enqueue";

async fn sent(ask: &Ask, body: Value) -> Value {
    let told = ask.post(ENQUEUE, body).await.ok();
    ask.get(&format!("/agents/main/messages/{}", told["message_id"].as_str().expect("an id"))).await.ok()
}

#[tokio::test]
async fn a_public_message_keeps_where_it_came_from() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let webhook = sent(
        &ask,
        json!({
            "kind": "webhook_event", "priority": "next", "text": "built",
            "origin": {"kind": "webhook", "source": "ci", "event_type": "build"},
            "metadata": {"run": 7, "nested": [null, {"a": "b"}]},
            "correlation_id": "c-1", "causation_id": "c-0",
        }),
    )
    .await;
    let channel = sent(
        &ask,
        json!({
            "kind": "channel_event", "priority": "background", "text": "hi",
            "origin": {"kind": "channel", "channel_id": "general", "sender_id": "U1"},
        }),
    )
    .await;
    for (message, kind, trust, authority, lane) in [
        (&webhook, "webhook_event", "trusted_integration", "integration_signal", "next"),
        (&channel, "channel_event", "untrusted_external", "external_evidence", "background"),
    ] {
        assert_eq!(message["kind"], kind);
        assert_eq!(message["trust"], trust);
        assert_eq!(message["authority_class"], authority);
        assert_eq!(message["priority"], lane);
        assert_eq!(message["delivery_surface"], "http_public_enqueue");
        assert_eq!(message["admission_context"], "public_unauthenticated");
    }
    assert_eq!(webhook["origin"], json!({"kind": "webhook", "source": "ci", "event_type": "build"}));
    assert_eq!(webhook["metadata"], json!({"run": 7, "nested": [null, {"a": "b"}]}));
    assert_eq!((&webhook["correlation_id"], &webhook["causation_id"]), (&json!("c-1"), &json!("c-0")));
    assert_eq!(channel["origin"], json!({"kind": "channel", "channel_id": "general", "sender_id": "U1"}));

    let events = daemon.events("main").await;
    let recorded: Vec<&Value> = events.iter().filter(|event| event["type"] == "message_enqueued").collect();
    assert_eq!(recorded.len(), 2);
    assert_eq!(recorded[0]["provenance"]["origin"], webhook["origin"]);
    assert_eq!(recorded[0]["provenance"]["correlation_id"], "c-1");
    assert_eq!(recorded[0]["cause"], "external");
}

#[tokio::test]
async fn a_public_caller_claims_neither_authority_nor_the_runtimes_words() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let channel = json!({"kind": "channel", "channel_id": "general"});
    let mut bodies = vec![
        json!({"priority": "interject"}),
        json!({"priority": "interrupt"}),
        json!({"kind": "channel_event"}),
        json!({"kind": "webhook_event", "origin": channel}),
        json!({"kind": "operator_prompt", "origin": {"kind": "operator", "actor_id": "me"}}),
    ];
    for trust in ["trusted_operator", "trusted_system", "trusted_integration", "untrusted_external"] {
        bodies.push(json!({"trust": trust}));
    }
    for kind in [
        "operator_prompt",
        "callback_event",
        "timer_tick",
        "system_tick",
        "task_result",
        "task_status",
        "control",
        "internal_followup",
    ] {
        bodies.push(json!({"kind": kind}));
    }
    for origin in [
        json!({"kind": "operator"}),
        json!({"kind": "callback", "descriptor_id": "d"}),
        json!({"kind": "timer", "timer_id": "timer-1"}),
        json!({"kind": "system", "subsystem": "wake"}),
        json!({"kind": "task", "task_id": "task-1"}),
    ] {
        bodies.push(json!({"origin": origin}));
    }
    for body in bodies {
        for path in [ENQUEUE, "/enqueue"] {
            ask.post(path, &body).await.refused(403, "not_allowed");
        }
    }
    let made_up = ask.post(ENQUEUE, json!({"origin": {"kind": "oracle"}})).await;
    assert_eq!(made_up.refused(422, "invalid_field")["field"], "origin.kind");
    assert_eq!(ask.get("/agents/main/ledger").await.ok()["events"], crate::daemon::BORN, "nothing was recorded");
    sent(&ask, json!({"authority_class": "operator_instruction"})).await;
}

#[tokio::test]
async fn body_goes_before_text_and_text_before_json() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let text = json!({"type": "text", "text": "b"});
    for (body, expected) in [
        (json!({"body": text, "text": "t", "json": 1}), text.clone()),
        (json!({"text": "t", "json": 1}), json!({"type": "text", "text": "t"})),
        (json!({"json": {"n": [1, "two"]}}), json!({"type": "json", "value": {"n": [1, "two"]}})),
        (json!({"json": false}), json!({"type": "json", "value": false})),
        (json!({"body": {"type": "json", "value": {"a": 1}}}), json!({"type": "json", "value": {"a": 1}})),
        (
            json!({"body": {"type": "brief", "title": "T", "text": "x", "attachments": [1]}, "text": "t"}),
            json!({"type": "brief", "title": "T", "text": "x", "attachments": [1]}),
        ),
        (json!({}), json!({"type": "text", "text": ""})),
    ] {
        assert_eq!(sent(&ask, body.clone()).await["body"], expected, "{body}");
    }
    let long = "é".repeat(40_000);
    assert_eq!(sent(&ask, json!({"text": long})).await["body"]["text"], long, "a long text comes back whole");
    for wrong in
        [json!({"type": "text"}), json!({"type": "json"}), json!({"type": "song", "text": "la"}), json!({"text": "x"})]
    {
        ask.post(ENQUEUE, json!({"body": wrong})).await.refused(422, "invalid_field");
    }
}

#[tokio::test]
async fn an_operators_prompt_is_known_as_one() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let prompt = ask.post("/control/agents/main/prompt", json!({"text": "say: hello"})).await.ok();
    let id = prompt["message_id"].as_str().unwrap();
    let brief = daemon.answer("main", id).await;
    assert_eq!(brief["text"], "hello");
    let message = ask.get(&format!("/agents/main/messages/{id}")).await.ok();
    for (name, value) in [
        ("kind", "operator_prompt"),
        ("trust", "trusted_operator"),
        ("authority_class", "operator_instruction"),
        ("priority", "interject"),
        ("delivery_surface", "http_control_prompt"),
        ("admission_context", "local_process"),
        ("outcome", "processed"),
        ("run_id", "run-1"),
    ] {
        assert_eq!(message[name], value, "{name}");
    }
    assert_eq!(message["brief_ids"], json!(["brief-1", "brief-2"]), "its acknowledgement and its answer");
}

#[tokio::test]
async fn a_message_names_its_briefs_however_old_it_is() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let first = daemon.prompt("main", "say: first").await;
    daemon.answer("main", &first).await;
    for number in 0..40 {
        let later = daemon.prompt("main", &format!("say: {number}")).await;
        daemon.settled("main", &later).await;
    }
    let message = ask.get(&format!("/agents/main/messages/{first}")).await.ok();
    assert_eq!(message["brief_ids"], json!(["brief-1", "brief-2"]));
}

/// A daemon whose default agent runs a command that waits at the fifo `gate`.
async fn busy(home: &Home) -> Daemon {
    nix::unistd::mkfifo(&home.workspace().join("gate"), nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let daemon = home.serve();
    daemon.prompt("main", "$ cat gate").await;
    daemon.wait("main", 0, |event| event.kind == "task_started").await;
    daemon
}

fn open_gate(home: &Home) {
    std::fs::write(home.workspace().join("gate"), "open\n").expect("a reader waits");
}

#[tokio::test]
async fn a_prompt_during_a_run_is_answered_by_that_run() {
    let home = Home::new();
    let daemon = busy(&home).await;
    let joined = daemon.prompt("main", "say: joined").await;
    open_gate(&home);
    assert_eq!(daemon.settled("main", &joined).await, "interjected");
    let brief = daemon.answer("main", &joined).await;
    let message = daemon.get(&format!("/agents/main/messages/{joined}")).await;
    assert_eq!((&message["outcome"], &message["run_id"]), (&json!("interjected"), &json!("run-1")));
    let briefs = message["brief_ids"].as_array().unwrap();
    assert_eq!(briefs.last(), Some(&brief["id"]), "the run's answer is its answer: {message}");
    assert_eq!(briefs.len(), 2, "{message}");
}

#[tokio::test]
async fn wakes_are_woken_then_gathered_and_what_says_nothing_new_is_ignored() {
    let home = Home::new();
    let daemon = busy(&home).await;
    let ask = Ask::new(&daemon);
    let wake = async |body: Value| ask.post("/control/agents/main/wake", body).await.ok();
    let head = async || ask.get("/agents/main/ledger").await.ok()["event_seq"].as_u64().unwrap();

    let first = wake(json!({"reason": "one"})).await;
    assert_eq!(first["disposition"], "woken");
    let second = wake(json!({"reason": "two", "source": "cron"})).await;
    assert_eq!((&second["disposition"], &second["message_id"]), (&json!("coalesced"), &first["message_id"]));
    assert_eq!(wake(json!({"reason": "two", "source": "other"})).await["disposition"], "coalesced");
    let before = head().await;
    assert_eq!(wake(json!({"reason": "two", "source": "cron"})).await["disposition"], "ignored");
    assert_eq!(wake(json!({"reason": "one"})).await["disposition"], "ignored");
    assert_eq!(head().await, before, "repeating a wake leaves no event");

    open_gate(&home);
    let tick = first["message_id"].as_str().unwrap();
    assert_eq!(daemon.settled("main", tick).await, "processed");
    assert_eq!(wake(json!({"reason": "one"})).await["disposition"], "woken", "a later one is a new one");
    let message = daemon.get(&format!("/agents/main/messages/{tick}")).await;
    assert_eq!((&message["kind"], &message["trust"]), (&json!("system_tick"), &json!("trusted_system")));
}

/// Every POST that names an agent, with a body and another one that it takes as well.
fn keyed() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("/agents/main/enqueue", json!({"text": "a"}), json!({"text": "b"})),
        ("/enqueue", json!({"text": "a"}), json!({"text": "b"})),
        ("/control/agents/new/create", json!({}), json!({"trust": "trusted_operator"})),
        ("/control/agents/main/prompt", json!({"text": "say: a"}), json!({"text": "say: b"})),
        ("/control/agents/main/wake", json!({"reason": "a"}), json!({"reason": "b"})),
        ("/control/agents/other/control", json!({"action": "stop"}), json!({"action": "start"})),
    ]
}

async fn answers(daemon: &Daemon, agent: &str, key: &str) -> usize {
    let events = daemon.events(agent).await;
    events.iter().filter(|event| event["type"] == "request_answered" && event["payload"]["key"] == key).count()
}

#[tokio::test]
async fn a_request_that_is_sent_again_under_its_key_has_its_answer_and_no_further_effect() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    ask.post("/control/agents/other/create", "{}").await.ok();
    let mut first = Vec::new();
    for (index, (path, body, _)) in keyed().into_iter().enumerate() {
        first.push(ask.post_as(&format!("key-{index}"), path, &body).await.ok());
    }
    for (index, (path, body, other)) in keyed().into_iter().enumerate() {
        let key = format!("key-{index}");
        let agent = path.split('/').rev().nth(1).filter(|agent| !agent.is_empty()).unwrap_or("main");
        assert_eq!(ask.post_as(&key, path, &body).await.ok(), first[index], "{path}");
        ask.post_as(&key, path, &other).await.refused(422, "idempotency_key_reused");
        assert_eq!(answers(&daemon, agent, &key).await, 1, "{path}");
    }
    let elsewhere = ask.post_as("key-3", "/control/agents/main/wake", json!({"reason": "a"})).await;
    elsewhere.refused(422, "idempotency_key_reused");
    let of_another_agent = ask.post_as("key-0", "/agents/other/enqueue", json!({"text": "a"})).await;
    of_another_agent.refused(409, "agent_stopped");
    daemon.kill();

    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    for (index, (path, body, other)) in keyed().into_iter().enumerate() {
        let key = format!("key-{index}");
        assert_eq!(ask.post_as(&key, path, &body).await.ok(), first[index], "{path}");
        ask.post_as(&key, path, &other).await.refused(422, "idempotency_key_reused");
    }
    let events = daemon.events("main").await;
    let enqueued = |event: &&Value| event["type"] == "message_enqueued" && event["payload"]["kind"] == "webhook_event";
    assert_eq!(events.iter().filter(enqueued).count(), 2);
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn an_abort_is_told_again_under_its_key_when_there_is_no_run_any_more() {
    let home = Home::new();
    let daemon = busy(&home).await;
    let ask = Ask::new(&daemon);
    let path = "/control/agents/main/current-run/abort";
    let aborted = ask.post_as("stop it", path, json!({"mode": "idle_after_abort"})).await.ok();
    assert_eq!(ask.post_as("stop it", path, json!({"mode": "idle_after_abort"})).await.ok(), aborted);
    ask.post_as("stop it", path, json!({})).await.refused(422, "idempotency_key_reused");
    ask.post_as("again", path, json!({})).await.refused(409, "no_current_run");
}

#[tokio::test]
async fn requests_under_one_key_at_once_have_one_effect() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let requests = (0..32).map(|_| ask.post_as("once", ENQUEUE, json!({"text": "x"})));
    let told = futures::future::join_all(requests).await;
    assert!(told.iter().all(|told| told.ok() == told_once(&told.text)), "all are told of msg-1");
    let events = daemon.events("main").await;
    assert_eq!(events.iter().filter(|event| event["type"] == "message_enqueued").count(), 1);
}

fn told_once(text: &str) -> Value {
    let told: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(told["message_id"], "msg-1");
    told
}

#[tokio::test]
async fn a_key_has_a_form() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let long = "k".repeat(256);
    for key in ["", long.as_str()] {
        let problem = ask.post_as(key, ENQUEUE, "{}").await.refused(422, "invalid_field");
        assert_eq!(problem["field"], "Idempotency-Key");
    }
    let odd = reqwest::header::HeaderValue::from_bytes(b"\xff").unwrap();
    ask.send("POST", ENQUEUE, |request| request.header("Idempotency-Key", odd)).await.refused(400, "invalid_header");
}
