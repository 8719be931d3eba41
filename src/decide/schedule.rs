//! The scheduler: what a state leads to by itself.
//!
//! | the turn's phase      | leads to |
//! |-----------------------|----------|
//! | calls, next is local  | its result, in the same commit (architecture 12) |
//! | calls, next is a command | the command, requested |
//! | round given up        | the turn's failure |
//! | finished, no prompt waits | the turn's end |
//!
//! A command that was stopped before it began has ended, and a binding for which too much waits gives up the oldest,
//! whatever the phase.
//!
//! It proposes events and owns no state.

use super::{agent, binding, call, episode, task, turn, work};
use crate::events::Event;
use crate::fold::AgentState;
use crate::fold::turn::Phase;

/// The next events that nobody has to ask for; none when the state is at rest.
pub(super) fn next(state: &AgentState) -> Vec<Event> {
    let at_any_time = [task::stopped_unbegun, binding::follow_up];
    if let Some(events) = first(state, &at_any_time) {
        return events;
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
    let steps = [episode::follow_up, binding::let_go, agent::follow_up, work::follow_up];
    first(state, &steps).unwrap_or_default()
}

/// What the first step leads to that leads to anything.
fn first(state: &AgentState, steps: &[fn(&AgentState) -> Vec<Event>]) -> Option<Vec<Event>> {
    steps.iter().map(|step| step(state)).find(|events| !events.is_empty())
}
