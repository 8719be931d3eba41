//! Deliveries to the operator: what a brief or a notice says, posted to a binding's callback URL.
//!
//! An attempt that died with its boot is made again. The key that comes along is the same every time: a transport that
//! has taken it once answers the second time and does nothing.

use crate::decide::Request;
use crate::decide::operator::{DeliveryEnd, OperatorCommand};
use crate::events::{Cause, Event, OperatorEvent};
use crate::fold::AgentState;
use crate::fold::binding::Delivery;
use crate::ledger::reader::{self, LinkedEvent};
use crate::runtime::handle::{Handle, SubmitError};
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::model::failure::retry_after_ms;
use crate::runtime::outbound;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, BindingId, EventSeq};
use crate::words::limit::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_MS_MAX, DELIVERY_NAME_MS_MAX};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where a binding's deliveries go, and how they are authorized: kept under the name that its terms hold.
#[derive(Serialize, Deserialize)]
pub(in crate::runtime) struct CallbackSecret {
    pub url: String,
    pub bearer_token: Option<String>,
}

impl CallbackSecret {
    /// As it is kept.
    pub(in crate::runtime) fn kept(&self) -> SecretString {
        serde_json::to_string(self).expect("two texts are JSON").into()
    }
}

/// An attempt, as the state describes it.
pub(in crate::runtime) struct Submission {
    agent: AgentId,
    binding: BindingId,
    name: String,
    /// The name of its secret.
    secret: String,
    attempt: EventSeq,
    delivery: Delivery,
}

/// What a brief or a notice says.
struct Told {
    key: String,
    kind: &'static str,
    id: String,
    causation_id: Option<String>,
    text: Content,
    linked: LinkedEvent,
}

impl Submission {
    pub(crate) fn of(state: &AgentState, binding: BindingId, attempt: EventSeq) -> Option<Self> {
        let open = state.bindings.open.get(&binding)?;
        Some(Self {
            agent: state.agent_id.clone(),
            binding,
            name: open.terms.name.clone(),
            secret: open.terms.secret.clone(),
            attempt,
            delivery: open.owed.front()?.clone(),
        })
    }

    /// Makes the attempt and says what came of it.
    pub(crate) async fn make(self, shared: Arc<Shared>) -> What {
        let (binding, attempt) = (self.binding, self.attempt);
        let end = self.submit(&shared).await;
        if let DeliveryEnd::Failed { summary, .. } | DeliveryEnd::Refused { summary } = &end {
            tracing::warn!(agent = %self.agent, binding = %self.name, %summary, "a delivery was not taken");
        }
        What::command(Request::new(OperatorCommand::EndDelivery { binding, attempt, end }, Cause::Runtime))
    }

    async fn submit(&self, shared: &Arc<Shared>) -> DeliveryEnd {
        let told = match self.told(shared).await {
            Ok(Some(told)) => told,
            Ok(None) => return refused("the event tells nothing".into()),
            Err(error) => return failed(format!("what it tells cannot be read: {error}")),
        };
        let text = match (Handle { shared: shared.clone() }).text(told.text.clone()).await {
            Ok(text) => text,
            Err(error) => return failed(format!("what it tells cannot be read: {error}")),
        };
        let posted = tokio::time::timeout(Duration::from_millis(DELIVERY_MS_MAX), self.post(shared, &told, &text));
        match posted.await {
            Ok(Ok(response)) => answered(response).await,
            Ok(Err(end)) => end,
            Err(_) => failed(format!("there was no answer within {} seconds", DELIVERY_MS_MAX / 1_000)),
        }
    }

