//! Commands over restarts: found again, told of once, ended when they are to end.

use crate::daemon::{Daemon, Home, PATIENCE, of_kind, outcomes};
use holon::client::StreamedEvent;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A model that runs `cmd`, says so when it goes on as a task, and takes note of its end.
fn in_the_background(cmd: &str) -> Home {
    let call = json!({"tool": "ExecCommand", "arguments": {"cmd": cmd, "yield_time_ms": 0}});
    let rounds = json!([{"calls": [call]}, {"text": "it goes on"}]);
    Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}))
}

/// The claim of the only command.
fn claim(home: &Home) -> PathBuf {
    let run = fs::read_dir(home.path().join("run")).unwrap().next().expect("a run folder").unwrap();
    run.path().join("claim.json")
}

/// The supervisor of the only command.
fn supervisor(home: &Home) -> Pid {
    let claim: Value = serde_json::from_str(&fs::read_to_string(claim(home)).unwrap()).unwrap();
    Pid::from_raw(i32::try_from(claim["record"]["begun"]["pid"].as_i64().unwrap()).unwrap())
}

/// The end of a task, and the message that tells the agent, when it was not told by a call's result.
async fn end_of(daemon: &Daemon, messages: usize) -> (Value, Vec<Value>) {
    let exited = daemon.wait_for("main", "task_exited").await;
    let mut settled = 0;
    let all_settled = daemon.wait("main", 0, |event| {
        settled += usize::from(event.kind == "message_settled");
        settled == messages
    });
    all_settled.await;
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "task_started").len(), 1);
    assert_eq!(of_kind(&events, "task_exited").len(), 1);
    assert_eq!(outcomes(&events).len(), messages, "every message has one outcome");
    assert!(daemon.is_whole("main").await);
    let told = of_kind(&events, "message_enqueued").into_iter().filter(|payload| payload["kind"] == "task_result");
    (exited.data["payload"].clone(), told.cloned().collect())
}

#[tokio::test]
async fn a_promoted_task_is_found_again_and_told_of_once() {
    let home = in_the_background("echo ran >> ran.txt; read go < go; echo done; exit 3");
    let gate = home.gate("go");
    let daemon = home.serve();
    let message = daemon.prompt("main", "start").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "it goes on");
    daemon.kill();

    let daemon = home.serve();
    let tasks = daemon.get("/agents/main/tasks").await;
    assert_eq!(tasks[0]["status"], "running");
    assert_eq!(daemon.posture("main").await.0, "idle");
    assert!(daemon.stop().success());
    let daemon = home.serve();
    gate.open();
    let (exited, told) = end_of(&daemon, 2).await;
    assert_eq!((&exited["exit"]["code"], &exited["status"]), (&json!(3), &json!("failed")));
    assert_eq!(exited["output"]["shown"]["inline"], "done\n");
    assert_eq!(told.len(), 1);
    let text = told[0]["body"]["inline"].as_str().unwrap();
    assert!(text.contains("exit code 3") && text.contains("done"), "{text}");
    assert_eq!(home.written("ran.txt"), "ran\n");
}

#[tokio::test]
async fn a_task_that_ended_while_no_daemon_ran_is_told_of() {
    let home = in_the_background("read go < go; echo done; echo > ended");
    let (gate, mut ended) = (home.gate("go"), home.signs("ended"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "start").await;
    daemon.answer("main", &message).await;
    daemon.kill();
    gate.open();
    ended.next().await;

    let daemon = home.serve();
    let (exited, told) = end_of(&daemon, 2).await;
    assert_eq!((&exited["exit"]["code"], &exited["status"]), (&json!(0), &json!("completed")));
    assert_eq!((exited["output"]["shown"]["inline"].as_str(), told.len()), (Some("done\n"), 1));
}

#[tokio::test]
async fn a_task_whose_supervisor_was_killed_is_lost_and_told_of_once() {
    for daemon_runs in [true, false] {
        let home = in_the_background("echo begun; echo > begun; read go < go");
        let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
        let mut daemon = home.serve();
        let message = daemon.prompt("main", "start").await;
        daemon.answer("main", &message).await;
        begun.next().await;
        if daemon_runs {
            kill(supervisor(&home), Signal::SIGKILL).unwrap();
        } else {
            daemon.kill();
            kill(supervisor(&home), Signal::SIGKILL).unwrap();
            daemon = home.serve();
        }
        let (exited, told) = end_of(&daemon, 2).await;
        assert_eq!((&exited["exit"], &exited["status"]), (&json!("lost"), &json!("interrupted")));
        assert_eq!(told.len(), 1);
        let text = told[0]["body"]["inline"].as_str().unwrap();
        assert!(text.contains("interrupted") && text.contains("may or may not have taken effect"), "{text}");
        daemon.kill();
        let daemon = home.serve();
        assert_eq!(end_of(&daemon, 2).await.1.len(), 1, "a restart does not tell it again");
    }
}

#[tokio::test]
async fn a_call_whose_supervisor_was_killed_is_answered_that_its_end_is_unknown() {
    let home = Home::new();
    let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ echo > begun; read go < go").await;
    begun.next().await;
    kill(supervisor(&home), Signal::SIGKILL).unwrap();
    let answer = daemon.answer("main", &message).await;
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("may or may not have taken effect"), "{text}");
    let (exited, told) = end_of(&daemon, 1).await;
    assert_eq!((&exited["status"], told.len()), (&json!("interrupted"), 0));
}

