//! The planes' tools through the protocols of real model services: what a service is asked, and what comes of it.
//!
//! One story, told to a service of each protocol: work is opened, a command runs, a child is born and reports, and the
//! work is completed. Parent and child are served by the same service, which tells them apart by their tools.

use crate::asked::{Asked, Said};
use crate::daemon::{Home, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer};
use holon::client::StreamedEvent;
use holon::context::request::ToolSchema;
use holon::events::agent::Preset;
use holon::tools;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A service that serves a parent and its child, each in its own order.
fn serving(parent: Vec<Answer>, child: Vec<Answer>) -> ModelServer {
    let server = ModelServer::start();
    let (mut parent, mut child) = (VecDeque::from(parent), VecDeque::from(child));
    server.otherwise(move |received| {
        let answers = if Asked::read(received).offers("SpawnAgent") { &mut parent } else { &mut child };
        answers.pop_front().expect("no more rounds than the story has").whole()
    });
    server
}

/// The calls of the story: id, tool and arguments.
fn called(id: &str) -> (&'static str, String) {
    let (tool, arguments) = match id {
        "call-plan" => ("CreateWorkItem", json!({"objective": "ship it"})),
        "call-build" => ("ExecCommand", json!({"cmd": "echo built"})),
        "call-spawn" => ("SpawnAgent", json!({"preset": "private_child", "initial_message": "review what was built"})),
        "call-wait" => ("WaitFor", json!({"wake": "task_result", "resource": "task-2", "reason": "the review"})),
        "call-complete" => {
            ("CompleteWorkItem", json!({"work_item_id": "work-1", "result_summary": "built and reviewed"}))
        }
        "call-look" => ("ExecCommand", json!({"cmd": "echo looks good"})),
        other => panic!("{other} is not in the story"),
    };
    (tool, arguments.to_string())
}

fn calling(answer: Answer, id: &str) -> Answer {
    let (tool, arguments) = called(id);
    answer.call(id, tool, &arguments)
}

fn story() -> ModelServer {
    let only = |id| calling(Answer::text(""), id);
    let planning = calling(Answer::text("I plan and build."), "call-plan");
    let parent = vec![
        calling(planning, "call-build"),
        only("call-spawn"),
        only("call-wait"),
        only("call-complete"),
        Answer::text("It is shipped."),
    ];
    serving(parent, vec![only("call-look"), Answer::text("I have reviewed it: it looks good.")])
}

#[tokio::test]
async fn work_commands_and_children_are_driven_by_an_anthropic_service() {
    let server = story();
    told(&server, Home::new().asking(&server)).await;
}

#[tokio::test]
async fn work_commands_and_children_are_driven_by_an_openai_service() {
    let server = story();
    let home = Home::new().configured(&format!(
        "model = \"other/model\"\n[providers.other]\nprotocol = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"key\"\n",
        server.url()
    ));
    told(&server, home).await;
}

async fn told(server: &ModelServer, home: Home) {
    let daemon = home.serve();
    daemon.prompt("main", "ship it").await;
    let shipped = |event: &StreamedEvent| event.kind == "turn_terminal" && event.data["payload"]["run"] == "run-2";
    daemon.wait("main", 0, shipped).await;
    daemon.wait_for("main.c1", "agent_archived").await;
    let asked: Vec<Asked> = server.received().iter().map(Asked::read).collect();
    assert!(asked.iter().all(|asked| asked.streams));
    let (parent, child): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(|asked| asked.offers("SpawnAgent"));
    asked_for_parent(&parent);
    asked_for_child(&child);
    recorded_of_parent(&daemon.events("main").await);
    recorded_of_child(&daemon.events("main.c1").await);
    assert!(daemon.is_whole("main").await && daemon.is_whole("main.c1").await);
}

fn asked_for_parent(asked: &[Asked]) {
    let [first, built, spawned, woken, shipped] = asked else { panic!("{} requests", asked.len()) };
    assert!(asked.iter().all(|asked| asked.tools == offered(Preset::PublicNamed)), "the tools are sent as they are");
    assert!(first.message().ends_with("\nship it"));
    let results = ["call-plan: work-1 is at revision 1", "call-build: exit code 0"];
    assert_eq!(added(first, built), [&["I plan and build.", "call-plan", "call-build"][..], &results].concat());
    assert_eq!(result(built, "call-plan")["work_item_id"], "work-1");
    assert_eq!(result(built, "call-build")["output"], "built\n");

    assert_eq!(added(built, spawned), ["call-spawn", "call-spawn: main.c1 is born"]);
    let (child, handle) = (result(spawned, "call-spawn"), json!({"task_id": "task-2", "status": "running"}));
    assert_eq!(child["agent_id"], "main.c1");
    assert!(handle.as_object().unwrap().iter().all(|(name, value)| child["task_handle"][name] == *value), "{child}");

    assert!(woken.message().contains("task_result from task-2, trusted_system"), "{}", woken.message());
    assert!(woken.message().ends_with("> I have reviewed it: it looks good."), "{}", woken.message());
    assert_eq!(woken.calls(), 0, "a turn begins anew");
    assert_eq!(added(woken, shipped), ["call-complete", "call-complete: work-1 is at revision 1"]);
}

