//! Work that is held over days, in a minute: every plane has its part in it, and the power fails five times.

use crate::daemon::{Daemon, Home, of_kind};
use holon::client::StreamedEvent;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The child appends to a file of its worktree and commits it; both commands leave a mark of each run.
const RUNBOOK: &str = "\
work: ship the change
timer 2s: look at the clock
$ echo build >> MARKS; head -1 GATES/1; echo built
wait task
spawn in a worktree: change the file
    $ echo child >> MARKS; head -1 GATES/2; echo two >> a.txt; git add -A; git commit -qm two; git log --oneline
    say: the file is changed
wait task
wait external
$ git log --oneline --all
done
say: all shipped
";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").current_dir(folder).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A repository with one commit, whose worktrees may commit as well.
pub fn repository(folder: &Path) {
    git(folder, &["init", "-q"]);
    git(folder, &["config", "user.email", "somebody@example.org"]);
    git(folder, &["config", "user.name", "somebody"]);
    std::fs::write(folder.join("a.txt"), "one\n").expect("a file");
    git(folder, &["add", "a.txt"]);
    git(folder, &["commit", "-qm", "one"]);
}

/// Waits for an event, cuts the power in that moment, and starts again: what was seen before is the same after it.
async fn cut(home: &Home, daemon: Daemon, agent: &str, at: impl FnMut(&StreamedEvent) -> bool) -> Daemon {
    daemon.wait(agent, 0, at).await;
    let seen = daemon.events(agent).await;
    daemon.kill();
    let daemon = home.serve();
    assert_eq!(daemon.events(agent).await[..seen.len()], seen[..], "history does not change");
    daemon
}

fn is<'a>(kind: &'a str, field: &'a str, value: &'a str) -> impl Fn(&StreamedEvent) -> bool {
    move |event| event.kind == kind && event.data["payload"][field] == value
}

/// What a reader of an agent sees, however the state was come by.
async fn shown(daemon: &Daemon, agent: &str) -> Value {
    daemon.get(&format!("/agents/{agent}/state")).await
}

#[tokio::test]
async fn work_over_tasks_children_timers_and_webhooks_survives_five_power_cuts() {
    let home = Home::new();
    repository(&home.workspace());
    let (gates, marks) = (home.workspace().join(".git/gates"), home.workspace().join(".git/marks"));
    std::fs::create_dir(&gates).expect("a folder");
    let [first, second] = ["1", "2"].map(|name| home.gate(&format!(".git/gates/{name}")));
    let runbook = RUNBOOK.replace("MARKS", &marks.display().to_string());
    let runbook = runbook.replace("GATES", &gates.display().to_string());

    let daemon = home.serve();
    daemon.prompt("main", &runbook).await;
    let daemon = cut(&home, daemon, "main", is("task_started", "task", "task-1")).await;
    let daemon = cut(&home, daemon, "main", is("timer_fired", "timer", "timer-1")).await;
    first.open();
    let daemon = cut(&home, daemon, "main", |event| event.kind == "call_started").await;
    daemon.wait_for("main", "agent_spawned").await;
    let daemon = cut(&home, daemon, "main.c1", is("task_started", "task", "task-1")).await;
    second.open();
    let external =
        |event: &StreamedEvent| event.kind == "wait_created" && event.data["payload"]["wake"]["external"].is_object();
    let daemon = cut(&home, daemon, "main", external).await;
    daemon.post("/webhooks/generic/main", json!({"review": "done"})).await;

    let completed = daemon.wait_for("main", "work_item_completed").await;
    daemon.wait("main", completed.seq, |event| event.kind == "turn_terminal").await;
    daemon.wait_for("main.c1", "agent_archived").await;
    let (main, child) = (daemon.events("main").await, daemon.events("main.c1").await);
    for (events, kind, count) in [
        (&main, "work_item_completed", 1),
        (&main, "timer_fired", 1),
        (&main, "agent_spawned", 1),
        (&main, "worktree_retained_for_review", 1),
        (&main, "wait_created", 3),
        (&main, "wait_consumed", 3),
        (&child, "delegation_reported", 1),
        (&child, "outbox_delivered", 1),
    ] {
        assert_eq!(of_kind(events, kind).len(), count, "{kind}");
    }
    let results: Vec<&Value> = of_kind(&main, "task_exited");
    assert_eq!(results.iter().filter(|exited| exited["task"] == "task-2").count(), 1, "the child's result came once");
    assert_eq!(std::fs::read_to_string(&marks).expect("marks"), "build\nchild\n", "each command ran once");
    let report = of_kind(&main, "brief_created").last().expect("a brief")["text"].to_string();
    assert!(report.contains("all shipped") && report.contains("two"), "{report}");

    let worktree = home.path().join("worktrees/main.c1");
    assert_eq!(std::fs::read_to_string(worktree.join("a.txt")).expect("kept for review"), "one\ntwo\n");
    assert_eq!(home.written("a.txt"), "one\n", "the change waits to be reviewed");
    assert!(git(&home.workspace(), &["worktree", "list"]).contains("worktrees/main.c1"));

    let states = (shown(&daemon, "main").await, shown(&daemon, "main.c1").await);
    assert!(daemon.is_whole("main").await && daemon.is_whole("main.c1").await);
    assert!(daemon.stop().success());
    assert!(home.run(&["ledger", "verify"]).status.success());
    let daemon = home.serve();
    assert_eq!((shown(&daemon, "main").await, shown(&daemon, "main.c1").await), states, "the ledgers fold to the same");
}
