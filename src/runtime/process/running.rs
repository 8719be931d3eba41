//! An execution under way, as the daemon holds it.

use super::folder::{Folder, FolderError};
use super::{Ended, end_of, never_began, proc};
use crate::events::task::Supervisor;
use crate::words::hash::Hash;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::OnceCell;

/// A supervisor that lives, or did a moment ago. Dropping this ends nothing: the execution can be found again.
///
/// A supervisor that this daemon launched stays in the process table until [`Running::ended`] has returned.
#[derive(Debug)]
pub struct Running {
    folder: Folder,
    supervisor: Supervisor,
    /// By whose key its end is to be signed.
    signer: Option<Hash>,
    /// Names the supervisor for as long as it is held, whatever becomes of its number.
    pidfd: AsyncFd<OwnedFd>,
    /// Through which a supervisor that was just launched tells that it has begun.
    claimed: Option<Receiver>,
    begun: OnceCell<bool>,
}

impl Running {
    /// Takes hold of a child of this process that has not been reaped, and tells through `claimed` that it has begun.
    pub(super) fn launched(
        folder: Folder,
        (pid, claimed): (i32, OwnedFd),
        signer: Option<Hash>,
    ) -> Result<Self, FolderError> {
        let hold = || {
            let supervisor = proc::supervisor(pid)?.ok_or(io::ErrorKind::NotFound)?;
            Ok((supervisor, watch(pid)?.ok_or(io::ErrorKind::NotFound)?, Receiver::from_owned_fd(claimed)?))
        };
        let (supervisor, pidfd, claimed) = hold().map_err(FolderError::io(folder.path()))?;
        Ok(Self { folder, supervisor, signer, pidfd, claimed: Some(claimed), begun: OnceCell::new() })
    }

    /// Takes hold of a supervisor that has begun; none if it is gone.
    pub(super) fn adopt(
        folder: &Folder,
        supervisor: &Supervisor,
        signer: Option<Hash>,
    ) -> Result<Option<Self>, FolderError> {
        let find = || {
            let pidfd = watch(supervisor.pid)?;
            // The process that is held now is the one that has the number now, or had it last.
            let is_same = proc::supervisor(supervisor.pid)?.as_ref() == Some(supervisor);
            Ok(pidfd.filter(|_| is_same))
        };
        let Some(pidfd) = find().map_err(FolderError::io(folder.path()))? else { return Ok(None) };
        let (folder, supervisor, begun) = (folder.clone(), supervisor.clone(), OnceCell::new_with(Some(true)));
        Ok(Some(Self { folder, supervisor, signer, pidfd, claimed: None, begun }))
    }

    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Waits until the command is about to be started: true. False if it will never be.
    pub async fn begun(&self) -> bool {
        *self.begun.get_or_init(|| self.claimed()).await
    }

    async fn claimed(&self) -> bool {
        let Some(pipe) = &self.claimed else { return true };
        loop {
            // A pipe that cannot be waited for tells nothing more.
            if pipe.readable().await.is_err() {
                return false;
            }
            match pipe.try_read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Waits for the end and reads it. May be cancelled and called again; the answer stays the same.
    ///
    /// # Errors
    /// When the run folder cannot be read or written.
    pub async fn ended(&self) -> Result<Ended, FolderError> {
        self.gone().await.map_err(FolderError::io(self.folder.path()))?;
        self.reap().map_err(FolderError::io(self.folder.path()))?;
        if self.begun().await {
            return end_of(&self.folder, &self.supervisor, self.signer);
        }
        // It is gone, so nobody else may begin in its place either.
        self.folder.abandon()?;
        never_began(&self.folder)
    }

    async fn gone(&self) -> io::Result<()> {
        self.pidfd.readable().await.map(|_still_readable| ())
    }

    fn reap(&self) -> io::Result<()> {
        match waitid(Id::PIDFd(self.pidfd.get_ref().as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
            // Another daemon's child, or reaped by an earlier call.
            Err(nix::errno::Errno::ECHILD) => Ok(()),
            reaped => Ok(reaped.map(drop)?),
        }
    }

    /// Asks for the end: SIGTERM to the command and all its descendants, SIGKILL after the grace. A second call kills
    /// at once. The end itself comes through [`Running::ended`]. A supervisor that its command has stopped goes on.
    ///
    /// # Errors
    /// When the kernel refuses the signal; a supervisor that is gone is no error.
    pub fn stop(&self) -> io::Result<()> {
        match pidfd_send_signal(self.pidfd.get_ref(), Signal::TERM) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => Ok(sent.and_then(|()| pidfd_send_signal(self.pidfd.get_ref(), Signal::CONT))?),
        }
    }
}

/// None if there is no process with this number.
fn watch(pid: i32) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        opened => opened?,
    };
    // SAFETY: an owned descriptor stays open, and the same, until it is dropped.
    Ok(Some(unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?))
}
