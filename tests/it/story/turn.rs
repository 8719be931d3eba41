//! Turns: rounds, calls, budgets, and what a crash leaves.

use super::{check, script};
use crate::world::World;
use holon::decide::turn::TurnCommand;
use holon::events::turn::Usage;

#[test]
fn a_command_is_recorded_before_it_runs_and_its_result_joins_the_next_prompt() {
    check(
        "
        given prompt list the files; begin
        > round
        round 1 keeps 0 adds contract message
        round 1 attempt 7 boot 1 model 0
        > answer looking | exec ls
        said 1: looking (1 calls)
        task-1 requested: ls
        > owed
        StartTask { task: TaskId(1) }
        > run task-1
        task-1 attempt 10 boot 1
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        PromoteTask { task: TaskId(1), attempt: EventSeq(10) } in 1000 ms
        > exit task-1 0 a b c
        task-1 completed, code 0
        result 1/0 task-1 code 0: a b c
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 14 boot 1 model 0
        > answer three files
        said 2: three files (0 calls)
        brief-2 result msg-1: three files
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        ",
    );
}

#[test]
fn calls_of_a_round_are_done_in_their_order() {
    check(
        "
        given prompt build; begin; round
        > answer building | exec make | exec make test
        said 1: building (2 calls)
        task-1 requested: make
        > run task-1
        task-1 attempt 10 boot 1
        > run task-2
        ! the result comes from an attempt that was replaced or has ended
        > exit task-1 0 built
        task-1 completed, code 0
        result 1/0 task-1 code 0: built
        task-2 requested: make test
        > run task-2
        task-2 attempt 14 boot 1
        > exit task-2 2 failed
        task-2 failed, code 2
        result 1/1 task-2 code 2: failed
        ",
    );
}

#[test]
fn a_call_that_cannot_be_read_is_refused_and_the_turn_goes_on() {
    check(
        r#"
        given prompt fly; begin; round
        > answer trying | Fly {} | ExecCommand {"cmd":""} | output task-9 | exec ls
        said 1: trying (4 calls)
        result 1/0 refused unknown_tool
        result 1/1 refused invalid_tool_input
        result 1/2 refused not_found
        task-1 requested: ls
        "#,
    );
}

#[test]
fn sleep_ends_the_turn_after_the_rounds_other_calls() {
    check(
        "
        given prompt rest; begin; round
        > answer resting | sleep | exec ls
        said 1: resting (2 calls)
        result 1/0 slept
        task-1 requested: ls
        > run task-1
        task-1 attempt 11 boot 1
        > exit task-1 0
        task-1 completed, code 0
        result 1/1 task-1 code 0:
        brief-2 result msg-1: resting
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        idle nothing_open [16]
        ",
    );
}

#[test]
fn an_answer_without_text_still_ends_in_a_brief() {
    check(
        "
        given prompt rest; begin; round
        > answer  | sleep
        said 1:  (1 calls)
        result 1/0 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        ",
    );
}

#[test]
fn an_outcome_of_another_attempt_is_refused() {
    check(
        "
        given prompt hello; begin; round
        > at 3 answer too early
        ! the result comes from an attempt that was replaced or has ended
        > boot
        > again
        round 1 attempt 8 boot 2 model 0
        > at 7 answer too late
        ! the result comes from an attempt that was replaced or has ended
        > at 7 fail timeout
        ! the result comes from an attempt that was replaced or has ended
        > answer in time
        said 1: in time (0 calls)
        brief-2 result msg-1: in time
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > answer twice
        ! the result comes from an attempt that was replaced or has ended
        ",
    );
}

#[test]
fn a_round_that_dies_with_three_boots_is_given_up_and_the_queue_goes_on() {
    check(
        "
        given prompt poison; next wholesome; begin; round
        > again
        ! there is nothing to do
        > boot
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) }
        > again
        round 1 attempt 9 boot 2 model 0
        > boot
        > again
        round 1 attempt 10 boot 3 model 0
        > boot
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(10) }
        > again
        brief-2 failure msg-1: run-1 failed: the runtime went down 3 times during this model round, so it is no
        msg-1 settled processed run-1
        run-1 failed attempts_exhausted after 1 rounds
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
fn a_graceful_shutdown_is_not_held_against_the_round() {
    check(
        "
        given prompt hello; begin; round; fail interrupted
        given boot; again; fail interrupted; boot; again; fail interrupted; boot; again; fail interrupted
        > boot
        > again
        round 1 attempt 15 boot 5 model 0
        > answer at last
        said 1: at last (0 calls)
        brief-2 result msg-1: at last
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        ",
    );
}

#[test]
fn a_turn_stops_at_its_rounds() {
    check(
        "
        given prompt hello; begin rounds=1; round; answer working | exec ls; run task-1; exit task-1 0
        > round
        brief-2 failure msg-1: run-1 failed: it has used up its model rounds after 1 model rounds.
        msg-1 settled processed run-1
        run-1 failed budget_exhausted after 1 rounds
        > posture
        idle nothing_open [15]
        ",
    );
}

