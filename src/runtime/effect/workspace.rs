//! Where an agent works: its execution root, and the folder in it.

use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::words::id::AgentId;
use std::path::{Path, PathBuf};

/// An execution root and the folder in it where calls begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct Place {
    pub root: PathBuf,
    /// Relative to the root.
    pub cwd: PathBuf,
}

/// The home folder of an agent, which is there whenever something is to happen in it.
pub(in crate::runtime) fn home(shared: &Shared, agent: &AgentId) -> PathBuf {
    let home = shared.agents_folder.join(agent.as_str());
    if let Err(error) = std::fs::create_dir_all(&home) {
        tracing::error!(%agent, %error, "the agent's home folder cannot be made");
    }
    home
}

/// Where an agent works now.
pub(in crate::runtime) fn place(shared: &Shared, state: &AgentState) -> Place {
    let active = &state.workspaces.active;
    let root = active.execution_root.as_ref().map_or_else(|| home(shared, &state.agent_id), PathBuf::from);
    Place { root, cwd: PathBuf::from(&active.cwd) }
}

impl Place {
    /// The folder that `path` names from here: inside the execution root, symlinks followed.
    pub(in crate::runtime) fn folder(&self, path: Option<&str>) -> Result<PathBuf, String> {
        let root = resolve(&self.root)?;
        let here = root.join(&self.cwd);
        let folder = resolve(&path.map_or_else(|| here.clone(), |path| here.join(path)))?;
        if folder.starts_with(&root) { Ok(folder) } else { Err("workdir is outside the execution root".into()) }
    }
}

/// A folder that exists, with every symlink in its path followed.
pub(in crate::runtime) fn resolve(path: &Path) -> Result<PathBuf, String> {
    let resolved = path.canonicalize().map_err(|error| format!("the folder {}: {error}", path.display()))?;
    if resolved.is_dir() { Ok(resolved) } else { Err(format!("{} is no folder", path.display())) }
}
