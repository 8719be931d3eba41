//! What ends with a stop, an abort or the end of a task, and what goes on.

use crate::daemon::{Daemon, Gate, Home, Signs, marked, of_kind};
use crate::model_server::{Answer, ModelServer, Received, Reply};
use serde_json::{Value, json};

/// An agent with a command in the background, task-1, a child that runs one, task-2, and one it waits for, task-3.
struct Family {
    home: Home,
    daemon: Daemon,
    server: ModelServer,
    gates: [Gate; 3],
    /// The prompt, whose turn waits for task-3.
    message: String,
}

const BACKGROUND: usize = 0;
const CHILDS: usize = 1;
const FOREGROUND: usize = 2;
const NAMES: [&str; 3] = ["background", "childs", "foreground"];

/// A command with a part in a session of its own; it waits for its gate.
fn waiting(home: &Home, name: &str) -> String {
    let part = "setsid sh -c 'echo > begun; sleep 1000' &";
    format!("export {}; {part}\necho > begun; sh -c 'read go < {name}'; echo through", home.marker(name))
}

fn exec(cmd: &str, yield_ms: u64) -> String {
    json!({"cmd": cmd, "yield_time_ms": yield_ms}).to_string()
}

/// What the models say: each agent does its part in its first round.
fn play(home: &Home) -> impl FnMut(&Received) -> Reply + Send + 'static {
    let [background, childs, foreground] = NAMES.map(|name| waiting(home, name));
    move |request| {
        let messages = request.body["messages"].as_array().expect("messages");
        let is_child = messages[0].to_string().contains("be the child");
        if messages.iter().any(|message| message["role"] == "assistant") {
            return Answer::text("noted").whole();
        }
        if is_child {
            return Answer::text("").call("call-1", "ExecCommand", &exec(&childs, 600_000)).whole();
        }
        let spawn = json!({"initial_message": "be the child"}).to_string();
        Answer::text("")
            .call("call-1", "ExecCommand", &exec(&background, 0))
            .call("call-2", "SpawnAgent", &spawn)
            .call("call-3", "ExecCommand", &exec(&foreground, 600_000))
            .whole()
    }
}

impl Family {
    async fn begin() -> Self {
        let server = ModelServer::start();
        let home = Home::new().asking(&server);
        server.otherwise(play(&home));
        let gates = NAMES.map(|name| home.gate(name));
        let mut begun: Signs = home.signs("begun");
        let daemon = home.serve();
        let message = daemon.prompt("main", "begin").await;
        for _ in 0..2 * NAMES.len() {
            begun.next().await;
        }
        let family = Self { home, daemon, server, gates, message };
        assert_eq!(family.alive(), NAMES);
        family
    }

    /// The commands of which a process is there.
    fn alive(&self) -> Vec<&'static str> {
        NAMES.into_iter().filter(|name| !marked(&self.home.marker(name)).is_empty()).collect()
    }

    /// Waits for the end of one of the tasks of an agent; answers its status.
    async fn end(&self, agent: &str, task: &str) -> String {
        let exited =
            |event: &holon::client::StreamedEvent| event.kind == "task_exited" && event.data["payload"]["task"] == task;
        let event = self.daemon.wait(agent, 0, exited).await;
        event.data["payload"]["status"].as_str().expect("a status").to_owned()
    }

    async fn history(&self) -> [Vec<Value>; 2] {
        [self.daemon.events("main").await, self.daemon.events("main.c1").await]
    }

    /// Nothing of `before` is gone, and all of it proves itself, to a daemon and to nobody but the files.
    async fn check(self, before: [Vec<Value>; 2]) {
        for (before, after) in before.iter().zip(self.history().await) {
            assert_eq!(after[..before.len()], before[..], "history does not change");
        }
        assert!(self.daemon.is_whole("main").await && self.daemon.is_whole("main.c1").await);
        assert!(self.daemon.stop().success());
        let verified = self.home.run(&["ledger", "verify"]);
        assert!(verified.status.success(), "{verified:?}");
    }
}

#[tokio::test]
async fn a_stop_ends_the_commands_of_an_agent_and_of_its_child_and_a_start_goes_on() {
    let family = Family::begin().await;
    let before = family.history().await;
    family.daemon.control("main", "stop").await;
    for (agent, task) in [("main", "task-1"), ("main", "task-3"), ("main.c1", "task-1")] {
        assert_eq!(family.end(agent, task).await, "interrupted", "{agent} {task}");
    }
    assert_eq!(family.alive(), Vec::<&str>::new());
    assert_eq!(family.daemon.settled("main", &family.message).await, "aborted");
    assert_eq!(family.daemon.settled("main.c1", "msg-1").await, "aborted");
    assert_eq!(family.daemon.posture("main.c1").await, ("archived".into(), "stopped".into()));

    family.daemon.control("main", "start").await;
    family.daemon.wait_for("main.c1", "agent_started").await;
    assert_eq!(family.end("main", "task-2").await, "completed", "the handle was live, and the child went on");
    family.check(before).await;
}

