//! Owed minus running is to be started; running minus owed is to be stopped. The same at boot and in service.

use crate::fold::owed::{Effect, Owed};
use crate::words::time::Timestamp;

/// One step towards what is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Start(Effect),
    Stop(Effect),
}

/// What to start and stop at the time `now`. `may_turn`: whether the agent holds a place among the active turns.
pub fn changes(owed: &[Owed], running: &[Effect], now: Timestamp, may_turn: bool) -> Vec<Change> {
    let is_owed = |effect: &Effect| owed.iter().any(|owed| owed.effect == *effect);
    let stops = running.iter().filter(|effect| !is_owed(effect)).map(|effect| Change::Stop(*effect));
    let due = owed.iter().filter(|owed| owed.not_before <= now).map(|owed| owed.effect);
    let starts = due
        .filter(|effect| may_turn || !effect.is_of_turn())
        .filter(|effect| !running.contains(effect))
        .map(Change::Start);
    stops.chain(starts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::id::{EventSeq, RunId, TaskId};

    const CALL: Effect = Effect::CallModel { run: RunId(1), attempt: EventSeq(7) };
    const TASK: Effect = Effect::RunTask { task: TaskId(1), attempt: EventSeq(9) };

    fn owed(effect: Effect, not_before: i64) -> Owed {
        Owed { effect, not_before: Timestamp(not_before) }
    }

    #[test]
    fn what_is_owed_starts_and_what_is_no_longer_owed_stops() {
        let both = [owed(CALL, 0), owed(TASK, 0)];
        assert_eq!(changes(&both, &[], Timestamp(5), true), [Change::Start(CALL), Change::Start(TASK)]);
        assert_eq!(changes(&both, &[CALL, TASK], Timestamp(5), true), []);
        assert_eq!(changes(&[], &[CALL], Timestamp(5), true), [Change::Stop(CALL)]);
    }

    #[test]
    fn nothing_starts_before_its_time_or_without_its_place() {
        assert_eq!(changes(&[owed(CALL, 9)], &[], Timestamp(5), true), []);
        assert_eq!(changes(&[owed(CALL, 0), owed(TASK, 0)], &[], Timestamp(5), false), [Change::Start(TASK)]);
    }
}
