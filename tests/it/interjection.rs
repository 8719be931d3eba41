//! Prompts that come during a turn: taken in once, at a safe point, whatever happens in between.

use crate::daemon::{Daemon, Home, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer, Reply};
use serde_json::{Value, json};

const PROMPT: &str = "and mind the gap";

fn command(gate: &str) -> Reply {
    let arguments = json!({"cmd": format!("echo {gate} >> ran.txt; read go < {gate}")});
    Answer::text("").call(gate, "ExecCommand", &arguments.to_string()).whole()
}

/// How often a request says the prompt.
fn times(body: &Value) -> usize {
    body.to_string().matches(PROMPT).count()
}

async fn interjected(daemon: &Daemon, message: &str) {
    assert_eq!(daemon.settled("main", message).await, "interjected");
}

async fn check(daemon: &Daemon, first: &str, interjection: &str) {
    let events = daemon.events("main").await;
    let outcome = |message: &str, outcome: &str| (message.to_owned(), outcome.to_owned());
    let mut settled = outcomes(&events);
    settled.sort();
    assert_eq!(settled, [outcome(first, "processed"), outcome(interjection, "interjected")]);
    assert_eq!(of_kind(&events, "turn_started").len(), 1);
    let acks = of_kind(&events, "brief_created").into_iter().filter(|brief| brief["kind"] == "ack");
    let acks: Vec<_> = acks.filter(|brief| brief["message"] == interjection).collect();
    assert_eq!((acks.len(), &acks[0]["run"]), (1, &json!("run-1")), "its ack names the run, once");
    let entries = of_kind(&events, "turn_entry");
    let entered = entries.iter().filter(|payload| payload["entry"]["interjection"]["message"] == interjection);
    assert_eq!(entered.count(), 1);
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_kill_before_during_or_after_its_round_loses_no_interjection() {
    let server = ModelServer::start();
    let home = Home::new().asking(&server);
    let (first_gate, second_gate) = (home.gate("first"), home.gate("second"));
    for reply in [command("first"), Reply::Hang, command("second"), Answer::text("minded").whole()] {
        server.reply(reply);
    }
    let daemon = home.serve();
    let first = daemon.prompt("main", "work").await;
    daemon.wait_for("main", "task_started").await;
    let interjection = daemon.prompt("main", PROMPT).await;
    daemon.kill(); // Before the round that takes it in.

    let daemon = home.serve();
    first_gate.open();
    server.wait_for_requests(2);
    let waiting = daemon.get(&format!("/agents/main/messages/{interjection}")).await;
    assert_eq!(waiting["outcome"], Value::Null, "it waits until the round is recorded");
    daemon.kill(); // During that round's call.

    let daemon = home.serve();
    interjected(&daemon, &interjection).await;
    daemon.kill(); // After the round is recorded.

    let daemon = home.serve();
    second_gate.open();
    assert_eq!(daemon.answer("main", &first).await["text"], "minded");
    assert_eq!(daemon.answer("main", &interjection).await["text"], "minded", "the run's brief answers it");
    let said: Vec<usize> = server.received().iter().map(|request| times(&request.body)).collect();
    assert_eq!(said, [0, 1, 1, 1]);
    assert_eq!(home.written("ran.txt"), "first\nsecond\n");
    check(&daemon, &first, &interjection).await;
}

#[tokio::test]
async fn a_prompt_during_the_last_round_gets_a_round_of_its_own() {
    let rounds = json!([{"wait_for": "go", "text": "the last word"}, {"text": "one more word"}]);
    let home = Home::new().scripted(&json!({"rounds": rounds}));
    let daemon = home.serve();
    let first = daemon.prompt("main", "work").await;
    daemon.wait_for("main", "round_attempted").await;
    let interjection = daemon.prompt("main", PROMPT).await;
    std::fs::write(home.workspace().join("go"), "").unwrap();
    assert_eq!(daemon.answer("main", &first).await["text"], "one more word");
    interjected(&daemon, &interjection).await;
    check(&daemon, &first, &interjection).await;
}

#[tokio::test]
async fn prompts_that_come_together_are_taken_in_in_their_order() {
    let server = ModelServer::start();
    let home = Home::new().asking(&server);
    let gate = home.gate("gate");
    server.reply(command("gate"));
    server.reply(Answer::text("done").whole());
    let daemon = home.serve();
    daemon.prompt("main", "work").await;
    daemon.wait_for("main", "task_started").await;
    let mut prompts = Vec::new();
    for number in 1..=5 {
        prompts.push(daemon.prompt("main", &format!("prompt number {number}")).await);
    }
    gate.open();
    for prompt in &prompts {
        interjected(&daemon, prompt).await;
    }
    let last = server.received().last().expect("a request").body.to_string();
    let places: Vec<_> = (1..=5).map(|number| last.find(&format!("prompt number {number}"))).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}");
}
