//! The workspace plane: attaching, entering, leaving and detaching folders; what becomes of worktrees; guidance; skills.
//!
//! Paths come resolved: that a folder is there, and inside what it has to be inside of, was seen by the runtime.

use super::call::Called;
use super::queue::not_private;
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::agent::Answer;
use crate::events::call::CallResult;
use crate::events::workspace::{
    GuidanceRead, GuidanceScope, Projection, SkillInstalled, SkillMode, SkillSource, SkillUninstalled,
    WorkspaceAttached, WorkspaceDetached, WorkspaceEntered, WorkspaceExited, WorkspaceName, WorktreeLeft,
    WorktreeRemoved, WorktreeRetained, WorktreeSummary,
};
use crate::fold::AgentState;
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{SkillName, TaskId, WorkspaceId};
use crate::words::limit::{EXCERPT_BYTES_MAX, PATH_BYTES_MAX, SKILLS_MAX, WORKSPACES_MAX};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceCommand {
    /// Attaches a folder, and enters it.
    Attach {
        anchor: String,
        projection: Projection,
    },
    /// Goes home.
    Exit,
    Detach {
        workspace: WorkspaceId,
    },
    SettleWorktree {
        task: TaskId,
        fate: WorktreeFate,
    },
    /// Records a skill whose folder is there.
    InstallSkill {
        name: SkillName,
        source: SkillSource,
        mode: SkillMode,
        /// The folder that a linked one is read from, resolved.
        folder: Option<String>,
    },
    UninstallSkill {
        name: SkillName,
    },
}

/// A workspace whose paths were resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    Attach { anchor: String, projection: Projection },
    Use { workspace: WorkspaceName, execution_root: Option<String>, projection: Projection, cwd: String },
}

/// What became of an ended task's worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeFate {
    Retained(WorktreeSummary),
    Removed,
    /// It could not be settled, and stays.
    Left(String),
}

/// A guidance file as it was read: no content when it is not there or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuidanceFile {
    pub scope: GuidanceScope,
    pub content: Option<Content>,
    /// Of the whole text.
    pub hash: Option<Hash>,
    /// Why it was not read.
    pub refused: Option<String>,
}

pub(super) fn decide(state: &AgentState, command: &WorkspaceCommand) -> Result<Decision, Rejection> {
    match command {
        WorkspaceCommand::Attach { anchor, projection } => {
            let (mut events, workspace) = attach(state, anchor)?;
            let entered = entered(WorkspaceName::Attached(workspace), Some(anchor.clone()), *projection, "");
            if state.workspaces.active.workspace != WorkspaceName::Attached(workspace) {
                events.push(entered);
            }
            Ok(Decision::answering(events, Answer::Workspace(workspace)))
        }
        WorkspaceCommand::Exit => Ok(Decision::of(exit(state))),
        WorkspaceCommand::Detach { workspace } => {
            Ok(Decision::answering(detach(state, *workspace)?, Answer::Workspace(*workspace)))
        }
        WorkspaceCommand::SettleWorktree { task, fate } => settle(state, *task, fate).map(Decision::of),
        WorkspaceCommand::InstallSkill { name, source, mode, folder } => {
            install(state, name)?;
            let (name, folder) = (name.clone(), folder.clone());
            Ok(Decision::of(vec![SkillInstalled { name, source: *source, mode: *mode, folder }.into()]))
        }
        WorkspaceCommand::UninstallSkill { name } if state.workspaces.skills.contains_key(name) => {
            Ok(Decision::of(vec![SkillUninstalled { name: name.clone() }.into()]))
        }
        WorkspaceCommand::UninstallSkill { name } => Err(Rejection::Unknown { what: "skill", id: name.to_string() }),
    }
}

/// The folder's workspace; a new one, unless it is attached already.
fn attach(state: &AgentState, anchor: &str) -> Result<(Vec<Event>, WorkspaceId), Rejection> {
    if anchor.len() > PATH_BYTES_MAX {
        return Err(Rejection::Invalid { field: "path", reason: format!("is longer than {PATH_BYTES_MAX} bytes") });
    }
    if let Some(workspace) = state.workspaces.at(anchor) {
        return Ok((Vec::new(), workspace));
    }
    if state.workspaces.attached.len() >= WORKSPACES_MAX {
        return Err(Rejection::TooMany { what: "workspaces", max: WORKSPACES_MAX });
    }
    let workspace = state.workspaces.last.next();
    Ok((vec![WorkspaceAttached { workspace, anchor: anchor.to_owned() }.into()], workspace))
}

/// What makes a folder the workspace of an agent that has none yet.
pub(super) fn born_in(workspace: WorkspaceId, anchor: &str, projection: Projection) -> [Event; 2] {
    let attached = WorkspaceAttached { workspace, anchor: anchor.to_owned() }.into();
    [attached, entered(WorkspaceName::Attached(workspace), Some(anchor.to_owned()), projection, "")]
}

