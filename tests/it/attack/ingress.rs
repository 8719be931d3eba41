//! Strangers who send more than they should, ask who is there, or send again what they have seen.

use crate::ask::{Ask, Told, connect, parts};
use crate::daemon::{Daemon, Home, of_kind};
use crate::slow::{last_words, limited};
use crate::world::World;
use hmac::{Hmac, KeyInit, Mac};
use holon::decide::queue::QueueCommand;
use holon::decide::{Rejection, Request};
use holon::events::Cause;
use holon::events::agent::Answer;
use holon::events::queue::{MessageKind, Origin};
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::limit::{MESSAGE_BODY_BYTES_MAX, OUTSIDE_BYTES_PER_DAY_MAX};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

const TOKEN: &str = "a token of the operator's own";
const SECRET: &str = "a secret that the sender and the agent share";
const BODY: &str = r#"{"event":"push"}"#;

fn guarded() -> Home {
    Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN)
}

fn github(body: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key will do");
    format!("sha256={}", Hash(mac.chain_update(body).finalize().into_bytes().into()))
}

async fn webhook(ask: &Ask, agent: &str, headers: &[(&str, &str)]) -> Told {
    let dress = |request: reqwest::RequestBuilder| {
        let json = request.header("content-type", "application/json").body(BODY);
        headers.iter().fold(json, |request, (name, value)| request.header(*name, *value))
    };
    ask.send("POST", &format!("/webhooks/generic/{agent}"), dress).await
}

async fn signed(ask: &Ask, agent: &str) -> Told {
    webhook(ask, agent, &[("x-hub-signature-256", &github(BODY))]).await
}

async fn set_secret(daemon: &Daemon, agent: &str) {
    daemon.post(&format!("/control/agents/{agent}/webhook-secret"), json!({"action": "set", "secret": SECRET})).await;
}

/// Agents of every kind that takes no webhook, and the code that says why.
async fn absent(daemon: &Daemon) -> Vec<(&'static str, u16, &'static str)> {
    for agent in ["stopped", "archived", "stopped-secret", "archived-secret"] {
        daemon.create(agent).await;
    }
    for agent in ["stopped-secret", "archived-secret"] {
        set_secret(daemon, agent).await;
    }
    for agent in ["stopped", "stopped-secret"] {
        daemon.control(agent, "stop").await;
    }
    for agent in ["archived", "archived-secret"] {
        daemon.post(&format!("/control/agents/{agent}/archive"), json!({})).await;
    }
    daemon.prompt("main", "spawn: wait operator").await;
    daemon.wait_for("main", "agent_spawned").await;
    vec![
        ("nobody", 404, "agent_not_found"),
        ("nobody.c1", 404, "agent_not_found"),
        ("main.c1", 403, "agent_private"),
        ("stopped", 409, "agent_stopped"),
        ("archived", 410, "agent_archived"),
        ("stopped-secret", 401, "invalid_signature"),
        ("archived-secret", 410, "agent_archived"),
    ]
}

/// All that a stranger sees of an answer.
fn seen(told: &Told) -> (u16, String, Vec<String>) {
    let names = told.headers.iter().filter(|(name, _)| *name != "date");
    (told.status, told.text.clone(), names.map(|(name, value)| format!("{name}: {value:?}")).collect())
}

#[tokio::test]
async fn a_stranger_is_not_told_which_agents_there_are() {
    let daemon = guarded().serve();
    let (stranger, operator) = (Ask::new(&daemon), Ask::new(&daemon).with_token(TOKEN));
    let absent = absent(&daemon).await;
    let nobody = webhook(&stranger, "nobody", &[]).await;
    nobody.refused(404, "agent_not_found");
    for (agent, status, code) in &absent {
        assert_eq!(seen(&webhook(&stranger, agent, &[]).await), seen(&nobody), "{agent}");
        let forged = webhook(&stranger, agent, &[("x-hub-signature-256", &github("another body"))]).await;
        assert_eq!(seen(&forged), seen(&nobody), "{agent}, with a wrong signature");
        let no_json = stranger.send("POST", &format!("/webhooks/generic/{agent}"), |request| request.body("x")).await;
        no_json.refused(415, "unsupported_media_type");
        webhook(&operator, agent, &[]).await.refused(*status, code);
    }
    webhook(&stranger, "main", &[]).await.ok();
    signed(&stranger, "stopped-secret").await.refused(409, "agent_stopped");

    let local = Home::new().serve();
    for (agent, status, code) in crate::attack::ingress::absent(&local).await {
        webhook(&Ask::new(&local), agent, &[]).await.refused(status, code);
    }
}

