//! Work: how it is continued, held, blocked and completed.

use super::check;

#[test]
fn work_is_continued_at_once_then_ever_more_rarely_and_held_when_nothing_comes_of_it() {
    check(
        r#"
        > open ship it
        work_item_created work=work-1 change.objective="ship it"
        work_item_continued work=work-1
        msg-1 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-1 begun on msg-1
        incoming msg-1
        > round
        round 1 keeps 0 adds contract work message
        round 1 attempt 8 boot 1 model 0
        > answer looked
        said 1: looked (0 calls)
        brief-1 result msg-1: looked
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > owed
        ContinueWork { work: WorkId(1) } in 5000 ms
        > continue work-1
        ! there is nothing to do
        > clock +5000
        > continue work-1
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 18 boot 1 model 0
        > answer looked again
        said 1: looked again (0 calls)
        brief-2 result msg-2: looked again
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        > owed
        ContinueWork { work: WorkId(1) } in 10000 ms
        > clock +10000
        > continue work-1
        work_item_continued work=work-1
        msg-3 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-3 begun on msg-3
        incoming msg-3
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 28 boot 1 model 0
        > answer looked a third time
        said 1: looked a third time (0 calls)
        brief-3 result msg-3: looked a third time
        msg-3 settled processed run-3
        run-3 completed after 1 rounds
        work_item_held work=work-1 reason=no_progress
        > posture
        blocked no_progress [33]
        > owed
        > clock +86400000
        > continue work-1
        ! there is nothing to do
        "#,
    );
}

#[test]
fn a_continuation_in_which_something_is_done_holds_nothing_but_the_next_comes_no_sooner() {
    check(
        "
        given open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked
        given clock +10000; continue work-1; begin; round
        > answer doing | exec make
        said 1: doing (1 calls)
        task-1 requested: make
        > run task-1
        task-1 attempt 31 boot 1
        > exit task-1 0 ok
        task-1 completed, code 0
        result 1/0 task-1 code 0: ok
        > round
        round 2 keeps 7 adds assistant tool_result
        round 2 attempt 35 boot 1 model 0
        > answer made
        said 2: made (0 calls)
        brief-3 result msg-3: made
        msg-3 settled processed run-3
        run-3 completed after 2 rounds
        > posture
        has_runnable_work work_open [2]
        > owed
        ContinueWork { work: WorkId(1) } in 20000 ms
        ",
    );
}

#[test]
fn a_hold_is_lifted_by_an_update() {
    check(
        r#"
        given open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked
        given clock +10000; continue work-1; begin; round; answer looked
        > posture
        blocked no_progress [33]
        > alter work-1 {"plan_status":"ready"}
        work_item_updated work=work-1 change.plan_status=ready
        work_item_continued work=work-1
        msg-4 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        "#,
    );
}

#[test]
fn a_hold_is_lifted_by_what_the_operator_says() {
    check(
        "
        given open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked
        given clock +10000; continue work-1; begin; round; answer looked
        > posture
        blocked no_progress [33]
        > prompt try this
        msg-4 enqueued interject operator_prompt trusted_operator: try this
        > begin
        run-4 begun on msg-4
        incoming msg-4
        brief-4 ack msg-4: run-4 has taken up msg-4.
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 39 boot 1 model 0
        > answer tried
        said 1: tried (0 calls)
        brief-5 result msg-4: tried
        msg-4 settled processed run-4
        run-4 completed after 1 rounds
        work_item_continued work=work-1
        msg-5 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        ",
    );
}

#[test]
fn a_hold_is_lifted_by_a_wake() {
    check(
        "
        given open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked
        given clock +10000; continue work-1; begin; round; answer looked
        > posture
        blocked no_progress [33]
        > wake look again
        msg-4 enqueued next system_tick trusted_system: The agent was woken.
        msg-4 woken by wake: look again
        > begin
        run-4 begun on msg-4
        incoming msg-4
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 39 boot 1 model 0
        > answer seen
        said 1: seen (0 calls)
        brief-4 result msg-4: seen
        msg-4 settled processed run-4
        run-4 completed after 1 rounds
        work_item_continued work=work-1
        msg-5 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        ",
    );
}

#[test]
fn a_held_item_does_not_hold_another_one() {
    check(
        "
        given open first; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked
        given clock +10000; continue work-1; begin; round; answer looked
        > posture
        blocked no_progress [33]
        > open second
        work_item_created work=work-2 change.objective=second
        work_item_continued work=work-2
        msg-4 enqueued normal system_tick trusted_system: work-2 can go on. Its objective:
        > begin
        run-4 begun on msg-4
        incoming msg-4
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer work message
        round 1 attempt 40 boot 1 model 0
        > answer looked
        said 1: looked (0 calls)
        brief-4 result msg-4: looked
        msg-4 settled processed run-4
        run-4 completed after 1 rounds
        episode-1 holds run-1 to run-3: work_changed
        > posture
        has_runnable_work work_open [34]
        > owed
        ContinueWork { work: WorkId(2) } in 5000 ms
        ",
    );
}

