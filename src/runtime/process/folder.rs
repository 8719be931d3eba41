//! The run folder: how a daemon and a supervisor that may never meet agree on one execution.
//!
//! | file             | written by            | means |
//! |------------------|-----------------------|-------|
//! | `spec.json`      | the daemon            | what is to be run |
//! | `claim.json`     | whoever is first      | begun by this supervisor, which signs it; or abandoned |
//! | `input/`         | the daemon            | see [`super::input`] |
//! | `output`, `tail` | the supervisor        | see [`super::output`] |
//! | `exit.json`      | the supervisor        | how it ended, signed; written last |
//! | `supervise.log`  | the supervisor        | why it could not do its work |
//!
//! The three `.json` files are records ([`super::record`]); all files are opened with care ([`super::entry`]).
//!
//! A command may write here, as the same user: what counts is what the execution's key has signed
//! ([`super::signature`]), and once the ledger says who supervises, the claim is not asked any more.
//!
//! **Invariant:** `claim.json` comes to be once, by a hard link to a file that is complete already. So an abandoned run
//! cannot begin later.

use super::limits::TreeLimits;
use super::output::Extent;
use super::record::Record;
use super::signature::RunKey;
use super::{entry, input, proc, record};
use crate::events::task::{Exit, Supervisor, TreeLimit};
use crate::words::hash::Hash;
use crate::words::id::EventSeq;
use crate::words::limit::{RUN_RECORD_BYTES_MAX, RUN_SPEC_BYTES_MAX};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Room kept for the exit record, so that a disk that fills up while the command runs does not lose its end.
const EXIT_BYTES_RESERVED: usize = 4 * 1024;
/// What is shown of the log of a supervisor that did not begin.
const LOG_BYTES_SHOWN: u64 = 1024;

const SPEC: &str = "spec.json";
const CLAIM: &str = "claim.json";
const EXIT: &str = "exit.json";
const LOG: &str = "supervise.log";

/// One execution of a command, in full: nothing is added from the surroundings of whoever runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
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
    pub limits: TreeLimits,
}

/// Why a run folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} does not hold what it should: {source}")]
    Malformed { path: PathBuf, source: serde_json::Error },
    #[error("{path} was written by a newer release of holon: it has version {version}, and this release reads 1")]
    Newer { path: PathBuf, version: u32 },
    #[error("{path} was not written by the supervisor of its command")]
    Forged { path: PathBuf },
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct Begun {
    pub(super) pid: i32,
    /// Clock ticks between the machine's boot and the start of the process.
    pub(super) start_time: u64,
    pub(super) boot_id: String,
    pub(super) attempt: EventSeq,
}

impl From<Begun> for Supervisor {
    fn from(begun: Begun) -> Self {
        Self { pid: begun.pid, start_time: begun.start_time, machine_boot: begun.boot_id }
    }
}

/// How the command itself ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Code(i32),
    Signal(i32),
    NotStarted(String),
    /// It could not be ended: not even SIGKILL made it go.
    #[default]
    Unknown,
    /// The supervisor ended it, because its tree was beyond a limit.
    LimitExceeded {
        limit: TreeLimit,
        max: u64,
    },
}

impl From<End> for Exit {
    fn from(end: End) -> Self {
        match end {
            End::Code(code) => Self::Code(code),
            End::Signal(signal) => Self::Signal(signal),
            End::NotStarted(reason) => Self::NotStarted(reason),
            End::Unknown => Self::Lost,
            End::LimitExceeded { limit, max } => Self::LimitExceeded { limit, max },
        }
    }
}

