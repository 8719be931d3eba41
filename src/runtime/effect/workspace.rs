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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A root with a folder, a file, and links out of it and within it.
    fn tree() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir(folder.path().join("root-beside")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        symlink(folder.path(), root.join("up")).unwrap();
        symlink("up/root-beside", root.join("beside")).unwrap();
        symlink("src", root.join("inner")).unwrap();
        (folder, Place { root, cwd: PathBuf::from("src") })
    }

    #[test]
    fn a_command_begins_inside_the_execution_root() {
        let (_folder, place) = tree();
        let root = place.root.canonicalize().unwrap();
        let inside = root.join("src/deep").to_string_lossy().into_owned();
        let begins = |path: Option<&str>| place.folder(path).unwrap().strip_prefix(&root).unwrap().to_owned();
        assert_eq!(begins(None), Path::new("src"));
        assert_eq!(begins(Some("deep")), Path::new("src/deep"));
        assert_eq!(begins(Some("..")), Path::new(""));
        assert_eq!(begins(Some("../inner")), Path::new("src"), "a link is followed to what it names");
        assert_eq!(begins(Some(&inside)), Path::new("src/deep"));
        assert_eq!(begins(Some("../up/root/src")), Path::new("src"), "out and in again is inside");
    }

    #[test]
    fn no_working_folder_is_outside_the_execution_root() {
        let (folder, place) = tree();
        let beside = folder.path().join("root-beside").to_string_lossy().into_owned();
        for path in ["../..", "../up", "../beside", "../../root-beside", "/", "/tmp", &beside] {
            let reason = place.folder(Some(path)).unwrap_err();
            assert_eq!(reason, "workdir is outside the execution root", "{path}");
        }
        for (path, reason) in [("../file", "is no folder"), ("missing", "No such file")] {
            let told = place.folder(Some(path)).unwrap_err();
            assert!(told.contains(reason), "{path}: {told}");
        }
        let moved = Place { cwd: PathBuf::from("up"), ..place };
        assert!(moved.folder(None).is_err(), "a working folder that became a link leads nowhere else");
    }

    #[test]
    fn a_root_that_is_a_link_is_the_folder_it_names() {
        let (folder, place) = tree();
        let link = folder.path().join("link");
        symlink(&place.root, &link).unwrap();
        let linked = Place { root: link, cwd: PathBuf::new() };
        assert_eq!(linked.folder(Some("src")), place.folder(None));
        assert!(linked.folder(Some("..")).is_err());
    }
}
