//! What public callers may send in a day.

use super::queue::QueueCommand;
use super::waiting::WaitingCommand;
use super::{Command, Rejection, Request};
use crate::events::Cause;
use crate::fold::AgentState;
use crate::fold::outside::day_left_ms;
use crate::words::limit::OUTSIDE_BYTES_PER_DAY_MAX;
use crate::words::time::Timestamp;

/// Refuses what would be more than a day's bytes. The day is one of UTC, and is told by the ledger: a restart begins
/// no new one.
pub(super) fn admits(state: &AgentState, request: &Request, at: Timestamp) -> Result<(), Rejection> {
    let bytes = if request.cause == Cause::External { body_bytes(&request.command) } else { 0 };
    if bytes == 0 || state.outside.bytes_today(at).saturating_add(bytes) <= OUTSIDE_BYTES_PER_DAY_MAX {
        return Ok(());
    }
    Err(Rejection::DayFull { seconds_left: day_left_ms(at).div_ceil(1_000) })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "public callers have few commands")]
fn body_bytes(command: &Command) -> u64 {
    match command {
        Command::Queue(QueueCommand::Enqueue(new)) => new.body.bytes(),
        Command::Waiting(WaitingCommand::Callback(callback)) => callback.body.bytes(),
        _ => 0,
    }
}
