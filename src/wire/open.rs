//! What is open with an agent, in lists that have their end, for its summary and its state.

use super::{record, waiting};
use crate::events::agent::{Ownership, Preset, Role, Visibility};
use crate::events::task::ChildLifecycle;
use crate::events::waiting::WakeOn;
use crate::fold::AgentState;
use crate::fold::task::{Child, Task};
use crate::fold::work::WorkItem;
use crate::tools::view;
use crate::words::id::{AgentId, TaskId, WorkId};
use serde_json::{Value, json};

/// Entries of a list; how many there are is told by [`counts`].
const ENTRIES_MAX: usize = 50;

/// The first of them.
fn shown(entries: impl Iterator<Item = Value>) -> Vec<Value> {
    entries.take(ENTRIES_MAX).collect()
}

/// How many there are of what the lists show the first of.
pub(super) fn counts(state: &AgentState) -> Value {
    json!({
        "tasks": state.tasks.open.len(),
        "children": state.tasks.open.values().filter(|task| task.child().is_some()).count(),
        "timers": state.waiting.timers.len(),
        "work_items": state.works.open.len(),
        "waiting_intents": state.waiting.active().filter(|(_, wait)| is_external(&wait.wake)).count(),
        "wait_conditions": state.waiting.active().count(),
        "external_triggers": state.waiting.triggers.len(),
        "attached_workspaces": state.workspaces.attached.len(),
    })
}

pub(super) fn tasks(state: &AgentState) -> Vec<Value> {
    let newest = state.tasks.open.iter().rev();
    shown(newest.map(|(id, task)| record::open_task(&state.agent_id, *id, task)))
}

pub(super) fn timers(state: &AgentState) -> Vec<Value> {
    let newest = state.waiting.timers.iter().rev();
    shown(newest.map(|(id, timer)| waiting::timer(&state.agent_id, *id, timer)))
}

/// What nothing stands in the way of comes first.
pub(super) fn work_items(state: &AgentState) -> Vec<Value> {
    let mut items: Vec<(&WorkId, &WorkItem)> = state.works.open.iter().collect();
    items.sort_by_key(|(id, item)| (item.blocker.is_some(), **id));
    shown(items.into_iter().map(|(id, item)| view::work(state, *id, item)))
}

fn is_external(wake: &WakeOn) -> bool {
    matches!(wake, WakeOn::External { .. })
}

/// Waits for the outside, under their older name.
pub(super) fn intents(state: &AgentState) -> Vec<Value> {
    let external = state.waiting.active().filter(|(_, wait)| is_external(&wait.wake));
    shown(external.map(|(id, wait)| waiting::intent(&state.agent_id, id, wait)))
}

pub(super) fn conditions(state: &AgentState) -> Vec<Value> {
    shown(state.waiting.active().map(|(id, wait)| waiting::wait(&state.agent_id, id, wait)))
}

pub(super) fn triggers(state: &AgentState) -> Vec<Value> {
    let set = state.waiting.triggers.iter().rev();
    shown(set.map(|(id, trigger)| waiting::trigger(&state.agent_id, *id, trigger)))
}

/// Whether webhooks must be signed, and since when with which secret.
pub(super) fn webhook(state: &AgentState) -> Value {
    let secret = state.waiting.webhook.as_ref();
    let previous = secret.and_then(|secret| secret.previous.as_ref());
    json!({
        "path": format!("/webhooks/generic/{}", state.agent_id),
        "signed": secret.is_some(),
        "secret_set_at": secret.map(|secret| secret.set_at),
        "previous_accepted_until": previous.map(|previous| previous.accepted_until),
    })
}

/// What the agent wanted known last, the newest first.
pub(super) fn notices(state: &AgentState) -> Vec<Value> {
    let newest = state.briefs.notices.iter().rev();
    shown(newest.map(|notice| record::notice(&state.agent_id, &notice.requested, (notice.seq, notice.at))))
}

/// Children as their handles know them; what a child does is told by itself.
pub(super) fn children(state: &AgentState) -> Vec<Value> {
    let children = state.tasks.open.iter().filter_map(|(id, task)| Some((*id, task, task.child()?)));
    shown(children.map(|(id, task, child)| self::child(&state.agent_id, id, task, child)))
}

fn child(parent: &AgentId, id: TaskId, task: &Task, child: &Child) -> Value {
    let (status, phase) = match child.lifecycle {
        ChildLifecycle::Active => ("awake_running", "running"),
        ChildLifecycle::Stopped => ("stopped", "blocked"),
        ChildLifecycle::Archived => ("stopped", "terminal"),
    };
    json!({
        "identity": {
            "agent_id": child.agent,
            "kind": Role::Child,
            "visibility": Visibility::Private,
            "ownership": Ownership::ParentSupervised,
            "profile_preset": Preset::PrivateChild,
            "status": "active",
            "is_default_agent": false,
            "parent_agent_id": parent,
            "lineage_parent_agent_id": parent,
            "delegated_from_task_id": id,
        },
        "status": status,
        "pending": task.inputs.len(),
        // A handle knows of none; the child's own summary does.
        "active_task_count": 0,
        "observability": {"phase": phase},
        "task_id": id,
        "lifecycle": child.lifecycle,
        "workspace_mode": child.mode,
    })
}

/// Where the agent works, and where it may.
pub(super) fn workspace(state: &AgentState) -> Value {
    let mut shown = view::workspace(state);
    shown["attached_workspaces"] = shown["attached"].take();
    if let Some(members) = shown.as_object_mut() {
        members.remove("attached");
    }
    shown
}
