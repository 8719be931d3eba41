//! Commands that outlive the daemon. Linux only.
//!
//! Each command runs under a supervisor of its own: `holon supervise FOLDER`, in its own session, with nothing of the
//! daemon's but the run folder (`folder.rs`). The supervisor keeps the output and the exit; the daemon may die at any
//! point and the next one finds the execution again ([`Processes::find`]).
//!
//! **Invariant:** a run folder leads to at most one execution, and its end is one of: an exit record; lost; never begun.

mod entry;
mod environment;
mod excerpt;
mod folder;
mod input;
mod leftover;
mod limits;
mod memory;
mod output;
mod peer;
mod proc;
mod program;
mod record;
mod running;
mod signature;
mod supervise;
mod usage;
mod watch;

pub use environment::{AGENT_ID_VARIABLE, CommandEnvironment};
pub use excerpt::{Excerpt, unfinished};
pub use folder::{FolderError, Spec};
pub use limits::{Enforcement, TreeGuarantee, TreeLimits, guarantee};
pub use memory::keep_memory_private;
pub use peer::{PeerProcess, TcpSocket, tcp_socket};
pub use running::Running;
pub use signature::RunKey;
pub use supervise::supervise;

use crate::events::task::{Exit, Supervisor};
use crate::runtime::source::random;
use crate::words::hash::Hash;
use folder::{Begun, ExitRecord, Folder, Standing};
use nix::libc;
use output::View;
use peer::Supervisors;
use program::Program;
use signature::KeySource;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The run folders under one root, and the program that supervises them.
#[derive(Clone, Debug)]
pub struct Processes {
    run_root: PathBuf,
    program: Program,
    /// The soft limit of open files that commands get; this process's own when it is not given.
    descriptors: Option<u64>,
    supervisors: Supervisors,
    keys: KeySource,
}

/// An execution, as the ledger knows it.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The name of its run folder.
    pub name: String,
    /// Whose signature its records have; without one nothing is believed.
    pub signer: Option<Hash>,
    /// Who supervises it; none until that is recorded.
    pub supervisor: Option<Supervisor>,
}

/// What became of an execution.
#[derive(Debug)]
pub enum Found {
    Running(Running),
    Ended(Ended),
    /// It did not begin, and never will.
    NeverBegan,
    /// It began, and its end is unknown: its supervisor was killed, or the machine went down.
    Lost(Ended),
}

impl From<Ended> for Found {
    fn from(ended: Ended) -> Self {
        if ended.exit == Exit::Lost { Self::Lost(ended) } else { Self::Ended(ended) }
    }
}

/// The end of an execution, with all there is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub exit: Exit,
    /// From the command's start to its own end; none when it is unknown.
    pub duration_ms: Option<u64>,
    /// Bytes that the command wrote, kept or not.
    pub output_bytes: u64,
    /// Whether the file at `output` lacks some of them.
    pub cut: bool,
    /// The kept output: head, a line about what is missing, tail. Not there if the command was not started.
    pub output: PathBuf,
    /// Descendants that not even SIGKILL could end.
    pub survivors: u32,
}

/// Why a command was not launched. Nothing of it runs.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("the supervisor {program}: {source}")]
    Spawn { program: PathBuf, source: io::Error },
    /// The command may have run for a moment.
    #[error("the supervisor could not be watched, so it was ended: {0}")]
    Unheld(FolderError),
}

