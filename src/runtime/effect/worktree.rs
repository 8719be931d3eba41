//! What becomes of an ended task's worktree: one that is as it began goes, one with changes stays for review.

use super::git;
use crate::decide::Request;
use crate::decide::workspace::{WorkspaceCommand, WorktreeFate};
use crate::events::Cause;
use crate::events::workspace::Worktree;
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::words::id::TaskId;
use std::path::Path;
use std::sync::Arc;

pub(in crate::runtime) async fn settle(shared: Arc<Shared>, task: TaskId, worktree: Worktree) -> What {
    let fate =
        fate(shared.home_folder(), &worktree).await.unwrap_or_else(|error| WorktreeFate::Left(error.to_string()));
    What::command(Request::new(WorkspaceCommand::SettleWorktree { task, fate }, Cause::Task(task)))
}

async fn fate(home: &Path, worktree: &Worktree) -> Result<WorktreeFate, git::GitError> {
    let found = git::summary(home, worktree).await?;
    if !found.is_clean {
        return Ok(WorktreeFate::Retained(found.summary));
    }
    git::remove(worktree).await?;
    Ok(WorktreeFate::Removed)
}
