//! The agent as clients see it: list entry, summary, state. Projections, assembled on read (state seed).

use super::{actor, open};
use crate::events::agent::{Ownership, Preset, Role, Visibility};
use crate::events::workspace::WorkspaceName;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::posture::{Posture, PostureKind, posture};
use crate::fold::row::ListRow;
use crate::tools::result::workspace_name;
use crate::tools::view;
use crate::words::id::{AgentId, EventSeq, RunId};
use serde_json::{Value, json};
use std::path::Path;

/// What a projection needs beside the state.
pub struct Setting<'a> {
    pub default_agent: &'a AgentId,
    /// The models of the host, the chosen one first.
    pub models: &'a [String],
    /// The agent's home folder.
    pub home: &'a str,
}

/// Identity facts, from a state or from a list row.
struct Identity<'a> {
    id: &'a AgentId,
    role: Role,
    visibility: Visibility,
    ownership: Ownership,
    preset: Preset,
    lifecycle: Lifecycle,
    lineage_parent: Option<&'a AgentId>,
}

/// What the one posture function said, from a state or from a list row.
struct Standing<'a> {
    kind: PostureKind,
    reason: &'a str,
    evidence: &'a [EventSeq],
    run: Option<RunId>,
    has_active_tasks: bool,
    has_weak_external_wait: bool,
    timers_pending: u64,
}

/// An entry of `/agents/list`.
pub fn list_entry(id: &AgentId, row: &ListRow, apart: Option<&str>, setting: &Setting<'_>) -> Value {
    let (role, visibility, ownership, preset) = (row.role, row.visibility, row.ownership, row.preset);
    let identity = Identity { id, role, visibility, ownership, preset, lifecycle: row.lifecycle, lineage_parent: None };
    let standing = Standing {
        kind: row.posture,
        reason: &row.posture_reason,
        evidence: &row.evidence,
        run: row.current_run,
        has_active_tasks: row.tasks_open > 0,
        has_weak_external_wait: row.has_weak_external_wait,
        timers_pending: row.timers_pending,
    };
    json!({
        "identity": identity_view(&identity, setting),
        "status": status(row.lifecycle, row.posture),
        "scheduling_posture": standing.shown(),
        "lifecycle": lifecycle(id, row.lifecycle),
        "pending": row.messages_waiting,
        "current_run_id": row.current_run,
        "model": model(row.model.as_ref(), setting),
        "quarantined": apart,
    })
}

/// An entry for an agent whose list row cannot be read: it is named all the same.
pub fn unreadable_entry(id: &AgentId, reason: &str, setting: &Setting<'_>) -> Value {
    let (role, preset) = (Role::Named, Preset::PublicNamed);
    let (visibility, ownership) = (Visibility::Public, Ownership::SelfOwned);
    let lifecycle = Lifecycle::Active;
    let identity = Identity { id, role, visibility, ownership, preset, lifecycle, lineage_parent: None };
    json!({
        "identity": identity_view(&identity, setting),
        "status": "stopped",
        "model": model(None, setting),
        "quarantined": reason,
    })
}

/// `AgentSummary`, as `/agents/:id/status` answers it.
pub fn summary(state: &AgentState, setting: &Setting<'_>) -> Value {
    let posture = posture(state);
    let identity = Identity {
        id: &state.agent_id,
        role: state.agent.role,
        visibility: state.agent.visibility,
        ownership: state.agent.ownership,
        preset: state.agent.preset,
        lifecycle: state.agent.lifecycle,
        lineage_parent: state.agent.lineage_parent.as_ref(),
    };
    json!({
        "identity": identity_view(&identity, setting),
        "agent": agent_state(state, &posture),
        "scheduling_posture": Standing::of(state, &posture).shown(),
        "active_task_count": state.tasks.open.len(),
        "lifecycle": lifecycle(&state.agent_id, state.agent.lifecycle),
        "model": model(state.agent.model.as_ref(), setting),
        "token_usage": token_usage(state),
        "closure": closure(state, &posture),
        "execution": execution(state, setting),
        "loaded_agents_md": {},
        "skills": {},
        "work_focus": state.works.focused().map(|(id, item)| json!({"id": id, "objective": item.objective})),
        "work_counts": view::work_counts(state),
        "active_children": open::children(state),
        "active_waiting_intents": open::intents(state),
        "active_wait_conditions": open::conditions(state),
        "active_external_triggers": open::triggers(state),
        "recent_operator_notifications": open::notices(state),
        "counts": open::counts(state),
        "recent_brief_count": state.briefs.last.0,
        "recent_event_count": state.head,
        "last_turn": last_turn(state),
        "controlled_by": actor::controls(&state.controls),
    })
}

