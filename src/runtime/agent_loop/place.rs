//! The places of an agent among those of the host: one for its turn, one for each command.

use super::AgentLoop;
use crate::fold::owed::{Effect, Owed};
use crate::fold::task::Task;
use crate::runtime::mail::Mail;
use crate::runtime::permit::{Claim, Permit, Urgency};
use crate::words::id::TaskId;
use std::collections::BTreeMap;
use tokio::task::AbortHandle;

/// What an agent holds and has asked for.
#[derive(Default)]
pub(super) struct Held {
    /// The place among the host's active turns, while a turn is owed or runs.
    pub(super) turn: Option<Permit>,
    turn_claim: Option<AbortHandle>,
    commands: BTreeMap<TaskId, Command>,
}

/// The place of a command.
enum Command {
    /// One of those in which commands begin.
    Foreground(Permit),
    /// The same, until there is one in the background.
    Leaving {
        _place: Permit,
        claim: AbortHandle,
    },
    Background {
        _place: Permit,
    },
}

impl Held {
    /// Whether the agent waits for a place to begin or go on with a turn.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.turn_claim.is_some()
    }

    pub(super) fn take_turn(&mut self, place: Permit) {
        (self.turn, self.turn_claim) = (Some(place), None);
    }

    pub(super) fn begin(&mut self, task: TaskId, place: Permit) {
        self.commands.insert(task, Command::Foreground(place));
    }

    /// The place in which a command began is given back for the one in the background.
    pub(super) fn go_on_in_background(&mut self, task: TaskId, place: Permit) {
        if let Some(command) = self.commands.get_mut(&task) {
            *command = Command::Background { _place: place };
        }
    }

    pub(super) fn end(&mut self, task: TaskId) {
        if let Some(Command::Leaving { claim, .. }) = self.commands.remove(&task) {
            claim.abort();
        }
    }

    /// Nothing more is waited for.
    pub(super) fn give_up(&mut self) {
        self.turn_claim.take().iter().for_each(AbortHandle::abort);
        let tasks: Vec<TaskId> = self.commands.keys().copied().collect();
        tasks.into_iter().for_each(|task| self.end(task));
    }
}

impl AgentLoop {
    /// A turn that is owed or runs holds one place among the host's active turns. A command that no call waits for gives
    /// the place in which it began to others, once there is one for it in the background.
    pub(super) fn claim_places(&mut self, owed: &[Owed]) {
        let turns = self.state.turns.current.is_some() || owed.iter().any(|owed| owed.effect == Effect::StartTurn);
        if !turns {
            self.held.turn = None;
            self.held.turn_claim.take().iter().for_each(AbortHandle::abort);
        } else if self.held.turn.is_none() && self.held.turn_claim.is_none() {
            let (turns, claim, me) = (self.shared.turns.clone(), self.claim(), self.received.me.clone());
            let claim = tokio::spawn(async move {
                // A loop that has ended drops the place, which serves the next.
                let _ = me.send(Mail::Place(turns.take(claim).await));
            });
            self.held.turn_claim = Some(claim.abort_handle());
        }
        let in_background = |task: &Task| task.command().is_some() && !task.in_foreground();
        let leaving = self.state.tasks.open.iter().filter(|(_, task)| in_background(task)).map(|(id, _)| *id);
        leaving.collect::<Vec<_>>().into_iter().for_each(|task| self.leave_foreground(task));
    }

    fn leave_foreground(&mut self, task: TaskId) {
        if !matches!(self.held.commands.get(&task), Some(Command::Foreground(_))) {
            return;
        }
        let (background, claim, me) = (self.shared.background.clone(), self.claim(), self.received.me.clone());
        let claim = tokio::spawn(async move {
            let _ = me.send(Mail::Background { task, place: background.take(claim).await });
        });
        if let Some(Command::Foreground(place)) = self.held.commands.remove(&task) {
            self.held.commands.insert(task, Command::Leaving { _place: place, claim: claim.abort_handle() });
        }
    }

    /// What the agent asks for a place with.
    pub(super) fn claim(&self) -> Claim {
        Claim { agent: self.id.clone(), urgency: self.urgency(), since: self.shared.source.now() }
    }

    fn urgency(&self) -> Urgency {
        let turn = self.state.turns.current.as_deref().map(|turn| &turn.queued);
        let queued = turn.or_else(|| self.state.queue.first().map(|(_, queued)| queued));
        queued.map_or(Urgency { lane: 3, since: self.state.last_at }, |queued| Urgency {
            lane: queued.lane as u8,
            since: queued.at,
        })
    }
}
