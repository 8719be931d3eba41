//! The run folder: how a daemon and a supervisor that may never meet agree on one execution.
//!
//! | file             | written by            | means |
//! |------------------|-----------------------|-------|
//! | `spec.json`      | the daemon            | what is to be run |
//! | `claim.json`     | whoever is first      | begun by this supervisor, alive while it holds the file's lock; or abandoned |
//! | `input/`         | the daemon            | see [`super::input`] |
//! | `output`, `tail` | the supervisor        | see [`super::output`] |
//! | `exit.json`      | the supervisor        | how it ended; written last |
//! | `supervise.log`  | the supervisor        | why it could not do its work |
//!
//! **Invariant:** `claim.json` comes to be once, by a hard link to a file that is complete and, for a supervisor,
//! locked already. So nobody ever sees a claim without its lock, and an abandoned run cannot begin later.

use super::output::Extent;
use super::{input, proc};
use crate::events::task::Exit;
use crate::words::id::EventSeq;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Room kept for the exit record, so that a disk that fills up while the command runs does not lose its end.
const EXIT_BYTES_RESERVED: usize = 4 * 1024;
/// What is shown of the log of a supervisor that did not begin.
const LOG_BYTES_SHOWN: u64 = 1024;

/// One execution of a command, in full: nothing is added from the surroundings of whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Spec {
    pub attempt: EventSeq,
    pub cmd: String,
    /// The shell that reads `cmd`; `/bin/sh` when absent.
    pub shell: Option<String>,
    pub login: bool,
    /// Absolute.
    pub workdir: PathBuf,
    /// The whole environment of the command; see [`super::CommandEnvironment`].
    pub environment: BTreeMap<String, String>,
    pub accepts_input: bool,
    /// Most output kept, its head and its tail together.
    pub output_bytes_max: u64,
    /// Time between SIGTERM and SIGKILL.
    pub grace_ms: u64,
}

/// Why a run folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} does not hold what it should: {source}")]
    Malformed { path: PathBuf, source: serde_json::Error },
    /// The claim is held, and yet its process cannot be watched from here, as when it is in another process namespace.
    #[error("{path} is held by process {pid}, which cannot be watched from here")]
    Foreign { path: PathBuf, pid: i32 },
}

impl FolderError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Claim {
    Begun(Begun),
    Abandoned,
}

/// The supervisor that began, named so that its process number alone cannot be mistaken for another's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct Begun {
    pub(super) pid: i32,
    /// Clock ticks between the machine's boot and the start of the process.
    pub(super) start_time: u64,
    pub(super) boot_id: String,
    pub(super) attempt: EventSeq,
}

/// How the command itself ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Code(i32),
    Signal(i32),
    NotStarted(String),
    /// It could not be ended: not even SIGKILL made it go.
    Unknown,
}

impl From<End> for Exit {
    fn from(end: End) -> Self {
        match end {
            End::Code(code) => Self::Code(code),
            End::Signal(signal) => Self::Signal(signal),
            End::NotStarted(reason) => Self::NotStarted(reason),
            End::Unknown => Self::Lost,
        }
    }
}

/// The last act of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct ExitRecord {
    pub(super) end: End,
    pub(super) duration_ms: u64,
    pub(super) output: Extent,
    /// Descendants that could not be ended.
    pub(super) survivors: u32,
}

/// What the claim of a run folder says, as of the moment it was read.
pub(super) enum Standing {
    Unclaimed,
    Abandoned,
    /// Its supervisor lived when the lock was tried.
    Held(Begun),
    /// Its supervisor is gone for good.
    Gone(Begun),
}

