//! Idempotency keys: the same request, the same answer, one event.

use super::{check, script};
use crate::world::World;
use holon::decide::agent::AgentCommand;
use holon::decide::{Request, RequestKey, Staged, handle};
use holon::events::Cause;
use holon::events::agent::Speaker;
use holon::fold::{AgentState, invariant};
use holon::words::hash::Hash;
use holon::words::id::AgentId;
use holon::words::limit::{
    RECEIPTS_OF_OPERATOR_MAX, RECEIPTS_OF_OTHERS_MAX, RECEIPTS_OF_SPEAKER_MAX, REQUEST_KEY_BYTES_MAX,
};

#[test]
fn a_request_that_is_repeated_has_its_answer_and_happens_once() {
    check(
        "
        > key a prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        key a answered msg-1
        > key a prompt hello
        = msg-1
        > key b prompt hello
        msg-2 enqueued interject operator_prompt trusted_operator: hello
        key b answered msg-2
        > key a prompt something else
        ! the idempotency key was used for another request
        > key w wake look
        msg-3 enqueued next system_tick trusted_system: The agent was woken.
        msg-3 woken by wake: look
        key w answered woken msg-3
        > key w wake look
        = woken msg-3
        ",
    );
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    check(
        "
        given stop
        > key a prompt hello
        ! the agent is stopped; start it first
        > start
        started
        > key a prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        key a answered msg-1
        ",
    );
}

#[test]
fn a_key_binds_for_a_day_of_event_time() {
    check(
        "
        given key a prompt hello; clock +86399999
        > key a prompt hello
        = msg-1
        > clock +1
        > key a prompt hello
        msg-2 enqueued interject operator_prompt trusted_operator: hello
        key a answered msg-2
        > key a prompt hello
        = msg-2
        ",
    );
}

#[test]
fn a_key_that_has_expired_is_free_though_an_older_one_is_not() {
    check(
        "
        given clock +360000000; key a prompt hello; clock -360000000
        > key b prompt hello
        msg-2 enqueued interject operator_prompt trusted_operator: hello
        key b answered msg-2
        > clock +86400000
        > key b prompt hello
        msg-3 enqueued interject operator_prompt trusted_operator: hello
        key b answered msg-3
        > key b prompt hello
        = msg-3
        > key a prompt hello
        = msg-1
        ",
    );
}

#[test]
fn a_key_has_its_bounds() {
    let mut world = World::new();
    let long = "k".repeat(REQUEST_KEY_BYTES_MAX + 1);
    let told = script::tell(&mut world, &format!("key {long} prompt hello"));
    assert_eq!(told, [format!("! Idempotency-Key has 1 to {REQUEST_KEY_BYTES_MAX} characters")]);
}

#[test]
fn each_speaker_has_keys_of_its_own() {
    check(
        "
        given secret; trigger enqueue token ci; trigger enqueue other ci
        > key a prompt hello
        msg-1 enqueued interject operator_prompt trusted_operator: hello
        key a answered msg-1
        > key a channel ops hello
        msg-2 enqueued normal channel_event untrusted_external: hello
        key a answered msg-2
        > key a channel dev hello
        msg-3 enqueued normal channel_event untrusted_external: hello
        key a answered msg-3
        > key a webhook generic_webhook hello
        msg-4 enqueued normal webhook_event trusted_integration: hello
        key a answered msg-4
        > key a signed hello
        msg-5 enqueued normal webhook_event trusted_integration: hello
        key a answered msg-5
        > key a callback enqueue token hello
        msg-6 enqueued normal callback_event trusted_integration: hello
        callback_delivered trigger=trigger-1 message=msg-6
        key a answered msg-6
        > key a callback enqueue other hello
        msg-7 enqueued normal callback_event trusted_integration: hello
        callback_delivered trigger=trigger-2 message=msg-7
        key a answered msg-7
        > key a callback enqueue nobodys hello
        ! the capability is not valid
        > key a channel ops hello
        = msg-2
        > key a signed hello
        = msg-5
        > key a prompt hello
        = msg-1
        > key a channel ops something else
        ! the idempotency key was used for another request
        ",
    );
}

/// Starts the agent, which changes nothing, under the key of that number.
fn ask(state: &mut AgentState, cause: Cause, key: usize) {
    let key = RequestKey { key: format!("key-{key}"), fingerprint: Hash::of(b"start") };
    let request = Request { key: Some(key), ..Request::new(AgentCommand::Start, cause) };
    let answer = handle(state, &request, crate::world::BEGINNING, &mut Staged::default());
    assert!(answer.expect("the core agrees with itself").is_ok());
}

fn keeps(state: &AgentState, speaker: &Speaker, key: usize) -> bool {
    state.receipts.find(speaker, &format!("key-{key}"), crate::world::BEGINNING).is_some()
}

fn other(number: usize) -> AgentId {
    AgentId::parse(&format!("other-{number}")).expect("an id")
}

#[test]
fn the_receipts_of_each_speaker_are_bounded_and_push_out_nobody_elses() {
    let mut state = World::new().state;
    let (first, second) = (Speaker::Agent { agent: other(1) }, Speaker::Agent { agent: other(2) });
    ask(&mut state, Cause::Agent(other(2)), 0);
    (0..=RECEIPTS_OF_OPERATOR_MAX).for_each(|key| ask(&mut state, Cause::Operator, key));
    (0..=RECEIPTS_OF_SPEAKER_MAX).for_each(|key| ask(&mut state, Cause::Agent(other(1)), key));
    let kept = |speaker: &Speaker, last: usize| [0, 1, last].map(|key| keeps(&state, speaker, key));
    assert_eq!(kept(&Speaker::Operator, RECEIPTS_OF_OPERATOR_MAX), [false, true, true], "the oldest is forgotten");
    assert_eq!(kept(&first, RECEIPTS_OF_SPEAKER_MAX), [false, true, true], "the oldest is forgotten");
    assert!(keeps(&state, &second, 0));
    invariant::check(&state).expect("the bounds hold");
}

#[test]
fn where_all_strangers_have_too_many_receipts_the_one_with_the_most_gives_way() {
    let mut state = World::new().state;
    ask(&mut state, Cause::Operator, 0);
    ask(&mut state, Cause::Agent(other(0)), 0);
    let others = 1..=RECEIPTS_OF_OTHERS_MAX / RECEIPTS_OF_SPEAKER_MAX;
    for number in others.clone() {
        (0..RECEIPTS_OF_SPEAKER_MAX).for_each(|key| ask(&mut state, Cause::Agent(other(number)), key));
    }
    invariant::check(&state).expect("the bounds hold");
    assert!(keeps(&state, &Speaker::Agent { agent: other(0) }, 0), "who has little keeps it");
    assert!(keeps(&state, &Speaker::Operator, 0));
    let lost = others.filter(|number| !keeps(&state, &Speaker::Agent { agent: other(*number) }, 0));
    assert_eq!(lost.count(), 1);
}
