//! What a story can tell of the transports between an agent and its operator.
//!
//! | command | meaning |
//! |---|---|
//! | `bind NAME [FIELD=VALUE ..]` | the operator is bound to a transport: `route`, `actor`, `provider`, `send_prompt`; `-` stands for no name |
//! | `unbind NAME` | |
//! | `say BINDING ACTOR ROUTE TEXT` | the operator speaks through it; `-` stands for the default route |
//! | `submit BINDING` | its first delivery is about to be attempted |
//! | `taken BINDING [ID]`, `not-taken BINDING REASON`, `refused-by BINDING REASON` | what came of that |

use super::script::split;
use crate::world::World;
use holon::decide::operator::{DeliveryEnd, NewIngress, OperatorCommand};
use holon::events::operator::BindingTerms;
use holon::words::id::{BindingId, EventSeq};

pub fn read(world: &mut World, verb: &str, rest: &str, attempt: Option<EventSeq>) -> Option<OperatorCommand> {
    let (first, second) = split(rest);
    let text = || second.to_owned();
    Some(match verb {
        "bind" => OperatorCommand::Bind { terms: terms(first, second) },
        "unbind" => OperatorCommand::Unbind { name: first.into() },
        "say" => say(world, first, second),
        "submit" => OperatorCommand::BeginDelivery { binding: id(first), boot: world.boot },
        "taken" => {
            let transport_delivery_id = (!second.is_empty()).then(text);
            end(world, first, attempt, DeliveryEnd::Taken { transport_delivery_id })
        }
        "not-taken" => end(world, first, attempt, DeliveryEnd::Failed { summary: text(), retry_after_ms: None }),
        "refused-by" => end(world, first, attempt, DeliveryEnd::Refused { summary: text() }),
        _ => return None,
    })
}

fn id(text: &str) -> BindingId {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no binding"))
}

fn terms(name: &str, fields: &str) -> BindingTerms {
    let mut terms = BindingTerms {
        name: name.trim_start_matches('-').into(),
        transport: "http-callback".into(),
        operator_actor_id: "ada".into(),
        default_route_id: "inbox".into(),
        callback_origin: "https://chat.example".into(),
        is_authorized: true,
        secret: format!("binding/{name}"),
        capabilities: std::collections::BTreeMap::new(),
        provider: None,
        provider_identity_ref: None,
        metadata: None,
    };
    for (field, value) in fields.split_whitespace().filter_map(|field| field.split_once('=')) {
        match field {
            "route" => terms.default_route_id = value.into(),
            "actor" => terms.operator_actor_id = value.into(),
            "provider" => terms.provider = Some(value.into()),
            "send_prompt" => drop(terms.capabilities.insert(field.into(), value == "true")),
            _ => panic!("{field} is no field of a binding here"),
        }
    }
    terms
}

fn say(world: &mut World, binding: &str, rest: &str) -> OperatorCommand {
    let (actor_id, rest) = split(rest);
    let (route, text) = split(rest);
    OperatorCommand::Ingress(NewIngress {
        binding: binding.into(),
        actor_id: actor_id.into(),
        body: world.content(text),
        reply_route_id: (route != "-").then(|| route.into()),
        provider: None,
        metadata: None,
        correlation_id: None,
        causation_id: None,
    })
}

/// The attempt under way, unless another is named.
fn end(world: &World, binding: &str, attempt: Option<EventSeq>, end: DeliveryEnd) -> OperatorCommand {
    let binding = id(binding);
    let begun = || world.state.bindings.open.get(&binding)?.attempt.map(|attempt| attempt.seq);
    OperatorCommand::EndDelivery { binding, attempt: attempt.or_else(begun).unwrap_or_default(), end }
}
