//! Memory that no other process reads.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use std::io;

/// Keeps other processes of the user from reading this one's memory, environment and descriptors (`/proc/PID/…`,
/// ptrace), and keeps its memory out of core files. A program that it starts is an ordinary one again.
///
/// # Errors
/// When the kernel refuses.
pub fn keep_memory_private() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let maximum = getrlimit(Resource::Core).maximum;
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum })?)
}
