//! Host limits: what runs at once is bounded; the rest stays owed and starts by age within its lane (architecture 13).

use crate::words::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A bounded number of places.
#[derive(Clone)]
pub struct Permits {
    shared: Arc<Mutex<Places>>,
}

struct Places {
    taken: usize,
    places_max: usize,
    /// In the order in which they are served; the last number keeps apart what came at once.
    waiting: BTreeMap<(Urgency, u64), oneshot::Sender<Permit>>,
    tickets: u64,
}

/// What is served first: the smaller lane, then the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// 0 for the highest lane.
    pub lane: u8,
    pub since: Timestamp,
}

/// One taken place, given back when it is dropped.
pub struct Permit {
    permits: Permits,
}

impl Permits {
    pub fn new(places_max: usize) -> Self {
        let places = Places { taken: 0, places_max, waiting: BTreeMap::new(), tickets: 0 };
        Self { shared: Arc::new(Mutex::new(places)) }
    }

    /// Waits for a place. Dropping the future gives up the wait.
    pub async fn take(&self, urgency: Urgency) -> Permit {
        let turn = {
            let mut places = self.places();
            if places.taken < places.places_max {
                places.taken += 1;
                return Permit { permits: self.clone() };
            }
            let (sender, turn) = oneshot::channel();
            places.tickets += 1;
            let ticket = places.tickets;
            places.waiting.insert((urgency, ticket), sender);
            turn
        };
        turn.await.expect("a waiting sender is served or outlives its receiver")
    }

    /// Places taken, and claims that wait.
    pub fn occupancy(&self) -> (usize, usize) {
        let places = self.places();
        (places.taken, places.waiting.values().filter(|sender| !sender.is_closed()).count())
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next of those that still wait, if any.
    fn next(&self) -> Option<oneshot::Sender<Permit>> {
        let mut places = self.places();
        while let Some((_, sender)) = places.waiting.pop_first() {
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        places.taken -= 1;
        None
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(sender) = self.permits.next() {
            // Whoever gave up in this very moment drops the permit it got, which serves the next.
            drop(sender.send(Permit { permits: self.permits.clone() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn urgency(lane: u8, since: i64) -> Urgency {
        Urgency { lane, since: Timestamp(since) }
    }

    #[test]
    fn places_go_by_lane_then_age_and_those_who_gave_up_are_passed_over() {
        let permits = Permits::new(1);
        let first = permits.take(urgency(3, 9)).now_or_never().expect("a place is free");
        let mut late = Box::pin(permits.take(urgency(1, 5)));
        let mut gone = Box::pin(permits.take(urgency(0, 1)));
        let mut early = Box::pin(permits.take(urgency(1, 2)));
        for waiting in [&mut late, &mut gone, &mut early] {
            assert!(waiting.as_mut().now_or_never().is_none(), "no place is free");
        }
        drop(gone);
        assert_eq!(permits.occupancy(), (1, 2));
        drop(first);
        assert!(late.as_mut().now_or_never().is_none(), "the older one is served first");
        let second = early.as_mut().now_or_never().expect("it is its turn");
        drop(second);
        let third = late.as_mut().now_or_never().expect("it is its turn");
        drop(third);
        assert_eq!(permits.occupancy(), (0, 0));
    }
}
