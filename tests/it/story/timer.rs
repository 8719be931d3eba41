//! Timers: when they fire, and when they do not.

use super::check;

#[test]
fn a_timer_fires_once_at_its_time() {
    check(
        "
        > timer 5000 tea
        timer_created timer=timer-1 duration_ms=5000 summary=tea
        > owed
        FireTimer { timer: TimerId(1) } in 5000 ms
        > fire timer-1
        ! there is nothing to do
        > clock +5000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-1
        msg-1 enqueued next timer_tick trusted_system: tea
        > fire timer-1
        ! there is nothing to do
        > cancel timer-1
        ! timer timer-1 has ended
        > cancel timer-2
        ! there is no timer timer-2
        ",
    );
}

#[test]
fn ticks_of_an_interval_do_not_pile_up() {
    check(
        "
        given timer 5000 every 2000 beat; clock +5000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-1
        msg-1 enqueued next timer_tick trusted_system: beat
        > clock +60000
        > owed
        StartTurn
        > fire timer-1
        ! there is nothing to do
        > begin
        run-1 begun on msg-1
        incoming msg-1
        > owed
        PrepareRound { run: RunId(1), round: 1 }
        FireTimer { timer: TimerId(1) }
        > fire timer-1
        timer_fired timer=timer-1 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: beat
        > owed
        PrepareRound { run: RunId(1), round: 1 }
        ",
    );
}

#[test]
fn beats_that_were_missed_are_not_made_up_for_and_the_beat_is_kept() {
    check(
        "
        given timer 5000 every 2000 beat
        > clock +86400000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-1
        msg-1 enqueued next timer_tick trusted_system: beat
        > drop msg-1 seen
        msg-1 settled dropped: seen
        > owed
        FireTimer { timer: TimerId(1) } in 1000 ms
        > clock +1000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: beat
        > drop msg-2 seen
        msg-2 settled dropped: seen
        > owed
        FireTimer { timer: TimerId(1) } in 2000 ms
        ",
    );
}

#[test]
fn a_clock_that_goes_back_delays_a_beat_and_loses_none() {
    check(
        "
        given timer 5000 every 2000 beat; clock +5000; fire timer-1; drop msg-1 seen
        > clock -3600000
        > owed
        FireTimer { timer: TimerId(1) } in 3602000 ms
        > fire timer-1
        ! there is nothing to do
        > clock +3602000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: beat
        ",
    );
}

#[test]
fn a_timer_outlives_a_restart_and_what_is_overdue_fires_at_once() {
    check(
        "
        given timer 5000 tea; boot; clock +9000
        > owed
        FireTimer { timer: TimerId(1) }
        > fire timer-1
        timer_fired timer=timer-1 message=msg-1
        msg-1 enqueued next timer_tick trusted_system: tea
        ",
    );
}

#[test]
fn a_stopped_agent_has_its_timers_when_it_is_started() {
    check(
        "
        given timer 5000; timer 5000 every 2000 beat; stop; clock +9000
        > owed
        > fire timer-1
        ! the agent is stopped; start it first
        > start
        started
        > owed
        FireTimer { timer: TimerId(1) }
        FireTimer { timer: TimerId(2) }
        > fire timer-1
        timer_fired timer=timer-1 message=msg-1
        msg-1 enqueued next timer_tick trusted_system: timer-1 is due.
        > fire timer-2
        timer_fired timer=timer-2 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: beat
        ",
    );
}

#[test]
fn a_paused_agent_is_brought_its_ticks_and_takes_them_up_later() {
    check(
        "
        given prompt hello; begin; abort; timer 5000 tea; clock +5000
        > owed
        FireTimer { timer: TimerId(1) }
        > fire timer-1
        timer_fired timer=timer-1 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: tea
        > posture
        archived paused [10]
        > start
        started
        > begin
        run-2 begun on msg-2
        incoming msg-2
        ",
    );
}

#[test]
fn a_timer_brings_the_work_it_was_set_for_into_focus() {
    check(
        r#"
        given prompt plan; begin; round
        > answer | CreateWorkItem {"objective":"first"} | CreateTimer {"duration_ms":5000,"summary":"look at it"}
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=first
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        timer_created timer=timer-1 duration_ms=5000 summary="look at it" work=work-1
        result 1/1 timer_set.timer=timer-1
        > round
        round 2 keeps 2 adds assistant tool_result tool_result
        round 2 attempt 15 boot 1 model 0
        > answer | CreateWorkItem {"objective":"second"} | sleep
        said 2:  (2 calls)
        work_item_created work=work-2 change.objective=second
        work_item_picked work=work-2
        result 2/0 work_written.work=work-2 work_written.revision=1
        result 2/1 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        work_item_continued work=work-2
        msg-2 enqueued normal system_tick trusted_system: work-2 can go on. Its objective:
        > clock +5000
        > fire timer-1
        timer_fired timer=timer-1 message=msg-3
        msg-3 enqueued next timer_tick trusted_system: look at it
        > drop msg-2 later
        msg-2 settled dropped: later
        > begin
        run-2 begun on msg-3
        incoming msg-3
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 32 boot 1 model 0
        > answer looked
        said 1: looked (0 calls)
        brief-3 result msg-3: looked
        msg-3 settled processed run-2
        run-2 completed after 1 rounds
        episode-1 holds run-1 to run-1: work_changed
        work_item_continued work=work-1
        msg-4 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        "#,
    );
}

#[test]
fn a_cancelled_timer_fires_no_more() {
    check(
        "
        given timer 5000 every 2000 beat; clock +5000; fire timer-1
        > cancel timer-1
        timer_cancelled timer=timer-1 reason=operator
        > begin
        run-1 begun on msg-1
        incoming msg-1
        > clock +5000
        > owed
        PrepareRound { run: RunId(1), round: 1 }
        > fire timer-1
        ! there is nothing to do
        ",
    );
}

#[test]
fn a_timer_has_its_bounds() {
    check(
        "
        > timer 0 now
        ! duration_ms is not between 1 and 315360000000
        > timer 315360000001 never
        ! duration_ms is not between 1 and 315360000000
        > timer 5000 every 999 beat
        ! interval_ms is not between 1000 and 315360000000
        ",
    );
}
