//! Owed effects: everything the runtime does to the outside world, read out of the state (architecture 8).
//!
//! After each commit and at boot the runtime starts what is owed and not running, and stops what is running and no
//! longer owed. Waiting is an owed effect with a time.

use super::AgentState;
use super::binding::Binding;
use super::posture::{PostureKind, posture, runnable};
use super::task::{Job, Task};
use super::turn::{Calls, Phase, Requested, Turn};
use crate::events::call::{Action, Call, ExecRequest};
use crate::events::queue::Subject;
use crate::events::task::ChildLifecycle;
use crate::words::id::{BindingId, Boot, EventSeq, RunId, TaskId, TimerId, WaitId, WorkId};
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
    /// A tool call needs the outside, and has no live attempt since the event `after`.
    BeginCall { run: RunId, round: u32, call: u32, after: EventSeq },
    /// A tool call is made at the outside.
    RunCall { run: RunId, attempt: EventSeq },
    /// A command waits for its start.
    StartTask { task: TaskId },
    /// A command runs: it is launched, or found again, and once its supervisor is recorded it is followed to its end.
    RunTask { task: TaskId, attempt: EventSeq },
    /// A running command is to be ended.
    StopTask { task: TaskId, attempt: EventSeq },
    /// A command has outlasted the call that waits for it.
    PromoteTask { task: TaskId, attempt: EventSeq },
    /// A call asks for the output of a command that still runs.
    ReadTask { run: RunId, round: u32, call: u32, task: TaskId },
    /// Input is owed to the run that `attempt` names, or to a child.
    DeliverInput { task: TaskId, attempt: Option<EventSeq>, entry: EventSeq },
    /// A child is not what the event `entry` asks it to be.
    DirectChild { task: TaskId, lifecycle: ChildLifecycle, entry: EventSeq },
    /// What becomes of an ended task's worktree is to be settled.
    SettleWorktree { task: TaskId },
    /// The supervisor is owed what the event `entry` says.
    Deliver { entry: EventSeq },
    /// A binding's first delivery has no live attempt since the event `after`.
    BeginDelivery { binding: BindingId, after: EventSeq },
    /// A delivery is attempted.
    SubmitDelivery { binding: BindingId, attempt: EventSeq },
    /// Runnable work has nobody who continues it.
    ContinueWork { work: WorkId },
    /// Blockers are to be looked at again.
    Recheck,
    /// A wait ends by itself.
    EndWait { wait: WaitId },
    /// A timer is due.
    FireTimer { timer: TimerId },
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
        of_task(state, *id, task, &mut owed);
    }
    of_time(state, &mut owed);
    let ended = state.workspaces.worktrees.keys().filter(|task| !state.tasks.open.contains_key(task));
    owed.extend(ended.map(|task| Effect::SettleWorktree { task: *task }.at_once()));
    // One errand follows another, so that none overtakes the one before it.
    owed.extend(state.outbox.owed.keys().next().map(|entry| Effect::Deliver { entry: *entry }.at_once()));
    owed.extend(state.bindings.open.iter().filter_map(|(id, binding)| of_binding(*id, binding, boot)));
    owed
}

/// An attempt of an earlier boot died with it; what it was for is keyed, so that it may be sent again.
fn of_binding(id: BindingId, binding: &Binding, boot: Boot) -> Option<Owed> {
    binding.owed.front()?;
    Some(match binding.attempt {
        Some(attempt) if attempt.boot == boot => Effect::SubmitDelivery { binding: id, attempt: attempt.seq }.at_once(),
        Some(attempt) => Effect::BeginDelivery { binding: id, after: attempt.seq }.at_once(),
        None => Effect::BeginDelivery { binding: id, after: binding.since }.at(binding.not_before),
    })
}

/// What time brings. A stopped agent takes in nothing; what came due meanwhile comes once when it is started.
fn of_time(state: &AgentState, owed: &mut Vec<Owed>) {
    if !state.agent.lifecycle.admits() {
        return;
    }
    if posture(state).kind == PostureKind::HasRunnableWork
        && let Some((work, item)) = runnable(state)
    {
        owed.push(Effect::ContinueWork { work }.at(item.continue_at()));
    }
    owed.extend(state.works.recheck_at().map(|at| Effect::Recheck.at(at)));
    let ends = state.waiting.active().filter_map(|(wait, open)| Some(Effect::EndWait { wait }.at(open.due?)));
    owed.extend(ends);
    // While a timer's tick waits the next is not due: ticks do not pile up.
    let timers = state.waiting.timers.iter().filter(|(id, _)| !has_tick(state, **id));
    owed.extend(timers.map(|(id, timer)| Effect::FireTimer { timer: *id }.at(timer.due)));
}

