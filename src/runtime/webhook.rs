//! What webhooks are signed with: secrets in the home, under the numbers of the events that set them.
//!
//! The event comes first. Where a crash comes between the two, nothing is signed with the secret and everything is
//! refused, until it is set again; the secret before it is accepted all the while if it was to be.

use super::handle::{Handle, SubmitError};
use super::host::Shared;
use super::source::draw_webhook_secret;
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Rejection, Request, RequestKey};
use crate::events::Cause;
use crate::events::agent::Answer;
use crate::fold::AgentState;
use crate::words::id::{AgentId, EventSeq};
use secrecy::SecretString;
use std::sync::Arc;

impl Handle {
    /// Sets what an agent's webhooks are signed with. Answers the secret if it was drawn here, which is told this once.
    pub async fn set_webhook_secret(
        &self,
        agent: &AgentId,
        given: Option<SecretString>,
        keeps_previous: bool,
        key: Option<RequestKey>,
    ) -> Result<Option<SecretString>, SubmitError> {
        let command = WaitingCommand::SetWebhookSecret { keeps_previous };
        let request = Request { command: command.into(), cause: Cause::Operator, key };
        let Answer::WebhookSecret(set) = self.submit(agent, request, Vec::new()).await? else {
            return Err(Rejection::KeyReused.into());
        };
        // An answer that is told again sets nothing: another secret may have come since.
        let is_current =
            move |state: &AgentState| state.waiting.webhook.as_ref().is_some_and(|secret| secret.set == set);
        let name = name(agent, set);
        if !self.read(agent, is_current).await? || self.secret(&name).is_some() {
            return Ok(None);
        }
        let drawn = given.is_none().then(draw_webhook_secret).transpose();
        let drawn = drawn.map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        self.keep_secret(name, given.or_else(|| drawn.clone())).await?;
        Ok(drawn)
    }

    /// The secrets that may have signed a webhook of the agent. None are kept for an agent whose webhooks anybody may
    /// send; it is not looked at for that.
    pub async fn webhook_secrets(&self, agent: &AgentId) -> Result<Vec<SecretString>, SubmitError> {
        if self.shared.secrets.keys(&prefix(agent)).is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let accepted = move |state: &AgentState| state.waiting.webhook.as_ref().map(|secret| secret.accepted(now));
        let accepted = self.read(agent, accepted).await?.unwrap_or_default();
        Ok(accepted.into_iter().filter_map(|set| self.secret(&name(agent, set))).collect())
    }
}

/// Forgets the secrets that were set before the event `seq`, but for the one that it says is still accepted.
pub(super) fn forget(shared: &Arc<Shared>, agent: &AgentId, seq: EventSeq, previous: Option<EventSeq>) {
    let (shared, agent, prefix) = (shared.clone(), agent.clone(), prefix(agent));
    // Whatever was set later is not ours to forget, however late this runs.
    let is_past = move |key: &String, prefix: &str| {
        let set = key.strip_prefix(prefix).and_then(|set| set.parse().ok()).map(EventSeq);
        set.is_some_and(|set| set < seq && Some(set) != previous)
    };
    tokio::task::spawn_blocking(move || {
        for key in shared.secrets.keys(&prefix).iter().filter(|key| is_past(key, &prefix)) {
            if let Err(error) = shared.secrets.clear(key) {
                tracing::warn!(%agent, key, %error, "a secret that signs nothing stays; the next change tries again");
            }
        }
    });
}

/// No agent's id holds a colon.
fn prefix(agent: &AgentId) -> String {
    format!("webhook:{agent}:")
}

fn name(agent: &AgentId, set: EventSeq) -> String {
    format!("{}{set}", prefix(agent))
}
