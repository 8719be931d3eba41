//! Operator bindings over the wire: a real daemon, and a transport that fails, hangs, is away and comes back.

use crate::ask::Ask;
use crate::cli::say as verb;
use crate::daemon::{Daemon, Home, of_kind};
use crate::model_server::{ModelServer, Received, Reply};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TOKEN: &str = "token-that-is-never-told";
const PATH: &str = "/hooks/path-that-is-never-told";

fn binding(transport: &ModelServer, name: &str) -> Value {
    json!({
        "binding_id": name,
        "transport": "http-callback",
        "operator_actor_id": "operator-1",
        "default_route_id": "default",
        "delivery_callback_url": format!("{}{PATH}", transport.url()),
        "delivery_auth": {"type": "bearer", "token": TOKEN},
        "capabilities": {"send_prompt": true},
        "provider": "chat",
        "provider_identity_ref": "user-123",
        "metadata": {},
    })
}

async fn bind(daemon: &Daemon, body: Value) -> Value {
    daemon.post("/control/agents/main/operator-bindings", body).await
}

async fn say(daemon: &Daemon, text: &str, route: &str) -> String {
    let body = json!({
        "text": text,
        "actor_id": "operator-1",
        "binding_id": "phone",
        "reply_route_id": route,
        "provider": "chat",
        "correlation_id": "corr-123",
    });
    let answer = daemon.post("/control/agents/main/operator-ingress", body).await;
    answer["message_id"].as_str().expect("the message").to_owned()
}

