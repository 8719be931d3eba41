//! Fork: the bounded view of a parent's context that a child may begin with (control-plane seed, Fork Context
//! Derivation).
//!
//! It is made of structured state, never of a copied transcript: the active work item with its plan and waits, the
//! memory and the episodes bound to it, and the small tail of turns spent on it. Stable parts come first. The same
//! state and handoff give the same bytes.

use super::standing::{entries, in_full, memory, work_hashes};
use super::{Contents, Missing, Needs};
use crate::events::{Event, QueueEvent};
use crate::fold::AgentState;
use crate::fold::memory::Episode;
use crate::fold::turn::RecentTurn;
use crate::fold::work::WorkItem;
use crate::words::content::excerpt;
use crate::words::id::WorkId;
use crate::words::limit::INHERITED_BYTES_MAX;
use crate::words::prompt_text::{Label, PromptText};

/// Turns of the tail.
const TAIL_TURNS_MAX: usize = 3;
/// Bytes of one item, note, episode or turn.
const PART_BYTES_MAX: usize = INHERITED_BYTES_MAX / 16;
/// Bytes of the active work item.
const ACTIVE_BYTES_MAX: usize = INHERITED_BYTES_MAX / 4;
/// Bytes of all parts of one kind together: each kind has its room, however much there is of the others.
const KIND_BYTES_MAX: usize = INHERITED_BYTES_MAX / 6;
/// Bytes of the words around them.
const FRAME_BYTES_MAX: usize = 1024;
const _: () = assert!(ACTIVE_BYTES_MAX + 4 * KIND_BYTES_MAX + FRAME_BYTES_MAX <= INHERITED_BYTES_MAX);

/// The contents that the view is made of.
pub fn needs(state: &AgentState, handoff: &str) -> Needs {
    let items = state.works.focused().into_iter().chain(related(state, handoff));
    let work = items.flat_map(|(_, item)| work_hashes(item));
    let notes = entries(state, bound(state)).filter_map(|(_, entry)| entry.text.stored());
    let episodes = episodes(state).filter_map(|episode| episode.digest.stored());
    let turns = tail(state).flat_map(|turn| [Some(turn.message_seq), turn.answer]);
    Needs { events: turns.flatten().collect(), hashes: work.chain(notes).chain(episodes).collect() }
}

/// The view. `contents` holds what [`needs`] asked for.
pub fn render(state: &AgentState, contents: &Contents, handoff: &str) -> Result<String, Missing> {
    let label = PromptText::new().own("view of ").own(&state.agent_id);
    let label = label.own("'s context, inherited: what it works on, not what you are told to do");
    let text = PromptText::new().label(Label::Inherited, &label).line();
    let text = match state.works.focused() {
        Some((id, active)) => {
            push(text, &work(state, id, active, "active work of the parent", contents)?, ACTIVE_BYTES_MAX)
        }
        None => text.own("It has no work in focus; its recent turns follow.\n"),
    };
    let related =
        related(state, handoff).map(|(id, item)| work(state, id, item, "related work of the parent", contents));
    let text = push_all(text, related)?;
    let text = push(text, &memory(state, contents, bound(state))?.unwrap_or_default(), KIND_BYTES_MAX);
    let episodes = episodes(state).map(|episode| contents.content(&episode.digest).map(PromptText::kept));
    let text = push_all(text, episodes)?;
    let text = push_all(text, tail(state).map(|turn| turn_text(turn, contents)))?;
    Ok(text.trimmed().into_string())
}

/// A work item in full, with the waits and callbacks attached to it.
fn work(
    state: &AgentState,
    id: WorkId,
    item: &WorkItem,
    place: &'static str,
    contents: &Contents,
) -> Result<PromptText, Missing> {
    let text = in_full(state, id, item, place, contents)?;
    let waits = state.waiting.active().filter(|(_, wait)| wait.work() == Some(id));
    let text = waits
        .fold(text, |text, (wait, open)| text.line().own("waits: ").own(wait).own(":").quote_item("", &open.reason));
    let triggers = state.waiting.triggers.iter().filter(|(_, trigger)| trigger.work == Some(id));
    Ok(triggers.fold(text, |text, (trigger, set)| text.line().own("callback: ").own(trigger).own(" ").name(&set.label)))
}

/// Notes are inherited when they are bound to the active work, or to none. An agent without active work gives those
/// that are bound to none, for no id is zero.
fn bound(state: &AgentState) -> Option<WorkId> {
    Some(state.works.focus.unwrap_or_default())
}

/// What else a child must know beside the active item (the seed's four exceptions).
fn related<'a>(state: &'a AgentState, handoff: &str) -> impl Iterator<Item = (WorkId, &'a WorkItem)> {
    let active = state.works.focused();
    let others = state.works.open.iter().map(|(id, item)| (*id, item)).filter(|(id, _)| state.works.focus != Some(*id));
    others.filter(move |(id, item)| {
        item.is_constraint || names(handoff, *id) || active.is_some_and(|active| relates(active, (*id, item)))
    })
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

/// Episodes of the active work; without any, the last one. They stand for turns that the tail does not repeat.
fn episodes(state: &AgentState) -> impl Iterator<Item = &Episode> {
    let (focus, repeated) = (state.works.focus, tail(state).next().map(|turn| turn.run));
    let skipped = if focus.is_some() { 0 } else { state.memory.episodes.len().saturating_sub(1) };
    let bound = state.memory.episodes.iter().skip(skipped).filter(move |one| focus.is_none() || one.work == focus);
    bound.filter(move |episode| repeated.is_none_or(|first| episode.first < first))
}

/// The last turns that were spent on the active work; without any, the last turns.
fn tail(state: &AgentState) -> impl Iterator<Item = &RecentTurn> {
    let focus = state.works.focus;
    let bound: Vec<&RecentTurn> =
        state.turns.recent.iter().filter(|turn| focus.is_none() || turn.work == focus).collect();
    let skipped = bound.len().saturating_sub(TAIL_TURNS_MAX);
    bound.into_iter().skip(skipped)
}

fn turn_text(turn: &RecentTurn, contents: &Contents) -> Result<PromptText, Missing> {
    let Event::Queue(QueueEvent::Enqueued(message)) = &contents.event(turn.message_seq)?.event else {
        return Err(Missing::Event(turn.message_seq));
    };
    let message = contents.content(&message.body)?.to_owned();
    let answer = match turn.answer {
        Some(seq) => contents.text(seq)?.to_owned(),
        None => String::new(),
    };
    let (message, answer) = (excerpt(&message, PART_BYTES_MAX / 3), excerpt(&answer, PART_BYTES_MAX / 3));
    let text = PromptText::new().own(turn.run).own(" was asked:").quote(message);
    Ok(text.own("and answered:").quote(answer))
}

/// All parts of one kind, each within its bound, and together within theirs.
fn push_all(
    text: PromptText,
    mut parts: impl Iterator<Item = Result<PromptText, Missing>>,
) -> Result<PromptText, Missing> {
    let all = parts.try_fold(PromptText::new(), |all, part| Ok(push(all, &part?, PART_BYTES_MAX)))?;
    Ok(push(text, &all, KIND_BYTES_MAX))
}

/// A part within its bound; a cut one says so.
fn push(text: PromptText, part: &PromptText, bytes_max: usize) -> PromptText {
    let part = part.clone().trimmed();
    let (bytes, shown) = (part.len(), part.cut(bytes_max));
    let is_cut = shown.len() < bytes;
    let text = text.line().own_text(&shown);
    if is_cut { text.line().own("(cut; it has ").own(bytes).own(" bytes)").own("\n") } else { text.line() }
}