/// `AgentStateSnapshot`, as `/agents/:id/state` answers it: what is open.
pub fn state(state: &AgentState, setting: &Setting<'_>) -> Value {
    let run = state.turns.current.as_ref().map(|turn| turn.run);
    json!({
        "agent": summary(state, setting),
        "session": {
            "current_run_id": run,
            "pending_count": state.queue.waiting.len(),
            "last_turn": last_turn(state),
        },
        "tasks": open::tasks(state),
        "timers": open::timers(state),
        "work_items": open::work_items(state),
        "waiting_intents": open::intents(state),
        "wait_conditions": open::conditions(state),
        "external_triggers": open::triggers(state),
        "webhook": open::webhook(state),
        "operator_notifications": open::notices(state),
        "workspace": open::workspace(state),
        "execution": execution(state, setting),
        "counts": open::counts(state),
    })
}

/// The record that a creation answers.
pub fn identity_record(state: &AgentState, setting: &Setting<'_>) -> Value {
    let mut record = summary(state, setting)["identity"].take();
    record["created_at"] = json!(state.agent.created_at);
    // What the record tells of does not change after the creation.
    record["updated_at"] = json!(state.agent.created_at);
    record
}

fn identity_view(identity: &Identity<'_>, setting: &Setting<'_>) -> Value {
    json!({
        "agent_id": identity.id,
        "kind": identity.role,
        "visibility": identity.visibility,
        "ownership": identity.ownership,
        "profile_preset": identity.preset,
        "status": if identity.lifecycle == Lifecycle::Archived { "archived" } else { "active" },
        "is_default_agent": identity.id == setting.default_agent,
        "lineage_parent_agent_id": identity.lineage_parent,
    })
}

fn agent_state(state: &AgentState, posture: &Posture) -> Value {
    json!({
        "id": state.agent_id,
        "status": status(state.agent.lifecycle, posture.kind),
        "pending": state.queue.waiting.len(),
        "compacted_message_count": 0,
        "total_message_count": state.queue.last.0,
        "current_run_id": state.turns.current.as_ref().map(|turn| turn.run),
        "turn_index": state.turns.last.0,
        "total_input_tokens": state.turns.usage_total.input_tokens,
        "total_output_tokens": state.turns.usage_total.output_tokens,
        "total_model_rounds": state.turns.rounds_total,
        "last_brief_at": state.briefs.last_at,
        "event_seq": state.head,
    })
}

impl<'a> Standing<'a> {
    fn of(state: &AgentState, posture: &'a Posture) -> Self {
        Self {
            kind: posture.kind,
            reason: posture.reason,
            evidence: &posture.evidence,
            run: state.turns.current.as_ref().map(|turn| turn.run),
            has_active_tasks: posture.has_active_tasks,
            has_weak_external_wait: posture.has_weak_external_wait,
            timers_pending: posture.timers_pending as u64,
        }
    }

    fn shown(&self) -> Value {
        json!({
            "posture": self.kind.name(),
            "reason": self.reason,
            "evidence": self.evidence,
            "run_id": self.run,
            "has_active_tasks": self.has_active_tasks,
            "has_weak_external_wait": self.has_weak_external_wait,
            "timers_pending": self.timers_pending,
        })
    }
}

/// The older status word, from the posture.
fn status(lifecycle: Lifecycle, posture: PostureKind) -> &'static str {
    match (lifecycle, posture) {
        (Lifecycle::Unborn, _) => "booting",
        (Lifecycle::Stopped | Lifecycle::Paused, _) => "stopped",
        (Lifecycle::Archiving | Lifecycle::Archived, _) => "archived",
        (Lifecycle::Active, PostureKind::ActiveTurn) => "awake_running",
        (Lifecycle::Active, PostureKind::HasQueuedInput | PostureKind::HasRunnableWork) => "awake_idle",
        (Lifecycle::Active, _) => "asleep",
    }
}

