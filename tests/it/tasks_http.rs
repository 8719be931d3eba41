//! Tasks over HTTP: commands and children, their output, their input, their end.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home, PATIENCE};
use serde_json::{Value, json};

/// An agent whose first call is `tool`.
fn calling(tool: &str, arguments: &Value) -> Home {
    let call = json!({"tool": tool, "arguments": arguments});
    Home::new().scripted(&json!({"rounds": [{"calls": [call]}], "default": {"text": "noted"}}))
}

/// Waits until a command that runs has been heard to say all of `text`: what it writes is taken up as it comes.
async fn said(ask: &Ask, text: &str) -> Value {
    let heard = async {
        loop {
            let page = ask.get("/agents/main/tasks/task-1/output").await.ok();
            if page["output"] == text {
                return page;
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("it is heard in time")
}

async fn exited(daemon: &Daemon) {
    daemon.wait_for("main", "task_exited").await;
}

#[tokio::test]
async fn a_commands_output_is_read_page_by_page_while_it_runs_and_after() {
    let cmd = "echo one; echo two > said; echo three; read go < go; echo four";
    let home = calling("ExecCommand", &json!({"cmd": cmd, "yield_time_ms": 0, "summary": "count"}));
    let gate = home.gate("go");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "start").await;
    daemon.wait_for("main", "task_promoted").await;
    let running = ask.get("/agents/main/tasks/task-1").await.ok();
    assert_eq!((&running["kind"], &running["status"]), (&json!("command_task"), &json!("running")));
    assert_eq!((&running["summary"], &running["detail"]["cmd"]), (&json!("count"), &json!(cmd)));
    assert_eq!(said(&ask, "one\nthree\n").await["status"], "running");
    let page = ask.get("/agents/main/tasks/task-1/output?offset=4&limit_bytes=3").await.ok();
    assert_eq!((&page["output"], &page["next_offset"], &page["truncated"]), (&json!("thr"), &json!(7), &json!(true)));

    gate.open();
    exited(&daemon).await;
    let ended = ask.get("/agents/main/tasks/task-1").await.ok();
    assert_eq!((&ended["status"], &ended["detail"]["exit_code"]), (&json!("completed"), &json!(0)));
    let page = ask.get("/agents/main/tasks/task-1/output?offset=4").await.ok();
    assert_eq!((&page["status"], &page["output"]), (&json!("completed"), &json!("three\nfour\n")));
    let past = ask.get("/agents/main/tasks/task-1/output?offset=18446744073709551615").await.ok();
    assert_eq!((&past["output"], &past["offset"], &past["truncated"]), (&json!(""), &json!(15), &json!(false)));
    ask.get("/agents/main/tasks/task-2/output").await.refused(404, "not_found");
    ask.get("/agents/main/tasks/7/output").await.refused(404, "not_found");
    ask.post("/control/agents/main/tasks/task-1/stop", "").await.refused(409, "has_ended");
}

#[tokio::test]
async fn a_command_is_given_input_and_stopped() {
    let arguments = json!({"cmd": "read line; echo got $line; sleep 600", "yield_time_ms": 0,
        "accepts_input": true});
    let home = calling("ExecCommand", &arguments);
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "start").await;
    daemon.wait_for("main", "task_promoted").await;
    let body = json!({"text": "a word\n"});
    ask.post_as("k", "/control/agents/main/tasks/task-1/input", &body).await.ok();
    ask.post_as("k", "/control/agents/main/tasks/task-1/input", &body).await.ok();
    said(&ask, "got a word\n").await;
    ask.post("/control/agents/main/tasks/task-1/input", json!({"text": ""})).await.refused(422, "invalid_field");
    ask.post("/control/agents/main/tasks/task-1/stop", "").await.ok();
    exited(&daemon).await;
    let ended = ask.get("/agents/main/tasks/task-1").await.ok();
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let inputs = daemon.events("main").await.iter().filter(|event| event["type"] == "task_input_requested").count();
    assert_eq!(inputs, 1, "the same key gives it once");
}

#[tokio::test]
async fn a_child_is_a_task_of_its_parent_until_it_has_reported() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "spawn: look around\n  $ read go < go\n  say: all is well\nwait task").await;
    daemon.wait_for("main", "task_child_spawned").await;
    let tasks = ask.get("/agents/main/tasks").await.ok();
    let task = &tasks[0];
    assert_eq!((&task["kind"], &task["status"]), (&json!("child_agent_task"), &json!("running")));
    assert!(task["summary"].as_str().unwrap().starts_with("look around"), "{task}");
    assert_eq!(
        (&task["detail"]["child_agent_id"], &task["detail"]["child_lifecycle"]),
        (&json!("main.c1"), &json!("active"))
    );
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!(state["tasks"], tasks);
    let child = &state["agent"]["active_children"][0];
    assert_eq!((&child["identity"]["agent_id"], &child["task_id"]), (&json!("main.c1"), &json!("task-1")));

    daemon.wait_for("main.c1", "task_started").await;
    gate.open();
    exited(&daemon).await;
    let ended = ask.get("/agents/main/tasks/task-1").await.ok();
    assert_eq!((&ended["kind"], &ended["status"]), (&json!("child_agent_task"), &json!("completed")));
    assert_eq!((&ended["summary"], &ended["detail"]["child_agent_id"]), (&task["summary"], &json!("main.c1")));
    let output = ask.get("/agents/main/tasks/task-1/output").await.ok();
    assert!(output["output"].as_str().unwrap().contains("all is well"), "{output}");
    assert_eq!(ask.get("/agents/main/tasks").await.ok(), json!([ended]));
}

