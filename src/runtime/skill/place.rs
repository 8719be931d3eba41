//! Making and removing the folders of skills.
//!
//! **Invariant:** a folder is there whole or not at all: it is made under a name that no skill has, synced, and then
//! takes its place.

use super::{FILE, about};
use crate::decide::Rejection;
use crate::events::workspace::SkillMode;
use crate::runtime::handle::SubmitError;
use crate::words::id::SkillName;
use crate::words::limit::{SKILL_BYTES_MAX, SKILL_DEPTH_MAX, SKILL_FILES_MAX};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What a skill is made from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Text(&'static str),
    Folder(PathBuf, SkillMode),
}

/// Why a skill has no folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlaceError {
    /// Its source is to blame.
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<PlaceError> for SubmitError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Unfit(reason) => Rejection::Invalid { field: "kind", reason }.into(),
            PlaceError::Io(error) => Self::Unavailable(format!("the skill's folder: {error}")),
        }
    }
}

/// Makes the folder of a skill, in place of whatever is there.
pub(super) fn place(skills_folder: &Path, name: &SkillName, origin: &Origin) -> Result<(), PlaceError> {
    fs::create_dir_all(skills_folder)?;
    let unfinished = skills_folder.join(format!(".{name}"));
    remove(&unfinished)?;
    let made = make(skills_folder, &unfinished, name, origin);
    if made.is_err() {
        // Best effort: the next one begins by removing it.
        let _ = remove(&unfinished);
        return made;
    }
    let folder = skills_folder.join(name.as_str());
    remove(&folder)?;
    fs::rename(&unfinished, &folder)?;
    Ok(File::open(skills_folder)?.sync_all()?)
}

/// Removes a folder, or the link that stands for it, if it is there.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match folder.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn make(skills_folder: &Path, folder: &Path, name: &SkillName, origin: &Origin) -> Result<(), PlaceError> {
    let (source, mode) = match origin {
        Origin::Text(text) => return Ok(write(folder, text)?),
        Origin::Folder(source, mode) => (source, mode),
    };
    about::read(source, name).map_err(PlaceError::Unfit)?;
    if source.starts_with(skills_folder.canonicalize()?) {
        return Err(PlaceError::Unfit("lies among the agent's skills".into()));
    }
    match mode {
        SkillMode::Linked => Ok(symlink(source, folder)?),
        SkillMode::Copied => Room { files: SKILL_FILES_MAX, bytes: SKILL_BYTES_MAX }.copy(source, folder, 0),
    }
}

fn write(folder: &Path, text: &str) -> io::Result<()> {
    fs::create_dir(folder)?;
    let mut file = File::create(folder.join(FILE))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

/// What may still be copied.
struct Room {
    files: usize,
    bytes: u64,
}

impl Room {
    fn copy(&mut self, source: &Path, folder: &Path, depth: usize) -> Result<(), PlaceError> {
        if depth > SKILL_DEPTH_MAX {
            return Err(PlaceError::Unfit(format!("has folders more than {SKILL_DEPTH_MAX} deep")));
        }
        fs::create_dir(folder)?;
        for entry in fs::read_dir(source).map_err(|error| unread(source, &error))? {
            let entry = entry.map_err(|error| unread(source, &error))?;
            self.files = self.files.checked_sub(1).ok_or_else(too_many)?;
            self.entry(&entry, &folder.join(entry.file_name()), depth)?;
        }
        Ok(File::open(folder)?.sync_all()?)
    }

    fn entry(&mut self, entry: &DirEntry, copy: &Path, depth: usize) -> Result<(), PlaceError> {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| unread(&path, &error))?;
        if kind.is_dir() {
            self.copy(&path, copy, depth + 1)
        } else if kind.is_file() {
            self.file(&path, copy)
        } else {
            Err(PlaceError::Unfit(format!("holds {}, which is neither a file nor a folder", path.display())))
        }
    }

    fn file(&mut self, path: &Path, copy: &Path) -> Result<(), PlaceError> {
        let mut bytes = Vec::new();
        let source = File::open(path).map_err(|error| unread(path, &error))?;
        let permissions = source.metadata().map_err(|error| unread(path, &error))?.permissions();
        source.take(self.bytes + 1).read_to_end(&mut bytes).map_err(|error| unread(path, &error))?;
        self.bytes = self.bytes.checked_sub(bytes.len() as u64).ok_or_else(too_many)?;
        let mut file = File::create(copy)?;
        file.write_all(&bytes)?;
        file.set_permissions(permissions)?;
        Ok(file.sync_all()?)
    }
}

fn too_many() -> PlaceError {
    PlaceError::Unfit(format!("has more than {SKILL_FILES_MAX} files or {SKILL_BYTES_MAX} bytes; link it"))
}

fn unread(path: &Path, error: &io::Error) -> PlaceError {
    PlaceError::Unfit(format!("cannot be read: {}: {error}", path.display()))
}
