//! Where an agent works, as an operator sees and chooses it.

use crate::ask::Ask;
use crate::daemon::Home;
use holon::client::StreamedEvent;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[tokio::test]
async fn a_workspace_is_attached_left_and_detached() {
    let home = Home::new();
    let other = tempfile::tempdir().expect("a folder");
    let folder = other.path().canonicalize().expect("it is there");
    std::os::unix::fs::symlink(&folder, home.workspace().join("link")).expect("a link");
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let begins = home.workspace().canonicalize().expect("it is there");
    let execution = ask.get("/agents/main/status").await.ok()["execution"].take();
    assert_eq!((&execution["execution_root"], &execution["cwd"]), (&json!(begins), &json!(begins)));
    assert_eq!(execution["attached_workspaces"], json!([["ws-1", begins]]));

    let link = home.workspace().join("link");
    let attached = ask.post("/control/agents/main/workspace/attach", json!({"path": link})).await.ok();
    assert_eq!(attached, json!({"ok": true, "agent_id": "main", "workspace_id": "ws-2", "workspace_anchor": folder}));
    let again = ask.post("/control/agents/main/workspace/attach", json!({"path": folder})).await.ok();
    assert_eq!(again["workspace_id"], "ws-2", "a folder is attached once, by whatever path");
    let state = ask.get("/agents/main/state").await.ok();
    assert_eq!(state["execution"]["execution_root"], json!(folder));
    assert_eq!(state["workspace"]["workspace_id"], "ws-2");
    assert_eq!(
        state["workspace"]["attached_workspaces"][1],
        json!({"workspace_id": "ws-2", "workspace_anchor": folder})
    );
    let message = daemon.prompt("main", "$ pwd").await;
    let answer = daemon.answer("main", &message).await;
    assert!(answer["text"].as_str().unwrap().contains(folder.to_str().unwrap()), "{answer}");

    let detach = json!({"workspace_id": "ws-2"});
    ask.post("/control/agents/main/workspace/detach", &detach).await.refused(422, "invalid_field");
    ask.post("/control/agents/main/workspace/exit", "").await.ok();
    let execution = ask.get("/agents/main/status").await.ok()["execution"].take();
    assert_eq!(execution["workspace_id"], "agent_home");
    assert_eq!(execution["execution_root"], json!(home.path().join("agents").join("main")));
    ask.post("/control/agents/main/workspace/detach", &detach).await.ok();
    ask.post("/control/agents/main/workspace/detach", &detach).await.refused(404, "not_found");
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=trunk"]);
    let output = command.args(arguments).current_dir(folder).output().expect("git runs");
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn worktrees_are_summed_up_for_people_and_programs() {
    let home = Home::new();
    git(&home.workspace(), &["init"]);
    git(&home.workspace(), &["commit", "--allow-empty", "-m", "first"]);
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    let none = ask.get("/agents/main/worktree-summary").await.ok();
    assert_eq!(none["summary"], "No worktree tasks found.");
    daemon.prompt("main", "spawn in a worktree: write\n  $ echo new > new.txt\nwait task").await;
    daemon.wait_for("main", "worktree_created_for_task").await;
    daemon.wait_for("main", "worktree_retained_for_review").await;
    let told = ask.get("/agents/main/worktree-summary").await.ok();
    let kept: &Value = &told["worktrees"][0];
    assert_eq!((&kept["task_id"], &kept["status"]), (&json!("task-1"), &json!("retained_for_review")));
    assert_eq!(kept["changed_files"], json!([{"path": "new.txt", "status": "untracked"}]));
    assert!(told["summary"].as_str().unwrap().contains("1 files changed"), "{told}");
    assert_eq!(told["worktrees"].as_array().map(Vec::len), Some(1), "{told}");
}

#[tokio::test]
async fn a_repository_without_a_commit_has_no_worktrees_and_it_is_said_why() {
    let home = Home::new();
    git(&home.workspace(), &["init"]);
    let daemon = home.serve();
    daemon.prompt("main", "spawn in a worktree: write").await;
    let refused = |event: &StreamedEvent| !event.data["payload"]["entry"]["tool_result"]["result"]["refused"].is_null();
    let told =
        daemon.wait("main", 0, refused).await.data["payload"]["entry"]["tool_result"]["result"]["refused"].take();
    let expected = json!({
        "kind": "invalid_tool_input",
        "field": "workspace_mode",
        "message": "a worktree cannot be made here: the repository has no commit yet",
        "hint": "commit something first, or choose the workspace_mode inherit",
    });
    assert_eq!(told, expected);
}