fn taken() -> Reply {
    Reply::status(200, r#"{"transport_delivery_id":"d-1"}"#)
}

fn key(received: &Received) -> &str {
    &received.headers["idempotency-key"]
}

async fn delivered(daemon: &Daemon, count: usize) {
    let mut left = count;
    let is_it = |event: &holon::client::StreamedEvent| {
        left -= usize::from(event.kind == "operator_delivery_completed");
        left == 0
    };
    daemon.wait("main", 0, is_it).await;
}

#[tokio::test]
async fn what_an_operator_says_through_a_transport_is_answered_there() {
    let (home, transport) = (Home::new(), ModelServer::start());
    transport.reply(taken());
    let daemon = home.serve();
    let made = bind(&daemon, binding(&transport, "phone")).await;
    assert_eq!(made["binding"]["binding_id"], "phone");
    assert_eq!(made["binding"]["status"], "active");
    let message = say(&daemon, "say: all is well", "route-1").await;
    delivered(&daemon, 1).await;

    let received = &transport.received()[0];
    assert_eq!(received.path, PATH);
    assert_eq!(received.headers["authorization"], format!("Bearer {TOKEN}"));
    let body = &received.body;
    assert!(body["text"].as_str().expect("a text").contains("all is well"), "{body}");
    assert_eq!(body["delivery_intent_id"], key(received));
    assert_eq!(
        (&body["route_id"], &body["binding_id"], &body["target_agent_id"], &body["kind"]),
        (&json!("route-1"), &json!("phone"), &json!("main"), &json!("operator_output"))
    );
    assert_eq!((&body["correlation_id"], &body["causation_id"]), (&json!("corr-123"), &json!(message)));

    let shown = daemon.get(&format!("/agents/main/messages/{message}")).await;
    assert_eq!(shown["trust"], "trusted_operator");
    assert_eq!(shown["delivery_surface"], "remote_operator_transport");
    assert_eq!(shown["admission_context"], "operator_transport_authenticated");
    let told = daemon.get("/agents/main/operator-bindings").await;
    assert_eq!(told[0]["delivered_count"], 1);
    assert_eq!(told[0]["owed_count"], 0);

    // Neither what opens the transport nor what it is shown is told anywhere but to it.
    let debug = daemon.get("/agents/main/events?projection=local_debug&limit=512").await;
    let state = daemon.get("/agents/main/state").await;
    for text in [made.to_string(), told.to_string(), debug.to_string(), state.to_string(), home.log()] {
        assert!(!text.contains(TOKEN) && !text.contains("path-that-is-never-told"), "{text}");
    }
    drop(daemon);
    let ledger = std::fs::read(home.path().join("ledger.redb")).expect("the ledger");
    for secret in [TOKEN, "path-that-is-never-told"] {
        assert!(!ledger.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{secret} is in the ledger");
    }
}

#[tokio::test]
async fn a_transport_that_fails_hangs_and_is_away_gets_everything_once_it_is_back() {
    let (home, transport) = (Home::new(), ModelServer::start());
    transport.reply(Reply::status(500, "{}"));
    transport.reply(Reply::Hang);
    let daemon = home.serve();
    bind(&daemon, binding(&transport, "phone")).await;
    say(&daemon, "say: first", "route-1").await;
    say(&daemon, "say: second", "route-2").await;
    // The first attempt failed; the second hangs, and dies with the daemon.
    transport.wait_for_requests(2);
    daemon.wait_for("main", "operator_delivery_failed").await;
    daemon.kill();

    transport.reply(Reply::status(503, "{}").header("retry-after", "1"));
    transport.otherwise(|_| taken());
    let daemon = home.serve();
    say(&daemon, "say: third", "route-3").await;
    delivered(&daemon, 3).await;
    let received = transport.received();
    let attempts: Vec<(&str, &str)> =
        received.iter().map(|received| (received.body["route_id"].as_str().expect("a route"), key(received))).collect();
    let keys: BTreeSet<&str> = attempts.iter().map(|(_, key)| *key).collect();
    assert_eq!(keys.len(), 3, "each has a key of its own: {attempts:?}");
    assert!(attempts[..4].iter().all(|attempt| *attempt == attempts[0]), "tried again under its key: {attempts:?}");
    let routes: Vec<&str> = attempts.iter().map(|(route, _)| *route).collect();
    assert_eq!(routes, ["route-1", "route-1", "route-1", "route-1", "route-2", "route-3"]);

    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "operator_delivery_submitted").len(), 6, "each attempt is an event");
    assert_eq!(of_kind(&events, "operator_delivery_failed").len(), 2);
    let failed = of_kind(&events, "operator_delivery_failed");
    assert_eq!(failed[1]["retry_after_ms"], 1_000, "as the transport asked");
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_transport_that_keeps_failing_is_reported_through_another() {
    let (home, phone, desk) = (Home::new(), ModelServer::start(), ModelServer::start());
    phone.otherwise(|_| Reply::status(500, "{}"));
    desk.otherwise(|_| taken());
    let daemon = home.serve();
    bind(&daemon, binding(&phone, "phone")).await;
    say(&daemon, "say: hello", "route-1").await;
    bind(&daemon, binding(&desk, "desk")).await;
    daemon.wait_for("main", "operator_notification_requested").await;
    delivered(&daemon, 1).await;
    let told = desk.received()[0].body["text"].as_str().expect("a text").to_owned();
    assert!(told.contains("phone") && told.contains("HTTP 500"), "{told}");
    let shown = daemon.get("/agents/main/operator-bindings/opbind-1").await;
    assert_eq!((&shown["status"], &shown["owed_count"]), (&json!("failing"), &json!(2)));
    assert!(Ask::new(&daemon).get("/metrics").await.text.contains("\nholon_deliveries_owed 2\n"));
    let list = verb(&home, &["binding", "list"]);
    let rows: Vec<Vec<&str>> = list.data().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..5], ["opbind-2", "desk", "http-callback", "active", "0"], "{list:?}");
    assert_eq!(rows[2][..5], ["opbind-1", "phone", "http-callback", "failing", "2"], "{list:?}");
    let notices = verb(&home, &["notices"]);
    assert!(notices.data().contains("\nnotice-1 ") && notices.data().contains("phone"), "{notices:?}");
    assert_eq!(verb(&home, &["binding", "revoke", "opbind-1"]).data(), "opbind-1 of main is revoked\n");
    assert_eq!(verb(&home, &["binding", "show", "opbind-1", "--json"]).json()["status"], "revoked");
    verb(&home, &["binding", "revoke", "opbind-1"]).refused(1, &["opbind-1", "holon binding list"]);
    let secrets = std::fs::read_to_string(home.path().join("secrets.json")).expect("the secrets");
    assert!(!secrets.contains(&phone.url()) && secrets.contains(&desk.url()), "what is revoked is forgotten");
}

