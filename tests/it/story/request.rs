//! Idempotency keys: the same request, the same answer, one event.

use super::{check, script};
use crate::world::{World, create};
use holon::decide::agent::AgentCommand;
use holon::decide::{Command, Request, RequestKey, Staged, handle};
use holon::events::Cause;
use holon::fold::AgentState;
use holon::words::hash::Hash;
use holon::words::limit::{RECEIPTS_MAX, REQUEST_KEY_BYTES_MAX};

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

fn ask(state: &mut AgentState, key: usize) {
    let key = RequestKey { key: format!("key-{key}"), fingerprint: Hash::of(b"start") };
    let request = Request { key: Some(key), ..Request::new(AgentCommand::Start, Cause::Operator) };
    let answer = handle(state, &request, crate::world::BEGINNING, &mut Staged::default());
    answer.expect("the core agrees with itself").expect("an active agent starts");
}

#[test]
fn an_agent_keeps_a_bounded_number_of_receipts() {
    let mut state = AgentState::unborn(crate::world::agent_id());
    let created = Request::new(Command::from(create()), Cause::Operator);
    handle(&mut state, &created, crate::world::BEGINNING, &mut Staged::default()).unwrap().unwrap();
    (0..=RECEIPTS_MAX).for_each(|key| ask(&mut state, key));
    let kept = |key: usize| state.receipts.find(&format!("key-{key}"), crate::world::BEGINNING).is_some();
    assert_eq!([kept(0), kept(1), kept(RECEIPTS_MAX)], [false, true, true], "the oldest is forgotten");
}
