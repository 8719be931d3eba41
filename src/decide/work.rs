//! The work plane: opening, altering, picking, completing and continuing work.

use super::call::Called;
use super::queue::{OwnMessage, over};
use super::{Decision, Rejection, turn};
use crate::events::Event;
use crate::events::agent::Answer;
use crate::events::call::CallResult;
use crate::events::operator::{BriefCreated, BriefKind};
use crate::events::queue::{DerivedFrom, Lane, MessageKind, MessageOutcome, MessageSettled, Origin, Subject};
use crate::events::waiting::WaitCancelled;
use crate::events::work::{
    BlockerChange, TodoStatus, WorkChange, WorkItemCompleted, WorkItemContinued, WorkItemCreated, WorkItemHeld,
    WorkItemPicked, WorkItemRechecked, WorkItemUpdated,
};
use crate::fold::AgentState;
use crate::fold::posture::{NO_PROGRESS, PostureKind, posture, runnable};
use crate::fold::turn::{Calls, Turn};
use crate::fold::work::WorkItem;
use crate::words::content::{Content, excerpt};
use crate::words::id::WorkId;
use crate::words::limit::{
    CONTINUATIONS_MAX, DEPENDENCIES_MAX, EXCERPT_BYTES_MAX, NOTE_BYTES_MAX, TODO_BYTES_MAX, TODOS_MAX, WAIT_MS_MAX,
    WAIT_MS_MIN, WORK_OPEN_MAX,
};
use crate::words::prompt_text::PromptText;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkCommand {
    Create {
        change: WorkChange,
    },
    Update {
        work: WorkId,
        change: WorkChange,
    },
    Pick {
        work: WorkId,
    },
    Complete {
        work: WorkId,
        report: Option<Content>,
    },
    /// Runnable work has nobody who continues it, and its time has come.
    Continue {
        work: WorkId,
    },
    /// Blockers are to be looked at again.
    Recheck,
}

pub(super) fn decide(state: &AgentState, command: &WorkCommand, at: Timestamp) -> Result<Decision, Rejection> {
    super::queue::admits(state)?;
    match command {
        WorkCommand::Create { change } => {
            let (event, work) = create(state, None, change)?;
            Ok(Decision::answering(vec![event], Answer::Work(work)))
        }
        WorkCommand::Update { work, change } => {
            Ok(Decision::answering(vec![update(state, None, *work, change)?], Answer::Work(*work)))
        }
        WorkCommand::Pick { work } => {
            open(state, *work)?;
            Ok(Decision::answering(pick(state, *work), Answer::Work(*work)))
        }
        WorkCommand::Complete { work, report } => complete_from_outside(state, *work, report.as_ref()),
        WorkCommand::Continue { work } => due(state, *work, at).map(Decision::of),
        WorkCommand::Recheck => recheck(state, at).map(Decision::of),
    }
}

/// An open item. One that was completed has ended; any other never was.
fn open(state: &AgentState, work: WorkId) -> Result<&WorkItem, Rejection> {
    state.works.open.get(&work).ok_or_else(|| {
        let (what, id) = ("work item", work.to_string());
        if state.works.is_completed(work) { Rejection::Ended { what, id } } else { Rejection::Unknown { what, id } }
    })
}

fn create(state: &AgentState, turn: Option<&Turn>, change: &WorkChange) -> Result<(Event, WorkId), Rejection> {
    if state.works.open.len() >= WORK_OPEN_MAX {
        return Err(Rejection::TooMany { what: "open work items", max: WORK_OPEN_MAX });
    }
    if change.objective.is_none() {
        return Err(Rejection::Invalid { field: "objective", reason: "must be given".into() });
    }
    check(state, change)?;
    let work = state.works.last.next();
    let derived_from = turn.map(|turn| turn.derived.clone());
    Ok((WorkItemCreated { work, change: change.clone(), derived_from }.into(), work))
}

fn update(state: &AgentState, turn: Option<&Turn>, work: WorkId, change: &WorkChange) -> Result<Event, Rejection> {
    open(state, work)?;
    check(state, change)?;
    let itself = [
        ("depends_on", change.depends_on.as_ref().is_some_and(|others| others.contains(&work))),
        ("parent_work_item_id", change.parent == Some(work)),
    ];
    if let Some((field, _)) = itself.into_iter().find(|(_, names_it)| *names_it) {
        return Err(Rejection::Invalid { field, reason: "names the item itself".into() });
    }
    let derived_from = turn.map(|turn| turn.derived.clone());
    Ok(WorkItemUpdated { work, change: change.clone(), derived_from }.into())
}

fn pick(state: &AgentState, work: WorkId) -> Vec<Event> {
    if state.works.focus == Some(work) { Vec::new() } else { vec![WorkItemPicked { work }.into()] }
}

