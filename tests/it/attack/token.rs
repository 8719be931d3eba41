//! Named tokens: who is who, what each may do, and how their rights end.

use super::actor::CONTROL;
use crate::ask::Ask;
use crate::cli::say;
use crate::daemon::{Daemon, Home, PATIENCE};
use crate::openapi::operations;
use futures::StreamExt;
use holon::client::{Address, Client, ClientError};
use serde_json::{Value, json};

/// A named token's secret, as the one who may make them is told it.
async fn made(admin: &Ask, name: &str, scope: &str) -> String {
    let made = admin.post("/control/tokens", json!({"name": name, "scopes": [scope]})).await.ok();
    made["token"].as_str().expect("a secret").to_owned()
}

fn guarded() -> Home {
    Home::new().environment("HOLON_CONTROL_TOKEN", CONTROL)
}

async fn actor_of(daemon: &Daemon, agent: &str, kind: &str) -> Value {
    let events = daemon.events(agent).await;
    let event = events.iter().rev().find(|event| event["type"] == kind);
    event.unwrap_or_else(|| panic!("{agent} has no {kind}"))["provenance"]["actor"]["token"].clone()
}

#[tokio::test]
async fn two_named_tokens_are_told_apart_by_ledgers_events_and_status() {
    let home = guarded();
    let (gate, mut signs) = (home.gate("gate"), home.signs("signs"));
    let daemon = home.serve();
    let control = Ask::new(&daemon).with_token(CONTROL);
    let alice = control.with_token(&made(&control, "alice", "operate").await);
    let bob = control.with_token(&made(&control, "bob", "admin").await);

    alice.post("/control/agents/worker/create", json!({})).await.ok();
    let command = format!("$ cd {}; echo > signs; read go < gate", home.workspace().display());
    alice.post("/control/agents/worker/prompt", json!({"text": command})).await.ok();
    signs.next().await;
    bob.post("/control/agents/worker/current-run/abort", json!({"mode": "idle_after_abort"})).await.ok();
    alice.post("/control/agents/worker/model", json!({"model": "builtin/runbook"})).await.ok();
    bob.post("/control/agents/worker/control", json!({"action": "stop"})).await.ok();
    gate.open();

    let kinds = [
        ("agent_created", "alice"),
        ("message_enqueued", "alice"),
        ("current_run_aborted", "bob"),
        ("agent_model_override_set", "alice"),
        ("agent_stopped", "bob"),
    ];
    for (kind, who) in kinds {
        assert_eq!(actor_of(&daemon, "worker", kind).await, who, "{kind}");
    }
    let status = daemon.status("worker").await["controlled_by"].clone();
    for (what, who) in [("prompt", "alice"), ("abort", "bob"), ("model", "alice"), ("lifecycle", "bob")] {
        assert_eq!(status[what]["actor"]["token"], who, "{what}: {status}");
    }
    let events = daemon.events("worker").await;
    let prompt = events.iter().find(|event| event["type"] == "message_enqueued").expect("the prompt");
    assert_eq!(prompt["provenance"]["origin"]["actor_id"], "alice", "and the agent is told so");
    let told = say(&home, &["events", "--agent", "worker"]).data().to_owned();
    assert!(told.contains("[token alice, over http]") && told.contains("[token bob, over http]"), "{told}");
    let told = say(&home, &["agent", "status", "worker"]).data().to_owned();
    assert!(told.contains("last abort by     token bob, over http"), "{told}");

    bob.post("/control/runtime/shutdown", json!({})).await.ok();
    daemon.ended();
    let daemon = home.serve();
    let events = daemon.get("/home/events?order=asc").await;
    let by = |kind: &str| -> Vec<Value> {
        let events = events["events"].as_array().expect("events").iter().filter(|event| event["type"] == kind);
        events.map(|event| event["provenance"]["actor"]["token"].clone()).collect()
    };
    assert_eq!(by("token_created"), ["control", "control"]);
    assert_eq!(by("runtime_shut_down"), ["bob"]);
    assert_eq!(daemon.get("/home/ledger/verify").await["ok"], true);
    // Another start knows the tokens that were made before it.
    let alice = alice.at(&daemon);
    alice.get("/agents/worker/status").await.ok();
}

