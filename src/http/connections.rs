//! Who may have a connection: as many as there is room for, and no peer so many that others find none.

use super::network::Network;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections each peer holds.
type Held = Arc<Mutex<BTreeMap<Network, usize>>>;

/// The connections of one listener.
///
/// A peer may hold as many as are still free. So one alone gets half of them, two get a third each, and however many
/// peers take all that they get, there is a connection left for the next one.
#[derive(Clone)]
pub(super) struct Connections {
    free: Arc<Semaphore>,
    held: Held,
}

/// The right to a connection, for as long as it is kept.
pub(super) struct Permit {
    _one: OwnedSemaphorePermit,
    of: Option<(Held, Network)>,
}

impl Connections {
    pub(super) fn new(max: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(max)), held: Arc::default() }
    }

    /// A permit, if the peer may have one more. The socket in the home is its owner's alone, who shares with nobody.
    pub(super) fn admit(&self, peer: Option<Network>) -> Option<Permit> {
        let one = self.free.clone().try_acquire_owned().ok()?;
        let Some(peer) = peer else { return Some(Permit { _one: one, of: None }) };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = held.get(&peer).copied().unwrap_or(0);
        if of_peer > self.free.available_permits() {
            return None;
        }
        held.insert(peer, of_peer + 1);
        Some(Permit { _one: one, of: Some((self.held.clone(), peer)) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some((held, peer)) = &self.of else { return };
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(peer) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(held.remove(peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn network(number: u8) -> Option<Network> {
        Some(Network::of(IpAddr::from([127, 0, 0, number])))
    }

    fn all(connections: &Connections, peer: Option<Network>) -> Vec<Permit> {
        std::iter::from_fn(|| connections.admit(peer)).collect()
    }

    #[test]
    fn however_many_peers_take_all_they_get_the_next_one_gets_a_connection() {
        let connections = Connections::new(64);
        let mut taken = Vec::new();
        for peer in 1..=5 {
            taken.push(all(&connections, network(peer)));
        }
        let counts: Vec<usize> = taken.iter().map(Vec::len).collect();
        assert_eq!(counts, [32, 16, 8, 4, 2]);
        assert!(connections.admit(network(6)).is_some());
        taken.clear();
        assert_eq!(all(&connections, network(6)).len(), 32, "what is given back is there again");
        assert!(connections.held.lock().unwrap().is_empty(), "a peer without connections is forgotten");
    }

    #[test]
    fn whoever_is_alone_may_have_all() {
        assert_eq!(all(&Connections::new(8), None).len(), 8);
    }
}