/// The last act of a supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
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
    Begun(Begun),
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
        self.path.join(LOG)
    }

    /// Makes the folder and writes what is to be run. It is an error if the folder is there already.
    pub(super) fn create(&self, spec: &Spec) -> Result<(), FolderError> {
        self.make().map_err(FolderError::io(&self.path))?;
        if spec.accepts_input {
            input::make(&self.path).map_err(FolderError::io(&self.path))?;
        }
        let temporary = self.path.join("spec.tmp");
        let path = self.path.join(SPEC);
        fs::write(&temporary, record::text(&path, spec, None)?).map_err(FolderError::io(&temporary))?;
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
        let missing = || FolderError::io(&self.path.join(SPEC))(io::ErrorKind::NotFound.into());
        let read: Option<Record<Spec>> = record::read(&self.path, SPEC, RUN_SPEC_BYTES_MAX)?;
        read.map(|read| read.record).ok_or_else(missing)
    }

    /// The end, as the supervisor with the key of `signer` recorded it; none while there is none.
    pub(super) fn exit(&self, signer: Option<Hash>) -> Result<Option<ExitRecord>, FolderError> {
        let read = record::read(&self.path, EXIT, RUN_RECORD_BYTES_MAX)?;
        read.map(|read| self.signed(EXIT, signer, read)).transpose()
    }

    fn signed<T>(&self, name: &str, signer: Option<Hash>, read: Record<T>) -> Result<T, FolderError> {
        let is_signed = signer.is_some() && read.signer == signer;
        if is_signed { Ok(read.record) } else { Err(FolderError::Forged { path: self.path.join(name) }) }
    }

    /// Where the kept output lies, as the end tells that was recorded by whoever wrote it; none while there is none. What
    /// is wrong here misleads whoever reads the output, which is the command's own anyway.
    pub(super) fn recorded_output(&self) -> Result<Option<Extent>, FolderError> {
        let read: Option<Record<ExitRecord>> = record::read(&self.path, EXIT, RUN_RECORD_BYTES_MAX)?;
        Ok(read.map(|read| read.record.output))
    }

    /// Who says that it has begun, whether that is signed or not; none if nobody does.
    pub(super) fn claimed_by(&self) -> Result<Option<Begun>, FolderError> {
        let read: Option<Record<Claim>> = record::read(&self.path, CLAIM, RUN_RECORD_BYTES_MAX)?;
        Ok(read.and_then(|read| match read.record {
            Claim::Begun(begun) => Some(begun),
            Claim::Abandoned => None,
        }))
    }

    /// Claims the folder for this process; false if it is claimed already.
    pub(super) fn begin(&self, attempt: EventSeq, key: &RunKey) -> Result<bool, FolderError> {
        let begun =
            || proc::this_process().map(|(pid, start_time, boot_id)| Begun { pid, start_time, boot_id, attempt });
        self.claim(&Claim::Begun(begun().map_err(FolderError::io(Path::new("/proc")))?), Some(key))
    }

    /// Sees to it that nobody begins any more; false if somebody has claimed the folder before.
    pub(super) fn abandon(&self) -> Result<bool, FolderError> {
        self.claim(&Claim::Abandoned, None)
    }

    fn claim(&self, claim: &Claim, key: Option<&RunKey>) -> Result<bool, FolderError> {
        let path = self.path.join(CLAIM);
        let temporary = self.temporary("claim");
        let text = record::text(&path, claim, key)?;
        let linked = write_synced(&temporary, &text).and_then(|()| link_once(&temporary, &path));
        let claimed = linked.map_err(FolderError::io(&path))?;
        self.sync()?;
        Ok(claimed)
    }

    /// What the claim says. That a supervisor has begun is believed only of the one with the key of `signer`; that the
    /// run was abandoned is believed of anybody, since no daemon keeps a key.
    pub(super) fn standing(&self, signer: Option<Hash>) -> Result<Standing, FolderError> {
        let read: Option<Record<Claim>> = record::read(&self.path, CLAIM, RUN_RECORD_BYTES_MAX)?;
        let Some(read) = read else { return Ok(Standing::Unclaimed) };
        if read.record == Claim::Abandoned {
            return Ok(Standing::Abandoned);
        }
        match self.signed(CLAIM, signer, read)? {
            Claim::Abandoned => Ok(Standing::Abandoned),
            Claim::Begun(begun) => Ok(Standing::Begun(begun)),
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
        let mut bytes = Vec::new();
        let mut read = || match entry::read(&self.path, LOG)? {
            Some(file) => file.take(LOG_BYTES_SHOWN).read_to_end(&mut bytes).map(drop),
            None => Ok(()),
        };
        read().map_err(FolderError::io(&self.log()))?;
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
    pub(super) fn record(self, record: &ExitRecord, key: &RunKey) -> Result<(), FolderError> {
        let path = self.folder.path.join(EXIT);
        self.publish(&path, &record::text(&path, record, Some(key))?).map_err(FolderError::io(&path))?;
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

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// False if `path` is there already.
fn link_once(temporary: &Path, path: &Path) -> io::Result<bool> {
    let linked = fs::hard_link(temporary, path);
    fs::remove_file(temporary)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::process::signature::KeySource;

    fn folder() -> (tempfile::TempDir, Folder) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(root.path().join("main-task-3-41"));
        folder.occupy().expect("writable");
        (root, folder)
    }

    /// What this release writes, and has to read for as long as a command may run.
    const GOLDEN: [(&str, &str); 3] = [
        (SPEC, include_str!("../../../tests/it/golden/run_folder/spec.json")),
        (CLAIM, include_str!("../../../tests/it/golden/run_folder/claim.json")),
        (EXIT, include_str!("../../../tests/it/golden/run_folder/exit.json")),
    ];

    fn spec() -> Spec {
        Spec {
            attempt: EventSeq(41),
            cmd: "cargo test".into(),
            shell: Some("/bin/bash".into()),
            login: true,
            workdir: "/work".into(),
            environment: [("PATH".to_owned(), "/bin".to_owned())].into(),
            accepts_input: true,
            output_bytes_max: 1024,
            grace_ms: 5000,
            limits: TreeLimits { processes_max: 1, memory_bytes_max: 2, file_bytes_max: 3 },
        }
    }

    fn begun() -> Begun {
        Begun { pid: 4711, start_time: 815, boot_id: "7c9e6679".into(), attempt: EventSeq(41) }
    }

    fn exit() -> ExitRecord {
        let output = Extent { bytes: 30, head_bytes: 10, tail_bytes: 10 };
        ExitRecord { end: End::Code(3), duration_ms: 1200, output, survivors: 1 }
    }

    fn key() -> RunKey {
        KeySource::new([7; 32]).key("main-task-3")
    }

    #[test]
    fn the_records_are_written_as_golden() {
        let (_root, folder) = folder();
        let (key, at) = (key(), |name| folder.path.join(name));
        let written = [
            record::text(&at(SPEC), &spec(), None),
            record::text(&at(CLAIM), &Claim::Begun(begun()), Some(&key)),
            record::text(&at(EXIT), &exit(), Some(&key)),
        ];
        for ((name, golden), written) in GOLDEN.into_iter().zip(written) {
            let written = String::from_utf8(written.expect("written")).expect("text");
            assert_eq!(written, golden.trim_end(), "{name}");
        }
    }

    #[test]
    fn golden_records_are_read() {
        let (_root, folder) = folder();
        for (name, golden) in GOLDEN {
            fs::write(folder.path.join(name), golden).expect("writable");
        }
        let signer = Some(key().signer());
        assert_eq!(folder.spec().expect("readable"), spec());
        assert_eq!(folder.exit(signer).expect("readable"), Some(exit()));
        assert!(matches!(folder.standing(signer), Ok(Standing::Begun(found)) if found == begun()));
    }

    #[test]
    fn what_another_key_or_none_has_signed_does_not_count() {
        let (_root, folder) = folder();
        for (name, golden) in GOLDEN {
            fs::write(folder.path.join(name), golden).expect("writable");
        }
        for signer in [None, Some(Hash::of(b"another"))] {
            assert!(matches!(folder.exit(signer), Err(FolderError::Forged { .. })));
            assert!(matches!(folder.standing(signer), Err(FolderError::Forged { .. })));
        }
        fs::write(folder.path.join(EXIT), GOLDEN[2].1.replace("\"code\":3", "\"code\":0")).expect("writable");
        assert!(matches!(folder.exit(Some(key().signer())), Err(FolderError::Forged { .. })));
    }

    #[test]
    fn what_a_record_lacks_has_its_default_and_what_is_unknown_is_left_aside() {
        let (_root, folder) = folder();
        let text = r#"{"v":1,"record":{"end":{"code":3},"later":[]},"more":1}"#;
        fs::write(folder.path.join(EXIT), text).expect("writable");
        let read: Record<ExitRecord> = record::read(&folder.path, EXIT, 1_000).expect("readable").expect("there");
        assert_eq!(read.record, ExitRecord { end: End::Code(3), ..ExitRecord::default() });
    }

    #[test]
    fn a_record_of_a_newer_release_is_told_as_such() {
        let (_root, folder) = folder();
        fs::write(folder.path.join(EXIT), r#"{"v":2,"ended":true}"#).expect("writable");
        let error = folder.exit(None).expect_err("unknown").to_string();
        assert!(error.contains("newer release") && error.contains("version 2"), "{error}");
    }

    #[test]
    fn a_folder_is_claimed_once() {
        let (_root, folder) = folder();
        let signer = Some(key().signer());
        assert!(matches!(folder.standing(signer), Ok(Standing::Unclaimed)));
        assert!(matches!(folder.abandon(), Ok(true)));
        assert!(matches!(folder.begin(EventSeq(1), &key()), Ok(false)));
        assert!(matches!(folder.abandon(), Ok(false)));
        assert!(matches!(folder.standing(signer), Ok(Standing::Abandoned)));
    }

    #[test]
    fn a_claim_names_its_supervisor() {
        let (_root, folder) = folder();
        assert!(matches!(folder.begin(EventSeq(7), &key()), Ok(true)));
        let Ok(Standing::Begun(begun)) = folder.standing(Some(key().signer())) else { panic!("not begun") };
        assert_eq!((begun.pid, begun.attempt), (std::process::id().cast_signed(), EventSeq(7)));
    }
}
