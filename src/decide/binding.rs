//! Operator bindings: which transports reach the operator, who speaks through them, and what becomes of deliveries.
//!
//! **Invariant:** only the name of a binding's secret is known here.

use super::operator::{DeliveryEnd, NewIngress};
use super::queue::{NewMessage, enqueue, not_private, over};
use super::{Decision, Rejection};
use crate::events::Event;
use crate::events::agent::Answer;
use crate::events::operator::{
    BindingRevoked, BindingTerms, BindingUpserted, DeliveryAbandoned, DeliveryCompleted, DeliveryFailed,
    DeliverySubmitted, NotificationRequested, ReplyRoute,
};
use crate::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::binding::{Binding, Delivery};
use crate::words::content::{Content, excerpt};
use crate::words::id::{BindingId, Boot, EventSeq};
use crate::words::limit::{
    BINDINGS_MAX, CAPABILITIES_MAX, DELIVERIES_OWED_MAX, DELIVERY_FAILURES_MAX, DELIVERY_RETRY_MS_FIRST,
    DELIVERY_RETRY_MS_MAX, EXCERPT_BYTES_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX,
};

/// The capability that lets a binding's operator send prompts. A binding that does not name it has it.
const SEND_PROMPT: &str = "send_prompt";

/// New terms for the binding of that name, or a new binding. One without a name is called by its id.
pub(super) fn bind(state: &AgentState, terms: &BindingTerms) -> Result<Decision, Rejection> {
    if matches!(state.agent.lifecycle, Lifecycle::Archiving | Lifecycle::Archived) {
        return Err(Rejection::AgentArchived);
    }
    not_private(state)?;
    check_bounds(terms)?;
    let mut terms = terms.clone();
    let known = state.bindings.named(&terms.name).map(|(id, _)| id);
    let binding = known.unwrap_or(state.bindings.last.next());
    if terms.name.is_empty() {
        terms.name = binding.to_string();
    } else if known.is_none() && terms.name.parse::<BindingId>().is_ok() {
        let reason = "of this form are given by the runtime: leave it out".into();
        return Err(Rejection::Invalid { field: "binding_id", reason });
    }
    if known.is_none() && state.bindings.open.len() >= BINDINGS_MAX {
        return Err(Rejection::TooMany { what: "operator bindings", max: BINDINGS_MAX });
    }
    Ok(Decision::answering(vec![BindingUpserted { binding, terms }.into()], Answer::Binding(binding)))
}

fn check_bounds(terms: &BindingTerms) -> Result<(), Rejection> {
    let required = [
        ("transport", &terms.transport),
        ("operator_actor_id", &terms.operator_actor_id),
        ("default_route_id", &terms.default_route_id),
    ];
    if let Some((field, _)) = required.iter().find(|(_, text)| text.trim().is_empty()) {
        return Err(Rejection::Invalid { field, reason: "must not be empty".into() });
    }
    let optional = [("provider", &terms.provider), ("provider_identity_ref", &terms.provider_identity_ref)];
    let optional = optional.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
    let mut texts = required.into_iter().chain(optional).chain([("binding_id", &terms.name)]);
    if let Some((field, _)) = texts.find(|(_, text)| text.len() > NAME_BYTES_MAX) {
        return Err(over(field, NAME_BYTES_MAX));
    }
    if terms.metadata.as_ref().is_some_and(|text| text.len() > METADATA_BYTES_MAX) {
        return Err(over("metadata", METADATA_BYTES_MAX));
    }
    let names = &terms.capabilities;
    if names.len() > CAPABILITIES_MAX || names.keys().any(|name| name.len() > NAME_BYTES_MAX) {
        return Err(Rejection::TooMany { what: "capabilities", max: CAPABILITIES_MAX });
    }
    Ok(())
}

/// Ends the binding that clients know by this name, or by its id.
pub(super) fn unbind(state: &AgentState, name: &str) -> Result<Decision, Rejection> {
    let (binding, _) = find(state, name)?;
    Ok(Decision::answering(vec![revoked(binding, "operator")], Answer::Binding(binding)))
}

fn find<'a>(state: &'a AgentState, name: &str) -> Result<(BindingId, &'a Binding), Rejection> {
    let (what, id) = ("operator binding", name.to_owned());
    let by_id = || name.parse().ok().and_then(|id: BindingId| Some((id, state.bindings.open.get(&id)?)));
    state.bindings.named(name).or_else(by_id).ok_or(Rejection::Unknown { what, id })
}

fn revoked(binding: BindingId, reason: &str) -> Event {
    BindingRevoked { binding, reason: reason.to_owned() }.into()
}