/// Why a command was not given its input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It may begin any moment.
    #[error("the command has not begun")]
    NotBegun,
    #[error("the command has ended")]
    Ended,
    #[error("the command takes no input")]
    NotAccepted,
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Processes {
    /// Run folders are made in `run_root`, which must exist. `program` is this process's own binary when it is not given,
    /// and stays so whatever is put in its place.
    ///
    /// Descriptors that this process has inherited are marked close-on-exec: a supervisor outlives us, and must not hold
    /// open what belongs to whoever started us.
    ///
    /// # Errors
    /// When the paths cannot be made absolute, our own binary cannot be found, or the kernel is older than 5.11.
    pub fn new(run_root: &Path, program: Option<&Path>) -> io::Result<Self> {
        keep_descriptors_to_ourselves()?;
        Ok(Self {
            run_root: std::path::absolute(run_root)?,
            program: program.map_or_else(Program::own, Program::at)?,
            descriptors: None,
            supervisors: Supervisors::default(),
            keys: KeySource::new(random()?),
        })
    }

    /// Gives commands a soft limit of open files other than this process's own.
    #[must_use]
    pub fn with_descriptors(self, soft: Option<u64>) -> Self {
        Self { descriptors: soft, ..self }
    }

    /// The key of what is called `name`: the same for as long as this process lives, and unknown to all others.
    #[must_use]
    pub fn key(&self, name: &str) -> RunKey {
        self.keys.key(name)
    }

    /// Starts a supervisor for `spec`, which will sign with `key`. `name` is a plain file name that is not in use.
    ///
    /// Needs a tokio runtime, and blocks for a few file system calls and a spawn, none of which wait for the disk.
    ///
    /// # Errors
    /// When the run folder or the process cannot be made; the name may be used by now.
    pub fn launch(&self, name: &str, spec: &Spec, key: &RunKey) -> Result<Running, LaunchError> {
        let folder = self.folder(name);
        folder.create(spec)?;
        let mut child = self.spawn(&folder)?;
        self.supervisors.add(child.id().cast_signed(), name);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // A supervisor that is gone already tells so by not having begun.
        let _ = stdin.map_or(Ok(()), |stdin| key.give(stdin));
        let claimed = stdout.map(OwnedFd::from).expect("its output is piped");
        Running::launched(folder, (child.id().cast_signed(), claimed), Some(key.signer())).map_err(|error| {
            end_child(&mut child);
            LaunchError::Unheld(error)
        })
    }

    fn spawn(&self, folder: &Folder) -> Result<Child, LaunchError> {
        let log = File::create_new(folder.log()).map_err(FolderError::io(&folder.log()))?;
        let mut command = self.program.command();
        command.arg("supervise").arg(folder.path()).env_clear().current_dir("/");
        if let Some(descriptors) = self.descriptors {
            command.arg("--descriptors").arg(descriptors.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        command.spawn().map_err(|source| LaunchError::Spawn { program: self.program.path().to_owned(), source })
    }

    /// Finds an execution again, whoever launched it. A launch that has not begun by then will not begin any more.
    ///
    /// Once the ledger says who supervises, it alone is believed. Until then a signed claim is; a claim that is not
    /// signed is somebody else's, and the execution is ended with an end that is unknown.
    ///
    /// Needs a tokio runtime, and blocks for a few file system calls.
    ///
    /// # Errors
    /// When the run folder cannot be read or written, or its supervisor cannot be watched from here.
    pub fn find(&self, execution: &Execution) -> Result<Found, FolderError> {
        let found = self.look_for(execution)?;
        if let Found::Running(running) = &found {
            self.supervisors.add(running.supervisor().pid, &execution.name);
        }
        Ok(found)
    }

    fn look_for(&self, execution: &Execution) -> Result<Found, FolderError> {
        let (folder, signer) = (self.folder(&execution.name), execution.signer);
        if let Some(supervisor) = &execution.supervisor {
            return supervised(&folder, supervisor, signer);
        }
        if !folder.path().exists() {
            return Ok(Found::NeverBegan);
        }
        loop {
            match folder.standing(signer) {
                Ok(Standing::Unclaimed) => drop(folder.abandon()?),
                Ok(Standing::Abandoned) => return Ok(Found::NeverBegan),
                Ok(Standing::Begun(begun)) => return supervised(&folder, &begun.into(), signer),
                Err(error) => {
                    tracing::error!(%error, "a claim is not its supervisor's, so the execution is ended");
                    return Ok(Found::Lost(end_unclaimed(&folder)?));
                }
            }
        }
    }

    /// Ends an execution, as [`Running::stop`] does. One that is not launched yet will not be: its name is taken.
    ///
    /// # Errors
    /// When the run folder cannot be read or written, or the kernel refuses the signal.
    pub fn stop(&self, execution: &Execution) -> Result<(), FolderError> {
        let folder = self.folder(&execution.name);
        folder.occupy()?;
        match self.find(execution)? {
            Found::Running(running) => running.stop().map_err(FolderError::io(folder.path())),
            Found::Ended(_) | Found::NeverBegan | Found::Lost(_) => Ok(()),
        }
    }

    /// Whether a run folder of this name is there.
    pub fn is_known(&self, name: &str) -> bool {
        self.folder(name).path().exists()
    }

    /// Shows what an execution has written so far, or wrote, in at most `bytes_max` bytes of text.
    ///
    /// # Errors
    /// When the run folder cannot be read.
    pub fn output_so_far(&self, name: &str, bytes_max: usize) -> Result<Excerpt, FolderError> {
        self.view(name, |view| excerpt::excerpt(view, bytes_max))
    }

    /// What is kept of an execution's output from the byte `offset` on, in at most `bytes_max` bytes, and how many bytes
    /// are kept in all.
    ///
    /// # Errors
    /// When the run folder cannot be read.
    pub fn output_from(&self, name: &str, offset: u64, bytes_max: u64) -> Result<(Vec<u8>, u64), FolderError> {
        self.view(name, |view| {
            let kept = view.kept_bytes();
            let from = offset.min(kept);
            Ok((view.read(from, from.saturating_add(bytes_max).min(kept))?, kept))
        })
    }

    /// The file of all the kept output; none if there is none.
    ///
    /// # Errors
    /// When it is not a regular file in the run folder, or cannot be opened.
    pub fn output_file(&self, name: &str) -> Result<Option<File>, FolderError> {
        let folder = self.folder(name);
        output::open(folder.path()).map_err(FolderError::io(&output::output_path(folder.path())))
    }

    fn view<T: Default>(&self, name: &str, look: impl FnOnce(&View) -> io::Result<T>) -> Result<T, FolderError> {
        let folder = self.folder(name);
        let ended = folder.recorded_output()?;
        let view = View::open(folder.path(), ended);
        let seen = view.and_then(|view| view.as_ref().map_or(Ok(T::default()), look));
        seen.map_err(FolderError::io(&output::output_path(folder.path())))
    }

    /// Gives a command input: `bytes`, which stand at `offset` of all its input. Giving them again changes nothing.
    /// They are written down here and fed to the command as it takes them.
    ///
    /// # Errors
    /// When the command has not begun, has ended or takes no input, or the run folder cannot be read or written.
    pub fn give_input(&self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), InputError> {
        self.with_input(name, |run| input::give(run, offset, bytes))
    }

    /// Tells a command that its input ends with what it was given.
    ///
    /// # Errors
    /// As [`Processes::give_input`].
    pub fn end_input(&self, name: &str) -> Result<(), InputError> {
        self.with_input(name, input::end)
    }

    /// Only a supervisor that has begun is sure to be the one that feeds the command.
    fn with_input(&self, name: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), InputError> {
        let folder = self.folder(name);
        let claim = folder.claimed_by()?;
        let lives = |begun: &Begun| proc::seen(begun.pid).is_some_and(|there| there.start_time == begun.start_time);
        match claim {
            None => Err(InputError::NotBegun),
            Some(begun) if !lives(&begun) => Err(InputError::Ended),
            Some(_) => write(folder.path()).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => InputError::NotAccepted,
                _ => InputError::Folder(FolderError::io(folder.path())(error)),
            }),
        }
    }

    /// Forgets an execution that has ended and whose end is durable elsewhere.
    ///
    /// # Errors
    /// When something of the folder cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), FolderError> {
        let folder = self.folder(name);
        match fs::remove_dir_all(folder.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(FolderError::io(folder.path())),
        }
    }

    /// The names of all run folders, in order.
    ///
    /// # Errors
    /// When the run root cannot be read.
    pub fn names(&self) -> Result<Vec<String>, FolderError> {
        let read = || fs::read_dir(&self.run_root)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
        let names = read().map_err(FolderError::io(&self.run_root))?;
        // A name that is not UTF-8 is none of ours.
        let mut names = names.into_iter().filter_map(|name| name.into_string().ok()).collect::<Vec<_>>();
        names.sort();
        Ok(names)
    }

    fn folder(&self, name: &str) -> Folder {
        let path = Path::new(name);
        assert!(path.file_name() == Some(path.as_os_str()), "a run's name is a plain file name: {name}");
        Folder::new(self.run_root.join(name))
    }
}

