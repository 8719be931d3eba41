//! The task plane: starting, promoting and ending managed executions.

use super::queue::owed;
use super::{Decision, Rejection, schedule};
use crate::events::Event;
use crate::events::queue::{MessageKind, Origin, Subject, Surface};
use crate::events::task::{CommandOutput, Exit, TaskExited, TaskPromoted, TaskStarted, TaskStatus};
use crate::events::turn::{Action, CallResult, Shown};
use crate::fold::AgentState;
use crate::fold::task::{Attempt, Task};
use crate::words::content::{Content, excerpt, quoted};
use crate::words::id::{Boot, EventSeq, RunId, TaskId};
use crate::words::limit::{BOOTS_PER_STEP_MAX, EXCERPT_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// Why a command never ran that was to be ended before it began.
const STOPPED: &str = "it was stopped before it began";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskCommand {
    /// `replaces`: an attempt of which it is certain that its command never began.
    Start {
        task: TaskId,
        boot: Boot,
        replaces: Option<EventSeq>,
    },
    Exit {
        task: TaskId,
        attempt: EventSeq,
        exit: Exit,
        duration_ms: u64,
        output: CommandOutput,
    },
    Promote {
        task: TaskId,
        attempt: EventSeq,
        shown: Shown,
    },
    /// The output, so far, of a command that a TaskOutput call asks for.
    Read {
        run: RunId,
        round: u32,
        call: u32,
        task: TaskId,
        shown: Shown,
    },
}

pub(super) fn decide(state: &AgentState, command: &TaskCommand) -> Result<Decision, Rejection> {
    let events = match command {
        TaskCommand::Start { task, boot, replaces } => start(state, *task, *boot, *replaces)?,
        TaskCommand::Exit { task, attempt, exit, duration_ms, output } => {
            let ended = running(state, *task, *attempt)?;
            exited(state, *task, ended, exit, *duration_ms, output)
        }
        TaskCommand::Promote { task, attempt, shown } => promote(state, *task, *attempt, shown)?,
        TaskCommand::Read { run, round, call, task, shown } => read(state, (*run, *round, *call), *task, shown)?,
    };
    Ok(Decision::of(events))
}

fn open(state: &AgentState, task: TaskId) -> Result<&Task, Rejection> {
    state.tasks.open.get(&task).ok_or(Rejection::StaleAttempt)
}

fn running(state: &AgentState, task: TaskId, attempt: EventSeq) -> Result<&Task, Rejection> {
    let open = open(state, task)?;
    let same = open.attempt.is_some_and(|begun: Attempt| begun.seq == attempt);
    if same { Ok(open) } else { Err(Rejection::StaleAttempt) }
}

/// A command whose every begin died with its boot is not begun for ever (architecture 10).
fn start(state: &AgentState, id: TaskId, boot: Boot, replaces: Option<EventSeq>) -> Result<Vec<Event>, Rejection> {
    let task = open(state, id)?;
    if task.attempt.map(|attempt| attempt.seq) != replaces {
        return Err(Rejection::StaleAttempt);
    }
    if task.stopping.is_some() {
        return Ok(never_ran(state, id, task, STOPPED));
    }
    if task.boots >= BOOTS_PER_STEP_MAX {
        return Ok(never_ran(state, id, task, "attempts_exhausted"));
    }
    Ok(vec![TaskStarted { task: id, boot }.into()])
}

/// The end of a command that was stopped before it began: there is nothing to be ended, and nothing is to begin.
pub(super) fn stopped_unbegun(state: &AgentState) -> Vec<Event> {
    let mut unbegun = state.tasks.open.iter().filter(|(_, task)| task.stopping.is_some() && task.attempt.is_none());
    unbegun.next().map(|(id, task)| never_ran(state, *id, task, STOPPED)).unwrap_or_default()
}

fn never_ran(state: &AgentState, id: TaskId, task: &Task, reason: &str) -> Vec<Event> {
    let output = CommandOutput { shown: Content::from(""), bytes: 0, cut: false, kept: None };
    exited(state, id, task, &Exit::NotStarted(reason.into()), 0, &output)
}

/// The exit, and who is told, in one commit (semantics 5). A call that waits for it is answered by the scheduler.
fn exited(
    state: &AgentState,
    id: TaskId,
    task: &Task,
    exit: &Exit,
    duration_ms: u64,
    output: &CommandOutput,
) -> Vec<Event> {
    let status = status(task, exit);
    let event = TaskExited {
        task: id,
        attempt: task.attempt.map(|attempt| attempt.seq),
        status,
        exit: exit.clone(),
        output: output.clone(),
    };
    let mut events = vec![event.into()];
    if let Some(result) = schedule::foreground_result(state, id, exit, duration_ms, output) {
        events.push(result);
    } else if !task.in_foreground() {
        events.push(result_message(state, id, task, status, exit, output));
    }
    events
}

fn status(task: &Task, exit: &Exit) -> TaskStatus {
    match (exit, task.stopping.as_deref()) {
        (Exit::Lost, _) | (Exit::Signal(_) | Exit::NotStarted(_), Some("agent_stopped")) => TaskStatus::Interrupted,
        (Exit::Code(0), _) => TaskStatus::Completed,
        (Exit::Signal(_) | Exit::Code(_) | Exit::NotStarted(_), Some(_)) => TaskStatus::Cancelled,
        (Exit::Signal(_) | Exit::Code(_) | Exit::NotStarted(_), None) => TaskStatus::Failed,
    }
}

fn result_message(
    state: &AgentState,
    id: TaskId,
    task: &Task,
    status: TaskStatus,
    exit: &Exit,
    output: &CommandOutput,
) -> Event {
    let end = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::NotStarted(reason) => format!("it never ran: {}", excerpt(reason, EXCERPT_BYTES_MAX)),
        Exit::Lost => "its end is unknown: it may or may not have taken effect".into(),
    };
    let summary = excerpt(&task.summary, EXCERPT_BYTES_MAX);
    let shown = quoted(excerpt(output.shown.excerpt(), EXCERPT_BYTES_MAX));
    let text = format!("{id} ({summary}) {status}, {end}. Output of {} bytes begins:\n{shown}", output.bytes);
    let (origin, about) = (Origin::Task { task: id }, vec![Subject::Task(id)]);
    owed(state, MessageKind::TaskResult, origin, Surface::TaskRejoin, Content::from(text.as_str()), about).1
}

fn promote(state: &AgentState, id: TaskId, attempt: EventSeq, shown: &Shown) -> Result<Vec<Event>, Rejection> {
    let task = running(state, id, attempt)?;
    if !task.in_foreground() {
        return Err(Rejection::NothingToDo);
    }
    let result = CallResult::Promoted { task: id, output: shown.clone() };
    let entry = schedule::result_of_task(state, id, result).ok_or(Rejection::NothingToDo)?;
    Ok(vec![TaskPromoted { task: id }.into(), entry])
}

fn read(
    state: &AgentState,
    (run, round, call): (RunId, u32, u32),
    id: TaskId,
    shown: &Shown,
) -> Result<Vec<Event>, Rejection> {
    let (turn, calls) = schedule::calls(state).ok_or(Rejection::NothingToDo)?;
    let asks = calls.next().is_some_and(|call| matches!(call.action, Action::TaskOutput { task, .. } if task == id));
    if (turn.run, calls.round, calls.done) != (run, round, call) || !asks {
        return Err(Rejection::StaleAttempt);
    }
    let task = open(state, id)?;
    let result = CallResult::TaskOutput { task: id, status: task.status(), exit: None, output: shown.clone() };
    Ok(vec![schedule::result(turn, calls, result)])
}
