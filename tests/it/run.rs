//! `holon run`: a prompt in, an answer out, and an exit code.

use crate::daemon::{Home, of_kind};
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

fn answered(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_run_without_a_server_answers_and_leaves_nothing_running() {
    let home = Home::new();
    assert_eq!(answered(&home.run(&["run", "say: hello"])), "hello\n");
    let said = answered(&home.run(&["run", "$ echo from a command"]));
    assert!(said.contains("exit 0") && said.contains("from a command"), "{said}");
    assert!(!home.path().join("holon.sock").exists());
    let unreachable = home.run(&["status"]);
    assert_eq!(unreachable.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&unreachable.stderr).contains("hint: start it with holon serve"));
}

#[tokio::test]
async fn a_run_asks_the_server_that_is_there() {
    let home = Home::new();
    let daemon = home.serve();
    assert_eq!(answered(&home.run(&["run", "say: hello"])), "hello\n");
    let json = answered(&home.run(&["run", "--json", "say: again"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["outcome"].as_str(), json["brief"]["text"].as_str()), (Some("processed"), Some("again")));
    assert_eq!(of_kind(&daemon.events("main").await, "turn_started").len(), 2);
}

#[test]
fn a_run_takes_its_prompt_from_a_file_or_standard_input() {
    let home = Home::new();
    fs::write(home.workspace().join("book.txt"), "say: from a file\n").unwrap();
    assert_eq!(answered(&home.run(&["run", "book.txt"])), "from a file\n");
    let mut command = home.holon(&["run", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"say: from a pipe\n").unwrap();
    assert_eq!(answered(&child.wait_with_output().unwrap()), "from a pipe\n");
}

#[test]
fn a_run_that_fails_prints_why_and_exits_with_one() {
    let home = Home::new().environment("HOLON_MODEL", "anthropic/model");
    let output = home.run(&["run", "hello"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("run-1 failed") && said.contains("ANTHROPIC_API_KEY") && said.contains("hint: "), "{said}");
}

#[tokio::test]
async fn a_server_finishes_what_a_killed_run_began() {
    let home = Home::new();
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let mut command = home.holon(&["run", "$ echo ran >> ran.txt; echo > begun; read go < go\nsay: finished"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    begun.next().await;
    child.kill().unwrap();
    child.wait().unwrap();

    let daemon = home.serve();
    gate.open();
    let answer = daemon.answer("main", "msg-1").await;
    assert!(answer["text"].as_str().unwrap().contains("finished"), "{answer}");
    assert_eq!(home.written("ran.txt"), "ran\n");
    assert!(daemon.is_whole("main").await);
}
