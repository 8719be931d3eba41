//! The workspace plane: where the agent works.
//!
//! | from     | event    | to       |
//! |----------|----------|----------|
//! | none     | Attached | attached |
//! | attached, home | Entered | active |
//! | active   | Exited   | attached; the home is active |
//! | attached | Detached | none     |
//! | none     | WorktreeCreated | kept by its task |
//! | kept     | WorktreeRetained, WorktreeRemoved, WorktreeLeft | none |
//! | none     | SkillInstalled | installed |
//! | installed | SkillUninstalled | none |
//!
//! **Invariant:** exactly one workspace is active, and it is attached or the home.

use super::{Illegal, Place};
use crate::events::workspace::{
    GuidanceScope, Projection, SkillInstalled, SkillMode, SkillSource, WorkspaceAttached, WorkspaceEntered,
    WorkspaceEvent, WorkspaceName, Worktree,
};
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, SkillName, TaskId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspaces {
    /// The id given last.
    pub last: WorkspaceId,
    pub attached: BTreeMap<WorkspaceId, Attached>,
    pub active: Active,
    /// Worktrees of tasks, until what becomes of them is settled.
    pub worktrees: BTreeMap<TaskId, Worktree>,
    /// What the guidance said when it was read last: of the user, the agent, the workspace, the skills.
    pub guidance: BTreeMap<u8, Guidance>,
    /// Why the guidance of a scope was not read, where that was refused.
    pub refused: BTreeMap<u8, String>,
    /// The skills that are installed.
    pub skills: BTreeMap<SkillName, Skill>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub seq: EventSeq,
    /// The resolved path.
    pub anchor: String,
}

/// The workspace the agent works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    pub seq: EventSeq,
    pub workspace: WorkspaceName,
    /// None for the agent's home.
    pub execution_root: Option<String>,
    pub projection: Projection,
    /// Relative to the execution root.
    pub cwd: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guidance {
    pub seq: EventSeq,
    pub scope: GuidanceScope,
    pub content: Content,
    pub hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub seq: EventSeq,
    pub source: SkillSource,
    pub mode: SkillMode,
    /// The folder that a linked one is read from.
    pub folder: Option<String>,
}

impl Default for Active {
    fn default() -> Self {
        Self {
            seq: EventSeq::ZERO,
            workspace: WorkspaceName::AgentHome,
            execution_root: None,
            projection: Projection::CanonicalRoot,
            cwd: String::new(),
        }
    }
}

/// The place of a scope's guidance: the most general first.
fn rank(scope: GuidanceScope) -> u8 {
    match scope {
        GuidanceScope::User => 0,
        GuidanceScope::Agent => 1,
        GuidanceScope::Workspace => 2,
        GuidanceScope::Skills => 3,
    }
}

impl Workspaces {
    /// What a scope's guidance said when it was read last.
    pub fn guidance(&self, scope: GuidanceScope) -> Option<&Guidance> {
        self.guidance.get(&rank(scope))
    }

    /// Why a scope's guidance was not read the last time, where that was refused.
    pub fn refused(&self, scope: GuidanceScope) -> Option<&str> {
        self.refused.get(&rank(scope)).map(String::as_str)
    }

    /// The attached workspace at `anchor`.
    pub fn at(&self, anchor: &str) -> Option<WorkspaceId> {
        self.attached.iter().find(|(_, attached)| attached.anchor == anchor).map(|(id, _)| *id)
    }

    pub(super) fn evolve(&mut self, event: &WorkspaceEvent, place: Place) -> Result<(), Illegal> {
        match event {
            WorkspaceEvent::Attached(event) => self.attach(event, place),
            WorkspaceEvent::Entered(event) => self.enter(event, place),
            WorkspaceEvent::Exited(event) if event.workspace == self.active.workspace => {
                self.active = Active { seq: place.seq, ..Active::default() };
                Ok(())
            }
            WorkspaceEvent::Exited(_) => Err("the workspace is not the active one"),
            WorkspaceEvent::Detached(event) => self.detach(event.workspace),
            WorkspaceEvent::WorktreeCreated(event) => match self.worktrees.insert(event.task, event.worktree.clone()) {
                None => Ok(()),
                Some(_) => Err("the task has its worktree"),
            },
            WorkspaceEvent::WorktreeRetained(event) => self.settle(event.task),
            WorkspaceEvent::WorktreeRemoved(event) => self.settle(event.task),
            WorkspaceEvent::WorktreeLeft(event) => self.settle(event.task),
            WorkspaceEvent::GuidanceRead(event) => {
                match (&event.content, event.hash) {
                    (Some(content), Some(hash)) => {
                        let (seq, scope, content) = (place.seq, event.scope, content.clone());
                        self.guidance.insert(rank(scope), Guidance { seq, scope, content, hash });
                    }
                    (Some(_) | None, _) => drop(self.guidance.remove(&rank(event.scope))),
                }
                match &event.refused {
                    Some(reason) => drop(self.refused.insert(rank(event.scope), reason.clone())),
                    None => drop(self.refused.remove(&rank(event.scope))),
                }
                Ok(())
            }
            WorkspaceEvent::SkillInstalled(event) => self.install(event, place),
            WorkspaceEvent::SkillUninstalled(event) => {
                self.skills.remove(&event.name).map(drop).ok_or("the skill is not installed")
            }
        }
    }

    fn attach(&mut self, event: &WorkspaceAttached, place: Place) -> Result<(), Illegal> {
        if event.workspace != self.last.next() {
            return Err("workspace ids go up by one");
        }
        self.last = event.workspace;
        self.attached.insert(event.workspace, Attached { seq: place.seq, anchor: event.anchor.clone() });
        Ok(())
    }

    fn enter(&mut self, event: &WorkspaceEntered, place: Place) -> Result<(), Illegal> {
        let is_there = match event.workspace {
            WorkspaceName::AgentHome => event.execution_root.is_none(),
            WorkspaceName::Attached(id) => self.attached.contains_key(&id) && event.execution_root.is_some(),
        };
        if !is_there {
            return Err("the workspace is not attached");
        }
        self.active = Active {
            seq: place.seq,
            workspace: event.workspace.clone(),
            execution_root: event.execution_root.clone(),
            projection: event.projection,
            cwd: event.cwd.clone(),
        };
        Ok(())
    }

    fn detach(&mut self, workspace: WorkspaceId) -> Result<(), Illegal> {
        if self.active.workspace == WorkspaceName::Attached(workspace) {
            return Err("the workspace is the active one");
        }
        self.attached.remove(&workspace).map(drop).ok_or("the workspace is not attached")
    }

    fn install(&mut self, event: &SkillInstalled, place: Place) -> Result<(), Illegal> {
        let (source, mode, folder) = (event.source, event.mode, event.folder.clone());
        let skill = Skill { seq: place.seq, source, mode, folder };
        match self.skills.insert(event.name.clone(), skill) {
            None => Ok(()),
            Some(_) => Err("the skill is installed"),
        }
    }

    fn settle(&mut self, task: TaskId) -> Result<(), Illegal> {
        self.worktrees.remove(&task).map(drop).ok_or("the task has no worktree")
    }
}
