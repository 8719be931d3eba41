//! The operator plane: briefs and notices. Neither can change, so the state keeps only how many there were.

use super::{Illegal, Place};
use crate::events::operator::OperatorEvent;
use crate::words::id::{BriefId, EventSeq, NoticeId};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefs {
    /// The id given last; briefs are counted from 1.
    pub last: BriefId,
    pub last_at: Option<Timestamp>,
    pub last_notice: NoticeId,
    /// The event of that notice.
    pub last_notice_seq: EventSeq,
}

impl Briefs {
    pub(super) fn evolve(&mut self, event: &OperatorEvent, place: Place) -> Result<(), Illegal> {
        match event {
            OperatorEvent::BriefCreated(event) if event.brief == self.last.next() => {
                self.last = event.brief;
                self.last_at = Some(place.at);
                Ok(())
            }
            OperatorEvent::NotificationRequested(event) if event.notice == self.last_notice.next() => {
                self.last_notice = event.notice;
                self.last_notice_seq = place.seq;
                Ok(())
            }
            OperatorEvent::BriefCreated(_) => Err("brief ids go up by one"),
            OperatorEvent::NotificationRequested(_) => Err("notice ids go up by one"),
            OperatorEvent::BindingUpserted(_)
            | OperatorEvent::BindingRevoked(_)
            | OperatorEvent::DeliverySubmitted(_)
            | OperatorEvent::DeliveryCompleted(_)
            | OperatorEvent::DeliveryFailed(_)
            | OperatorEvent::DeliveryAbandoned(_) => Ok(()),
        }
    }
}
