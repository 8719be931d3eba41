//! Kills under load and poison steps: what was acknowledged stays, and nothing loops for ever.

use crate::daemon::{Daemon, Home, of_kind, outcomes};
use holon::client::StreamedEvent;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};

const KILLS: usize = 10;
const ACKNOWLEDGED_PER_LIFE: usize = 12;
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
struct Acknowledged {
    agent: &'static str,
    text: String,
    message: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_ten_kills_once() {
    let home = Home::new();
    let mut daemon = home.serve();
    for agent in AGENTS {
        daemon.create(agent).await;
    }
    let (lives, life) = watch::channel(Some(0));
    let (ledger, mut acknowledged) = mpsc::unbounded_channel();
    let socket = home.path().join("holon.sock");
    let clients = SENDERS.map(|sender| tokio::spawn(client(sender, socket.clone(), life.clone(), ledger.clone())));
    drop(ledger);
    let mut all = Vec::new();
    for kill in 1..=KILLS {
        for _ in 0..ACKNOWLEDGED_PER_LIFE {
            all.push(acknowledged.recv().await.expect("clients go on"));
        }
        daemon.kill();
        daemon = home.serve();
        lives.send_replace(Some(kill));
    }
    lives.send_replace(None);
    while let Some(one) = acknowledged.recv().await {
        all.push(one);
    }
    for client in clients {
        client.await.expect("a client");
    }
    for agent in AGENTS {
        check(&daemon, agent, &all).await;
    }
}

/// Sends one message after another. A request that is cut off is sent again in the next life if it has a key.
async fn client(
    sender: Sender,
    socket: PathBuf,
    mut life: watch::Receiver<Option<usize>>,
    ledger: mpsc::UnboundedSender<Acknowledged>,
) {
    let http = Client::builder().unix_socket(socket).no_proxy().build().expect("a client");
    let mut number = 0;
    while life.borrow().is_some() {
        number += 1;
        let text = format!("{}-{number}", sender.name);
        loop {
            let began = *life.borrow_and_update();
            if let Some(message) = sender.send(&http, &text).await {
                ledger.send(Acknowledged { agent: sender.agent, text, message }).expect("the test goes on");
                break;
            }
            let next = life.wait_for(|life| *life != began).await.expect("the test goes on");
            if !sender.keyed || next.is_none() {
                break;
            }
        }
    }
}

impl Sender {
    /// The message id, if an answer came.
    async fn send(&self, http: &Client, text: &str) -> Option<String> {
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
        let response = request.send().await.ok()?;
        let status = response.status();
        let answer: Value = response.json().await.ok()?;
        assert!(status.is_success(), "{text}: {answer}");
        Some(answer["message_id"].as_str().expect("a message id").to_owned())
    }
}

async fn check(daemon: &Daemon, agent: &str, acknowledged: &[Acknowledged]) {
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
    for one in acknowledged.iter().filter(|one| one.agent == agent) {
        assert_eq!(by_text.get(&one.text).map(|id| id.as_str()), Some(Some(one.message.as_str())), "{}", one.text);
    }
    let settled: Vec<String> = outcomes(&events).into_iter().map(|(message, _)| message).collect();
    let once: BTreeSet<&String> = settled.iter().collect();
    assert_eq!((settled.len(), once.len()), (enqueued.len(), enqueued.len()), "{agent}: each has one outcome");
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
