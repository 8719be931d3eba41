//! Managed executions: their attempts, their ends, and who is told.

use super::{check, script};
use crate::world::World;
use holon::fold::owed::{Effect, Owed};
use holon::words::limit::TASKS_ENDED_KEPT_MAX;

#[test]
fn a_command_that_outlasts_its_call_goes_on_and_its_end_is_a_message() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        PromoteTask { task: TaskId(1), attempt: EventSeq(10) } in 1000 ms
        > promote task-1 so far
        task-1 promoted
        result 1/0 task-1 promoted
        > promote task-1 again
        ! there is nothing to do
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 14 boot 1 model 0
        > answer it goes on
        said 2: it goes on (0 calls)
        brief-2 result msg-1: it goes on
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > exit task-1 0 built
        task-1 completed, code 0
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > posture
        has_queued_input message_waiting [20]
        ",
    );
}

#[test]
fn the_output_of_a_task_is_read_while_it_runs_and_after() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1; promote task-1; round
        > answer how far is it | output task-1 | output task-1 5000
        said 2: how far is it (2 calls)
        > owed
        ReadTask { run: RunId(1), round: 2, call: 0, task: TaskId(1) }
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        > read task-1 half
        result 2/0 task-1 running, no end: half
        > owed
        ReadTask { run: RunId(1), round: 2, call: 1, task: TaskId(1) } in 5000 ms
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        > exit task-1 0 all
        task-1 completed, code 0
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        msg-2 settled coalesced msg-1
        result 2/1 task-1 completed, code 0: all
        > round
        round 3 keeps 4 adds assistant tool_result tool_result
        round 3 attempt 22 boot 1 model 0
        > answer and now | output task-1 | output task-3
        said 3: and now (2 calls)
        result 3/0 task-1 completed, code 0: all
        result 3/1 refused not_found
        ",
    );
}

#[test]
fn a_turn_that_has_seen_the_end_of_a_task_needs_no_message_about_it() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1; promote task-1; round
        > exit task-1 0 built
        task-1 completed, code 0
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > answer and now | output task-1
        said 2: and now (1 calls)
        msg-2 settled coalesced msg-1
        result 2/0 task-1 completed, code 0: built
        > round
        round 3 keeps 4 adds assistant tool_result
        round 3 attempt 21 boot 1 model 0
        > answer built
        said 3: built (0 calls)
        brief-2 result msg-1: built
        msg-1 settled processed run-1
        run-1 completed after 3 rounds
        > posture
        idle nothing_open [25]
        ",
    );
}

#[test]
fn the_output_of_a_task_that_the_state_has_forgotten_is_looked_up() {
    let mut world = World::new();
    world.prompt("build").unwrap();
    script::tell(&mut world, "begin");
    for task in 1..=TASKS_ENDED_KEPT_MAX + 1 {
        script::tell(&mut world, "round");
        script::tell(&mut world, &format!("answer next | exec make {task}"));
        script::tell(&mut world, &format!("run task-{task}"));
        script::tell(&mut world, &format!("exit task-{task} 0 built"));
    }
    script::tell(&mut world, "round");
    let told = script::tell(&mut world, "answer all | output task-2 | output task-1");
    assert!(told.contains(&"result 18/0 task-2 completed, code 0: built".to_owned()), "{told:?}");
    let begins = |owed: &Owed| matches!(owed.effect, Effect::BeginCall { call: 1, .. });
    assert!(world.owed().iter().any(begins), "{:?}", world.owed());
}

#[test]
fn an_equal_command_that_runs_already_is_not_run_twice() {
    check(
        r#"
        given prompt serve; begin; round; answer serving | exec serve; run task-1; promote task-1; round
        > answer once more | exec serve | exec other
        said 2: once more (2 calls)
        result 2/0 task-1 already running
        task-2 requested: other
        > run task-2
        task-2 attempt 18 boot 1
        > exit task-2 0
        task-2 completed, code 0
        result 2/1 task-2 code 0:
        > round
        round 3 keeps 4 adds assistant tool_result tool_result
        round 3 attempt 22 boot 1 model 0
        > answer another | ExecCommand {"cmd":"serve","duplicate_policy":"start_new"}
        said 3: another (1 calls)
        task-3 requested: serve
        "#,
    );
}

#[test]
fn a_command_whose_end_is_unknown_is_lost_once_and_its_call_is_told() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1
        > boot
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        PromoteTask { task: TaskId(1), attempt: EventSeq(10) } in 1000 ms
        > exit task-1 lost
        task-1 interrupted, lost
        result 1/0 task-1 lost:
        > exit task-1 lost
        ! the result comes from an attempt that was replaced or has ended
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        ",
    );
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1; promote task-1; round; answer ok
        > exit task-1 lost
        task-1 interrupted, lost
        msg-2 enqueued next task_result trusted_system: task-1 interrupted, its end is unknown: it may or may not have taken effect
        > begin
        run-2 begun on msg-2
        incoming msg-2
        ",
    );
}

#[test]
fn an_exit_of_another_attempt_is_refused() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1
        > run task-1
        ! the result comes from an attempt that was replaced or has ended
        > boot
        > rerun task-1
        task-1 attempt 11 boot 2
        > at 10 exit task-1 0 early
        ! the result comes from an attempt that was replaced or has ended
        > exit task-1 0 built
        task-1 completed, code 0
        result 1/0 task-1 code 0: built
        ",
    );
}

#[test]
fn a_command_that_dies_with_three_boots_is_given_up_and_its_call_is_told() {
    check(
        "
        given prompt poison; begin; round; answer trying | exec poison; run task-1
        > boot
        > rerun task-1
        task-1 attempt 11 boot 2
        > boot
        > rerun task-1
        task-1 attempt 12 boot 3
        > boot
        > rerun task-1
        task-1 failed, not started (attempts_exhausted)
        result 1/0 task-1 not started (attempts_exhausted):
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 16 boot 4 model 0
        ",
    );
}

#[test]
fn a_call_reads_only_the_task_it_names() {
    check(
        "
        given prompt build; begin; round; answer building | exec make | exec test; run task-1; promote task-1
        > read task-2 nothing
        ! the result comes from an attempt that was replaced or has ended
        > read task-1 nothing
        ! the result comes from an attempt that was replaced or has ended
        ",
    );
}

#[test]
fn a_read_that_comes_after_its_call_is_refused() {
    check(
        "
        given prompt build; begin; round; answer building | exec make; run task-1
        > exit task-1 0
        task-1 completed, code 0
        result 1/0 task-1 code 0:
        > read task-1 late
        ! there is nothing to do
        > promote task-1 late
        ! the result comes from an attempt that was replaced or has ended
        ",
    );
}

#[test]
fn a_command_of_the_operators_is_nobodys_call_and_ends_in_a_message() {
    check(
        "
        > command make
        task-1 requested: make
        > owed
        StartTask { task: TaskId(1) }
        > run task-1
        task-1 attempt 3 boot 1
        > exit task-1 0 built
        task-1 completed, code 0
        msg-1 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > stop
        stopped: operator
        > command make
        ! the agent is stopped; start it first
        ",
    );
}