    async fn told(&self, shared: &Arc<Shared>) -> Result<Option<Told>, SubmitError> {
        let (agent, entry) = (self.agent.clone(), self.delivery.entry);
        let handle = Handle { shared: shared.clone() };
        let linked = handle.ledger(&self.agent, move |store| reader::event(store, &agent, entry)).await?;
        Ok(linked.and_then(|linked| self.read(linked)))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is told to the operator")]
    fn read(&self, linked: LinkedEvent) -> Option<Told> {
        let (kind, id, causation_id, text) = match &linked.envelope.event {
            Event::Operator(OperatorEvent::BriefCreated(brief)) => {
                let message = brief.message.map(|message| message.to_string());
                (brief.kind.name(), brief.brief.to_string(), message, brief.text.clone())
            }
            Event::Operator(OperatorEvent::NotificationRequested(notice)) => {
                ("notification", notice.notice.to_string(), None, notice.text.clone())
            }
            _ => return None,
        };
        // The hash of the event's link: another home's event of the same number has another one.
        let named = format!("{} {} {}", linked.hash, self.name, self.delivery.route_id);
        let key = format!("odi_{:.32}", Hash::of(named.as_bytes()).to_string());
        Some(Told { key, kind, id, causation_id, text, linked })
    }

    fn body(&self, told: &Told, text: &str) -> Value {
        json!({
            "delivery_intent_id": told.key,
            "binding_id": self.name,
            "route_id": self.delivery.route_id,
            "target_agent_id": self.agent,
            "kind": "operator_output",
            "source": {"kind": told.kind, "id": told.id, "event_seq": told.linked.envelope.seq},
            "text": text,
            "created_at": told.linked.envelope.at,
            "correlation_id": self.delivery.correlation_id,
            "causation_id": told.causation_id,
        })
    }

    async fn post(&self, shared: &Shared, told: &Told, text: &str) -> Result<Response, DeliveryEnd> {
        let kept = shared.secrets.get(&self.secret);
        let callback = kept
            .as_ref()
            .and_then(callback)
            .ok_or_else(|| failed("its callback URL is not kept here: create the binding again".into()))?;
        let client = shared.transport.client(&callback.url).map_err(|error| failed(plain(&error)))?;
        let mut request = client.post(&callback.url).header("idempotency-key", &told.key).json(&self.body(told, text));
        if let Some(token) = &callback.bearer_token {
            request = request.bearer_auth(token);
        }
        request.send().await.map_err(|error| failed(plain(&error)))
    }
}

fn callback(secret: &SecretString) -> Option<CallbackSecret> {
    serde_json::from_str(secret.expose_secret()).ok()
}

/// What posts deliveries: made when the first is owed.
#[derive(Default)]
pub(in crate::runtime) struct Transport {
    /// This machine is not reached through a proxy.
    local: OnceLock<Client>,
    remote: OnceLock<Client>,
}

impl Transport {
    fn client(&self, url: &str) -> Result<&Client, reqwest::Error> {
        let kept = if outbound::is_here(url) { &self.local } else { &self.remote };
        if let Some(client) = kept.get() {
            return Ok(client);
        }
        let built = outbound::client(url).build()?;
        Ok(kept.get_or_init(|| built))
    }
}

/// An error in words that do not name the URL: it may be a capability.
fn plain(error: &reqwest::Error) -> String {
    let mut words = match error {
        error if error.is_timeout() => "there was no answer in time".to_owned(),
        error if error.is_connect() => "it cannot be reached".to_owned(),
        error if error.is_builder() => "the callback URL or its token cannot be used".to_owned(),
        _ => "the connection broke".to_owned(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.source().is_none() {
            words.push_str(&format!(": {cause}"));
        }
        source = cause.source();
    }
    words
}

async fn answered(response: Response) -> DeliveryEnd {
    let status = response.status();
    if status.is_success() {
        // It is taken, whether or not the transport goes on to say what it calls it.
        let named = tokio::time::timeout(Duration::from_millis(DELIVERY_NAME_MS_MAX), delivery_id(response));
        return DeliveryEnd::Taken { transport_delivery_id: named.await.unwrap_or_default() };
    }
    let summary = format!("HTTP {}", status.as_u16());
    match status {
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => refused(summary),
        _ => DeliveryEnd::Failed { summary, retry_after_ms: retry_after_ms(response.headers()) },
    }
}

async fn delivery_id(mut response: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > DELIVERY_ANSWER_BYTES_MAX {
            return None;
        }
    }
    let answer: Value = serde_json::from_slice(&body).ok()?;
    answer.get("transport_delivery_id")?.as_str().map(str::to_owned)
}

fn failed(summary: String) -> DeliveryEnd {
    DeliveryEnd::Failed { summary, retry_after_ms: None }
}

fn refused(summary: String) -> DeliveryEnd {
    DeliveryEnd::Refused { summary }
}
