//! The log is the feed: whoever follows a ledger reads it, then waits for its head to move (architecture 22).
//!
//! There is no buffer to overflow: what is kept per follower is the head it has seen.

use crate::words::id::{AgentId, EventSeq};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Tells followers that ledgers have grown.
#[derive(Clone, Default)]
pub struct Feed {
    heads: Arc<Mutex<BTreeMap<AgentId, watch::Sender<EventSeq>>>>,
    /// The head that was published last, whosever it is.
    any: watch::Sender<EventSeq>,
}

/// Waits for one ledger to grow, or for any.
pub struct Follower {
    heads: watch::Receiver<EventSeq>,
}

impl Feed {
    /// Follows an agent's ledger, whose head may have been seen at `seen`.
    pub fn follow(&self, agent: &AgentId, seen: EventSeq) -> Follower {
        let mut heads = self.heads();
        let sender = heads.entry(agent.clone()).or_insert_with(|| watch::Sender::new(seen));
        Follower { heads: sender.subscribe() }
    }

    /// Follows all ledgers at once.
    pub fn follow_all(&self) -> Follower {
        Follower { heads: self.any.subscribe() }
    }

    /// Tells that events up to `head` are durable.
    pub fn publish(&self, agent: &AgentId, head: EventSeq) {
        self.any.send_replace(head);
        let mut heads = self.heads();
        let Some(sender) = heads.get(agent) else { return };
        if sender.receiver_count() == 0 {
            heads.remove(agent);
        } else {
            sender.send_replace(head);
        }
    }

    fn heads(&self) -> MutexGuard<'_, BTreeMap<AgentId, watch::Sender<EventSeq>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Returns at once if the head has moved since the last call, else when it does. False when the feed has ended.
    pub async fn grown(&mut self) -> bool {
        self.heads.changed().await.is_ok()
    }
}
