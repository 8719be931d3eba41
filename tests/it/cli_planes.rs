//! The verbs of the planes: work, tasks, timers, waits, triggers, workspaces; and an agent's end.

use crate::cli::{say, wait};
use crate::daemon::{Daemon, Home};
use holon::client::StreamedEvent;
use serde_json::{Value, json};

/// A daemon whose agent does nothing by itself: its only run was aborted.
fn paused(home: &Home) -> Daemon {
    let gate = home.gate("go");
    let daemon = home.serve();
    wait(async {
        daemon.prompt("main", "$ read go < go").await;
        daemon.wait_for("main", "task_started").await;
        daemon.abort("main", json!({})).await;
        daemon.wait_for("main", "task_exited").await;
    });
    drop(gate);
    daemon
}

#[test]
fn work_is_opened_altered_picked_and_completed() {
    let home = Home::new();
    let _daemon = paused(&home);
    assert_eq!(say(&home, &["work", "create", "Fix the build"]).data(), "work-1 of main is open\n");
    let made = say(&home, &["work", "create", "Write it down", "--json"]).json();
    assert_eq!(made["id"], "work-2");
    let update = ["work", "update", "work-2", "--blocked-by", "a review", "--plan", "write"];
    assert_eq!(say(&home, &update).data(), "work-2 of main is altered\n");
    assert_eq!(say(&home, &["work", "pick", "work-1", "--agent", "main"]).data(), "work-1 of main is in focus\n");
    assert_eq!(
        say(&home, &["work", "list"]).data(),
        "ITEM    STANDS    REASON     OBJECTIVE\n\
        work-2  blocked   blocker    Write it down\n\
        work-1  runnable  work_open  Fix the build\n"
    );
    let shown = say(&home, &["work", "show", "work-2"]);
    for line in [
        "objective               Write it down\n",
        "plan                    write\n",
        "blocked_by              a review\n",
    ] {
        assert!(shown.data().contains(line), "{line}: {shown:?}");
    }
    let done = say(&home, &["work", "complete", "work-1", "--report", "it builds"]);
    assert_eq!(done.data(), "work-1 of main is completed\n");
    assert_eq!(say(&home, &["work", "show", "work-1", "--json"]).json()["result_summary"], "it builds");
    assert_eq!(say(&home, &["work", "list", "--limit", "1", "--json"]).json().as_array().map(Vec::len), Some(1));
    say(&home, &["work", "pick", "work-1"]).refused(1, &["work-1 has ended"]);
    say(&home, &["work", "show", "work-9"]).refused(1, &["there is no work item work-9", "holon work list"]);
    say(&home, &["work", "create", "  "]).refused(1, &["objective must not be empty"]);
    say(&home, &["work", "update", "work-2", "--plan-status", "done"]).refused(1, &["plan_status", "needs_input"]);
}

