//! A turn that is killed at each of its recorded steps in turn, and loses nothing.

use crate::daemon::{BORN, Home, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer, Received, Reply};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The event that ends the turn; the agent's creation and its workspace are the first.
const LAST_STEP: u64 = 27;
const WALKERS: u64 = 4;
/// Rounds, and the steps that pass only when their model call is answered.
const CALL_STEPS: [(usize, [u64; 2]); 3] = [(1, [8, 9]), (2, [15, 16]), (3, [22, 23])];
/// Commands, and the steps that pass only when they end.
const COMMAND_STEPS: [(usize, u64); 2] = [(1, 12), (2, 19)];

#[test]
fn a_turn_goes_on_from_every_recorded_step() {
    std::thread::scope(|scope| {
        for first in BORN + 1..=BORN + WALKERS {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                for step in (first..=LAST_STEP).step_by(WALKERS as usize) {
                    runtime.block_on(killed_at(step));
                }
            });
        }
    });
}

/// The rounds that were asked for, each as often as it was.
type Bought = Arc<Mutex<Vec<usize>>>;

async fn killed_at(step: u64) {
    let (server, bought, killed) = (ModelServer::start(), Bought::default(), Arc::new(AtomicBool::new(false)));
    server.otherwise({
        let (bought, killed) = (bought.clone(), killed.clone());
        move |request| reply(if killed.load(Ordering::SeqCst) { 0 } else { step }, &bought, request)
    });
    let home = Home::new().asking(&server);
    let gate = home.gate("go");
    let daemon = home.serve();
    let (prompt, body) = ("/control/agents/main/prompt", json!({"text": "twice"}));
    let (_, seen) = tokio::join!(daemon.client.post(prompt, &body), daemon.watch("main", 0, |event| event.seq == step));
    daemon.kill();
    killed.store(true, Ordering::SeqCst);

    gate.open();
    let daemon = home.serve();
    let answer = daemon.answer("main", "msg-1").await;
    let events = daemon.events("main").await;
    let seen: Vec<Value> = seen.into_iter().map(|event| event.data).collect();
    assert_eq!(events[..seen.len()], seen[..], "killed at {step}: history does not change");
    assert_eq!(home.written("ran.txt"), "1\n2\n", "killed at {step}: each command ran once");
    assert_eq!(outcomes(&events), [("msg-1".into(), "processed".into())], "killed at {step}");
    let bought = bought.lock().unwrap().clone();
    let said: Vec<String> = (1..=3).map(|round| said(round, times(&bought, round))).collect();
    assert_eq!(rounds(&events), said, "killed at {step}: what was bought last was recorded, and nothing bought after");
    assert!(bought.len() <= 4, "killed at {step}: a kill costs one answer at most: {bought:?}");
    assert_eq!(answer["text"], said[2].as_str());
    assert!(daemon.is_whole("main").await, "killed at {step}");
    let ended = seen.last().is_some_and(|event| event["type"] == "turn_terminal");
    assert_eq!(ended, step == LAST_STEP, "the walk ends with the turn");
}

/// Steps that pass quickly are met as they pass; a step that can be held is held until the daemon is gone.
fn reply(held: u64, bought: &Bought, request: &Received) -> Reply {
    let messages = request.body["messages"].as_array().expect("messages");
    let round = 1 + messages.iter().filter(|message| message["role"] == "assistant").count();
    let mut bought = bought.lock().unwrap();
    bought.push(round);
    if CALL_STEPS.iter().any(|(call, steps)| *call == round && steps.contains(&held)) {
        return Reply::Hang;
    }
    let answer = Answer::text(&said(round, times(&bought, round)));
    if round == 3 {
        return answer.whole();
    }
    let wait = if COMMAND_STEPS.contains(&(round, held)) { "; read go < go" } else { "" };
    let arguments = json!({"cmd": format!("echo {round} >> ran.txt{wait}")});
    answer.call(&format!("call-{round}"), "ExecCommand", &arguments.to_string()).whole()
}

fn times(bought: &[usize], round: usize) -> usize {
    bought.iter().filter(|asked| **asked == round).count()
}

fn said(round: usize, times: usize) -> String {
    format!("round {round}, bought {times} times")
}

fn rounds(events: &[Value]) -> Vec<String> {
    let entries = of_kind(events, "turn_entry");
    let texts = entries.iter().filter_map(|payload| payload["entry"]["assistant"]["text"]["inline"].as_str());
    texts.map(str::to_owned).collect()
}
