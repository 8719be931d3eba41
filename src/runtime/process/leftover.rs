//! What a supervisor that was killed has left running.
//!
//! Its command is killed with it by the kernel; what the command had started is not. Those that stayed in the
//! supervisor's session are found here. Those that left it, too, are beyond reach.

use super::environment::AGENT_ID_VARIABLE;
use super::folder::{Begun, Spec};
use super::proc::{self, Seen};
use rustix::process::Signal;
use std::io;

/// Kills what is left of the execution. Does nothing after a reboot, or for a command that has no agent id.
///
/// The kernel gives a session's number to nobody else while the session has members; the agent id guards against a
/// number that was free in between.
pub(super) fn end(begun: &Begun, spec: &Spec) -> io::Result<()> {
    let Some(agent) = spec.environment.get(AGENT_ID_VARIABLE) else { return Ok(()) };
    if proc::boot_id()? != begun.boot_id {
        return Ok(());
    }
    let left = |process: &Seen| {
        process.session == begun.pid
            && process.start_time >= begun.start_time
            // One whose environment cannot be read has gone, or is not ours to signal.
            && proc::may_have_variable(process.pid, AGENT_ID_VARIABLE, agent).unwrap_or(false)
    };
    for process in proc::all()?.into_iter().filter(left) {
        if let Err(error) = process.send(Signal::KILL) {
            tracing::warn!(%error, pid = process.pid, "a process of a lost command could not be killed");
        }
    }
    Ok(())
}
