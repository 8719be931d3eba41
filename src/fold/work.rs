//! The work plane: what the agent is trying to achieve.
//!
//! | from | event      | to   |
//! |------|------------|------|
//! | none | Created    | open |
//! | open | Updated    | open, one revision on |
//! | open | Picked     | open, in focus |
//! | open | Continued  | open, one continuation on |
//! | open | Held       | open, held |
//! | open | Rechecked  | open, its recheck over |
//! | open | Completed  | none |
//!
//! News to an item, an update or a message, lifts its hold and forgets its continuations. A call made for it lifts its
//! hold, but not the back-off: what repeats itself comes ever more rarely.
//!
//! **Invariant:** the focus is an open item.

use super::{Illegal, Place};
use crate::events::queue::DerivedFrom;
use crate::events::work::{
    BlockerChange, PlanStatus, Todo, TodoStatus, WorkChange, WorkEvent, WorkItemCreated, WorkItemUpdated,
};
use crate::words::content::Content;
use crate::words::id::{EventSeq, WorkId};
use crate::words::limit::{CONTINUATION_MS_FIRST, CONTINUATION_MS_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Works {
    /// The id given last.
    pub last: WorkId,
    pub focus: Option<WorkId>,
    pub open: BTreeMap<WorkId, WorkItem>,
}

/// A work item that is not completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItem {
    pub created: EventSeq,
    pub created_at: Timestamp,
    /// The event that wrote it last.
    pub updated: EventSeq,
    pub updated_at: Timestamp,
    /// From 1.
    pub revision: u32,
    pub objective: String,
    pub plan: Option<Content>,
    pub todos: Vec<Todo>,
    pub plan_status: PlanStatus,
    pub acceptance: Option<Content>,
    pub blocker: Option<Blocker>,
    pub is_constraint: bool,
    pub depends_on: Vec<WorkId>,
    pub delivery_target: Option<String>,
    pub parent: Option<WorkId>,
    /// Continuations since the item had news: they come ever more rarely.
    pub continuations: u32,
    /// Continuations since anything was done for it.
    pub fruitless: u32,
    pub continued_at: Timestamp,
    /// The event that held it.
    pub held: Option<EventSeq>,
    pub held_reason: String,
    /// The least trusted of all that its texts ever rested on.
    pub derived: DerivedFrom,
    /// What the plan rests on, as it stands.
    pub plan_derived: DerivedFrom,
}

/// What stands in an item's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub text: String,
    pub seq: EventSeq,
    /// When the agent is to look again; none once it has been told to.
    pub recheck_at: Option<Timestamp>,
}

impl WorkItem {
    fn new(place: Place) -> Self {
        Self {
            created: place.seq,
            created_at: place.at,
            updated: place.seq,
            updated_at: place.at,
            revision: 1,
            objective: String::new(),
            plan: None,
            todos: Vec::new(),
            plan_status: PlanStatus::Draft,
            acceptance: None,
            blocker: None,
            is_constraint: false,
            depends_on: Vec::new(),
            delivery_target: None,
            parent: None,
            continuations: 0,
            fruitless: 0,
            continued_at: place.at,
            held: None,
            held_reason: String::new(),
            derived: DerivedFrom::or_operator(None),
            plan_derived: DerivedFrom::or_operator(None),
        }
    }

    pub fn todos_unfinished(&self) -> u32 {
        let unfinished = self.todos.iter().filter(|todo| todo.status != TodoStatus::Completed);
        u32::try_from(unfinished.count()).unwrap_or(u32::MAX)
    }

    /// The time before which the item is not continued again: each continuation without news doubles the wait.
    pub fn continue_at(&self) -> Timestamp {
        match self.continuations {
            0 => Timestamp(i64::MIN),
            count => {
                let wait_ms = CONTINUATION_MS_FIRST << (count - 1).min(20);
                self.continued_at.after_ms(wait_ms.min(CONTINUATION_MS_MAX))
            }
        }
    }

    /// Something happened for the item: it is as good as new to the scheduler.
    fn news(&mut self) {
        self.continuations = 0;
        self.progress();
    }

    /// Something was done for the item.
    fn progress(&mut self) {
        self.fruitless = 0;
        self.held = None;
        self.held_reason.clear();
    }

    fn change(&mut self, change: &WorkChange, derived_from: Option<&DerivedFrom>, place: Place) {
        let derived = DerivedFrom::or_operator(derived_from);
        if change.plan.is_some() {
            self.plan_derived = derived.clone();
        }
        self.derived = derived.least(self.derived.clone());
        let WorkChange { objective, plan, todos, plan_status, acceptance, .. } = change;
        set(&mut self.objective, objective.as_ref());
        set(&mut self.todos, todos.as_ref());
        set(&mut self.plan_status, plan_status.as_ref());
        set(&mut self.is_constraint, change.is_constraint.as_ref());
        set(&mut self.depends_on, change.depends_on.as_ref());
        set_text(&mut self.plan, plan.as_ref());
        set_text(&mut self.acceptance, acceptance.as_ref());
        if let Some(target) = &change.delivery_target {
            self.delivery_target = (!target.is_empty()).then(|| target.clone());
        }
        self.parent = change.parent.or(self.parent);
        match &change.blocker {
            None => {}
            Some(BlockerChange::Clear) => self.blocker = None,
            Some(BlockerChange::Set { text, recheck_after_ms }) => {
                let recheck_at = Some(place.at.after_ms(*recheck_after_ms));
                self.blocker = Some(Blocker { text: text.clone(), seq: place.seq, recheck_at });
            }
        }
        self.updated = place.seq;
        self.updated_at = place.at;
        self.news();
    }
}