#[test]
fn the_item_in_focus_is_continued_before_the_others() {
    check(
        r#"
        given prompt plan; begin; round
        > answer planning | CreateWorkItem {"objective":"first"} | CreateWorkItem {"objective":"second","todo_list":[{"text":"dig","status":"completed"},{"text":"fill","status":"pending"}]}
        said 1: planning (2 calls)
        work_item_created work=work-1 change.objective=first
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        work_item_created work=work-2 change.objective=second change.todos[].text=dig change.todos[].status=completed change.todos[].text=fill change.todos[].status=pending
        work_item_picked work=work-2
        result 1/1 work_written.work=work-2 work_written.revision=1
        > round
        round 2 keeps 2 adds assistant tool_result tool_result
        round 2 attempt 16 boot 1 model 0
        > answer planned
        said 2: planned (0 calls)
        brief-2 result msg-1: planned
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        work_item_continued work=work-2
        msg-2 enqueued normal system_tick trusted_system: work-2 can go on. Its objective:
        > pick work-1
        work_item_picked work=work-1
        > posture
        has_queued_input message_waiting [22]
        > drop msg-2 not this one
        msg-2 settled dropped: not this one
        work_item_continued work=work-1
        msg-3 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-2 begun on msg-3
        incoming msg-3
        "#,
    );
}

#[test]
fn blockers_are_looked_at_again_in_one_message_the_earliest_first_and_once() {
    check(
        r#"
        given prompt plan; begin; round; answer planning | CreateWorkItem {"objective":"first"} | CreateWorkItem {"objective":"second","focus":false}; round
        > answer blocked | UpdateWorkItem {"work_item_id":"work-1","blocker":"the key","recheck_after_ms":60000} | UpdateWorkItem {"work_item_id":"work-2","blocker":"the review","recheck_after_ms":30000} | sleep
        said 2: blocked (3 calls)
        work_item_updated work=work-1 change.blocker.set.text="the key" change.blocker.set.recheck_after_ms=60000
        result 2/0 work_written.work=work-1 work_written.revision=2
        work_item_updated work=work-2 change.blocker.set.text="the review" change.blocker.set.recheck_after_ms=30000
        result 2/1 work_written.work=work-2 work_written.revision=2
        result 2/2 slept
        brief-2 result msg-1: blocked
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > posture
        blocked blocker [17, 19]
        > owed
        Recheck in 30000 ms
        > recheck
        ! there is nothing to do
        > clock +60000
        > recheck
        work_item_recheck_consumed work=["work-2","work-1"]
        msg-2 enqueued background system_tick trusted_system: Blocked work is to be looked at again.
        > recheck
        ! there is nothing to do
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 30 boot 1 model 0
        > answer both are still blocked
        said 1: both are still blocked (0 calls)
        brief-3 result msg-2: both are still blocked
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-1 holds run-1 to run-1: work_changed
        > posture
        blocked blocker [17, 19]
        > owed
        "#,
    );
}

#[test]
fn a_recheck_joins_the_turn_that_runs() {
    check(
        r#"
        given open first; drop msg-1 later; alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}; clock +60000; prompt hello; begin
        > recheck
        work_item_recheck_consumed work=["work-1"]
        msg-3 enqueued background system_tick trusted_system: Blocked work is to be looked at again.
        msg-3 settled coalesced msg-2
        > round
        round 1 keeps 0 adds contract work message
        round 1 attempt 15 boot 1 model 0
        > answer hello
        said 1: hello (0 calls)
        brief-2 result msg-2: hello
        msg-2 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        blocked blocker [6]
        "#,
    );
}

#[test]
fn a_recheck_joins_the_oldest_message_that_waits() {
    check(
        r#"
        given open first; drop msg-1 later; alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}; clock +60000; next hello; channel ops look
        > recheck
        work_item_recheck_consumed work=["work-1"]
        msg-4 enqueued background system_tick trusted_system: Blocked work is to be looked at again.
        msg-4 settled coalesced msg-2
        > posture
        has_queued_input message_waiting [7]
        "#,
    );
}