fn entered(workspace: WorkspaceName, execution_root: Option<String>, projection: Projection, cwd: &str) -> Event {
    WorkspaceEntered { workspace, execution_root, projection, cwd: cwd.to_owned() }.into()
}

fn exit(state: &AgentState) -> Vec<Event> {
    match &state.workspaces.active.workspace {
        WorkspaceName::AgentHome => Vec::new(),
        workspace @ WorkspaceName::Attached(_) => vec![WorkspaceExited { workspace: workspace.clone() }.into()],
    }
}

/// The active workspace cannot be detached (semantics 7).
pub(super) fn detach(state: &AgentState, workspace: WorkspaceId) -> Result<Vec<Event>, Rejection> {
    if !state.workspaces.attached.contains_key(&workspace) {
        return Err(Rejection::Unknown { what: "workspace", id: workspace.to_string() });
    }
    if state.workspaces.active.workspace == WorkspaceName::Attached(workspace) {
        let reason = "is the active workspace; leave it first".to_owned();
        return Err(Rejection::Invalid { field: "workspace_id", reason });
    }
    Ok(vec![WorkspaceDetached { workspace }.into()])
}

/// Attaches or enters, for a call.
pub(super) fn enter_called(state: &AgentState, resolved: &Resolved) -> Called {
    match resolved {
        Resolved::Attach { anchor, projection } => {
            let (mut events, id) = attach(state, anchor)?;
            let (workspace, root) = (WorkspaceName::Attached(id), Some(anchor.clone()));
            events.push(entered(workspace.clone(), root.clone(), *projection, ""));
            Ok((events, CallResult::InWorkspace { workspace, root, cwd: String::new() }))
        }
        Resolved::Use { workspace, execution_root, projection, cwd } => {
            is_there(state, workspace)?;
            let event = entered(workspace.clone(), execution_root.clone(), *projection, cwd);
            let (workspace, root, cwd) = (workspace.clone(), execution_root.clone(), cwd.clone());
            Ok((vec![event], CallResult::InWorkspace { workspace, root, cwd }))
        }
    }
}

fn is_there(state: &AgentState, workspace: &WorkspaceName) -> Result<(), Rejection> {
    match workspace {
        WorkspaceName::Attached(id) if !state.workspaces.attached.contains_key(id) => {
            Err(Rejection::Unknown { what: "workspace", id: id.to_string() })
        }
        WorkspaceName::Attached(_) | WorkspaceName::AgentHome => Ok(()),
    }
}

/// Once its task has ended, and once (semantics 5).
fn settle(state: &AgentState, task: TaskId, fate: &WorktreeFate) -> Result<Vec<Event>, Rejection> {
    let worktree = state.workspaces.worktrees.get(&task).ok_or(Rejection::NothingToDo)?.clone();
    if state.tasks.open.contains_key(&task) {
        return Err(Rejection::NothingToDo);
    }
    Ok(vec![match fate {
        WorktreeFate::Retained(summary) => WorktreeRetained { task, worktree, summary: summary.clone() }.into(),
        WorktreeFate::Removed => WorktreeRemoved { task, worktree }.into(),
        WorktreeFate::Left(reason) => {
            WorktreeLeft { task, worktree, reason: excerpt(reason, EXCERPT_BYTES_MAX).to_owned() }.into()
        }
    }])
}

/// Whether the agent may have one more skill, of this name.
fn install(state: &AgentState, name: &SkillName) -> Result<(), Rejection> {
    not_private(state)?;
    if state.workspaces.skills.contains_key(name) {
        return Err(Rejection::SkillInstalled { name: name.clone() });
    }
    if state.workspaces.skills.len() >= SKILLS_MAX {
        return Err(Rejection::TooMany { what: "skills", max: SKILLS_MAX });
    }
    Ok(())
}

/// What changed in the guidance files since they were read last.
pub(super) fn guidance(state: &AgentState, files: &[GuidanceFile]) -> Vec<Event> {
    let known = |scope| state.workspaces.guidance(scope).map(|guidance| guidance.hash);
    let refused = |scope| state.workspaces.refused(scope);
    let changed =
        files.iter().filter(|file| known(file.scope) != file.hash || refused(file.scope) != file.refused.as_deref());
    changed.map(|file| read(file).into()).collect()
}

fn read(file: &GuidanceFile) -> GuidanceRead {
    let refused = file.refused.as_deref().map(|reason| excerpt(reason, EXCERPT_BYTES_MAX).to_owned());
    GuidanceRead { scope: file.scope, content: file.content.clone(), hash: file.hash, refused }
}
