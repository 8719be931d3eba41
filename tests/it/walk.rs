//! A turn that is killed at each of its recorded steps in turn, and loses nothing.

use crate::daemon::{BORN, Home, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer, Received, Reply};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The event that ends the turn; the agent's creation and its workspace are the first.
const LAST_STEP: u64 = 29;
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

const FAMILY: &str = "\
work: look into it
$ echo main >> ran.txt
spawn: help
    $ echo child >> ran.txt
    say: helped
wait task
done
say: over
";

/// Steps between two that are killed at; 1 walks all of them.
fn stride() -> u64 {
    std::env::var("HOLON_WALK_STRIDE").map_or(2, |stride| stride.parse().expect("a number"))
}

#[test]
fn a_family_goes_on_from_its_recorded_steps() {
    std::thread::scope(|scope| {
        for walker in 0..WALKERS {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let steps = |first: u64| (first..).step_by((WALKERS * stride()) as usize);
                let walks = [("main", BORN + 1 + walker * stride()), ("main.c1", 1 + walker * stride())];
                for (agent, first) in walks {
                    for step in steps(first) {
                        if !runtime.block_on(family_killed_at(agent, step)) {
                            break;
                        }
                    }
                }
            });
        }
    });
}

/// False when the ledger ends before the step.
async fn family_killed_at(agent: &str, step: u64) -> bool {
    let home = Home::new();
    let daemon = home.serve();
    daemon.prompt("main", FAMILY).await;
    if agent != "main" {
        daemon.wait_for("main", "agent_spawned").await;
    }
    // A walk beyond the end sees the end.
    let last = |event: &holon::client::StreamedEvent| event.kind == "agent_archived" || is_last(event);
    let seen = daemon.watch(agent, 0, |event| event.seq == step || last(event)).await;
    let is_beyond = seen.last().is_some_and(|event| event.seq < step);
    daemon.kill();

    let daemon = home.serve();
    daemon.wait("main", 0, is_last).await;
    daemon.wait_for("main.c1", "agent_archived").await;
    let (main, child) = (daemon.events("main").await, daemon.events("main.c1").await);
    let mut ran: Vec<String> = home.written("ran.txt").lines().map(str::to_owned).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["child", "main"], "killed at {agent}:{step}: each command ran once");
    for (events, kind, count) in [
        (&main, "agent_spawned", 1),
        (&main, "work_item_created", 1),
        (&main, "work_item_completed", 1),
        (&child, "delegation_reported", 1),
        (&child, "outbox_delivered", 1),
    ] {
        assert_eq!(of_kind(events, kind).len(), count, "killed at {agent}:{step}: {kind}");
    }
    let of_child = |exited: &&Value| exited["exit"]["reported"].is_object();
    assert_eq!(of_kind(&main, "task_exited").into_iter().filter(of_child).count(), 1, "killed at {agent}:{step}");
    assert!(outcomes(&main).iter().chain(&outcomes(&child)).all(|(_, outcome)| outcome == "processed"));
    assert!(daemon.is_whole("main").await && daemon.is_whole("main.c1").await, "killed at {agent}:{step}");
    !is_beyond
}

/// The work is done, and its turn is over.
fn is_last(event: &holon::client::StreamedEvent) -> bool {
    event.kind == "episode_memory_finalized" && event.data["payload"]["boundary"] == "rejoined"
}
