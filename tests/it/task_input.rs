//! Input for commands: each line is taken in once and in its order, at whatever step the daemon is killed.

use crate::daemon::{BORN, Daemon, Home, of_kind, outcomes};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const WALKERS: u64 = 4;
/// A turn has fewer steps.
const STEPS_MAX: u64 = 60;
/// Takes lines until it is told the last one.
const TAKES_LINES: &str =
    r#"while read line; do echo "$line" >> taken.txt; [ "$line" != last ] || break; done; read go < go"#;

fn exec(cmd: &str) -> Value {
    json!({"tool": "ExecCommand", "arguments": {"cmd": cmd, "accepts_input": true, "yield_time_ms": 0}})
}

fn input(text: &str) -> Value {
    json!({"tool": "TaskInput", "arguments": {"task_id": "task-1", "text": text}})
}

/// The first input comes while the command is being started; the rest follow when the file `more` is there.
fn given_lines() -> Value {
    let rounds = json!([
        {"calls": [exec(TAKES_LINES), input("one\n")]},
        {"wait_for": "more", "calls": [input("two\nth"), input("ree\nlast\n")]},
        {"text": "given"},
    ]);
    json!({"rounds": rounds, "default": {"text": "noted"}})
}

/// Lets the command end, and checks that it took all its input once.
async fn check(home: &Home, daemon: &Daemon, case: &str) {
    let exited = daemon.wait_for("main", "task_exited").await.data["payload"].clone();
    assert_eq!((&exited["exit"]["code"], &exited["status"]), (&json!(0), &json!("completed")), "{case}");
    assert_eq!(home.written("taken.txt"), "one\ntwo\nthree\nlast\n", "{case}");
    assert_eq!(daemon.answer("main", "msg-1").await["text"], "given", "{case}");
    assert_eq!(daemon.settled("main", "msg-2").await, "processed", "{case}");
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "task_input_requested").len(), 3, "{case}");
    assert_eq!(of_kind(&events, "task_input_delivered").len(), 3, "{case}");
    assert_eq!(outcomes(&events).len(), 2, "{case}");
    assert!(daemon.is_whole("main").await, "{case}");
}

#[test]
fn a_command_takes_each_line_once_at_whatever_step_the_daemon_is_killed() {
    std::thread::scope(|scope| {
        for first in BORN + 1..=BORN + WALKERS {
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let mut steps = (first..STEPS_MAX).step_by(WALKERS as usize);
                assert!(steps.any(|step| runtime.block_on(killed_at(step))), "the walk ends with the turn");
            });
        }
    });
}

/// True when the turn has ended by then.
async fn killed_at(step: u64) -> bool {
    let home = Home::new().scripted(&given_lines());
    let gate = home.gate("go");
    fs::write(home.workspace().join("more"), "").unwrap();
    let daemon = home.serve();
    let (path, body) = ("/control/agents/main/prompt", json!({"text": "feed it"}));
    let reached = daemon.watch("main", 0, |event| event.seq == step || event.kind == "turn_terminal");
    let (_, seen) = tokio::join!(daemon.client.post(path, &body), reached);
    daemon.kill();
    let daemon = home.serve();
    daemon.settled("main", "msg-1").await;
    gate.open();
    check(&home, &daemon, &format!("killed at {step}")).await;
    seen.last().is_some_and(|event| event.kind == "turn_terminal")
}

#[tokio::test]
async fn input_goes_on_after_a_daemon_that_died_between_two_pieces_or_within_one() {
    let home = Home::new().scripted(&given_lines());
    let gate = home.gate("go");
    let daemon = home.serve();
    daemon.prompt("main", "feed it").await;
    daemon.wait_for("main", "task_input_delivered").await;
    daemon.kill();

    // As one that died within the next piece leaves it.
    let run = fs::read_dir(home.path().join("run")).unwrap().next().expect("a run folder").unwrap();
    let text = File::options().write(true).open(run.path().join("input/text")).expect("the command takes input");
    text.write_all_at(b"two", "one\n".len() as u64).unwrap();
    let daemon = home.serve();
    assert_eq!(daemon.get("/agents/main/tasks").await[0]["status"], "running");
    fs::write(home.workspace().join("more"), "").unwrap();
    gate.open();
    check(&home, &daemon, "killed between").await;
}

#[tokio::test]
async fn input_for_a_command_that_ended_meanwhile_holds_nothing_up() {
    let rounds = json!([{"calls": [exec("read go < go; echo > ended")]}, {"calls": [input("late\n")]}]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let (gate, mut ended) = (home.gate("go"), home.signs("ended"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "feed it").await;
    daemon.wait_for("main", "task_input_requested").await;
    daemon.kill();
    gate.open();
    ended.next().await;

    let daemon = home.serve();
    daemon.wait_for("main", "task_exited").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "noted");
    assert_eq!(daemon.settled("main", "msg-2").await, "processed");
    assert_eq!(daemon.posture("main").await.0, "idle");
}
