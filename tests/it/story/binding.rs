//! Operator bindings: who speaks through them, what they carry, and how long it is tried.

use super::{check, tell};
use crate::world::World;
use holon::words::id::BindingId;
use holon::words::limit::DELIVERIES_OWED_MAX;

#[test]
fn an_answer_goes_back_to_where_the_question_came_from() {
    check(
        r#"
        > bind phone
        operator_transport_binding_upserted binding=opbind-1 terms.name=phone terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=inbox terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/phone
        > bind desk route=lobby
        operator_transport_binding_upserted binding=opbind-2 terms.name=desk terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=lobby terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/desk
        > say phone ada thread-7 how far are you?
        msg-1 enqueued interject operator_prompt trusted_operator: how far are you?
        > begin
        run-1 begun on msg-1
        incoming msg-1
        brief-1 ack msg-1: run-1 has taken up msg-1.
        > round
        round 1 keeps 0 adds contract message
        round 1 attempt 9 boot 1 model 0
        > answer half way
        said 1: half way (0 calls)
        brief-2 result msg-1: half way
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(11) }
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=11 route_id=thread-7 boot=1
        > owed
        SubmitDelivery { binding: BindingId(1), attempt: EventSeq(14) }
        > taken opbind-1 d-1
        operator_delivery_completed binding=opbind-1 attempt=14 transport_delivery_id=d-1
        > owed
        "#,
    );
}

#[test]
fn a_prompt_that_joins_a_run_shares_its_answer() {
    check(
        r#"
        given bind phone; bind desk; prompt begin
        > begin
        run-1 begun on msg-1
        incoming msg-1
        brief-1 ack msg-1: run-1 has taken up msg-1.
        > say phone ada thread-1 and?
        msg-2 enqueued interject operator_prompt trusted_operator: and?
        > say desk ada - and here?
        msg-3 enqueued interject operator_prompt trusted_operator: and here?
        > round
        round 1 keeps 0 adds contract message interjection interjection takes msg-2 takes msg-3
        brief-2 ack msg-2: run-1 takes in msg-2.
        brief-3 ack msg-3: run-1 takes in msg-3.
        round 1 attempt 13 boot 1 model 0
        > answer this
        said 1: this (0 calls)
        interjection msg-2
        msg-2 settled interjected run-1
        interjection msg-3
        msg-3 settled interjected run-1
        brief-4 result msg-1: this
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(19) }
        BeginDelivery { binding: BindingId(2), after: EventSeq(19) }
        "#,
    );
}

#[test]
fn failures_and_notices_and_finished_work_reach_every_binding() {
    check(
        r#"
        given bind phone; bind desk route=lobby; open ship it; drop msg-1 later; prompt go
        > begin
        run-1 begun on msg-2
        incoming msg-2
        brief-1 ack msg-2: run-1 has taken up msg-2.
        > round
        round 1 keeps 0 adds contract work message
        round 1 attempt 13 boot 1 model 0
        > answer shipped | NotifyOperator {"message":"half way"} | CompleteWorkItem {"work_item_id":"work-1"}
        said 1: shipped (2 calls)
        operator_notification_requested notice=notice-1 text="half way"
        result 1/0 notified.notice=notice-1
        work_item_completed work=work-1 report=shipped todos_unfinished=0
        result 1/1 work_written.work=work-1 work_written.revision=1
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=15 route_id=inbox boot=1
        > taken opbind-1
        operator_delivery_completed binding=opbind-1 attempt=19
        > submit opbind-1
        ! the result comes from an attempt that was replaced or has ended
        > taken opbind-1
        ! the result comes from an attempt that was replaced or has ended
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        BeginDelivery { binding: BindingId(2), after: EventSeq(15) }
        > next which one?
        msg-3 enqueued next operator_prompt trusted_operator: which one?
        > begin
        ! there is nothing to do
        > round
        round 2 keeps 3 adds assistant tool_result tool_result
        round 2 attempt 23 boot 1 model 0
        > answer choose | WaitFor {"wake":"operator_input","reason":"which"}
        said 2: choose (1 calls)
        wait_created wait=wait-1 owner=agent wake=operator_input reason=which
        result 2/0 waiting.wait=wait-1
        brief-2 result msg-2: choose
        msg-2 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > owed
        StartTurn
        BeginDelivery { binding: BindingId(1), after: EventSeq(27) }
        BeginDelivery { binding: BindingId(2), after: EventSeq(15) }
        "#,
    );
}

