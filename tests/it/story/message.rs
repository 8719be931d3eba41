//! Messages: what is taken in, in which order it is worked on, and how each ends.

use super::check;
use crate::world::World;
use holon::decide::Rejection;
use holon::decide::queue::{QueueCommand, Which};
use holon::events::agent::Answer;
use holon::events::queue::{MessageKind, Origin};
use holon::words::content::{Blob, Content};
use holon::words::hash::Hash;
use holon::words::limit::{
    DROPS_PER_COMMAND_MAX, MESSAGE_BODY_BYTES_MAX, QUEUE_BODY_BYTES_MAX, QUEUE_BODY_BYTES_RESERVED, QUEUE_MESSAGES_MAX,
};

#[test]
fn a_message_that_had_its_turn_is_processed() {
    check(
        "
        > prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        > begin
        run-1 begun on msg-1
        incoming msg-1
        brief-1 ack msg-1: run-1 has taken up msg-1.
        > round
        round 1 keeps 0 adds contract message
        round 1 attempt 7 boot 1 model 0
        > answer good day
        said 1: good day (0 calls)
        brief-2 result msg-1: good day
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        idle nothing_open [11]
        ",
    );
}

#[test]
fn a_message_whose_turn_was_aborted_is_aborted() {
    check(
        "
        given prompt hello; begin
        > abort
        run-1 aborted stop_after_abort: operator_aborted
        brief-2 failure msg-1: run-1 was aborted: operator_aborted. The message is not tried again.
        msg-1 settled aborted run-1
        run-1 aborted operator_aborted after 0 rounds
        paused: operator_aborted
        ",
    );
}

#[test]
fn a_message_that_was_dropped_says_why() {
    check(
        "
        given prompt hello; prompt again
        > drop msg-1 sent by mistake
        msg-1 settled dropped: sent by mistake
        > drop msg-1 twice
        ! the message is not waiting
        > drop msg-7 never there
        ! the message is not waiting
        > posture
        has_queued_input message_waiting [3]
        ",
    );
}

#[test]
fn a_prompt_that_comes_during_a_turn_is_taken_in_once() {
    check(
        "
        given prompt hello; begin; round
        > prompt and this
        msg-2 enqueued interject operator_prompt trusted_operator: and this
        > answer working | exec ls
        said 1: working (1 calls)
        task-1 requested: ls
        > run task-1
        task-1 attempt 11 boot 1
        > exit task-1 0 files
        task-1 completed, code 0
        result 1/0 task-1 code 0: files
        > round
        round 2 keeps 2 adds assistant tool_result interjection takes msg-2
        brief-2 ack msg-2: run-1 takes in msg-2.
        round 2 attempt 16 boot 1 model 0
        > answer both done
        said 2: both done (0 calls)
        interjection msg-2
        msg-2 settled interjected run-1
        brief-3 result msg-1: both done
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > posture
        idle nothing_open [22]
        ",
    );
}

#[test]
fn a_prompt_that_comes_during_the_last_round_gets_one_more() {
    check(
        "
        given prompt hello; begin; round; prompt and this
        > answer good day
        said 1: good day (0 calls)
        > owed
        PrepareRound { run: RunId(1), round: 2 }
        > round
        round 2 keeps 2 adds assistant interjection takes msg-2
        brief-2 ack msg-2: run-1 takes in msg-2.
        round 2 attempt 12 boot 1 model 0
        > answer and to you
        said 2: and to you (0 calls)
        interjection msg-2
        msg-2 settled interjected run-1
        brief-3 result msg-1: and to you
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        ",
    );
}