fn asked_for_child(asked: &[Asked]) {
    let [first, looked] = asked else { panic!("{} requests", asked.len()) };
    assert!(asked.iter().all(|asked| asked.tools == offered(Preset::PrivateChild)), "a child is offered less");
    assert!(first.message().ends_with("\n> review what was built") && first.message().contains("trusted_system"));
    assert_eq!(added(first, looked), ["call-look", "call-look: exit code 0"]);
    assert_eq!(result(looked, "call-look")["output"], "looks good\n");
}

fn offered(preset: Preset) -> Vec<(String, String, Value)> {
    let offered = |tool: ToolSchema| {
        (tool.name, tool.description, serde_json::from_str(&tool.parameters).expect("a schema is JSON"))
    };
    tools::schemas(preset).into_iter().map(offered).collect()
}

/// What the next request of a turn adds to all that the one before said. Calls are sent back as they were made.
fn added(before: &Asked, after: &Asked) -> Vec<String> {
    let fresh = after.said.strip_prefix(&before.said[..]).expect("a prompt only grows within a turn");
    fresh.iter().flat_map(shown).collect()
}

fn shown(said: &Said) -> Vec<String> {
    match said {
        Said::Assistant { text, calls } => {
            let text = Some(text.clone()).filter(|text| !text.is_empty());
            for (id, tool, arguments) in calls {
                assert_eq!((tool.as_str(), arguments.to_string()), called(id));
            }
            text.into_iter().chain(calls.iter().map(|(id, ..)| id.clone())).collect()
        }
        Said::Result { call, text } => {
            let envelope: Value = serde_json::from_str(text).expect("an envelope");
            assert_eq!(envelope["status"], "success", "{envelope}");
            vec![format!("{call}: {}", envelope["summary_text"].as_str().expect("a summary"))]
        }
        Said::System(text) | Said::User(text) => vec![text.clone()],
    }
}

/// The result of a call, as it was sent.
fn result(asked: &Asked, call: &str) -> Value {
    let text = asked.said.iter().find_map(|said| match said {
        Said::Result { call: id, text } if id == call => Some(text),
        Said::Result { .. } | Said::System(_) | Said::User(_) | Said::Assistant { .. } => None,
    });
    let envelope: Value = serde_json::from_str(text.expect("a result")).expect("an envelope");
    envelope["result"].clone()
}

fn recorded_of_parent(events: &[Value]) {
    let work = ["work_item_created", "agent_spawned", "task_child_spawned", "work_item_completed"];
    assert_eq!(kinds(events, &work), work);
    let waits = ["wait_created", "wait_triggered", "wait_consumed"];
    assert_eq!(kinds(events, &waits), waits);
    let exits = of_kind(events, "task_exited");
    let exits: Vec<_> = exits.iter().map(|exit| (&exit["task"], &exit["status"], &exit["exit"])).collect();
    let done = json!("completed");
    let cost = json!({"input_tokens": 50, "output_tokens": 14, "rounds_unknown": 0});
    let (command, child) = ((json!("task-1"), json!({"code": 0})), (json!("task-2"), json!({"reported": cost})));
    assert_eq!(exits, [(&command.0, &done, &command.1), (&child.0, &done, &child.1)]);
    assert_eq!(of_kind(events, "work_item_completed")[0]["report"]["inline"], "built and reviewed");
    assert_eq!(outcomes(events), ["msg-1", "msg-2"].map(|message| (message.into(), "processed".into())));
    let usage = of_kind(events, "turn_entry").into_iter().map(|entry| &entry["entry"]["assistant"]["usage"]);
    let usage: Vec<&Value> = usage.filter(|usage| usage.is_object()).collect();
    assert_eq!(usage, [&json!({"input_tokens": 25, "output_tokens": 7}); 5]);
}

fn recorded_of_child(events: &[Value]) {
    let end = ["delegation_reported", "outbox_delivered", "agent_archive_requested", "agent_archived"];
    assert_eq!(kinds(events, &end), end);
    let created = of_kind(events, "agent_created")[0];
    assert_eq!((&created["supervisor"], &created["supervising_task"]), (&json!("main"), &json!("task-2")));
    let reported = of_kind(events, "delegation_reported")[0];
    assert_eq!(reported["report"]["inline"], "I have reviewed it: it looks good.");
}

/// The kinds of the events, of those that are asked for, in their order.
fn kinds<'a>(events: &'a [Value], asked: &[&str]) -> Vec<&'a str> {
    events.iter().filter_map(|event| event["type"].as_str()).filter(|kind| asked.contains(kind)).collect()
}