#[tokio::test]
async fn a_command_of_the_operators_runs_beside_the_turns_and_its_result_reaches_the_agent() {
    let home = Home::new();
    let gate = home.gate("go");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let body = json!({"summary": "Build project", "cmd": "read go < go; echo built", "workdir": null, "shell": null,
        "login": false});
    let path = "/control/agents/main/tasks";
    let made = ask.post_as("k", path, &body).await.ok();
    assert_eq!((&made["id"], &made["kind"]), (&json!("task-1"), &json!("command_task")));
    assert_eq!((&made["summary"], &made["detail"]["run_id"]), (&json!("Build project"), &json!(null)));
    assert_eq!(ask.post_as("k", path, &body).await.ok()["id"], "task-1", "the same request makes no second task");
    daemon.wait_for("main", "task_started").await;
    assert_eq!(ask.get("/agents/main/tasks").await.ok().as_array().map(Vec::len), Some(1));
    daemon.kill();

    let daemon = home.serve();
    gate.open();
    exited(&daemon).await;
    let told = daemon.wait("main", 0, |event| {
        event.kind == "message_settled" && event.data["payload"]["outcome"]["processed"].is_string()
    });
    told.await;
    let ask = Ask::new(&daemon);
    let ended = ask.get("/agents/main/tasks/task-1").await.ok();
    assert_eq!((&ended["status"], &ended["detail"]["exit_code"]), (&json!("completed"), &json!(0)));
    let message = ask.get("/agents/main/messages/msg-1").await.ok();
    assert_eq!((&message["kind"], &message["trust"]), (&json!("task_result"), &json!("trusted_system")));

    ask.post(path, json!({"cmd": "ls"})).await.refused(422, "invalid_field");
    for wrong in [
        json!({"summary": "s", "cmd": "  "}),
        json!({"summary": " ", "cmd": "ls"}),
        json!({"summary": "s", "cmd": "ls\u{0}"}),
        json!({"summary": "s", "cmd": "ls", "tty": true}),
        json!({"summary": "s", "cmd": "ls", "prompt": "p"}),
    ] {
        ask.post(path, wrong).await.refused(422, "invalid_field");
    }
    daemon.control("main", "stop").await;
    ask.post(path, &body).await.refused(409, "agent_stopped");
}

#[tokio::test]
async fn what_an_agent_wants_known_is_listed_and_in_its_state() {
    let long = "so far so good; ".repeat(200);
    let call = |text: &str| json!({"tool": "NotifyOperator", "arguments": {"message": text}});
    let home = Home::new().scripted(&json!({"rounds": [{"calls": [call("begun"), call(&long)]}]}));
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    daemon.prompt("main", "start").await;
    daemon.wait_for("main", "turn_terminal").await;
    let state = ask.get("/agents/main/state").await.ok();
    let notices = &state["operator_notifications"];
    assert_eq!(*notices, state["agent"]["recent_operator_notifications"]);
    assert_eq!(*notices, ask.get("/agents/main/operator-notifications").await.ok());
    let first = &notices[1];
    assert_eq!((&first["notification_id"], &first["message"]), (&json!("notice-1"), &json!("begun")));
    assert_eq!(first["target_operator_boundary"], "primary_operator");
    assert_eq!(notices[0]["summary"].as_str().map(str::len), Some(160));
    let second = ask.get("/agents/main/operator-notifications/notice-2").await.ok();
    assert_eq!(second["text"], long, "the whole text is told");
    ask.get("/agents/main/operator-notifications/notice-3").await.refused(404, "not_found");
}
