//! What a host counts of its own work, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the buckets in which append latencies are counted, in microseconds; the last one has none.
pub const APPEND_BUCKETS_US: [u64; 10] = [250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 5_000_000];

/// Counters since the host started.
#[derive(Debug, Default)]
pub(super) struct Meter {
    appends: AtomicU64,
    failures: AtomicU64,
    events: AtomicU64,
    append_us: AtomicU64,
    buckets: [AtomicU64; APPEND_BUCKETS_US.len()],
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Transactions, each of as many appends as waited.
    pub commits: u64,
    pub appends: u64,
    pub failures: u64,
    pub events: u64,
    /// Time that appends took, together.
    pub append_us: u64,
    /// Appends that took at most as long as each bucket's bound.
    pub buckets: [u64; APPEND_BUCKETS_US.len()],
}

impl Meter {
    /// An append of `events` events was durable after `us`.
    pub(super) fn appended(&self, events: usize, us: u64) {
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(events as u64, Ordering::Relaxed);
        self.append_us.fetch_add(us, Ordering::Relaxed);
        for (bound, bucket) in APPEND_BUCKETS_US.iter().zip(&self.buckets) {
            bucket.fetch_add(u64::from(us <= *bound), Ordering::Relaxed);
        }
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// `commits`: as the writer counts them.
    pub(super) fn counts(&self, commits: u64) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            commits,
            appends: read(&self.appends),
            failures: read(&self.failures),
            events: read(&self.events),
            append_us: read(&self.append_us),
            buckets: self.buckets.each_ref().map(read),
        }
    }
}