#[tokio::test]
async fn a_captured_delivery_is_one_message_under_whatever_id_it_comes_again() {
    let home = Home::new();
    let daemon = home.serve();
    set_secret(&daemon, "main").await;
    let signature = github(BODY);
    let first = signed(&Ask::new(&daemon), "main").await.ok();
    daemon.kill();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    for id in ["72d3162e", "another", "72d3162e"] {
        let headers = [("x-hub-signature-256", signature.as_str()), ("x-github-delivery", id)];
        assert_eq!(webhook(&ask, "main", &headers).await.ok(), first, "{id}");
    }
    let keyed = [("x-hub-signature-256", signature.as_str()), ("idempotency-key", "mine")];
    assert_eq!(webhook(&ask, "main", &keyed).await.ok(), first);
    let events = daemon.events("main").await;
    let webhooks = of_kind(&events, "message_enqueued").into_iter().filter(|event| event["kind"] == "webhook_event");
    assert_eq!(webhooks.count(), 1);
}

#[tokio::test]
async fn a_flood_from_one_address_is_held_to_its_rate_and_keeps_nobody_else_out() {
    for home in [Home::new(), guarded()] {
        let daemon = home.configured("ingress_per_minute_of_peer = 60").serve();
        daemon.create("other").await;
        set_secret(&daemon, "other").await;
        let made = daemon.post("/control/agents/main/external-triggers", json!({"label": "ci"})).await;
        let (ask, mut taken) = (Ask::new(&daemon), 0);
        for number in 0..30 {
            let told = webhook(&ask, "main", &[("idempotency-key", &format!("key-{number}"))]).await;
            if told.status == 200 {
                taken += 1;
            } else {
                told.refused(429, "rate_limited");
                assert!(told.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=60).contains(&seconds)));
            }
        }
        // Ten seconds of the rate come at once; the flood lasts a moment.
        assert!((10..20).contains(&taken), "{taken} of 30 were taken");
        webhook(&ask, "nobody", &[]).await.refused(429, "rate_limited");
        ask.post("/callbacks/wake/cb_0", "{}").await.refused(429, "rate_limited");

        signed(&ask, "other").await.ok();
        let url = made["trigger_url"].as_str().expect("a URL");
        ask.post(url.strip_prefix(&daemon.url).expect("a path"), "{}").await.ok();
        let operator = ask.with_token(TOKEN);
        operator.post("/control/agents/main/prompt", json!({"text": "say: in"})).await.ok();
        daemon.enqueue("main", "through the socket").await;
    }
}

#[tokio::test]
async fn one_agent_is_flooded_from_many_addresses_and_another_is_not() {
    let home = guarded().configured("ingress_per_minute_of_agent = 60\ningress_per_minute_of_peer = 60000");
    let daemon = home.serve();
    daemon.create("other").await;
    let mut taken = 0;
    for number in 0..30 {
        let ask = Ask::from_address(&daemon, Ipv4Addr::new(127, 0, 0, 2 + number));
        let told = webhook(&ask, "main", &[]).await;
        taken += usize::from(told.status == 200);
        assert!(told.status == 200 || told.problem()["code"] == "rate_limited", "{}", told.text);
    }
    assert!((10..20).contains(&taken), "{taken} of 30 were taken");
    webhook(&Ask::new(&daemon), "other", &[]).await.ok();
}

