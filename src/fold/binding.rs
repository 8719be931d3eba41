//! Operator bindings: transports that carry briefs and notices to the operator, and what each is still owed
//! (semantics 8).
//!
//! | from      | event             | to        |
//! |-----------|-------------------|-----------|
//! | none      | BindingUpserted   | active    |
//! | active    | BindingUpserted   | active, on other terms; a failing one is tried again at once |
//! | active    | BindingRevoked    | none      |
//!
//! | a delivery | event              | to        |
//! |------------|--------------------|-----------|
//! | none       | BriefCreated, NotificationRequested | owed, to each binding that is to carry it |
//! | owed, the first of its binding | DeliverySubmitted | attempted |
//! | attempted  | DeliverySubmitted of a later boot | attempted |
//! | attempted  | DeliveryFailed     | owed, to be attempted again |
//! | attempted  | DeliveryCompleted  | none      |
//! | owed, attempted | DeliveryAbandoned | none  |
//!
//! **Invariant:** a binding's deliveries are attempted one after the other, in the order of what they tell.

use super::{Illegal, Place};
use crate::events::operator::{BindingTerms, BriefCreated, BriefKind, OperatorEvent, ReplyRoute};
use crate::words::id::{BindingId, Boot, EventSeq, RunId};
use crate::words::limit::DELIVERY_FAILURES_MAX;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bindings {
    /// The id given last.
    pub last: BindingId,
    pub open: BTreeMap<BindingId, Binding>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The event that holds its terms.
    pub bound: EventSeq,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub terms: BindingTerms,
    /// What it is to carry, the oldest first.
    pub owed: VecDeque<Delivery>,
    /// The attempt at the first of them that has no outcome yet.
    pub attempt: Option<DeliveryAttempt>,
    pub delivered: u64,
    pub delivered_at: Option<Timestamp>,
    /// Attempts that failed since the last that did not.
    pub failures: u32,
    pub last_failure: Option<String>,
    /// The event since which the first delivery stands as it does, and the time before which it is not attempted.
    pub since: EventSeq,
    pub not_before: Timestamp,
}

/// Something that a binding is to carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The event that says it.
    pub entry: EventSeq,
    pub route_id: String,
    pub correlation_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryAttempt {
    pub seq: EventSeq,
    pub boot: Boot,
}

impl Binding {
    /// Whether its transport has not taken anything for several attempts.
    pub fn is_failing(&self) -> bool {
        self.failures >= DELIVERY_FAILURES_MAX
    }
}

impl Bindings {
    /// The binding that clients know by this name.
    pub fn named(&self, name: &str) -> Option<(BindingId, &Binding)> {
        self.open.iter().find(|(_, binding)| binding.terms.name == name).map(|(id, binding)| (*id, binding))
    }

    /// `routes`: of the turn that runs, if one does.
    pub(super) fn evolve(
        &mut self,
        event: &OperatorEvent,
        turn: Option<(RunId, &[ReplyRoute])>,
        place: Place,
    ) -> Result<(), Illegal> {
        match event {
            OperatorEvent::BriefCreated(brief) => self.owe_brief(brief, turn, place),
            OperatorEvent::NotificationRequested(_) => self.owe(turn.map_or(&[], |(_, routes)| routes), true, place),
            OperatorEvent::BindingUpserted(event) => return self.upsert(event.binding, &event.terms, place),
            OperatorEvent::BindingRevoked(event) => {
                return self.open.remove(&event.binding).map(drop).ok_or("no such binding is open");
            }
            OperatorEvent::DeliverySubmitted(event) => {
                let delivery = (event.entry, event.route_id.as_str());
                return self.binding(event.binding)?.submit(delivery, event.boot, place);
            }
            OperatorEvent::DeliveryCompleted(event) => {
                return self.binding(event.binding)?.complete(event.attempt, place);
            }
            OperatorEvent::DeliveryFailed(event) => {
                let again_at = place.at.after_ms(event.retry_after_ms);
                return self.binding(event.binding)?.fail(event.attempt, &event.summary, again_at, place);
            }
            OperatorEvent::DeliveryAbandoned(event) => {
                return self.binding(event.binding)?.abandon(event.entry, &event.route_id, &event.reason, place);
            }
        }
        Ok(())
    }

    fn binding(&mut self, id: BindingId) -> Result<&mut Binding, Illegal> {
        self.open.get_mut(&id).ok_or("no such binding is open")
    }

