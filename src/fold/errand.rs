//! Errands: what other agents owed this one, and it has taken in (architecture 19).
//!
//! An entry is named by the sender's event that owes it. Entries of a kind come in their order, so the last one that was
//! taken tells of all before it, for as long as the two know each other.
//!
//! **Invariant:** marks are of the supervisor and of the children that are supervised, and of nobody else.

use super::Illegal;
use crate::events::agent::{ErrandKind, ErrandTaken};
use crate::words::id::{AgentId, EventSeq};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errands {
    /// The entry that was taken last, by sender and kind.
    taken: BTreeMap<AgentId, BTreeMap<ErrandKind, EventSeq>>,
}

impl Errands {
    /// Whether the errand was taken in before.
    pub fn has_taken(&self, from: &AgentId, errand: ErrandKind, entry: EventSeq) -> bool {
        self.taken.get(from).and_then(|kinds| kinds.get(&errand)).is_some_and(|last| entry <= *last)
    }

    /// Whose errands it has taken in.
    pub fn senders(&self) -> impl Iterator<Item = &AgentId> {
        self.taken.keys()
    }

    pub(super) fn evolve(&mut self, event: &ErrandTaken) -> Result<(), Illegal> {
        if self.has_taken(&event.from, event.errand, event.entry) {
            return Err("the errand was taken in before");
        }
        self.taken.entry(event.from.clone()).or_default().insert(event.errand, event.entry);
        Ok(())
    }

    /// Nothing more comes from a child whose delegation has ended.
    pub(super) fn forget(&mut self, child: &AgentId) {
        self.taken.remove(child);
    }
}
