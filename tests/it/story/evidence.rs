//! What is owed and what the agent is doing, phase by phase, before and after the runtime went down.

use super::check;
use holon::fold::AgentState;
use holon::fold::posture::posture;

#[test]
fn an_agent_of_which_nothing_is_recorded_is_archived() {
    let posture = posture(&AgentState::unborn(crate::world::agent_id()));
    assert_eq!((posture.kind.name(), posture.reason, posture.evidence), ("archived", "unborn", Vec::new()));
}

#[test]
fn an_idle_agent_owes_nothing() {
    check(
        "
        > posture
        idle nothing_open []
        > owed
        > boot
        > owed
        ",
    );
}

#[test]
fn a_message_that_waits_is_owed_a_turn() {
    check(
        "
        given prompt hello
        > posture
        has_queued_input message_waiting [2]
        > owed
        StartTurn
        > boot
        > owed
        StartTurn
        ",
    );
}

#[test]
fn a_paused_agent_owes_its_queue_nothing() {
    check(
        "
        given prompt hello; begin; abort; prompt more
        > posture
        archived paused [10]
        > owed
        > boot
        > owed
        ",
    );
}

#[test]
fn a_stopped_agent_owes_its_queue_nothing() {
    check(
        "
        given prompt hello; stop
        > posture
        archived stopped [3]
        > owed
        > boot
        > owed
        ",
    );
}

#[test]
fn a_turn_that_has_begun_is_owed_a_round() {
    check(
        "
        given prompt hello; begin
        > posture
        active_turn turn_running [3]
        > owed
        PrepareRound { run: RunId(1), round: 1 }
        > boot
        > owed
        PrepareRound { run: RunId(1), round: 1 }
        ",
    );
}

#[test]
fn a_round_under_way_is_owed_its_call_or_after_a_boot_another_attempt() {
    check(
        "
        given prompt hello; begin; round
        > posture
        active_turn turn_running [3]
        > owed
        CallModel { run: RunId(1), attempt: EventSeq(7) }
        > boot
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(7) }
        ",
    );
}

#[test]
fn a_round_that_failed_is_owed_another_attempt_at_its_time() {
    check(
        "
        given prompt hello; begin; round; fail timeout
        > posture
        active_turn turn_running [3]
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) } in 557 ms
        > boot
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) } in 557 ms
        ",
    );
}

#[test]
fn a_round_cut_by_a_shutdown_is_owed_another_attempt_at_once() {
    check(
        "
        given prompt hello; begin; round; fail interrupted
        > posture
        active_turn turn_running [3]
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) }
        > boot
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) }
        ",
    );
}

#[test]
fn a_requested_command_is_owed_its_start() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls
        > posture
        active_turn turn_running [3], tasks active
        > owed
        StartTask { task: TaskId(1) }
        > boot
        > owed
        StartTask { task: TaskId(1) }
        ",
    );
}

#[test]
fn a_command_under_way_is_owed_its_run_and_at_its_time_its_promotion() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1
        > posture
        active_turn turn_running [3], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        PromoteTask { task: TaskId(1), attempt: EventSeq(10) } in 1000 ms
        > boot
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        PromoteTask { task: TaskId(1), attempt: EventSeq(10) } in 1000 ms
        ",
    );
}

#[test]
fn a_call_that_has_its_result_is_owed_a_round() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1; exit task-1 0
        > posture
        active_turn turn_running [3]
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        > boot
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        ",
    );
}

#[test]
fn a_promoted_command_is_owed_its_run_only() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1; promote task-1
        > posture
        active_turn turn_running [3], tasks active
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        > boot
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        ",
    );
}

#[test]
fn a_call_for_output_is_owed_its_reading_at_its_time() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1; promote task-1; round; answer how far | output task-1 500
        > posture
        active_turn turn_running [3], tasks active
        > owed
        ReadTask { run: RunId(1), round: 2, call: 0, task: TaskId(1) } in 500 ms
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        > boot
        > owed
        ReadTask { run: RunId(1), round: 2, call: 0, task: TaskId(1) } in 500 ms
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        ",
    );
}

#[test]
fn a_task_goes_on_after_its_turn() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1; promote task-1; round; answer later
        > posture
        idle nothing_open [18], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        > boot
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        ",
    );
}

#[test]
fn a_task_that_is_to_be_ended_is_owed_its_run_and_its_end() {
    check(
        "
        given prompt hello; begin; round; answer ok | exec ls; run task-1; abort idle
        > posture
        idle nothing_open [14], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        StopTask { task: TaskId(1), attempt: EventSeq(10) }
        > boot
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        StopTask { task: TaskId(1), attempt: EventSeq(10) }
        ",
    );
}

#[test]
fn a_finished_turn_is_owed_a_round_for_a_prompt_that_came_late() {
    check(
        "
        given prompt hello; begin; round; prompt more; answer good day
        > posture
        active_turn turn_running [3]
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        > boot
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        ",
    );
}

#[test]
fn a_turn_that_has_ended_leaves_its_evidence() {
    check(
        "
        given prompt hello; begin; round; answer good day
        > posture
        idle nothing_open [11]
        > owed
        > boot
        > owed
        ",
    );
}