#[test]
fn a_task_is_heard_fed_and_stopped() {
    let call = json!({"tool": "ExecCommand", "arguments":
        {"cmd": "read line; echo got $line > heard; exec sleep 600", "yield_time_ms": 0, "accepts_input": true,
        "summary": "listen"}});
    let script = json!({"rounds": [{"calls": [call]}], "default": {"text": "noted"}});
    let home = Home::new().scripted(&script);
    let heard = home.workspace().join("heard");
    nix::unistd::mkfifo(&heard, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let daemon = home.serve();
    wait(async {
        daemon.prompt("main", "start").await;
        daemon.wait_for("main", "task_promoted").await;
    });
    assert_eq!(
        say(&home, &["task", "list"]).data(),
        "TASK    KIND          STATUS   SUMMARY\n\
        task-1  command_task  running  listen\n"
    );
    assert_eq!(say(&home, &["task", "input", "task-1", "a word\n"]).data(), "task-1 of main is given its input\n");
    assert_eq!(std::fs::read_to_string(heard).expect("it is heard"), "got a word\n");
    assert_eq!(say(&home, &["task", "stop", "task-1"]).data(), "task-1 of main is to end\n");
    wait(daemon.wait_for("main", "task_exited"));
    let shown = say(&home, &["task", "show", "task-1"]);
    assert!(shown.data().contains("status                  cancelled\n"), "{shown:?}");
    say(&home, &["task", "stop", "task-1"]).refused(1, &["task-1 has ended"]);
    say(&home, &["task", "output", "task-7"]).refused(1, &["there is no task task-7", "holon task list"]);
}

#[test]
fn a_task_of_the_operators_runs_its_line_in_a_shell_and_its_words_as_they_are() {
    let home = Home::new();
    let daemon = home.serve();
    let line = say(&home, &["task", "create", "by a shell", "echo one  two | tr a-z A-Z"]);
    assert_eq!(line.data(), "task-1 of main is to run\n");
    let words = ["task", "create", "as it is", "--agent", "main", "--", "printf", "%s.", "-n", "a  b", "it's", "$HOME"];
    assert_eq!(say(&home, &words).data(), "task-2 of main is to run\n");
    for task in ["task-1", "task-2"] {
        let ended = |event: &StreamedEvent| event.kind == "task_exited" && event.data["payload"]["task"] == task;
        wait(daemon.wait("main", 0, ended));
    }
    assert_eq!(say(&home, &["task", "output", "task-1"]).data(), "ONE TWO\n");
    assert_eq!(say(&home, &["task", "output", "task-2"]).data(), "-n.a  b.it's.$HOME.\n");
    say(&home, &["task", "create", " ", "ls"]).refused(1, &["summary must not be empty"]);
    say(&home, &["task", "create", "nothing"]).refused(2, &["<CMD>..."]);
}

#[test]
fn the_output_of_a_task_is_data_and_where_it_goes_on_is_not() {
    let home = Home::new();
    let daemon = home.serve();
    wait(async {
        let message = daemon.prompt("main", "$ echo one; echo two").await;
        daemon.answer("main", &message).await;
    });
    assert_eq!(say(&home, &["task", "output", "task-1"]).data(), "one\ntwo\n");
    let part = say(&home, &["task", "output", "task-1", "--limit-bytes", "3"]);
    assert_eq!(
        (part.code, part.out.as_str(), part.err.as_str()),
        (Some(0), "one\n", "it goes on: --offset 3 of 8 bytes\n")
    );
    assert_eq!(say(&home, &["task", "output", "task-1", "--offset", "4"]).data(), "two\n");
    assert_eq!(say(&home, &["task", "output", "task-1", "--json"]).json()["output_bytes"], 8);
}

#[test]
fn timers_and_waits_are_set_shown_and_cancelled() {
    let home = Home::new();
    let daemon = home.serve();
    let made = say(&home, &["timer", "create", "--after-ms", "3600000", "--every-ms", "60000", "--summary", "look"]);
    assert!(made.data().starts_with("timer-1 fires at 20"), "{made:?}");
    let list = say(&home, &["timer", "list"]);
    assert!(list.data().lines().nth(1).is_some_and(|line| line.starts_with("timer-1  active  20")), "{list:?}");
    assert_eq!(say(&home, &["timer", "cancel", "timer-1"]).data(), "timer-1 of main is cancelled\n");
    assert_eq!(say(&home, &["timer", "show", "timer-1", "--json"]).json()["status"], "cancelled");
    say(&home, &["timer", "cancel", "timer-1"]).refused(1, &["timer-1 has ended"]);
    say(&home, &["timer", "create", "--after-ms", "5", "--every-ms", "5"]).refused(1, &["interval_ms"]);

    wait(async {
        daemon.prompt("main", "work: ship\nwait operator\ndone").await;
        daemon.wait_for("main", "wait_created").await;
        daemon.wait_for("main", "turn_terminal").await;
    });
    let list = say(&home, &["wait", "list"]);
    assert!(
        list.data().lines().nth(1).is_some_and(|line| line.starts_with("wait-1  operator  active  work-1")),
        "{list:?}"
    );
    assert_eq!(say(&home, &["wait", "cancel", "wait-1"]).data(), "wait-1 of main is cancelled\n");
    assert_eq!(say(&home, &["wait", "show", "wait-1", "--json"]).json()["status"], "cancelled");
    say(&home, &["wait", "cancel", "wait-9"]).refused(1, &["there is no wait wait-9", "holon wait list"]);
}

#[test]
fn a_trigger_is_shown_once_works_and_is_revoked() {
    let home = Home::new();
    let daemon = home.serve();
    let made = say(&home, &["trigger", "create", "ci", "--mode", "enqueue"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), "trigger-1 is made; its URL is shown this once\n"));
    let url = made.out.trim();
    assert!(url.starts_with(&format!("{}/callbacks/enqueue/cb_", daemon.url)), "{made:?}");
    let called =
        wait(async { reqwest::Client::new().post(url).body("hello").send().await.expect("an answer").status() });
    assert_eq!(called.as_u16(), 200);
    assert_eq!(
        say(&home, &["trigger", "list"]).data(),
        "TRIGGER    MODE             STATUS  CALLS  LABEL\n\
        trigger-1  enqueue_message  active  1      ci\n"
    );
    assert!(!say(&home, &["trigger", "show", "trigger-1"]).data().contains("cb_"));
    assert_eq!(say(&home, &["trigger", "revoke", "trigger-1"]).data(), "trigger-1 of main is revoked\n");
    say(&home, &["trigger", "revoke", "trigger-1"]).refused(1, &["trigger-1 has ended"]);
    let woken = say(&home, &["trigger", "create", "ci", "--json"]);
    let told: Value = serde_json::from_str(&woken.out).expect("JSON on stdout");
    assert_eq!(told["delivery_mode"], "wake_hint");
}

