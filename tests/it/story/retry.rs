//! Model calls that fail: what is tried again, when, with which model, and what the operator reads in the end.

use super::{check, script};
use crate::world::World;
use holon::events::operator::OperatorEvent;
use holon::events::turn::{AfterAttempt, AttemptErrorKind, TurnEvent};
use holon::events::{Envelope, Event};
use holon::words::limit::{RETRY_MS_FIRST, RETRY_MS_MAX};

#[test]
fn a_transient_failure_is_tried_again_then_the_fallback_then_the_turn_fails() {
    check(
        "
        given prompt hello; begin; round
        > fail timeout
        attempt 7 failed timeout: model 0 in 557 ms
        > owed
        BeginAttempt { run: RunId(1), after: EventSeq(8) } in 557 ms
        > again
        ! there is nothing to do
        > clock +60000
        > again
        round 1 attempt 9 boot 1 model 0
        > fail connection
        attempt 9 failed connection: model 0 in 1416 ms
        > clock +60000
        > again
        round 1 attempt 11 boot 1 model 0
        > fail server
        attempt 11 failed server: model 1 in 0 ms
        > again
        round 1 attempt 13 boot 1 model 1
        > fail rate_limited
        attempt 13 failed rate_limited: model 1 in 536 ms
        > clock +60000
        > again
        round 1 attempt 15 boot 1 model 1
        > fail rate_limited
        attempt 15 failed rate_limited: model 1 in 1355 ms
        > clock +60000
        > again
        round 1 attempt 17 boot 1 model 1
        > fail rate_limited
        attempt 17 failed rate_limited: give up
        brief-2 failure msg-1: run-1 failed: no answer from scripted/first, scripted/second: rate_limited: it w
        msg-1 settled processed run-1
        run-1 failed rate_limited after 1 rounds
        > posture
        idle nothing_open [21]
        ",
    );
}

#[test]
fn an_answer_of_the_fallback_names_its_model() {
    let world = check(
        "
        given prompt hello; begin attempts=1; round
        > fail server
        attempt 7 failed server: model 1 in 0 ms
        > again
        round 1 attempt 9 boot 1 model 1
        > answer from the other one
        said 1: from the other one (0 calls)
        brief-2 result msg-1: from the other one
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        ",
    );
    let models = world.ledger.iter().filter_map(|envelope| match &envelope.event {
        Event::Turn(TurnEvent::Entry(entry)) => match &entry.entry {
            holon::events::turn::Entry::Assistant { model, .. } => Some(model.as_str()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(models.collect::<Vec<_>>(), ["scripted/second"]);
}

/// Waits between attempts that fail in a row with one model.
fn waits_ms(retry_after: &str) -> Vec<u64> {
    let mut world = World::new();
    world.prompt("hello").unwrap();
    script::tell(&mut world, "begin models=scripted/only attempts=9");
    script::tell(&mut world, "round");
    for _ in 0..8 {
        script::tell(&mut world, &format!("fail rate_limited {retry_after}"));
        script::tell(&mut world, "clock +3600000");
        script::tell(&mut world, "again");
    }
    world.ledger.iter().filter_map(wait_ms).collect()
}

fn wait_ms(envelope: &Envelope) -> Option<u64> {
    match &envelope.event {
        Event::Turn(TurnEvent::RoundAttemptFailed(event)) => match &event.then {
            AfterAttempt::Again { not_before, .. } => Some(not_before.since_ms(envelope.at)),
            AfterAttempt::GiveUp => None,
        },
        _ => None,
    }
}

#[test]
fn the_wait_doubles_with_a_jitter_that_replay_repeats() {
    let waits = waits_ms("");
    for (failures, wait_ms) in waits.iter().enumerate() {
        let least = RETRY_MS_FIRST << failures;
        assert!((least..=least + least / 2).contains(wait_ms), "wait {failures} is {wait_ms} ms");
    }
    assert_eq!(waits.len(), 8);
    assert!(waits.iter().enumerate().any(|(failures, wait_ms)| *wait_ms != RETRY_MS_FIRST << failures), "no jitter");
    assert_eq!(waits, waits_ms(""), "the jitter follows from the attempt");
}

#[test]
fn a_provider_that_says_when_is_asked_then_within_bounds() {
    assert!(waits_ms("200000").iter().all(|wait_ms| *wait_ms == 200_000));
    assert!(waits_ms("999999999").iter().all(|wait_ms| *wait_ms == RETRY_MS_MAX));
}

/// The last brief after a turn whose model answered with `kind`.
fn failure_brief(kind: AttemptErrorKind) -> String {
    let mut world = World::new();
    world.prompt("hello").unwrap();
    script::tell(&mut world, "begin models=scripted/only attempts=1");
    script::tell(&mut world, "round");
    script::tell(&mut world, &format!("fail {kind}"));
    assert!(world.turn().is_none(), "{kind} ends the turn at once");
    let mut briefs = world.ledger.iter().filter_map(|envelope| match &envelope.event {
        Event::Operator(OperatorEvent::BriefCreated(brief)) => Some(brief.text.excerpt().to_owned()),
        _ => None,
    });
    briefs.next_back().expect("a failure is told")
}

#[test]
fn what_trying_again_cannot_mend_fails_at_once_and_says_what_to_do() {
    use AttemptErrorKind as Kind;
    let hints = [
        (Kind::Authentication, "check the provider's key"),
        (Kind::NotConfigured, "configure the provider"),
        (Kind::InvalidRequest, "choose another model"),
        (Kind::InvalidAnswer, "choose another model"),
        (Kind::ContextLength, "send a shorter message"),
        (Kind::Timeout, "check that the provider can be reached"),
        (Kind::Connection, "check that the provider can be reached"),
        (Kind::Server, "check that the provider can be reached"),
        (Kind::RateLimited, "wait for the provider's limit to pass"),
    ];
    for (kind, hint) in hints {
        let brief = failure_brief(kind);
        assert!(brief.contains(&format!("hint: {hint}")), "{kind}: {brief}");
        assert!(brief.contains("scripted/only") && brief.contains("it went wrong"), "{kind}: {brief}");
    }
}
