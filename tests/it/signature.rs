//! Signed webhooks: who may send one, what comes twice, and where the secret must never be found.

use crate::ask::{Ask, Told};
use crate::cli::say;
use crate::daemon::{Daemon, Home, of_kind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use holon::runtime::source::Source;
use holon::words::hash::Hash;
use serde_json::{Value, json};
use sha2::Sha256;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const PATH: &str = "/webhooks/generic/main";
const SECRET_PATH: &str = "/control/agents/main/webhook-secret";
const SECRET: &str = "whsec_bm9ib2R5LW1heS1maW5kLXRoaXMtc2VjcmV0";
const OTHER: &str = "whsec_YW5vdGhlci1zZWNyZXQtb2YtdGhlLWFnZW50";
const TEXT: &str = "nobody may find this text either";
const BODY: &str = r#"{"event":"push"}"#;

fn signature(key: &[u8], signed: &str) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("any key will do");
    mac.chain_update(signed).finalize().into_bytes().into()
}

fn seconds() -> i64 {
    Source::system().now().0 / 1_000
}

/// A Standard Webhook, as its sender makes it.
struct Standard<'a> {
    secret: &'a str,
    id: &'a str,
    sent: i64,
}

impl Standard<'_> {
    fn signed(&self, body: &str) -> String {
        let key = STANDARD.decode(&self.secret["whsec_".len()..]).expect("base64");
        let signature = signature(&key, &format!("{}.{}.{body}", self.id, self.sent));
        format!("v1,{}", STANDARD.encode(signature))
    }

    async fn send(&self, ask: &Ask) -> Told {
        self.send_as(ask, &self.signed(BODY), BODY).await
    }

    async fn send_as(&self, ask: &Ask, signature: &str, body: &str) -> Told {
        let (sent, body) = (self.sent.to_string(), body.to_owned());
        let headers = [("webhook-id", self.id), ("webhook-timestamp", &sent), ("webhook-signature", signature)];
        post(ask, &headers, body).await
    }
}

async fn post(ask: &Ask, headers: &[(&str, &str)], body: String) -> Told {
    let json = [("content-type", "application/json")];
    let all = json.iter().chain(headers);
    ask.send("POST", PATH, |request| {
        all.fold(request, |request, (name, value)| request.header(*name, *value)).body(body)
    })
    .await
}

fn standard<'a>(secret: &'a str, id: &'a str) -> Standard<'a> {
    Standard { secret, id, sent: seconds() }
}

fn github(secret: &str) -> String {
    format!("sha256={}", Hash(signature(secret.as_bytes(), BODY)))
}

async fn set(ask: &Ask, body: Value) -> Value {
    ask.post(SECRET_PATH, body).await.ok()
}

async fn webhooks(daemon: &Daemon) -> usize {
    let events = daemon.events("main").await;
    of_kind(&events, "message_enqueued").iter().filter(|event| event["kind"] == "webhook_event").count()
}

#[tokio::test]
async fn a_webhook_is_signed_with_the_secret_or_refused() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    ask.post(PATH, BODY).await.ok();
    assert_eq!(daemon.get("/agents/main/state").await["webhook"]["signed"], false);
    let told = set(&ask, json!({"action": "set", "secret": SECRET})).await;
    assert_eq!(told["secret"], json!(null), "what was given is not told back");
    let shown = &daemon.get("/agents/main/state").await["webhook"];
    assert_eq!((&shown["signed"], &shown["path"]), (&json!(true), &json!(PATH)));

    let own = standard(SECRET, "msg_1");
    let told = own.send(&ask).await.ok();
    let message = daemon.get(&format!("/agents/main/messages/{}", told["message_id"].as_str().unwrap())).await;
    assert_eq!(message["body"], json!({"type": "json", "value": {"event": "push"}}));
    assert_eq!(
        (&message["admission_context"], &message["trust"]),
        (&json!("webhook_signed"), &json!("trusted_integration"))
    );
    post(&ask, &[("x-hub-signature-256", &github(SECRET))], BODY.into()).await.ok();

    let late = Standard { sent: seconds() - 360, ..standard(SECRET, "msg_2") };
    let early = Standard { sent: seconds() + 360, ..standard(SECRET, "msg_2") };
    let another = standard(OTHER, "msg_2");
    for told in [
        ask.post(PATH, BODY).await,
        ask.post_as("msg_1", PATH, BODY).await,
        late.send(&ask).await,
        early.send(&ask).await,
        another.send(&ask).await,
        own.send_as(&ask, &own.signed(BODY), r#"{"event":"pull"}"#).await,
        Standard { id: "msg_3", ..own }.send_as(&ask, &standard(SECRET, "msg_1").signed(BODY), BODY).await,
        post(&ask, &[("webhook-signature", "v1,")], BODY.into()).await,
        post(&ask, &[("x-hub-signature-256", &github(OTHER))], BODY.into()).await,
        post(&ask, &[("x-hub-signature-256", "sha256=")], BODY.into()).await,
        post(&ask, &[], "no JSON".into()).await,
    ] {
        let problem = told.refused(401, "invalid_signature");
        assert_eq!(told.header("www-authenticate"), "", "no token would let it in");
        assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("secret")), "{problem}");
    }
    let signed = standard(SECRET, "msg_4");
    signed.send_as(&ask, &signed.signed("no JSON"), "no JSON").await.refused(400, "invalid_json");
    assert_eq!(webhooks(&daemon).await, 3, "what is refused is not recorded");
    assert_eq!(of_kind(&daemon.events("main").await, "request_answered").len(), 2, "nor answered under its name");

    set(&ask, json!({"action": "clear"})).await;
    ask.post(PATH, BODY).await.ok();
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn what_is_sent_again_under_its_id_is_one_message_even_after_a_restart() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    set(&ask, json!({"action": "set", "secret": SECRET})).await;
    let first = standard(SECRET, "msg_1").send(&ask).await.ok();
    let delivery = [("x-hub-signature-256", github(SECRET)), ("x-github-delivery", "72d3162e".to_owned())];
    let delivery: Vec<(&str, &str)> = delivery.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let delivered = post(&ask, &delivery, BODY.into()).await.ok();
    assert_ne!(delivered["message_id"], first["message_id"]);
    daemon.kill();

    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    // A sender that tries again signs anew, with the time of the trial.
    let again = Standard { sent: seconds() + 1, ..standard(SECRET, "msg_1") };
    let trials = futures::future::join_all((0..8).map(|_| again.send(&ask))).await;
    assert!(trials.iter().all(|told| told.ok() == first), "all are told what the first was told");
    assert_eq!(post(&ask, &delivery, BODY.into()).await.ok(), delivered);
    assert_eq!(webhooks(&daemon).await, 2);
    standard(SECRET, "msg_2").send(&ask).await.ok();
    assert_eq!(webhooks(&daemon).await, 3);
}

