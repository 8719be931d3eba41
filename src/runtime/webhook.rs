//! What webhooks are signed with: secrets that the home keeps, under the names that events hold.

use super::handle::{Handle, SubmitError, secret_name};
use super::source::draw_webhook_secret;
use crate::decide::Attribution;
use crate::decide::waiting::WaitingCommand;
use crate::fold::AgentState;
use crate::words::id::AgentId;
use secrecy::SecretString;

const PURPOSE: &str = "webhook";

impl Handle {
    /// Sets what an agent's webhooks are signed with. Answers the secret if it was drawn here, which is told this once;
    /// a request that is answered again sets nothing.
    pub async fn set_webhook_secret(
        &self,
        agent: &AgentId,
        given: Option<SecretString>,
        keeps_previous: bool,
        by: Attribution,
    ) -> Result<Option<SecretString>, SubmitError> {
        let drawn = given.is_none().then(draw_webhook_secret).transpose();
        let drawn = drawn.map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        let Some(kept) = given.or_else(|| drawn.clone()) else { return Ok(None) };
        let name = secret_name(PURPOSE, agent)?;
        let command = WaitingCommand::SetWebhookSecret { secret: name.clone(), keeps_previous };
        let request = by.request(command);
        let (_, is_set) = self.submit_with_secret(agent, request, name, kept).await?;
        Ok(drawn.filter(|_| is_set))
    }

    /// The secrets that may have signed a webhook of the agent. None are kept for an agent whose webhooks anybody may
    /// send; it is not looked at for that.
    pub async fn webhook_secrets(&self, agent: &AgentId) -> Result<Vec<SecretString>, SubmitError> {
        if self.shared.secrets.keys(&format!("{PURPOSE}/{agent}/")).is_empty() {
            return Ok(Vec::new());
        }
        let now = self.now();
        let accepted = move |state: &AgentState| state.waiting.webhook.as_ref().map(|secret| secret.accepted(now));
        let accepted = self.read(agent, accepted).await?.unwrap_or_default();
        Ok(accepted.iter().filter_map(|name| self.secret(name)).collect())
    }
}