/// Every text has its bound, and every item that is named is there.
fn check(state: &AgentState, change: &WorkChange) -> Result<(), Rejection> {
    let blocker = match &change.blocker {
        Some(BlockerChange::Set { text, .. }) => Some(text),
        Some(BlockerChange::Clear) | None => None,
    };
    let notes = [("objective", change.objective.as_ref()), ("blocker", blocker)];
    for (field, text) in notes {
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(Rejection::Invalid { field, reason: "must not be empty".into() });
        }
    }
    let notes = notes.into_iter().chain([("delivery_target", change.delivery_target.as_ref())]);
    let long = |text: Option<&String>| text.is_some_and(|text| text.len() > NOTE_BYTES_MAX);
    if let Some((field, _)) = notes.into_iter().find(|(_, text)| long(*text)) {
        return Err(over(field, NOTE_BYTES_MAX));
    }
    check_lists(state, change)
}

fn check_lists(state: &AgentState, change: &WorkChange) -> Result<(), Rejection> {
    let invalid = |field, reason: String| Err(Rejection::Invalid { field, reason });
    if let Some(BlockerChange::Set { recheck_after_ms, .. }) = &change.blocker
        && !(WAIT_MS_MIN..=WAIT_MS_MAX).contains(recheck_after_ms)
    {
        return invalid("recheck_after_ms", format!("is not between {WAIT_MS_MIN} and {WAIT_MS_MAX}"));
    }
    if change.todos.as_ref().is_some_and(|todos| todos.len() > TODOS_MAX) {
        return invalid("todo_list", format!("has more than {TODOS_MAX} entries"));
    }
    if change.todos.iter().flatten().any(|todo| todo.text.trim().is_empty() || todo.text.len() > TODO_BYTES_MAX) {
        return invalid("todo_list", format!("has an entry that is empty or longer than {TODO_BYTES_MAX} bytes"));
    }
    if change.depends_on.as_ref().is_some_and(|items| items.len() > DEPENDENCIES_MAX) {
        return invalid("depends_on", format!("names more than {DEPENDENCIES_MAX} items"));
    }
    let unknown = |work: &&WorkId| work.0 == 0 || **work > state.works.last;
    if let Some(work) = change.depends_on.iter().flatten().find(unknown) {
        return invalid("depends_on", format!("names {work}, which there is not"));
    }
    match change.parent.as_ref().filter(unknown) {
        Some(work) => invalid("parent_work_item_id", format!("names {work}, which there is not")),
        None => Ok(()),
    }
}

/// The end of an item: its waits end with it (semantics 4).
fn complete(state: &AgentState, work: WorkId, report: &Content) -> Result<Vec<Event>, Rejection> {
    let item = open(state, work)?;
    let waits = state.waiting.waits.iter().filter(|(_, wait)| wait.work() == Some(work));
    let cancelled = waits.map(|(wait, _)| WaitCancelled { wait: *wait, reason: "work_completed".into() }.into());
    let todos_unfinished = item.todos_unfinished();
    let completed = WorkItemCompleted { work, report: report.clone(), todos_unfinished }.into();
    Ok(cancelled.chain([completed]).collect())
}

/// Without a turn to answer in, the completion report is a brief of its own. Completing again changes nothing.
fn complete_from_outside(state: &AgentState, work: WorkId, report: Option<&Content>) -> Result<Decision, Rejection> {
    if state.works.is_completed(work) {
        return Ok(Decision::answering(Vec::new(), Answer::Work(work)));
    }
    let report = report.cloned().unwrap_or_else(|| Content::from("Completed by the operator."));
    let mut events = complete(state, work, &report)?;
    if state.turns.current.is_none() {
        let (brief, kind) = (state.briefs.last.next(), BriefKind::Result);
        events.push(BriefCreated { brief, kind, run: None, message: None, work: Some(work), text: report }.into());
    }
    Ok(Decision::answering(events, Answer::Work(work)))
}

pub(super) fn create_called(state: &AgentState, turn: &Turn, change: &WorkChange, focus: bool) -> Called {
    let (event, work) = create(state, Some(turn), change)?;
    let mut events = vec![event];
    if focus {
        events.push(WorkItemPicked { work }.into());
    }
    Ok((events, CallResult::WorkWritten { work, revision: 1, notes: Vec::new() }))
}

pub(super) fn update_called(state: &AgentState, turn: &Turn, work: WorkId, change: &WorkChange) -> Called {
    let event = update(state, Some(turn), work, change)?;
    let revision = open(state, work)?.revision + 1;
    Ok((vec![event], CallResult::WorkWritten { work, revision, notes: Vec::new() }))
}

