//! Children: their birth, their results and questions, and how they end with their supervisor.

use super::check;

#[test]
fn a_child_works_by_itself_and_its_result_comes_once() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look   into it"}
        > call
        call 1/0 attempt 9 boot 1
        > bring
        agent_spawned child=main.c1 preset=private_child task=task-1
        task_child_spawned task=task-1 child=main.c1 summary="look into it" mode=inherit
        result 1/0 spawned.agent=main.c1 spawned.task=task-1
        main.c1: created main.c1
        main.c1: msg-1 enqueued next internal_followup trusted_system: look   into it
        > round
        round 2 keeps 2 adds assistant tool_result
        round 2 attempt 14 boot 1 model 0
        > answer it looks
        said 2: it looks (0 calls)
        brief-2 result msg-1: it looks
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > posture
        idle nothing_open [18], tasks active
        > of main.c1 posture
        main.c1: has_queued_input message_waiting [2]
        > of main.c1 begin
        main.c1: run-1 begun on msg-1
        main.c1: incoming msg-1
        > of main.c1 round
        main.c1: round 1 keeps 0 adds contract message
        main.c1: round 1 attempt 6 boot 1 model 0
        > of main.c1 answer it is the cable
        main.c1: said 1: it is the cable (0 calls)
        main.c1: brief-1 result msg-1: it is the cable
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 completed after 1 rounds
        main.c1: delegation_reported status=completed run=run-1 report="it is the cable" usage.input_tokens=10 usage.output_tokens=5 usage.rounds_unknown=0
        > take main.c1
        errand_taken from=main.c1 errand=message entry=11
        task-1 completed, reported
        msg-2 enqueued next task_result trusted_system: task-1 completed, it has reported
        main.c1: outbox_delivered entry=11 outcome=taken
        main.c1: agent_archive_requested reason=delegation_ended
        main.c1: agent_archived
        > take main.c1
        ! main.c1 owes nothing
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > of main.c1 start
        main.c1: ! the agent has ended; its ledger is sealed
        "#,
    );
}

#[test]
fn a_child_says_what_it_wants_known_and_goes_on() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round
        > of main.c1 answer | NotifyOperator {"message":"half way"}
        main.c1: said 1:  (1 calls)
        main.c1: operator_notification_requested notice=notice-1 text="half way"
        main.c1: result 1/0 notified.notice=notice-1
        > take main.c1
        errand_taken from=main.c1 errand=message entry=8
        msg-2 enqueued background task_status trusted_system: half way
        main.c1: outbox_delivered entry=8 outcome=taken
        > of main.c1 round
        main.c1: round 2 keeps 2 adds assistant tool_result
        main.c1: round 2 attempt 12 boot 1 model 0
        > of main.c1 posture
        main.c1: active_turn turn_running [3]
        "#,
    );
}

#[test]
fn what_a_child_owes_is_taken_in_its_order_and_once_however_often_it_comes() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round; of main.c1 answer | NotifyOperator {"message":"half way"}; of main.c1 round; of main.c1 answer found it
        > of main.c1 owed
        main.c1: Deliver { entry: EventSeq(8) }
        > bear main.c1
        errand_taken from=main.c1 errand=message entry=8
        msg-2 enqueued background task_status trusted_system: half way
        > clock +172800000
        > boot
        > bear main.c1
        = done
        > take main.c1
        = done
        main.c1: outbox_delivered entry=8 outcome=taken
        > of main.c1 owed
        main.c1: Deliver { entry: EventSeq(16) }
        > take main.c1
        errand_taken from=main.c1 errand=message entry=16
        task-1 completed, reported
        msg-3 enqueued next task_result trusted_system: task-1 completed, it has reported
        main.c1: outbox_delivered entry=16 outcome=taken
        main.c1: agent_archive_requested reason=delegation_ended
        main.c1: agent_archived
        "#,
    );
}

#[test]
fn a_supervisor_that_is_stopped_has_its_childs_notice_and_one_that_is_to_end_wants_none() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round; of main.c1 answer | NotifyOperator {"message":"half way"}
        > stop
        stopped: operator
        > take main.c1
        errand_taken from=main.c1 errand=message entry=8
        msg-2 enqueued background task_status trusted_system: half way
        main.c1: outbox_delivered entry=8 outcome=taken
        > of main.c1 round
        main.c1: round 2 keeps 2 adds assistant tool_result
        main.c1: round 2 attempt 12 boot 1 model 0
        > of main.c1 answer | NotifyOperator {"message":"nearly there"}
        main.c1: said 2:  (1 calls)
        main.c1: operator_notification_requested notice=notice-2 text="nearly there"
        main.c1: result 2/0 notified.notice=notice-2
        > archive
        task-1 to be ended: agent_archived
        msg-2 settled dropped: agent_archived
        agent_archive_requested reason=operator
        > take main.c1
        ! the agent has ended; its ledger is sealed
        main.c1: outbox_delivered entry=14 outcome=not_wanted
        "#,
    );
}