#[test]
fn a_blocker_keeps_its_time_until_it_is_set_anew_or_cleared() {
    check(
        r#"
        given open first; drop msg-1 later
        > alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}
        work_item_updated work=work-1 change.blocker.set.text="the key" change.blocker.set.recheck_after_ms=60000
        > clock +1000
        > alter work-1 {"objective":"first of all"}
        work_item_updated work=work-1 change.objective="first of all"
        > owed
        Recheck in 59000 ms
        > alter work-1 {"blocker":{"set":{"text":"the other key","recheck_after_ms":5000}}}
        work_item_updated work=work-1 change.blocker.set.text="the other key" change.blocker.set.recheck_after_ms=5000
        > owed
        Recheck in 5000 ms
        > alter work-1 {"blocker":"clear"}
        work_item_updated work=work-1 change.blocker=clear
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > owed
        StartTurn
        "#,
    );
}

#[test]
fn the_end_of_work_ends_its_waits_and_the_operators_word_is_its_report() {
    check(
        r#"
        given prompt plan; begin; round
        given answer planning | CreateWorkItem {"objective":"first","todo_list":[{"text":"dig","status":"completed"},{"text":"fill","status":"pending"}]} | WaitFor {"wake":"external","reason":"the review"}
        > posture
        waiting_for_external external [12], a weak wait
        > complete work-1 done by hand
        wait_cancelled wait=wait-1 reason=work_completed
        work_item_completed work=work-1 report="done by hand" todos_unfinished=1
        brief-3 result nothing: done by hand
        > complete work-1 again
        = work-1
        > pick work-1
        ! work item work-1 has ended
        > alter work-1 {"objective":"more of it"}
        ! work item work-1 has ended
        > posture
        idle nothing_open [16]
        "#,
    );
}

#[test]
fn the_text_of_the_round_is_the_report_of_work_that_it_completes_unless_it_has_one() {
    check(
        r#"
        given prompt plan; begin; round; answer planning | CreateWorkItem {"objective":"first","todo_list":[{"text":"dig","status":"pending"}]} | CreateWorkItem {"objective":"second"}; round
        > answer all of it is done | CompleteWorkItem {"work_item_id":"work-1"} | CompleteWorkItem {"work_item_id":"work-1"} | CompleteWorkItem {"work_item_id":"work-2","result_summary":"the second is done"}
        said 2: all of it is done (3 calls)
        work_item_completed work=work-1 report="all of it is done" todos_unfinished=1
        result 2/0 work_written.work=work-1 work_written.revision=1 work_written.notes=["1 todos were not finished"]
        result 2/1 work_written.work=work-1 work_written.revision=0 work_written.notes=["it was completed before"]
        work_item_completed work=work-2 report="the second is done" todos_unfinished=0
        result 2/2 work_written.work=work-2 work_written.revision=1
        > round
        round 3 keeps 5 adds assistant tool_result tool_result tool_result
        round 3 attempt 24 boot 1 model 0
        > answer
        said 3:  (0 calls)
        brief-2 result msg-1: the second is done
        msg-1 settled processed run-1
        run-1 completed after 3 rounds
        > posture
        idle nothing_open [28]
        "#,
    );
}

#[test]
fn work_that_is_opened_from_outside_leaves_the_focus_where_it_is() {
    check(
        r#"
        given prompt plan; begin; round; answer planning | CreateWorkItem {"objective":"first"}
        > open second
        work_item_created work=work-2 change.objective=second
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 14 boot 1 model 0
        > answer done
        said 2: done (0 calls)
        brief-2 result msg-1: done
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > begin
        run-2 begun on msg-2
        incoming msg-2
        "#,
    );
}

#[test]
fn a_stopped_agent_is_not_continued_and_takes_up_its_work_when_it_is_started() {
    check(
        "
        given open first; begin; round; answer looked
        > stop
        stopped: operator
        > clock +5000
        > owed
        > continue work-1
        ! the agent is stopped; start it first
        > start
        started
        > posture
        has_runnable_work work_open [2]
        > owed
        ContinueWork { work: WorkId(1) }
        > continue work-1
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        ",
    );
}

#[test]
fn what_cannot_be_of_work_is_refused() {
    check(
        r#"
        > open
        ! objective must not be empty
        > open first
        work_item_created work=work-1 change.objective=first
        work_item_continued work=work-1
        msg-1 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > alter work-1 {"depends_on":["work-1"]}
        ! depends_on names the item itself
        > alter work-1 {"depends_on":["work-7"]}
        ! depends_on names work-7, which there is not
        > alter work-1 {"parent":"work-1"}
        ! parent_work_item_id names the item itself
        > alter work-1 {"blocker":{"set":{"text":" ","recheck_after_ms":5000}}}
        ! blocker must not be empty
        > alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":0}}}
        ! recheck_after_ms is not between 1 and 315360000000
        > complete work-7 done
        ! there is no work item work-7
        > pick work-7
        ! there is no work item work-7
        "#,
    );
}
