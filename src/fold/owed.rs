//! Owed effects: everything the runtime does to the outside world, read out of the state (architecture 8).
//!
//! After each commit and at boot the runtime starts what is owed and not running, and stops what is running and no
//! longer owed. Waiting is an owed effect with a time.

use super::AgentState;
use super::posture::{PostureKind, posture};
use super::task::Task;
use super::turn::{Calls, Phase, Requested, Turn};
use crate::events::turn::Action;
use crate::words::id::{Boot, EventSeq, RunId, TaskId};
use crate::words::time::Timestamp;

/// One thing that should be happening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// A message waits and no turn runs.
    StartTurn,
    /// A model round's prompt is to be built.
    PrepareRound { run: RunId, round: u32 },
    /// A requested round has no live attempt since the event `after`.
    BeginAttempt { run: RunId, after: EventSeq },
    /// A model call is under way.
    CallModel { run: RunId, attempt: EventSeq },
    /// A command waits for its start.
    StartTask { task: TaskId },
    /// A command runs.
    RunTask { task: TaskId, attempt: EventSeq },
    /// A running command is to be ended.
    StopTask { task: TaskId, attempt: EventSeq },
    /// A command has outlasted the call that waits for it.
    PromoteTask { task: TaskId, attempt: EventSeq },
    /// A call asks for the output of a command that still runs.
    ReadTask { run: RunId, round: u32, call: u32, task: TaskId },
}

/// An effect, and the time before which it is not to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    pub effect: Effect,
    pub not_before: Timestamp,
}

/// "At once": before every reading of a clock.
const AT_ONCE: Timestamp = Timestamp(i64::MIN);

impl Effect {
    fn at_once(self) -> Owed {
        Owed { effect: self, not_before: AT_ONCE }
    }

    fn at(self, not_before: Timestamp) -> Owed {
        Owed { effect: self, not_before }
    }

    /// Whether it belongs to the turn, and so waits for the agent's place among the host's active turns.
    pub fn is_of_turn(&self) -> bool {
        matches!(self, Self::StartTurn | Self::PrepareRound { .. } | Self::BeginAttempt { .. } | Self::CallModel { .. })
    }
}

/// What should be happening under `boot`, in a fixed order.
pub fn owed(state: &AgentState, boot: Boot) -> Vec<Owed> {
    let mut owed = Vec::new();
    if posture(state).kind == PostureKind::HasQueuedInput {
        owed.push(Effect::StartTurn.at_once());
    }
    if let Some(turn) = &state.turns.current {
        owed.extend(of_turn(state, turn, boot));
    }
    for (id, task) in &state.tasks.open {
        of_task(*id, task, &mut owed);
    }
    owed
}

/// The earliest time at which something is owed that is not owed at once.
pub fn deadline(owed: &[Owed]) -> Option<Timestamp> {
    owed.iter().map(|owed| owed.not_before).filter(|at| *at != AT_ONCE).min()
}

/// Whether something is owed whatever the time.
pub fn is_due_at_once(owed: &[Owed]) -> bool {
    owed.iter().any(|owed| owed.not_before == AT_ONCE)
}

fn of_turn(state: &AgentState, turn: &Turn, boot: Boot) -> Option<Owed> {
    match &turn.phase {
        Phase::RoundOwed => Some(prepare(turn)),
        // A turn that would end, but a prompt has come: one more round takes it in.
        Phase::Finished { .. } => state.queue.interjections().next().map(|_| prepare(turn)),
        Phase::RoundRequested(requested) => Some(of_round(turn.run, requested, boot)),
        Phase::Calls(calls) => of_call(state, turn, calls),
    }
}

fn prepare(turn: &Turn) -> Owed {
    Effect::PrepareRound { run: turn.run, round: turn.round + 1 }.at_once()
}

/// An attempt of an earlier boot died with it: a new one is due.
fn of_round(run: RunId, requested: &Requested, boot: Boot) -> Owed {
    match requested.attempt {
        Some(attempt) if attempt.boot == boot => Effect::CallModel { run, attempt: attempt.seq }.at_once(),
        Some(attempt) => Effect::BeginAttempt { run, after: attempt.seq }.at_once(),
        None => Effect::BeginAttempt { run, after: requested.since }.at(requested.not_before),
    }
}

/// Only a call that waits for a running command's output needs the outside; the rest is decided at once.
fn of_call(state: &AgentState, turn: &Turn, calls: &Calls) -> Option<Owed> {
    let Action::TaskOutput { task, wait_ms, .. } = &calls.next()?.action else { return None };
    state.tasks.open.get(task)?;
    let effect = Effect::ReadTask { run: turn.run, round: calls.round, call: calls.done, task: *task };
    Some(effect.at(turn.step_at.after_ms(*wait_ms)))
}

fn of_task(id: TaskId, task: &Task, owed: &mut Vec<Owed>) {
    let Some(attempt) = task.attempt else {
        owed.push(Effect::StartTask { task: id }.at_once());
        return;
    };
    owed.push(Effect::RunTask { task: id, attempt: attempt.seq }.at_once());
    if task.stopping.is_some() {
        owed.push(Effect::StopTask { task: id, attempt: attempt.seq }.at_once());
    } else if task.in_foreground() {
        let at = attempt.at.after_ms(task.request.yield_ms);
        owed.push(Effect::PromoteTask { task: id, attempt: attempt.seq }.at(at));
    }
}
