//! What a command and all that it starts may use together.
//!
//! The kernel refuses a file that is too long. It counts processes for a user and memory for a process, never for a
//! tree: so the supervisor looks at the tree while the command runs ([`super::usage`]), and ends it when it is beyond a
//! limit.

use crate::words::limit::{
    COMMAND_FILE_BYTES_MAX, COMMAND_MEMORY_PERCENT_MAX, COMMAND_PROCESSES_MAX, COMMAND_THREADS_PER_PROCESS,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// The limits of one command's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct TreeLimits {
    /// Processes that live at once.
    pub processes_max: u64,
    /// Memory that is resident, what several of them share counted once.
    pub memory_bytes_max: u64,
    /// Bytes of one file that is written.
    pub file_bytes_max: u64,
}

impl Default for TreeLimits {
    fn default() -> Self {
        let memory_bytes_max = memory_bytes() / 100 * COMMAND_MEMORY_PERCENT_MAX;
        Self { processes_max: COMMAND_PROCESSES_MAX, memory_bytes_max, file_bytes_max: COMMAND_FILE_BYTES_MAX }
    }
}

/// The memory of this machine.
fn memory_bytes() -> u64 {
    let about = rustix::system::sysinfo();
    (about.totalram as u64).saturating_mul(u64::from(about.mem_unit))
}

/// How a limit of a tree is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The supervisor counts, and ends the tree a moment after it went beyond the limit.
    Counted,
}

/// How each limit of a tree is kept on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TreeGuarantee {
    pub processes: Enforcement,
    pub memory: Enforcement,
}

/// How the limits of a tree are kept on this machine.
#[must_use]
pub fn guarantee() -> TreeGuarantee {
    TreeGuarantee { processes: Enforcement::Counted, memory: Enforcement::Counted }
}

/// What the kernel itself bounds, for a process that is about to become the command.
#[derive(Clone, Copy)]
pub(super) struct ResourceLimits {
    file_bytes_max: u64,
    threads_max: Option<u64>,
}

impl ResourceLimits {
    pub(super) fn of(limits: &TreeLimits) -> Self {
        // Whatever belongs to the same user counts here, so there is room for all that runs on the machine. This only
        // slows down what multiplies, until the supervisor has ended it; it does not bind root.
        let own = limits.processes_max.saturating_mul(COMMAND_THREADS_PER_PROCESS);
        let threads_max = threads_of_machine().map(|others| others.saturating_add(own));
        Self { file_bytes_max: limits.file_bytes_max, threads_max }
    }

    /// Binds this process and all that it starts. Allocates nothing.
    pub(super) fn apply(&self) -> io::Result<()> {
        lower(Resource::Fsize, self.file_bytes_max)?;
        self.threads_max.map_or(Ok(()), |threads| lower(Resource::Nproc, threads))
    }
}

fn lower(resource: Resource, max: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum.map_or(max, |before| before.min(max));
    Ok(setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?)
}

/// Threads of all processes of the machine; none where it does not say.
fn threads_of_machine() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}
