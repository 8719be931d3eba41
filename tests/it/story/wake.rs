//! Wakes: what several of them come to.

use super::check;

#[test]
fn wakes_that_come_while_a_tick_waits_join_it_and_none_is_lost() {
    check(
        "
        > wake build finished
        msg-1 enqueued next system_tick trusted_system: The agent was woken.
        msg-1 woken by wake: build finished
        > wake tests failed from ci
        msg-1 coalesced by wake: tests failed
        > wake build finished
        = ignored msg-1
        > wake build finished from ci
        msg-1 coalesced by wake: build finished
        > begin
        run-1 begun on msg-1
        incoming msg-1
        > wake build finished
        msg-2 enqueued next system_tick trusted_system: The agent was woken.
        msg-2 woken by wake: build finished
        ",
    );
}

#[test]
fn a_wake_says_why() {
    check(
        "
        > wake
        ! reason must not be empty
        ",
    );
}

#[test]
fn a_paused_agent_is_not_set_going_by_a_wake() {
    check(
        "
        given prompt hello; begin; abort
        > wake look
        msg-2 enqueued next system_tick trusted_system: The agent was woken.
        msg-2 woken by wake: look
        > posture
        archived paused [10]
        > owed
        ",
    );
}
