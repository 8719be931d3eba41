//! A home: the folder that holds one runtime's ledgers, payloads and run folders.

use super::StoreError;
use super::owner::{self, Closed};
use super::redb::RedbStore;
use crate::words::id::Boot;
use nix::fcntl::{Flock, FlockArg};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of the home's layout. A home with a higher one was written by a newer holon.
pub const FORMAT: u64 = 1;

const FORMAT_NAME: &str = "format";
const BOOTS_NAME: &str = "boots";

/// How often, and how far apart, a lock is tried before it counts as another holon's.
pub(super) const LOCK_TRIES: u32 = 50;
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A home that nobody else serves for as long as this lives.
pub struct Home {
    paths: Paths,
    /// Held until the process ends, however it ends.
    _lock: Flock<File>,
}

/// Where things lie in a home.
#[derive(Clone, Debug)]
pub struct Paths {
    pub home: PathBuf,
}

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} belongs to another user (uid {owner})")]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{path} is a symlink")]
    Link { path: PathBuf },
    #[error("{path} is not a regular file of its own")]
    NoFile { path: PathBuf },
    #[error("{path} is in use by another holon")]
    Locked { path: PathBuf },
    #[error("{path} has format {found}, and this holon knows formats up to {FORMAT}")]
    Newer { path: PathBuf, found: u64 },
    #[error("{path} holds no ledger")]
    NoLedger { path: PathBuf },
    #[error("the ledger file {path} does not open: {error}")]
    Ledger { path: PathBuf, error: StoreError },
}

impl HomeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check that the home exists and may be written; --home or HOLON_HOME names another one",
            Self::Foreign { .. } => "name a home of your own with --home or HOLON_HOME; chown this one if it is yours",
            Self::Link { .. } => "name the folder itself, and keep its files in it",
            Self::NoFile { .. } => "find out who put it there, and remove it",
            Self::Locked { .. } => "stop the other holon, or use another home with --home",
            Self::Newer { .. } => "use the holon that wrote it, or a newer one",
            Self::NoLedger { .. } => "name the home with --home or HOLON_HOME",
            Self::Ledger { error: StoreError::Unfinished, .. } => {
                "run holon serve on this home once: it mends the file as it opens it"
            }
            Self::Ledger { .. } => {
                "restore ledger.redb from a backup made while no holon ran; keep the damaged file for inspection"
            }
        }
    }
}

impl Paths {
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }

    pub fn ledger(&self) -> PathBuf {
        self.home.join("ledger.redb")
    }

    pub fn blobs(&self) -> PathBuf {
        self.home.join("blobs")
    }

    /// Run folders of commands.
    pub fn runs(&self) -> PathBuf {
        self.home.join("run")
    }

    pub fn socket(&self) -> PathBuf {
        self.home.join("holon.sock")
    }

    /// What only its owner may read.
    pub fn secrets(&self) -> PathBuf {
        self.home.join("secrets.json")
    }

    pub fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// Where agents have their folders.
    pub fn agents(&self) -> PathBuf {
        self.home.join("agents")
    }

    /// The home folder of an agent.
    pub fn agent(&self, id: &crate::words::id::AgentId) -> PathBuf {
        self.agents().join(id.as_str())
    }

    /// Whether a holon serves the home. Nothing is made to find out.
    pub fn is_locked(&self) -> bool {
        let held = |file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err();
        open_itself(OpenOptions::new().read(true), &self.lock()).is_ok_and(held)
    }

    fn lock(&self) -> PathBuf {
        self.home.join("lock")
    }
}

impl Home {
    /// Makes the folder if it is not there, closes it to other users, and takes its lock.
    pub fn open(home: &Path) -> Result<Self, HomeError> {
        Self::close(home)?;
        let home = home.canonicalize().map_err(|error| failed(home, error))?;
        let paths = Paths::new(home);
        let path = paths.lock();
        let file = open_itself(OpenOptions::new().create(true).truncate(false).write(true).mode(0o600), &path)?;
        let mut lock = lock_patiently(file).ok_or_else(|| HomeError::Locked { path: paths.home.clone() })?;
        // For people who wonder who holds it; nothing reads it.
        let noted = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        noted.map_err(|error| failed(&path, error))?;
        for folder in [paths.runs(), paths.blobs(), paths.agents(), paths.home.join("worktrees")] {
            create_private(&folder)?;
        }
        Ok(Self { paths, _lock: lock })
    }

