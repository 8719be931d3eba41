//! Two hundred children of one agent, born and ended under kills: every result comes once.

use crate::asked::{Asked, Said};
use crate::daemon::{Daemon, Home, of_kind, outcomes};
use crate::model_server::{Answer, ModelServer, Received, Reply};
use holon::client::StreamedEvent;
use holon::words::limit::CHILDREN_OPEN_MAX;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CHILDREN: usize = 200;
/// Children that one round of the parent asks for.
const PER_ROUND: usize = 50;
/// The shortest wait of a child for its time.
const WAIT_MS_MIN: usize = 1_000;
/// How far apart the times of two children are.
const APART_MS: usize = 20;
/// Shares no factor with the number of children, so that every child has a time of its own.
const STRIDE: usize = 77;

const _: () = assert!(CHILDREN <= CHILDREN_OPEN_MAX);

/// What the model says. The parent bears its children in rounds, then takes note of their results. A child waits for its
/// time, and reports once all are born.
#[derive(Default)]
struct Script {
    all_born: bool,
}

impl Script {
    fn reply(&mut self, received: &Received) -> Reply {
        let asked = Asked::read(received);
        let answer = if asked.offers("SpawnAgent") { self.parent(&asked) } else { self.child(&asked) };
        answer.whole()
    }

    fn parent(&mut self, asked: &Asked) -> Answer {
        let bears = asked.message().ends_with("bear them");
        self.all_born |= bears && asked.calls() == CHILDREN;
        if bears && !self.all_born { bear(asked.calls()) } else { Answer::text("noted") }
    }

    fn child(&self, asked: &Asked) -> Answer {
        let begins = asked.message().ends_with("\ncome to your end");
        if begins || !self.all_born { wait(number(asked)) } else { Answer::text("the end") }
    }
}

/// Which child asks, as the first words of its prompt name it.
fn number(asked: &Asked) -> usize {
    let Some(Said::System(text)) = asked.said.first() else { panic!("no contract") };
    let named = text.split([' ', ',']).find_map(|word| word.strip_prefix("main.c"));
    named.and_then(|number| number.parse().ok()).expect("the number of a child")
}

fn bear(born: usize) -> Answer {
    (born..born + PER_ROUND).fold(Answer::text(""), |answer, number| {
        let arguments = json!({"initial_message": "come to your end"});
        answer.call(&format!("spawn-{number}"), "SpawnAgent", &arguments.to_string())
    })
}

fn wait(number: usize) -> Answer {
    let after_ms = WAIT_MS_MIN + number * STRIDE % CHILDREN * APART_MS;
    let arguments = json!({"wake": "timer", "after_ms": after_ms, "reason": "the time"});
    Answer::text("").call(&format!("wait-{number}"), "WaitFor", &arguments.to_string())
}

/// Waits until so many events of a kind are recorded of the parent.
async fn come(daemon: &Daemon, kind: &str, count: usize) {
    let mut seen = 0;
    let enough = |event: &StreamedEvent| {
        seen += usize::from(event.kind == kind);
        seen == count
    };
    daemon.wait("main", 0, enough).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_children_report_once_each_whenever_the_daemon_is_killed() {
    let server = ModelServer::start();
    let mut script = Script::default();
    server.otherwise(move |received| script.reply(received));
    let home = Home::new().asking(&server);
    let mut daemon = home.serve();
    let message = daemon.prompt("main", "bear them").await;
    let kills = [("agent_spawned", 70), ("agent_spawned", 150), ("task_exited", 40), ("task_exited", 130)];
    for (kind, count) in kills {
        come(&daemon, kind, count).await;
        daemon.kill();
        daemon = home.serve();
    }
    assert_eq!(daemon.settled("main", &message).await, "processed");
    come(&daemon, "task_exited", CHILDREN).await;
    come(&daemon, "message_settled", CHILDREN + 1).await;
    let events = daemon.events("main").await;
    reported_once(&events);
    for number in 1..=CHILDREN {
        ended(&daemon, number).await;
    }
    assert!(daemon.stop().success());
    assert!(home.run(&["ledger", "verify"]).status.success(), "every ledger is whole");
}

/// Each child has one task, the task one end, and the end one message, which was taken up.
fn reported_once(events: &[Value]) {
    let kind = |event: &&Value| matches!(event["type"].as_str(), Some("task_child_spawned" | "task_exited"));
    let opened: Vec<bool> = events.iter().filter(kind).map(|event| event["type"] == "task_child_spawned").collect();
    assert!(opened[..CHILDREN].iter().all(|opens| *opens), "all are open at once");
    let named = |kind: &str, name: &str| -> Vec<String> {
        of_kind(events, kind).iter().map(|payload| payload[name].as_str().expect("a name").to_owned()).collect()
    };
    let numbered = |prefix: &str| -> BTreeSet<String> { (1..=CHILDREN).map(|n| format!("{prefix}{n}")).collect() };
    let once = |all: Vec<String>| -> BTreeSet<String> {
        assert_eq!(all.len(), CHILDREN);
        all.into_iter().collect()
    };
    assert_eq!(once(named("agent_spawned", "child")), numbered("main.c"));
    assert_eq!(once(named("task_child_spawned", "task")), numbered("task-"));
    let ended = named("task_exited", "task");
    assert_ne!(ended, named("task_child_spawned", "task"), "they end in an order of their own");
    assert_eq!(once(ended), numbered("task-"));
    assert!(of_kind(events, "task_exited").iter().all(|exit| exit["status"] == "completed"));
    let results = of_kind(events, "message_enqueued").into_iter().filter(|message| message["kind"] == "task_result");
    let about = results.map(|message| message["origin"]["task"]["task"].as_str().expect("a task").to_owned());
    assert_eq!(once(about.collect()), numbered("task-"));
    let outcomes: BTreeMap<String, String> = outcomes(events).into_iter().collect();
    assert_eq!(outcomes.len(), CHILDREN + 1);
    assert!(outcomes.values().all(|outcome| outcome == "processed"), "{outcomes:?}");
}

/// A child has reported once, and is sealed.
async fn ended(daemon: &Daemon, number: usize) {
    let agent = format!("main.c{number}");
    daemon.wait_for(&agent, "agent_archived").await;
    let events = daemon.events(&agent).await;
    assert_eq!(of_kind(&events, "delegation_reported").len(), 1, "{agent}");
    assert_eq!(of_kind(&events, "outbox_delivered").len(), 1, "{agent}");
    assert_eq!(events.last().expect("an event")["type"], "agent_archived", "nothing follows: {agent}");
}
