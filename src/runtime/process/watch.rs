//! A supervisor at work: output, signals and the end of everything below it.
//!
//! | from    | when                                         | to      | doing |
//! |---------|----------------------------------------------|---------|-------|
//! | running | SIGTERM, or the command ended before others  | ending  | SIGTERM to all, once each |
//! | ending  | a second SIGTERM, or the grace is over       | killing | SIGKILL to all |
//! | killing | nothing helps any more                       | over    | the survivors are counted |
//! | any     | nobody is left                               | over    | |
//! | running, ending | the tree is beyond a limit           | killing | SIGKILL to all |

use super::folder::{End, ExitRecord, Spec};
use super::input::Feeder;
use super::limits::TreeLimits;
use super::output::Writer;
use super::proc::{self, Identity, Seen};
use super::supervise::{SuperviseError, log};
use super::usage::{FIRST_LOOK, Usage};
use crate::events::task::TreeLimit;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rustix::process as sys;
use std::collections::BTreeSet;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// Time that a process may take to go after SIGKILL, which only a device or a foreign owner can hold up.
const KILL_MS_MAX: u64 = 5_000;
/// How often those are looked for that were started while others were being stopped. What is left then is found again
/// when the first have ended.
const STOP_ROUNDS_MAX: usize = 64;
const READ_BYTES: usize = 64 * 1024;
/// Reads that empty the pipe at the end, though a survivor may go on filling it.
const LAST_READS_MAX: usize = 64;

/// A command that has been started.
pub(super) struct Running {
    pub(super) command: i32,
    pub(super) pipe: PipeReader,
    pub(super) output: Writer,
    /// None for a command that takes no input, or no more.
    pub(super) input: Option<Feeder>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Ending { until: Instant },
    Killing { until: Instant },
    Over,
}

pub(super) struct Watch {
    running: Running,
    signals: SignalFd,
    grace: Duration,
    began: Instant,
    phase: Phase,
    pipe_ended: bool,
    /// How the command ended, and after how long.
    end: Option<(End, Duration)>,
    /// Who has had SIGTERM; a second one would tell many programs to give up their own grace.
    told: BTreeSet<Identity>,
    /// SIGTERMs that have come and are not acted on yet.
    stops: u32,
    /// Whether descendants may have ended, or changed parents, since they were last looked at.
    changed: bool,
    limits: TreeLimits,
    /// When to look next at what the tree uses.
    look_at: Instant,
    /// The limit that it was beyond, and how much that allows.
    exceeded: Option<(TreeLimit, u64)>,
}

impl Watch {
    pub(super) fn new(running: Running, signals: SignalFd, spec: &Spec) -> Self {
        let began = Instant::now();
        Self {
            running,
            signals,
            grace: Duration::from_millis(spec.grace_ms),
            began,
            phase: Phase::Running,
            pipe_ended: false,
            end: None,
            told: BTreeSet::new(),
            stops: 0,
            changed: false,
            limits: spec.limits,
            look_at: began + FIRST_LOOK,
            exceeded: None,
        }
    }

    /// Stays until the command and all its descendants have ended.
    pub(super) fn run(mut self) -> Result<ExitRecord, SuperviseError> {
        let mut buffer = vec![0; READ_BYTES];
        self.feed().map_err(SuperviseError::system("feeding the command"))?;
        while self.phase != Phase::Over {
            if self.wait().map_err(SuperviseError::system("waiting"))? {
                self.feed().map_err(SuperviseError::system("feeding the command"))?;
            }
            self.read_output(&mut buffer).map_err(SuperviseError::system("reading the output"))?;
            self.read_signals().map_err(SuperviseError::system("reading signals"))?;
            let nobody_is_left = self.reap().map_err(SuperviseError::system("reaping"))?;
            self.look().map_err(SuperviseError::system("looking at what the command uses"))?;
            self.advance(nobody_is_left).map_err(SuperviseError::system("looking for descendants"))?;
        }
        for _ in 0..LAST_READS_MAX {
            if !self.read_output(&mut buffer).map_err(SuperviseError::system("reading the output"))? {
                break;
            }
        }
        self.record().map_err(SuperviseError::system("looking for descendants"))
    }

    /// Waits for whatever comes next; true if the command can be fed on.
    fn wait(&self) -> io::Result<bool> {
        let mut watched = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if !self.pipe_ended {
            watched.push(PollFd::new(self.running.pipe.as_fd(), PollFlags::POLLIN));
        }
        let input = self.running.input.as_ref().map(Feeder::awaited);
        let is_fed = input.is_some();
        watched.extend(input);
        match poll(&mut watched, self.timeout()) {
            // Stopped and continued: nothing has come.
            Err(Errno::EINTR) => Ok(false),
            polled => polled.map(|_| is_fed && watched.last().and_then(PollFd::any) != Some(false)).map_err(Into::into),
        }
    }

    /// Gives the command what it takes of its input; after the last of it the input ends.
    fn feed(&mut self) -> io::Result<()> {
        if let Some(input) = &mut self.running.input
            && !input.feed()?
        {
            self.running.input = None;
        }
        Ok(())
    }