#[test]
fn a_supervisor_that_changes_its_mind_is_followed_to_the_last_word() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; stop; start
        > owed
        DirectChild { task: TaskId(1), lifecycle: Active, entry: EventSeq(20) }
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=20
        child_directed task=task-1 lifecycle=active entry=20
        > owed
        "#,
    );
}

#[test]
fn input_reaches_the_child_as_a_message_of_its_supervisor() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round
        > answer | TaskInput {"task_id":"task-1","text":"the red one"} | TaskInput {"task_id":"task-1","text":"and the blue one"} | sleep
        said 2:  (3 calls)
        task_input_requested task=task-1 text="the red one" offset=0
        result 2/0 task_input.task=task-1 task_input.bytes=11
        task_input_requested task=task-1 text="and the blue one" offset=11
        result 2/1 task_input.task=task-1 task_input.bytes=16
        result 2/2 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > owed
        DeliverInput { task: TaskId(1), attempt: None, entry: EventSeq(16) }
        > hand task-1
        main.c1: errand_taken from=main errand=message entry=16
        main.c1: msg-2 enqueued next internal_followup trusted_system: the red one
        task_input_delivered task=task-1 entry=16 outcome=taken
        > owed
        DeliverInput { task: TaskId(1), attempt: None, entry: EventSeq(18) }
        > hand task-1
        main.c1: errand_taken from=main errand=message entry=18
        main.c1: msg-3 enqueued next internal_followup trusted_system: and the blue one
        task_input_delivered task=task-1 entry=18 outcome=taken
        > hand task-1
        ! task-1 is owed no input
        > owed
        "#,
    );
}

#[test]
fn a_child_that_needs_input_asks_its_supervisor_once_a_turn_and_goes_on_with_the_answer() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round
        > of main.c1 answer | CreateWorkItem {"objective":"look"} | WaitFor {"wake":"operator_input","reason":"which cable"}
        main.c1: said 1:  (2 calls)
        main.c1: work_item_created work=work-1 change.objective=look
        main.c1: work_item_picked work=work-1
        main.c1: result 1/0 work_written.work=work-1 work_written.revision=1
        main.c1: wait_created wait=wait-1 owner.work=work-1 wake=operator_input reason="which cable"
        main.c1: result 1/1 waiting.wait=wait-1
        main.c1: brief-1 result msg-1: (The turn ended without text.)
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 completed after 1 rounds
        main.c1: episode-1 holds run-1 to run-1: wait_began
        main.c1: operator_notification_requested notice=notice-1 text="main.c1 needs your input to go on: which cable" work=work-1
        > of main.c1 posture
        main.c1: waiting_for_operator operator [11]
        > take main.c1
        errand_taken from=main.c1 errand=message entry=17
        msg-2 enqueued background task_status trusted_system: main.c1 needs your input to go on: which cable
        main.c1: outbox_delivered entry=17 outcome=taken
        > input task-1 the red one
        task_input_requested task=task-1 text="the red one" offset=0
        > hand task-1
        main.c1: errand_taken from=main errand=message entry=21
        main.c1: msg-2 enqueued next internal_followup trusted_system: the red one
        main.c1: wait_triggered wait=wait-1 by.message=msg-2
        task_input_delivered task=task-1 entry=21 outcome=taken
        > of main.c1 begin
        main.c1: run-2 begun on msg-2
        main.c1: incoming msg-2
        main.c1: wait_consumed wait=wait-1 run=run-2
        > of main.c1 round
        main.c1: round 1 keeps 0 adds contract earlier_message earlier_answer work message
        main.c1: round 1 attempt 26 boot 1 model 0
        > of main.c1 answer it is the red one | CompleteWorkItem {"work_item_id":"work-1"}
        main.c1: said 1: it is the red one (1 calls)
        main.c1: work_item_completed work=work-1 report="it is the red one" todos_unfinished=0
        main.c1: result 1/0 work_written.work=work-1 work_written.revision=1
        > of main.c1 round
        main.c1: round 2 keeps 5 adds assistant tool_result
        main.c1: round 2 attempt 31 boot 1 model 0
        > of main.c1 answer
        main.c1: said 2:  (0 calls)
        main.c1: brief-2 result msg-2: it is the red one
        main.c1: msg-2 settled processed run-2
        main.c1: run-2 completed after 2 rounds
        main.c1: delegation_reported status=completed run=run-2 report="it is the red one" usage.input_tokens=30 usage.output_tokens=15 usage.rounds_unknown=0
        "#,
    );
}

