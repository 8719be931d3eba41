//! The program that supervises commands: this process's own binary, held open.

use nix::libc;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// What a supervisor is called in the process table, whatever path its program was started by.
const NAME: &str = "holon";

/// A program to start.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: PathBuf,
    /// Keeps the descriptor that `path` names.
    _held: Option<Arc<File>>,
}

impl Program {
    /// The binary that this process runs. It is started from a descriptor, so that supervisors are of this release even
    /// after the file was replaced or removed, as an upgrade does.
    pub(super) fn own() -> io::Result<Self> {
        // Whoever may start the binary may not have the right to read it.
        let file = File::options().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe")?;
        // A child looks this up in its own table of descriptors, before the program starts and they are closed.
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self { path, _held: Some(Arc::new(file)) })
    }

    /// The program at a path, found there each time it is started.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, _held: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(NAME);
        command
    }
}
