//! Host limits: what runs at once is bounded; the rest stays owed and waits for its place (architecture 13).
//!
//! Places are shared out fairly between families: an agent and its children are one. No family holds more than its share
//! of the places, free ones included, so that whoever else comes finds one. Of the families that wait, the one that holds
//! the fewest places is served first; among equals the higher lane, then the older claim.

use crate::words::id::AgentId;
use crate::words::time::Timestamp;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// What there are places for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermitKind {
    Turn,
    ModelCall,
    Command,
}

/// An agent that cannot go on for want of a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitingForPermit {
    pub agent_id: AgentId,
    pub kind: PermitKind,
    pub since: Timestamp,
}

/// How many places are taken, of how many, and how many claims wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupied {
    pub running: usize,
    pub waiting: usize,
    pub max: usize,
    /// Of these, what one family may hold.
    pub share: usize,
}

/// A bounded number of places.
#[derive(Clone)]
pub struct Permits {
    shared: Arc<Mutex<Places>>,
}

struct Places {
    places_max: usize,
    taken: usize,
    /// Claims so far: the number keeps apart what came at once.
    tickets: u64,
    families: BTreeMap<AgentId, Family>,
    /// Families with a claim and with room in their share, in the order in which they are served.
    next: BTreeSet<(Rank, AgentId)>,
}

/// Places taken, then the first claim.
type Rank = (usize, Ticket);
type Ticket = (Urgency, u64);

/// What a family holds and waits for. One that does neither is not kept.
#[derive(Default)]
struct Family {
    taken: usize,
    waiting: BTreeMap<Ticket, Waiting>,
    /// Where it stands among the next.
    rank: Option<Rank>,
}

struct Waiting {
    agent: AgentId,
    since: Timestamp,
    served: oneshot::Sender<Permit>,
}

/// Who asks for a place.
#[derive(Clone, Debug)]
pub struct Claim {
    pub agent: AgentId,
    pub urgency: Urgency,
    /// When it was asked for.
    pub since: Timestamp,
}

/// What is served first within a family: the smaller lane, then the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// 0 for the highest lane.
    pub lane: u8,
    pub since: Timestamp,
}

/// One taken place, given back when it is dropped.
pub struct Permit {
    permits: Permits,
    family: AgentId,
}

/// A claim that waits. Dropping it gives up the wait.
struct Queued {
    permits: Permits,
    family: AgentId,
    ticket: Ticket,
    served: oneshot::Receiver<Permit>,
}

impl Permits {
    pub fn new(places_max: usize) -> Self {
        let families = BTreeMap::new();
        let places = Places { places_max, taken: 0, tickets: 0, families, next: BTreeSet::new() };
        Self { shared: Arc::new(Mutex::new(places)) }
    }

    /// Waits for a place. Dropping the future gives up the wait.
    pub async fn take(&self, claim: Claim) -> Permit {
        let queued = self.queue(claim);
        self.serve();
        queued.await
    }

    fn queue(&self, claim: Claim) -> Queued {
        let (sender, served) = oneshot::channel();
        let family = claim.agent.family();
        let mut places = self.places();
        places.tickets += 1;
        let ticket = (claim.urgency, places.tickets);
        let waiting = Waiting { agent: claim.agent, since: claim.since, served: sender };
        places.alter(&family, |family| drop(family.waiting.insert(ticket, waiting)));
        drop(places);
        Queued { permits: self.clone(), family, ticket, served }
    }

    /// Gives free places to those who are next.
    fn serve(&self) {
        loop {
            let Some((family, served)) = self.places().serve_next() else { return };
            // Whoever gave up in this very moment drops the permit it got, which serves the next.
            drop(served.send(Permit { permits: self.clone(), family }));
        }
    }

    pub fn occupied(&self) -> Occupied {
        let places = self.places();
        let waiting = places.families.values().map(|family| family.waiting.len()).sum();
        Occupied { running: places.taken, waiting, max: places.places_max, share: places.share() }
    }

    /// Since when `agent` has waited for a place, if it does.
    pub fn waits(&self, agent: &AgentId) -> Option<Timestamp> {
        let places = self.places();
        let waiting = places.families.get(&agent.family())?.waiting.values();
        waiting.filter(|waiting| waiting.agent == *agent).map(|waiting| waiting.since).min()
    }

