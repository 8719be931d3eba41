//! How the prompt tells where the agent stands: its work, its waits, its memory.
//!
//! The form is fixed line by line: `builtin/runbook` reads its progress back from it.

use super::{Contents, Missing};
use crate::events::waiting::WakeOn;
use crate::events::work::TodoStatus;
use crate::fold::AgentState;
use crate::fold::memory::Entry;
use crate::fold::posture::work_standing;
use crate::fold::task::{Job, Task};
use crate::fold::waiting::Wait;
use crate::fold::work::WorkItem;
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{TaskId, WaitId, WorkId};
use crate::words::limit::EXCERPT_BYTES_MAX;
use crate::words::prompt_text::{Label, PromptText};

/// Entries that tell of one kind of thing; a longer list says how many more there are.
const ENTRIES_MAX: usize = 64;

/// The stored texts that a work item in full is made of.
pub(super) fn work_hashes(item: &WorkItem) -> impl Iterator<Item = Hash> {
    item.plan.iter().chain(&item.acceptance).filter_map(Content::stored)
}

/// Where the agent stands; none when nothing is open.
pub(super) fn work(state: &AgentState, contents: &Contents) -> Result<Option<PromptText>, Missing> {
    let text = match state.works.focused() {
        Some((id, item)) => in_full(state, id, item, "in focus", contents)?,
        None => PromptText::new(),
    };
    let others = state.works.open.iter().filter(|(id, _)| state.works.focus != Some(**id));
    let lists = list(PromptText::new(), "other work:", others.map(|(id, item)| compact(state, *id, item)));
    let lists = list(lists, "waits:", state.waiting.active().map(|(id, wait)| waiting(id, wait)));
    let timers = state.waiting.timers.iter();
    let lists =
        list(lists, "timers:", timers.map(|(id, timer)| PromptText::new().own(*id).own(" due ").own(timer.due)));
    let tasks = state.tasks.open.iter().filter(|(_, task)| !task.in_foreground());
    let lists = list(lists, "tasks:", tasks.map(|(id, task)| supervised(*id, task)));
    Ok(match (text.is_empty(), lists.is_empty()) {
        (true, true) => None,
        (true, false) => {
            let label = PromptText::new().own("no work in focus");
            Some(PromptText::new().label(Label::OtherWork, &label).line().own_text(&lists).trimmed())
        }
        (false, _) => Some(text.line().own_text(&lists).trimmed()),
    })
}

/// A work item in full, plan and todos included.
pub(super) fn in_full(
    state: &AgentState,
    id: WorkId,
    item: &WorkItem,
    place: &'static str,
    contents: &Contents,
) -> Result<PromptText, Missing> {
    let standing = work_standing(state, id, item).scheduling.name();
    let label = PromptText::new().own(id).own(" ").own(place).own(", ").own(standing).own(", revision ");
    let label = label.own(item.revision).own(", ").own(item.derived.trust);
    let mut text = PromptText::new().label(Label::Work, &label).line().own("objective:").quote(&item.objective);
    text = text.own("plan status: ").own(item.plan_status).own("\n");
    if item.is_constraint {
        text = text.own("constraint: other work must respect this\n");
    }
    if let Some(target) = &item.delivery_target {
        text = text.own("delivery target:").quote(target);
    }
    if let Some(blocker) = &item.blocker {
        text = text.own("blocker:").quote(&blocker.text);
    }
    if let Some(acceptance) = &item.acceptance {
        text = text.own("acceptance:").quote(contents.content(acceptance)?);
    }
    if let Some(plan) = &item.plan {
        text = text.own("plan, ").own(item.plan_derived.trust).own(":").quote(contents.content(plan)?);
    }
    if !item.todos.is_empty() {
        text = text.line().own("todo:");
    }
    Ok(item.todos.iter().fold(text, |text, todo| text.quote_item(mark(todo.status), &todo.text)).line())
}

fn compact(state: &AgentState, id: WorkId, item: &WorkItem) -> PromptText {
    let standing = work_standing(state, id, item).scheduling.name();
    let text = PromptText::new().own(id).own(" ").own(standing).own(", ").own(item.derived.trust).own(":");
    text.quote_item("", excerpt(&item.objective, EXCERPT_BYTES_MAX))
}

fn waiting(id: WaitId, wait: &Wait) -> PromptText {
    let text = PromptText::new().own(id);
    let text = wait.work().into_iter().fold(text, |text, work| text.own(" of ").own(work)).own(" for ");
    let text = match &wait.wake {
        WakeOn::OperatorInput => text.own("the operator"),
        WakeOn::TaskResult(task) => text.own(*task),
        WakeOn::External { resource: None } => text.own("outside"),
        WakeOn::External { resource: Some(resource) } => text.own("outside ").name(resource),
        WakeOn::Timer { .. } => text.own("a time"),
    };
    let text = wait.due.into_iter().fold(text, |text, due| text.own(", until ").own(due));
    text.own(":").quote_item("", excerpt(&wait.reason, EXCERPT_BYTES_MAX))
}

fn supervised(id: TaskId, task: &Task) -> PromptText {
    let text = PromptText::new().own(id).own(" ").own(task.status());
    let text = match &task.job {
        Job::Command(_) => text.own(" command:"),
        Job::Child(child) => text.own(" child ").own(&child.agent).own(":"),
    };
    text.quote_item("", excerpt(&task.summary, EXCERPT_BYTES_MAX))
}

/// The notes that an agent keeps. `only`: those bound to this work, or to none.
pub(super) fn memory(
    state: &AgentState,
    contents: &Contents,
    only: Option<WorkId>,
) -> Result<Option<PromptText>, Missing> {
    let mut text = PromptText::new();
    for (name, entry) in entries(state, only) {
        let note = text.line().name(name);
        let note = entry.work.into_iter().fold(note, |note, work| note.own(" for ").own(work)).own(":");
        text = note.quote(contents.content(&entry.text)?);
    }
    let label = PromptText::new().own("working memory: notes that you keep");
    let labelled = |notes: PromptText| PromptText::new().label(Label::Memory, &label).line().own_text(&notes).trimmed();
    Ok(Some(text).filter(|text| !text.is_empty()).map(labelled))
}

pub(super) fn entries(state: &AgentState, only: Option<WorkId>) -> impl Iterator<Item = (&String, &Entry)> {
    let entries = state.memory.entries.iter();
    entries.filter(move |(_, entry)| only.is_none() || entry.work.is_none() || entry.work == only)
}

fn list(text: PromptText, heading: &'static str, entries: impl Iterator<Item = PromptText>) -> PromptText {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return text;
    }
    let text = text.line().own(heading).own("\n");
    let text = entries.by_ref().take(ENTRIES_MAX).fold(text, |text, entry| text.own_text(&entry).line());
    match entries.count() {
        0 => text,
        more => text.own("and ").own(more).own(" more\n"),
    }
}

fn mark(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "[ ] ",
        TodoStatus::InProgress => "[~] ",
        TodoStatus::Completed => "[x] ",
    }
}
