//! Git worktrees, by the git command line.
//!
//! **Invariant:** nothing of a repository is executed: hooks, monitors and prompts are off, and the environment is ours.

use crate::events::workspace::{ChangedFile, Worktree, WorktreeSummary};
use crate::words::content::excerpt;
use crate::words::limit::{CHANGED_FILES_MAX, EXCERPT_BYTES_MAX, GIT_MS_MAX};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// Branches tried for one worktree: another home may have taken the first names.
const BRANCHES_TRIED: u32 = 9;

/// Why git did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    #[error("git cannot be run: {0}")]
    Run(#[from] std::io::Error),
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("git {command} took too long")]
    Timeout { command: String },
    #[error("git {command}: {message}")]
    Failed { command: String, message: String },
}

impl GitError {
    /// What to do about it, where there is something.
    pub(super) fn hint(&self) -> Option<&'static str> {
        matches!(self, Self::NoCommit).then_some("commit something first, or choose the workspace_mode inherit")
    }
}

/// What was found in a worktree.
pub(super) struct Found {
    pub summary: WorktreeSummary,
    /// Whether it is as it began.
    pub is_clean: bool,
}

/// Makes the worktree `folder` of the repository that `root` is in, or finds the one that is there.
pub(super) async fn create(root: &Path, folder: &Path, name: &str) -> Result<Worktree, GitError> {
    let repository = line(root, &["rev-parse", "--show-toplevel"]).await?;
    let at = |branch: String, base_commit: String| Worktree {
        repository: repository.clone(),
        root: folder.to_string_lossy().into_owned(),
        branch,
        base_commit,
    };
    if folder.exists() && !is_whole(root, folder).await? {
        clear(root, folder).await?;
    }
    if folder.exists() {
        let branch = line(folder, &["rev-parse", "--abbrev-ref", "HEAD"]).await?;
        return Ok(at(branch, line(folder, &["rev-parse", "HEAD"]).await?));
    }
    let base = head(root).await?;
    let path = folder.to_string_lossy().into_owned();
    let mut failed = None;
    for number in 1..=BRANCHES_TRIED {
        let branch = if number == 1 { format!("holon/{name}") } else { format!("holon/{name}-{number}") };
        match run(root, &["worktree", "add", "-b", &branch, &path, &base]).await {
            Ok(_) => return Ok(at(branch, base)),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| GitError::Timeout { command: "worktree add".into() }))
}

/// The commit that `root` has checked out.
async fn head(root: &Path) -> Result<String, GitError> {
    let commit = line(root, &["rev-parse", "--verify", "HEAD^{commit}"]).await;
    commit.map_err(|error| if matches!(error, GitError::Failed { .. }) { GitError::NoCommit } else { error })
}

/// Whether the worktree at `folder` was made to its end: git keeps it locked until then.
async fn is_whole(root: &Path, folder: &Path) -> Result<bool, GitError> {
    let path = folder.canonicalize()?.to_string_lossy().into_owned();
    let listed = run(root, &["worktree", "list", "--porcelain"]).await?;
    let entry = listed.split("\n\n").find(|entry| entry.lines().next() == Some(&format!("worktree {path}")));
    let is_made = entry.is_some_and(|entry| !entry.lines().any(|line| line == "locked initializing"));
    Ok(is_made && folder.join(".git").exists())
}

/// Removes what an attempt left that died while it made the worktree. Nobody has worked there.
async fn clear(root: &Path, folder: &Path) -> Result<(), GitError> {
    std::fs::remove_dir_all(folder)?;
    let path = folder.to_string_lossy().into_owned();
    // Git knows of it or not; either way the place is free afterwards.
    let _ = run(root, &["worktree", "remove", "--force", "--force", &path]).await;
    run(root, &["worktree", "prune"]).await.map(drop)
}

