//! The operator plane: briefs. A brief cannot change, so the state keeps only how many there were.

use super::{Illegal, Place};
use crate::events::operator::OperatorEvent;
use crate::words::id::BriefId;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefs {
    /// The id given last; briefs are counted from 1.
    pub last: BriefId,
    pub last_at: Option<Timestamp>,
}

impl Briefs {
    pub(super) fn evolve(&mut self, event: &OperatorEvent, place: Place) -> Result<(), Illegal> {
        let OperatorEvent::BriefCreated(event) = event;
        if event.brief != self.last.next() {
            return Err("brief ids go up by one");
        }
        self.last = event.brief;
        self.last_at = Some(place.at);
        Ok(())
    }
}
