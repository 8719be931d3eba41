//! The waiting plane: waits, timers and external triggers.
//!
//! | from      | event          | to        |
//! |-----------|----------------|-----------|
//! | none      | WaitCreated    | active    |
//! | active    | WaitTriggered  | triggered |
//! | triggered | WaitConsumed   | none      |
//! | active    | WaitSuperseded | none      |
//! | active    | WaitExpired    | none      |
//! | active, triggered | WaitCancelled | none |
//!
//! | from  | event          | to    |
//! |-------|----------------|-------|
//! | none  | TimerCreated, TriggerCreated | set |
//! | set   | TimerFired     | set, for an interval; else none |
//! | set   | CallbackDelivered | set, with one more delivery |
//! | set   | TimerCancelled, TriggerRevoked | none |
//! | none, set | WebhookSecretSet | set |
//! | set   | WebhookSecretCleared | none |
//!
//! **Invariant:** an owner has one active wait.

use super::{Illegal, Place};
use crate::events::queue::DerivedFrom;
use crate::events::waiting::{
    DeliveryMode, Recoverability, TimerCreated, TimerFired, TriggerCreated, WaitCreated, WaitOwner, WaitingEvent,
    WakeOn, WebhookSecretSet,
};
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, TaskId, TimerId, TriggerId, WaitId, WorkId};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The ids given last.
    pub last_wait: WaitId,
    pub last_timer: TimerId,
    pub last_trigger: TriggerId,
    pub waits: BTreeMap<WaitId, Wait>,
    pub timers: BTreeMap<TimerId, Timer>,
    pub triggers: BTreeMap<TriggerId, Trigger>,
    /// What webhooks must be signed with; anybody may send one while there is none.
    pub webhook: Option<WebhookSecret>,
}

/// A secret that the home keeps under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSecret {
    pub set: EventSeq,
    pub set_at: Timestamp,
    pub secret: String,
    /// The one before, while senders change over.
    pub previous: Option<PreviousSecret>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub set: EventSeq,
    pub secret: String,
    pub accepted_until: Timestamp,
}

/// A wait that is active, or whose news no turn has taken up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub created: EventSeq,
    pub created_at: Timestamp,
    pub owner: WaitOwner,
    pub wake: WakeOn,
    pub reason: String,
    /// When it ends by itself: a timer's time, or the time to look without having been called.
    pub due: Option<Timestamp>,
    pub recoverability: Option<Recoverability>,
    /// The event that triggered it.
    pub triggered: Option<EventSeq>,
    /// What its texts rest on.
    pub derived: DerivedFrom,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    pub created: EventSeq,
    pub created_at: Timestamp,
    pub duration_ms: u64,
    pub interval_ms: Option<u64>,
    pub due: Timestamp,
    pub summary: Option<String>,
    pub work: Option<WorkId>,
    pub fired: u64,
    pub fired_at: Option<Timestamp>,
    /// What its text rests on.
    pub derived: DerivedFrom,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub created: EventSeq,
    pub created_at: Timestamp,
    pub mode: DeliveryMode,
    pub token_hash: Hash,
    pub label: String,
    pub work: Option<WorkId>,
    pub deliveries: u64,
    pub delivered_at: Option<Timestamp>,
}

impl WebhookSecret {
    /// The names of those that may have signed what comes at the time `at`.
    pub fn accepted(&self, at: Timestamp) -> Vec<String> {
        let previous = self.previous.as_ref().filter(|previous| at < previous.accepted_until);
        [Some(&self.secret), previous.map(|previous| &previous.secret)].into_iter().flatten().cloned().collect()
    }

    /// The names of all that are kept.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        [Some(&self.secret), self.previous.as_ref().map(|previous| &previous.secret)].into_iter().flatten()
    }
}

impl Wait {
    pub fn is_active(&self) -> bool {
        self.triggered.is_none()
    }

    pub fn is_for_task(&self, task: TaskId) -> bool {
        self.is_active() && self.wake == WakeOn::TaskResult(task)
    }

    pub fn work(&self) -> Option<WorkId> {
        match self.owner {
            WaitOwner::Agent => None,
            WaitOwner::Work(work) => Some(work),
        }
    }
}

impl Waiting {
    /// Waits that nothing has ended yet.
    pub fn active(&self) -> impl Iterator<Item = (WaitId, &Wait)> {
        self.waits.iter().filter(|(_, wait)| wait.is_active()).map(|(id, wait)| (*id, wait))
    }

    pub fn active_of(&self, owner: &WaitOwner) -> Option<(WaitId, &Wait)> {
        self.active().find(|(_, wait)| wait.owner == *owner)
    }