    /// Makes the folder if it is not there, and closes it to other users. Whoever serves a home does this before anything
    /// of it is read.
    pub fn close(home: &Path) -> Result<(), HomeError> {
        create_private(home)?;
        for Closed { path, mode } in owner::close(home)? {
            tracing::warn!(path = %path.display(), mode = format!("{mode:03o}"), "closed to other users");
        }
        Ok(())
    }

    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Opens the ledger and counts this boot.
    pub fn open_store(&self) -> Result<(RedbStore, Boot), HomeError> {
        let path = self.paths.ledger();
        check_file(&path)?;
        let fault = |error| HomeError::Ledger { path: path.clone(), error };
        let store = RedbStore::open(&path).map_err(fault)?;
        // A newer file is left as it is, whatever its tables look like.
        check_format(&store, &path)?;
        store.prepare().map_err(fault)?;
        store.set_number(FORMAT_NAME, FORMAT).map_err(fault)?;
        let boot = store.number(BOOTS_NAME).map_err(fault)?.unwrap_or(0) + 1;
        store.set_number(BOOTS_NAME, boot).map_err(fault)?;
        Ok((store, Boot(boot)))
    }
}

/// Opens a home's ledger for reading, while nobody serves it.
pub fn open_read_only(home: &Path) -> Result<RedbStore, HomeError> {
    let path = Paths::new(home.to_owned()).ledger();
    if !check_file(&path)? {
        return Err(HomeError::NoLedger { path: home.to_owned() });
    }
    let store = RedbStore::open_read_only(&path).map_err(|error| HomeError::Ledger { path: path.clone(), error })?;
    check_format(&store, &path)?;
    Ok(store)
}

fn check_format(store: &RedbStore, path: &Path) -> Result<(), HomeError> {
    let found = store.number(FORMAT_NAME).map_err(|error| HomeError::Ledger { path: path.to_owned(), error })?;
    match found {
        Some(found) if found > FORMAT => Err(HomeError::Newer { path: path.to_owned(), found }),
        Some(_) | None => Ok(()),
    }
}

/// Whether the file is there; what is there is a file, and no symlink.
fn check_file(path: &Path) -> Result<bool, HomeError> {
    match path.symlink_metadata() {
        Ok(about) if about.is_file() => Ok(true),
        Ok(about) if about.is_symlink() => Err(HomeError::Link { path: path.to_owned() }),
        Ok(_) => Err(HomeError::NoFile { path: path.to_owned() }),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(failed(path, error)),
    }
}

/// Opens a file by the one name that it has: no symlink is followed, and no pipe waited for.
fn open_itself(options: &mut OpenOptions, path: &Path) -> Result<File, HomeError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => HomeError::Link { path: path.to_owned() },
        // A pipe that nobody reads from.
        Some(code) if code == Errno::NXIO.raw_os_error() => HomeError::NoFile { path: path.to_owned() },
        _ => failed(path, error),
    })?;
    let about = file.metadata().map_err(|error| failed(path, error))?;
    if about.is_file() && about.nlink() == 1 { Ok(file) } else { Err(HomeError::NoFile { path: path.to_owned() }) }
}

/// Takes the lock, waiting a moment for it: a child that a killed holon was about to turn into another program holds
/// what its parent held, until it is that program.
fn lock_patiently(mut file: File) -> Option<Flock<File>> {
    for _ in 0..LOCK_TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((held, _)) => file = held,
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    None
}

/// Makes a folder, unless it is there, that only its owner may enter.
fn create_private(path: &Path) -> Result<(), HomeError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> HomeError {
    HomeError::Io { path: path.to_owned(), error }
}