#[test]
fn a_child_whose_work_is_blocked_asks_as_well() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round
        > of main.c1 answer no key | CreateWorkItem {"objective":"look"} | UpdateWorkItem {"work_item_id":"work-1","blocker":"the door is locked"} | sleep
        main.c1: said 1: no key (3 calls)
        main.c1: work_item_created work=work-1 change.objective=look
        main.c1: work_item_picked work=work-1
        main.c1: result 1/0 work_written.work=work-1 work_written.revision=1
        main.c1: work_item_updated work=work-1 change.blocker.set.text="the door is locked" change.blocker.set.recheck_after_ms=3600000
        main.c1: result 1/1 work_written.work=work-1 work_written.revision=2
        main.c1: result 1/2 slept
        main.c1: brief-1 result msg-1: no key
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 completed after 1 rounds
        main.c1: operator_notification_requested notice=notice-1 text="main.c1 needs your input to go on: the door is locked" work=work-1
        "#,
    );
}

#[test]
fn a_child_that_waits_for_the_outside_has_not_come_to_rest() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 trigger wake token ci; of main.c1 begin; of main.c1 round
        > of main.c1 answer | WaitFor {"wake":"external","reason":"the delivery"}
        main.c1: said 1:  (1 calls)
        main.c1: wait_created wait=wait-1 owner=agent reason="the delivery" recheck_after_ms=3600000 recoverability=weak
        main.c1: result 1/0 waiting.wait=wait-1
        main.c1: brief-1 result msg-1: (The turn ended without text.)
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 completed after 1 rounds
        main.c1: episode-1 holds run-1 to run-1: wait_began
        > of main.c1 owed
        main.c1: EndWait { wait: WaitId(1) } in 3600000 ms
        > of main.c1 callback wake token it has come
        main.c1: msg-2 enqueued next system_tick trusted_integration: The agent was woken.
        main.c1: wait_triggered wait=wait-1 by.message=msg-2
        main.c1: msg-2 woken by wake: ci | it has come
        main.c1: callback_delivered trigger=trigger-1 message=msg-2
        > of main.c1 begin
        main.c1: run-2 begun on msg-2
        main.c1: incoming msg-2
        main.c1: wait_consumed wait=wait-1 run=run-2
        > of main.c1 round
        main.c1: round 1 keeps 0 adds contract earlier_message earlier_answer message
        main.c1: round 1 attempt 23 boot 1 model 0
        > of main.c1 answer it has come
        main.c1: said 1: it has come (0 calls)
        main.c1: brief-2 result msg-2: it has come
        main.c1: msg-2 settled processed run-2
        main.c1: run-2 completed after 1 rounds
        main.c1: delegation_reported status=completed run=run-2 report="it has come" usage.input_tokens=20 usage.output_tokens=10 usage.rounds_unknown=0
        "#,
    );
}

#[test]
fn a_child_that_fails_reports_its_failure() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round
        > of main.c1 fail authentication
        main.c1: attempt 6 failed authentication: give up
        main.c1: brief-1 failure msg-1: run-1 failed: no answer from scripted/first, scripted/second: authentication: it
        main.c1: msg-1 settled processed run-1
        main.c1: run-1 failed authentication after 1 rounds
        main.c1: delegation_reported status=failed run=run-1 report="run-1 failed: no answer from scripted/first, scripted/second: authentication: it" usage.input_tokens=0 usage.output_tokens=0 usage.rounds_unknown=0
        > take main.c1
        errand_taken from=main.c1 errand=message entry=11
        task-1 failed, reported
        msg-2 enqueued next task_result trusted_system: task-1 failed, it has reported
        main.c1: outbox_delivered entry=11 outcome=taken
        main.c1: agent_archive_requested reason=delegation_ended
        main.c1: agent_archived
        "#,
    );
}

