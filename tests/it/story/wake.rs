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

#[test]
fn an_operators_wake_ends_every_wait_for_the_outside() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}
        > wake it is green from ci
        msg-2 enqueued next system_tick trusted_system: The agent was woken.
        wait_triggered wait=wait-1 by.message=msg-2
        msg-2 woken by wake: it is green
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        > posture
        active_turn turn_running [21]
        "#,
    );
}

#[test]
fn a_wake_that_joins_a_tick_ends_waits_as_well() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"}; round; wake a first from ci
        > answer | WaitFor {"wake":"external","reason":"the review"}
        said 2:  (1 calls)
        wait_created wait=wait-1 owner.work=work-1 reason="the review" recheck_after_ms=3600000 recoverability=weak
        result 2/0 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > wake it is green from ci
        wait_triggered wait=wait-1 by.message=msg-2
        msg-2 coalesced by wake: it is green
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        > posture
        active_turn turn_running [25]
        "#,
    );
}