#[tokio::test]
async fn a_transport_that_never_answers_does_not_hold_up_the_agent() {
    let (home, transport) = (Home::new(), ModelServer::start());
    transport.reply(Reply::Hang);
    transport.otherwise(|_| taken());
    let daemon = home.serve();
    bind(&daemon, binding(&transport, "phone")).await;
    say(&daemon, "say: first", "route-1").await;
    transport.wait_for_requests(1);
    let message = daemon.prompt("main", "say: meanwhile").await;
    assert!(daemon.settled("main", &message).await.contains("processed"));
    let failed = daemon.wait_for("main", "operator_delivery_failed").await;
    assert!(failed.data.to_string().contains("no answer within 5 seconds"), "{:?}", failed.data);
    delivered(&daemon, 1).await;
}

#[tokio::test]
async fn a_binding_is_checked_when_it_is_made_and_when_it_is_used() {
    let (home, transport) = (Home::new(), ModelServer::start());
    let daemon = home.serve();
    let path = "/control/agents/main/operator-bindings";
    let with = |field: &str, value: Value| {
        let mut body = binding(&transport, "phone");
        body[field] = value;
        body
    };
    for (field, value) in [
        ("transport", json!(" ")),
        ("operator_actor_id", json!("")),
        ("target_agent_id", json!("other")),
        ("delivery_callback_url", json!("ftp://example.com/")),
        ("delivery_callback_url", json!("https://user:pass@example.com/")),
        ("delivery_callback_url", json!("nowhere")),
        ("delivery_auth", json!({"type": "hmac"})),
        ("delivery_auth", json!({"type": "bearer"})),
        ("capabilities", json!({"send_prompt": 1})),
        ("binding_id", json!("opbind-7")),
    ] {
        let problem = daemon.refusal(path, with(field, value)).await;
        assert_eq!((problem.status, problem.code.as_str()), (422, "invalid_field"), "{field}: {}", problem.detail);
        assert!(!serde_json::to_string(&problem).expect("JSON").contains(TOKEN));
    }
    // As older clients put it.
    let older = with("delivery_auth", json!({"kind": "bearer", "bearer_token": TOKEN, "key_id": "k"}));
    bind(&daemon, older).await;
    let ingress = "/control/agents/main/operator-ingress";
    let said = |actor: &str, binding: &str, provider: &str| json!({"text": "x", "actor_id": actor, "binding_id": binding, "provider": provider});
    for body in
        [said("operator-2", "phone", "chat"), said("operator-1", "tablet", "chat"), said("operator-1", "phone", "mail")]
    {
        let problem = daemon.refusal(ingress, body).await;
        assert_eq!((problem.status, problem.code.as_str()), (403, "binding_mismatch"));
    }
    daemon.control("main", "stop").await;
    let before = daemon.head("main").await;
    let problem = daemon.refusal(ingress, said("operator-1", "phone", "chat")).await;
    assert_eq!((problem.status, problem.code.as_str()), (409, "agent_stopped"));
    assert_eq!(daemon.head("main").await, before, "nothing is recorded");
}