#[tokio::test]
async fn an_abort_ends_the_command_of_the_run_and_leaves_the_background_and_the_child() {
    let family = Family::begin().await;
    let before = family.history().await;
    family.daemon.abort("main", json!({})).await;
    assert_eq!(family.end("main", "task-3").await, "cancelled");
    assert_eq!(family.alive(), [NAMES[BACKGROUND], NAMES[CHILDS]]);
    assert_eq!(family.daemon.posture("main").await, ("archived".into(), "paused".into()));

    family.gates[BACKGROUND].open();
    family.gates[CHILDS].open();
    assert_eq!(family.end("main", "task-1").await, "completed");
    assert_eq!(family.end("main", "task-2").await, "completed");
    assert_eq!(family.alive(), Vec::<&str>::new());
    assert_eq!(family.daemon.status("main").await["agent"]["pending"], 2, "both results wait");
    family.daemon.control("main", "start").await;
    for message in ["msg-2", "msg-3"] {
        assert_eq!(family.daemon.settled("main", message).await, "processed");
    }
    family.check(before).await;
}

#[tokio::test]
async fn the_end_of_a_childs_task_archives_it_and_ends_its_command_and_no_other() {
    let family = Family::begin().await;
    family.gates[FOREGROUND].open();
    assert_eq!(family.daemon.answer("main", &family.message).await["text"], "noted");
    assert_eq!(family.alive(), [NAMES[BACKGROUND], NAMES[CHILDS]]);
    let before = family.history().await;
    let stop = Answer::text("").call("call-4", "TaskStop", r#"{"task_id": "task-2"}"#);
    family.server.reply(stop.whole());
    family.daemon.prompt("main", "end the child").await;
    assert_eq!(family.end("main", "task-2").await, "cancelled");
    family.daemon.wait_for("main.c1", "agent_archived").await;
    assert_eq!(family.end("main.c1", "task-1").await, "interrupted");
    assert_eq!(family.alive(), [NAMES[BACKGROUND]]);
    let refused = family.daemon.refusal("/control/agents/main.c1/prompt", json!({"text": "no"})).await;
    assert!([403, 410].contains(&refused.status), "{refused:?}");

    family.gates[BACKGROUND].open();
    assert_eq!(family.end("main", "task-1").await, "completed");
    let told = of_kind(&family.daemon.events("main").await, "message_enqueued").len();
    assert_eq!(told, 4, "two prompts and two results");
    family.check(before).await;
}

#[tokio::test]
async fn a_stopped_task_ends_with_all_it_started_the_willing_first() {
    let home = Home::new();
    // A part that goes when it is asked, one that does not, each orphaned in a session of its own, and one in none.
    let willing = "trap 'echo asked >> asked.txt; exit 3' TERM; echo > begun; while :; do read go < go; done";
    let deaf = "trap '' TERM; echo > begun; while :; do read go < go; done";
    let cmd = format!(
        "export {}\n(setsid sh -c \"{willing}\" &)\n(setsid sh -c \"{deaf}\" &)\n(sh -c \"{deaf}\" &)\n{willing}",
        home.marker("all")
    );
    let exec = json!({"tool": "ExecCommand", "arguments": {"cmd": cmd, "yield_time_ms": 0}});
    let stop = json!({"tool": "TaskStop", "arguments": {"task_id": "task-1"}});
    let rounds = json!([{"calls": [exec]}, {"wait_for": "stop", "calls": [stop]}]);
    let marker = home.marker("all");
    let home = home.scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let (_gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "begin").await;
    for _ in 0..4 {
        begun.next().await;
    }
    assert_eq!(marked(&marker).len(), 4);
    std::fs::write(home.workspace().join("stop"), "").unwrap();
    let exited = daemon.wait_for("main", "task_exited").await.data["payload"].clone();
    assert_eq!(marked(&marker), Vec::<String>::new());
    assert_eq!(home.written("asked.txt"), "asked\nasked\n");
    assert_eq!((&exited["status"], &exited["exit"]["code"]), (&json!("cancelled"), &json!(3)));
    assert_eq!(daemon.answer("main", &message).await["text"], "noted");
    assert_eq!(daemon.settled("main", "msg-2").await, "processed");
    assert!(daemon.is_whole("main").await);
}