#[test]
fn a_workspace_is_named_from_where_one_stands() {
    let home = Home::new();
    std::fs::create_dir(home.workspace().join("part")).expect("a folder");
    let _daemon = home.serve();
    let begins = home.workspace().canonicalize().expect("it is there").display().to_string();
    let list = say(&home, &["workspace", "list"]);
    assert!(list.data().lines().nth(1).is_some_and(|line| line == format!("ws-1       active  {begins}")), "{list:?}");
    let attached = say(&home, &["workspace", "attach", "part"]);
    assert_eq!(attached.data(), format!("main works in ws-2 at {begins}/part\n"));
    say(&home, &["workspace", "detach", "ws-2"]).refused(1, &["is the active workspace"]);
    say(&home, &["workspace", "attach", "nowhere"]).refused(1, &["nowhere", "a folder that is there"]);
    assert_eq!(say(&home, &["workspace", "exit"]).data(), "main is at home\n");
    assert_eq!(say(&home, &["workspace", "detach", "ws-2"]).data(), "ws-2 is detached\n");
    say(&home, &["workspace", "detach", "ws-2"]).refused(1, &["there is no workspace ws-2", "holon workspace list"]);
    let list = say(&home, &["workspace", "list", "--json"]).json();
    assert_eq!(list["workspace_id"], "agent_home");
}

#[test]
fn a_skill_is_named_or_is_a_folder_from_where_one_stands() {
    let home = Home::new();
    for folder in [home.workspace().join("mend"), home.path().join("skills/paint")] {
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = folder.file_name().expect("a name").to_string_lossy();
        let text = format!("---\nname: {name}\ndescription: How to {name}.\n---\n");
        std::fs::write(folder.join("SKILL.md"), text).expect("a file");
    }
    let _daemon = home.serve();
    say(&home, &["agent", "create", "other"]).data();
    assert_eq!(say(&home, &["skills", "install", "./mend", "--copy"]).data(), "main has the skill mend\n");
    let other = ["skills", "install", "paint", "--agent", "other"];
    assert_eq!(say(&home, &other).data(), "other has the skill paint\n");
    assert_eq!(
        say(&home, &["skills", "list"]).data(),
        "SKILL  SOURCE  MODE    DESCRIPTION\nmend   local   copied  How to mend.\n"
    );
    let listed = say(&home, &["skills", "list", "--agent", "other", "--json"]).json();
    assert_eq!(listed[0]["link_target"], json!(home.path().join("skills/paint")));
    std::fs::remove_dir_all(home.path().join("skills/paint")).expect("it is there");
    let list = say(&home, &["skills", "list", "--agent", "other"]);
    assert!(list.data().contains("paint  named   linked  the skill has no SKILL.md"), "{list:?}");
    say(&home, &["skills", "install", "brush"]).refused(1, &["there is no named skill brush", "HOME/skills"]);
    say(&home, &["skills", "install", "brush", "--builtin"])
        .refused(1, &["no built-in skill brush", "holon help skills"]);
    say(&home, &["skills", "install", "./nowhere"]).refused(1, &["nowhere", "by its whole path"]);
    say(&home, &["skills", "install", "runbook", "--builtin", "--copy"]).refused(2, &["--copy"]);
}

#[test]
fn an_agent_is_archived_for_good_and_its_ledger_stays() {
    let home = Home::new();
    let daemon = home.serve();
    say(&home, &["agent", "create", "other"]).data();
    assert_eq!(say(&home, &["agent", "archive", "other"]).data(), "other is archived\n");
    say(&home, &["prompt", "--agent", "other", "hello"]).refused(1, &["its ledger is sealed", "create another agent"]);
    say(&home, &["agent", "start", "other"]).refused(1, &["its ledger is sealed"]);
    let verified = say(&home, &["ledger", "verify", "--json"]).json();
    assert_eq!(verified["agents"].as_array().map(Vec::len), Some(3), "the home's own, and those of agents");
    wait(async {
        daemon.prompt("main", "spawn: wait\n  $ sleep 600\nwait task").await;
        daemon.wait_for("main", "task_child_spawned").await;
    });
    let verified = say(&home, &["ledger", "verify", "--json"]).json();
    assert_eq!(verified["agents"][2]["agent_id"], "main.c1", "private agents are verified too");
    say(&home, &["prompt", "--agent", "main.c1", "hello"]).refused(1, &["private", "its parent"]);
}
