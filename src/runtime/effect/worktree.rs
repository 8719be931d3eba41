//! What becomes of an ended task's worktree: one that is as it began goes, one with changes stays for review.

use super::git;
use crate::decide::Request;
use crate::decide::workspace::{WorkspaceCommand, WorktreeFate};
use crate::events::Cause;
use crate::events::workspace::Worktree;
use crate::runtime::mail::What;
use crate::words::id::TaskId;

pub(in crate::runtime) async fn settle(task: TaskId, worktree: Worktree) -> What {
    let fate = fate(&worktree).await.unwrap_or_else(|error| WorktreeFate::Left(error.to_string()));
    What::command(Request::new(WorkspaceCommand::SettleWorktree { task, fate }, Cause::Task(task)))
}

async fn fate(worktree: &Worktree) -> Result<WorktreeFate, git::GitError> {
    let found = git::summary(worktree).await?;
    if !found.is_clean {
        return Ok(WorktreeFate::Retained(found.summary));
    }
    git::remove(worktree).await?;
    Ok(WorktreeFate::Removed)
}
