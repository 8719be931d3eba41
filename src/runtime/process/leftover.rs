//! What a supervisor that was killed has left running.
//!
//! Its command is killed with it by the kernel; what the command had started is not. Those that stayed in the
//! supervisor's session are found here. Those that left it, too, are beyond reach.

use super::environment::AGENT_ID_VARIABLE;
use super::folder::Spec;
use super::proc::{self, Seen};
use crate::events::task::Supervisor;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// How often it is looked for further processes.
const ROUNDS_MAX: usize = 64;
/// How long the end of a killed process is waited for.
const GONE_MS_MAX: u16 = 1_000;

/// Kills what is left of the execution. Does nothing after a reboot, or for a command that has no agent id.
///
/// The kernel gives a session's number to nobody else while the session has members; the agent id guards against a
/// number that was free in between.
pub(super) fn end(supervisor: &Supervisor, spec: &Spec) -> io::Result<()> {
    let Some(agent) = spec.environment.get(AGENT_ID_VARIABLE) else { return Ok(()) };
    if proc::boot_id()? != supervisor.machine_boot {
        return Ok(());
    }
    let left = |process: &Seen| {
        process.session == supervisor.pid
            && process.start_time >= supervisor.start_time
            // One whose environment cannot be read has gone, or is not ours to signal.
            && proc::may_have_variable(process.pid, AGENT_ID_VARIABLE, agent).unwrap_or(false)
    };
    // What was about to be killed may have started another process meanwhile: look until nobody new is found.
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let found: Vec<Seen> = proc::all()?.into_iter().filter(left).collect();
        let new: Vec<&Seen> = found.iter().filter(|process| killed.insert(process.identity())).collect();
        if new.is_empty() {
            return Ok(());
        }
        for process in new {
            if let Err(error) = process.send(Signal::KILL).and_then(|()| process.wait_until_gone(GONE_MS_MAX)) {
                tracing::warn!(%error, pid = process.pid, "a process of a lost command could not be killed");
            }
        }
    }
    Ok(())
}

/// Kills the supervisors of the run folder `run`, which nothing that can be believed names, and gives their names.
pub(super) fn end_supervisors(run: &Path) -> io::Result<Vec<Supervisor>> {
    let mut ended = Vec::new();
    for process in proc::all()?.into_iter().filter(|process| supervises(process.pid, run)) {
        ended.extend(proc::supervisor(process.pid)?);
        process.send(Signal::KILL)?;
        process.wait_until_gone(GONE_MS_MAX)?;
    }
    Ok(ended)
}

fn supervises(pid: i32, run: &Path) -> bool {
    let arguments = proc::arguments(pid);
    let [_, verb, folder, ..] = &arguments[..] else { return false };
    verb == b"supervise" && folder == run.as_os_str().as_encoded_bytes()
}
