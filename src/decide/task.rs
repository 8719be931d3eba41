//! The task plane: starting, promoting and ending managed executions.

use super::call::Called;
use super::queue::{OwnMessage, admits};
use super::waiting::{self, News};
use super::{Decision, Rejection, call};
use crate::events::Event;
use crate::events::agent::{Answer, ErrandOutcome};
use crate::events::call::{Action, CallResult, ExecRequest, Shown};
use crate::events::queue::{DerivedFrom, MessageKind, MessageOutcome, MessageSettled, Origin, Subject};
use crate::events::task::{
    Caller, ChildDirected, ChildLifecycle, CommandOutput, CommandSpec, Exit, Supervisor, TaskCreateRequested,
    TaskExited, TaskInputDelivered, TaskInputRequested, TaskPromoted, TaskStarted, TaskStatus, TaskStopRequested,
    TaskSupervised,
};
use crate::events::turn::UsageTotal;
use crate::events::waiting::WaitTrigger;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::task::{Attempt, Task};
use crate::fold::turn::Turn;
use crate::fold::waiting::Wait;
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq, RunId, TaskId, WaitId};
use crate::words::limit::{
    BACKGROUND_COMMANDS_MAX, BOOTS_PER_STEP_MAX, COMMAND_BYTES_MAX, EXCERPT_BYTES_MAX, TASK_INPUT_BYTES_MAX,
    TASK_INPUTS_MAX, TASKS_OPEN_MAX,
};
use crate::words::prompt_text::PromptText;
use serde::{Deserialize, Serialize};

