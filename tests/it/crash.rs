//! Kills under load and poison steps: what was acknowledged stays, and nothing loops for ever.

use crate::daemon::{Daemon, Home, of_kind, outcomes};
use holon::client::StreamedEvent;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

const LIVES: usize = 10;
const ANSWERED_PER_LIFE: usize = 12;
const AGENTS: [&str; 3] = ["main", "second", "third"];

/// How a client of the load test sends its messages.
#[derive(Clone, Copy)]
struct Sender {
    agent: &'static str,
    name: &'static str,
    prompts: bool,
    /// Whether it names its requests, and so may repeat one that was cut off.
    keyed: bool,
}

const SENDERS: [Sender; 6] = [
    Sender { agent: AGENTS[0], name: "a", prompts: true, keyed: true },
    Sender { agent: AGENTS[0], name: "b", prompts: false, keyed: false },
    Sender { agent: AGENTS[1], name: "c", prompts: false, keyed: true },
    Sender { agent: AGENTS[1], name: "d", prompts: true, keyed: false },
    Sender { agent: AGENTS[2], name: "e", prompts: true, keyed: true },
    Sender { agent: AGENTS[2], name: "f", prompts: false, keyed: true },
];

/// A message that the daemon has answered for.
struct Answered {
    agent: &'static str,
    text: String,
    /// Its id; none when it was refused.
    message: Option<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_ten_kills_once() {
    let answered = ended_under_load(Daemon::kill).await;
    assert!(answered.iter().all(|one| one.message.is_some()), "a daemon that runs refuses nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_ten_orderly_stops_once() {
    ended_under_load(|daemon| {
        let status = daemon.stop();
        assert!(status.success(), "{status}");
    })
    .await;
}

/// Ends the daemon again and again while clients send; then every answer must hold.
async fn ended_under_load(end: fn(Daemon)) -> Vec<Answered> {
    let home = Home::new();
    let mut daemon = home.serve();
    for agent in AGENTS {
        daemon.create(agent).await;
    }
    let (lives, life) = watch::channel(Some(0));
    let (ledger, mut answers) = mpsc::unbounded_channel();
    let socket = home.path().join("holon.sock");
    let clients = SENDERS.map(|sender| tokio::spawn(client(sender, socket.clone(), life.clone(), ledger.clone())));
    drop(ledger);
    let mut answered: Vec<Answered> = Vec::new();
    for next in 1..=LIVES {
        let enough = answered.len() + ANSWERED_PER_LIFE;
        while answered.len() < enough {
            answered.push(answers.recv().await.expect("clients go on"));
        }
        end(daemon);
        daemon = home.serve();
        lives.send_replace(Some(next));
    }
    lives.send_replace(None);
    while let Some(one) = answers.recv().await {
        answered.push(one);
    }
    for client in clients {
        client.await.expect("a client");
    }
    for agent in AGENTS {
        check(&daemon, agent, &answered).await;
    }
    answered
}

/// What came of a request.
enum Sent {
    Accepted(String),
    Refused,
    CutOff,
}

/// Sends one message after another. A request that was not accepted is sent again in the next life if it has a key.
async fn client(
    sender: Sender,
    socket: PathBuf,
    mut life: watch::Receiver<Option<usize>>,
    ledger: mpsc::UnboundedSender<Answered>,
) {
    let http = Client::builder().unix_socket(socket).no_proxy().build().expect("a client");
    let mut number = 0;
    while life.borrow().is_some() {
        number += 1;
        let text = format!("{}-{number}", sender.name);
        loop {
            let began = *life.borrow_and_update();
            let told = |message| Answered { agent: sender.agent, text: text.clone(), message };
            match sender.send(&http, &text).await {
                Sent::Accepted(message) => {
                    ledger.send(told(Some(message))).expect("the test goes on");
                    break;
                }
                Sent::Refused if !sender.keyed => ledger.send(told(None)).expect("the test goes on"),
                Sent::Refused | Sent::CutOff => {}
            }
            let next = life.wait_for(|life| *life != began).await.expect("the test goes on");
            if !sender.keyed || next.is_none() {
                break;
            }
        }
    }
}

impl Sender {
    async fn send(&self, http: &Client, text: &str) -> Sent {
        let agent = self.agent;
        let (path, body) = if self.prompts {
            (format!("/control/agents/{agent}/prompt"), json!({"text": text}))
        } else {
            (format!("/agents/{agent}/enqueue"), json!({"text": text}))
        };
        let mut request = http.post(format!("http://localhost{path}")).json(&body);
        if self.keyed {
            request = request.header("Idempotency-Key", text);
        }
        let Ok(response) = request.send().await else { return Sent::CutOff };
        let status = response.status();
        let Ok(answer) = response.json::<Value>().await else { return Sent::CutOff };
        if status.is_success() {
            return Sent::Accepted(answer["message_id"].as_str().expect("a message id").to_owned());
        }
        assert_eq!(answer["code"], "shutting_down", "{text}");
        Sent::Refused
    }
}

async fn check(daemon: &Daemon, agent: &str, answered: &[Answered]) {
    let head = daemon.head(agent).await;
    let mut open = BTreeSet::new();
    let settled = daemon.watch(agent, 0, |event| {
        let message = event.data["payload"]["message"].clone().to_string();
        match event.kind.as_str() {
            "message_enqueued" => drop(open.insert(message)),
            "message_settled" => drop(open.remove(&message)),
            _ => {}
        }
        event.seq >= head && open.is_empty()
    });
    settled.await;
    let events = daemon.events(agent).await;
    assert!(events.iter().zip(1..).all(|(event, seq)| event["event_seq"] == seq), "{agent}: no gaps");
    assert!(daemon.is_whole(agent).await, "{agent}");

    let enqueued = of_kind(&events, "message_enqueued");
    let text = |payload: &Value| payload["body"]["inline"].as_str().expect("a text").to_owned();
    let by_text: BTreeMap<String, &Value> =
        enqueued.iter().map(|payload| (text(payload), &payload["message"])).collect();
    assert_eq!(by_text.len(), enqueued.len(), "{agent}: nothing is there twice");
    for one in answered.iter().filter(|one| one.agent == agent) {
        let found = by_text.get(&one.text).map(|id| id.as_str().expect("an id"));
        assert_eq!(found, one.message.as_deref(), "{agent}: {}", one.text);
    }
    let settled: Vec<String> = outcomes(&events).into_iter().map(|(message, _)| message).collect();
    let once: BTreeSet<&String> = settled.iter().collect();
    assert_eq!((settled.len(), once.len()), (enqueued.len(), enqueued.len()), "{agent}: each has one outcome");
}

#[test]
fn a_server_that_is_told_to_end_as_soon_as_it_is_ready_ends_in_order() {
    let home = Home::new();
    for _ in 0..20 {
        let status = home.serve().stop();
        assert!(status.success(), "{status}");
    }
}

#[tokio::test]
async fn a_runbook_that_is_killed_over_and_over_runs_each_step_once() {
    const STEPS: u64 = 24;
    let home = Home::new();
    let mut daemon = home.serve();
    let steps: Vec<String> = (1..=STEPS).map(|step| format!("$ echo {step} >> ran.txt")).collect();
    daemon.prompt("main", &steps.join("\n")).await;
    let mut seen = 0;
    for kill in 1_u64.. {
        // From 2 to 12 events on, so that the kills fall on different steps.
        let until = seen + 2 + kill * 7 % 11;
        let last = daemon.wait("main", seen, |event| event.seq >= until || event.kind == "turn_terminal").await;
        seen = last.seq;
        daemon.kill();
        daemon = home.serve();
        if last.kind == "turn_terminal" {
            break;
        }
    }
    let answer = daemon.answer("main", "msg-1").await;
    assert!(answer["text"].as_str().unwrap().ends_with("All 24 steps are done."), "{answer}");
    let ran: Vec<u64> = home.written("ran.txt").lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(ran, (1..=STEPS).collect::<Vec<_>>());
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn the_calls_of_a_round_go_on_where_a_kill_cut_them() {
    let call = |cmd: &str| json!({"tool": "ExecCommand", "arguments": {"cmd": cmd}});
    let calls = ["echo 1 >> ran.txt", "echo 2 >> ran.txt; read go < go", "echo 3 >> ran.txt"].map(call);
    let home = Home::new().scripted(&json!({"rounds": [{"calls": calls}, {"text": "done"}]}));
    let gate = home.gate("go");
    let daemon = home.serve();
    let message = daemon.prompt("main", "three").await;
    let second = |event: &StreamedEvent| event.kind == "task_started" && event.data["payload"]["task"] == "task-2";
    daemon.wait("main", 0, second).await;
    daemon.kill();
    let daemon = home.serve();
    gate.open();
    assert_eq!(daemon.answer("main", &message).await["text"], "done");
    assert_eq!(home.written("ran.txt"), "1\n2\n3\n");
}

#[tokio::test]
async fn large_payloads_survive_a_kill() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    let large = "x".repeat(300_000);
    let command = "$ head -c 300000 /dev/zero | tr '\\0' y; read go < go";
    let message = daemon.prompt("main", &format!("{command}\nsay: {large}")).await;
    daemon.wait_for("main", "task_started").await;
    daemon.kill();
    let daemon = home.serve();
    gate.open();
    daemon.wait_for("main", "task_exited").await;
    daemon.kill();
    let daemon = home.serve();
    let answer = daemon.answer("main", &message).await;
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains(&large) && text.contains("yyy") && text.contains("300000 bytes"));
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_step_that_ends_the_process_is_given_up_after_three_boots() {
    let poison = json!({"rounds": [{"wait_for": "go", "abort": true}]});
    let home = Home::new().scripted(&poison);
    let go = home.workspace().join("go");
    let daemon = home.serve();
    let message = daemon.prompt("main", "a step that no process survives").await;
    let next = daemon.enqueue("main", "the next message").await;
    attempted(&daemon, 1).await;
    std::fs::write(&go, "").unwrap();
    assert!(!daemon.ended().success());
    for boot in [2, 3] {
        std::fs::remove_file(&go).unwrap();
        let daemon = home.serve();
        attempted(&daemon, boot).await;
        std::fs::write(&go, "").unwrap();
        assert!(!daemon.ended().success());
    }

    home.rewrite(&json!({"rounds": [], "default": {"text": "served"}}));
    let daemon = home.serve();
    let failure = daemon.answer("main", &message).await;
    assert_eq!(failure["kind"], "failure");
    let text = failure["text"].as_str().unwrap();
    assert!(text.contains("went down 3 times") && text.contains("hint: "), "{text}");
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "turn_terminal")[0]["reason"], "attempts_exhausted");
    assert_eq!(daemon.answer("main", &next).await["text"], "served");
}

/// Waits until the boot has begun its attempt.
async fn attempted(daemon: &Daemon, boot: u64) {
    let begun =
        |event: &holon::client::StreamedEvent| event.kind == "round_attempted" && event.data["payload"]["boot"] == boot;
    daemon.wait("main", 0, begun).await;
}
