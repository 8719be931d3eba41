//! Processes as `/proc` shows them, and signals that cannot reach a stranger.

use crate::events::task::Supervisor;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

/// A process as it was seen. The number may be used again by another; the start time tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Clock ticks between the machine's boot and the start of the process.
    pub(super) start_time: u64,
}

/// Number and start time: what stays the same for as long as the process lives, and for no other process.
pub(super) type Identity = (i32, u64);

impl Seen {
    pub(super) fn identity(&self) -> Identity {
        (self.pid, self.start_time)
    }

    /// Waits until the process has ended, or for `timeout_ms`.
    pub(super) fn wait_until_gone(&self, timeout_ms: u16) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            opened => opened?,
        };
        if seen(self.pid).is_none_or(|there| there.identity() != self.identity()) {
            return Ok(());
        }
        let mut ends = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        poll(&mut ends, PollTimeout::from(timeout_ms))?;
        Ok(())
    }

    /// Sends `signal` to this process and no other; one that is gone has nothing to be told.
    pub(super) fn send(&self, signal: Signal) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            opened => opened?,
        };
        if seen(self.pid).is_none_or(|there| there.identity() != self.identity()) {
            return Ok(());
        }
        match pidfd_send_signal(pidfd, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

/// The process with this number; none if there is none.
pub(super) fn seen(pid: i32) -> Option<Seen> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The number and start time of this process, and the id of the boot that the start time counts from.
pub(super) fn this_process() -> io::Result<(i32, u64, String)> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let this = seen(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok((pid, this.start_time, boot_id()?))
}

/// The process with this number, by its whole name; none if there is none.
pub(super) fn supervisor(pid: i32) -> io::Result<Option<Supervisor>> {
    let Some(Seen { start_time, .. }) = seen(pid) else { return Ok(None) };
    Ok(Some(Supervisor { pid, start_time, machine_boot: boot_id()? }))
}

/// The arguments of a process; none of one that has ended.
pub(super) fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// A random text that is the same until the machine boots again.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

/// Every process that can be seen.
pub(super) fn all() -> io::Result<Vec<Seen>> {
    let names = fs::read_dir("/proc")?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    Ok(numbers.filter_map(seen).collect())
}

/// Every process below `ancestor`, parents before their children.
pub(super) fn descendants(ancestor: i32) -> io::Result<Vec<Seen>> {
    let mut children = BTreeMap::<i32, Vec<Seen>>::new();
    for process in all()? {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = VecDeque::from([ancestor]);
    while let Some(parent) = parents.pop_front() {
        let born = children.remove(&parent).unwrap_or_default();
        parents.extend(born.iter().map(|child| child.pid));
        found.extend(born);
    }
    Ok(found)
}

/// The numbers of the processes below `ancestor`, found by asking each for its children; looks no further once there
/// are more than `count_max`.
pub(super) fn tree(ancestor: i32, count_max: u64) -> io::Result<Vec<i32>> {
    if !Path::new("/proc/thread-self/children").exists() {
        // A kernel that keeps no lists of children: all processes are looked through.
        return Ok(descendants(ancestor)?.iter().map(|process| process.pid).collect());
    }
    let mut found = Vec::new();
    let mut parents = VecDeque::from([ancestor]);
    while let Some(parent) = parents.pop_front()
        && found.len() as u64 <= count_max
    {
        let born = children(parent);
        parents.extend(&born);
        found.extend(born);
    }
    Ok(found)
}

/// The children of a process; none of one that has ended. Each thread has those that it started.
fn children(parent: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Whether the process may have been started with this variable: it was, or it is just changing its program and shows
/// no environment at all.
pub(super) fn may_have_variable(pid: i32, name: &str, value: &str) -> io::Result<bool> {
    let wanted = format!("{name}={value}");
    let environment = fs::read(format!("/proc/{pid}/environ"))?;
    Ok(environment.is_empty() || environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// The command's name comes second, in brackets, and may hold anything: what follows its last bracket is counted.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Seen> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().collect::<Vec<_>>();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    let start_time = fields.get(22 - 3)?.parse().ok()?;
    Some(Seen { pid, parent: field(4)?, group: field(5)?, session: field(6)?, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = b"7 (a) b (c) S 1 2 3 0 -1 64 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let wanted = Seen { pid: 7, parent: 1, group: 2, session: 3, start_time: 4711 };
        assert_eq!(parse_stat(7, stat), Some(wanted));
        assert_eq!(parse_stat(7, b"7 (cut"), None);
    }
}
