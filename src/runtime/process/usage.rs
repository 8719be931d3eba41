//! What a tree of processes uses, and how soon it is worth looking again.

use super::limits::TreeLimits;
use super::proc;
use crate::events::task::TreeLimit;
use std::fs;
use std::io;
use std::time::Duration;

/// How soon the tree is looked at again when it is near a limit, and when it is far from all.
const LOOK_MS_MIN: u64 = 20;
const LOOK_MS_MAX: u64 = 250;

/// What a tree used when it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) processes: u64,
    pub(super) memory_bytes: u64,
}

impl Usage {
    /// Of all descendants of `ancestor`.
    pub(super) fn of_descendants(ancestor: i32, limits: &TreeLimits) -> io::Result<Self> {
        let tree = proc::tree(ancestor, limits.processes_max)?;
        let memory_bytes = memory_bytes(&tree, limits.memory_bytes_max);
        Ok(Self { processes: tree.len() as u64, memory_bytes })
    }

    /// The limit that the tree is beyond, and how much it allows.
    pub(super) fn exceeds(&self, limits: &TreeLimits) -> Option<(TreeLimit, u64)> {
        if self.processes > limits.processes_max {
            return Some((TreeLimit::Processes, limits.processes_max));
        }
        (self.memory_bytes > limits.memory_bytes_max).then_some((TreeLimit::Memory, limits.memory_bytes_max))
    }

    /// The nearer to a limit, the sooner the next look.
    pub(super) fn next_look(&self, limits: &TreeLimits) -> Duration {
        let span = LOOK_MS_MAX - LOOK_MS_MIN;
        let near = |used: u64, max: u64| u128::from(used.min(max)) * u128::from(span) / u128::from(max.max(1));
        let nearest = near(self.processes, limits.processes_max).max(near(self.memory_bytes, limits.memory_bytes_max));
        Duration::from_millis(LOOK_MS_MAX - u64::try_from(nearest).unwrap_or(span))
    }
}

/// The first look comes soon: most commands have ended by then, and cost nothing.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(LOOK_MS_MIN);

/// The sum of what is resident counts a page once for each process that shares it. It is cheap, and where it is within
/// the limit so is the tree; only beyond it the kernel is asked for each process's own part.
fn memory_bytes(tree: &[i32], bytes_max: u64) -> u64 {
    let resident = tree.iter().map(|pid| resident_bytes(*pid)).fold(0, u64::saturating_add);
    if resident <= bytes_max {
        return resident;
    }
    tree.iter().map(|pid| proportional_bytes(*pid).unwrap_or_else(|| resident_bytes(*pid))).fold(0, u64::saturating_add)
}

/// Nothing for a process that has ended.
fn resident_bytes(pid: i32) -> u64 {
    size(pid, "status", "VmRSS:").unwrap_or(0)
}

/// None where the kernel does not tell, as of a process that has changed its user.
fn proportional_bytes(pid: i32) -> Option<u64> {
    size(pid, "smaps_rollup", "Pss:")
}

/// A size that a file of `/proc` tells in KiB, in bytes.
fn size(pid: i32, file: &str, label: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let told = text.lines().find_map(|line| line.strip_prefix(label))?;
    let kib: u64 = told.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TreeLimits = TreeLimits { processes_max: 10, memory_bytes_max: 1_000, file_bytes_max: 1 };

    #[test]
    fn the_first_limit_that_a_tree_is_beyond_is_named() {
        let exceeded = |processes, memory_bytes| Usage { processes, memory_bytes }.exceeds(&LIMITS);
        assert_eq!(exceeded(10, 1_000), None);
        assert_eq!(exceeded(11, 2_000), Some((TreeLimit::Processes, 10)));
        assert_eq!(exceeded(1, 1_001), Some((TreeLimit::Memory, 1_000)));
    }

    #[test]
    fn a_tree_near_a_limit_is_looked_at_sooner() {
        let next = |processes, memory_bytes| Usage { processes, memory_bytes }.next_look(&LIMITS).as_millis();
        assert_eq!((next(0, 0), next(5, 0), next(1, 500), next(10, 1), next(99, 99_999)), (250, 135, 135, 20, 20));
    }

    #[test]
    fn this_process_uses_memory_and_has_its_own_part_of_it() {
        let own = std::process::id().cast_signed();
        assert!(resident_bytes(own) >= proportional_bytes(own).expect("the kernel tells"));
        assert!(proportional_bytes(own) > Some(0));
        assert_eq!((resident_bytes(0), proportional_bytes(0)), (0, None));
    }
}