#[tokio::test]
async fn a_read_token_reads_and_is_refused_every_mutation() {
    let daemon = guarded().serve();
    let control = Ask::new(&daemon).with_token(CONTROL);
    let reader = control.with_token(&made(&control, "reader", "read").await);
    let before = (daemon.get("/ledgers").await, daemon.get("/home/ledger").await);
    let (mut reads, mut refused) = (0, 0);
    for operation in operations().into_iter().filter(|operation| operation.is_guarded()) {
        let path = operation.path();
        let told = match operation.body() {
            Some((_, example)) => reader.post(&path, example).await,
            None if operation.template.ends_with("/stream") => continue,
            None => reader.get(&path).await,
        };
        if operation.scope() == Some("read") {
            assert!(!matches!(told.status, 401 | 403), "{} {path}: {}", operation.method, told.text);
            reads += 1;
        } else {
            told.refused(403, "insufficient_scope");
            refused += 1;
        }
        assert!(operation.method == "GET" || operation.scope() != Some("read"), "{path} is no reading");
    }
    assert!(reads > 35 && refused > 30, "{reads} {refused}");
    reader.get("/agents/main/events?projection=local_debug").await.refused(403, "insufficient_scope");
    reader.get("/agents/main/events/stream?projection=local_debug").await.refused(403, "insufficient_scope");
    reader.get("/events/stream?projection=local_debug").await.refused(403, "insufficient_scope");
    reader.get("/agents/main/events").await.ok();
    assert_eq!((daemon.get("/ledgers").await, daemon.get("/home/ledger").await), before, "nothing was recorded");
}