#[tokio::test]
async fn a_stopped_agent_says_so_to_whoever_signed_and_records_nothing() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    set(&ask, json!({"action": "set", "secret": SECRET})).await;
    daemon.control("main", "stop").await;
    let head = daemon.head("main").await;
    let signed = standard(SECRET, "msg_1");
    signed.send(&ask).await.refused(409, "agent_stopped");
    ask.post(PATH, BODY).await.refused(401, "invalid_signature");
    assert_eq!(daemon.head("main").await, head);
    daemon.control("main", "start").await;
    signed.send(&ask).await.ok();
}

#[tokio::test]
async fn a_secret_is_rotated_while_the_one_before_goes_on_or_is_replaced_at_once() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let drawn = ask.post_as("k", SECRET_PATH, json!({"action": "set"})).await.ok();
    let again = ask.post_as("k", SECRET_PATH, json!({"action": "set"})).await.ok();
    assert_eq!(again["secret"], json!(null), "a second answer holds no secret");
    let drawn = drawn["secret"].as_str().expect("a secret is drawn").to_owned();
    standard(&drawn, "msg_1").send(&ask).await.ok();

    set(&ask, json!({"action": "rotate", "secret": OTHER})).await;
    for (number, secret) in [drawn.as_str(), OTHER].into_iter().enumerate() {
        standard(secret, &format!("rotated_{number}")).send(&ask).await.ok();
    }
    assert!(daemon.get("/agents/main/state").await["webhook"]["previous_accepted_until"].is_string());
    set(&ask, json!({"action": "set", "secret": SECRET})).await;
    for secret in [drawn.as_str(), OTHER] {
        standard(secret, "replaced").send(&ask).await.refused(401, "invalid_signature");
    }
    let again = ask.post_as("k", SECRET_PATH, json!({"action": "set"})).await.ok();
    assert_eq!(again["secret"], json!(null));
    standard(SECRET, "kept").send(&ask).await.ok();

    let given = |action: &str, secret: &str| json!({"action": action, "secret": secret});
    for wrong in [given("set", "short"), given("rotate", "whsec_?"), given("clear", SECRET), given(SECRET, SECRET)] {
        let told = ask.post(SECRET_PATH, wrong).await;
        told.refused(422, "invalid_field");
        assert!(!told.text.contains(SECRET), "{}", told.text);
    }
    ask.post("/control/agents/nobody/webhook-secret", json!({"action": "set"})).await.refused(404, "agent_not_found");
    standard(SECRET, "last").send(&ask).await.ok();
}

