//! One wheel for the deadlines of all agents, loaded or not.

use super::source::Source;
use crate::words::id::AgentId;
use crate::words::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// While a deadline is ahead the wall clock is read again at least this often: it may have been put, or the machine
/// may have slept.
const REREAD: Duration = Duration::from_secs(30);

/// When which agent is to be woken.
#[derive(Clone, Default)]
pub(super) struct Deadlines {
    wheel: Arc<Mutex<Wheel>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Wheel {
    by_time: BTreeSet<(Timestamp, AgentId)>,
    by_agent: BTreeMap<AgentId, Timestamp>,
}

impl Deadlines {
    /// Sets or clears the one deadline of an agent.
    pub(super) fn set(&self, agent: &AgentId, deadline: Option<Timestamp>) {
        let mut wheel = self.wheel();
        let before = match deadline {
            Some(at) => wheel.by_agent.insert(agent.clone(), at),
            None => wheel.by_agent.remove(agent),
        };
        if before == deadline {
            return;
        }
        if let Some(before) = before {
            wheel.by_time.remove(&(before, agent.clone()));
        }
        if let Some(at) = deadline {
            wheel.by_time.insert((at, agent.clone()));
            self.changed.notify_one();
        }
    }

    /// Calls `wake` for each agent whose time has come, for as long as it is polled.
    pub(super) async fn run(&self, source: &Source, wake: impl Fn(AgentId)) {
        loop {
            let now = source.now();
            let (due, next) = self.take_due(now);
            due.into_iter().for_each(&wake);
            match next {
                None => self.changed.notified().await,
                Some(at) => {
                    let wait = source.until(at).min(REREAD);
                    // Either way the clock is read again.
                    let _ = tokio::time::timeout(wait, self.changed.notified()).await;
                }
            }
        }
    }

    fn take_due(&self, now: Timestamp) -> (Vec<AgentId>, Option<Timestamp>) {
        let mut wheel = self.wheel();
        let mut due = Vec::new();
        while let Some((at, _)) = wheel.by_time.first()
            && *at <= now
            && let Some((_, agent)) = wheel.by_time.pop_first()
        {
            wheel.by_agent.remove(&agent);
            due.push(agent);
        }
        (due, wheel.by_time.first().map(|(at, _)| *at))
    }

    fn wheel(&self) -> MutexGuard<'_, Wheel> {
        self.wheel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