#[tokio::test]
async fn a_log_in_json_is_read_line_by_line_names_the_agent_and_holds_no_secret() {
    let (control, phone) = ("control-token-that-is-never-told", ModelServer::start());
    phone.otherwise(|_| Reply::status(500, "{}"));
    let home = Home::new().argument("--log-format").argument("json");
    let home = home.environment("HOLON_LOG", "trace").environment("HOLON_CONTROL_TOKEN", control);
    let daemon = home.serve();
    Ask::new(&daemon).with_token(control).get("/agents/list").await.ok();
    let secret = daemon.post("/control/agents/main/webhook-secret", json!({"action": "set"})).await;
    bind(&daemon, binding(&phone, "phone")).await;
    say(&daemon, "say: hello", "route-1").await;
    daemon.wait_for("main", "operator_delivery_failed").await;
    assert!(daemon.stop().success());
    let log = home.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let told = |line: &Value| line["message"] == "a delivery was not taken" && line["agent"] == "main";
    let warned = lines.iter().find(|line| told(line)).expect("the delivery that failed");
    assert_eq!((&warned["level"], &warned["binding"]), (&json!("WARN"), &json!("phone")));
    let secret = secret["secret"].as_str().expect("it is drawn");
    for secret in [control, TOKEN, "path-that-is-never-told", secret] {
        assert!(!log.contains(secret), "{secret}");
    }
}

fn secrets(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("secrets.json")).unwrap_or_default()
}

#[tokio::test]
async fn secrets_that_nothing_names_are_not_kept() {
    let (home, transport) = (Home::new(), ModelServer::start());
    transport.otherwise(|_| taken());
    let daemon = home.serve();
    let problem = daemon.refusal("/control/agents/nobody/operator-bindings", binding(&transport, "phone")).await;
    assert_eq!(problem.status, 404);
    let mut refused = binding(&transport, "phone");
    refused["transport"] = json!("");
    daemon.refusal("/control/agents/main/operator-bindings", refused).await;
    assert!(!secrets(&home).contains(&transport.url()), "{}", secrets(&home));

    daemon.create("short").await;
    daemon.post("/control/agents/short/operator-bindings", binding(&transport, "phone")).await;
    daemon.post("/control/agents/short/operator-bindings", binding(&transport, "phone")).await;
    daemon.post("/control/agents/short/archive", json!({})).await;
    daemon.wait_for("short", "agent_archived").await;
    daemon.post("/control/agents/main/operator-bindings", binding(&transport, "phone")).await;
    // As a crash leaves it, between a secret and its event.
    assert!(daemon.stop().success());
    let mut kept: Value = serde_json::from_str(&secrets(&home)).expect("JSON");
    kept["binding/main/0000"] = json!("left");
    kept["webhook/gone/0000"] = json!("left");
    std::fs::write(home.path().join("secrets.json"), kept.to_string()).expect("written");
    let daemon = home.serve();
    bind(&daemon, binding(&transport, "desk")).await;
    // The sweep and whatever was to be forgotten are through before the server is.
    assert!(daemon.stop().success());
    let kept: Value = serde_json::from_str(&secrets(&home)).expect("JSON");
    let names: Vec<&String> = kept.as_object().expect("an object").keys().collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("binding/main/")), "{names:?}");
}

#[tokio::test]
async fn a_delivery_is_taken_once_the_transport_says_so_however_long_it_talks() {
    let home = Home::new();
    let daemon = home.serve();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let talker = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a delivery");
        let mut asked = [0; 4096];
        let read = std::io::Read::read(&mut connection, &mut asked).expect("its head");
        assert!(asked[..read].starts_with(b"POST / "));
        let begun = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
        std::io::Write::write_all(&mut connection, begun).expect("it listens");
        connection
    });
    let mut body = binding(&ModelServer::start(), "phone");
    body["delivery_callback_url"] = json!(url);
    bind(&daemon, body).await;
    say(&daemon, "say: hello", "route-1").await;
    delivered(&daemon, 1).await;
    let _connection = talker.join().expect("it talked");
    assert_eq!(of_kind(&daemon.events("main").await, "operator_delivery_submitted").len(), 1);
}
