//! Whose a home is, and who may enter it.
//!
//! **Invariant:** a home is served by its owner alone, and nobody else may enter it. Whoever could write to a home could
//! choose the models, the environment and the ledger of its owner, so this is seen to before anything of it is read:
//! the folder is opened once, no symlink is followed, and owners and modes are those of what was opened.

use super::home::HomeError;
use rustix::fs::{FileType, Mode, OFlags, Stat, fchmod, fstat, openat};
use rustix::io::Errno;
use std::fs::{self, Permissions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What nobody but the owner may do with a home, or with what is in it.
const OTHERS: u32 = 0o077;

/// What holon goes by in a home. Each is its owner's, and no symlink.
const NAMES: &[&str] = &[
    "config.toml",
    "ledger.redb",
    "lock",
    "secrets.json",
    "AGENTS.md",
    "agents",
    "blobs",
    "run",
    "skills",
    "triggers",
    "worktrees",
];

/// Something that was open to other users, and is not any more.
#[derive(Debug)]
pub struct Closed {
    pub path: PathBuf,
    pub mode: u32,
}

/// Whose a home is, as somebody who only reads it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub owner: u32,
    pub mode: u32,
}

impl Standing {
    pub fn is_own(self) -> bool {
        self.owner == rustix::process::geteuid().as_raw()
    }

    /// Whether nobody else may enter it.
    pub fn is_private(self) -> bool {
        self.mode & OTHERS == 0
    }

    /// Whether nobody else can have written to it.
    pub fn is_trusted(self) -> bool {
        self.is_own() && self.mode & 0o022 == 0
    }
}

/// Closes a home to other users, and what holon goes by in it; refuses one that is another user's, or has something of
/// another user's in it.
pub fn close(home: &Path) -> Result<Vec<Closed>, HomeError> {
    let folder = open(home)?;
    let about = own(home, fstat(&folder).map_err(|error| failed(home, error))?)?;
    let mut closed = Vec::new();
    if about.st_mode & OTHERS != 0 {
        fchmod(&folder, Mode::from_raw_mode(0o700)).map_err(|error| failed(home, error))?;
        closed.push(Closed { path: home.to_owned(), mode: about.st_mode & 0o777 });
    }
    for name in NAMES {
        closed.extend(close_entry(home, &folder, name)?);
    }
    Ok(closed)
}

/// Whose the home is and who may enter it; none when it is not there.
pub fn look(home: &Path) -> Result<Option<Standing>, HomeError> {
    let folder = match rustix::fs::open(home, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        folder => folder.map_err(|error| failed(home, error))?,
    };
    let about = fstat(&folder).map_err(|error| failed(home, error))?;
    Ok(Some(Standing { owner: about.st_uid, mode: about.st_mode & 0o777 }))
}

fn open(home: &Path) -> Result<OwnedFd, HomeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(home, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => HomeError::Link { path: home.to_owned() },
        Errno::NOTDIR if home.is_symlink() => HomeError::Link { path: home.to_owned() },
        // It can be another user's without being ours to look into.
        Errno::ACCESS => match look(home) {
            Ok(Some(standing)) if !standing.is_own() => {
                HomeError::Foreign { path: home.to_owned(), owner: standing.owner }
            }
            _ => failed(home, error),
        },
        _ => failed(home, error),
    })
}

/// The entry is pinned, and what was pinned is looked at and altered: a file that is opened could make us wait.
fn close_entry(home: &Path, folder: &OwnedFd, name: &str) -> Result<Option<Closed>, HomeError> {
    let path = home.join(name);
    let entry = match openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        entry => entry.map_err(|error| failed(&path, error))?,
    };
    let about = own(&path, fstat(&entry).map_err(|error| failed(&path, error))?)?;
    if FileType::from_raw_mode(about.st_mode) == FileType::Symlink {
        // Guidance says for itself which links it follows; skills are the owner's to keep where they like.
        return if ["AGENTS.md", "skills"].contains(&name) { Ok(None) } else { Err(HomeError::Link { path }) };
    }
    if about.st_mode & OTHERS == 0 {
        return Ok(None);
    }
    let mode = about.st_mode & 0o777;
    let pinned = format!("/proc/self/fd/{}", entry.as_raw_fd());
    fs::set_permissions(pinned, Permissions::from_mode(mode & !OTHERS))
        .map_err(|error| HomeError::Io { path: path.clone(), error })?;
    Ok(Some(Closed { path, mode }))
}

fn own(path: &Path, about: Stat) -> Result<Stat, HomeError> {
    if about.st_uid == rustix::process::geteuid().as_raw() {
        Ok(about)
    } else {
        Err(HomeError::Foreign { path: path.to_owned(), owner: about.st_uid })
    }
}

fn failed(path: &Path, error: Errno) -> HomeError {
    HomeError::Io { path: path.to_owned(), error: error.into() }
}
