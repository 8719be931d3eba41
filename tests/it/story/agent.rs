//! The agent: abort, stop, start.

use super::check;

#[test]
fn an_abort_names_the_run_it_means() {
    check(
        "
        > abort
        ! no run is under way
        > prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        > abort
        ! no run is under way
        > begin
        run-1 begun on msg-1
        incoming msg-1
        brief-1 ack msg-1: run-1 has taken up msg-1.
        > abort run-7
        ! run run-7 is not the one that runs
        > abort run-1
        run-1 aborted stop_after_abort: operator_aborted
        brief-2 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 0 rounds
        paused: operator_aborted
        > abort run-1
        ! no run is under way
        ",
    );
}

#[test]
fn an_abort_pauses_the_agent_until_it_is_started() {
    check(
        "
        given prompt hello; prompt more; begin; round; answer working | exec sleep 9; run task-1
        > abort
        run-1 aborted stop_after_abort: operator_aborted
        brief-3 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 1 rounds
        task-1 to be ended: operator_aborted
        paused: operator_aborted
        > posture
        archived paused [20], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(14) }
        StopTask { task: TaskId(1), attempt: EventSeq(14) }
        > prompt later
        msg-3 enqueued interject operator_prompt trusted_operator: later
        > begin
        ! there is nothing to do
        > exit task-1 signal-15
        task-1 cancelled, signal 15
        > start
        started
        > posture
        has_queued_input message_waiting [21]
        > begin
        run-2 begun on msg-3
        incoming msg-3
        brief-4 ack msg-3: run-2 has taken up msg-3.
        ",
    );
}

#[test]
fn an_abort_ends_the_command_of_the_run_and_no_other() {
    check(
        "
        given prompt hello; begin; round; answer working | exec long | exec short; run task-1
        > promote task-1 so far
        task-1 promoted
        result 1/0 task-1 promoted
        task-2 requested: short
        > run task-2
        task-2 attempt 14 boot 1
        > abort
        run-1 aborted stop_after_abort: operator_aborted
        brief-2 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 1 rounds
        task-2 to be ended: operator_aborted
        paused: operator_aborted
        > exit task-2 signal-15
        task-2 cancelled, signal 15
        > exit task-1 0 done
        task-1 completed, code 0
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > posture
        archived paused [20]
        ",
    );
}

#[test]
fn an_agent_that_is_idle_after_an_abort_goes_on_with_its_queue() {
    check(
        "
        given prompt hello; next more; begin; round
        > abort idle
        run-1 aborted idle_after_abort: operator_aborted
        brief-2 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 1 rounds
        > posture
        has_queued_input message_waiting [3]
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        ",
    );
}

#[test]
fn a_command_that_had_not_begun_when_it_was_to_be_ended_never_begins() {
    check(
        "
        given prompt hello; begin; round; answer working | exec rm -r build
        > abort
        run-1 aborted stop_after_abort: operator_aborted
        brief-2 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 1 rounds
        task-1 to be ended: operator_aborted
        paused: operator_aborted
        task-1 cancelled, not started (it was stopped before it began)
        > owed
        ",
    );
    check(
        "
        given prompt hello; begin; round; answer working | exec rm -r build; run task-1
        > stop
        run-1 aborted stop: agent_stopped
        brief-2 failure msg-1: run-1 was aborted: agent_stopped. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted agent_stopped after 1 rounds
        task-1 to be ended: agent_stopped
        stopped: operator
        > boot
        > rerun task-1
        task-1 interrupted, not started (it was stopped before it began)
        > owed
        ",
    );
}

#[test]
fn a_stop_keeps_the_queue_and_interrupts_every_command() {
    check(
        "
        given prompt hello; next more; begin; round; answer working | exec long | exec short; run task-1
        given promote task-1; run task-2
        > stop
        run-1 aborted stop: agent_stopped
        brief-2 failure msg-1: run-1 was aborted: agent_stopped. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted agent_stopped after 1 rounds
        task-1 to be ended: agent_stopped
        task-2 to be ended: agent_stopped
        stopped: operator
        > stop
        = done
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(11) }
        StopTask { task: TaskId(1), attempt: EventSeq(11) }
        RunTask { task: TaskId(2), attempt: EventSeq(15) }
        StopTask { task: TaskId(2), attempt: EventSeq(15) }
        > exit task-1 signal-15
        task-1 interrupted, signal 15
        msg-3 enqueued next task_result trusted_system: task-1 interrupted, signal 15
        > exit task-2 signal-9
        task-2 interrupted, signal 9
        > posture
        archived stopped [22]
        > start
        started
        > start
        = done
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        ",
    );
}

#[test]
fn an_agent_is_created_once() {
    check(
        "
        > create
        = done
        > posture
        idle nothing_open []
        ",
    );
}