#[tokio::test]
async fn a_secret_that_was_lost_opens_nothing() {
    let home = Home::new();
    let daemon = home.serve();
    set(&Ask::new(&daemon), json!({"action": "set", "secret": SECRET})).await;
    daemon.kill();
    let file = home.path().join("secrets.json");
    fs::remove_file(&file).expect("the secrets");

    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    ask.post(PATH, BODY).await.refused(401, "invalid_signature");
    standard(SECRET, "msg_1").send(&ask).await.refused(401, "invalid_signature");
    set(&ask, json!({"action": "rotate", "secret": SECRET})).await;
    standard(SECRET, "msg_1").send(&ask).await.ok();
    daemon.kill();

    fs::write(&file, format!("{{\"x\": \"{SECRET}")).expect("the secrets");
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("secrets.json") && !said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn whoever_guesses_at_signatures_is_held_off_and_whoever_signs_is_not() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    set(&ask, json!({"action": "set", "secret": SECRET})).await;
    for _ in 0..30 {
        ask.post(PATH, BODY).await.refused(401, "invalid_signature");
    }
    let told = ask.post(PATH, BODY).await;
    told.refused(429, "too_many_failures");
    assert!(told.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds <= 60));
    standard(SECRET, "msg_1").send(&ask).await.ok();
}

#[tokio::test]
async fn a_secret_lies_in_one_file_and_nowhere_else() {
    let home = Home::new().environment("HOLON_LOG", "trace");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let given = json!({"action": "set", "secret": SECRET});
    ask.post_as("k", SECRET_PATH, &given).await.ok();
    set(&ask, json!({"action": "rotate", "secret": TEXT})).await;
    let drawn = set(&ask, json!({"action": "rotate"})).await["secret"].as_str().expect("a secret").to_owned();
    post(&ask, &[("x-hub-signature-256", &github(TEXT))], BODY.into()).await.ok();
    let wrong = standard(SECRET, "msg_1").send(&ask).await;
    wrong.refused(401, "invalid_signature");
    let mut shown = vec![wrong.text];
    for path in ["events?projection=local_debug", "events", "state", "status", "diagnostics"] {
        shown.push(ask.get(&format!("/agents/main/{path}")).await.text);
    }
    assert!(daemon.stop().success());
    shown.push(home.log());
    for secret in [SECRET, TEXT, &drawn] {
        assert!(shown.iter().all(|shown| !shown.contains(secret)), "{shown:#?}");
    }
    let file = home.path().join("secrets.json");
    assert_eq!(fs::metadata(&file).expect("the secrets").permissions().mode() & 0o777, 0o600);
    let mut holders = Vec::new();
    holding(&home.path(), &[SECRET, TEXT, &drawn], &mut holders);
    assert_eq!(holders, std::slice::from_ref(&file));
    let kept = fs::read_to_string(file).expect("the secrets");
    assert!(!kept.contains(SECRET), "what signs nothing any more is not kept");
}

/// The files below `folder` that hold any of the texts.
fn holding(folder: &Path, texts: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            holding(&path, texts, found);
        } else if let Ok(bytes) = fs::read(&path) {
            let holds = |text: &&str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(texts.iter().any(holds).then_some(path));
        }
    }
}

#[tokio::test]
async fn a_secret_comes_from_a_file_or_is_drawn_and_shown_once_beside_a_hint() {
    let home = Home::new();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let file = home.workspace().join("secret");
    fs::write(&file, format!("{SECRET}\n")).expect("a file");
    let alter = |arguments: &[&str]| say(&home, &[&["agent", "webhook-secret"], arguments].concat());
    let set = alter(&["set", "--secret-file", file.to_str().expect("text")]);
    assert_eq!(set.data(), "webhooks of main must be signed\n");
    standard(SECRET, "msg_1").send(&ask).await.ok();

    let drawn = alter(&["rotate"]);
    assert_eq!((drawn.code, drawn.err.lines().count()), (Some(0), 1), "{drawn:?}");
    assert!(drawn.err.starts_with("hint: ") && !drawn.err.contains("whsec_"), "{drawn:?}");
    for secret in [SECRET, drawn.out.trim()] {
        standard(secret, &format!("either_{}", secret.len())).send(&ask).await.ok();
    }
    alter(&["set", "--secret-file", "-"]).refused(1, &["too short"]);
    alter(&["set", "--secret-file", "/no/such/file"]).refused(2, &["/no/such/file"]);
    alter(&["clear", "--secret-file", file.to_str().expect("text")]).refused(1, &["is not given to clear it"]);
    alter(&["draw"]).refused(2, &["set, rotate, clear"]);
    assert_eq!(alter(&["clear"]).data(), "webhooks of main need no signature\n");
    ask.post(PATH, BODY).await.ok();
}

#[tokio::test]
async fn of_requests_under_one_key_one_alone_tells_a_secret_and_that_one_signs() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let asked = (0..8).map(|_| ask.post_as("once", SECRET_PATH, json!({"action": "set"})));
    let told = futures::future::join_all(asked).await;
    let secrets: Vec<String> = told.iter().filter_map(|told| told.ok()["secret"].as_str().map(str::to_owned)).collect();
    assert_eq!(secrets.len(), 1, "{secrets:?}");
    let head = daemon.head("main").await;
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!(state["webhook"]["signed"], true);
    assert_eq!(daemon.head("main").await, head);
}
