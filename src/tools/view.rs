//! What a call looks at: parts of the agent's state as JSON, for models. Surfaces show the same.

use super::result::workspace_name;
use crate::decide::profile::{Family, grants};
use crate::events::call::View;
use crate::events::task::WorkspaceMode;
use crate::events::waiting::{Recoverability, WaitOwner, WakeOn};
use crate::events::work::Todo;
use crate::fold::AgentState;
use crate::fold::posture::{posture, work_standing};
use crate::fold::task::{Job, Task};
use crate::fold::waiting::{Timer, Trigger, Wait};
use crate::fold::work::WorkItem;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{TaskId, TimerId, TriggerId, WaitId, WorkId};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What `view` shows of the state; none when it has left the state, or never was in it.
pub fn render(state: &AgentState, view: &View) -> Option<Value> {
    Some(match view {
        View::Agent => agent(state),
        View::Tasks => json!({"tasks": state.tasks.open.iter().map(|(id, open)| task(*id, open)).collect::<Vec<_>>()}),
        View::Task(id) => task(*id, state.tasks.open.get(id)?),
        View::WorkItems { with_completed } => {
            let items: Vec<Value> = state.works.open.iter().map(|(id, item)| work(state, *id, item)).collect();
            let completed = state.works.last.0 - state.works.open.len() as u64;
            json!({"work_items": items, "completed": with_completed.then_some(completed)})
        }
        View::WorkItem(id) => work(state, *id, state.works.open.get(id)?),
        View::Timers => {
            json!({"timers": state.waiting.timers.iter().map(|(id, set)| timer(*id, set)).collect::<Vec<_>>()})
        }
        View::Memory { entry: Some(name) } => {
            let entry = state.memory.entries.get(name)?;
            json!({"entry": name, "text": text(&entry.text), "work_item_id": entry.work})
        }
        View::Memory { entry: None } => memory(state),
    })
}

/// The stored texts that `view` shows whole.
pub fn hashes(state: &AgentState, view: &View) -> Vec<Hash> {
    let stored = |text: &Content| text.stored();
    match view {
        View::WorkItem(id) => {
            let item = state.works.open.get(id);
            item.iter().flat_map(|item| item.plan.iter().chain(&item.acceptance)).filter_map(stored).collect()
        }
        View::Memory { .. } => {
            let notes = state.memory.entries.values().map(|entry| &entry.text);
            notes.chain(state.memory.episodes.iter().map(|episode| &episode.digest)).filter_map(stored).collect()
        }
        View::Agent | View::Tasks | View::Task(_) | View::WorkItems { .. } | View::Timers => Vec::new(),
    }
}