#[test]
fn a_prompt_that_a_failed_turn_had_not_answered_stays_queued() {
    check(
        "
        given prompt hello; begin; round; prompt and this
        > fail authentication
        attempt 7 failed authentication: give up
        brief-2 failure msg-1: run-1 failed: no answer from scripted/first, scripted/second: authentication: it
        msg-1 settled processed run-1
        run-1 failed authentication after 1 rounds
        > posture
        has_queued_input message_waiting [8]
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-3 ack msg-2: run-2 has taken up msg-2.
        ",
    );
    check(
        "
        given prompt hello; begin; round; prompt and this; answer working | exec ls; run task-1; exit task-1 0
        > round
        round 2 keeps 2 adds assistant tool_result interjection takes msg-2
        brief-2 ack msg-2: run-1 takes in msg-2.
        round 2 attempt 16 boot 1 model 0
        > fail authentication
        attempt 16 failed authentication: give up
        brief-3 failure msg-1: run-1 failed: no answer from scripted/first, scripted/second: authentication: it
        msg-1 settled processed run-1
        run-1 failed authentication after 2 rounds
        > begin
        run-2 begun on msg-2
        incoming msg-2
        brief-4 ack msg-2: run-2 has taken up msg-2.
        ",
    );
}

#[test]
fn a_prompt_that_was_dropped_while_a_round_held_it_is_not_settled_twice() {
    check(
        "
        given prompt hello; begin; round; prompt and this; answer good day; round
        > drop msg-2 sent by mistake
        msg-2 settled dropped: sent by mistake
        > answer and to you
        said 2: and to you (0 calls)
        brief-3 result msg-1: and to you
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        ",
    );
}

#[test]
fn lanes_come_in_their_order_and_each_in_its_own() {
    check(
        "
        given send task_status task; webhook ci failed; channel ops late; next one; next two; prompt now
        > begin
        run-1 begun on msg-6
        incoming msg-6
        brief-1 ack msg-6: run-1 has taken up msg-6.
        given round; answer ok
        > begin
        run-2 begun on msg-4
        incoming msg-4
        brief-3 ack msg-4: run-2 has taken up msg-4.
        given round; answer ok
        > begin
        run-3 begun on msg-5
        incoming msg-5
        brief-5 ack msg-5: run-3 has taken up msg-5.
        given round; answer ok
        > begin
        run-4 begun on msg-2
        incoming msg-2
        given round; answer ok
        > begin
        run-5 begun on msg-3
        incoming msg-3
        given round; answer ok
        > begin
        run-6 begun on msg-1
        incoming msg-1
        ",
    );
}

#[test]
fn what_may_not_come_from_an_origin_is_refused() {
    check(
        "
        > send operator_prompt channel
        ! messages of kind operator_prompt do not come from such an origin
        > send control webhook
        ! messages of kind control do not come from such an origin
        > send task_result operator
        ! messages of kind task_result do not come from such an origin
        > send timer_tick system
        ! messages of kind timer_tick do not come from such an origin
        > send callback_event webhook
        ! messages of kind callback_event do not come from such an origin
        > send callback_event callback
        msg-1 enqueued normal callback_event trusted_integration: text
        ",
    );
}

#[test]
fn a_stopped_agent_takes_no_messages_and_keeps_those_it_has() {
    check(
        "
        given prompt hello
        > stop
        stopped: operator
        > prompt more
        ! the agent is stopped; start it first
        > wake look
        ! the agent is stopped; start it first
        > posture
        archived stopped [3]
        > start
        started
        > posture
        has_queued_input message_waiting [2]
        ",
    );
}

/// A body of which only the size matters.
fn stored(bytes: u64) -> Content {
    Content::Stored { hash: Hash::of(b"a body"), bytes, excerpt: String::new() }
}