/// What an operator says through a transport. It speaks for the one it is bound to, and for nobody else.
pub(super) fn take_in(state: &AgentState, new: &NewIngress) -> Result<Decision, Rejection> {
    let not_bound = |reason| Rejection::NotBound { reason };
    let (id, binding) = state.bindings.named(&new.binding).ok_or(not_bound("it is not active"))?;
    let terms = &binding.terms;
    if terms.operator_actor_id != new.actor_id {
        return Err(not_bound("it is another actor's"));
    }
    if new.provider.is_some() && new.provider != terms.provider {
        return Err(not_bound("it is another provider's"));
    }
    if terms.capabilities.get(SEND_PROMPT) == Some(&false) {
        return Err(not_bound("it may not send prompts"));
    }
    if new.body.bytes() == 0 {
        return Err(Rejection::Invalid { field: "text", reason: "must not be empty".into() });
    }
    let route_id = new.reply_route_id.clone().unwrap_or_else(|| terms.default_route_id.clone());
    if route_id.len() > NAME_BYTES_MAX {
        return Err(over("reply_route_id", NAME_BYTES_MAX));
    }
    let message = NewMessage {
        kind: MessageKind::OperatorPrompt,
        lane: None,
        origin: Origin::Operator { actor_id: Some(new.actor_id.clone()) },
        surface: Surface::RemoteOperatorTransport,
        admission: Admission::OperatorTransportAuthenticated,
        body_type: BodyType::Text,
        body: new.body.clone(),
        metadata: new.metadata.clone(),
        correlation_id: new.correlation_id.clone(),
        causation_id: new.causation_id.clone(),
        provided_trust: None,
        reply_route: Some(ReplyRoute { binding: id, route_id, correlation_id: new.correlation_id.clone() }),
        derived_from: None,
    };
    enqueue(state, &message, None)
}

pub(super) fn begin_delivery(state: &AgentState, binding: BindingId, boot: Boot) -> Result<Vec<Event>, Rejection> {
    let open = state.bindings.open.get(&binding).ok_or(Rejection::StaleAttempt)?;
    let first = open.owed.front().ok_or(Rejection::StaleAttempt)?;
    if open.attempt.is_some_and(|attempt| attempt.boot == boot) {
        return Err(Rejection::StaleAttempt);
    }
    let Delivery { entry, route_id, .. } = first.clone();
    Ok(vec![DeliverySubmitted { binding, entry, route_id, boot }.into()])
}

/// What came of an attempt. A transport that fails is tried for as long as it is bound, and the operator is told once.
pub(super) fn end_delivery(
    state: &AgentState,
    binding: BindingId,
    attempt: EventSeq,
    end: &DeliveryEnd,
) -> Result<Vec<Event>, Rejection> {
    let open = state.bindings.open.get(&binding).ok_or(Rejection::StaleAttempt)?;
    let begun = open.attempt.filter(|begun| begun.seq == attempt);
    let (Some(_), Some(first)) = (begun, open.owed.front()) else { return Err(Rejection::StaleAttempt) };
    let bounded = |text: &str| excerpt(text, EXCERPT_BYTES_MAX).to_owned();
    Ok(match end {
        DeliveryEnd::Taken { transport_delivery_id } => {
            let transport_delivery_id = transport_delivery_id.as_deref().map(bounded);
            vec![DeliveryCompleted { binding, attempt, transport_delivery_id }.into()]
        }
        DeliveryEnd::Refused { summary } => vec![abandoned(binding, first, bounded(summary))],
        DeliveryEnd::Failed { summary, retry_after_ms } => {
            let summary = bounded(summary);
            let told = (open.failures + 1 == DELIVERY_FAILURES_MAX).then(|| report(state, open, &summary));
            let retry_after_ms = retry_after_ms.unwrap_or_else(|| back_off_ms(open.failures));
            let retry_after_ms = retry_after_ms.clamp(DELIVERY_RETRY_MS_FIRST, DELIVERY_RETRY_MS_MAX);
            let failed = DeliveryFailed { binding, attempt, summary, retry_after_ms };
            [failed.into()].into_iter().chain(told).collect()
        }
    })
}

fn abandoned(binding: BindingId, delivery: &Delivery, reason: String) -> Event {
    let Delivery { entry, route_id, .. } = delivery.clone();
    DeliveryAbandoned { binding, entry, route_id, reason }.into()
}

fn back_off_ms(failures: u32) -> u64 {
    DELIVERY_RETRY_MS_FIRST.saturating_mul(1_u64.checked_shl(failures).unwrap_or(u64::MAX))
}

/// The operator learns that a transport fails: from the state, and through any other transport.
fn report(state: &AgentState, binding: &Binding, summary: &str) -> Event {
    let (name, waiting) = (&binding.terms.name, binding.owed.len());
    let text = format!(
        "The operator binding {name} takes no deliveries: {summary}. {waiting} wait; they are tried again until it does, \
         or until it is revoked."
    );
    NotificationRequested { notice: state.briefs.last_notice.next(), text: Content::from(text.as_str()), work: None }
        .into()
}

/// What bindings lead to by themselves: one for which too much waits gives up the oldest. The attempt under way is not
/// given up.
pub(super) fn follow_up(state: &AgentState) -> Vec<Event> {
    let over = state.bindings.open.iter().find(|(_, binding)| binding.owed.len() > DELIVERIES_OWED_MAX);
    let oldest = over.and_then(|(id, binding)| {
        let oldest = binding.owed.get(usize::from(binding.attempt.is_some()))?;
        Some(abandoned(*id, oldest, format!("more than {DELIVERIES_OWED_MAX} deliveries wait")))
    });
    oldest.into_iter().collect()
}

/// An agent that is to end keeps a binding until it has carried what it is owed, unless its transport fails.
pub(super) fn let_go(state: &AgentState) -> Vec<Event> {
    if state.agent.lifecycle != Lifecycle::Archiving {
        return Vec::new();
    }
    let idle = state.bindings.open.iter().filter(|(_, binding)| binding.owed.is_empty() || binding.is_failing());
    idle.map(|(id, _)| revoked(*id, "agent_archived")).collect()
}
