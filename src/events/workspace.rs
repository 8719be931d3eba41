//! Workspace plane: where the agent works (semantics 7).
//!
//! Paths are recorded as they were resolved. The agent's home has none here: every host keeps it where it keeps homes.

use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{SkillName, TaskId, WorkspaceId};

shape! {
    /// A workspace as the agent names it.
    pub enum WorkspaceName {
        /// Built in, and never detached.
        AgentHome,
        Attached(WorkspaceId),
    }
}

shape! {
    /// How a workspace is projected into execution (control-plane seed, Workspace Projection Model).
    pub enum Projection { CanonicalRoot, GitWorktreeRoot, }
}
names!(Projection { CanonicalRoot = "canonical_root", GitWorktreeRoot = "git_worktree_root", });

shape! {
    /// A git worktree that was made for a task.
    pub struct Worktree {
        /// The repository it was made from.
        repository: String,
        root: String,
        branch: String,
        base_commit: String,
    }
}

shape! {
    /// A file that differs from a worktree's base.
    pub struct ChangedFile {
        path: String,
        /// As git names it: `modified`, `added`, `deleted`, `renamed`, `untracked`.
        status: String,
    }
}

shape! {
    /// What was left in a worktree.
    pub struct WorktreeSummary {
        head_commit: String,
        /// Commits beyond the base.
        commits: u32,
        /// The first of the changed files.
        changed: Vec<ChangedFile>,
        changed_total: u32,
        insertions: u32,
        deletions: u32,
    }
}

shape! {
    /// Whose guidance a file is.
    pub enum GuidanceScope {
        User,
        Agent,
        Workspace,
        /// What is told of the skills that are installed.
        Skills,
    }
}
names!(GuidanceScope { User = "user", Agent = "agent", Workspace = "workspace", Skills = "skills", });

shape! {
    /// Where a skill comes from.
    pub enum SkillSource {
        /// The program itself.
        Builtin,
        /// The skills of the home, by its name.
        Named,
        /// A folder of the machine.
        Local,
    }
}
names!(SkillSource { Builtin = "builtin", Named = "named", Local = "local", });

shape! {
    /// Whether an agent has a skill as it is at its source, or as it was.
    pub enum SkillMode { Linked, Copied, }
}
names!(SkillMode { Linked = "linked", Copied = "copied", });

plane! {
    /// Facts about workspaces.
    WorkspaceEvent {
        /// The agent may work in this folder.
        0x0701 workspace_attached 1 since "0.1.0" => Attached(WorkspaceAttached) {
            workspace: WorkspaceId,
            /// The resolved path.
            anchor: String,
        }
        /// The agent works here now.
        0x0702 workspace_entered 1 since "0.1.0" => Entered(WorkspaceEntered) {
            workspace: WorkspaceName,
            /// None for the agent's home.
            execution_root: Option<String>,
            projection: Projection,
            /// Where commands begin, relative to the execution root; the root itself when empty.
            cwd: String,
        }
        /// The agent went home.
        0x0703 workspace_exited 1 since "0.1.0" => Exited(WorkspaceExited) {
            workspace: WorkspaceName,
        }
        /// The agent may work there no more.
        0x0704 workspace_detached 1 since "0.1.0" => Detached(WorkspaceDetached) {
            workspace: WorkspaceId,
        }
        /// A worktree was made that the task owns.
        0x0705 worktree_created_for_task 1 since "0.1.0" => WorktreeCreated(WorktreeCreated) {
            task: TaskId,
            worktree: Worktree,
        }
        /// The task has ended and its worktree holds changes: it stays for whoever reviews them.
        0x0706 worktree_retained_for_review 1 since "0.1.0" => WorktreeRetained(WorktreeRetained) {
            task: TaskId,
            worktree: Worktree,
            summary: WorktreeSummary,
        }
        /// The task has ended and its worktree was as it began: it is gone.
        0x0707 worktree_auto_cleaned_up 1 since "0.1.0" => WorktreeRemoved(WorktreeRemoved) {
            task: TaskId,
            worktree: Worktree,
        }
        /// What is to be done with the worktree could not be done; it stays.
        0x0708 worktree_auto_cleanup_failed 1 since "0.1.0" => WorktreeLeft(WorktreeLeft) {
            task: TaskId,
            worktree: Worktree,
            reason: String,
        }
        /// Guidance was read that is not what it was; none when it is gone.
        0x0709 guidance_read 1 since "0.1.0" => GuidanceRead(GuidanceRead) {
            scope: GuidanceScope,
            content: Option<Content>,
            /// Of the whole text.
            hash: Option<Hash>,
            /// Why a file that is there was not read.
            refused: Option<String>,
        }
        /// The agent has the skill, in a folder of its home.
        0x070A skill_installed 1 since "0.1.0" => SkillInstalled(SkillInstalled) {
            name: SkillName,
            source: SkillSource,
            mode: SkillMode,
            /// The folder that a linked skill is read from, as it was resolved.
            folder: Option<String>,
        }
        /// The agent has the skill no more.
        0x070B skill_uninstalled 1 since "0.1.0" => SkillUninstalled(SkillUninstalled) {
            name: SkillName,
        }
    }
}