/// What differs from the worktree's base, commits and files that git does not know included.
pub(super) async fn summary(worktree: &Worktree) -> Result<Found, GitError> {
    let root = Path::new(&worktree.root);
    let base = worktree.base_commit.as_str();
    let head_commit = line(root, &["rev-parse", "HEAD"]).await?;
    let commits = line(root, &["rev-list", "--count", &format!("{base}..HEAD")]).await?.parse().unwrap_or(u32::MAX);
    let known = run(root, &["diff", "--no-ext-diff", "--no-renames", "--name-status", "-z", base]).await?;
    let unknown = run(root, &["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    let mut changed = pairs(&known);
    changed.extend(unknown.split('\0').filter(|path| !path.is_empty()).map(|path| file(path, "untracked")));
    let changed_total = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    changed.truncate(CHANGED_FILES_MAX);
    let numbers = run(root, &["diff", "--no-ext-diff", "--numstat", base]).await?;
    let (insertions, deletions) = counts(&numbers);
    let is_clean = commits == 0 && changed_total == 0;
    let summary = WorktreeSummary { head_commit, commits, changed, changed_total, insertions, deletions };
    Ok(Found { summary, is_clean })
}

/// Removes a worktree that is as it began, and its branch. Git itself refuses one that is not.
pub(super) async fn remove(worktree: &Worktree) -> Result<(), GitError> {
    let repository = Path::new(&worktree.repository);
    if Path::new(&worktree.root).exists() {
        run(repository, &["worktree", "remove", &worktree.root]).await?;
    }
    run(repository, &["branch", "-D", &worktree.branch]).await.map(drop)
}

/// `M\0path\0A\0path\0`.
fn pairs(text: &str) -> Vec<ChangedFile> {
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let mut files = Vec::new();
    while let (Some(status), Some(path)) = (parts.next(), parts.next()) {
        files.push(file(path, status_name(status)));
    }
    files
}

fn status_name(letter: &str) -> &'static str {
    match letter.chars().next() {
        Some('A') => "added",
        Some('D') => "deleted",
        Some('T') => "type_changed",
        Some(_) | None => "modified",
    }
}

fn file(path: &str, status: &str) -> ChangedFile {
    ChangedFile { path: excerpt(path, EXCERPT_BYTES_MAX).to_owned(), status: status.to_owned() }
}

/// Lines of `insertions deletions path`; binary files count for nothing.
fn counts(text: &str) -> (u32, u32) {
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
    text.lines().fold((0, 0), |(insertions, deletions), line| {
        let mut words = line.split('\t');
        (insertions + number(words.next()), deletions + number(words.next()))
    })
}

async fn line(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    run(folder, arguments).await.map(|text| text.trim_end().to_owned())
}

async fn run(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    let command = arguments.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]).args(arguments);
    git.env_clear().env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").kill_on_drop(true);
    for name in ["PATH", "HOME"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.stdin(std::process::Stdio::null());
    let output = tokio::time::timeout(Duration::from_millis(GIT_MS_MAX), git.output()).await;
    let output = output.map_err(|_| GitError::Timeout { command: command.clone() })??;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(GitError::Failed { command, message: excerpt(message.trim(), EXCERPT_BYTES_MAX).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    async fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.txt"), "one\n").expect("writable");
        let identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        let commit = [&identity[..], &["commit", "-qm", "one"]].concat();
        for arguments in [&["init", "-q"][..], &["add", "."], &commit] {
            run(folder.path(), arguments).await.expect("git runs");
        }
        folder
    }

    #[tokio::test]
    async fn a_worktree_is_made_once_and_found_again() {
        let (repository, home) = (repository().await, tempfile::tempdir().expect("a folder"));
        let folder = home.path().join("child");
        let made = create(repository.path(), &folder, "child").await.expect("made");
        fs::write(folder.join("b.txt"), "two\n").expect("writable");
        assert_eq!(create(repository.path(), &folder, "child").await.expect("found"), made);
        assert!(folder.join("b.txt").exists() && made.branch == "holon/child");
    }

    #[tokio::test]
    async fn a_worktree_whose_making_was_cut_short_is_made_anew() {
        let (repository, home) = (repository().await, tempfile::tempdir().expect("a folder"));
        let folder = home.path().join("child");
        create(repository.path(), &folder, "child").await.expect("made");
        // As git leaves it when it is killed in between.
        let path = folder.to_string_lossy().into_owned();
        run(repository.path(), &["worktree", "lock", "--reason", "initializing", &path]).await.expect("locked");
        fs::remove_file(folder.join("a.txt")).expect("there");
        let made = create(repository.path(), &folder, "child").await.expect("made anew");
        assert!(folder.join("a.txt").exists() && summary(&made).await.expect("git tells").is_clean);
        fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).expect("writable");
        create(repository.path(), &folder, "child").await.expect("made anew");
        assert!(folder.join("a.txt").exists());
    }
}
