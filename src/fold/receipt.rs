//! Receipts: the answers to requests that named an idempotency key, for as long as the key binds (architecture 7).
//!
//! Keys are kept by who speaks. The operator has room of its own; each other speaker has a bound, and all of them have
//! one together, at which the one with the most gives way. So nobody's keys are taken, or pushed out, by a stranger.
//!
//! **Invariant:** ages are counted in event time, so that a replay forgets exactly what the original forgot.

use super::{Illegal, Place};
use crate::events::agent::{Answer, RequestAnswered, Speaker};
use crate::events::codec;
use crate::words::hash::Hash;
use crate::words::limit::{
    RECEIPT_AGE_MS_MAX, RECEIPTS_OF_OPERATOR_MAX, RECEIPTS_OF_OTHERS_MAX, RECEIPTS_OF_SPEAKER_MAX,
};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    operator: Ring,
    /// By the hash of the speaker, which has one size too.
    others: BTreeMap<Hash, Ring>,
}

/// The receipts of one speaker. Keys are held as their hashes, which have one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ring {
    by_key: BTreeMap<Hash, Receipt>,
    /// Keys in the order in which they were answered.
    order: VecDeque<Hash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub at: Timestamp,
    pub fingerprint: Hash,
    pub answer: Answer,
}

impl Receipts {
    /// The answer that a speaker's `key` still has at the time `at`.
    pub fn find(&self, speaker: &Speaker, key: &str, at: Timestamp) -> Option<&Receipt> {
        let ring = if *speaker == Speaker::Operator { &self.operator } else { self.others.get(&mark(speaker))? };
        ring.find(&Hash::of(key.as_bytes()), at)
    }

    /// Whether the bounds hold, and each receipt has its place in the order.
    pub(super) fn agree(&self) -> bool {
        self.operator.agrees(RECEIPTS_OF_OPERATOR_MAX)
            && self.others.values().all(|ring| ring.agrees(RECEIPTS_OF_SPEAKER_MAX))
            && self.of_others() <= RECEIPTS_OF_OTHERS_MAX
    }

    pub(super) fn evolve(&mut self, event: &RequestAnswered, place: Place) -> Result<(), Illegal> {
        let receipt = Receipt { at: place.at, fingerprint: event.fingerprint, answer: event.answer.clone() };
        let key = Hash::of(event.key.as_bytes());
        if event.speaker == Speaker::Operator {
            return self.operator.insert(key, receipt, RECEIPTS_OF_OPERATOR_MAX);
        }
        let ring = self.others.entry(mark(&event.speaker)).or_default();
        ring.insert(key, receipt, RECEIPTS_OF_SPEAKER_MAX)?;
        self.bound_others(place.at);
        Ok(())
    }

    fn of_others(&self) -> usize {
        self.others.values().map(|ring| ring.order.len()).sum()
    }

    /// Where all others together have too many, what is too old goes, and then the oldest of the one with the most.
    fn bound_others(&mut self, at: Timestamp) {
        if self.of_others() <= RECEIPTS_OF_OTHERS_MAX {
            return;
        }
        self.others.values_mut().for_each(|ring| ring.forget(at));
        if self.of_others() > RECEIPTS_OF_OTHERS_MAX
            && let Some(most) = self.others.values_mut().max_by_key(|ring| ring.order.len())
        {
            most.forget_oldest();
        }
        self.others.retain(|_, ring| !ring.order.is_empty());
    }
}

fn mark(speaker: &Speaker) -> Hash {
    Hash::of(&codec::to_bytes(speaker))
}

impl Ring {
    /// Takes a receipt in; where there are `most` already, the oldest goes.
    fn insert(&mut self, key: Hash, receipt: Receipt, most: usize) -> Result<(), Illegal> {
        self.forget(receipt.at);
        if self.find(&key, receipt.at).is_some() {
            return Err("the key was answered before");
        }
        self.remove(&key);
        if self.order.len() >= most {
            self.forget_oldest();
        }
        self.order.push_back(key);
        self.by_key.insert(key, receipt);
        Ok(())
    }

    fn find(&self, key: &Hash, at: Timestamp) -> Option<&Receipt> {
        self.by_key.get(key).filter(|receipt| at.since_ms(receipt.at) < RECEIPT_AGE_MS_MAX)
    }

    /// Removes an expired receipt that [`Self::forget`] has not come to: the clock went back before it was kept.
    fn remove(&mut self, key: &Hash) {
        if self.by_key.remove(key).is_some() {
            self.order.retain(|kept| kept != key);
        }
    }

    /// Drops what is too old at the time `at`.
    fn forget(&mut self, at: Timestamp) {
        while self.order.front().is_some_and(|key| self.find(key, at).is_none()) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(key) = self.order.pop_front() {
            self.by_key.remove(&key);
        }
    }

    fn agrees(&self, most: usize) -> bool {
        self.order.len() <= most
            && self.order.len() == self.by_key.len()
            && self.order.iter().all(|key| self.by_key.contains_key(key))
    }
}