#[test]
fn a_child_that_gets_nowhere_reports_that() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round; of main.c1 answer | CreateWorkItem {"objective":"look"} | sleep
        given of main.c1 begin; of main.c1 round; of main.c1 answer looked; clock +5000; of main.c1 continue work-1; of main.c1 begin; of main.c1 round; of main.c1 answer looked; clock +10000; of main.c1 continue work-1; of main.c1 begin; of main.c1 round
        > of main.c1 answer looked
        main.c1: said 1: looked (0 calls)
        main.c1: brief-4 result msg-4: looked
        main.c1: msg-4 settled processed run-4
        main.c1: run-4 completed after 1 rounds
        main.c1: work_item_held work=work-1 reason=no_progress
        main.c1: delegation_reported status=failed run=run-4 report=looked usage.input_tokens=40 usage.output_tokens=20 usage.rounds_unknown=0
        "#,
    );
}

#[test]
fn results_that_come_together_come_each() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"one"} | SpawnAgent {"initial_message":"two"}; call; bring; call; bring; round; answer they look
        given of main.c1 begin; of main.c1 round; of main.c1 answer first done; of main.c2 begin; of main.c2 round; of main.c2 answer second done
        > take main.c2
        errand_taken from=main.c2 errand=message entry=11
        task-2 completed, reported
        msg-2 enqueued next task_result trusted_system: task-2 completed, it has reported
        main.c2: outbox_delivered entry=11 outcome=taken
        main.c2: agent_archive_requested reason=delegation_ended
        main.c2: agent_archived
        > take main.c1
        errand_taken from=main.c1 errand=message entry=11
        task-1 completed, reported
        msg-3 enqueued next task_result trusted_system: task-1 completed, it has reported
        main.c1: outbox_delivered entry=11 outcome=taken
        main.c1: agent_archive_requested reason=delegation_ended
        main.c1: agent_archived
        > begin
        run-2 begun on msg-2
        incoming msg-2
        "#,
    );
}

#[test]
fn a_task_that_is_stopped_ends_its_child() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round; of main.c1 answer | exec make; of main.c1 run task-1
        > end task-1
        task-1 to be ended: operator
        > input task-1 wait
        ! task_id is being ended
        > owed
        DirectChild { task: TaskId(1), lifecycle: Archived, entry: EventSeq(19) }
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=19
        main.c1: run-1 aborted stop: agent_archived
        main.c1: brief-1 failure msg-1: run-1 was aborted: agent_archived. The message is not tried again.
        main.c1: msg-1 settled aborted run-1
        main.c1: run-1 aborted agent_archived after 1 rounds
        main.c1: task-1 to be ended: agent_archived
        main.c1: agent_archive_requested reason=operator
        main.c1: delegation_reported status=cancelled run=run-1 report="run-1 was aborted: agent_archived. The message is not tried again." usage.input_tokens=10 usage.output_tokens=5 usage.rounds_unknown=0
        child_directed task=task-1 lifecycle=archived entry=19
        > of main.c1 owed
        main.c1: RunTask { task: TaskId(1), attempt: EventSeq(9) }
        main.c1: StopTask { task: TaskId(1), attempt: EventSeq(9) }
        main.c1: Deliver { entry: EventSeq(17) }
        > of main.c1 exit task-1 signal-15
        main.c1: task-1 interrupted, signal 15
        > take main.c1
        errand_taken from=main.c1 errand=message entry=17
        task-1 cancelled, reported
        msg-2 enqueued next task_result trusted_system: task-1 cancelled, it has reported
        main.c1: outbox_delivered entry=17 outcome=taken
        main.c1: agent_archived
        > of main.c1 posture
        main.c1: archived archived [20]
        > begin
        run-2 begun on msg-2
        incoming msg-2
        "#,
    );
}

#[test]
fn a_result_that_was_there_before_the_child_was_ended_is_the_one_that_counts() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; of main.c1 begin; of main.c1 round; of main.c1 answer found it
        > end task-1
        task-1 to be ended: operator
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=19
        main.c1: agent_archive_requested reason=operator
        child_directed task=task-1 lifecycle=archived entry=19
        > take main.c1
        errand_taken from=main.c1 errand=message entry=11
        task-1 completed, reported
        msg-2 enqueued next task_result trusted_system: task-1 completed, it has reported
        main.c1: outbox_delivered entry=11 outcome=taken
        main.c1: agent_archived
        "#,
    );
}

