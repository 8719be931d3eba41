//! What has come from outside today. The ledger keeps all of it for ever, so that it has a bound beside the queue's.

use crate::events::Event;
use crate::events::queue::QueueEvent;
use crate::events::waiting::WaitingEvent;
use crate::words::content::Content;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Bytes of the bodies that public callers have sent on the last day of which there is a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Days since the epoch, in UTC.
    day: i64,
    bytes: u64,
}

impl Outside {
    /// What has come on the day of `now`. A clock that was put back does not begin a new day.
    pub fn bytes_today(&self, now: Timestamp) -> u64 {
        if day(now) > self.day { 0 } else { self.bytes }
    }

    pub(super) fn note(&mut self, event: &Event, at: Timestamp) {
        if let Some(bytes) = body_bytes(event) {
            self.bytes = self.bytes_today(at).saturating_add(bytes);
            self.day = self.day.max(day(at));
        }
    }
}

/// Milliseconds until the day of `now` is over.
pub fn day_left_ms(now: Timestamp) -> u64 {
    u64::try_from(DAY_MS - now.0.rem_euclid(DAY_MS)).unwrap_or(0)
}

fn day(at: Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// The bytes of a body that an event brings.
#[expect(clippy::wildcard_enum_match_arm, reason = "few events bring a body from outside")]
fn body_bytes(event: &Event) -> Option<u64> {
    match event {
        Event::Queue(QueueEvent::Enqueued(message)) => Some(message.body.bytes()),
        Event::Waiting(WaitingEvent::WakeRequested(wake)) => wake.body.as_ref().map(Content::bytes),
        _ => None,
    }
}