#[tokio::test]
async fn the_operator_says_which_webhooks_are_taken() {
    for (mode, takes_unsigned, takes_signed) in [("open", true, true), ("signed", false, true), ("off", false, false)] {
        for (home, code) in [(Home::new(), (403, "webhook_refused")), (guarded(), (404, "agent_not_found"))] {
            let daemon = home.configured(&format!("webhooks = \"{mode}\"")).serve();
            daemon.create("other").await;
            set_secret(&daemon, "other").await;
            let ask = Ask::new(&daemon);
            for (told, is_taken) in
                [(webhook(&ask, "main", &[]).await, takes_unsigned), (signed(&ask, "other").await, takes_signed)]
            {
                if is_taken {
                    told.ok();
                } else {
                    told.refused(code.0, code.1);
                }
            }
        }
    }
    let wrong = Home::new().configured("webhooks = \"sometimes\"").run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[tokio::test]
async fn open_webhooks_are_told_of_where_a_token_guards_the_rest() {
    let check = |home: &Home| -> Value {
        let told: Value = serde_json::from_slice(&home.run(&["--json", "doctor"]).stdout).expect("JSON");
        let checks = told["checks"].as_array().expect("checks").clone();
        checks.into_iter().find(|check| check["name"] == "webhooks").expect("a check of webhooks")
    };
    for (home, is_told) in
        [(guarded(), true), (guarded().configured("webhooks = \"signed\""), false), (Home::new(), false)]
    {
        assert_eq!(check(&home)["result"] == "warning", is_told);
        let daemon = home.serve();
        assert!(daemon.stop().success());
        assert_eq!(home.log().contains("webhooks"), is_told, "{}", home.log());
    }
}

#[test]
fn what_strangers_send_in_a_day_is_bounded_and_a_restart_begins_no_new_day() {
    let mut world = World::new();
    let send = |world: &mut World, cause: Cause| {
        let (kind, origin) = match cause {
            Cause::External => (MessageKind::WebhookEvent, Origin::Webhook { source: "x".into(), event_type: None }),
            _ => (MessageKind::OperatorPrompt, Origin::Operator { actor_id: None }),
        };
        let mut new = world.message(kind, origin, "x");
        let hash = Hash::of(b"a large body");
        new.body = Content::Stored { hash, bytes: MESSAGE_BODY_BYTES_MAX as u64, excerpt: "x".into() };
        let taken = world.ask(Request::new(QueueCommand::Enqueue(new), cause));
        if let Ok(Answer::Message(message)) = &taken {
            let reason = "read".to_owned();
            world.tell(QueueCommand::Drop { message: *message, reason }).expect("it waits");
        }
        taken
    };
    for _ in 0..OUTSIDE_BYTES_PER_DAY_MAX / MESSAGE_BODY_BYTES_MAX as u64 {
        send(&mut world, Cause::External).expect("there is room");
    }
    // A world begins at 09:30.
    let seconds_left = (14 * 60 + 30) * 60;
    assert_eq!(send(&mut world, Cause::External), Err(Rejection::DayFull { seconds_left }));
    world.at.0 -= 48 * 60 * 60 * 1_000;
    assert!(send(&mut world, Cause::External).is_err(), "a clock that was put back begins no new day");
    world.at.0 += 48 * 60 * 60 * 1_000;
    send(&mut world, Cause::Operator).expect("the operator is no stranger");
    let mut folded = holon::fold::AgentState::unborn(world.state.agent_id.clone());
    world.ledger.iter().for_each(|envelope| folded.evolve(envelope).expect("a whole ledger"));
    assert_eq!(folded, world.state, "the ledger tells how much it was");
    world.at.0 += i64::try_from(seconds_left).expect("a number") * 1_000;
    send(&mut world, Cause::External).expect("the next day has begun");
}

#[tokio::test]
async fn a_peer_that_holds_all_connections_it_gets_leaves_some_to_others() {
    let home = Home::new();
    let daemon = limited(&home);
    let head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let mut held: Vec<TcpStream> = (0..80).map(|_| connect(&daemon, head)).collect();
    let refused = last_words(held.pop().expect("the last"));
    assert_eq!(parts(&refused).0, 503, "{refused}");
    for number in 2..6 {
        let mut other = from(&daemon, Ipv4Addr::new(127, 0, 0, number));
        other
            .write_all(head)
            .and_then(|()| other.write_all(b"Connection: close\r\n\r\n"))
            .expect("it takes the request");
        let mut answer = String::new();
        other.read_to_string(&mut answer).expect("it answers");
        assert_eq!(parts(&answer).0, 200, "{answer}");
    }
}

/// A connection from another address of this machine.
fn from(daemon: &Daemon, address: Ipv4Addr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let own: SocketAddr = daemon.url.trim_start_matches("http://").parse().expect("an address");
    let client = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&client, &SocketAddr::from((address, 0))).expect("all of 127/8 is this machine's");
    connect(&client, &own).expect("it listens");
    client.into()
}