fn keep_descriptors_to_ourselves() -> io::Result<()> {
    const FIRST_AFTER_STREAMS: libc::c_uint = 3;
    let (all, mark) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: nothing is closed; the flags of descriptors are no memory.
    let marked = unsafe { libc::syscall(libc::SYS_close_range, FIRST_AFTER_STREAMS, all, mark) };
    if marked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An execution that has begun under `supervisor`.
fn supervised(folder: &Folder, supervisor: &Supervisor, signer: Option<Hash>) -> Result<Found, FolderError> {
    match Running::adopt(folder, supervisor, signer)? {
        Some(running) => Ok(Found::Running(running)),
        None => Ok(Found::from(end_of(folder, supervisor, signer)?)),
    }
}

/// Ends an execution of which it is not known who supervises it.
fn end_unclaimed(folder: &Folder) -> Result<Ended, FolderError> {
    let ended = leftover::end_supervisors(folder.path()).map_err(FolderError::io(Path::new("/proc")))?;
    lost(folder, &ended)
}

fn never_began(folder: &Folder) -> Result<Ended, FolderError> {
    let reason = format!("its supervisor did not begin: {}", folder.log_text()?);
    Ok(Ended {
        exit: Exit::NotStarted(reason),
        duration_ms: Some(0),
        output_bytes: 0,
        cut: false,
        output: output::output_path(folder.path()),
        survivors: 0,
    })
}

/// The end of an execution whose supervisor is gone. What it did not sign is not its end.
fn end_of(folder: &Folder, supervisor: &Supervisor, signer: Option<Hash>) -> Result<Ended, FolderError> {
    let exit = folder.exit(signer).unwrap_or_else(|error| {
        tracing::error!(%error, "an exit record is not its supervisor's, so the end of its command is unknown");
        None
    });
    match exit {
        Some(record) => Ok(ended(folder, record)),
        None => lost(folder, std::slice::from_ref(supervisor)),
    }
}

fn ended(folder: &Folder, record: ExitRecord) -> Ended {
    Ended {
        exit: record.end.into(),
        duration_ms: Some(record.duration_ms),
        output_bytes: record.output.bytes,
        cut: record.output.left_out_bytes() > 0,
        output: output::output_path(folder.path()),
        survivors: record.survivors,
    }
}

/// The head of the output is all that is in its file; [`Processes::output_so_far`] still finds the tail.
fn lost(folder: &Folder, supervisors: &[Supervisor]) -> Result<Ended, FolderError> {
    let spec = folder.spec()?;
    let end = || supervisors.iter().try_for_each(|supervisor| leftover::end(supervisor, &spec));
    end().map_err(FolderError::io(Path::new("/proc")))?;
    let output = output::output_path(folder.path());
    let view = View::open(folder.path(), None).map_err(FolderError::io(&output))?;
    let extent = view.map(|view| view.extent()).unwrap_or_default();
    let cut = extent.bytes > extent.head_bytes;
    Ok(Ended { exit: Exit::Lost, duration_ms: None, output_bytes: extent.bytes, cut, output, survivors: 0 })
}

/// Ends a supervisor that cannot be waited for; its command goes with it.
fn end_child(child: &mut Child) {
    if let Err(error) = child.kill().and_then(|()| child.wait()) {
        tracing::warn!(%error, pid = child.id(), "a supervisor could not be ended");
    }
}