#[test]
fn a_queue_holds_a_bounded_number_of_messages_and_of_bytes() {
    let mut world = World::new();
    let mut message =
        world.message(MessageKind::ChannelEvent, Origin::Channel { channel_id: "ops".into(), sender_id: None }, "x");
    message.body = stored(MESSAGE_BODY_BYTES_MAX as u64 + 1);
    let refusal = world.tell(QueueCommand::Enqueue(message.clone()));
    assert!(matches!(refusal, Err(Rejection::Invalid { field: "body", .. })), "{refusal:?}");

    message.body = stored(MESSAGE_BODY_BYTES_MAX as u64);
    let fits = (QUEUE_BODY_BYTES_MAX - QUEUE_BODY_BYTES_RESERVED) / MESSAGE_BODY_BYTES_MAX as u64;
    for _ in 0..fits {
        world.tell(QueueCommand::Enqueue(message.clone())).expect("the bytes have room");
    }
    let full = |waiting| Err(Rejection::QueueFull { waiting });
    assert_eq!(world.tell(QueueCommand::Enqueue(message)), full(fits as usize));

    let mut prompt = world.message(MessageKind::OperatorPrompt, Origin::Operator { actor_id: None }, "x");
    prompt.body = stored(MESSAGE_BODY_BYTES_MAX as u64);
    let all = QUEUE_BODY_BYTES_MAX / MESSAGE_BODY_BYTES_MAX as u64;
    for _ in fits..all {
        world.tell(QueueCommand::Enqueue(prompt.clone())).expect("the operator has room of its own");
    }
    assert_eq!(world.tell(QueueCommand::Enqueue(prompt)), full(all as usize));
}

#[test]
fn a_full_queue_still_takes_what_the_runtime_owes() {
    let mut world = World::new();
    for _ in 0..QUEUE_MESSAGES_MAX {
        enqueue_unchecked(&mut world);
    }
    assert_eq!(world.prompt("one too many"), Err(Rejection::QueueFull { waiting: QUEUE_MESSAGES_MAX }));
    assert!(super::script::tell(&mut world, "wake look")[0].starts_with("msg-10001 enqueued next system_tick"));
}

#[test]
fn of_many_messages_those_that_are_meant_are_put_aside_the_oldest_first() {
    let mut world = World::new();
    world.prompt("stays").unwrap();
    for _ in 0..=DROPS_PER_COMMAND_MAX {
        super::script::tell(&mut world, "channel ops noise");
    }
    let mut told = |kinds: &[MessageKind], before| {
        let which = Which { kinds: kinds.to_vec(), before };
        world.tell(QueueCommand::DropMany { which, reason: "a flood".into() })
    };
    let dropped = |dropped, left| Ok(Answer::Dropped { dropped, left });
    assert_eq!(told(&[MessageKind::WebhookEvent], None), dropped(0, 0));
    assert_eq!(told(&[], Some(crate::world::BEGINNING)), dropped(0, 0), "none is older than that");
    assert_eq!(told(&[MessageKind::ChannelEvent], None), dropped(DROPS_PER_COMMAND_MAX as u64, 1));
    assert_eq!(told(&[MessageKind::ChannelEvent], None), dropped(1, 0));
    assert_eq!(told(&[], None), dropped(1, 0));
    assert!(world.state.queue.waiting.is_empty());
}

/// Without the checks of [`World::tell`], which look at the whole queue each time.
fn enqueue_unchecked(world: &mut World) {
    let message = world.message(MessageKind::OperatorPrompt, Origin::Operator { actor_id: None }, "x");
    let request = holon::decide::Request::new(QueueCommand::Enqueue(message), holon::events::Cause::Operator);
    let mut staged = holon::decide::Staged::default();
    let answer = holon::decide::handle(&mut world.state, &request, world.at, &mut staged);
    answer.expect("the core agrees with itself").expect("the queue has room");
    world.ledger.extend(staged.envelopes);
}

#[test]
fn prompts_that_wait_for_a_round_join_it_in_bounded_portions() {
    let mut world = World::new();
    world.prompt("hello").unwrap();
    super::script::tell(&mut world, "begin");
    let long = "x".repeat(400 * 1024);
    world.keep(vec![Blob::new(long.clone().into_bytes())]);
    for _ in 0..9 {
        world.prompt(&long).unwrap();
    }
    let portion = world.render().expect("a portion fits").interjections;
    assert_eq!(portion.len(), 1, "the rest waits for the next round");
    for _ in 0..1_000 {
        enqueue_unchecked(&mut world);
    }
    for message in 2..=10 {
        super::script::tell(&mut world, &format!("drop msg-{message} too long"));
    }
    assert_eq!(world.render().expect("a portion fits").interjections.len(), 64);
}
