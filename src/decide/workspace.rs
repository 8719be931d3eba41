//! The workspace plane: attaching, entering, leaving and detaching folders; what becomes of worktrees.

use super::call::Called;
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::workspace::{GuidanceScope, Projection, WorkspaceName, WorktreeSummary};
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::{TaskId, WorkspaceId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceCommand {
    /// Attaches, and enters if it is asked for; the path was resolved.
    Attach {
        anchor: String,
        enter: bool,
    },
    Exit,
    Detach {
        workspace: WorkspaceId,
    },
    SettleWorktree {
        task: TaskId,
        fate: WorktreeFate,
    },
}

/// A workspace whose paths were resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    Attach { anchor: String },
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

/// A guidance file as it was read: none when it is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuidanceFile {
    pub scope: GuidanceScope,
    pub content: Option<Content>,
}

pub(super) fn decide(_state: &AgentState, _command: &WorkspaceCommand) -> Result<Decision, Rejection> {
    Err(Rejection::NothingToDo)
}

pub(super) fn detach(_state: &AgentState, _workspace: WorkspaceId) -> Result<Vec<Event>, Rejection> {
    Err(Rejection::NothingToDo)
}

/// Attaches or enters, for a call.
pub(super) fn enter_called(_state: &AgentState, _resolved: &Resolved) -> Called {
    Err(Rejection::NothingToDo)
}

/// What changed in the guidance files since they were read last.
pub(super) fn guidance(_state: &AgentState, _files: &[GuidanceFile]) -> Vec<Event> {
    Vec::new()
}
