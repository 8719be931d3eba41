//! Receipts: the answers to requests that named an idempotency key, for as long as the key binds (architecture 7).
//!
//! **Invariant:** ages are counted in event time, so that a replay forgets exactly what the original forgot.

use super::{Illegal, Place};
use crate::events::agent::{Answer, RequestAnswered};
use crate::words::hash::Hash;
use crate::words::limit::{RECEIPT_AGE_MS_MAX, RECEIPTS_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    pub(super) by_key: BTreeMap<String, Receipt>,
    /// Keys in the order in which they were answered.
    pub(super) order: VecDeque<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub at: Timestamp,
    pub fingerprint: Hash,
    pub answer: Answer,
}

impl Receipts {
    /// The answer that `key` still has at the time `at`.
    pub fn find(&self, key: &str, at: Timestamp) -> Option<&Receipt> {
        self.by_key.get(key).filter(|receipt| at.since_ms(receipt.at) < RECEIPT_AGE_MS_MAX)
    }

    pub(super) fn evolve(&mut self, event: &RequestAnswered, place: Place) -> Result<(), Illegal> {
        self.forget(place.at);
        if self.find(&event.key, place.at).is_some() {
            return Err("the key was answered before");
        }
        self.remove(&event.key);
        let receipt = Receipt { at: place.at, fingerprint: event.fingerprint, answer: event.answer.clone() };
        self.order.push_back(event.key.clone());
        self.by_key.insert(event.key.clone(), receipt);
        Ok(())
    }

    /// Removes an expired receipt that [`Self::forget`] has not come to: the clock went back before it was kept.
    fn remove(&mut self, key: &str) {
        if self.by_key.remove(key).is_some() {
            self.order.retain(|kept| kept != key);
        }
    }

    /// Drops what is too old at the time `at`, and the oldest when there are too many.
    fn forget(&mut self, at: Timestamp) {
        while let Some(key) = self.order.front() {
            let old = self.by_key.get(key).is_none_or(|receipt| at.since_ms(receipt.at) >= RECEIPT_AGE_MS_MAX);
            if !old && self.order.len() < RECEIPTS_MAX {
                return;
            }
            self.by_key.remove(key);
            self.order.pop_front();
        }
    }
}
