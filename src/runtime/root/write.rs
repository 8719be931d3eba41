//! Writing beneath a root: a file is made whole under a random name that nobody has, and then takes its place.

use super::{BENEATH, FileError, Root, location, reopen};
use crate::runtime::source;
use crate::words::hash::Hash;
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, mkdirat, openat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// Whether a file may take the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Takes {
    /// What was there keeps its other names, as it was.
    Place,
    FreeNameAlone,
}

impl Root {
    /// Writes a file, durably, and makes the folders that it needs.
    pub(in crate::runtime) fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: Mode,
        takes: Takes,
    ) -> Result<(), FileError> {
        let (folder, name) = self.folder_of(path)?;
        let temporary = OsString::from(format!(".holon-{}.new", Hash(source::random()?)));
        let made =
            make(&folder, &temporary, bytes, mode).and_then(|()| rename(&folder, &temporary, &folder, name, takes));
        if made.is_err() {
            // Best effort: the reason why it was not written matters more.
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        }
        made?;
        sync(&folder)
    }

    /// Makes a folder, and those above it that are not there.
    pub(in crate::runtime) fn make_folder(&self, path: &Path) -> Result<(), FileError> {
        self.folder(path).map(drop)
    }

    pub(in crate::runtime) fn make_symlink(&self, path: &Path, target: &Path) -> Result<(), FileError> {
        let (folder, name) = self.folder_of(path)?;
        Ok(symlinkat(target, &folder, name)?)
    }

    /// Removes a file or a symlink.
    pub(in crate::runtime) fn remove(&self, path: &Path) -> Result<(), FileError> {
        let (folder, name) = self.folder_of(path)?;
        Ok(unlinkat(&folder, name, AtFlags::empty())?)
    }

    /// Removes whatever is there, a folder with all that is in it; no symlink is followed.
    pub(in crate::runtime) fn remove_all(&self, path: &Path) -> Result<(), FileError> {
        let (folder, name) = self.folder_of(path)?;
        let path = location::of_descriptor(folder.as_raw_fd()).join(name);
        let removed = match path.symlink_metadata() {
            Ok(about) if about.is_dir() => std::fs::remove_dir_all(path),
            Ok(_) => std::fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Gives a folder or a file another name, which nothing has.
    pub(in crate::runtime) fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let ((from_folder, from), (to_folder, to)) = (self.folder_of(from)?, self.folder_of(to)?);
        rename(&from_folder, from, &to_folder, to, Takes::FreeNameAlone)?;
        sync(&to_folder)
    }

    /// The folder of a path, made where it is not there, and the last name.
    fn folder_of<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), FileError> {
        let name = path.file_name().ok_or(FileError::NotRegular)?;
        if name == GIT {
            return Err(FileError::Git);
        }
        Ok((self.folder(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// A folder that may be written to, made where it is not there.
    fn folder(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let mut made = PathBuf::new();
        let mut folder = self.writable(&made)?;
        for part in path.components() {
            let Component::Normal(name) = part else { return Err(FileError::Outside) };
            made.push(name);
            match self.writable(&made) {
                Err(FileError::Missing) => {
                    mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
                    folder = self.writable(&made)?;
                }
                found => folder = found?,
            }
        }
        Ok(folder)
    }

    /// Git runs programs that its own files name, so those are written by git alone.
    fn writable(&self, path: &Path) -> Result<OwnedFd, FileError> {
        let folder = self.pin(path, OFlags::DIRECTORY, BENEATH)?;
        self.check(&folder)?;
        let found = std::fs::read_link(location::of_descriptor(folder.as_raw_fd()))?;
        let inside = found.strip_prefix(&self.path).unwrap_or(&found);
        if inside.components().any(|part| part.as_os_str() == GIT) { Err(FileError::Git) } else { Ok(folder) }
    }
}

const GIT: &str = ".git";

fn make(folder: &OwnedFd, name: &OsStr, bytes: &[u8], mode: Mode) -> Result<(), FileError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(bytes)?;
    fchmod(&file, mode)?;
    Ok(file.sync_all()?)
}

fn rename(from_folder: &OwnedFd, from: &OsStr, folder: &OwnedFd, name: &OsStr, takes: Takes) -> Result<(), FileError> {
    if takes == Takes::Place {
        return Ok(renameat(from_folder, from, folder, name)?);
    }
    match renameat_with(from_folder, from, folder, name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do it in one step.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(renameat(from_folder, from, folder, name)?),
            found => found.map_err(FileError::from).and(Err(FileError::Exists)),
        },
        renamed => Ok(renamed?),
    }
}

fn sync(folder: &OwnedFd) -> Result<(), FileError> {
    Ok(File::from(reopen(folder, OFlags::DIRECTORY)?).sync_all()?)
}
