//! The outbox: what the agent owes to its supervisor. An entry is named by the event that brought it, and leaves when
//! it was taken in (architecture 19).

use super::Illegal;
use crate::events::queue::DerivedFrom;
use crate::events::task::TaskStatus;
use crate::events::turn::UsageTotal;
use crate::words::content::Content;
use crate::words::id::EventSeq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    pub owed: BTreeMap<EventSeq, Delivery>,
    /// The report of the delegation, once there is one: it is given once.
    pub report: Option<EventSeq>,
}

/// Something that the supervisor is to take in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The delegation's result.
    Report { status: TaskStatus, report: Content, usage: UsageTotal, derived_from: Option<DerivedFrom> },
    /// Something to know meanwhile.
    Notice { text: Content, derived_from: Option<DerivedFrom> },
}

impl Outbox {
    pub(super) fn owe(&mut self, entry: EventSeq, delivery: Delivery) -> Result<(), Illegal> {
        if matches!(delivery, Delivery::Report { .. }) {
            if self.report.is_some() {
                return Err("the delegation has its result");
            }
            self.report = Some(entry);
        }
        self.owed.insert(entry, delivery);
        Ok(())
    }

    pub(super) fn delivered(&mut self, entry: EventSeq) -> Result<(), Illegal> {
        self.owed.remove(&entry).map(drop).ok_or("the entry is not owed")
    }
}
