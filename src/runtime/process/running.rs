//! An execution under way, as the daemon holds it.

use super::folder::{Begun, Folder, FolderError, Standing};
use super::proc;
use super::{Ended, settle};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A supervisor that lives, or did a moment ago. Dropping this ends nothing: the execution can be found again.
///
/// A supervisor that this daemon launched stays in the process table until [`Running::ended`] has returned.
#[derive(Debug)]
pub struct Running {
    folder: Folder,
    /// Names the supervisor for as long as it is held, whatever becomes of its number.
    supervisor: AsyncFd<OwnedFd>,
}

impl Running {
    /// Takes hold of the process `pid`, which must not have been reaped.
    pub(super) fn hold(folder: Folder, pid: i32) -> Result<Self, FolderError> {
        let open = || {
            let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
            watch(pidfd_open(pid, PidfdFlags::empty())?)
        };
        let supervisor = open().map_err(FolderError::io(folder.path()))?;
        Ok(Self { folder, supervisor })
    }

    /// Takes hold of the supervisor that holds the claim; none if it is gone after all.
    pub(super) fn adopt(folder: &Folder, begun: &Begun) -> Result<Option<Self>, FolderError> {
        let held = Self::hold(folder.clone(), begun.pid);
        let same = proc::seen(begun.pid).is_some_and(|there| there.start_time == begun.start_time);
        // Whoever still has the lock lived when the number was looked up, so that the number was its own.
        if !matches!(folder.standing()?, Standing::Held(_)) {
            return Ok(None);
        }
        let foreign = || FolderError::Foreign { path: folder.path().to_owned(), pid: begun.pid };
        if same { held.map(Some) } else { Err(foreign()) }
    }

    /// Waits for the end and reads it. May be cancelled and called again; the answer stays the same.
    ///
    /// # Errors
    /// When the run folder cannot be read or written.
    pub async fn ended(&self) -> Result<Ended, FolderError> {
        self.gone().await.map_err(FolderError::io(self.folder.path()))?;
        self.reap().map_err(FolderError::io(self.folder.path()))?;
        settle(&self.folder)
    }

    async fn gone(&self) -> io::Result<()> {
        self.supervisor.readable().await.map(|_still_readable| ())
    }

    fn reap(&self) -> io::Result<()> {
        match waitid(Id::PIDFd(self.supervisor.get_ref().as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            // Another daemon's child, or reaped by an earlier call.
            Err(nix::errno::Errno::ECHILD) => Ok(()),
            reaped => Ok(reaped.map(drop)?),
        }
    }

    /// Asks for the end: SIGTERM to the command and all its descendants, SIGKILL after the grace. A second call kills
    /// at once. The end itself comes through [`Running::ended`].
    ///
    /// # Errors
    /// When the kernel refuses the signal; a supervisor that is gone is no error.
    pub fn stop(&self) -> io::Result<()> {
        match pidfd_send_signal(self.supervisor.get_ref(), Signal::TERM) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same, until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?)
}
