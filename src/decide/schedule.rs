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

use super::{agent, call, episode, task, turn, work};
use crate::events::Event;
use crate::fold::AgentState;
use crate::fold::turn::Phase;

/// The next events that nobody has to ask for; none when the state is at rest.
pub(super) fn next(state: &AgentState) -> Vec<Event> {
    let ended = task::stopped_unbegun(state);
    if !ended.is_empty() {
        return ended;
    }
    let Some(running) = state.turns.current.as_deref() else { return between_turns(state) };
    match &running.phase {
        Phase::RoundOwed => Vec::new(),
        Phase::RoundRequested(requested) => match &requested.given_up {
            Some(error) => turn::fail_provider(state, running, error),
            None => Vec::new(),
        },
        Phase::Calls(calls) => call::next(state, running, calls),
        Phase::Finished { text } if state.queue.interjections().next().is_none() => {
            turn::complete(state, running, text)
        }
        Phase::Finished { .. } => Vec::new(),
    }
}

/// Between turns a stretch of turns is summed up, runnable work is continued, a delegation that has come to rest is
/// reported, and an agent that is to end does so once nothing is open.
fn between_turns(state: &AgentState) -> Vec<Event> {
    let steps = [episode::follow_up, agent::follow_up, work::follow_up];
    steps.iter().map(|step| step(state)).find(|events| !events.is_empty()).unwrap_or_default()
}
