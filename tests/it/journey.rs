//! The main job, end to end: real work, a crash in the middle, and a history that is whole.

use crate::daemon::{Daemon, Home, holon};
use crate::readme::blocks;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// This repository: real input for real work.
fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The sample runbook of the README: commits, lines, a command that takes 20 seconds, a closing word.
fn tour() -> String {
    std::fs::read_to_string(repository().join("src/guide/tour.runbook")).unwrap()
}

/// What a shell prints for the same commands.
fn real_output(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).current_dir(repository()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The answer quotes what the commands really print.
fn quotes_reality(answer: &str) {
    for line in real_output("git log --oneline | head -n 5").lines() {
        assert!(answer.contains(line), "{line:?} is not in:\n{answer}");
    }
    let lines = real_output("find src -name '*.rs' | xargs cat | wc -l");
    assert!(answer.contains(lines.trim()), "{lines:?} is not in:\n{answer}");
    assert!(answer.contains("| worked") && answer.contains("All 3 steps are done."), "{answer}");
}

#[test]
fn run_does_real_work_over_this_repository_and_quotes_it() {
    let home = Home::new();
    let command = blocks("## Try it", "sh").remove(0);
    let arguments = command.trim().strip_prefix("cargo run --release -- ").expect("the README runs holon by cargo");
    let run = holon(&home.path(), &repository()).args(arguments.split(' ')).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    quotes_reality(&String::from_utf8(run.stdout).unwrap());
}

#[tokio::test]
async fn the_same_work_survives_a_kill_during_the_long_command() {
    let home = Home::new().argument("--workspace").argument(env!("CARGO_MANIFEST_DIR"));
    let daemon = home.serve();
    let message = daemon.prompt("main", &tour()).await;
    let long = |event: &holon::client::StreamedEvent| {
        event.kind == "task_started" && event.data["payload"]["task"] == "task-3"
    };
    daemon.wait("main", 0, long).await;
    let seen = daemon.events("main").await;
    daemon.kill();

    let daemon = home.serve();
    let answer = daemon.answer("main", &message).await;
    quotes_reality(answer["text"].as_str().unwrap());
    let events = daemon.events("main").await;
    assert_eq!(events[..seen.len()], seen[..], "what was seen before the kill is the same after it");
    // A kill before the launch has the third started again; it ends once all the same.
    assert_eq!(of_kind(&events, "task_exited").count(), 3, "each command ran once");
    assert!(is_whole(&home, daemon, "main").await);
}

/// Whole while it is served, and whole when nobody serves it.
async fn is_whole(home: &Home, daemon: Daemon, agent: &str) -> bool {
    let served = daemon.is_whole(agent).await;
    assert!(daemon.stop().success());
    served && home.holon(&["ledger", "verify"]).status().unwrap().success()
}

fn of_kind<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

#[tokio::test]
async fn a_command_outlives_a_kill_and_runs_once() {
    let home = Home::new();
    let daemon = home.serve();
    let fifo = home.workspace().join("go");
    make_fifo(&fifo);
    let mut signs = home.signs("running");
    let message = daemon.prompt("main", "$ echo ran >> ran.txt; echo > running; cat go; echo after\nsay: done").await;
    signs.next().await;
    let seen = daemon.events("main").await;
    daemon.kill();

    let daemon = home.serve();
    std::fs::write(&fifo, "through the pipe\n").unwrap();
    let answer = daemon.answer("main", &message).await;
    assert_eq!(answer["kind"], "result");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("through the pipe") && text.contains("after"), "{text}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("ran.txt")).unwrap(), "ran\n");

    let events = daemon.events("main").await;
    assert_eq!(events[..seen.len()], seen[..], "history does not change");
    assert_eq!(of_kind(&events, "task_started").count(), 1);
    assert!(is_whole(&home, daemon, "main").await);
}

fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}
