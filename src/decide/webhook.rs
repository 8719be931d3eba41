//! Signed webhooks. That there is a secret is known here; the secret is not.

use super::queue::{NewMessage, not_private};
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::agent::Answer;
use crate::events::queue::{Admission, Surface};
use crate::events::waiting::{WebhookSecretCleared, WebhookSecretSet};
use crate::fold::AgentState;
use crate::words::limit::WEBHOOK_SECRET_OVERLAP_MS;

/// `secret`: the name under which it is kept.
pub(super) fn set(state: &AgentState, secret: &str, keeps_previous: bool) -> Result<Decision, Rejection> {
    not_private(state)?;
    let previous = state.waiting.webhook.as_ref().filter(|_| keeps_previous).map(|secret| secret.set);
    let event = WebhookSecretSet { secret: secret.to_owned(), previous, previous_ms: WEBHOOK_SECRET_OVERLAP_MS };
    Ok(Decision::answering(vec![event.into()], Answer::WebhookSecret(state.head.next())))
}

/// Nothing happens where there is none.
pub(super) fn clear(state: &AgentState, reason: &str) -> Vec<Event> {
    let cleared = |_| WebhookSecretCleared { reason: reason.to_owned() }.into();
    state.waiting.webhook.iter().map(cleared).collect()
}

/// Once there is a secret, what nobody signed is refused.
pub(super) fn admits(state: &AgentState, new: &NewMessage) -> Result<(), Rejection> {
    let unsigned = new.surface == Surface::HttpWebhook && new.admission != Admission::WebhookSigned;
    if unsigned && state.waiting.webhook.is_some() { Err(Rejection::Unsigned) } else { Ok(()) }
}