fn lifecycle(id: &AgentId, lifecycle: Lifecycle) -> Value {
    let resume = matches!(lifecycle, Lifecycle::Stopped | Lifecycle::Paused);
    let mut view = json!({
        "state": lifecycle.name(),
        "resume_required": resume,
        "accepts_external_messages": lifecycle.admits(),
        "wake_requires_resume": resume,
    });
    if resume {
        view["operator_hint"] = json!("start the agent; its queue is kept");
        view["resume_cli_hint"] = json!(format!("holon agent start {id}"));
        view["resume_control_path"] = json!(format!("/control/agents/{id}/control"));
    }
    view
}

/// Which models the agent's next turn asks; `chosen` is the one that was chosen for it.
pub fn model(chosen: Option<&String>, setting: &Setting<'_>) -> Value {
    let default = setting.models.first().map_or("", String::as_str);
    let asked = chosen.map_or(default, String::as_str);
    json!({
        "source": if chosen.is_some() { "agent_override" } else { "runtime_default" },
        "runtime_default_model": default,
        "effective_model": asked,
        "override_model": chosen,
        "fallback_active": false,
        "effective_fallback_models": setting.models.iter().filter(|model| *model != asked).collect::<Vec<_>>(),
    })
}

fn token_usage(state: &AgentState) -> Value {
    let total = &state.turns.usage_total;
    let last = state.turns.last_ended.as_ref().map(|turn| {
        let usage = &turn.usage;
        json!({
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.tokens(),
        })
    });
    json!({
        "total": {
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "total_tokens": total.tokens(),
        },
        "rounds_of_unknown_usage": total.rounds_unknown,
        "total_model_rounds": state.turns.rounds_total,
        "last_turn": last,
    })
}

/// What the last turn came to, and whether anything goes on.
fn closure(state: &AgentState, posture: &Posture) -> Value {
    let failed = state.turns.last_ended.as_ref().is_some_and(|turn| turn.outcome.name() == "failed");
    let outcome = match posture.kind {
        PostureKind::HasQueuedInput | PostureKind::HasRunnableWork => "continuable",
        PostureKind::ActiveTurn
        | PostureKind::WaitingForTask
        | PostureKind::WaitingForExternal
        | PostureKind::WaitingForOperator
        | PostureKind::Blocked => "waiting",
        PostureKind::Archived | PostureKind::Idle if failed => "failed",
        PostureKind::Archived | PostureKind::Idle => "completed",
    };
    let awake = posture.kind == PostureKind::ActiveTurn;
    json!({"outcome": outcome, "runtime_posture": if awake { "awake" } else { "sleeping" }})
}

fn execution(state: &AgentState, setting: &Setting<'_>) -> Value {
    let active = &state.workspaces.active;
    let name = workspace_name(&active.workspace);
    let root = active.execution_root.as_deref().unwrap_or(setting.home);
    let attached = state.workspaces.attached.iter();
    json!({
        "profile": {
            "backend": "host_local",
            "process_execution_exposed": true,
            "allow_background_tasks": true,
            "supports_managed_worktrees": true,
        },
        "workspace_id": name,
        "workspace_anchor": anchor(state).unwrap_or(root),
        "execution_root_id": format!("{}:{name}", active.projection),
        "execution_root": root,
        "projection_kind": active.projection,
        "cwd": if active.cwd.is_empty() { root.into() } else { Path::new(root).join(&active.cwd) },
        "attached_workspaces": attached.map(|(id, at)| json!([id, at.anchor])).collect::<Vec<_>>(),
    })
}

/// The folder of the active workspace; none for the agent's home.
fn anchor(state: &AgentState) -> Option<&str> {
    match &state.workspaces.active.workspace {
        WorkspaceName::Attached(id) => state.workspaces.attached.get(id).map(|attached| attached.anchor.as_str()),
        WorkspaceName::AgentHome => None,
    }
}

fn last_turn(state: &AgentState) -> Value {
    let Some(turn) = &state.turns.last_ended else { return Value::Null };
    json!({
        "run_id": turn.run,
        "message_id": turn.message,
        "wake_event_seq": turn.message_seq,
        "outcome": turn.outcome,
        "reason": turn.reason,
        "started_at": turn.started_at,
        "ended_at": turn.ended_at,
        "event_seq": turn.ended,
    })
}
