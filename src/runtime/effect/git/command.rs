//! Running git so that nothing of a repository is executed.
//!
//! A repository can name programs in many places, and a clone, an archive or a command of an agent can change each of
//! them at any time. Two ways to run git hold without looking first, so no race undoes them:
//!
//! - [`Git::in_repository`] and [`Git::of_directory`] read the repository's configuration, for what runs no program but those whose settings have
//!   known names: hooks, the monitor, the pager. They are set on the command line, which is heard last. Nothing is
//!   fetched. No command that is run this way
//!   reads or writes the files of a work tree, beyond removing them.
//! - [`Git::with_own_settings`] writes and compares files, where filters, drivers and submodules could name programs under
//!   any name. There the git directory is a folder of ours, with a configuration of ours, that lends only its objects and
//!   its index from the repository: what the repository says about programs is not read at all.
//!
//! So git-lfs and other filters do not work here: files stay pointers in a new worktree.

use super::GitError;
use crate::words::content::excerpt;
use crate::words::limit::{EXCERPT_BYTES_MAX, GIT_MS_MAX, GIT_OUTPUT_BYTES_MAX};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

/// Settings by which git would run a program of the repository's choice, or leave the folder that it is told of.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=false",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=false",
    "credential.helper=",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
    "worktree.useRelativePaths=false",
];

/// Settings of a repository that say how its files are compared. None of them names a program or a file.
const KEPT: &str = r"^core\.(autocrlf|eol|filemode|ignorecase|symlinks)$";

/// One run of git.
pub(super) struct Git(Command);

/// A git directory of ours, that lends its objects and its index from a repository. It is removed when dropped.
pub(super) struct OwnSettings {
    folder: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    work_tree: PathBuf,
    kept: Vec<String>,
}

/// What a git directory of ours is made of.
pub(super) struct Lent<'a> {
    /// Where it is made. No agent writes there.
    pub folder: PathBuf,
    /// The git directory that a repository and its worktrees have in common.
    pub common: &'a Path,
    pub index: PathBuf,
    pub work_tree: &'a Path,
}

impl Git {
    fn new() -> Self {
        let mut git = Command::new("git");
        git.args(SETTINGS.iter().flat_map(|setting| ["-c", setting])).arg("--no-pager");
        git.env_clear().kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_EDITOR", "false"),
        ] {
            git.env(name, value);
        }
        git.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        Self(git)
    }

    /// In the repository that `folder` is in.
    pub(super) fn in_repository(folder: &Path) -> Self {
        let mut git = Self::new();
        git.0.arg("-C").arg(folder).envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
        git
    }

    /// Of a git directory, wherever its files are.
    pub(super) fn of_directory(directory: &Path) -> Self {
        let mut git = Self::new();
        git.0.arg("--git-dir").arg(directory).envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
        git
    }

    /// On the files of a work tree.
    pub(super) fn with_own_settings(own: &OwnSettings) -> Self {
        let mut git = Self::new();
        git.0.args(own.kept.iter().flat_map(|setting| ["-c", setting])).arg("-C").arg(&own.work_tree);
        for (name, path) in [
            ("GIT_DIR", &own.folder),
            ("GIT_WORK_TREE", &own.work_tree),
            ("GIT_OBJECT_DIRECTORY", &own.objects),
            ("GIT_INDEX_FILE", &own.index),
        ] {
            git.0.env(name, path);
        }
        git.0.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ATTR_NOSYSTEM", "1");
        git
    }

    /// What git printed, without the end of its last line.
    pub(super) async fn line(self, arguments: &[&str]) -> Result<String, GitError> {
        self.run(arguments).await.map(|text| text.trim_end().to_owned())
    }

    pub(super) async fn run(mut self, arguments: &[impl AsRef<OsStr>]) -> Result<String, GitError> {
        let command: Vec<_> = arguments.iter().take(2).map(|word| word.as_ref().to_string_lossy()).collect();
        let command = command.join(" ");
        self.0.args(arguments);
        let output = tokio::time::timeout(Duration::from_millis(GIT_MS_MAX), output(self.0)).await;
        let (is_done, stdout, stderr) = output.map_err(|_| GitError::Timeout { command: command.clone() })??;
        if stdout.len() as u64 > GIT_OUTPUT_BYTES_MAX {
            return Err(GitError::TooMuch { command });
        }
        if is_done {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&stderr);
        Err(GitError::Failed { command, message: excerpt(message.trim(), EXCERPT_BYTES_MAX).to_owned() })
    }
}

/// Runs a command to its end, and keeps the beginning of what it prints.
async fn output(mut command: Command) -> std::io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::join!(beginning(stdout), beginning(stderr));
    Ok((child.wait().await?.success(), stdout?, stderr?))
}

/// One byte more than is allowed, where there is more. What git cannot print ends it.
async fn beginning(source: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(source) = source {
        source.take(GIT_OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

impl OwnSettings {
    /// Makes the folder, in place of one that a crash has left.
    pub(super) async fn make(lent: Lent<'_>) -> Result<Self, GitError> {
        let format = Git::of_directory(lent.common).line(&["rev-parse", "--show-object-format"]).await?;
        let kept = Git::of_directory(lent.common).run(&["config", "--local", "-z", "--get-regexp", KEPT]).await;
        // None of them may be set.
        let kept = kept.unwrap_or_default();
        let mut kept: Vec<String> = kept.split('\0').filter_map(setting).collect();
        let ignored =
            Git::in_repository(Path::new("/")).line(&["config", "--global", "--type=path", "core.excludesFile"]);
        kept.extend(ignored.await.ok().map(|path| format!("core.excludesFile={path}")));
        let (folder, objects) = (lent.folder, lent.common.join("objects"));
        let own = Self { folder, objects, index: lent.index, work_tree: lent.work_tree.to_owned(), kept };
        own.write(&format)?;
        Ok(own)
    }

    fn write(&self, format: &str) -> std::io::Result<()> {
        remove(&self.folder)?;
        std::fs::create_dir(&self.folder)?;
        for folder in ["objects", "refs"] {
            std::fs::create_dir(self.folder.join(folder))?;
        }
        std::fs::write(self.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        let config = format!("[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = {format}\n");
        std::fs::write(self.folder.join("config"), config)
    }
}

impl Drop for OwnSettings {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "a git directory of ours cannot be removed");
        }
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A setting as it is listed: its name and its value on lines of their own; without a value it is true.
fn setting(listed: &str) -> Option<String> {
    let (name, value) = listed.split_once('\n').unwrap_or((listed, "true"));
    (!name.is_empty()).then(|| format!("{name}={value}"))
}