/// Puts stored texts in the place of their hashes.
pub fn with_texts(value: Value, texts: &BTreeMap<Hash, String>) -> Value {
    match value {
        Value::Object(members) => {
            let hash = members.get("stored").and_then(Value::as_str).map(str::to_owned);
            let text = hash.and_then(|hash| texts.iter().find(|(known, _)| known.to_string() == hash));
            match text {
                Some((_, text)) => Value::from(text.as_str()),
                None => {
                    Value::Object(members.into_iter().map(|(name, member)| (name, with_texts(member, texts))).collect())
                }
            }
        }
        Value::Array(items) => items.into_iter().map(|item| with_texts(item, texts)).collect(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

/// A text, or what stands for it until it is read ([`with_texts`]).
pub fn text(content: &Content) -> Value {
    match content {
        Content::Inline(text) => json!(text),
        Content::Stored { hash, bytes, excerpt } => {
            json!({"stored": hash.to_string(), "bytes": bytes, "excerpt": excerpt})
        }
    }
}

/// The agent as a context-owning object: no task output, no list of all work (semantics 1, AgentGet).
pub fn agent(state: &AgentState) -> Value {
    let posture = posture(state);
    let agent = &state.agent;
    let children = state.tasks.open.iter().filter(|(_, task)| task.child().is_some());
    json!({
        "agent_id": state.agent_id,
        "lifecycle": agent.lifecycle.name(),
        "profile": {
            "preset": agent.preset, "visibility": agent.visibility, "ownership": agent.ownership,
            "tool_families": families(state),
        },
        "lineage_parent_agent_id": agent.lineage_parent,
        "supervisor_agent_id": agent.supervisor,
        "supervising_task_id": agent.supervising_task,
        "posture": {"kind": posture.kind.name(), "reason": posture.reason, "evidence": posture.evidence},
        "has_active_tasks": posture.has_active_tasks,
        "has_weak_external_wait": posture.has_weak_external_wait,
        "timers_pending": posture.timers_pending,
        "current_run_id": state.turns.current.as_ref().map(|turn| turn.run),
        "last_turn": last_turn(state),
        "work_focus": state.works.focused().map(|(id, item)| json!({"id": id, "objective": item.objective})),
        "work_counts": work_counts(state),
        "waits": state.waiting.waits.iter().map(|(id, open)| wait(*id, open)).collect::<Vec<_>>(),
        "external_triggers": state.waiting.triggers.iter().map(|(id, set)| trigger(*id, set)).collect::<Vec<_>>(),
        "children": children.map(|(id, open)| task(*id, open)).collect::<Vec<_>>(),
        "tasks_open": state.tasks.open.len(),
        "messages_waiting": state.queue.waiting.len(),
        "workspace": workspace(state),
        "tools": super::schemas(agent.preset).into_iter().map(|tool| tool.name).collect::<Vec<_>>(),
    })
}

fn families(state: &AgentState) -> Vec<&'static str> {
    let granted = Family::ALL.into_iter().filter(|family| grants(state.agent.preset, *family));
    granted.map(Family::name).collect()
}

fn last_turn(state: &AgentState) -> Value {
    let Some(turn) = &state.turns.last_ended else { return Value::Null };
    json!({
        "run_id": turn.run, "message_id": turn.message, "message_seq": turn.message_seq, "outcome": turn.outcome,
        "reason": turn.reason, "ended_at": turn.ended_at, "event_seq": turn.ended, "work_item_id": turn.work,
    })
}

/// How many open items stand where.
pub fn work_counts(state: &AgentState) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (id, item) in &state.works.open {
        *counts.entry(work_standing(state, *id, item).scheduling.name()).or_default() += 1;
    }
    counts
}

/// Where the agent works, and where it may.
pub fn workspace(state: &AgentState) -> Value {
    let active = &state.workspaces.active;
    let attached = state.workspaces.attached.iter();
    json!({
        "workspace_id": workspace_name(&active.workspace),
        "execution_root": active.execution_root,
        "projection_kind": active.projection,
        "cwd": active.cwd,
        "attached": attached.map(|(id, at)| json!({"workspace_id": id, "workspace_anchor": at.anchor})).collect::<Vec<_>>(),
    })
}

/// A work item in full.
pub fn work(state: &AgentState, id: WorkId, item: &WorkItem) -> Value {
    let standing = work_standing(state, id, item);
    let waits = state.waiting.waits.iter().filter(|(_, wait)| wait.work() == Some(id));
    json!({
        "id": id,
        "agent_id": state.agent_id,
        "objective": item.objective,
        "state": "open",
        "scheduling": standing.scheduling.name(),
        "reason": standing.reason,
        "evidence": [standing.evidence],
        "is_current": state.works.focus == Some(id),
        "plan": item.plan.as_ref().map(text),
        "plan_status": item.plan_status,
        "todo_list": item.todos.iter().map(todo).collect::<Vec<_>>(),
        "acceptance": item.acceptance.as_ref().map(text),
        "blocked_by": item.blocker.as_ref().map(|blocker| &blocker.text),
        "recheck_at": item.blocker.as_ref().and_then(|blocker| blocker.recheck_at),
        "revision": item.revision,
        "constraint": item.is_constraint,
        "depends_on": item.depends_on,
        "delivery_target": item.delivery_target,
        "parent_work_item_id": item.parent,
        "continuations": item.continuations,
        "held": item.held.map(|seq| json!({"event_seq": seq, "reason": item.held_reason})),
        "waits": waits.map(|(id, open)| wait(*id, open)).collect::<Vec<_>>(),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    })
}

fn todo(todo: &Todo) -> Value {
    json!({"text": todo.text, "status": todo.status})
}

/// A task's handle: its lifecycle and how it is controlled. A child's own affairs are AgentGet's.
pub fn task(id: TaskId, task: &Task) -> Value {
    let mut shown = json!({
        "task_id": id,
        "task_kind": task.kind(),
        "status": task.status().name(),
        "summary": task.summary,
        "created_at": task.requested_at,
        "work_item_id": task.work,
        "stopping": task.stopping,
        "inputs_waiting": task.inputs.len(),
    });
    match &task.job {
        Job::Command(request) => {
            shown["accepts_input"] = json!(request.spec.accepts_input);
            shown["in_background"] = json!(!task.in_foreground());
        }
        Job::Child(child) => {
            shown["child_agent_id"] = json!(child.agent);
            shown["child_lifecycle"] = json!(child.lifecycle);
            shown["workspace_mode"] = json!(mode_name(child.mode));
            shown["accepts_input"] = json!(true);
        }
    }
    shown
}

fn mode_name(mode: WorkspaceMode) -> &'static str {
    mode.name()
}