#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("supervise.log")
    }

    /// Makes the folder and writes what is to be run. It is an error if the folder is there already.
    pub(super) fn create(&self, spec: &Spec) -> Result<(), FolderError> {
        self.make().map_err(FolderError::io(&self.path))?;
        if spec.accepts_input {
            input::make(&self.path).map_err(FolderError::io(&self.path))?;
        }
        let temporary = self.path.join("spec.tmp");
        let path = self.path.join("spec.json");
        fs::write(&temporary, json(&path, spec)?).map_err(FolderError::io(&temporary))?;
        fs::rename(&temporary, &path).map_err(FolderError::io(&path))
    }

    /// Makes the folder unless it is there, so that nobody can create it any more.
    pub(super) fn occupy(&self) -> Result<(), FolderError> {
        match self.make() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(FolderError::io(&self.path)),
        }
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.path)
    }

    pub(super) fn spec(&self) -> Result<Spec, FolderError> {
        let path = self.path.join("spec.json");
        let missing = || FolderError::io(&path)(io::ErrorKind::NotFound.into());
        read_json(&path)?.ok_or_else(missing)
    }

    /// None while there is no end to be read.
    pub(super) fn exit(&self) -> Result<Option<ExitRecord>, FolderError> {
        read_json(&self.path.join("exit.json"))
    }

    /// Claims the folder for this process; none if it is claimed already. The claim holds while the file is open.
    pub(super) fn begin(&self, attempt: EventSeq) -> Result<Option<File>, FolderError> {
        let begun =
            || proc::this_process().map(|(pid, start_time, boot_id)| Begun { pid, start_time, boot_id, attempt });
        self.claim(&Claim::Begun(begun().map_err(FolderError::io(Path::new("/proc")))?))
    }

    /// Sees to it that nobody begins any more; false if somebody has claimed the folder before.
    pub(super) fn abandon(&self) -> Result<bool, FolderError> {
        Ok(self.claim(&Claim::Abandoned)?.is_some())
    }

    fn claim(&self, claim: &Claim) -> Result<Option<File>, FolderError> {
        let path = self.path.join("claim.json");
        let temporary = self.temporary("claim");
        let text = json(&path, claim)?;
        let linked = write_locked(&temporary, &text).and_then(|file| link_once(&temporary, &path, file));
        let claimed = linked.map_err(FolderError::io(&path))?;
        self.sync()?;
        Ok(claimed)
    }

    pub(super) fn standing(&self) -> Result<Standing, FolderError> {
        let path = self.path.join("claim.json");
        let Some(file) = open_if_there(&path)? else { return Ok(Standing::Unclaimed) };
        match parse(&path, &file)? {
            Claim::Abandoned => Ok(Standing::Abandoned),
            Claim::Begun(begun) => match file.try_lock_shared() {
                Ok(()) => Ok(Standing::Gone(begun)),
                Err(TryLockError::WouldBlock) => Ok(Standing::Held(begun)),
                Err(TryLockError::Error(source)) => Err(FolderError::Io { path, source }),
            },
        }
    }

    /// Takes the room that the exit record will need.
    pub(super) fn reserve_exit(&self) -> Result<ExitFile, FolderError> {
        let temporary = self.temporary("exit");
        let reserve = || {
            let mut file = File::create_new(&temporary)?;
            file.write_all(&[b' '; EXIT_BYTES_RESERVED])?;
            Ok(file)
        };
        let file = reserve().map_err(FolderError::io(&temporary))?;
        Ok(ExitFile { folder: self.clone(), temporary, file })
    }

    /// What the supervisor said about itself, for people: the beginning of its log.
    pub(super) fn log_text(&self) -> Result<String, FolderError> {
        let Some(file) = open_if_there(&self.log())? else { return Ok(String::new()) };
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_SHOWN).read_to_end(&mut bytes).map_err(FolderError::io(&self.log()))?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// A name that no other process and no other thread uses.
    fn temporary(&self, stem: &str) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.path.join(format!("{stem}.{}.{number}.tmp", std::process::id()))
    }

    fn sync(&self) -> Result<(), FolderError> {
        File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(FolderError::io(&self.path))
    }
}

/// The file that will be the exit record, with its room on the disk.
pub(super) struct ExitFile {
    folder: Folder,
    temporary: PathBuf,
    file: File,
}

impl ExitFile {
    pub(super) fn record(self, record: &ExitRecord) -> Result<(), FolderError> {
        let path = self.folder.path.join("exit.json");
        self.publish(&path, &json(&path, record)?).map_err(FolderError::io(&path))?;
        self.folder.sync()
    }

    fn publish(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        self.file.write_all_at(text, 0)?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_all()?;
        fs::rename(&self.temporary, path)
    }

    pub(super) fn discard(self) -> Result<(), FolderError> {
        fs::remove_file(&self.temporary).map_err(FolderError::io(&self.temporary))
    }
}

fn write_locked(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()?;
    file.lock()?;
    Ok(file)
}

fn link_once(temporary: &Path, path: &Path, file: File) -> io::Result<Option<File>> {
    let linked = fs::hard_link(temporary, path);
    fs::remove_file(temporary)?;
    match linked {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

fn json<T: Serialize>(path: &Path, value: &T) -> Result<Vec<u8>, FolderError> {
    serde_json::to_vec(value).map_err(|source| FolderError::Malformed { path: path.to_owned(), source })
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FolderError> {
    open_if_there(path)?.map(|file| parse(path, &file)).transpose()
}

fn parse<T: DeserializeOwned>(path: &Path, mut file: &File) -> Result<T, FolderError> {
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(FolderError::io(path))?;
    serde_json::from_str(&text).map_err(|source| FolderError::Malformed { path: path.to_owned(), source })
}

fn open_if_there(path: &Path) -> Result<Option<File>, FolderError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FolderError::io(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(root.path().to_owned());
        (root, folder)
    }

    #[test]
    fn a_folder_is_claimed_once() {
        let (_root, folder) = folder();
        assert!(matches!(folder.standing(), Ok(Standing::Unclaimed)));
        assert!(matches!(folder.abandon(), Ok(true)));
        assert!(matches!(folder.begin(EventSeq(1)), Ok(None)));
        assert!(matches!(folder.abandon(), Ok(false)));
        assert!(matches!(folder.standing(), Ok(Standing::Abandoned)));
    }

    #[test]
    fn a_claim_holds_as_long_as_its_file_is_open() {
        let (_root, folder) = folder();
        let claim = folder.begin(EventSeq(7)).expect("readable").expect("unclaimed");
        assert!(matches!(folder.standing(), Ok(Standing::Held(_))));
        drop(claim);
        let Ok(Standing::Gone(begun)) = folder.standing() else { panic!("still held") };
        assert_eq!((begun.pid, begun.attempt), (std::process::id().cast_signed(), EventSeq(7)));
    }
}
