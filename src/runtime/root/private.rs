//! What of the home is private: everything but the few folders that are an agent's to use.

use super::FileError;
use super::location::{Location, Mounts};
use crate::fold::AgentState;
use crate::words::id::AgentId;
use rustix::fs::{Mode, OFlags, Stat};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The home, and what of it may be reached.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct Private {
    home: PathBuf,
    /// Relative to the home: files, and folders with all that is in them.
    open: Vec<PathBuf>,
}

/// Folders of the home whose own files hold secrets. The home itself is the first of them.
const FOLDERS_OF_SECRETS: &[&str] = &[".", "triggers"];

impl Private {
    /// Of a home, all of it private but `open`.
    pub(in crate::runtime) fn of_home(home: &Path, open: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { home: home.to_owned(), open: open.into_iter().collect() }
    }

    /// What an agent may reach: its own folder, and the folder that it works in where its supervisor or the runtime
    /// gave it one in the home.
    pub(in crate::runtime) fn of_agent(home: &Path, state: &AgentState) -> Self {
        let works_in = state.workspaces.active.execution_root.as_deref();
        let inside = works_in.and_then(|root| Path::new(root).strip_prefix(home).ok());
        let given = inside.and_then(|inside| given(&state.agent_id, inside));
        Self::of_home(home, [agent_folder(&state.agent_id)].into_iter().chain(given))
    }

    /// The same, and further folders of the home.
    pub(in crate::runtime) fn with(mut self, open: &str) -> Self {
        self.open.push(open.into());
        self
    }

    /// Whether the descriptor leads to what is private.
    pub(super) fn covers(&self, mounts: &Mounts, descriptor: impl AsFd) -> Result<bool, FileError> {
        let found = mounts.locate(descriptor)?;
        Ok(found
            .beneath(&self.home(mounts)?)
            .is_some_and(|inside| !self.open.iter().any(|open| inside.starts_with(open))))
    }

    /// Whether a file that has several names has one of them among the secrets of the home.
    pub(super) fn holds(&self, about: &Stat) -> Result<bool, FileError> {
        for folder in FOLDERS_OF_SECRETS {
            let entries = match std::fs::read_dir(self.home.join(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let found = entry?.metadata()?;
                if (found.dev(), found.ino()) == (about.st_dev, about.st_ino) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn home(&self, mounts: &Mounts) -> io::Result<Location> {
        let home = rustix::fs::open(&self.home, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        mounts.locate(home)
    }
}

/// The folder of an agent, relative to the home.
fn agent_folder(agent: &AgentId) -> PathBuf {
    Path::new("agents").join(agent.as_str())
}

/// What the folder that an agent works in gives it of the home: a worktree, or the folder of an agent above it.
fn given(agent: &AgentId, inside: &Path) -> Option<PathBuf> {
    let mut parts = inside.components();
    let (kind, owner) = (parts.next()?.as_os_str(), parts.next()?.as_os_str().to_str()?);
    let is_above = agent.as_str().strip_prefix(owner).is_some_and(|rest| rest.starts_with('.'));
    (kind == "worktrees" || kind == "agents" && is_above).then(|| Path::new(kind).join(owner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_works_where_its_supervisor_let_it() {
        let child = AgentId::parse("main.c1.c2").unwrap();
        let given = |inside: &str| given(&child, Path::new(inside)).map(|path| path.display().to_string());
        assert_eq!(given("agents/main/src").as_deref(), Some("agents/main"));
        assert_eq!(given("agents/main.c1").as_deref(), Some("agents/main.c1"));
        assert_eq!(given("worktrees/main.c9/src").as_deref(), Some("worktrees/main.c9"));
        for inside in ["", "agents", "worktrees", "agents/ma", "agents/other", "run/main", "triggers/main"] {
            assert_eq!(given(inside), None, "{inside}");
        }
    }
}