#[tokio::test]
async fn a_call_that_waits_for_a_task_goes_on_over_a_kill() {
    let exec = json!({"tool": "ExecCommand", "arguments": {"cmd": "read go < go; echo done", "yield_time_ms": 0}});
    let wait = json!({"tool": "TaskOutput", "arguments": {"task_id": "task-1", "timeout_ms": 600_000}});
    let rounds = json!([{"calls": [exec]}, {"calls": [wait]}]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let gate = home.gate("go");
    let daemon = home.serve();
    let message = daemon.prompt("main", "start").await;
    let second_round = |event: &StreamedEvent| event.data["payload"]["entry"]["assistant"]["round"] == 2;
    daemon.wait("main", 0, second_round).await;
    daemon.kill();
    let daemon = home.serve();
    gate.open();
    assert_eq!(daemon.answer("main", &message).await["text"], "noted");
    let (_, told) = end_of(&daemon, 2).await;
    assert_eq!(told.len(), 1);
    let events = daemon.events("main").await;
    let results = of_kind(&events, "turn_entry").into_iter().map(|payload| &payload["entry"]["tool_result"]["result"]);
    let shown: Vec<_> =
        results.filter_map(|result| result["task_output"]["output"]["text"]["inline"].as_str()).collect();
    assert_eq!(shown, ["done\n"]);
    assert_eq!(outcomes(&events)[0].1, "coalesced", "the call has told of the end");
}

#[tokio::test]
async fn a_command_goes_on_whatever_becomes_of_its_claim_once_the_ledger_names_its_supervisor() {
    let home = Home::new();
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ echo > begun; read go < go; echo went on").await;
    begun.next().await;
    daemon.wait_for("main", "task_supervised").await;
    daemon.kill();
    fs::write(claim(&home), "garbage").unwrap();
    let daemon = home.serve();
    gate.open();
    let answer = daemon.answer("main", &message).await;
    assert!(answer["text"].as_str().unwrap().contains("went on"), "{answer}");
    let exited = daemon.wait_for("main", "task_exited").await.data["payload"].clone();
    assert_eq!((&exited["exit"]["code"], &exited["status"]), (&json!(0), &json!("completed")));
}

#[tokio::test]
async fn a_stop_ends_a_command_that_resists_even_over_a_restart() {
    let home = in_the_background("trap '' TERM; echo > begun; while :; do read go < go; done");
    let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "start").await;
    daemon.answer("main", &message).await;
    begun.next().await;
    daemon.control("main", "stop").await;
    daemon.kill();

    let daemon = home.serve();
    let exited = daemon.wait_for("main", "task_exited").await.data["payload"].clone();
    assert_eq!((&exited["exit"]["signal"], &exited["status"]), (&json!(9), &json!("interrupted")));
    assert_eq!(daemon.posture("main").await, ("archived".into(), "stopped".into()));
    daemon.control("main", "start").await;
    let (_, told) = end_of(&daemon, 2).await;
    assert_eq!(told.len(), 1, "the agent learns of it when it runs again");
}

#[tokio::test]
async fn a_command_that_is_stopped_as_it_starts_does_not_run_on() {
    for abort_at in ["task_create_requested", "task_started"] {
        let home = Home::new();
        let (_gate, daemon) = (home.gate("go"), home.serve());
        let prompt = daemon.prompt("main", "$ echo ran >> ran.txt; read go < go").await;
        daemon.wait_for("main", abort_at).await;
        daemon.abort("main", json!({})).await;
        assert_eq!(daemon.settled("main", &prompt).await, "aborted");
        let exited = tokio::time::timeout(PATIENCE, daemon.wait_for("main", "task_exited")).await;
        assert_eq!(exited.unwrap().data["payload"]["status"], "cancelled", "aborted at {abort_at}");
        let events = daemon.events("main").await;
        assert_eq!(of_kind(&events, "message_enqueued").len(), 1, "nobody asked to be told");
    }
}

#[tokio::test]
async fn a_command_is_told_its_agent_and_where_its_home_is() {
    let home = Home::new();
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ cd \"$HOLON_AGENT_HOME\" && echo \"$HOLON_AGENT_ID in $PWD\"").await;
    let text = daemon.answer("main", &message).await["text"].as_str().unwrap().to_owned();
    let folder = home.path().canonicalize().unwrap().join("agents/main");
    assert!(text.contains(&format!("main in {}\n", folder.display())), "{text}");
}
