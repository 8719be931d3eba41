//! Git worktrees, by the git command line.
//!
//! **Invariant:** nothing of a repository is executed ([`command`]), and a worktree's own `.git` file, which whoever works
//! there can rewrite, is not gone by: its git directory is found in the repository that it was made from.

mod command;

use crate::events::workspace::{ChangedFile, Worktree, WorktreeSummary};
use crate::runtime::root::private::Private;
use crate::runtime::root::{FileError, Root};
use crate::words::content::excerpt;
use crate::words::limit::{CHANGED_FILES_MAX, EXCERPT_BYTES_MAX, PATH_BYTES_MAX, WORKTREES_LOOKED_AT_MAX};
use command::{Git, Lent, OwnSettings};
use std::path::{Path, PathBuf};

/// Branches tried for one worktree: another home may have taken the first names.
const BRANCHES_TRIED: u32 = 9;
/// Why git keeps a worktree locked that is not filled yet.
const INITIALIZING: &str = "initializing";

/// Why git did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    #[error("git cannot be run: {0}")]
    Run(#[from] std::io::Error),
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("the repository does not know the worktree")]
    NoWorktree,
    #[error("a file of the repository {0}")]
    File(#[from] FileError),
    #[error("git {command} took too long")]
    Timeout { command: String },
    #[error("git {command} printed too much")]
    TooMuch { command: String },
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

/// Makes the worktree `folder` of the repository that `root` is in, or finds the one that is there. `home` is the home of
/// holon, in which worktrees lie.
pub(super) async fn create(home: &Path, root: &Path, folder: &Path, name: &str) -> Result<Worktree, GitError> {
    let repository = in_repository(root, &["rev-parse", "--show-toplevel"]).await?;
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
        let own = git_directory(home, &common(root).await?, folder)?;
        let branch = of_directory(&own, &["rev-parse", "--abbrev-ref", "HEAD"]).await?;
        return Ok(at(branch, of_directory(&own, &["rev-parse", "HEAD"]).await?));
    }
    let base = head(root).await?;
    let branch = add(root, folder, name, &base).await?;
    fill(home, root, folder, &base).await?;
    in_repository(root, &["worktree", "unlock", &folder.to_string_lossy()]).await?;
    Ok(at(branch, base))
}

/// Makes the worktree without its files; answers its branch. It is locked until it is filled.
async fn add(root: &Path, folder: &Path, name: &str, base: &str) -> Result<String, GitError> {
    let path = folder.to_string_lossy().into_owned();
    let mut failed = None;
    for number in 1..=BRANCHES_TRIED {
        let branch = if number == 1 { format!("holon/{name}") } else { format!("holon/{name}-{number}") };
        let locked = ["worktree", "add", "--no-checkout", "--lock", "--reason", INITIALIZING];
        match in_repository(root, &[&locked[..], &["-b", &branch, &path, base]].concat()).await {
            Ok(_) => return Ok(branch),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| GitError::Timeout { command: "worktree add".into() }))
}

/// Writes the files of a commit into a worktree.
async fn fill(home: &Path, root: &Path, folder: &Path, base: &str) -> Result<(), GitError> {
    let own = own_settings(home, &common(root).await?, folder).await?;
    Git::with_own_settings(&own).run(&["read-tree", "--reset", "-u", base]).await.map(drop)
}

/// The commit that `root` has checked out.
async fn head(root: &Path) -> Result<String, GitError> {
    let commit = in_repository(root, &["rev-parse", "--verify", "HEAD^{commit}"]).await;
    commit.map_err(|error| if matches!(error, GitError::Failed { .. }) { GitError::NoCommit } else { error })
}

