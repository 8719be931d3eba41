//! Webhooks, signed and not.

use super::check;

#[test]
fn once_there_is_a_secret_what_nobody_signed_is_refused() {
    check(
        "
        > unsigned pushed
        msg-1 enqueued normal webhook_event trusted_integration: pushed
        > secret
        webhook_secret_set secret=webhook/2 previous_ms=86400000
        > unsigned pushed
        ! the webhook is not signed with the agent's secret
        > signed pushed
        msg-2 enqueued normal webhook_event trusted_integration: pushed
        > webhook elsewhere pushed
        msg-3 enqueued normal webhook_event trusted_integration: pushed
        > secret none
        webhook_secret_cleared reason=operator
        > secret none
        = done
        > unsigned pushed
        msg-4 enqueued normal webhook_event trusted_integration: pushed
        ",
    );
}

#[test]
fn what_nobody_signed_learns_nothing_of_the_agent() {
    check(
        "
        given secret; stop
        > unsigned pushed
        ! the webhook is not signed with the agent's secret
        > signed pushed
        ! the agent is stopped; start it first
        ",
    );
}

#[test]
fn a_secret_is_accepted_beside_its_successor_for_a_day() {
    let world = check(
        "
        > secret keeps
        webhook_secret_set secret=webhook/1 previous_ms=86400000
        > clock +1000
        > key k secret keeps
        webhook_secret_set secret=webhook/2 previous=2 previous_ms=86400000
        key k answered secret 3
        > key k secret keeps
        = secret 3
        ",
    );
    let secret = world.state.waiting.webhook.as_ref().expect("a secret");
    let accepted = |ms| secret.accepted(secret.set_at.after_ms(ms));
    assert_eq!(accepted(86_399_999), ["webhook/2", "webhook/1"]);
    assert_eq!(accepted(86_400_000), ["webhook/2"]);
    let world = check(
        "
        given secret; secret keeps
        > secret
        webhook_secret_set secret=webhook/3 previous_ms=86400000
        ",
    );
    let secret = world.state.waiting.webhook.as_ref().expect("a secret");
    assert_eq!(secret.accepted(secret.set_at).len(), 1, "one that leaked is worth nothing at once");
}

#[test]
fn an_agent_that_ends_has_no_use_for_a_secret() {
    check(
        "
        given secret
        > archive
        webhook_secret_cleared reason=agent_archived
        agent_archive_requested reason=operator
        agent_archived
        ",
    );
}