#[tokio::test]
async fn each_scope_does_what_it_says_and_no_more() {
    let daemon = guarded().serve();
    let control = Ask::new(&daemon).with_token(CONTROL);
    let ingress = control.with_token(&made(&control, "ingress", "ingress").await);
    let operate = control.with_token(&made(&control, "operate", "operate").await);
    ingress.post("/agents/main/enqueue", json!({"text": "hello"})).await.ok();
    ingress.get("/agents/main/status").await.refused(403, "insufficient_scope");
    ingress.post("/control/agents/main/prompt", json!({"text": "hello"})).await.refused(403, "insufficient_scope");
    operate.post("/agents/main/enqueue", json!({"text": "hello"})).await.ok();
    operate.get("/agents/main/events?projection=local_debug").await.ok();
    operate.get("/home/events").await.ok();
    operate.post("/control/runtime/shutdown", json!({})).await.refused(403, "insufficient_scope");
    operate
        .post("/control/tokens", json!({"name": "mine", "scopes": ["admin"]}))
        .await
        .refused(403, "insufficient_scope");
    operate.get("/control/tokens").await.refused(403, "insufficient_scope");
    // A token over the socket is taken at its word.
    let reader = made(&control, "reader", "read").await;
    let reader = daemon.client_with(&reader);
    reader.get("/agents/main/status").await.expect("it reads");
    match reader.post("/control/agents/main/control", &json!({"action": "stop"})).await {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, "insufficient_scope"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_at_once_and_its_stream_ends() {
    let daemon = guarded().serve();
    let control = Ask::new(&daemon).with_token(CONTROL);
    let secret = made(&control, "bob", "operate").await;
    let bob = control.with_token(&secret);
    let client = Client::new(Address::Url(daemon.url.clone()), Some(secret)).expect("a client");
    let mut stream = client.stream("/agents/main/events/stream?after_seq=0").await.expect("a stream");
    stream.next().await.expect("an event").expect("readable");
    control.post("/control/tokens/bob/revoke", json!({})).await.ok();
    bob.get("/agents/main/status").await.refused(401, "unauthorized");
    bob.post("/control/agents/main/prompt", json!({"text": "still here"})).await.refused(401, "unauthorized");
    let ended = async { while stream.next().await.is_some_and(|event| event.is_ok()) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the stream ends");
    control.post("/control/tokens/bob/revoke", json!({})).await.refused(404, "not_found");
    // The name may be given again; the secret before stays worthless.
    let again = control.with_token(&made(&control, "bob", "operate").await);
    again.get("/agents/main/status").await.ok();
    bob.get("/agents/main/status").await.refused(401, "unauthorized");
}

#[tokio::test]
async fn an_expired_token_opens_nothing() {
    let daemon = guarded().serve();
    let control = Ask::new(&daemon).with_token(CONTROL);
    let body = json!({"name": "brief", "scopes": ["read"], "lifetime_ms": 1});
    let made = control.post("/control/tokens", body).await.ok();
    let brief = control.with_token(made["token"].as_str().expect("a secret"));
    let now = daemon.get("/control/tokens").await;
    assert_eq!((&now[1]["name"], &now[1]["status"]), (&json!("brief"), &json!("expired")), "{now}");
    brief.get("/agents/main/status").await.refused(401, "unauthorized");
}

#[tokio::test]
async fn the_first_named_token_closes_local_mode_and_the_last_does_not_open_it() {
    let home = Home::new();
    let daemon = home.serve();
    let open = Ask::new(&daemon);
    open.get("/agents/main/status").await.ok();
    let anyone = Client::new(Address::Url(daemon.url.clone()), None).expect("a client");
    let mut stream = anyone.stream("/agents/main/events/stream?after_seq=0").await.expect("a stream");
    stream.next().await.expect("an event").expect("readable");
    let told = say(&home, &["token", "create", "ci", "--scope", "read", "--expires", "30d"]);
    assert!(told.err.contains("every request over TCP needs a token from now on"), "{told:?}");
    let ci = open.with_token(told.out.trim());
    open.get("/agents/main/status").await.refused(401, "unauthorized");
    assert_eq!(open.get("/handshake").await.ok()["auth"], json!({"mode": "bearer", "required": true}));
    let ended = async { while stream.next().await.is_some_and(|event| event.is_ok()) {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("a stream that no token opened ends");
    ci.get("/agents/main/status").await.ok();
    daemon.status("main").await;
    let listed = say(&home, &["token", "list"]).data().to_owned();
    assert!(listed.contains("ci") && listed.contains("read") && listed.contains("valid"), "{listed}");
    assert_eq!(say(&home, &["token", "revoke", "ci"]).data(), "revoked token ci\n");
    open.get("/agents/main/status").await.refused(401, "unauthorized");
    ci.get("/agents/main/status").await.refused(401, "unauthorized");
    assert!(daemon.stop().success());
    let daemon = home.serve();
    Ask::new(&daemon).get("/agents/main/status").await.ok();
}

#[tokio::test]
async fn names_and_scopes_are_held_to_their_rules() {
    let daemon = Home::new().serve();
    let refusals = [
        (json!({"name": "control", "scopes": ["read"]}), 422),
        (json!({"name": "", "scopes": ["read"]}), 422),
        (json!({"name": "a b", "scopes": ["read"]}), 422),
        (json!({"name": "ci", "scopes": []}), 422),
        (json!({"name": "ci", "scopes": ["root"]}), 422),
        (json!({"name": "ci", "scopes": ["read"], "lifetime_ms": 0}), 422),
    ];
    for (body, status) in refusals {
        let problem = daemon.refusal("/control/tokens", body.clone()).await;
        assert_eq!((problem.status, problem.code.as_str()), (status, "invalid_field"), "{body}");
    }
    let made = daemon.post("/control/tokens", json!({"name": "ci", "scopes": ["ingress", "read", "read"]})).await;
    assert_eq!(made["scopes"], json!(["read", "ingress"]), "each once");
    let again = daemon.refusal("/control/tokens", json!({"name": "ci", "scopes": ["read"]})).await;
    assert_eq!((again.status, again.code.as_str()), (409, "token_exists"));
}

#[tokio::test]
async fn no_secret_of_a_token_is_kept() {
    let home = Home::new().environment("HOLON_LOG", "trace");
    let daemon = home.serve();
    let made = daemon.post("/control/tokens", json!({"name": "ci", "scopes": ["read"]})).await;
    let secret = made["token"].as_str().expect("a secret").to_owned();
    let ask = Ask::new(&daemon).with_token(&secret);
    ask.get("/agents/main/status").await.ok();
    for path in ["/control/tokens", "/home/events", "/home/events?projection=local_debug"] {
        assert!(!daemon.get(path).await.to_string().contains(&secret), "{path}");
    }
    assert!(daemon.stop().success());
    let kept = std::fs::read(home.path().join("ledger.redb")).expect("the ledger");
    assert!(!kept.windows(secret.len()).any(|window| window == secret.as_bytes()), "the ledger holds the secret");
    assert!(!home.log().contains(&secret), "the log holds the secret");
}