/// The git directory that the repository of `root` and its worktrees have in common.
async fn common(root: &Path) -> Result<PathBuf, GitError> {
    let path = in_repository(root, &["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
    Ok(Path::new(&path).canonicalize()?)
}

/// The git directory of a worktree, as its repository knows it.
fn git_directory(home: &Path, common: &Path, folder: &Path) -> Result<PathBuf, GitError> {
    let root = Root::open(common, Private::of_home(home, ["agents".into(), "worktrees".into()]))?;
    let wanted = folder.join(".git");
    let is_wanted = |path: &Path| {
        let named = root.read_own(&path.join("gitdir"), PATH_BYTES_MAX as u64);
        named.is_ok_and(|(bytes, _)| Path::new(String::from_utf8_lossy(&bytes).trim_end()) == wanted)
    };
    let entries = root.entries(Path::new("worktrees"), WORKTREES_LOOKED_AT_MAX)?;
    let found = entries.into_iter().find(|entry| is_wanted(&entry.path));
    found.map(|entry| common.join(entry.path)).ok_or(GitError::NoWorktree)
}

async fn own_settings(home: &Path, common: &Path, folder: &Path) -> Result<OwnSettings, GitError> {
    let index = git_directory(home, common, folder)?.join("index");
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let own = folder.with_file_name(format!(".git-{name}"));
    OwnSettings::make(Lent { folder: own, common, index, work_tree: folder }).await
}

/// Whether the worktree at `folder` was made to its end: it is locked until then.
async fn is_whole(root: &Path, folder: &Path) -> Result<bool, GitError> {
    let path = folder.canonicalize()?.to_string_lossy().into_owned();
    let listed = in_repository(root, &["worktree", "list", "--porcelain"]).await?;
    let entry = listed.split("\n\n").find(|entry| entry.lines().next() == Some(&format!("worktree {path}")));
    let locked = format!("locked {INITIALIZING}");
    let is_made = entry.is_some_and(|entry| !entry.lines().any(|line| line == locked));
    Ok(is_made && folder.join(".git").exists())
}

/// Removes what an attempt left that died while it made the worktree. Nobody has worked there.
async fn clear(root: &Path, folder: &Path) -> Result<(), GitError> {
    std::fs::remove_dir_all(folder)?;
    let path = folder.to_string_lossy().into_owned();
    // Git knows of it or not; either way the place is free afterwards.
    let _ = in_repository(root, &["worktree", "remove", "--force", "--force", &path]).await;
    in_repository(root, &["worktree", "prune"]).await.map(drop)
}

/// What differs from the worktree's base, commits and files that git does not know included.
pub(super) async fn summary(home: &Path, worktree: &Worktree) -> Result<Found, GitError> {
    let (root, base) = (Path::new(&worktree.root), worktree.base_commit.as_str());
    let common = common(Path::new(&worktree.repository)).await?;
    let own = git_directory(home, &common, root)?;
    let head_commit = of_directory(&own, &["rev-parse", "HEAD"]).await?;
    let commits = of_directory(&own, &["rev-list", "--count", &format!("{base}..HEAD")]).await?;
    let commits = commits.parse().unwrap_or(u32::MAX);
    let own = own_settings(home, &common, root).await?;
    let known = Git::with_own_settings(&own).run(&[DIFF, &["--name-status", "-z", base]].concat()).await?;
    let unknown = Git::with_own_settings(&own).run(&["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    let mut changed = pairs(&known);
    changed.extend(unknown.split('\0').filter(|path| !path.is_empty()).map(|path| file(path, "untracked")));
    let changed_total = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    changed.truncate(CHANGED_FILES_MAX);
    let numbers = Git::with_own_settings(&own).run(&[DIFF, &["--numstat", base]].concat()).await?;
    let (insertions, deletions) = counts(&numbers);
    let is_clean = commits == 0 && changed_total == 0;
    let summary = WorktreeSummary { head_commit, commits, changed, changed_total, insertions, deletions };
    Ok(Found { summary, is_clean })
}

/// Submodules are compared by their commits alone: to look into one, git would run itself with its settings.
const DIFF: &[&str] = &["diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=dirty"];

/// Removes a worktree that was found as it began, and its branch. Git does not look again, since it would go by the
/// settings of the repository for that.
pub(super) async fn remove(worktree: &Worktree) -> Result<(), GitError> {
    let repository = Path::new(&worktree.repository);
    if Path::new(&worktree.root).exists() {
        in_repository(repository, &["worktree", "remove", "--force", &worktree.root]).await?;
    }
    in_repository(repository, &["branch", "-D", &worktree.branch]).await.map(drop)
}

async fn in_repository(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    Git::in_repository(folder).line(arguments).await
}

async fn of_directory(directory: &Path, arguments: &[&str]) -> Result<String, GitError> {
    Git::of_directory(directory).line(arguments).await
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn worktrees(home: &tempfile::TempDir) -> PathBuf {
        let folder = home.path().join("worktrees");
        fs::create_dir_all(&folder).expect("writable");
        folder
    }

    async fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a.txt"), "one\n").expect("writable");
        let identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        let commit = [&identity[..], &["commit", "-qm", "one"]].concat();
        for arguments in [&["init", "-q"][..], &["add", "."], &commit] {
            in_repository(folder.path(), arguments).await.expect("git runs");
        }
        folder
    }

    #[tokio::test]
    async fn a_worktree_is_made_once_and_found_again() {
        let (repository, home) = (repository().await, tempfile::tempdir().expect("a folder"));
        let folder = worktrees(&home).join("child");
        let made = create(home.path(), repository.path(), &folder, "child").await.expect("made");
        fs::write(folder.join("b.txt"), "two\n").expect("writable");
        assert_eq!(create(home.path(), repository.path(), &folder, "child").await.expect("found"), made);
        assert!(folder.join("b.txt").exists() && made.branch == "holon/child");
    }

    #[tokio::test]
    async fn a_worktree_whose_making_was_cut_short_is_made_anew() {
        let (repository, home) = (repository().await, tempfile::tempdir().expect("a folder"));
        let folder = worktrees(&home).join("child");
        create(home.path(), repository.path(), &folder, "child").await.expect("made");
        // As git leaves it when it is killed in between.
        let path = folder.to_string_lossy().into_owned();
        in_repository(repository.path(), &["worktree", "lock", "--reason", INITIALIZING, &path]).await.expect("locked");
        fs::remove_file(folder.join("a.txt")).expect("there");
        let made = create(home.path(), repository.path(), &folder, "child").await.expect("made anew");
        assert!(folder.join("a.txt").exists() && summary(home.path(), &made).await.expect("git tells").is_clean);
        fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).expect("writable");
        create(home.path(), repository.path(), &folder, "child").await.expect("made anew");
        assert!(folder.join("a.txt").exists());
    }
}
