//! Tool calls: what each comes to.
//!
//! A call of the control plane is decided here and commits with its effect and its result (architecture 12). One that
//! needs the outside is begun under an attempt first, and ends with what the runtime brings back.

use super::birth::{self, NewChild};
use super::profile::{self, Family};
use super::{Decision, Rejection, memory, operator, queue, task, timer, trigger, waiting, work, workspace};
use crate::events::Event;
use crate::events::call::{Action, Call, CallError, CallResult, ExecRequest, Shown};
use crate::events::task::{Caller, CommandOutput, Exit};
use crate::events::turn::{CallStarted, Entry, TurnEntry};
use crate::fold::AgentState;
use crate::fold::owed::{Reach, for_outside, reach};
use crate::fold::turn::{Calls, Turn};
use crate::words::hash::Hash;
use crate::words::id::{Boot, EventSeq, RunId, TaskId};
use crate::words::limit::BOOTS_PER_STEP_MAX;
use serde::{Deserialize, Serialize};

/// What a call did, and what it answers.
pub(super) type Called = Result<(Vec<Event>, CallResult), Rejection>;

/// What the outside brought back for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// All there is to record.
    Result(CallResult),
    /// A child is ready to be born.
    Child(Box<NewChild>),
    /// The path of a workspace was resolved.
    Workspace(workspace::Resolved),
    /// A capability was drawn; its token is kept where the agent's commands find it.
    Trigger { token_hash: Hash, file: String },
}

/// What follows from the call that is next.
pub(super) fn next(state: &AgentState, turn: &Turn, calls: &Calls) -> Vec<Event> {
    let Some(call) = calls.next().filter(|_| calls.task.is_none()) else { return Vec::new() };
    if let Some(error) = not_granted(state, call) {
        return vec![result(turn, calls, CallResult::Refused(error))];
    }
    if let Action::Exec(request) = &call.action {
        return execute(state, turn, calls, request);
    }
    match here(state, turn, calls, call) {
        Some(Ok((mut events, answer))) => {
            events.push(result(turn, calls, answer));
            events
        }
        Some(Err(rejection)) => vec![result(turn, calls, CallResult::Refused(refusal(&rejection)))],
        None => Vec::new(),
    }
}

/// A call outside the profile is refused with the family that it needs (semantics 1).
fn not_granted(state: &AgentState, call: &Call) -> Option<CallError> {
    let family: Family = profile::needs(&call.action)?;
    if profile::grants(state.agent.preset, family) {
        return None;
    }
    let (name, preset) = (family.name(), state.agent.preset);
    Some(CallError {
        kind: "not_granted".into(),
        field: None,
        message: format!("{} needs the tool family {name}, which agents of the preset {preset} do not have", call.tool),
        hint: Some("report to your supervisor what you need, or find another way".into()),
    })
}

/// What the state alone decides; none where the call waits for something.
fn here(state: &AgentState, turn: &Turn, calls: &Calls, call: &Call) -> Option<Called> {
    Some(match &call.action {
        Action::Refused(error) => Ok((Vec::new(), CallResult::Refused(error.clone()))),
        Action::Sleep { .. } => Ok((Vec::new(), CallResult::Slept)),
        Action::TaskOutput { task, offset: None, .. } => return task::output_of_ended(state, turn, *task),
        Action::TaskInput { task, text } => task::input(state, *task, text, Some(&turn.derived)),
        Action::TaskStop { task } => task::stop_called(state, *task),
        Action::WaitFor { wake, reason, work, recheck_after_ms, no_fallback_reason } => {
            let new = waiting::NewWait {
                wake: wake.clone(),
                reason: reason.clone(),
                work: *work,
                recheck_after_ms: *recheck_after_ms,
                no_fallback_reason: no_fallback_reason.clone(),
            };
            waiting::wait_for(state, turn, &new)
        }
        Action::CreateTimer { duration_ms, interval_ms, summary } => {
            timer::set(state, *duration_ms, *interval_ms, summary.as_deref(), Some(turn))
                .map(|(events, timer)| (events, CallResult::TimerSet { timer }))
        }
        Action::CancelTimer { timer } => {
            timer::cancel(state, *timer, "agent").map(|events| (events, CallResult::TimerCancelled { timer: *timer }))
        }
        Action::CancelTrigger { trigger } => trigger::revoke(state, *trigger, "agent")
            .map(|events| (events, CallResult::TriggerRevoked { trigger: *trigger })),
        Action::CreateWork { change, focus } => work::create_called(state, turn, change, *focus),
        Action::UpdateWork { work, change } => work::update_called(state, turn, *work, change),
        Action::PickWork { work } => work::pick_called(state, *work),
        Action::CompleteWork { work, report } => work::complete_called(state, calls, *work, report.as_ref()),
        Action::UpdateMemory { entry, text, work } => memory::update(state, entry, text.as_ref(), *work)
            .map(|events| (events, CallResult::MemoryWritten { entry: entry.clone() })),
        Action::Enqueue { text } => queue::enqueue_to_self(state, turn, text)
            .map(|(event, message)| (vec![event], CallResult::Enqueued { message })),
        Action::Notify { text } => operator::notify(state, text, turn.work)
            .map(|(event, notice)| (vec![event], CallResult::Notified { notice })),
        Action::DetachWorkspace { workspace } => {
            workspace::detach(state, *workspace).map(|events| (events, CallResult::Detached { workspace: *workspace }))
        }
        Action::Exec(_)
        | Action::TaskOutput { .. }
        | Action::Look(_)
        | Action::ReadFile { .. }
        | Action::SearchFiles { .. }
        | Action::ApplyPatch { .. }
        | Action::UseWorkspace { .. }
        | Action::AttachWorkspace { .. }
        | Action::CreateTrigger { .. }
        | Action::Spawn(_) => return None,
    })
}