#[test]
fn a_turn_stops_at_its_wall_time() {
    check(
        "
        given prompt hello; begin ms=5000; round; answer working | exec ls; run task-1; exit task-1 0
        given clock +5000
        > round
        brief-2 failure msg-1: run-1 failed: it has used up its wall time after 1 model rounds.
        msg-1 settled processed run-1
        run-1 failed budget_exhausted after 1 rounds
        ",
    );
}

#[test]
fn a_turn_stops_at_its_tokens() {
    check(
        "
        given prompt hello; begin tokens=15; round; answer working | exec ls; run task-1; exit task-1 0
        > round
        brief-2 failure msg-1: run-1 failed: it has used up its tokens after 1 model rounds.
        msg-1 settled processed run-1
        run-1 failed budget_exhausted after 1 rounds
        ",
    );
}

#[test]
fn a_turn_that_has_its_answer_keeps_it_when_no_round_is_left_for_a_late_prompt() {
    check(
        "
        given prompt hello; begin rounds=1; round; prompt and this
        > answer good day
        said 1: good day (0 calls)
        > round
        brief-2 result msg-1: good day
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        has_queued_input message_waiting [8]
        ",
    );
}

#[test]
fn a_prompt_that_cannot_be_made_fails_the_turn() {
    check(
        "
        given prompt hello; begin
        > give-up context_exhausted
        brief-2 failure msg-1: run-1 failed: it cannot be made
        msg-1 settled processed run-1
        run-1 failed context_exhausted after 0 rounds
        ",
    );
    check(
        "
        given prompt hello; begin; round; answer working | exec ls
        > give-up context_exhausted
        ! the result comes from an attempt that was replaced or has ended
        ",
    );
}

#[test]
fn a_turn_begins_only_when_a_message_waits() {
    check(
        "
        > begin
        ! there is nothing to do
        > prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        > begin
        run-1 begun on msg-1
        incoming msg-1
        brief-1 ack msg-1: run-1 has taken up msg-1.
        > begin
        ! there is nothing to do
        > round
        round 1 keeps 0 adds contract message
        round 1 attempt 7 boot 1 model 0
        > round
        ! the result comes from an attempt that was replaced or has ended
        ",
    );
}

#[test]
fn a_failed_turns_message_never_runs_again() {
    let mut world = check(
        "
        given prompt hello; begin; round
        > fail authentication
        attempt 7 failed authentication: give up
        brief-2 failure msg-1: run-1 failed: no answer from scripted/first, scripted/second: authentication: it
        msg-1 settled processed run-1
        run-1 failed authentication after 1 rounds
        > begin
        ! there is nothing to do
        > stop
        stopped: operator
        > boot
        > start
        started
        > begin
        ! there is nothing to do
        > owed
        ",
    );
    script::tell(&mut world, "boot");
    assert!(world.owed().is_empty());
}

#[test]
fn time_that_goes_back_makes_no_negative_duration_and_ends_nothing() {
    check(
        "
        given prompt hello; begin ms=5000; clock -90000000
        > round
        round 1 keeps 0 adds contract message
        round 1 attempt 7 boot 1 model 0
        > boot
        > clock -3600000
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(7) }
        > again
        round 1 attempt 8 boot 2 model 0
        > answer working | exec ls
        said 1: working (1 calls)
        task-1 requested: ls
        > run task-1
        task-1 attempt 11 boot 2
        > exit task-1 0
        task-1 completed, code 0
        result 1/0 task-1 code 0:
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 15 boot 2 model 0
        > answer done
        said 2: done (0 calls)
        brief-2 result msg-1: done
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        ",
    );
}

#[test]
fn usage_beyond_all_counting_stays_at_the_end_of_counting() {
    let mut world = World::new();
    for _ in 0..2 {
        ["prompt hello", "begin", "round"].into_iter().for_each(|line| drop(script::tell(&mut world, line)));
        let attempt = world.attempt();
        let mut new = world.answered(attempt, "good day", Vec::new());
        new.usage = Usage { input_tokens: Some(u64::MAX), output_tokens: Some(u64::MAX) };
        world.tell(TurnCommand::Record(new)).expect("the attempt is under way");
    }
    assert_eq!(world.state.turns.usage_total.tokens(), u64::MAX);
}

#[test]
fn a_turn_ends_when_the_agent_and_its_children_have_spent_their_tokens() {
    let world = check(
        r#"
        given prompt go; begin agent-tokens=40; round
        given answer on it | SpawnAgent {"preset":"private_child","initial_message":"help"}; call; bring
        given of main.c1 begin; of main.c1 round; of main.c1 answer here you are; take main.c1
        given round; answer good
        given begin agent-tokens=40
        > round
        brief-3 failure msg-2: run-2 failed: it has used up its tokens of the agent and its children after 0 mo
        msg-2 settled processed run-2
        run-2 failed budget_exhausted after 0 rounds
        "#,
    );
    assert_eq!(world.state.turns.usage_total.tokens(), 45, "what a child has spent counts");
}