    pub(super) fn evolve(&mut self, event: &WaitingEvent, place: Place) -> Result<(), Illegal> {
        match event {
            WaitingEvent::WakeRequested(_) => Err("a wake joins its tick"),
            WaitingEvent::WaitCreated(event) => self.create(event, place),
            WaitingEvent::WaitTriggered(event) => {
                self.active_wait(event.wait)?.triggered = Some(place.seq);
                Ok(())
            }
            WaitingEvent::WaitConsumed(event) => match self.waits.remove(&event.wait) {
                Some(wait) if !wait.is_active() => Ok(()),
                Some(_) | None => Err("the wait is not triggered"),
            },
            WaitingEvent::WaitCancelled(event) => {
                self.waits.remove(&event.wait).map(drop).ok_or("no such wait is open")
            }
            WaitingEvent::WaitSuperseded(event) => self.end(event.wait),
            WaitingEvent::WaitExpired(event) => self.end(event.wait),
            WaitingEvent::TimerCreated(event) => self.create_timer(event, place),
            WaitingEvent::TimerFired(event) => self.fire(event, place),
            WaitingEvent::TimerCancelled(event) => {
                self.timers.remove(&event.timer).map(drop).ok_or("no such timer is set")
            }
            WaitingEvent::TriggerCreated(event) => self.create_trigger(event, place),
            WaitingEvent::TriggerRevoked(event) => {
                self.triggers.remove(&event.trigger).map(drop).ok_or("no such trigger is set")
            }
            WaitingEvent::CallbackDelivered(event) => {
                let trigger = self.triggers.get_mut(&event.trigger).ok_or("no such trigger is set")?;
                trigger.deliveries += 1;
                trigger.delivered_at = Some(place.at);
                Ok(())
            }
            WaitingEvent::WebhookSecretSet(event) => self.set_secret(event, place),
            WaitingEvent::WebhookSecretCleared(_) => self.webhook.take().map(drop).ok_or("no secret is set"),
        }
    }

    fn set_secret(&mut self, event: &WebhookSecretSet, place: Place) -> Result<(), Illegal> {
        let before = self.webhook.take().filter(|before| event.previous == Some(before.set));
        if event.previous.is_some() && before.is_none() {
            return Err("the secret before is another one");
        }
        let accepted_until = place.at.after_ms(event.previous_ms);
        let previous = before.map(|WebhookSecret { set, secret, .. }| PreviousSecret { set, secret, accepted_until });
        let secret = event.secret.clone();
        self.webhook = Some(WebhookSecret { set: place.seq, set_at: place.at, secret, previous });
        Ok(())
    }

    fn active_wait(&mut self, wait: WaitId) -> Result<&mut Wait, Illegal> {
        self.waits.get_mut(&wait).filter(|wait| wait.is_active()).ok_or("the wait is not active")
    }

    fn end(&mut self, wait: WaitId) -> Result<(), Illegal> {
        self.active_wait(wait)?;
        self.waits.remove(&wait);
        Ok(())
    }

    fn create(&mut self, event: &WaitCreated, place: Place) -> Result<(), Illegal> {
        if event.wait != self.last_wait.next() {
            return Err("wait ids go up by one");
        }
        if self.active_of(&event.owner).is_some() {
            return Err("the owner waits already");
        }
        self.last_wait = event.wait;
        let after_ms = match event.wake {
            WakeOn::Timer { after_ms } => Some(after_ms),
            WakeOn::OperatorInput | WakeOn::TaskResult(_) | WakeOn::External { .. } => event.recheck_after_ms,
        };
        let wait = Wait {
            created: place.seq,
            created_at: place.at,
            owner: event.owner.clone(),
            wake: event.wake.clone(),
            reason: event.reason.clone(),
            due: after_ms.map(|after_ms| place.at.after_ms(after_ms)),
            recoverability: event.recoverability.clone(),
            triggered: None,
            derived: DerivedFrom::or_operator(event.derived_from.as_ref()),
        };
        self.waits.insert(event.wait, wait);
        Ok(())
    }

    fn create_timer(&mut self, event: &TimerCreated, place: Place) -> Result<(), Illegal> {
        if event.timer != self.last_timer.next() {
            return Err("timer ids go up by one");
        }
        self.last_timer = event.timer;
        let timer = Timer {
            created: place.seq,
            created_at: place.at,
            duration_ms: event.duration_ms,
            interval_ms: event.interval_ms,
            due: place.at.after_ms(event.duration_ms),
            summary: event.summary.clone(),
            work: event.work,
            fired: 0,
            fired_at: None,
            derived: DerivedFrom::or_operator(event.derived_from.as_ref()),
        };
        self.timers.insert(event.timer, timer);
        Ok(())
    }

    /// An interval keeps its beat; beats that were missed are not made up for.
    fn fire(&mut self, event: &TimerFired, place: Place) -> Result<(), Illegal> {
        let timer = self.timers.get_mut(&event.timer).ok_or("no such timer is set")?;
        let Some(interval_ms) = timer.interval_ms.filter(|interval_ms| *interval_ms > 0) else {
            self.timers.remove(&event.timer);
            return Ok(());
        };
        let beats = place.at.since_ms(timer.due) / interval_ms + 1;
        timer.due = timer.due.after_ms(beats.saturating_mul(interval_ms));
        timer.fired += 1;
        timer.fired_at = Some(place.at);
        Ok(())
    }

    fn create_trigger(&mut self, event: &TriggerCreated, place: Place) -> Result<(), Illegal> {
        if event.trigger != self.last_trigger.next() {
            return Err("trigger ids go up by one");
        }
        self.last_trigger = event.trigger;
        let trigger = Trigger {
            created: place.seq,
            created_at: place.at,
            mode: event.mode,
            token_hash: event.token_hash,
            label: event.label.clone(),
            work: event.work,
            deliveries: 0,
            delivered_at: None,
        };
        self.triggers.insert(event.trigger, trigger);
        Ok(())
    }
}