fn set<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        value.clone_into(place);
    }
}

fn set_text(place: &mut Option<Content>, value: Option<&Content>) {
    if let Some(text) = value {
        *place = (text.bytes() > 0).then(|| text.clone());
    }
}

impl Works {
    pub fn focused(&self) -> Option<(WorkId, &WorkItem)> {
        self.focus.and_then(|id| self.open.get_key_value(&id)).map(|(id, item)| (*id, item))
    }

    /// Whether the item was completed.
    pub fn is_completed(&self, work: WorkId) -> bool {
        work <= self.last && !self.open.contains_key(&work)
    }

    /// The earliest time at which a blocker is to be looked at again.
    pub fn recheck_at(&self) -> Option<Timestamp> {
        self.open.values().filter_map(|item| item.blocker.as_ref()?.recheck_at).min()
    }

    /// Items whose blockers are to be looked at again, the earliest first.
    pub fn rechecks_due(&self, at: Timestamp) -> Vec<WorkId> {
        let due =
            |item: &WorkItem| item.blocker.as_ref().and_then(|blocker| blocker.recheck_at).filter(|due| *due <= at);
        let mut items: Vec<_> = self.open.iter().filter_map(|(id, item)| Some((due(item)?, *id))).collect();
        items.sort_unstable();
        items.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn evolve(&mut self, event: &WorkEvent, place: Place) -> Result<(), Illegal> {
        match event {
            WorkEvent::Created(event) => self.create(event, place),
            WorkEvent::Updated(event) => self.update(event, place),
            WorkEvent::Picked(event) => self.pick(event.work),
            WorkEvent::Completed(event) => self.complete(event.work),
            WorkEvent::Continued(event) => {
                let item = self.item(event.work)?;
                item.continuations += 1;
                item.fruitless += 1;
                item.continued_at = place.at;
                Ok(())
            }
            WorkEvent::Held(event) => {
                let item = self.item(event.work)?;
                item.held = Some(place.seq);
                item.held_reason.clone_from(&event.reason);
                Ok(())
            }
            WorkEvent::Rechecked(event) => event.work.iter().try_for_each(|work| self.rechecked(*work)),
        }
    }

    /// The turn's focus, as it began.
    pub(super) fn focus_on(&mut self, work: Option<WorkId>) -> Result<(), Illegal> {
        work.map_or(Ok(()), |work| self.pick(work))
    }

    /// Something came in for `work`, or for all open work when none is named.
    pub(super) fn news(&mut self, work: &[WorkId]) {
        let concerned = self.open.iter_mut().filter(|(id, _)| work.is_empty() || work.contains(id));
        concerned.for_each(|(_, item)| item.news());
    }

    /// Something was done for `work`.
    pub(super) fn progress(&mut self, work: WorkId) {
        if let Some(item) = self.open.get_mut(&work) {
            item.progress();
        }
    }

    fn item(&mut self, work: WorkId) -> Result<&mut WorkItem, Illegal> {
        self.open.get_mut(&work).ok_or("the work item is not open")
    }

    fn create(&mut self, event: &WorkItemCreated, place: Place) -> Result<(), Illegal> {
        if event.work != self.last.next() {
            return Err("work ids go up by one");
        }
        self.last = event.work;
        let mut item = WorkItem::new(place);
        item.change(&event.change, event.derived_from.as_ref(), place);
        self.open.insert(event.work, item);
        Ok(())
    }

    fn update(&mut self, event: &WorkItemUpdated, place: Place) -> Result<(), Illegal> {
        let item = self.item(event.work)?;
        item.revision += 1;
        item.change(&event.change, event.derived_from.as_ref(), place);
        Ok(())
    }

    fn pick(&mut self, work: WorkId) -> Result<(), Illegal> {
        self.item(work)?;
        self.focus = Some(work);
        Ok(())
    }

    fn complete(&mut self, work: WorkId) -> Result<(), Illegal> {
        self.open.remove(&work).ok_or("the work item is not open")?;
        self.focus = self.focus.filter(|focus| *focus != work);
        Ok(())
    }

    fn rechecked(&mut self, work: WorkId) -> Result<(), Illegal> {
        let blocker = self.item(work)?.blocker.as_mut().ok_or("the work item has no blocker")?;
        blocker.recheck_at = None;
        Ok(())
    }
}
