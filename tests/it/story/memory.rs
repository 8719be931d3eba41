//! Memory: notes, and the episodes that stand for turns.

use super::check;

#[test]
fn a_note_is_written_over_and_removed() {
    check(
        r#"
        given prompt go; begin; round
        > answer | MemoryUpdate {"entry":"colour","text":"red"} | MemoryUpdate {"entry":"colour","text":"blue"}
        said 1:  (2 calls)
        working_memory_updated entry=colour text=red
        result 1/0 memory_written.entry=colour
        working_memory_updated entry=colour text=blue
        result 1/1 memory_written.entry=colour
        > round
        round 2 keeps 2 adds assistant tool_result tool_result
        round 2 attempt 14 boot 1 model 0
        > answer | MemoryUpdate {"entry":"colour"} | MemoryUpdate {"entry":"colour"} | MemoryUpdate {"entry":"note","text":"x","work_item_id":"work-3"}
        said 2:  (3 calls)
        working_memory_updated entry=colour
        result 2/0 memory_written.entry=colour
        result 2/1 refused not_found
        result 2/2 refused invalid_tool_input
        "#,
    );
}

#[test]
fn notes_are_part_of_the_prompts_to_come() {
    check(
        r#"
        given prompt go; begin; round; answer | MemoryUpdate {"entry":"colour","text":"red"}; round; answer noted
        > prompt again
        msg-2 enqueued interject operator_prompt trusted_operator: again
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        > round
        round 1 keeps 0 adds contract memory earlier_message earlier_answer message
        round 1 attempt 22 boot 1 model 0
        "#,
    );
}

#[test]
fn a_note_outlives_the_work_it_is_bound_to() {
    check(
        r#"
        given prompt go; begin; round; answer | CreateWorkItem {"objective":"paint"} | MemoryUpdate {"entry":"colour","text":"red","work_item_id":"work-1"} | CompleteWorkItem {"work_item_id":"work-1"}; round; answer painted
        > prompt again
        msg-2 enqueued interject operator_prompt trusted_operator: again
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        > round
        round 1 keeps 0 adds contract memory earlier_message earlier_answer message
        round 1 attempt 27 boot 1 model 0
        "#,
    );
}

#[test]
fn an_episode_is_closed_when_the_work_changes() {
    check(
        r#"
        given prompt one; begin; round; answer yes
        > next two
        msg-2 enqueued next operator_prompt trusted_operator: two
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer message
        round 1 attempt 17 boot 1 model 0
        > answer | CreateWorkItem {"objective":"build"} | sleep
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=build
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        result 1/1 slept
        brief-4 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-1 holds run-1 to run-1: work_changed
        work_item_continued work=work-1
        msg-3 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        "#,
    );
}

#[test]
fn an_episode_is_closed_when_a_wait_begins() {
    check(
        r#"
        given prompt one; begin; round; answer yes; next two; begin; round
        > answer | WaitFor {"wake":"external","reason":"the review"}
        said 1:  (1 calls)
        wait_created wait=wait-1 owner=agent reason="the review" recheck_after_ms=3600000 recoverability=weak
        result 1/0 waiting.wait=wait-1
        brief-4 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-1 holds run-1 to run-2: wait_began
        "#,
    );
}

#[test]
fn an_episode_is_closed_when_a_task_rejoins() {
    check(
        "
        given prompt go; begin; round; answer | exec make; run task-1; promote task-1; round; answer later
        > exit task-1 0 ok
        task-1 completed, code 0
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer message
        round 1 attempt 24 boot 1 model 0
        > answer it is built
        said 1: it is built (0 calls)
        brief-3 result msg-2: it is built
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        episode-1 holds run-1 to run-2: rejoined
        ",
    );
}

#[test]
fn an_episode_is_closed_after_twelve_turns() {
    check(
        "
        given next a; begin; round; answer 1; next b; begin; round; answer 2; next c; begin; round; answer 3; next d; begin; round; answer 4
        given next e; begin; round; answer 5; next f; begin; round; answer 6; next g; begin; round; answer 7; next h; begin; round; answer 8
        given next i; begin; round; answer 9; next j; begin; round; answer 10; next k; begin; round; answer 11; next l; begin; round
        > answer 12
        said 1: 12 (0 calls)
        brief-24 result msg-12: 12
        msg-12 settled processed run-12
        run-12 completed after 1 rounds
        episode-1 holds run-1 to run-12: turns_reached
        > next m
        msg-13 enqueued next operator_prompt trusted_operator: m
        > begin
        run-13 begun on msg-13
        incoming msg-13
        brief-25 ack msg-13: run-13 has taken up msg-13.
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer earlier_message earlier_answer message
        round 1 attempt 128 boot 1 model 0
        ",
    );
}
