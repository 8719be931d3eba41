//! The one door to the files that an agent, a repository or a skill names.
//!
//! - [`location`]: where a descriptor leads, whatever the path was called
//! - [`private`]: what of the home nobody may reach through a root
//! - [`write`](mod@write): new files, and the end of old ones
//!
//! **Invariant:** a [`Root`] is a folder that is opened once. The kernel resolves every path beneath its descriptor, and
//! follows no magic link. What was found is checked on its own descriptor before it is opened for reading, so nothing
//! can be put in its place in between: a regular file, of no file system of the kernel, that is not private to the home.
//! Opening a device or a pipe can have an effect or wait, so neither is opened at all.
//!
//! What it does not hold off: a network or FUSE file system that does not answer, and a hard link that somebody who may
//! read a file made of it inside the root. Where the text goes into a prompt unasked, a hard link is refused
//! ([`Root::read_alone`]); elsewhere hard links are ordinary (package stores, clones), and only those to files of the
//! home are refused.

mod location;
pub(in crate::runtime) mod private;
#[cfg(test)]
mod tests;
pub(in crate::runtime) mod write;

use location::Mounts;
use private::Private;
use rustix::fs::{AtFlags, Dir, FileType, FsWord, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat2, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A folder, held open, beneath which files are read and written.
pub(in crate::runtime) struct Root {
    folder: OwnedFd,
    path: PathBuf,
    private: Private,
    mounts: Mounts,
}

/// Why a file is not read or written. It is said of the path.
#[derive(Debug, thiserror::Error)]
pub(in crate::runtime) enum FileError {
    #[error("does not exist")]
    Missing,
    #[error("leads outside of the folder that it must be in")]
    Outside,
    #[error("lies in a folder that has been replaced by a symlink")]
    Replaced,
    #[error("is a symlink")]
    Symlink,
    #[error("is not a regular file")]
    NotRegular,
    #[error("is not a folder")]
    NotFolder,
    #[error("has more than one hard link, so it may be a file of somewhere else")]
    HardLink,
    #[error("belongs to a file system of the kernel, such as /proc")]
    Kernel,
    #[error("is private to the home of holon")]
    Private,
    #[error("belongs to git")]
    Git,
    #[error("already exists")]
    Exists,
    #[error("is longer than {0} bytes")]
    TooLong(u64),
    #[error("is not text in UTF-8")]
    NotText,
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::XDEV | Errno::LOOP => Self::Outside,
            Errno::NOTDIR => Self::NotFolder,
            Errno::EXIST => Self::Exists,
            _ => Self::Io(error.into()),
        }
    }
}

impl FileError {
    /// What to do about it, where there is something.
    pub(in crate::runtime) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("SearchFiles or a command lists files"),
            Self::Outside => Some("name a path inside it"),
            Self::Replaced => Some("attach the folder again by its real path"),
            Self::Symlink => Some("name the file that it leads to"),
            Self::NotRegular => Some("list folders with a command"),
            Self::HardLink => Some("replace it by a copy of its own"),
            Self::Git => Some("change it with a git command"),
            Self::TooLong(_) => Some("read a part of it with a command"),
            Self::NotFolder | Self::Kernel | Self::Private | Self::Exists | Self::NotText | Self::Io(_) => None,
        }
    }
}

/// What a folder holds.
pub(in crate::runtime) struct Entry {
    pub path: PathBuf,
    pub kind: FileType,
}

/// Beneath the root, and by no magic link.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// How often a path is resolved anew when the kernel saw a folder on it being moved.
const RESOLVE_TRIES: u32 = 64;

/// File systems whose files are views of the kernel or of processes, by their magic numbers (linux/magic.h).
const KERNEL_MAGIC: &[FsWord] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinux
    0x4341_5d53, // smack
    0x5a3c_69f0, // apparmor
    0x4249_4e4d, // binfmt_misc
    0x1980_0202, // mqueue
    0x1cd1,      // devpts
    0x6e73_6673, // nsfs
    0x0765_5821, // resctrl
];

