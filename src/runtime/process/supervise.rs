//! The body of `holon supervise FOLDER`: one command, from its claim to its exit record.
//!
//! One thread, no async runtime: a supervisor costs little and has nothing of the daemon's to lose.

use super::folder::{End, ExitRecord, Folder, FolderError, Spec};
use super::input::Feeder;
use super::limits::ResourceLimits;
use super::memory::keep_memory_private;
use super::output::{Extent, Writer};
use super::signature::RunKey;
use super::watch::{Running, Watch};
use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process as sys;
use std::fmt;
use std::io::{self, PipeWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

const SHELL_DEFAULT: &str = "/bin/sh";

/// Why a supervisor could not do its work. It goes to the log in the run folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum SuperviseError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{attempted}: {source}")]
    System { attempted: &'static str, source: io::Error },
}

impl SuperviseError {
    pub(super) fn system<E: Into<io::Error>>(attempted: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { attempted, source: source.into() }
    }
}

/// Why a command was not started. It becomes the recorded reason.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("the working folder {0} is not an absolute path")]
    RelativeWorkdir(PathBuf),
    #[error("the working folder {0}: {1}")]
    Workdir(PathBuf, io::Error),
    #[error("the output file: {0}")]
    Output(io::Error),
    #[error("its input and output: {0}")]
    Pipes(io::Error),
    #[error("the shell {0}: {1}")]
    Shell(String, io::Error),
}

