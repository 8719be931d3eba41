//! Waits: what ends them, and who takes up what they bring.

use super::check;

#[test]
fn what_the_operator_says_ends_a_wait_for_it_and_nothing_else_does() {
    check(
        r#"
        given prompt plan; begin; round; answer | WaitFor {"wake":"operator_input","reason":"which colour"}
        > posture
        waiting_for_operator operator [9]
        > channel ops look
        msg-2 enqueued normal channel_event untrusted_external: look
        > drop msg-2 later
        msg-2 settled dropped: later
        > prompt blue
        msg-3 enqueued interject operator_prompt trusted_operator: blue
        wait_triggered wait=wait-1 by.message=msg-3
        > begin
        run-2 begun on msg-3
        incoming msg-3
        wait_consumed wait=wait-1 run=run-2
        brief-3 ack msg-3: run-2 has taken up msg-3.
        "#,
    );
}

#[test]
fn news_from_outside_ends_a_wait_and_its_turn_takes_up_the_work() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}
        > channel ops it is green
        msg-2 enqueued normal channel_event untrusted_external: it is green
        wait_triggered wait=wait-1 by.message=msg-2
        > posture
        has_queued_input message_waiting [18]
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 24 boot 1 model 0
        > answer seen | WaitFor {"wake":"external","reason":"the second review"}
        said 1: seen (1 calls)
        wait_created wait=wait-2 owner.work=work-1 reason="the second review" recheck_after_ms=3600000 recoverability=weak derived_from.trust=untrusted_external derived_from.message=msg-2
        result 1/0 waiting.wait=wait-2
        brief-3 result msg-2: seen
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-2 holds run-2 to run-2: wait_began
        "#,
    );
}

#[test]
fn news_that_may_be_meant_for_several_waits_ends_them_all() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | CreateWorkItem {"objective":"second","focus":false}; round
        > answer | WaitFor {"wake":"external","reason":"the review"} | WaitFor {"wake":"external","reason":"the build","work_item_id":"work-2"}
        said 2:  (2 calls)
        wait_created wait=wait-1 owner.work=work-1 reason="the review" recheck_after_ms=3600000 recoverability=weak
        result 2/0 waiting.wait=wait-1
        wait_created wait=wait-2 owner.work=work-2 reason="the build" recheck_after_ms=3600000 recoverability=weak
        result 2/1 waiting.wait=wait-2
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > webhook ci both are green
        msg-2 enqueued normal webhook_event trusted_integration: both are green
        wait_triggered wait=wait-1 by.message=msg-2
        wait_triggered wait=wait-2 by.message=msg-2
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        wait_consumed wait=wait-2 run=run-2
        "#,
    );
}

#[test]
fn a_later_wait_takes_the_place_of_the_one_before() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}; next hello; begin; round
        > answer | WaitFor {"wake":"external","reason":"another review","recheck_after_ms":9000}
        said 1:  (1 calls)
        wait_superseded wait=wait-1 by=wait-2
        wait_created wait=wait-2 owner.work=work-1 reason="another review" recheck_after_ms=9000 recoverability=recoverable
        result 1/0 waiting.wait=wait-2
        brief-4 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-2 holds run-2 to run-2: wait_began
        > cancel wait-1
        ! wait wait-1 has ended
        > posture
        waiting_for_external external [26]
        "#,
    );
}

#[test]
fn a_wait_that_was_triggered_is_taken_up_even_if_another_took_its_place() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}; next and; begin; round
        > webhook ci green
        msg-3 enqueued normal webhook_event trusted_integration: green
        wait_triggered wait=wait-1 by.message=msg-3
        > answer | WaitFor {"wake":"operator_input","reason":"which"}
        said 1:  (1 calls)
        wait_created wait=wait-2 owner.work=work-1 wake=operator_input reason=which
        result 1/0 waiting.wait=wait-2
        brief-4 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-2 holds run-2 to run-2: wait_began
        > begin
        run-3 begun on msg-3
        incoming msg-3
        wait_consumed wait=wait-1 run=run-3
        > posture
        active_turn turn_running [33]
        "#,
    );
}

#[test]
fn a_cancelled_wait_leaves_its_work_runnable() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}
        > cancel wait-1
        wait_cancelled wait=wait-1 reason=operator
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > cancel wait-1
        ! wait wait-1 has ended
        > cancel wait-7
        ! there is no wait wait-7
        > posture
        has_queued_input message_waiting [20]
        "#,
    );
}

#[test]
fn a_wait_that_nothing_ends_expires_and_the_agent_looks_by_itself() {
    check(
        r#"
        given prompt plan; begin; round
        > answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review","recheck_after_ms":9000}
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=first
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        wait_created wait=wait-1 owner.work=work-1 reason="the review" recheck_after_ms=9000 recoverability=recoverable
        result 1/1 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        episode-1 holds run-1 to run-1: wait_began
        > owed
        EndWait { wait: WaitId(1) } in 9000 ms
        > due wait-1
        ! there is nothing to do
        > clock +9000
        > due wait-1
        wait_expired wait=wait-1
        msg-2 enqueued next system_tick trusted_system: Nothing came yet for wait-1, look by yourself:
        > due wait-1
        ! there is nothing to do
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > posture
        active_turn turn_running [20]
        "#,
    );
}

#[test]
fn a_wait_for_a_time_is_triggered_by_it() {
    check(
        r#"
        given prompt plan; begin; round; answer | WaitFor {"wake":"timer","after_ms":5000,"reason":"a pause"}
        > owed
        EndWait { wait: WaitId(1) } in 5000 ms
        > clock +5000
        > due wait-1
        wait_triggered wait=wait-1 by=due
        msg-2 enqueued next system_tick trusted_system: The time has come:
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        "#,
    );
}