    /// Who waits, family by family, `limit` at most.
    pub fn waiting(&self, limit: usize) -> Vec<(AgentId, Timestamp)> {
        let places = self.places();
        let waiting = places.families.values().flat_map(|family| family.waiting.values());
        waiting.take(limit).map(|waiting| (waiting.agent.clone(), waiting.since)).collect()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    /// Half of the places, so that no family keeps another out; two at least, as a child may be waited for.
    fn share(&self) -> usize {
        self.places_max.div_ceil(2).max(2).min(self.places_max)
    }

    /// Changes what a family holds or waits for, and its place among the next with it.
    fn alter(&mut self, id: &AgentId, change: impl FnOnce(&mut Family)) {
        let share = self.share();
        let family = self.families.entry(id.clone()).or_default();
        if let Some(rank) = family.rank.take() {
            self.next.remove(&(rank, id.clone()));
        }
        change(family);
        let first = family.waiting.keys().next().filter(|_| family.taken < share);
        family.rank = first.map(|ticket| (family.taken, *ticket));
        self.next.extend(family.rank.map(|rank| (rank, id.clone())));
        if family.taken == 0 && family.waiting.is_empty() {
            self.families.remove(id);
        }
    }

    fn serve_next(&mut self) -> Option<(AgentId, oneshot::Sender<Permit>)> {
        if self.taken >= self.places_max {
            return None;
        }
        let (_, id) = self.next.first()?.clone();
        let mut first = None;
        self.alter(&id, |family| {
            first = family.waiting.pop_first();
            family.taken += 1;
        });
        self.taken += 1;
        first.map(|(_, waiting)| (id, waiting.served))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut places = self.permits.places();
        places.taken -= 1;
        places.alter(&self.family, |family| family.taken -= 1);
        drop(places);
        self.permits.serve();
    }
}

impl Future for Queued {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let served = Pin::new(&mut self.served).poll(context);
        served.map(|served| served.expect("a claim is served, or outlives whoever waits"))
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.permits.places().alter(&self.family, |family| drop(family.waiting.remove(&ticket)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn claim(agent: &str, lane: u8, since: i64) -> Claim {
        let urgency = Urgency { lane, since: Timestamp(since) };
        Claim { agent: AgentId::parse(agent).expect("an id"), urgency, since: Timestamp(since) }
    }

    fn at_once(permits: &Permits, agent: &str) -> Option<Permit> {
        permits.take(claim(agent, 0, 0)).now_or_never()
    }

    #[test]
    fn places_go_by_lane_then_age_and_those_who_gave_up_are_passed_over() {
        let permits = Permits::new(1);
        let first = permits.take(claim("a", 3, 9)).now_or_never().expect("a place is free");
        let mut late = Box::pin(permits.take(claim("b", 1, 5)));
        let mut gone = Box::pin(permits.take(claim("c", 0, 1)));
        let mut early = Box::pin(permits.take(claim("d", 1, 2)));
        for waiting in [&mut late, &mut gone, &mut early] {
            assert!(waiting.as_mut().now_or_never().is_none(), "no place is free");
        }
        drop(gone);
        let occupied = |permits: &Permits| (permits.occupied().running, permits.occupied().waiting);
        assert_eq!(occupied(&permits), (1, 2));
        drop(first);
        assert!(late.as_mut().now_or_never().is_none(), "the older one is served first");
        let second = early.as_mut().now_or_never().expect("it is its turn");
        drop(second);
        let third = late.as_mut().now_or_never().expect("it is its turn");
        drop(third);
        assert_eq!(occupied(&permits), (0, 0));
    }

    #[test]
    fn a_family_holds_its_share_and_no_more_though_places_are_free() {
        let permits = Permits::new(6);
        let held: Vec<Permit> = ["hog", "hog.c1", "hog.c2"].iter().filter_map(|id| at_once(&permits, id)).collect();
        assert_eq!(held.len(), 3);
        let mut more = Box::pin(permits.take(claim("hog", 0, 0)));
        assert!(more.as_mut().now_or_never().is_none(), "half of the places are taken by the family");
        assert_eq!(permits.waits(&AgentId::parse("hog").expect("an id")), Some(Timestamp(0)));
        let other = at_once(&permits, "other");
        assert!(other.is_some(), "the others' places are free");
        drop(held);
        assert!(more.now_or_never().is_some());
    }

    #[test]
    fn who_holds_fewer_is_served_before_who_is_more_urgent() {
        let permits = Permits::new(4);
        let mut held: Vec<Permit> = ["a", "b", "b", "c"].iter().filter_map(|id| at_once(&permits, id)).collect();
        let mut urgent = Box::pin(permits.take(claim("a", 0, 1)));
        let mut fair = Box::pin(permits.take(claim("d", 3, 9)));
        assert!(urgent.as_mut().now_or_never().is_none() && fair.as_mut().now_or_never().is_none());
        held.truncate(3);
        assert!(urgent.as_mut().now_or_never().is_none(), "it holds a place");
        assert!(fair.now_or_never().is_some());
        held.truncate(2);
        assert!(urgent.now_or_never().is_some());
    }

    #[test]
    fn one_place_is_one_familys_share_and_two_are_for_a_parent_and_its_child() {
        assert!(at_once(&Permits::new(1), "a").is_some());
        let permits = Permits::new(2);
        assert_eq!(["a", "a.c1"].iter().filter_map(|id| at_once(&permits, id)).collect::<Vec<_>>().len(), 2);
    }
}
