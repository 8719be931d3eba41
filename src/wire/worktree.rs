//! Worktrees of tasks: those that are held, and what became of those that were settled.

use crate::events::workspace::{WorkspaceEvent, Worktree, WorktreeSummary};
use crate::events::{Envelope, Event};
use crate::fold::AgentState;
use crate::words::id::TaskId;
use serde_json::{Value, json};

/// Worktrees whose tasks have not ended, or which are about to be settled.
pub fn held(state: &AgentState) -> Vec<Value> {
    let held = state.workspaces.worktrees.iter().rev();
    held.map(|(task, worktree)| entry(*task, worktree, "in_use")).collect()
}

/// What an event settles.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other event settles a worktree")]
pub fn settled(envelope: &Envelope) -> Option<Value> {
    let Event::Workspace(event) = &envelope.event else { return None };
    let mut shown = match event {
        WorkspaceEvent::WorktreeRetained(event) => {
            let mut shown = entry(event.task, &event.worktree, "retained_for_review");
            changes(&mut shown, &event.summary);
            shown
        }
        WorkspaceEvent::WorktreeRemoved(event) => entry(event.task, &event.worktree, "removed"),
        WorkspaceEvent::WorktreeLeft(event) => {
            let mut shown = entry(event.task, &event.worktree, "cleanup_failed");
            shown["reason"] = json!(event.reason);
            shown
        }
        _ => return None,
    };
    shown["settled_at"] = json!(envelope.at);
    shown["event_seq"] = json!(envelope.seq);
    Some(shown)
}

fn entry(task: TaskId, worktree: &Worktree, status: &str) -> Value {
    json!({
        "task_id": task,
        "status": status,
        "worktree_path": worktree.root,
        "worktree_branch": worktree.branch,
        "repository": worktree.repository,
        "base_commit": worktree.base_commit,
    })
}

fn changes(shown: &mut Value, summary: &WorktreeSummary) {
    shown["head_commit"] = json!(summary.head_commit);
    shown["commits"] = json!(summary.commits);
    shown["changed_files"] = json!(summary.changed);
    shown["changed_file_count"] = json!(summary.changed_total);
    shown["insertions"] = json!(summary.insertions);
    shown["deletions"] = json!(summary.deletions);
}

/// The same for people: a line for each.
pub fn summary(worktrees: &[Value]) -> String {
    if worktrees.is_empty() {
        return "No worktree tasks found.".into();
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |worktree: &Value| {
        let [task, status, branch, path] =
            ["task_id", "status", "worktree_branch", "worktree_path"].map(|name| text(&worktree[name]));
        let changed = worktree["changed_file_count"].as_u64();
        let changed = changed.map(|count| format!(", {count} files changed")).unwrap_or_default();
        format!("{task}: {status}, branch {branch} at {path}{changed}")
    };
    worktrees.iter().map(line).collect::<Vec<_>>().join("\n")
}
