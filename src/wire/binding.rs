//! Operator bindings: as clients make them, and as they are told. What a binding keeps secret it never tells.

use super::message::{BodyError, ControlBody, says_trust};
use crate::decide::operator::NewIngress;
use crate::events::operator::{BindingTerms, OperatorEvent};
use crate::events::{Envelope, Event};
use crate::fold::binding::Binding;
use crate::words::content::{Blob, Content};
use crate::words::id::{AgentId, BindingId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `POST /control/agents/:id/operator-bindings`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingBody {
    #[serde(default)]
    binding_id: Option<String>,
    transport: String,
    operator_actor_id: String,
    default_route_id: String,
    pub target_agent_id: Option<String>,
    pub delivery_callback_url: String,
    delivery_auth: Option<DeliveryAuth>,
    #[serde(default)]
    capabilities: BTreeMap<String, bool>,
    provider: Option<String>,
    provider_identity_ref: Option<String>,
    metadata: Option<Value>,
    trust: Option<String>,
}

/// How deliveries are authorized. The aliases are of older clients.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeliveryAuth {
    #[serde(rename = "type", alias = "kind")]
    kind: String,
    #[serde(alias = "bearer_token")]
    token: Option<String>,
    #[expect(dead_code, reason = "taken from older clients, to which it named the token")]
    key_id: Option<String>,
}

/// `POST /control/agents/:id/operator-ingress`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IngressBody {
    text: String,
    actor_id: String,
    pub binding_id: String,
    reply_route_id: Option<String>,
    provider: Option<String>,
    upstream_provider: Option<String>,
    provider_message_ref: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    metadata: Option<Value>,
}

says_trust!(BindingBody);

impl BindingBody {
    /// The terms but for the name of their secret, and the token that deliveries show. `callback_origin`: the callback
    /// URL's, which alone may be known.
    pub fn terms(self, callback_origin: String) -> Result<(BindingTerms, Option<String>), BodyError> {
        let bearer_token = self.delivery_auth.map(DeliveryAuth::token).transpose()?.flatten();
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let terms = BindingTerms {
            name: given(self.binding_id).unwrap_or_default(),
            transport: self.transport,
            operator_actor_id: self.operator_actor_id,
            default_route_id: self.default_route_id,
            callback_origin,
            is_authorized: bearer_token.is_some(),
            secret: String::new(),
            capabilities: self.capabilities,
            provider: given(self.provider),
            provider_identity_ref: given(self.provider_identity_ref),
            metadata: self.metadata.filter(|value| !value.is_null()).map(|value| value.to_string()),
        };
        Ok((terms, bearer_token))
    }
}

impl DeliveryAuth {
    fn token(self) -> Result<Option<String>, BodyError> {
        let invalid = |field, reason: &str| Err(BodyError::Invalid { field, reason: reason.to_owned() });
        match (self.kind.as_str(), self.token) {
            ("none", None) => Ok(None),
            ("bearer", Some(token)) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Some(token))
            }
            ("bearer", _) => invalid("delivery_auth.token", "is one or more visible characters"),
            _ => invalid("delivery_auth.type", "is bearer with a token, or none"),
        }
    }
}

impl ControlBody for IngressBody {}

impl IngressBody {
    /// What was said, with where it came from. `terms`: of the binding that it names, if that is there.
    pub fn ingress(self, terms: Option<&BindingTerms>) -> (NewIngress, Option<Blob>) {
        let metadata = terms.map(|terms| self.provenance(terms).to_string());
        let (body, blob) = Content::new(self.text);
        let new = NewIngress {
            binding: self.binding_id,
            actor_id: self.actor_id,
            body,
            reply_route_id: self.reply_route_id,
            provider: self.provider,
            metadata,
            correlation_id: self.correlation_id,
            causation_id: self.causation_id,
        };
        (new, blob)
    }

    fn provenance(&self, terms: &BindingTerms) -> Value {
        json!({"operator_transport": {
            "binding_id": terms.name,
            "transport": terms.transport,
            "reply_route_id": self.reply_route_id.as_ref().unwrap_or(&terms.default_route_id),
            "provider": terms.provider,
            "provider_identity_ref": terms.provider_identity_ref,
            "upstream_provider": self.upstream_provider,
            "provider_message_ref": self.provider_message_ref,
            "metadata": self.metadata,
        }})
    }
}

/// A binding that is open.
pub fn binding(agent: &AgentId, id: BindingId, binding: &Binding) -> Value {
    let mut shown = terms(agent, id, &binding.terms);
    shown["status"] = json!(if binding.is_failing() { "failing" } else { "active" });
    shown["created_at"] = json!(binding.created_at);
    shown["updated_at"] = json!(binding.updated_at);
    shown["revoked_at"] = Value::Null;
    shown["owed_count"] = json!(binding.owed.len());
    shown["delivered_count"] = json!(binding.delivered);
    shown["last_delivered_at"] = json!(binding.delivered_at);
    shown["failed_attempts"] = json!(binding.failures);
    shown["last_failure"] = json!(binding.last_failure);
    shown["next_attempt_at"] = json!((!binding.owed.is_empty()).then_some(binding.not_before));
    shown
}

fn terms(agent: &AgentId, id: BindingId, terms: &BindingTerms) -> Value {
    let metadata = terms.metadata.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    json!({
        "id": id,
        "binding_id": terms.name,
        "agent_id": agent,
        "target_agent_id": agent,
        "transport": terms.transport,
        "operator_actor_id": terms.operator_actor_id,
        "default_route_id": terms.default_route_id,
        // The path may be what opens it.
        "delivery_callback_url": format!("{}/…", terms.callback_origin),
        "delivery_auth": {"type": if terms.is_authorized { "bearer" } else { "none" }},
        "capabilities": terms.capabilities,
        "provider": terms.provider,
        "provider_identity_ref": terms.provider_identity_ref,
        "metadata": metadata,
    })
}

/// A binding that was revoked, told by the event that holds its terms and by its last.
pub fn revoked_binding(agent: &AgentId, first: &Envelope, last: &Envelope) -> Option<Value> {
    let Event::Operator(OperatorEvent::BindingUpserted(bound)) = &first.event else { return None };
    let mut shown = terms(agent, bound.binding, &bound.terms);
    shown["status"] = json!("revoked");
    shown["updated_at"] = json!(first.at);
    shown["revoked_at"] = json!(last.at);
    shown["owed_count"] = json!(0);
    // When it was made, what it delivered and what failed is told by the events alone.
    for unknown in
        ["created_at", "delivered_count", "last_delivered_at", "failed_attempts", "last_failure", "next_attempt_at"]
    {
        shown[unknown] = Value::Null;
    }
    Some(shown)
}