/// Why a command never ran that was to be ended before it began.
const STOPPED: &str = "it was stopped before it began";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskCommand {
    /// A command of the operator's: no call waits for it.
    Create(ExecRequest),
    /// `replaces`: an attempt of which it is certain that its command never began.
    Start {
        task: TaskId,
        boot: Boot,
        replaces: Option<EventSeq>,
        /// The digest of the key with which the supervisor will sign.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signer: Option<Hash>,
    },
    /// The command of an attempt has begun.
    Supervise {
        task: TaskId,
        attempt: EventSeq,
        supervisor: Supervisor,
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
    Stop {
        task: TaskId,
        reason: String,
    },
    /// Text for the standard input, or for the child.
    Input {
        task: TaskId,
        text: Content,
    },
    InputDelivered {
        task: TaskId,
        entry: EventSeq,
        outcome: ErrandOutcome,
    },
    /// The child is what the event `entry` directed it to be.
    ChildDirected {
        task: TaskId,
        lifecycle: ChildLifecycle,
        entry: EventSeq,
    },
}

pub(super) fn decide(state: &AgentState, command: &TaskCommand) -> Result<Decision, Rejection> {
    let events = match command {
        TaskCommand::Create(request) => return create(state, request),
        TaskCommand::Start { task, boot, replaces, signer } => start(state, *task, *boot, *replaces, *signer)?,
        TaskCommand::Supervise { task, attempt, supervisor } => supervise(state, *task, *attempt, supervisor)?,
        TaskCommand::Exit { task, attempt, exit, duration_ms, output } => {
            let ended = running(state, *task, *attempt)?;
            exited(state, *task, ended, exit, *duration_ms, output)
        }
        TaskCommand::Promote { task, attempt, shown } => promote(state, *task, *attempt, shown)?,
        TaskCommand::Read { run, round, call, task, shown } => read(state, (*run, *round, *call), *task, shown)?,
        TaskCommand::Stop { task, reason } => stop(state, *task, reason)?,
        TaskCommand::Input { task, text } => input(state, *task, text, None)?.0,
        TaskCommand::InputDelivered { task, entry, outcome } => input_delivered(state, *task, *entry, *outcome)?,
        TaskCommand::ChildDirected { task, lifecycle, entry } => child_directed(state, *task, *lifecycle, *entry)?,
    };
    Ok(Decision::of(events))
}

fn create(state: &AgentState, request: &ExecRequest) -> Result<Decision, Rejection> {
    admits(state)?;
    if let Some((field, reason)) = unfit(&request.spec) {
        return Err(Rejection::Invalid { field, reason: reason.into() });
    }
    let (event, task) = requested(state, request, None)?;
    Ok(Decision::answering(vec![event], Answer::Task(task)))
}

/// What is wrong with a command, whoever asks for it: the field, and what it is.
pub fn unfit(spec: &CommandSpec) -> Option<(&'static str, &'static str)> {
    if spec.cmd.trim().is_empty() {
        return Some(("cmd", "must not be empty"));
    }
    let is_unfit = |text: &String| text.len() > COMMAND_BYTES_MAX || text.contains('\0');
    let texts = [("cmd", Some(&spec.cmd)), ("workdir", spec.workdir.as_ref()), ("shell", spec.shell.as_ref())];
    let (field, _) = texts.into_iter().find(|(_, text)| text.is_some_and(is_unfit))?;
    Some((field, "is too long or holds a zero byte"))
}

/// A command that is asked for: by a call, or by the operator.
pub(super) fn requested(
    state: &AgentState,
    request: &ExecRequest,
    called: Option<(&Turn, Caller)>,
) -> Result<(Event, TaskId), Rejection> {
    if state.tasks.open.len() >= TASKS_OPEN_MAX {
        return Err(Rejection::TooMany { what: "tasks", max: TASKS_OPEN_MAX });
    }
    let in_background = |task: &&Task| task.command().is_some() && !task.in_foreground();
    if state.tasks.open.values().filter(in_background).count() >= BACKGROUND_COMMANDS_MAX {
        return Err(Rejection::TooMany { what: "commands in the background", max: BACKGROUND_COMMANDS_MAX });
    }
    let task = state.tasks.last.next();
    let named = request.summary.as_deref().unwrap_or(request.spec.cmd.trim());
    let summary = excerpt(named, EXCERPT_BYTES_MAX).to_owned();
    let (turn, caller) = called.unzip();
    let (work, derived_from) = (turn.and_then(|turn| turn.work), turn.map(|turn| turn.derived.clone()));
    let request = request.clone();
    Ok((TaskCreateRequested { task, request, summary, caller, work, derived_from }.into(), task))
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
fn start(
    state: &AgentState,
    id: TaskId,
    boot: Boot,
    replaces: Option<EventSeq>,
    signer: Option<Hash>,
) -> Result<Vec<Event>, Rejection> {
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
    Ok(vec![TaskStarted { task: id, boot, signer }.into()])
}

fn supervise(
    state: &AgentState,
    id: TaskId,
    attempt: EventSeq,
    supervisor: &Supervisor,
) -> Result<Vec<Event>, Rejection> {
    match running(state, id, attempt)?.supervisor {
        Some(_) => Err(Rejection::NothingToDo),
        None => Ok(vec![TaskSupervised { task: id, attempt, supervisor: supervisor.clone() }.into()]),
    }
}

/// The end of a command that was stopped before it began: there is nothing to be ended, and nothing is to begin.
pub(super) fn stopped_unbegun(state: &AgentState) -> Vec<Event> {
    let is_unbegun = |task: &Task| task.stopping.is_some() && task.attempt.is_none() && task.command().is_some();
    let mut unbegun = state.tasks.open.iter().filter(|(_, task)| is_unbegun(task));
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
    let (status, derived) = (status(task, exit), task.derived.clone());
    ended(state, id, task, &End { status, exit, duration_ms, output, derived })
}

/// How a task ended.
struct End<'a> {
    status: TaskStatus,
    exit: &'a Exit,
    duration_ms: u64,
    output: &'a CommandOutput,
    /// What its result rests on.
    derived: DerivedFrom,
}

fn ended(state: &AgentState, id: TaskId, task: &Task, end: &End<'_>) -> Vec<Event> {
    let event = TaskExited {
        task: id,
        attempt: task.attempt.map(|attempt| attempt.seq),
        status: end.status,
        exit: end.exit.clone(),
        output: end.output.clone(),
    };
    let waits = waiting::ended_by(state, &News::Task(id));
    let mut events = vec![event.into()];
    events.extend(waiting::triggered(&waits, &WaitTrigger::Task(id)));
    if let Some(result) = call::foreground_result(state, id, end.exit, end.duration_ms, end.output) {
        events.push(result);
    } else if !task.in_foreground() && state.agent.lifecycle != Lifecycle::Archiving {
        let about = about(state, id, task, &waits);
        events.push(result_message(state, id, task, end, about));
    }
    events
}

/// A task's result is about the task, the waits that it ends, and the work that it serves.
fn about(state: &AgentState, id: TaskId, task: &Task, ended: &[(WaitId, &Wait)]) -> Vec<Subject> {
    let served = task.work.filter(|work| state.works.open.contains_key(work)).map(Subject::Work);
    let waits = waiting::subjects(ended);
    let served = served.filter(|work| !waits.contains(work));
    [Subject::Task(id)].into_iter().chain(waits).chain(served).collect()
}

fn status(task: &Task, exit: &Exit) -> TaskStatus {
    match (exit, task.stopping.as_deref()) {
        (Exit::Lost, _) | (Exit::Signal(_) | Exit::NotStarted(_), Some("agent_stopped" | "agent_archived")) => {
            TaskStatus::Interrupted
        }
        (Exit::Code(0) | Exit::Reported(_), _) => TaskStatus::Completed,
        (Exit::LimitExceeded { .. }, _) => TaskStatus::Failed,
        (Exit::Signal(_) | Exit::Code(_) | Exit::NotStarted(_), Some(_)) => TaskStatus::Cancelled,
        (Exit::Signal(_) | Exit::Code(_) | Exit::NotStarted(_), None) => TaskStatus::Failed,
    }
}

fn result_message(state: &AgentState, id: TaskId, task: &Task, end: &End<'_>, about: Vec<Subject>) -> Event {
    let text = PromptText::new().own(id).own(" ").own(end.status).own(", ");
    let text = match end.exit {
        Exit::Code(code) => text.own("exit code ").own(*code),
        Exit::Signal(signal) => text.own("signal ").own(*signal),
        Exit::NotStarted(reason) => text.own("it never ran:").quote(excerpt(reason, EXCERPT_BYTES_MAX)),
        Exit::Reported(_) => text.own("it has reported"),
        Exit::Lost => text.own("its end is unknown: it may or may not have taken effect"),
        // Words of the runtime alone: a limit has a fixed name, and a number.
        Exit::LimitExceeded { limit, max } => text.own_text(&PromptText::kept(&limit.exceeded(*max))),
    };
    let text = text.line().own("It was:").quote(excerpt(&task.summary, EXCERPT_BYTES_MAX));
    let text = text.own("Its output of ").own(end.output.bytes).own(" bytes begins:");
    let text = text.quote(excerpt(end.output.shown.excerpt(), EXCERPT_BYTES_MAX));
    let (kind, origin) = (MessageKind::TaskResult, Origin::Task { task: id });
    OwnMessage::new(kind, origin, text, end.derived.clone()).about(about).enqueued(state).1
}

fn promote(state: &AgentState, id: TaskId, attempt: EventSeq, shown: &Shown) -> Result<Vec<Event>, Rejection> {
    let task = running(state, id, attempt)?;
    if !task.in_foreground() {
        return Err(Rejection::NothingToDo);
    }
    let result = CallResult::Promoted { task: id, output: shown.clone() };
    let entry = call::result_of_task(state, id, result).ok_or(Rejection::NothingToDo)?;
    Ok(vec![TaskPromoted { task: id }.into(), entry])
}

fn read(
    state: &AgentState,
    (run, round, call): (RunId, u32, u32),
    id: TaskId,
    shown: &Shown,
) -> Result<Vec<Event>, Rejection> {
    let (turn, calls) = state.turns.calls().ok_or(Rejection::NothingToDo)?;
    let asks = calls.next().is_some_and(|call| matches!(call.action, Action::TaskOutput { task, .. } if task == id));
    if (turn.run, calls.round, calls.done) != (run, round, call) || !asks {
        return Err(Rejection::StaleAttempt);
    }
    let task = open(state, id)?;
    let result = CallResult::TaskOutput { task: id, status: task.status(), exit: None, output: shown.clone() };
    Ok(vec![call::result(turn, calls, result)])
}

/// The output of a task that has ended; of one that runs the runtime reads it when it is time, and of one that ended
/// long ago it looks it up.
pub(super) fn output_of_ended(state: &AgentState, turn: &Turn, task: TaskId) -> Option<Called> {
    if state.tasks.open.contains_key(&task) {
        return None;
    }
    let Some(ended) = state.tasks.ended(task) else {
        return (task > state.tasks.last).then(|| Err(Rejection::Unknown { what: "task", id: task.to_string() }));
    };
    let exit = Some(ended.exit.clone());
    let answer = CallResult::TaskOutput { task, status: ended.status, exit, output: call::shown(&ended.output) };
    // The turn has seen the end, so the message that tells of it has been answered.
    let outcome = MessageOutcome::Coalesced(turn.message);
    let told = state.queue.result_of(task).map(|message| MessageSettled { message, outcome }.into());
    Some(Ok((told.into_iter().collect(), answer)))
}

/// Ends a task for a call.
pub(super) fn stop_called(state: &AgentState, task: TaskId) -> Called {
    let events = stop(state, task, "stopped_by_agent")?;
    Ok((events, CallResult::TaskStop { task, status: TaskStatus::Cancelling }))
}

fn stop(state: &AgentState, task: TaskId, reason: &str) -> Result<Vec<Event>, Rejection> {
    let open = named(state, task)?;
    if open.stopping.is_some() {
        return Ok(Vec::new());
    }
    Ok(vec![TaskStopRequested { task, reason: excerpt(reason, EXCERPT_BYTES_MAX).to_owned() }.into()])
}

/// An open task, or why there is none of that name.
fn named(state: &AgentState, task: TaskId) -> Result<&Task, Rejection> {
    let (what, id) = ("task", task.to_string());
    match state.tasks.open.get(&task) {
        Some(open) => Ok(open),
        None if task.0 > 0 && task <= state.tasks.last => Err(Rejection::Ended { what, id }),
        None => Err(Rejection::Unknown { what, id }),
    }
}

/// Text for a task's standard input, or for its child; it is owed until it was taken in.
pub(super) fn input(state: &AgentState, task: TaskId, text: &Content, derived_from: Option<&DerivedFrom>) -> Called {
    let open = named(state, task)?;
    let invalid = |field, reason: String| Err(Rejection::Invalid { field, reason });
    if open.command().is_some_and(|request| !request.spec.accepts_input) {
        return invalid("task_id", "takes no input: it was not started with accepts_input".into());
    }
    if open.stopping.is_some() {
        return invalid("task_id", "is being ended".into());
    }
    if text.bytes() == 0 || text.bytes() > TASK_INPUT_BYTES_MAX {
        return invalid("text", format!("must have 1 to {TASK_INPUT_BYTES_MAX} bytes"));
    }
    if open.inputs.len() >= TASK_INPUTS_MAX {
        return Err(Rejection::TooMany { what: "inputs that wait for delivery", max: TASK_INPUTS_MAX });
    }
    let (offset, derived_from) = (open.input_bytes, derived_from.cloned());
    let event = TaskInputRequested { task, text: text.clone(), offset, derived_from };
    Ok((vec![event.into()], CallResult::TaskInput { task, bytes: text.bytes() }))
}

fn input_delivered(
    state: &AgentState,
    task: TaskId,
    entry: EventSeq,
    outcome: ErrandOutcome,
) -> Result<Vec<Event>, Rejection> {
    let owes = open(state, task)?.inputs.contains_key(&entry);
    if owes { Ok(vec![TaskInputDelivered { task, entry, outcome }.into()]) } else { Err(Rejection::NothingToDo) }
}

/// The open task that supervises `child`. What comes after its end is not wanted: the first terminal state wins.
fn supervising<'a>(state: &'a AgentState, id: TaskId, child: &AgentId) -> Result<&'a Task, Rejection> {
    let open = named(state, id)?;
    let is_its = open.child().is_some_and(|own| own.agent == *child);
    if is_its { Ok(open) } else { Err(Rejection::Unknown { what: "task", id: id.to_string() }) }
}