#[test]
fn the_end_of_a_task_ends_the_wait_for_it() {
    check(
        r#"
        given prompt plan; begin; round; answer | exec make; run task-1; promote task-1; round
        > answer | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"}
        said 2:  (1 calls)
        wait_created wait=wait-1 owner=agent wake.task_result=task-1 reason="the build"
        result 2/0 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > channel ops look
        msg-2 enqueued normal channel_event untrusted_external: look
        > exit task-1 0 built
        task-1 completed, code 0
        wait_triggered wait=wait-1 by.task=task-1
        msg-3 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > begin
        run-2 begun on msg-3
        incoming msg-3
        wait_consumed wait=wait-1 run=run-2
        "#,
    );
}

#[test]
fn a_wait_for_a_task_that_has_ended_is_triggered_at_once() {
    check(
        r#"
        given prompt plan; begin; round; answer | exec make; run task-1; promote task-1; exit task-1 0 built; round
        > answer | output task-1 | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"}
        said 2:  (2 calls)
        msg-2 settled coalesced msg-1
        result 2/0 task-1 completed, code 0: built
        wait_created wait=wait-1 owner=agent wake.task_result=task-1 reason="the build"
        wait_triggered wait=wait-1 by.task=task-1
        msg-3 enqueued next system_tick trusted_system: task-1 had ended before it was waited for.
        result 2/1 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > begin
        run-2 begun on msg-3
        incoming msg-3
        wait_consumed wait=wait-1 run=run-2
        "#,
    );
}

#[test]
fn the_result_that_waits_stands_for_a_wait_that_came_late() {
    check(
        r#"
        given prompt plan; begin; round; answer | exec make; run task-1; promote task-1; exit task-1 0 built; round
        > answer | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"}
        said 2:  (1 calls)
        wait_created wait=wait-1 owner=agent wake.task_result=task-1 reason="the build"
        wait_triggered wait=wait-1 by.task=task-1
        result 2/0 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > begin
        run-2 begun on msg-2
        incoming msg-2
        wait_consumed wait=wait-1 run=run-2
        "#,
    );
}

#[test]
fn an_external_wait_is_weak_unless_it_says_when_to_look_and_stays_so_when_it_says_why_not() {
    check(
        r#"
        given prompt plan; begin; round
        > answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review","resource":"pr-7"}
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=first
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        wait_created wait=wait-1 owner.work=work-1 wake.external.resource=pr-7 reason="the review" recheck_after_ms=3600000 recoverability=weak
        result 1/1 waiting.wait=wait-1
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        episode-1 holds run-1 to run-1: wait_began
        > posture
        waiting_for_external external [12], a weak wait
        > owed
        EndWait { wait: WaitId(1) } in 3600000 ms
        > next and
        msg-2 enqueued next operator_prompt trusted_operator: and
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 23 boot 1 model 0
        > answer | WaitFor {"wake":"external","reason":"the review","recheck_after_ms":9000}
        said 1:  (1 calls)
        wait_superseded wait=wait-1 by=wait-2
        wait_created wait=wait-2 owner.work=work-1 reason="the review" recheck_after_ms=9000 recoverability=recoverable
        result 1/0 waiting.wait=wait-2
        brief-4 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-2 holds run-2 to run-2: wait_began
        > posture
        waiting_for_external external [26]
        > owed
        EndWait { wait: WaitId(2) } in 9000 ms
        > next and
        msg-3 enqueued next operator_prompt trusted_operator: and
        > begin
        run-3 begun on msg-3
        incoming msg-3
        brief-5 ack msg-3: run-3 has taken up msg-3.
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 37 boot 1 model 0
        > answer | WaitFor {"wake":"external","reason":"the review","no_fallback_reason":"they always call"}
        said 1:  (1 calls)
        wait_superseded wait=wait-2 by=wait-3
        wait_created wait=wait-3 owner.work=work-1 reason="the review" recoverability.explicit_no_fallback="they always call"
        result 1/0 waiting.wait=wait-3
        brief-6 result msg-3: (The turn ended without text.)
        msg-3 settled processed run-3
        run-3 completed after 1 rounds
        episode-3 holds run-3 to run-3: wait_began
        > posture
        waiting_for_external external [40], a weak wait
        > owed
        "#,
    );
}

#[test]
fn a_stopped_agent_waits_on_and_looks_when_it_is_started() {
    check(
        r#"
        given prompt plan; begin; round; answer | CreateWorkItem {"objective":"first"} | WaitFor {"wake":"external","reason":"the review"}
        > stop
        stopped: operator
        > channel ops green
        ! the agent is stopped; start it first
        > clock +3600000
        > owed
        > due wait-1
        ! the agent is stopped; start it first
        > start
        started
        > owed
        EndWait { wait: WaitId(1) }
        > due wait-1
        wait_expired wait=wait-1
        msg-2 enqueued next system_tick trusted_system: Nothing came yet for wait-1, look by yourself:
        "#,
    );
}

#[test]
fn calls_after_a_wait_are_made_before_the_turn_ends() {
    check(
        r#"
        given prompt plan; begin; round
        > answer | WaitFor {"wake":"operator_input","reason":"which"} | exec make
        said 1:  (2 calls)
        wait_created wait=wait-1 owner=agent wake=operator_input reason=which
        result 1/0 waiting.wait=wait-1
        task-1 requested: make
        > run task-1
        task-1 attempt 12 boot 1
        > exit task-1 0 made
        task-1 completed, code 0
        result 1/1 task-1 code 0: made
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        episode-1 holds run-1 to run-1: wait_began
        > posture
        waiting_for_operator operator [9]
        "#,
    );
}