    fn timeout(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Running => self.look_at,
            Phase::Ending { until } => until.min(self.look_at),
            Phase::Killing { until } => until,
            Phase::Over => return PollTimeout::NONE,
        };
        // Rounded up: to wake just before the time would mean to go round until it comes.
        let rest = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX)
    }

    /// Takes one piece of output; false if there is none to take.
    fn read_output(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if self.pipe_ended {
            return Ok(false);
        }
        match self.running.pipe.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            read => {
                let count = read?;
                self.running.output.write(&buffer[..count]);
                self.pipe_ended = count == 0;
                Ok(count > 0)
            }
        }
    }

    fn read_signals(&mut self) -> nix::Result<()> {
        while let Some(signal) = self.signals.read_signal()? {
            self.changed = true;
            self.stops += u32::from(signal.ssi_signo == Signal::SIGTERM as u32);
        }
        Ok(())
    }

    /// Takes the ends of all children that have ended; true if there are no children at all.
    fn reap(&mut self) -> rustix::io::Result<bool> {
        loop {
            match sys::wait(sys::WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.running.command => {
                    self.end = Some((end(status), self.began.elapsed()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(false),
                Err(rustix::io::Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks at what the tree uses, when it is time.
    fn look(&mut self) -> io::Result<()> {
        let is_watched = matches!(self.phase, Phase::Running | Phase::Ending { .. });
        if !is_watched || Instant::now() < self.look_at {
            return Ok(());
        }
        let usage = Usage::of_descendants(sys::getpid().as_raw_nonzero().get(), &self.limits)?;
        self.exceeded = usage.exceeds(&self.limits);
        self.look_at = Instant::now() + usage.next_look(&self.limits);
        Ok(())
    }

    fn advance(&mut self, nobody_is_left: bool) -> io::Result<()> {
        let stops = std::mem::take(&mut self.stops);
        let next = self.next(nobody_is_left, stops);
        let changed = std::mem::take(&mut self.changed) || next != self.phase;
        self.phase = next;
        if changed && matches!(next, Phase::Killing { .. }) && self.end.is_none() {
            // One call reaches most of what multiplies at once; whoever has left the group is looked for.
            kill_group(self.running.command);
        }
        match self.phase {
            Phase::Ending { .. } if changed => self.terminate()?,
            Phase::Killing { .. } if changed => kill_all()?,
            Phase::Running | Phase::Ending { .. } | Phase::Killing { .. } | Phase::Over => {}
        }
        // Only now, so that a command that waits for its input learns of the signal first.
        if self.phase != Phase::Running {
            self.running.input = None;
        }
        Ok(())
    }

    fn next(&self, nobody_is_left: bool, stops: u32) -> Phase {
        if nobody_is_left {
            return Phase::Over;
        }
        let now = Instant::now();
        let kill = Phase::Killing { until: now + Duration::from_millis(KILL_MS_MAX) };
        match self.phase {
            Phase::Running | Phase::Ending { .. } if self.exceeded.is_some() => kill,
            Phase::Running if stops > 1 => kill,
            Phase::Running if stops > 0 || self.end.is_some() => Phase::Ending { until: now + self.grace },
            Phase::Ending { until } if stops > 0 || until <= now => kill,
            // As long as some end there is hope for the others.
            Phase::Killing { .. } if self.changed => kill,
            Phase::Killing { until } if until <= now => Phase::Over,
            Phase::Running | Phase::Ending { .. } | Phase::Killing { .. } | Phase::Over => self.phase,
        }
    }

    fn terminate(&mut self) -> io::Result<()> {
        let descendants = descendants()?;
        if self.told.is_empty() && self.end.is_none() && terminate_group(self.running.command) {
            let group = descendants.iter().filter(|process| process.group == self.running.command);
            self.told.extend(group.map(Seen::identity));
        }
        for process in descendants {
            if self.told.insert(process.identity()) {
                send(process, sys::Signal::TERM);
            }
        }
        Ok(())
    }

    fn record(self) -> io::Result<ExitRecord> {
        let (output, kept) = self.running.output.finish();
        if let Err(error) = kept {
            log(format_args!("the output could not be kept whole: {error}"));
        }
        let (end, duration) = self.end.unwrap_or((End::Unknown, self.began.elapsed()));
        let end = self.exceeded.map_or(end, |(limit, max)| End::LimitExceeded { limit, max });
        let survivors = u32::try_from(descendants()?.len()).unwrap_or(u32::MAX);
        Ok(ExitRecord { end, duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), output, survivors })
    }
}

fn end(status: sys::WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Code(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Unknown,
    }
}

/// Tells a group at once, so that a shell does not outlive its child long enough to start the next. False if it could
/// not be told, as when its leader has left it.
fn terminate_group(leader: i32) -> bool {
    signal_group(leader, sys::Signal::TERM)
}

fn kill_group(leader: i32) {
    signal_group(leader, sys::Signal::KILL);
}

/// `leader` has not been reaped, so its number is nobody else's.
fn signal_group(leader: i32, signal: sys::Signal) -> bool {
    let group = sys::Pid::from_raw(leader).expect("a child's number is not zero");
    sys::kill_process_group(group, signal).is_ok()
}

/// Kills all descendants. They are stopped first: one that is stopped starts no other while the rest are looked for.
fn kill_all() -> io::Result<()> {
    let mut stopped = BTreeSet::new();
    for _ in 0..STOP_ROUNDS_MAX {
        let mut new = descendants()?;
        new.retain(|process| stopped.insert(process.identity()));
        if new.is_empty() {
            break;
        }
        new.into_iter().for_each(|process| send(process, sys::Signal::STOP));
    }
    descendants()?.into_iter().for_each(|process| send(process, sys::Signal::KILL));
    Ok(())
}

fn descendants() -> io::Result<Vec<Seen>> {
    proc::descendants(sys::getpid().as_raw_nonzero().get())
}

/// A process that we may not signal is left, and counted at the end.
fn send(process: Seen, signal: sys::Signal) {
    if let Err(error) = process.send(signal) {
        log(format_args!("process {} could not be signalled: {error}", process.pid));
    }
}