pub(super) fn take_report(
    state: &AgentState,
    id: TaskId,
    child: &AgentId,
    status: TaskStatus,
    report: &Content,
    usage: UsageTotal,
    derived_from: Option<&DerivedFrom>,
) -> Result<Vec<Event>, Rejection> {
    let task = supervising(state, id, child)?;
    let output = CommandOutput { shown: report.clone(), bytes: report.bytes(), cut: false, kept: None };
    let derived = with_childs(task, child, derived_from);
    Ok(ended(state, id, task, &End { status, exit: &Exit::Reported(usage), duration_ms: 0, output: &output, derived }))
}

/// What a child's words rest on: on what it was made for, and on what it heard.
fn with_childs(task: &Task, child: &AgentId, derived_from: Option<&DerivedFrom>) -> DerivedFrom {
    let heard = derived_from.cloned().map(|from| from.of(child));
    heard.map_or_else(|| task.derived.clone(), |heard| task.derived.clone().least(heard))
}

/// A supervisor that is stopped reads it when it is started; one that is to end reads nothing more.
pub(super) fn take_notice(
    state: &AgentState,
    id: TaskId,
    child: &AgentId,
    text: &Content,
    derived_from: Option<&DerivedFrom>,
) -> Result<Vec<Event>, Rejection> {
    let task = supervising(state, id, child)?;
    if state.agent.lifecycle == Lifecycle::Archiving {
        return Err(Rejection::AgentArchived);
    }
    let derived = with_childs(task, child, derived_from);
    let notice = OwnMessage::passing_on(MessageKind::TaskStatus, Origin::Task { task: id }, text.clone(), derived);
    Ok(vec![notice.about([Subject::Task(id)]).enqueued(state).1])
}

/// The end of a child is its report, which one that is archived owes as well.
fn child_directed(
    state: &AgentState,
    id: TaskId,
    lifecycle: ChildLifecycle,
    entry: EventSeq,
) -> Result<Vec<Event>, Rejection> {
    let child = open(state, id)?.child().ok_or(Rejection::NothingToDo)?;
    if entry <= child.directed {
        return Err(Rejection::NothingToDo);
    }
    Ok(vec![ChildDirected { task: id, lifecycle, entry }.into()])
}
