//! The operator plane: what the agent wants known. The transports that carry it have a file of their own.

use super::{Decision, Rejection, binding};
use crate::events::Event;
use crate::events::operator::{BindingTerms, NotificationRequested};
use crate::events::waiting::WakeOn;
use crate::fold::AgentState;
use crate::words::content::{Content, excerpt};
use crate::words::id::{BindingId, Boot, EventSeq, NoticeId, WorkId};
use crate::words::limit::{EXCERPT_BYTES_MAX, OUTBOX_MAX};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorCommand {
    /// Its secret is kept by the runtime under the name in the terms.
    Bind {
        terms: BindingTerms,
    },
    /// `name`: the binding's, or its id.
    Unbind {
        name: String,
    },
    Ingress(NewIngress),
    /// The first delivery of a binding is about to be attempted.
    BeginDelivery {
        binding: BindingId,
        boot: Boot,
    },
    EndDelivery {
        binding: BindingId,
        attempt: EventSeq,
        end: DeliveryEnd,
    },
}

/// What an operator says through a transport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIngress {
    /// The binding's name.
    pub binding: String,
    pub actor_id: String,
    pub body: Content,
    /// Where the answer goes, if not to the default route.
    pub reply_route_id: Option<String>,
    pub provider: Option<String>,
    pub metadata: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
}

/// How an attempt at a delivery ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryEnd {
    Taken {
        transport_delivery_id: Option<String>,
    },
    /// It may be taken another time; after `retry_after_ms`, if the transport said so.
    Failed {
        summary: String,
        retry_after_ms: Option<u64>,
    },
    /// It would be refused every time.
    Refused {
        summary: String,
    },
}

pub(super) fn decide(state: &AgentState, command: &OperatorCommand) -> Result<Decision, Rejection> {
    match command {
        OperatorCommand::Bind { terms } => binding::bind(state, terms),
        OperatorCommand::Unbind { name } => binding::unbind(state, name),
        OperatorCommand::Ingress(new) => binding::take_in(state, new),
        OperatorCommand::BeginDelivery { binding, boot } => {
            binding::begin_delivery(state, *binding, *boot).map(Decision::of)
        }
        OperatorCommand::EndDelivery { binding, attempt, end } => {
            binding::end_delivery(state, *binding, *attempt, end).map(Decision::of)
        }
    }
}

/// A private child that can go no further by itself says so: what it waits for, and what it said last.
pub(super) fn ask_supervisor(state: &AgentState, answer: Option<&Content>) -> Vec<Event> {
    let bounded = |text| excerpt(text, EXCERPT_BYTES_MAX);
    let said = answer.map(|answer| format!("\n{}", bounded(answer.excerpt()))).unwrap_or_default();
    let asks = state.waiting.active().find(|(_, wait)| wait.wake == WakeOn::OperatorInput);
    let blocked = || state.works.open.values().find_map(|item| Some(item.blocker.as_ref()?.text.as_str()));
    let reason = asks.map(|(_, wait)| wait.reason.as_str()).or_else(blocked).map(bounded).unwrap_or_default();
    let text = format!("{} needs your input to go on: {reason}{said}", state.agent_id);
    let (notice, work) = (state.briefs.last_notice.next(), state.works.focus);
    vec![NotificationRequested { notice, text: Content::from(text.as_str()), work }.into()]
}

/// Tells the operator, or the supervisor of a private agent.
pub(super) fn notify(state: &AgentState, text: &Content, work: Option<WorkId>) -> Result<(Event, NoticeId), Rejection> {
    if text.bytes() == 0 {
        return Err(Rejection::Invalid { field: "message", reason: "must not be empty".into() });
    }
    if state.outbox.owed.len() >= OUTBOX_MAX {
        return Err(Rejection::TooMany { what: "notices that wait for delivery", max: OUTBOX_MAX });
    }
    let notice = state.briefs.last_notice.next();
    Ok((NotificationRequested { notice, text: text.clone(), work }.into(), notice))
}
