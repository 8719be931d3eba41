//! Episodes: stretches of turns, summed up when they are over (semantics 9).
//!
//! The digest is made from the state alone, so that the same turns give the same text.

use crate::events::Event;
use crate::events::memory::{EpisodeBoundary, EpisodeFinalized};
use crate::events::queue::MessageKind;
use crate::fold::AgentState;
use crate::fold::turn::RecentTurn;
use crate::words::id::EpisodeId;
use crate::words::limit::{EPISODE_TURNS_MAX, INLINE_BYTES_MAX};
use crate::words::prompt_text::{Label, PromptText};

/// The episode that has come to its end between turns, if one has.
pub(super) fn follow_up(state: &AgentState) -> Vec<Event> {
    let open: Vec<&RecentTurn> = state.turns.recent.iter().filter(|turn| !turn.held).collect();
    let Some((boundary, count)) = boundary(state, &open) else { return Vec::new() };
    let (turns, episode) = (&open[..count], state.memory.last.next());
    let (first, last) = (turns[0].run, turns[count - 1].run);
    let work = turns[count - 1].work;
    let digest = digest(episode, turns).into_content();
    vec![EpisodeFinalized { episode, first, last, digest, work, boundary }.into()]
}

/// What ended the stretch, and how many of the open turns belong to it.
fn boundary(state: &AgentState, open: &[&RecentTurn]) -> Option<(EpisodeBoundary, usize)> {
    let last = open.last()?;
    if let Some(count) = open.windows(2).position(|pair| pair[0].work != pair[1].work) {
        return Some((EpisodeBoundary::WorkChanged, count + 1));
    }
    if state.waiting.waits.values().any(|wait| wait.created > last.started) {
        return Some((EpisodeBoundary::WaitBegan, open.len()));
    }
    if last.kind == MessageKind::TaskResult {
        return Some((EpisodeBoundary::Rejoined, open.len()));
    }
    (open.len() >= EPISODE_TURNS_MAX).then_some((EpisodeBoundary::TurnsReached, open.len()))
}

/// A turn's end and the beginning of its answer, each within its bound of a text that stays in its event.
fn digest(episode: EpisodeId, turns: &[&RecentTurn]) -> PromptText {
    let label = PromptText::new().own(episode).own(": ").own(turns.len()).own(" earlier turns");
    let label = match turns.last().and_then(|turn| turn.work) {
        Some(work) => label.own(", on ").own(work),
        None => label,
    };
    let text = PromptText::new().label(Label::Episode, &label.own(", summed up by the runtime"));
    let room_bytes = INLINE_BYTES_MAX.saturating_sub(text.len() + turns.len()) / turns.len().max(1);
    turns.iter().fold(text, |text, turn| {
        let end = PromptText::new().own(turn.run).own(" (").own(turn.kind).own(", ").own(turn.calls_done);
        let end = end.own(" calls) ").own(turn.outcome).own(":").quote_item("", &turn.answer_line);
        text.line().own_text(&end.trimmed().cut(room_bytes))
    })
}
