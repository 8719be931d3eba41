//! Aborting a run, stopping an agent, and what either leaves alone.

use crate::daemon::{Daemon, Home, marked, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer, Reply};
use serde_json::{Value, json};

async fn current_run(daemon: &Daemon) -> Value {
    daemon.status("main").await["agent"]["current_run_id"].clone()
}

#[tokio::test]
async fn an_abort_is_refused_where_it_does_not_fit() {
    let server = ModelServer::start();
    server.otherwise(|_| Reply::Hang);
    let home = Home::new().asking(&server);
    let daemon = home.serve();
    let path = "/control/agents/main/current-run/abort";
    let problem = daemon.refusal(path, json!({})).await;
    assert_eq!((problem.status, problem.code.as_str()), (409, "no_current_run"));
    let unknown = daemon.refusal("/control/agents/nobody/current-run/abort", json!({})).await;
    assert_eq!((unknown.status, unknown.code.as_str()), (404, "agent_not_found"));

    daemon.prompt("main", "think").await;
    server.wait_for_requests(1);
    let before = daemon.head("main").await;
    for stale in ["run-7", "not a run"] {
        let problem = daemon.refusal(path, json!({"run_id": stale})).await;
        assert_eq!((problem.status, problem.code.as_str()), (409, "stale_run_id"));
        assert_eq!(problem.more["current_run_id"], "run-1");
        assert_eq!(problem.more["requested_run_id"], stale);
    }
    assert_eq!(daemon.head("main").await, before, "a refusal records nothing");
    assert_eq!(current_run(&daemon).await, "run-1");
    let answer = daemon.abort("main", json!({"run_id": "run-1"})).await;
    assert_eq!((&answer["aborted"], &answer["run_id"]), (&json!(true), &json!("run-1")));
    assert_eq!(daemon.refusal(path, json!({"run_id": "run-1"})).await.code, "no_current_run");
}

#[tokio::test]
async fn an_abort_cuts_a_model_call_and_pauses_the_agent() {
    let server = ModelServer::start();
    server.reply(Reply::Hang);
    server.otherwise(|_| Answer::text("answered").whole());
    let home = Home::new().asking(&server);
    let daemon = home.serve();
    let message = daemon.prompt("main", "think").await;
    server.wait_for_requests(1);
    daemon.abort("main", json!({})).await;
    assert_eq!(daemon.settled("main", &message).await, "aborted");
    let answer = daemon.answer("main", &message).await;
    assert_eq!(answer["kind"], "failure");
    let events = daemon.events("main").await;
    let terminal = of_kind(&events, "turn_terminal");
    assert_eq!((&terminal[0]["outcome"], &terminal[0]["reason"]), (&json!("aborted"), &json!("operator_aborted")));
    assert_eq!(daemon.posture("main").await, ("archived".into(), "paused".into()));

    let first = daemon.prompt("main", "first").await;
    let second = daemon.enqueue("main", "second").await;
    let status = daemon.status("main").await;
    assert_eq!((&status["agent"]["pending"], &status["lifecycle"]["state"]), (&json!(2), &json!("paused")));
    assert_eq!(status["lifecycle"]["accepts_external_messages"], true);
    daemon.control("main", "start").await;
    assert_eq!(daemon.answer("main", &first).await["text"], "answered");
    assert_eq!(daemon.answer("main", &second).await["text"], "answered");
    assert_eq!(server.received().len(), 3, "the aborted message was not tried again");
}

