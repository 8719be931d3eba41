//! External triggers: what comes by them, for which work, and who may use them.

use super::check;

#[test]
fn a_wake_brings_a_hint_and_hints_join_the_tick_that_waits() {
    check(
        "
        given open first; drop msg-1 later; trigger wake secret ci
        > callback wake secret the build is green
        msg-2 enqueued next system_tick trusted_integration: The agent was woken.
        msg-2 woken by wake: ci | the build is green
        callback_delivered trigger=trigger-1 message=msg-2
        > callback wake secret the build is green
        = ignored msg-2
        > callback wake secret the tests are green
        msg-2 coalesced by wake: ci | the tests are green
        callback_delivered trigger=trigger-1 message=msg-2
        > begin
        run-1 begun on msg-2
        incoming msg-2
        > callback wake secret the build is green
        msg-3 enqueued next system_tick trusted_integration: The agent was woken.
        msg-3 woken by wake: ci | the build is green
        callback_delivered trigger=trigger-1 message=msg-3
        ",
    );
}

#[test]
fn an_enqueue_brings_every_body_with_its_work() {
    check(
        "
        given open first; drop msg-1 later; pick work-1; trigger enqueue secret reviews
        > callback enqueue secret it is approved
        msg-2 enqueued normal callback_event trusted_integration: it is approved
        callback_delivered trigger=trigger-1 message=msg-2
        > callback enqueue secret it is approved
        msg-3 enqueued normal callback_event trusted_integration: it is approved
        callback_delivered trigger=trigger-1 message=msg-3
        > begin
        run-1 begun on msg-2
        incoming msg-2
        ",
    );
}

#[test]
fn whoever_does_not_hold_a_capability_learns_nothing() {
    check(
        "
        given trigger wake secret ci
        > callback wake other x
        ! the capability is not valid
        > callback enqueue secret x
        ! the capability is not valid
        > revoke trigger-1
        external_trigger_revoked trigger=trigger-1 reason=operator
        > callback wake secret x
        ! the capability is not valid
        > revoke trigger-1
        ! external trigger trigger-1 has ended
        > revoke trigger-2
        ! there is no external trigger trigger-2
        ",
    );
}

#[test]
fn a_stopped_agent_takes_nothing_in_and_says_so_to_those_it_trusts() {
    check(
        "
        given trigger wake secret ci; stop
        > callback wake secret x
        ! the agent is stopped; start it first
        > callback wake other x
        ! the capability is not valid
        ",
    );
}

#[test]
fn a_callback_ends_the_waits_of_its_work_and_of_no_other() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | CreateExternalTrigger {"mode":"wake","label":"ci","work_item_id":"work-1"}; call; bring secret; round
        > answer | CreateWorkItem {"objective":"second"} | WaitFor {"wake":"external","reason":"the first's build","work_item_id":"work-1"} | WaitFor {"wake":"external","reason":"the second's build"}
        said 2:  (3 calls)
        work_item_created work=work-2 change.objective=second
        work_item_picked work=work-2
        result 2/0 work_written.work=work-2 work_written.revision=1
        wait_created wait=wait-1 owner.work=work-1 reason="the first's build" recheck_after_ms=3600000 recoverability=weak
        result 2/1 waiting.wait=wait-1
        wait_created wait=wait-2 owner.work=work-2 reason="the second's build" recheck_after_ms=3600000 recoverability=weak
        result 2/2 waiting.wait=wait-2
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > callback wake secret green
        msg-2 enqueued next system_tick trusted_integration: The agent was woken.
        wait_triggered wait=wait-1 by.message=msg-2
        msg-2 woken by wake: ci | green
        callback_delivered trigger=trigger-1 message=msg-2
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        > posture
        active_turn turn_running [33], a weak wait
        "#,
    );
}

#[test]
fn wakes_for_several_items_join_one_tick_and_no_item_is_forgotten() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | CreateExternalTrigger {"mode":"wake","label":"ci","work_item_id":"work-1"}; call; bring one; round
        given answer | CreateWorkItem {"objective":"second"} | CreateExternalTrigger {"mode":"wake","label":"shop","work_item_id":"work-2"}; call; bring two; round
        > answer | WaitFor {"wake":"external","reason":"the build","work_item_id":"work-1"} | WaitFor {"wake":"external","reason":"the bell"}
        said 3:  (2 calls)
        wait_created wait=wait-1 owner.work=work-1 reason="the build" recheck_after_ms=3600000 recoverability=weak
        result 3/0 waiting.wait=wait-1
        wait_created wait=wait-2 owner.work=work-2 reason="the bell" recheck_after_ms=3600000 recoverability=weak
        result 3/1 waiting.wait=wait-2
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 3 rounds
        episode-1 holds run-1 to run-1: wait_began
        > callback wake one green
        msg-2 enqueued next system_tick trusted_integration: The agent was woken.
        wait_triggered wait=wait-1 by.message=msg-2
        msg-2 woken by wake: ci | green
        callback_delivered trigger=trigger-1 message=msg-2
        > callback wake two rung
        wait_triggered wait=wait-2 by.message=msg-2
        msg-2 coalesced by wake: shop | rung
        callback_delivered trigger=trigger-2 message=msg-2
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 46 boot 1 model 0
        > answer seen
        said 1: seen (0 calls)
        brief-3 result msg-2: seen
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        work_item_continued work=work-1
        msg-3 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-3 begun on msg-3
        incoming msg-3
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 56 boot 1 model 0
        > answer it is built | CompleteWorkItem {"work_item_id":"work-1"}
        said 1: it is built (1 calls)
        work_item_completed work=work-1 report="it is built" todos_unfinished=0
        result 1/0 work_written.work=work-1 work_written.revision=1
        > round
        round 2 keeps 7 adds assistant tool_result
        round 2 attempt 61 boot 1 model 0
        > answer
        said 2:  (0 calls)
        brief-4 result msg-3: it is built
        msg-3 settled processed run-3
        run-3 completed after 2 rounds
        work_item_continued work=work-2
        msg-4 enqueued normal system_tick trusted_system: work-2 can go on. Its objective:
        > begin
        run-4 begun on msg-4
        incoming msg-4
        wait_consumed wait=wait-2 run=run-4
        "#,
    );
}

#[test]
fn a_capability_outlives_its_work_and_is_revoked_with_the_agent() {
    check(
        "
        given open first; drop msg-1 later; pick work-1; trigger enqueue secret reviews; complete work-1
        > callback enqueue secret it is approved
        msg-2 enqueued normal callback_event trusted_integration: it is approved
        callback_delivered trigger=trigger-1 message=msg-2
        > archive
        msg-2 settled dropped: agent_archived
        external_trigger_revoked trigger=trigger-1 reason=agent_archived
        agent_archive_requested reason=operator
        agent_archived
        > callback enqueue secret it is approved
        ! the capability is not valid
        ",
    );
}

#[test]
fn a_token_is_drawn_once_and_a_capability_says_what_it_is_for() {
    check(
        "
        given trigger enqueue secret ci
        > trigger enqueue secret ci
        ! token was drawn before
        > trigger wake other
        ! label must not be empty
        ",
    );
}