impl Root {
    /// Opens the folder at `path`, which was resolved when it was chosen: it has not become a symlink since.
    pub(in crate::runtime) fn open(path: &Path, private: Private) -> Result<Self, FileError> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve).map_err(|error| match error {
            Errno::LOOP | Errno::XDEV => FileError::Replaced,
            _ => error.into(),
        })?;
        Ok(Self { folder, path: path.to_owned(), private, mounts: Mounts::default() })
    }

    pub(in crate::runtime) fn path(&self) -> &Path {
        &self.path
    }

    /// A regular file whole, if it has at most `bytes_max` bytes.
    pub(in crate::runtime) fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let (file, _) = self.open_regular(path, OFlags::empty())?;
        whole(file, bytes_max)
    }

    /// The same of a file that is no symlink, and its mode.
    pub(in crate::runtime) fn read_itself(&self, path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Mode), FileError> {
        let (file, about) = self.open_regular(path, OFlags::NOFOLLOW)?;
        Ok((whole(file, bytes_max)?, Mode::from_raw_mode(about.st_mode & 0o777)))
    }

    /// The same of a file that is no symlink and has no other name, and its mode.
    pub(in crate::runtime) fn read_own(&self, path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Mode), FileError> {
        let (file, about) = self.open_regular(path, OFlags::NOFOLLOW)?;
        one_name(&about)?;
        Ok((whole(file, bytes_max)?, Mode::from_raw_mode(about.st_mode & 0o777)))
    }

    /// The beginning of a regular file that has no other name.
    pub(in crate::runtime) fn read_alone(&self, path: &Path, bytes_max: usize) -> Result<Vec<u8>, FileError> {
        let (file, about) = self.open_regular(path, OFlags::empty())?;
        one_name(&about)?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether something is there, be it a symlink.
    pub(in crate::runtime) fn exists(&self, path: &Path) -> bool {
        self.pin(path, OFlags::NOFOLLOW, BENEATH).is_ok()
    }

    /// What the folder at `path` holds, sorted by name, and at most `entries_max` of it.
    pub(in crate::runtime) fn entries(&self, path: &Path, entries_max: usize) -> Result<Vec<Entry>, FileError> {
        let folder = self.pin(path, OFlags::DIRECTORY, BENEATH)?;
        self.check(&folder)?;
        let mut entries = Vec::new();
        for entry in Dir::new(reopen(&folder, OFlags::DIRECTORY)?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == entries_max {
                break;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                kind = FileType::from_raw_mode(statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode);
            }
            entries.push(Entry { path: path.join(name), kind });
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// A regular file that may be read, opened, and what it was when it was opened.
    fn open_regular(&self, path: &Path, how: OFlags) -> Result<(File, Stat), FileError> {
        let pinned = self.pin(path, how, BENEATH)?;
        let about = fstat(&pinned)?;
        let kind = FileType::from_raw_mode(about.st_mode);
        if kind == FileType::Symlink {
            return Err(FileError::Symlink);
        }
        if kind != FileType::RegularFile {
            return Err(FileError::NotRegular);
        }
        self.check(&pinned)?;
        if about.st_nlink > 1 && self.private.holds(&about)? {
            return Err(FileError::Private);
        }
        Ok((File::from(reopen(&pinned, OFlags::NONBLOCK | OFlags::NOCTTY)?), about))
    }

    /// Resolves a path without opening what is there. The kernel asks for another try where a folder was moved meanwhile.
    fn pin(&self, path: &Path, how: OFlags, resolve: ResolveFlags) -> Result<OwnedFd, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::PATH | OFlags::CLOEXEC | how;
        for _ in 1..RESOLVE_TRIES {
            match openat2(&self.folder, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                pinned => return Ok(pinned?),
            }
        }
        Ok(openat2(&self.folder, path, flags, Mode::empty(), resolve)?)
    }

    /// Whether a file or folder may be used, by where its descriptor leads.
    fn check(&self, pinned: impl AsFd) -> Result<(), FileError> {
        if KERNEL_MAGIC.contains(&fstatfs(&pinned)?.f_type) {
            return Err(FileError::Kernel);
        }
        if self.private.covers(&self.mounts, pinned)? {
            return Err(FileError::Private);
        }
        Ok(())
    }
}

/// The text of a file's bytes.
pub(in crate::runtime) fn text(bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|_| FileError::NotText)
}

/// Opens what is pinned: the same file, however its name has changed.
fn reopen(pinned: &OwnedFd, how: OFlags) -> Result<OwnedFd, FileError> {
    let path = location::of_descriptor(pinned.as_raw_fd());
    rustix::fs::open(path, how | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => FileError::Symlink,
        _ => FileError::Io(error.into()),
    })
}

fn one_name(about: &Stat) -> Result<(), FileError> {
    if about.st_nlink > 1 { Err(FileError::HardLink) } else { Ok(()) }
}

fn whole(file: File, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(FileError::TooLong(bytes_max)) } else { Ok(bytes) }
}