#[tokio::test]
async fn an_abort_ends_the_command_of_its_run_and_no_other() {
    let background = json!({"cmd": "read go < background; echo from the background", "yield_time_ms": 0});
    let foreground = json!({"cmd": "AN_ABORTED_COMMAND=1 sh -c 'echo > begun; read go < foreground'"});
    let call = |arguments: Value| json!({"calls": [{"tool": "ExecCommand", "arguments": arguments}]});
    let script = json!({"rounds": [call(background), call(foreground)], "default": {"text": "noted"}});
    let home = Home::new().scripted(&script);
    let (gate, _closed, mut begun) = (home.gate("background"), home.gate("foreground"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "both").await;
    begun.next().await;
    assert!(!marked("AN_ABORTED_COMMAND=1").is_empty());
    daemon.abort("main", json!({})).await;
    let ended = daemon.wait_for("main", "task_exited").await;
    assert_eq!(
        (&ended.data["payload"]["task"], &ended.data["payload"]["status"]),
        (&json!("task-2"), &json!("cancelled"))
    );
    assert_eq!(marked("AN_ABORTED_COMMAND=1"), Vec::<String>::new());
    let tasks = daemon.get("/agents/main/tasks").await;
    assert_eq!((&tasks[0]["id"], &tasks[0]["status"]), (&json!("task-1"), &json!("running")));

    let next = daemon.prompt("main", "meanwhile").await;
    gate.open();
    daemon.wait("main", ended.seq, |event| event.kind == "task_exited").await;
    let status = daemon.status("main").await;
    assert_eq!(status["agent"]["pending"], 2, "the prompt and the task's result wait");
    daemon.control("main", "start").await;
    assert_eq!(daemon.settled("main", "msg-3").await, "processed");
    let events = daemon.events("main").await;
    let outcome = |message: &str, outcome: &str| (message.to_owned(), outcome.to_owned());
    assert_eq!(
        outcomes(&events),
        [outcome(&message, "aborted"), outcome(&next, "processed"), outcome("msg-3", "processed")]
    );
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn an_abort_of_a_run_that_waits_for_a_task_leaves_the_task_alone() {
    let exec = json!({"tool": "ExecCommand", "arguments": {"cmd": "read go < go; echo done", "yield_time_ms": 0}});
    let wait = json!({"tool": "TaskOutput", "arguments": {"task_id": "task-1", "timeout_ms": 600_000}});
    let rounds = json!([{"calls": [exec]}, {"calls": [wait]}]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let gate = home.gate("go");
    let daemon = home.serve();
    let message = daemon.prompt("main", "start").await;
    daemon.wait("main", 0, |event| event.data["payload"]["entry"]["assistant"]["round"] == 2).await;
    daemon.abort("main", json!({"mode": "idle_after_abort"})).await;
    assert_eq!(daemon.settled("main", &message).await, "aborted");
    gate.open();
    let exited = daemon.wait_for("main", "task_exited").await;
    assert_eq!(exited.data["payload"]["status"], "completed");
    assert_eq!(daemon.answer("main", "msg-2").await["text"], "noted");
}

#[tokio::test]
async fn an_idle_abort_goes_on_with_the_queue() {
    let server = ModelServer::start();
    server.reply(Reply::Hang);
    server.otherwise(|_| Answer::text("answered").whole());
    let home = Home::new().asking(&server);
    let daemon = home.serve();
    let message = daemon.prompt("main", "think").await;
    server.wait_for_requests(1);
    let waiting = daemon.enqueue("main", "waiting").await;
    let prompt = daemon.prompt("main", "an interjection that was not taken in").await;
    daemon.abort("main", json!({"mode": "idle_after_abort"})).await;
    assert_eq!(daemon.answer("main", &waiting).await["text"], "answered");
    assert_eq!(daemon.settled("main", &message).await, "aborted");
    assert_eq!(daemon.settled("main", &prompt).await, "processed");
    assert_eq!(of_kind(&daemon.events("main").await, "agent_paused").len(), 0);
}

#[tokio::test]
async fn an_acknowledged_abort_holds_over_a_kill() {
    let home = Home::new();
    let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ AN_ABORT_OVER_A_KILL=1 sh -c 'echo > begun; read go < go'\nsay: over").await;
    begun.next().await;
    let waiting = daemon.prompt("main", "say: later").await;
    daemon.abort("main", json!({})).await;
    daemon.kill();

    let daemon = home.serve();
    daemon.wait_for("main", "task_exited").await;
    assert_eq!(marked("AN_ABORT_OVER_A_KILL=1"), Vec::<String>::new());
    assert_eq!(daemon.settled("main", &message).await, "aborted");
    assert_eq!(daemon.posture("main").await, ("archived".into(), "paused".into()));
    assert_eq!(current_run(&daemon).await, Value::Null);
    daemon.control("main", "start").await;
    assert_eq!(daemon.answer("main", &waiting).await["text"], "later");
    let events = daemon.events("main").await;
    assert_eq!(of_kind(&events, "turn_started").len(), 2, "the aborted message is not tried again");
    assert!(daemon.is_whole("main").await);
}

#[tokio::test]
async fn a_stopped_agent_runs_nothing_and_takes_nothing_until_it_is_started() {
    let home = Home::new();
    let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let both = "$ MARKED_TO_STOP=1 sh -c 'echo > begun; read go < go' & sh -c 'read go < go' MARKED_TO_STOP=1; wait";
    let message = daemon.prompt("main", both).await;
    begun.next().await;
    let waiting = daemon.enqueue("main", "kept").await;
    let prompt = daemon.prompt("main", "say: kept too").await;
    assert!(marked("MARKED_TO_STOP=1").len() >= 2);
    let stopped = home.run(&["agent", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    daemon.wait_for("main", "task_exited").await;
    assert_eq!(marked("MARKED_TO_STOP=1"), Vec::<String>::new());
    assert_eq!(daemon.settled("main", &message).await, "aborted");

    let head = daemon.head("main").await;
    for (path, body) in [
        ("/control/agents/main/prompt", json!({"text": "no"})),
        ("/agents/main/enqueue", json!({"text": "no"})),
        ("/control/agents/main/wake", json!({"reason": "no"})),
    ] {
        let problem = daemon.refusal(path, body).await;
        assert_eq!((problem.status, problem.code.as_str()), (409, "agent_stopped"), "{path}");
        assert!(problem.hint.is_some_and(|hint| hint.contains("start")));
    }
    let refused = home.run(&["prompt", "no"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("the agent is stopped") && told.contains("hint: "), "{told}");
    daemon.control("main", "stop").await;
    assert_eq!(daemon.head("main").await, head, "nothing was recorded");

    daemon.kill();
    let daemon = home.serve();
    assert_eq!(daemon.posture("main").await, ("archived".into(), "stopped".into()));
    let started = home.run(&["agent", "start"]);
    assert!(started.status.success(), "{started:?}");
    assert_eq!(daemon.answer("main", &prompt).await["text"], "kept too");
    assert_eq!(daemon.settled("main", &waiting).await, "processed");
}
