//! How often something may happen: a token bucket for each key, as the one instant at which it will be full again.

use crate::words::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Keys that are remembered at once. A full bucket is forgotten; when none is, the fullest is.
const KEYS_MAX: usize = 8_192;
const MINUTE_US: u64 = 60_000_000;
/// A bucket holds what comes in so much time: a burst this long is taken at once.
const BURST_US: u64 = 10_000_000;

/// A rate that each key has for itself.
#[derive(Debug)]
pub(super) struct Rate<K> {
    /// Between two of them, at the rate.
    interval_us: u64,
    /// When each key's bucket is full again, in microseconds since the epoch.
    full_at: Mutex<BTreeMap<K, u64>>,
}

impl<K: Ord + Clone> Rate<K> {
    pub(super) fn per_minute(max: u32) -> Self {
        Self { interval_us: MINUTE_US / u64::from(max.max(1)), full_at: Mutex::default() }
    }

    /// Takes one, or answers after how many seconds there is one.
    pub(super) fn take(&self, key: &K, now: Timestamp) -> Result<(), u64> {
        let now = u64::try_from(now.0).unwrap_or(0).saturating_mul(1_000);
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !full_at.contains_key(key);
        if is_new && full_at.len() >= KEYS_MAX {
            make_room(&mut full_at, now);
        }
        let entry = full_at.entry(key.clone()).or_insert(now);
        // A clock that was put back does not make anybody wait longer than for an empty bucket, and what is left to wait
        // for is kept: it counts from the first reading of that clock.
        *entry = (*entry).clamp(now, now.saturating_add(BURST_US));
        let full = entry.saturating_add(self.interval_us);
        let over_us = full.saturating_sub(now.saturating_add(BURST_US));
        if over_us > 0 {
            return Err(over_us.div_ceil(1_000_000));
        }
        *entry = full;
        Ok(())
    }
}

fn make_room<K: Ord + Clone>(full_at: &mut BTreeMap<K, u64>, now: u64) {
    full_at.retain(|_, full| *full > now);
    if full_at.len() < KEYS_MAX {
        return;
    }
    let fullest = full_at.iter().min_by_key(|(_, full)| **full).map(|(key, _)| key.clone());
    if let Some(fullest) = fullest {
        full_at.remove(&fullest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rate: &Rate<u32>, key: u32, at_ms: i64, tries: usize) -> usize {
        (0..tries).filter(|_| rate.take(&key, Timestamp(at_ms)).is_ok()).count()
    }

    #[test]
    fn a_burst_is_taken_at_once_and_the_rest_at_its_rate() {
        let rate = Rate::per_minute(60);
        assert_eq!(taken(&rate, 1, 0, 100), 10);
        assert_eq!(rate.take(&1, Timestamp(0)), Err(1), "the next is there after a second");
        assert_eq!(taken(&rate, 2, 0, 100), 10, "another has a bucket of its own");
        assert_eq!(taken(&rate, 1, 3_000, 100), 3);
        assert_eq!(taken(&rate, 1, 600_000, 100), 10, "a bucket holds no more than a burst");
    }

    #[test]
    fn a_clock_that_is_put_back_holds_nobody_off_for_long() {
        let rate = Rate::per_minute(60);
        assert_eq!(taken(&rate, 1, 3_600_000, 100), 10);
        assert_eq!(rate.take(&1, Timestamp(0)), Err(1));
        assert_eq!(taken(&rate, 1, 1_000, 1), 1);
    }

    #[test]
    fn keys_are_bounded() {
        let rate = Rate::per_minute(60);
        (0..20_000).for_each(|key| assert_eq!(rate.take(&key, Timestamp(0)), Ok(())));
        assert!(rate.full_at.lock().unwrap().len() <= KEYS_MAX);
    }
}