/// A command is requested; its call is answered by its end or its promotion.
fn execute(state: &AgentState, turn: &Turn, calls: &Calls, request: &ExecRequest) -> Vec<Event> {
    if let Some(task) = state.tasks.running(&request.spec).filter(|_| request.reuse_running) {
        return vec![result(turn, calls, CallResult::AlreadyRunning { task })];
    }
    let caller = Caller { run: turn.run, round: calls.round, call: calls.done };
    match task::requested(state, request, Some((turn, caller))) {
        Ok((event, _)) => vec![event],
        Err(rejection) => vec![result(turn, calls, CallResult::Refused(refusal(&rejection)))],
    }
}

/// Begins the call that is next at the outside. What may have taken effect under an earlier boot is not made again;
/// what only looks is, but not for ever (architecture 10, 11).
pub(super) fn begin(
    state: &AgentState,
    run: RunId,
    round: u32,
    call: u32,
    boot: Boot,
) -> Result<Vec<Event>, Rejection> {
    let (turn, calls) = state.turns.calls().filter(|(turn, _)| turn.run == run).ok_or(Rejection::StaleAttempt)?;
    let next = for_outside(state, calls).filter(|_| (calls.round, calls.done) == (round, call));
    let next = next.ok_or(Rejection::StaleAttempt)?;
    if calls.attempt.is_some_and(|attempt| attempt.boot == boot) {
        return Err(Rejection::StaleAttempt);
    }
    if calls.attempt.is_some() && reach(&next.action) == Reach::OutsideOnce {
        return Ok(vec![result(turn, calls, CallResult::Interrupted)]);
    }
    if calls.boots >= BOOTS_PER_STEP_MAX {
        let message = format!("the runtime went down {} times during this call, so it is not made again", calls.boots);
        let kind = "attempts_exhausted".to_owned();
        let error = CallError { kind, field: None, message, hint: Some("find another way".into()) };
        return Ok(vec![result(turn, calls, CallResult::Refused(error))]);
    }
    Ok(vec![CallStarted { run, round, call, boot }.into()])
}

/// Records what a call at the outside came to.
pub(super) fn end(state: &AgentState, run: RunId, attempt: EventSeq, end: &CallEnd) -> Result<Decision, Rejection> {
    let (turn, calls) = state.turns.calls().filter(|(turn, _)| turn.run == run).ok_or(Rejection::StaleAttempt)?;
    if calls.attempt.is_none_or(|begun| begun.seq != attempt) {
        return Err(Rejection::StaleAttempt);
    }
    let ended = match end {
        CallEnd::Result(outcome) => Ok((Decision::default(), outcome.clone())),
        CallEnd::Child(child) => birth::spawn(state, turn, child),
        CallEnd::Workspace(resolved) => workspace::enter_called(state, resolved).map(plain),
        CallEnd::Trigger { token_hash, file } => trigger::create_called(state, calls, *token_hash, file).map(plain),
    };
    let (mut decision, answer) =
        ended.unwrap_or_else(|rejection| (Decision::default(), CallResult::Refused(refusal(&rejection))));
    decision.own.push(result(turn, calls, answer));
    Ok(decision)
}

fn plain((events, answer): (Vec<Event>, CallResult)) -> (Decision, CallResult) {
    (Decision::of(events), answer)
}

/// A refusal in terms a model can act on.
pub fn refusal(rejection: &Rejection) -> CallError {
    let field = if let Rejection::Invalid { field, .. } = rejection { Some((*field).to_owned()) } else { None };
    let kind = if field.is_some() { "invalid_tool_input" } else { rejection.code() };
    CallError { kind: kind.into(), field, message: rejection.to_string(), hint: rejection.hint().map(str::to_owned) }
}

pub(super) fn shown(output: &CommandOutput) -> Shown {
    Shown { text: output.shown.clone(), bytes: output.bytes, cut: output.cut }
}

/// The result of the call that is next.
pub(super) fn result(turn: &Turn, calls: &Calls, result: CallResult) -> Event {
    let entry = Entry::ToolResult { round: calls.round, call: calls.done, result };
    TurnEntry { run: turn.run, entry }.into()
}

/// The result of the call that waits for `task`, if one does.
pub(super) fn result_of_task(state: &AgentState, task: TaskId, outcome: CallResult) -> Option<Event> {
    let (turn, calls) = state.turns.calls().filter(|(_, calls)| calls.task == Some(task))?;
    Some(result(turn, calls, outcome))
}

/// The answer to the call that waits for `task`, which has ended.
pub(super) fn foreground_result(
    state: &AgentState,
    task: TaskId,
    exit: &Exit,
    duration_ms: u64,
    output: &CommandOutput,
) -> Option<Event> {
    let result = CallResult::Exited { task, exit: exit.clone(), duration_ms, output: shown(output) };
    result_of_task(state, task, result)
}