/// Runs what `folder` asks for, if nobody has claimed it, and records how it ended.
///
/// The signals, the session and the children of the whole process become the supervisor's: it has nothing else to do.
/// `descriptors` is the soft limit of open files that the command gets.
#[must_use]
pub fn supervise(folder: &Path, descriptors: Option<u64>) -> ExitCode {
    match limit_descriptors(descriptors).and_then(|()| run(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format_args!("holon supervise {}: {error}", folder.display()));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to the supervisor's log. The log may be on the very disk that is full: the line is lost then, and the
/// command goes on.
pub(super) fn log(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The daemon may have raised its own limit, which programs that use `select` cannot bear.
fn limit_descriptors(soft: Option<u64>) -> Result<(), SuperviseError> {
    let Some(soft) = soft else { return Ok(()) };
    let maximum = sys::getrlimit(sys::Resource::Nofile).maximum;
    let limited = sys::setrlimit(sys::Resource::Nofile, sys::Rlimit { current: Some(soft), maximum });
    limited.map_err(SuperviseError::system("limiting the open files"))
}

fn run(path: &Path) -> Result<(), SuperviseError> {
    keep_memory_private().map_err(SuperviseError::system("keeping its memory private"))?;
    let key = RunKey::take(io::stdin().lock()).map_err(SuperviseError::system("taking the key of the execution"))?;
    let signals = take_signals().map_err(SuperviseError::system("taking the signals"))?;
    stand_alone().map_err(SuperviseError::system("becoming the reaper of all descendants"))?;
    take_precedence();
    let folder = Folder::new(path.to_owned());
    let spec = folder.spec()?;
    let exit = folder.reserve_exit()?;
    if !folder.begin(spec.attempt, &key)? {
        return Ok(exit.discard()?);
    }
    tell_begun();
    let record = match start(&folder, &spec) {
        Ok(running) => Watch::new(running, signals, &spec).run()?,
        Err(reason) => not_started(&reason),
    };
    Ok(exit.record(&record, &key)?)
}

/// Tells the daemon that the command is about to be started. One that has died meanwhile does not need to know.
fn tell_begun() {
    let mut told = io::stdout();
    let _ = told.write_all(b"!").and_then(|()| told.flush());
}

/// Blocks every signal and reads the two that matter, so that a hang-up or an interrupt does nothing.
/// What the daemon was told to ignore is forgotten, since commands would inherit it and reaping would break.
fn take_signals() -> nix::Result<SignalFd> {
    SigSet::all().thread_block()?;
    let settable = |signal: &Signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
    for each in Signal::iterator().filter(settable) {
        // SAFETY: the default action is no code of ours.
        unsafe { signal(each, SigHandler::SigDfl) }?;
    }
    let wanted = SigSet::from_iter([Signal::SIGCHLD, Signal::SIGTERM]);
    SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Leaves the daemon's session, and takes in every descendant whose parent dies.
fn stand_alone() -> rustix::io::Result<()> {
    match sys::setsid() {
        // The leader of a group, as when a shell starts us by hand, has a session that it cannot leave.
        Err(rustix::io::Errno::PERM) => {}
        left => drop(left?),
    }
    sys::set_child_subreaper(Some(sys::getpid()))
}

/// Runs before the processes of the command where that is allowed, as it is to root: among thousands of them a
/// supervisor waits for the processor longer than they need to multiply. Ordinary users are slowed down by the kernel's
/// own limit instead. What is started from here has the usual priority again.
fn take_precedence() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the parameter and keeps nothing of it. Where it refuses, all goes on as before.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const lowest) };
}

fn not_started(reason: &StartError) -> ExitRecord {
    ExitRecord { end: End::NotStarted(reason.to_string()), duration_ms: 0, output: Extent::default(), survivors: 0 }
}

fn start(folder: &Folder, spec: &Spec) -> Result<Running, StartError> {
    check_workdir(&spec.workdir)?;
    let output = Writer::create(folder.path(), spec.output_bytes_max).map_err(StartError::Output)?;
    let (pipe, written) = io::pipe().map_err(StartError::Pipes)?;
    rustix::io::ioctl_fionbio(&pipe, true).map_err(|error| StartError::Pipes(error.into()))?;
    let (stdin, input) = input(folder, spec).map_err(StartError::Pipes)?;
    let command = spawn(spec, stdin, written)?;
    Ok(Running { command: command.id().cast_signed(), pipe, output, input })
}

fn check_workdir(workdir: &Path) -> Result<(), StartError> {
    if !workdir.is_absolute() {
        return Err(StartError::RelativeWorkdir(workdir.to_owned()));
    }
    let found = workdir.metadata().map_err(|error| StartError::Workdir(workdir.to_owned(), error))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(StartError::Workdir(workdir.to_owned(), io::ErrorKind::NotADirectory.into()))
}

/// The command's standard input, and who feeds it.
fn input(folder: &Folder, spec: &Spec) -> io::Result<(Stdio, Option<Feeder>)> {
    if !spec.accepts_input {
        return Ok((Stdio::null(), None));
    }
    let (stdin, pipe) = io::pipe()?;
    Ok((stdin.into(), Some(Feeder::open(folder.path(), pipe)?)))
}

fn spawn(spec: &Spec, input: Stdio, output: PipeWriter) -> Result<Child, StartError> {
    let shell = spec.shell.as_deref().unwrap_or(SHELL_DEFAULT);
    let errors = output.try_clone().map_err(StartError::Pipes)?;
    let mut command = Command::new(shell);
    command.arg(if spec.login { "-lc" } else { "-c" }).arg(&spec.cmd);
    command.current_dir(&spec.workdir).env_clear().envs(&spec.environment);
    command.stdin(input).stdout(output).stderr(errors).process_group(0);
    let (supervisor, limits) = (sys::getpid(), ResourceLimits::of(&spec.limits));
    // SAFETY: between fork and exec there are only system calls, and nothing is allocated.
    unsafe { command.pre_exec(move || prepare(supervisor, limits)) };
    command.spawn().map_err(|error| StartError::Shell(shell.to_owned(), error))
}

/// Ties the command's life to its supervisor's, bounds it, and gives it the usual signals.
fn prepare(supervisor: sys::Pid, limits: ResourceLimits) -> io::Result<()> {
    sys::set_parent_process_death_signal(Some(sys::Signal::KILL))?;
    if sys::getppid() != Some(supervisor) {
        return Err(io::ErrorKind::NotFound.into());
    }
    limits.apply()?;
    Ok(SigSet::empty().thread_set_mask()?)
}
