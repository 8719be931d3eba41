//! How the prompt tells where the agent stands: its work, its waits, its memory.
//!
//! The form is fixed line by line: `builtin/runbook` reads its progress back from it.

use super::{Contents, Missing};
use crate::events::waiting::WakeOn;
use crate::events::work::{PlanStatus, TodoStatus};
use crate::fold::AgentState;
use crate::fold::memory::Entry;
use crate::fold::posture::work_standing;
use crate::fold::task::{Job, Task};
use crate::fold::waiting::Wait;
use crate::fold::work::WorkItem;
use crate::words::content::{Content, excerpt, quoted};
use crate::words::hash::Hash;
use crate::words::id::{TaskId, WaitId, WorkId};
use crate::words::limit::EXCERPT_BYTES_MAX;
use std::fmt::Write as _;

/// Lines that tell of one kind of thing; a longer list says how many more there are.
const LINES_MAX: usize = 32;

/// The stored texts that a work item in full is made of.
pub(super) fn work_hashes(item: &WorkItem) -> impl Iterator<Item = Hash> {
    item.plan.iter().chain(&item.acceptance).filter_map(Content::stored)
}

/// Where the agent stands; none when nothing is open.
pub(super) fn work(state: &AgentState, contents: &Contents) -> Result<Option<String>, Missing> {
    let mut text = match state.works.focused() {
        Some((id, item)) => in_full(state, id, item, "in focus", contents)?,
        None => String::new(),
    };
    let others = state.works.open.iter().filter(|(id, _)| state.works.focus != Some(**id));
    list(&mut text, "other work:", others.map(|(id, item)| compact(state, *id, item)));
    list(&mut text, "waits:", state.waiting.active().map(|(id, wait)| waiting(id, wait)));
    let timers = state.waiting.timers.iter();
    list(&mut text, "timers:", timers.map(|(id, timer)| format!("{id} due {}", timer.due)));
    let tasks = state.tasks.open.iter().filter(|(_, task)| !task.in_foreground());
    list(&mut text, "tasks:", tasks.map(|(id, task)| supervised(*id, task)));
    Ok(if text.is_empty() { None } else { Some(text.trim_end().to_owned()) })
}

/// A work item in full, plan and todos included.
pub(super) fn in_full(
    state: &AgentState,
    id: WorkId,
    item: &WorkItem,
    place: &str,
    contents: &Contents,
) -> Result<String, Missing> {
    let standing = work_standing(state, id, item).scheduling.name();
    let mut text =
        format!("[{id} {place}, {standing}, revision {}]\nobjective: {}\n", item.revision, line(&item.objective));
    // Writing into a string cannot fail, hence the ignored results in this file.
    let _ = writeln!(text, "plan status: {}", plan_status(item.plan_status));
    if item.is_constraint {
        text.push_str("constraint: other work must respect this\n");
    }
    if let Some(target) = &item.delivery_target {
        let _ = writeln!(text, "delivery target: {}", line(target));
    }
    if let Some(blocker) = &item.blocker {
        let _ = writeln!(text, "blocker: {}", line(&blocker.text));
    }
    for (heading, content) in [("acceptance:", &item.acceptance), ("plan:", &item.plan)] {
        if let Some(content) = content {
            let _ = writeln!(text, "{heading}\n{}", quoted(contents.content(content)?));
        }
    }
    list(&mut text, "todo:", item.todos.iter().map(|todo| format!("- [{}] {}", mark(todo.status), line(&todo.text))));
    Ok(text)
}

fn compact(state: &AgentState, id: WorkId, item: &WorkItem) -> String {
    let standing = work_standing(state, id, item).scheduling.name();
    format!("{id} {standing}: {}", excerpt(&line(&item.objective), EXCERPT_BYTES_MAX))
}

fn waiting(id: WaitId, wait: &Wait) -> String {
    let wake = match &wait.wake {
        WakeOn::OperatorInput => "the operator".to_owned(),
        WakeOn::TaskResult(task) => task.to_string(),
        WakeOn::External { resource } => {
            format!("outside {}", line(resource.as_deref().unwrap_or(""))).trim().to_owned()
        }
        WakeOn::Timer { .. } => "a time".to_owned(),
    };
    let owner = wait.work().map(|work| format!(" of {work}")).unwrap_or_default();
    let due = wait.due.map(|due| format!(", until {due}")).unwrap_or_default();
    format!("{id}{owner} for {wake}{due}: {}", excerpt(&line(&wait.reason), EXCERPT_BYTES_MAX))
}

fn supervised(id: TaskId, task: &Task) -> String {
    let what = match &task.job {
        Job::Command(_) => "command".to_owned(),
        Job::Child(child) => format!("child {}", child.agent),
    };
    format!("{id} {} {what}: {}", task.status(), excerpt(&line(&task.summary), EXCERPT_BYTES_MAX))
}

/// The notes that an agent keeps. `only`: those bound to this work, or to none.
pub(super) fn memory(state: &AgentState, contents: &Contents, only: Option<WorkId>) -> Result<Option<String>, Missing> {
    let mut text = String::new();
    for (name, entry) in entries(state, only) {
        let bound = entry.work.map(|work| format!(" for {work}")).unwrap_or_default();
        let _ = write!(text, "\n{}{bound}:\n{}", line(name), quoted(contents.content(&entry.text)?));
    }
    Ok(if text.is_empty() { None } else { Some(format!("[working memory: notes that you keep]{text}")) })
}

pub(super) fn entries(state: &AgentState, only: Option<WorkId>) -> impl Iterator<Item = (&String, &Entry)> {
    let entries = state.memory.entries.iter();
    entries.filter(move |(_, entry)| only.is_none() || entry.work.is_none() || entry.work == only)
}

fn list(text: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "{heading}");
    for (count, line) in (&mut lines).take(LINES_MAX * 2).enumerate() {
        if count < LINES_MAX * 2 {
            let _ = writeln!(text, "{line}");
        }
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
}

fn mark(status: TodoStatus) -> char {
    match status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '~',
        TodoStatus::Completed => 'x',
    }
}

fn plan_status(status: PlanStatus) -> &'static str {
    status.name()
}

/// Text in one line: nothing in it can pass for a line of the runtime's.
pub(super) fn line(text: &str) -> String {
    let ends = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().map(|c| if ends(c) { ' ' } else { c }).collect()
}
