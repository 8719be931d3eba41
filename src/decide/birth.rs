//! Births: a child's first events, and its parent's (architecture 19).

use super::{Decision, Rejection, queue, workspace};
use crate::events::Event;
use crate::events::agent::{AgentCreated, AgentSpawned, ContextInherited, Ownership, Preset, Role, Visibility};
use crate::events::call::{CallResult, SpawnRequest};
use crate::events::queue::{DerivedFrom, Origin};
use crate::events::task::{TaskChildSpawned, WorkspaceMode};
use crate::events::workspace::{Projection, WorkspaceAttached, Worktree, WorktreeCreated};
use crate::fold::AgentState;
use crate::fold::turn::Turn;
use crate::words::content::Content;
use crate::words::id::{AgentId, TaskId, WorkspaceId};
use crate::words::limit::{CHILDREN_OPEN_MAX, TASK_LABEL_CHARS_MAX, TASKS_OPEN_MAX};
use serde::{Deserialize, Serialize};

/// A child that is ready to be born: where it works and what it inherits are settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewChild {
    pub request: SpawnRequest,
    /// The view of this agent's context, for a fork.
    pub view: Option<Content>,
    /// Where a private child works: the resolved root.
    pub execution_root: Option<String>,
    /// For `worktree`.
    pub worktree: Option<Worktree>,
}

/// Bears a child: the parent's events and the birth are one append.
pub(super) fn spawn(state: &AgentState, turn: &Turn, child: &NewChild) -> Result<(Decision, CallResult), Rejection> {
    let id = id(state, &child.request)?;
    let is_private = child.request.preset == Preset::PrivateChild;
    let children = state.tasks.open.values().filter(|task| task.child().is_some()).count();
    if is_private && (children >= CHILDREN_OPEN_MAX || state.tasks.open.len() >= TASKS_OPEN_MAX) {
        return Err(Rejection::TooMany { what: "children and tasks", max: CHILDREN_OPEN_MAX });
    }
    let task = is_private.then(|| state.tasks.last.next());
    let mut own = vec![AgentSpawned { child: id.clone(), preset: child.request.preset, task }.into()];
    own.extend(task.iter().flat_map(|task| handle(turn, child, &id, *task)));
    let births = vec![(id.clone(), birth(state, turn, child, &id, task))];
    Ok((Decision { own, births, answer: None }, CallResult::Spawned { agent: id, task }))
}

/// A private child is named after its parent; a public agent as it was asked for.
fn id(state: &AgentState, request: &SpawnRequest) -> Result<AgentId, Rejection> {
    match &request.agent_id {
        Some(id) => Ok(id.clone()),
        None => child_id(state).ok_or_else(|| {
            let reason = "the ids of further children would be too long".to_owned();
            Rejection::Invalid { field: "preset", reason }
        }),
    }
}

/// The id that the next private child gets.
pub fn child_id(state: &AgentState) -> Option<AgentId> {
    AgentId::parse(&format!("{}.c{}", state.agent_id, state.agent.children + 1)).ok()
}

/// The handle by which the parent supervises the child.
fn handle(turn: &Turn, child: &NewChild, id: &AgentId, task: TaskId) -> Vec<Event> {
    let summary = child.request.initial_message.as_ref().map(label).unwrap_or_default();
    let (mode, work) = (child.request.mode, turn.work);
    let derived_from = Some(turn.derived.clone());
    let spawned = TaskChildSpawned { task, child: id.clone(), summary, mode, work, derived_from }.into();
    let worktree = child.worktree.clone().map(|worktree| WorktreeCreated { task, worktree }.into());
    [spawned].into_iter().chain(worktree).collect()
}

/// A task's label: white space collapsed, and bounded (semantics 1).
pub fn label(message: &Content) -> String {
    let text = message.excerpt().split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(TASK_LABEL_CHARS_MAX).collect()
}

fn birth(state: &AgentState, turn: &Turn, child: &NewChild, id: &AgentId, task: Option<TaskId>) -> Vec<Event> {
    let is_private = task.is_some();
    let created = AgentCreated {
        agent_id: id.clone(),
        role: if is_private { Role::Child } else { Role::Named },
        visibility: if is_private { Visibility::Private } else { Visibility::Public },
        ownership: if is_private { Ownership::ParentSupervised } else { Ownership::SelfOwned },
        preset: child.request.preset,
        lineage_parent: Some(state.agent_id.clone()),
        supervisor: is_private.then(|| state.agent_id.clone()),
        supervising_task: task,
        template: None,
    };
    let mut events = vec![created.into()];
    events.extend(places(state, child, is_private));
    let inherited =
        |view: &Content| ContextInherited { from: state.agent_id.clone(), head: state.head, view: view.clone() }.into();
    events.extend(child.view.as_ref().map(inherited));
    let derived = turn.derived.clone().of(&state.agent_id);
    events.extend(child.request.initial_message.as_ref().map(|message| opening(message, task, derived)));
    events
}

/// A worktree or an explicit root is all that a child sees. One that inherits has what its parent has attached; a
/// private one also works where its parent does, a public one at home (profile seed).
fn places(state: &AgentState, child: &NewChild, is_private: bool) -> Vec<Event> {
    let attached = state.workspaces.attached.values().map(|attached| attached.anchor.clone());
    let inherited: Vec<String> =
        if child.request.mode == WorkspaceMode::Inherit { attached.collect() } else { Vec::new() };
    let root = child.execution_root.as_ref().filter(|_| is_private);
    let projection = match child.worktree {
        Some(_) => Projection::GitWorktreeRoot,
        None => Projection::CanonicalRoot,
    };
    let others = inherited.iter().filter(|anchor| Some(*anchor) != root);
    let attached = |(number, anchor): (u64, &String)| {
        WorkspaceAttached { workspace: WorkspaceId(number), anchor: anchor.clone() }.into()
    };
    let mut events: Vec<Event> = (1..).zip(others).map(attached).collect();
    if let Some(root) = root {
        let workspace = WorkspaceId(events.len() as u64 + 1);
        events.extend(workspace::born_in(workspace, root, projection));
    }
    events
}

/// What the agent is told first: a delegation by its supervisor's handle, or by whoever made it.
fn opening(message: &Content, task: Option<TaskId>, derived_from: DerivedFrom) -> Event {
    let origin = task.map_or_else(|| Origin::System { subsystem: "spawn".into() }, |task| Origin::Task { task });
    queue::opening(origin, message.clone(), derived_from)
}