pub(super) fn pick_called(state: &AgentState, work: WorkId) -> Called {
    let revision = open(state, work)?.revision;
    Ok((pick(state, work), CallResult::WorkWritten { work, revision, notes: Vec::new() }))
}

/// Without a report of its own the text of the round is it.
pub(super) fn complete_called(state: &AgentState, calls: &Calls, work: WorkId, report: Option<&Content>) -> Called {
    if state.works.is_completed(work) {
        let notes = vec!["it was completed before".to_owned()];
        return Ok((Vec::new(), CallResult::WorkWritten { work, revision: 0, notes }));
    }
    let item = open(state, work)?;
    let said = Some(&calls.text).filter(|text| text.bytes() > 0);
    let report = report.filter(|text| text.bytes() > 0).or(said).cloned();
    let report = report.unwrap_or_else(|| Content::from("(Completed without a report.)"));
    let notes = match item.todos_unfinished() {
        0 => Vec::new(),
        count => vec![format!("{count} todos were not finished")],
    };
    let revision = item.revision;
    Ok((complete(state, work, &report)?, CallResult::WorkWritten { work, revision, notes }))
}

/// What runnable work leads to by itself: its first continuation at once, or its hold. Later continuations are owed
/// at their time.
pub(super) fn follow_up(state: &AgentState) -> Vec<Event> {
    if posture(state).kind != PostureKind::HasRunnableWork {
        return Vec::new();
    }
    match runnable(state) {
        Some((work, item)) if item.fruitless >= CONTINUATIONS_MAX => {
            vec![WorkItemHeld { work, reason: NO_PROGRESS.into() }.into()]
        }
        Some((work, item)) if item.continuations == 0 => continued(state, work, item),
        Some(_) | None => Vec::new(),
    }
}

fn due(state: &AgentState, work: WorkId, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    let is_runnable = posture(state).kind == PostureKind::HasRunnableWork;
    match runnable(state).filter(|(id, item)| is_runnable && *id == work && item.continue_at() <= at) {
        Some((work, item)) => Ok(continued(state, work, item)),
        None => Err(Rejection::NothingToDo),
    }
}

/// A tick that takes the item up again, after all that came from outside.
fn continued(state: &AgentState, work: WorkId, item: &WorkItem) -> Vec<Event> {
    let next = item.todos.iter().find(|todo| todo.status != TodoStatus::Completed);
    let text = PromptText::new().own(work).own(" can go on. Its objective:");
    let text = text.quote(excerpt(&item.objective, EXCERPT_BYTES_MAX));
    let text = match next {
        Some(todo) => text.own("Next in its list:").quote(excerpt(&todo.text, EXCERPT_BYTES_MAX)),
        None => text,
    };
    let about = vec![Subject::Work(work)];
    let tick = tick(state, "continuation", Lane::Normal, text, about, item.derived.clone());
    vec![WorkItemContinued { work }.into(), tick]
}

fn tick(
    state: &AgentState,
    subsystem: &str,
    lane: Lane,
    text: PromptText,
    about: Vec<Subject>,
    derived: DerivedFrom,
) -> Event {
    let origin = Origin::System { subsystem: subsystem.to_owned() };
    let tick = OwnMessage::new(MessageKind::SystemTick, origin, text, derived);
    tick.in_lane(lane).about(about).enqueued(state).1
}

/// Items that one recheck names.
const RECHECKED_MAX: usize = 32;

/// Due rechecks become one message, which a message that is there already stands for (semantics 4). It unblocks
/// nothing by itself.
fn recheck(state: &AgentState, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    let mut items = state.works.rechecks_due(at);
    items.truncate(RECHECKED_MAX);
    if items.is_empty() {
        return Err(Rejection::NothingToDo);
    }
    let text = items.iter().fold(PromptText::new().own("Blocked work is to be looked at again."), |text, work| {
        let blocker = state.works.open.get(work).and_then(|item| item.blocker.as_ref());
        let blocker = blocker.map(|blocker| excerpt(&blocker.text, EXCERPT_BYTES_MAX / 8)).unwrap_or_default();
        text.line().own(*work).own(":").quote_item("", blocker)
    });
    let about = items.iter().map(|work| Subject::Work(*work)).collect();
    let message = state.queue.last.next();
    let derived = items.iter().filter_map(|work| state.works.open.get(work)).map(|item| item.derived.clone());
    let derived = derived.fold(DerivedFrom::or_operator(None), DerivedFrom::least);
    let tick = tick(state, "recheck", Lane::Background, text, about, derived);
    let stands_for = turn::current_message(state).or_else(|| state.queue.waiting.keys().next().copied());
    let coalesced =
        stands_for.map(|other| MessageSettled { message, outcome: MessageOutcome::Coalesced(other) }.into());
    Ok([WorkItemRechecked { work: items }.into(), tick].into_iter().chain(coalesced).collect())
}