#[test]
fn a_stopped_agent_stops_its_children_and_starts_them_with_itself() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks
        > stop
        stopped: operator
        > owed
        DirectChild { task: TaskId(1), lifecycle: Stopped, entry: EventSeq(19) }
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=19
        main.c1: stopped: operator
        child_directed task=task-1 lifecycle=stopped entry=19
        > of main.c1 posture
        main.c1: archived stopped [4]
        > of main.c1 begin
        main.c1: ! there is nothing to do
        > start
        started
        > owed
        DirectChild { task: TaskId(1), lifecycle: Active, entry: EventSeq(21) }
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=21
        main.c1: started
        child_directed task=task-1 lifecycle=active entry=21
        > of main.c1 begin
        main.c1: run-1 begun on msg-1
        main.c1: incoming msg-1
        "#,
    );
}

#[test]
fn an_agent_that_is_archived_takes_its_children_with_it() {
    check(
        r#"
        given prompt help; begin; round; answer | SpawnAgent {"initial_message":"look into it"}; call; bring; round; answer it looks; next later; of main.c1 begin; of main.c1 round
        > archive
        task-1 to be ended: agent_archived
        msg-2 settled dropped: agent_archived
        agent_archive_requested reason=operator
        > owed
        DirectChild { task: TaskId(1), lifecycle: Archived, entry: EventSeq(20) }
        > direct task-1
        main.c1: errand_taken from=main errand=direction entry=20
        main.c1: run-1 aborted stop: agent_archived
        main.c1: brief-1 failure msg-1: run-1 was aborted: agent_archived. The message is not tried again.
        main.c1: msg-1 settled aborted run-1
        main.c1: run-1 aborted agent_archived after 1 rounds
        main.c1: agent_archive_requested reason=operator
        main.c1: delegation_reported status=cancelled run=run-1 report="run-1 was aborted: agent_archived. The message is not tried again." usage.input_tokens=0 usage.output_tokens=0 usage.rounds_unknown=0
        child_directed task=task-1 lifecycle=archived entry=20
        > posture
        archived archiving [22], tasks active
        > take main.c1
        errand_taken from=main.c1 errand=message entry=13
        task-1 cancelled, reported
        agent_archived
        main.c1: outbox_delivered entry=13 outcome=taken
        main.c1: agent_archived
        > of main.c1 posture
        main.c1: archived archived [15]
        > posture
        archived archived [26]
        > start
        ! the agent has ended; its ledger is sealed
        > prompt hello
        ! the agent has ended; its ledger is sealed
        "#,
    );
}

#[test]
fn a_public_agent_stands_for_itself() {
    check(
        r#"
        given attach /work; prompt help; begin; round; answer | SpawnAgent {"preset":"public_named","agent_id":"other","initial_message":"hello"}; call
        > bring
        agent_spawned child=other preset=public_named
        result 1/0 spawned.agent=other
        other: created other
        other: workspace_attached workspace=ws-1 anchor=/work
        other: msg-1 enqueued next internal_followup trusted_system: hello
        > posture
        active_turn turn_running [5]
        > of other begin
        other: run-1 begun on msg-1
        other: incoming msg-1
        > of other round
        other: round 1 keeps 0 adds contract message
        other: round 1 attempt 7 boot 1 model 0
        > of other answer hello
        other: said 1: hello (0 calls)
        other: brief-1 result msg-1: hello
        other: msg-1 settled processed run-1
        other: run-1 completed after 1 rounds
        > of other owed
        > stop
        run-1 aborted stop: agent_stopped
        brief-2 failure msg-1: run-1 was aborted: agent_stopped. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted agent_stopped after 1 rounds
        stopped: operator
        > owed
        "#,
    );
}

#[test]
fn a_fork_begins_with_what_its_parent_knows() {
    check(
        r#"
        given attach /work; prompt help; begin; round; answer | SpawnAgent {"initial_message":"help","context":"fork"}; call
        > bring
        agent_spawned child=main.c1 preset=private_child task=task-1
        task_child_spawned task=task-1 child=main.c1 summary=help mode=inherit
        result 1/0 spawned.agent=main.c1 spawned.task=task-1
        main.c1: created main.c1
        main.c1: workspace_attached workspace=ws-1 anchor=/work
        main.c1: context_inherited from=main head=11 view="what the parent knows"
        main.c1: msg-1 enqueued next internal_followup trusted_system: help
        > of main.c1 begin
        main.c1: run-1 begun on msg-1
        main.c1: incoming msg-1
        > of main.c1 round
        main.c1: round 1 keeps 0 adds contract inherited message
        main.c1: round 1 attempt 8 boot 1 model 0
        "#,
    );
}