    /// An answer goes back where its question came from. A failure, and the report of finished work, everybody hears.
    fn owe_brief(&mut self, brief: &BriefCreated, turn: Option<(RunId, &[ReplyRoute])>, place: Place) {
        let answers = turn.filter(|(run, _)| brief.run == Some(*run)).map_or(&[][..], |(_, routes)| routes);
        match brief.kind {
            BriefKind::Ack => {}
            BriefKind::Result => self.owe(answers, brief.work.is_some(), place),
            BriefKind::Failure => self.owe(answers, true, place),
        }
    }

    /// To each route, and to the default route of every binding that has none among them, if `everybody` is to hear.
    fn owe(&mut self, routes: &[ReplyRoute], everybody: bool, place: Place) {
        for (id, binding) in &mut self.open {
            let own: Vec<&ReplyRoute> = routes.iter().filter(|route| route.binding == *id).collect();
            for route in &own {
                binding.owe(route.route_id.clone(), route.correlation_id.clone(), place);
            }
            if own.is_empty() && everybody {
                binding.owe(binding.terms.default_route_id.clone(), None, place);
            }
        }
    }

    fn upsert(&mut self, id: BindingId, terms: &BindingTerms, place: Place) -> Result<(), Illegal> {
        if self.named(&terms.name).is_some_and(|(other, _)| other != id) {
            return Err("another binding has the name");
        }
        if let Some(binding) = self.open.get_mut(&id) {
            binding.renew(terms, place);
            return Ok(());
        }
        if id != self.last.next() {
            return Err("binding ids go up by one");
        }
        self.last = id;
        self.open.insert(id, Binding::new(terms, place));
        Ok(())
    }
}

impl Binding {
    fn new(terms: &BindingTerms, place: Place) -> Self {
        Self {
            bound: place.seq,
            created_at: place.at,
            updated_at: place.at,
            terms: terms.clone(),
            owed: VecDeque::new(),
            attempt: None,
            delivered: 0,
            delivered_at: None,
            failures: 0,
            last_failure: None,
            since: place.seq,
            not_before: place.at,
        }
    }

    /// An attempt under way goes to where the old terms sent it: it is made again.
    fn renew(&mut self, terms: &BindingTerms, place: Place) {
        self.terms = terms.clone();
        self.bound = place.seq;
        self.updated_at = place.at;
        self.failures = 0;
        self.last_failure = None;
        self.next(place);
    }

    fn owe(&mut self, route_id: String, correlation_id: Option<String>, place: Place) {
        if self.owed.is_empty() {
            self.next(place);
        }
        self.owed.push_back(Delivery { entry: place.seq, route_id, correlation_id });
    }

    /// The first delivery is to be attempted, and at once.
    fn next(&mut self, place: Place) {
        self.attempt = None;
        self.since = place.seq;
        self.not_before = place.at;
    }

    fn submit(&mut self, delivery: (EventSeq, &str), boot: Boot, place: Place) -> Result<(), Illegal> {
        let first = self.owed.front().ok_or("nothing is owed")?;
        if (first.entry, first.route_id.as_str()) != delivery {
            return Err("the first that is owed is attempted first");
        }
        if self.attempt.is_some_and(|attempt| attempt.boot == boot) {
            return Err("an attempt is under way");
        }
        self.attempt = Some(DeliveryAttempt { seq: place.seq, boot });
        Ok(())
    }

    fn attempted(&self, attempt: EventSeq) -> Result<(), Illegal> {
        self.attempt.filter(|begun| begun.seq == attempt).map(drop).ok_or("the attempt is not under way")
    }

    fn complete(&mut self, attempt: EventSeq, place: Place) -> Result<(), Illegal> {
        self.attempted(attempt)?;
        self.owed.pop_front();
        self.delivered += 1;
        self.delivered_at = Some(place.at);
        self.failures = 0;
        self.last_failure = None;
        self.next(place);
        Ok(())
    }

    fn fail(&mut self, attempt: EventSeq, summary: &str, again_at: Timestamp, place: Place) -> Result<(), Illegal> {
        self.attempted(attempt)?;
        self.failures = self.failures.saturating_add(1);
        self.last_failure = Some(summary.to_owned());
        self.next(place);
        self.not_before = again_at;
        Ok(())
    }

    fn abandon(&mut self, entry: EventSeq, route_id: &str, reason: &str, place: Place) -> Result<(), Illegal> {
        let is_it = |delivery: &Delivery| delivery.entry == entry && delivery.route_id == route_id;
        let index = self.owed.iter().position(is_it).ok_or("it is not owed")?;
        self.owed.remove(index);
        self.last_failure = Some(reason.to_owned());
        if index == 0 {
            // What was refused makes room for the next at once; what gives way leaves the wait as it is.
            let waits_until = self.attempt.is_none().then_some(self.not_before);
            self.next(place);
            self.not_before = waits_until.unwrap_or(place.at);
        }
        Ok(())
    }
}