#[test]
fn a_delivery_is_tried_until_it_is_taken_and_the_operator_hears_once_that_it_is_not() {
    check(
        r#"
        given bind phone; prompt go; begin; give-up no_prompt
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=1
        > not-taken opbind-1 HTTP 503
        operator_delivery_failed binding=opbind-1 attempt=10 summary="HTTP 503" retry_after_ms=500
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(11) } in 500 ms
        > clock +500
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=1
        > boot
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(12) }
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=2
        > at 9 taken opbind-1
        ! the result comes from an attempt that was replaced or has ended
        > not-taken opbind-1 HTTP 503
        operator_delivery_failed binding=opbind-1 attempt=13 summary="HTTP 503" retry_after_ms=1000
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=2
        > not-taken opbind-1 it cannot be reached
        operator_delivery_failed binding=opbind-1 attempt=15 summary="it cannot be reached" retry_after_ms=2000
        operator_notification_requested notice=notice-1 text="The operator binding phone takes no deliveries: it cannot be reached. 1 wait; th"
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=2
        > not-taken opbind-1 it cannot be reached
        operator_delivery_failed binding=opbind-1 attempt=18 summary="it cannot be reached" retry_after_ms=4000
        > bind phone route=other
        operator_transport_binding_upserted binding=opbind-1 terms.name=phone terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=other terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/phone
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(20) }
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=7 route_id=inbox boot=2
        > refused-by opbind-1 HTTP 413
        operator_delivery_abandoned binding=opbind-1 entry=7 route_id=inbox reason="HTTP 413"
        > owed
        BeginDelivery { binding: BindingId(1), after: EventSeq(22) }
        "#,
    );
}

#[test]
fn a_binding_speaks_for_its_own_operator_alone() {
    check(
        r#"
        > bind phone actor=ada provider=chat
        operator_transport_binding_upserted binding=opbind-1 terms.name=phone terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=inbox terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/phone terms.provider=chat
        > say phone eve - let me in
        ! the binding does not speak for this: it is another actor's
        > say tablet ada - hello
        ! the binding does not speak for this: it is not active
        > say opbind-1 ada - hello
        ! the binding does not speak for this: it is not active
        > bind mute send_prompt=false
        operator_transport_binding_upserted binding=opbind-2 terms.name=mute terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=inbox terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/mute terms.capabilities.send_prompt=false
        > say mute ada - hello
        ! the binding does not speak for this: it may not send prompts
        > bind opbind-9
        ! binding_id of this form are given by the runtime: leave it out
        > bind -
        operator_transport_binding_upserted binding=opbind-3 terms.name=opbind-3 terms.transport=http-callback terms.operator_actor_id=ada terms.default_route_id=inbox terms.callback_origin=https://chat.example terms.is_authorized=true terms.secret=binding/-
        > say opbind-3 ada -
        ! text must not be empty
        > say opbind-3 ada - hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        > unbind phone
        operator_transport_binding_revoked binding=opbind-1 reason=operator
        > say phone ada - hello
        ! the binding does not speak for this: it is not active
        > unbind phone
        ! there is no operator binding phone
        > stop
        stopped: operator
        > say opbind-3 ada - hello
        ! the agent is stopped; start it first
        "#,
    );
}

#[test]
fn an_agent_that_is_to_end_keeps_a_binding_until_it_has_carried_what_it_owes() {
    check(
        r#"
        given bind phone; bind desk; say phone ada - go; begin; round
        > archive
        run-1 aborted stop: agent_archived
        brief-2 failure msg-1: run-1 was aborted: agent_archived. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted agent_archived after 1 rounds
        agent_archive_requested reason=operator
        > submit opbind-1
        operator_delivery_submitted binding=opbind-1 entry=11 route_id=inbox boot=1
        > taken opbind-1
        operator_delivery_completed binding=opbind-1 attempt=15
        operator_transport_binding_revoked binding=opbind-1 reason=agent_archived
        > submit opbind-2
        operator_delivery_submitted binding=opbind-2 entry=11 route_id=inbox boot=1
        > not-taken opbind-2 HTTP 500
        operator_delivery_failed binding=opbind-2 attempt=18 summary="HTTP 500" retry_after_ms=500
        > submit opbind-2
        operator_delivery_submitted binding=opbind-2 entry=11 route_id=inbox boot=1
        > not-taken opbind-2 HTTP 500
        operator_delivery_failed binding=opbind-2 attempt=20 summary="HTTP 500" retry_after_ms=1000
        > submit opbind-2
        operator_delivery_submitted binding=opbind-2 entry=11 route_id=inbox boot=1
        > not-taken opbind-2 HTTP 500
        operator_delivery_failed binding=opbind-2 attempt=22 summary="HTTP 500" retry_after_ms=2000
        operator_notification_requested notice=notice-1 text="The operator binding desk takes no deliveries: HTTP 500. 1 wait; they are tried "
        operator_transport_binding_revoked binding=opbind-2 reason=agent_archived
        agent_archived
        "#,
    );
}

#[test]
fn what_gives_way_to_later_deliveries_leaves_the_wait_for_a_failing_transport() {
    let mut world = World::new();
    let mut say = |line: &str| tell(&mut world, line);
    say("bind phone");
    for told in 0..=DELIVERIES_OWED_MAX {
        say(&format!("next {told}"));
        say("begin");
        say("give-up no_prompt");
        if told == 0 {
            say("submit opbind-1");
            say("not-taken opbind-1 HTTP 503");
        }
    }
    let binding = &world.state.bindings.open[&BindingId(1)];
    assert_eq!((binding.owed.len(), binding.failures), (DELIVERIES_OWED_MAX, 1));
    assert!(binding.last_failure.as_ref().is_some_and(|reason| reason.contains("deliveries wait")));
    assert!(binding.not_before > world.at, "it is not tried before its time");
}
