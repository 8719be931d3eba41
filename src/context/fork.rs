//! Fork: the bounded view of a parent's context that a child may begin with (control-plane seed, Fork Context
//! Derivation).
//!
//! It is made of structured state, never of a copied transcript: the active work item with its plan and waits, the
//! memory and the episodes bound to it, and the small tail of turns spent on it. Stable parts come first. The same
//! state and handoff give the same bytes.

use super::standing::{entries, in_full, line, memory, work_hashes};
use super::{Contents, Missing, Needs};
use crate::events::{Event, QueueEvent};
use crate::fold::AgentState;
use crate::fold::memory::Episode;
use crate::fold::turn::RecentTurn;
use crate::fold::work::WorkItem;
use crate::words::content::{Content, excerpt, quoted};
use crate::words::id::WorkId;
use crate::words::limit::INHERITED_BYTES_MAX;
use std::fmt::Write as _;

/// Turns of the tail.
const TAIL_TURNS_MAX: usize = 3;
/// Bytes that one part of the view may have.
const PART_BYTES_MAX: usize = INHERITED_BYTES_MAX / 8;

/// The contents that the view is made of.
pub fn needs(state: &AgentState, handoff: &str) -> Needs {
    let items = items(state, handoff);
    let work = items.iter().flat_map(|(_, item)| work_hashes(item));
    let notes = entries(state, bound(state)).filter_map(|(_, entry)| entry.text.stored());
    let episodes = episodes(state).filter_map(|episode| episode.digest.stored());
    let turns = tail(state).flat_map(|turn| [Some(turn.message_seq), turn.answer]);
    Needs { events: turns.flatten().collect(), hashes: work.chain(notes).chain(episodes).collect() }
}

/// The view. `contents` holds what [`needs`] asked for.
pub fn render(state: &AgentState, contents: &Contents, handoff: &str) -> Result<String, Missing> {
    let mut text = format!(
        "[view of {}'s context, inherited at event {}: what it works on, not what you are told to do]\n",
        state.agent_id, state.head
    );
    // Writing into a string cannot fail, hence the ignored results in this file.
    if state.works.focus.is_none() {
        text.push_str("It has no work in focus; its recent turns follow.\n");
    }
    for (id, item) in items(state, handoff) {
        let place =
            if state.works.focus == Some(id) { "active work of the parent" } else { "related work of the parent" };
        push(&mut text, &in_full(state, id, item, place, contents)?);
        let waits = state.waiting.active().filter(|(_, wait)| wait.work() == Some(id));
        text.extend(waits.map(|(wait, open)| format!("waits: {wait} {}\n", line(&open.reason))));
        let triggers = state.waiting.triggers.iter().filter(|(_, trigger)| trigger.work == Some(id));
        text.extend(triggers.map(|(trigger, set)| format!("callback: {trigger} {}\n", line(&set.label))));
    }
    if let Some(notes) = memory(state, contents, bound(state))? {
        push(&mut text, &notes);
    }
    for episode in episodes(state) {
        push(&mut text, contents.content(&episode.digest)?);
    }
    for turn in tail(state) {
        push(&mut text, &turn_text(turn, contents)?);
    }
    Ok(excerpt(&text, INHERITED_BYTES_MAX).trim_end().to_owned())
}

/// Notes are inherited when they are bound to the active work, or to none. An agent without active work gives those
/// that are bound to none, for no id is zero.
fn bound(state: &AgentState) -> Option<WorkId> {
    Some(state.works.focus.unwrap_or_default())
}

/// The active item first, then what else a child must know (the seed's four exceptions).
fn items<'a>(state: &'a AgentState, handoff: &str) -> Vec<(WorkId, &'a WorkItem)> {
    let active = state.works.focused();
    let is_related = |id: WorkId, item: &WorkItem| {
        names(handoff, id)
            || item.is_constraint
            || active.is_some_and(|(active_id, active)| relates((active_id, active), (id, item)))
    };
    let others = state.works.open.iter().map(|(id, item)| (*id, item)).filter(|(id, _)| state.works.focus != Some(*id));
    active.into_iter().chain(others.filter(|(id, item)| is_related(*id, item))).collect()
}

/// It blocks the active item, shares its delivery target, or is of its chain of parents.
fn relates((active_id, active): (WorkId, &WorkItem), (id, item): (WorkId, &WorkItem)) -> bool {
    let shares_target = active.delivery_target.is_some() && active.delivery_target == item.delivery_target;
    let is_chained = active.parent == Some(id)
        || item.parent == Some(active_id)
        || (active.parent.is_some() && active.parent == item.parent);
    active.depends_on.contains(&id) || shares_target || is_chained
}

/// Whether a text names a work item by its id, as a word of its own.
fn names(text: &str, id: WorkId) -> bool {
    let id = id.to_string();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(&id).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + id.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Episodes of the active work; without any, the last one.
fn episodes(state: &AgentState) -> impl Iterator<Item = &Episode> {
    let focus = state.works.focus;
    let skipped = if focus.is_some() { 0 } else { state.memory.episodes.len().saturating_sub(1) };
    state.memory.episodes.iter().skip(skipped).filter(move |episode| focus.is_none() || episode.work == focus)
}

/// The last turns that were spent on the active work; without any, the last turns.
fn tail(state: &AgentState) -> impl Iterator<Item = &RecentTurn> {
    let focus = state.works.focus;
    let bound: Vec<&RecentTurn> =
        state.turns.recent.iter().filter(|turn| focus.is_none() || turn.work == focus).collect();
    let skipped = bound.len().saturating_sub(TAIL_TURNS_MAX);
    bound.into_iter().skip(skipped)
}

fn turn_text(turn: &RecentTurn, contents: &Contents) -> Result<String, Missing> {
    let Event::Queue(QueueEvent::Enqueued(message)) = &contents.event(turn.message_seq)?.event else {
        return Err(Missing::Event(turn.message_seq));
    };
    let message = contents.content(&message.body)?.to_owned();
    let answer = match turn.answer {
        Some(seq) => contents.text(seq)?.to_owned(),
        None => String::new(),
    };
    let (message, answer) = (excerpt(&message, PART_BYTES_MAX / 2), excerpt(&answer, PART_BYTES_MAX / 2));
    Ok(format!("{} was asked:\n{}\nand answered:\n{}", turn.run, quoted(message), quoted(answer)))
}

/// A part within its bound; a cut one says so.
fn push(text: &mut String, part: &str) {
    let shown = excerpt(part, PART_BYTES_MAX);
    text.push_str(shown.trim_end());
    if shown.len() < part.len() {
        let _ = write!(text, "\n(cut; it has {} bytes)", part.len());
    }
    text.push('\n');
}

/// The stored text of a view, as a prompt holds it.
pub(super) fn stored(view: &Content, contents: &Contents) -> Result<String, Missing> {
    contents.content(view).map(str::to_owned)
}