pub fn timer(id: TimerId, timer: &Timer) -> Value {
    json!({
        "id": id,
        "created_at": timer.created_at,
        "duration_ms": timer.duration_ms,
        "repeat": timer.interval_ms.is_some(),
        "interval_ms": timer.interval_ms,
        "status": "active",
        "summary": timer.summary,
        "next_fire_at": timer.due,
        "last_fired_at": timer.fired_at,
        "fire_count": timer.fired,
        "work_item_id": timer.work,
    })
}

pub fn wait(id: WaitId, wait: &Wait) -> Value {
    let (kind, resource) = match &wait.wake {
        WakeOn::OperatorInput => ("operator_input", Value::Null),
        WakeOn::TaskResult(task) => ("task_result", json!(task)),
        WakeOn::External { resource } => ("external", json!(resource)),
        WakeOn::Timer { .. } => ("timer", Value::Null),
    };
    json!({
        "id": id,
        "wake": kind,
        "resource": resource,
        "reason": wait.reason,
        "status": if wait.is_active() { "active" } else { "triggered" },
        "owner": match wait.owner { WaitOwner::Agent => json!("agent"), WaitOwner::Work(work) => json!(work) },
        "work_item_id": wait.work(),
        "created_at": wait.created_at,
        "due": wait.due,
        "recoverability": wait.recoverability.as_ref().map(recoverability),
    })
}

fn recoverability(recoverability: &Recoverability) -> &'static str {
    match recoverability {
        Recoverability::Recoverable => "recoverable",
        Recoverability::Weak => "weak",
        Recoverability::ExplicitNoFallback(_) => "explicit_no_fallback",
    }
}

pub fn trigger(id: TriggerId, trigger: &Trigger) -> Value {
    json!({
        "id": id,
        "delivery_mode": trigger.mode,
        "label": trigger.label,
        "work_item_id": trigger.work,
        "status": "active",
        "created_at": trigger.created_at,
        "trigger_count": trigger.deliveries,
        "last_triggered_at": trigger.delivered_at,
    })
}

fn memory(state: &AgentState) -> Value {
    let notes = state.memory.entries.iter();
    let notes =
        notes.map(|(name, entry)| json!({"entry": name, "text": text(&entry.text), "work_item_id": entry.work}));
    let episodes = state.memory.episodes.iter().map(|episode| {
        json!({
            "id": episode.episode, "first_run_id": episode.first, "last_run_id": episode.last,
            "digest": text(&episode.digest), "work_item_id": episode.work,
            "source": format!("{}:{}", state.agent_id, episode.seq),
        })
    });
    json!({"entries": notes.collect::<Vec<_>>(), "episodes": episodes.collect::<Vec<_>>()})
}
