//! Making and removing the folders of skills, in the folder of their agent.
//!
//! **Invariant:** a folder is there whole or not at all: it is made under a name that no skill has, synced, and then
//! takes its place.

use super::{FILE, about};
use crate::decide::Rejection;
use crate::events::workspace::SkillMode;
use crate::runtime::handle::SubmitError;
use crate::runtime::root::private::Private;
use crate::runtime::root::write::Takes;
use crate::runtime::root::{Entry, FileError, Root};
use crate::words::id::SkillName;
use crate::words::limit::{SKILL_BYTES_MAX, SKILL_DEPTH_MAX, SKILL_FILES_MAX};
use rustix::fs::{FileType, Mode};
use std::path::{Path, PathBuf};

/// Where skills lie in the folder of an agent.
pub(super) const SKILLS: &str = "skills";

/// What a skill is made from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Text(&'static str),
    /// A folder, by its resolved path.
    Folder(PathBuf, SkillMode),
}

/// Why a skill has no folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// Its source is to blame.
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<PlaceError> for SubmitError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Unfit(reason) => Rejection::Invalid { field: "kind", reason }.into(),
            PlaceError::File(error) => Self::Unavailable(format!("the skill's folder {error}")),
        }
    }
}

/// Makes the folder of a skill, in place of whatever is there.
pub(super) fn place(agent: &Root, name: &SkillName, origin: &Origin, private: &Private) -> Result<(), PlaceError> {
    agent.make_folder(Path::new(SKILLS))?;
    let (unfinished, folder) = (Path::new(SKILLS).join(format!(".{name}")), folder_of(name));
    agent.remove_all(&unfinished)?;
    let made = make(agent, &unfinished, name, origin, private);
    if made.is_err() {
        // Best effort: the next one begins by removing it.
        let _ = agent.remove_all(&unfinished);
        return made;
    }
    agent.remove_all(&folder)?;
    Ok(agent.rename(&unfinished, &folder)?)
}

/// Removes the folder of a skill, or the link that stands for it, if it is there.
pub(super) fn remove(agent: &Root, name: &SkillName) -> Result<(), PlaceError> {
    if agent.exists(Path::new(SKILLS)) { Ok(agent.remove_all(&folder_of(name))?) } else { Ok(()) }
}

fn folder_of(name: &SkillName) -> PathBuf {
    Path::new(SKILLS).join(name.as_str())
}

fn make(agent: &Root, folder: &Path, name: &SkillName, origin: &Origin, private: &Private) -> Result<(), PlaceError> {
    let (source, mode) = match origin {
        Origin::Text(text) => {
            return Ok(agent.write(&folder.join(FILE), text.as_bytes(), MODE_DEFAULT, Takes::FreeNameAlone)?);
        }
        Origin::Folder(source, mode) => (source, mode),
    };
    if source.starts_with(agent.path().join(SKILLS)) {
        return Err(PlaceError::Unfit("lies among the agent's skills".into()));
    }
    let root = Root::open(source, private.clone()).map_err(|error| unread(source, &error))?;
    about::read(&root, name).map_err(PlaceError::Unfit)?;
    match mode {
        SkillMode::Linked => Ok(agent.make_symlink(folder, source)?),
        SkillMode::Copied => {
            let mut copy = Copy { from: &root, to: agent, folder, files: SKILL_FILES_MAX, bytes: SKILL_BYTES_MAX };
            copy.folder(Path::new(""), 0)
        }
    }
}

/// The mode of a file that holon brings along.
const MODE_DEFAULT: Mode = Mode::from_raw_mode(0o644);

/// A skill that is being copied.
struct Copy<'a> {
    from: &'a Root,
    to: &'a Root,
    folder: &'a Path,
    /// What may still be copied.
    files: usize,
    bytes: u64,
}

impl Copy<'_> {
    fn folder(&mut self, path: &Path, depth: usize) -> Result<(), PlaceError> {
        if depth > SKILL_DEPTH_MAX {
            return Err(PlaceError::Unfit(format!("has folders more than {SKILL_DEPTH_MAX} deep")));
        }
        self.to.make_folder(&self.folder.join(path))?;
        let entries = self.from.entries(path, self.files + 1).map_err(|error| unread(path, &error))?;
        self.files = self.files.checked_sub(entries.len()).ok_or_else(too_many)?;
        entries.iter().try_for_each(|entry| self.entry(entry, depth))
    }

    fn entry(&mut self, entry: &Entry, depth: usize) -> Result<(), PlaceError> {
        if entry.kind == FileType::Directory {
            return self.folder(&entry.path, depth + 1);
        }
        if entry.kind == FileType::RegularFile {
            return self.file(&entry.path);
        }
        Err(PlaceError::Unfit(format!("holds {}, which is neither a file nor a folder", entry.path.display())))
    }

    fn file(&mut self, path: &Path) -> Result<(), PlaceError> {
        let read = self.from.read_own(path, self.bytes);
        let (bytes, mode) = read
            .map_err(|error| if matches!(error, FileError::TooLong(_)) { too_many() } else { unread(path, &error) })?;
        self.bytes -= bytes.len() as u64;
        Ok(self.to.write(&self.folder.join(path), &bytes, mode, Takes::FreeNameAlone)?)
    }
}

fn too_many() -> PlaceError {
    PlaceError::Unfit(format!("has more than {SKILL_FILES_MAX} files or {SKILL_BYTES_MAX} bytes; link it"))
}

fn unread(path: &Path, error: &FileError) -> PlaceError {
    PlaceError::Unfit(format!("cannot be read: {} {error}", path.display()))
}