fn has_tick(state: &AgentState, timer: TimerId) -> bool {
    state.queue.about(&Subject::Timer(timer)).next().is_some()
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
        Phase::Calls(calls) => of_call(state, turn, calls, boot),
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

/// Most calls are decided at once; these wait for a running command's output, or for the outside.
fn of_call(state: &AgentState, turn: &Turn, calls: &Calls, boot: Boot) -> Option<Owed> {
    let (run, round, call) = (turn.run, calls.round, calls.done);
    let next = calls.next()?;
    if let Action::TaskOutput { task, wait_ms, .. } = &next.action
        && reads_running(state, &next.action)
    {
        let effect = Effect::ReadTask { run, round, call, task: *task };
        return Some(effect.at(turn.step_at.after_ms(*wait_ms)));
    }
    for_outside(state, calls)?;
    let begin = |after| Effect::BeginCall { run, round, call, after }.at_once();
    Some(match calls.attempt {
        Some(attempt) if attempt.boot == boot => Effect::RunCall { run, attempt: attempt.seq }.at_once(),
        Some(attempt) => begin(attempt.seq),
        None => begin(turn.started),
    })
}

/// Whether a call asks for the output of a command that still runs.
fn reads_running(state: &AgentState, action: &Action) -> bool {
    matches!(action, Action::TaskOutput { task, offset: None, .. } if state.tasks.open.contains_key(task))
}

/// The call that is next, if it is made at the outside.
pub fn for_outside<'a>(state: &AgentState, calls: &'a Calls) -> Option<&'a Call> {
    let here = |action: &Action| reach(action) == Reach::Here || reads_running(state, action);
    calls.next().filter(|call| calls.task.is_none() && !here(&call.action))
}

/// How far a call reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The state decides it, or a command of the task plane answers it.
    Here,
    /// It looks at something, and may look again.
    Outside,
    /// It changes something, and is not made twice (architecture 11).
    OutsideOnce,
}

/// How far a call of this kind reaches.
pub fn reach(action: &Action) -> Reach {
    match action {
        Action::Look(_)
        | Action::ReadFile { .. }
        | Action::SearchFiles { .. }
        | Action::UseWorkspace { .. }
        | Action::AttachWorkspace { .. }
        | Action::CreateTrigger { .. }
        | Action::Spawn(_)
        | Action::TaskOutput { .. } => Reach::Outside,
        Action::ApplyPatch { .. } => Reach::OutsideOnce,
        Action::Exec(_)
        | Action::TaskInput { .. }
        | Action::TaskStop { .. }
        | Action::Sleep { .. }
        | Action::WaitFor { .. }
        | Action::CreateTimer { .. }
        | Action::CancelTimer { .. }
        | Action::CancelTrigger { .. }
        | Action::CreateWork { .. }
        | Action::UpdateWork { .. }
        | Action::PickWork { .. }
        | Action::CompleteWork { .. }
        | Action::UpdateMemory { .. }
        | Action::Enqueue { .. }
        | Action::Notify { .. }
        | Action::DetachWorkspace { .. }
        | Action::Refused(_) => Reach::Here,
    }
}

fn of_task(state: &AgentState, id: TaskId, task: &Task, owed: &mut Vec<Owed>) {
    match &task.job {
        Job::Command(request) => of_command(id, task, request, owed),
        Job::Child(child) => {
            let (lifecycle, entry) = task.direction(&state.agent);
            if entry > child.directed {
                owed.push(Effect::DirectChild { task: id, lifecycle, entry }.at_once());
            }
        }
    }
    // Input follows input: one at a time, the first first.
    let attempt = task.attempt.map(|attempt| attempt.seq);
    let begun = attempt.is_some() || task.child().is_some();
    let input = task.inputs.keys().next().filter(|_| begun && task.stopping.is_none());
    owed.extend(input.map(|entry| Effect::DeliverInput { task: id, attempt, entry: *entry }.at_once()));
}

fn of_command(id: TaskId, task: &Task, request: &ExecRequest, owed: &mut Vec<Owed>) {
    let Some(attempt) = task.attempt else {
        owed.push(Effect::StartTask { task: id }.at_once());
        return;
    };
    owed.push(Effect::RunTask { task: id, attempt: attempt.seq }.at_once());
    if task.stopping.is_some() {
        owed.push(Effect::StopTask { task: id, attempt: attempt.seq }.at_once());
    } else if task.in_foreground() {
        let at = attempt.at.after_ms(request.yield_ms);
        owed.push(Effect::PromoteTask { task: id, attempt: attempt.seq }.at(at));
    }
}
