//! The operator plane: briefs and notices. Neither can change, so the state keeps how many there were, and the notices
//! that its summary shows.

use super::{Illegal, Place};
use crate::events::operator::{NotificationRequested, OperatorEvent};
use crate::words::id::{BriefId, EventSeq, NoticeId};
use crate::words::limit::NOTICES_KEPT_MAX;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefs {
    /// The id given last; briefs are counted from 1.
    pub last: BriefId,
    pub last_at: Option<Timestamp>,
    pub last_notice: NoticeId,
    /// The event of that notice.
    pub last_notice_seq: EventSeq,
    /// The notices given last, the oldest of them first.
    pub notices: VecDeque<Notice>,
}

/// Something that the agent wanted known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub seq: EventSeq,
    pub at: Timestamp,
    pub requested: NotificationRequested,
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
                if self.notices.len() == NOTICES_KEPT_MAX {
                    self.notices.pop_front();
                }
                self.notices.push_back(Notice { seq: place.seq, at: place.at, requested: event.clone() });
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
