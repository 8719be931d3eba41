//! The scheduler: what a state leads to by itself.
//!
//! | the turn's phase      | leads to |
//! |-----------------------|----------|
//! | calls, next is local  | its result, in the same commit (architecture 12) |
//! | calls, next is a command | the command, requested |
//! | round given up        | the turn's failure |
//! | finished, no prompt waits | the turn's end |
//!
//! A command that was stopped before it began has ended, whatever the phase.
//!
//! It proposes events and owns no state.

use super::{task, turn};
use crate::events::Event;
use crate::events::queue::{MessageOutcome, MessageSettled};
use crate::events::task::{Caller, CommandOutput, Exit, TaskCreateRequested};
use crate::events::turn::{Action, CallError, CallResult, Entry, ExecRequest, Shown, TurnEntry};
use crate::fold::AgentState;
use crate::fold::turn::{Calls, Phase, Turn};
use crate::words::content::excerpt;
use crate::words::id::TaskId;
use crate::words::limit::{EXCERPT_BYTES_MAX, TASKS_OPEN_MAX};

/// The next events that nobody has to ask for; none when the state is at rest.
pub(super) fn next(state: &AgentState) -> Vec<Event> {
    let ended = task::stopped_unbegun(state);
    if !ended.is_empty() {
        return ended;
    }
    let Some(running) = state.turns.current.as_deref() else { return Vec::new() };
    match &running.phase {
        Phase::RoundOwed => Vec::new(),
        Phase::RoundRequested(requested) => match &requested.given_up {
            Some(error) => turn::fail_provider(state, running, error),
            None => Vec::new(),
        },
        Phase::Calls(calls) => next_call(state, running, calls),
        Phase::Finished { text } if state.queue.interjections().next().is_none() => {
            turn::complete(state, running, text)
        }
        Phase::Finished { .. } => Vec::new(),
    }
}

fn next_call(state: &AgentState, turn: &Turn, calls: &Calls) -> Vec<Event> {
    let Some(call) = calls.next() else { return Vec::new() };
    if calls.task.is_some() {
        return Vec::new();
    }
    match &call.action {
        Action::Refused(error) => vec![result(turn, calls, CallResult::Refused(error.clone()))],
        Action::Sleep { .. } => vec![result(turn, calls, CallResult::Slept)],
        Action::Exec(request) => execute(state, turn, calls, request),
        Action::TaskOutput { task, .. } => task_output(state, turn, calls, *task),
    }
}

fn execute(state: &AgentState, turn: &Turn, calls: &Calls, request: &ExecRequest) -> Vec<Event> {
    if let Some(task) = state.tasks.running(&request.spec).filter(|_| request.reuse_running) {
        return vec![result(turn, calls, CallResult::AlreadyRunning { task })];
    }
    if state.tasks.open.len() >= TASKS_OPEN_MAX {
        return vec![result(turn, calls, refused("too_many_tasks", None, "too many tasks are open; stop some first"))];
    }
    let event = TaskCreateRequested {
        task: state.tasks.last.next(),
        request: request.clone(),
        summary: excerpt(request.spec.cmd.trim(), EXCERPT_BYTES_MAX).to_owned(),
        caller: Some(Caller { run: turn.run, round: calls.round, call: calls.done }),
    };
    vec![event.into()]
}

/// A task that has ended answers at once; of one that runs, the runtime reads the output when it is time.
fn task_output(state: &AgentState, turn: &Turn, calls: &Calls, task: TaskId) -> Vec<Event> {
    if state.tasks.open.contains_key(&task) {
        return Vec::new();
    }
    let Some(ended) = state.tasks.ended(task) else {
        let text = "no such task is open or ended recently";
        return vec![result(turn, calls, refused("unknown_task", Some("task_id"), text))];
    };
    let answer = CallResult::TaskOutput {
        task,
        status: ended.status,
        exit: Some(ended.exit.clone()),
        output: shown(&ended.output),
    };
    let mut events = vec![result(turn, calls, answer)];
    // The turn has seen the end, so the message that tells of it has been answered.
    events.extend(
        state
            .queue
            .result_of(task)
            .map(|message| MessageSettled { message, outcome: MessageOutcome::Coalesced(turn.message) }.into()),
    );
    events
}

fn shown(output: &CommandOutput) -> Shown {
    Shown { text: output.shown.clone(), bytes: output.bytes, cut: output.cut }
}

fn refused(kind: &str, field: Option<&str>, message: &str) -> CallResult {
    let field = field.map(str::to_owned);
    CallResult::Refused(CallError { kind: kind.into(), field, message: message.into(), hint: None })
}

/// The calls under way.
pub(super) fn calls(state: &AgentState) -> Option<(&Turn, &Calls)> {
    let turn = state.turns.current.as_deref()?;
    match &turn.phase {
        Phase::Calls(calls) => Some((turn, calls)),
        Phase::RoundOwed | Phase::RoundRequested(_) | Phase::Finished { .. } => None,
    }
}

/// The result of the call that is next.
pub(super) fn result(turn: &Turn, calls: &Calls, result: CallResult) -> Event {
    let entry = Entry::ToolResult { round: calls.round, call: calls.done, result };
    TurnEntry { run: turn.run, entry }.into()
}

/// The result of the call that waits for `task`, if one does.
pub(super) fn result_of_task(state: &AgentState, task: TaskId, outcome: CallResult) -> Option<Event> {
    let (turn, calls) = calls(state).filter(|(_, calls)| calls.task == Some(task))?;
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
