//! What may come from where: the matrix of origin, trust and kind, enforced for every producer (semantics 2).

use super::queue::Room;
use crate::events::queue::{DerivedFrom, Lane, MessageKind, Origin, Surface, Trust};

/// How far a message of this origin is trusted: no further than what it derives from.
pub fn trust(origin: &Origin, derived_from: Option<&DerivedFrom>) -> Trust {
    let most = most_trust(origin);
    derived_from.map_or(most, |from| most.least(from.trust))
}

/// The most that a message of this origin may be trusted.
fn most_trust(origin: &Origin) -> Trust {
    match origin {
        Origin::Operator { .. } => Trust::TrustedOperator,
        Origin::System { .. } | Origin::Task { .. } | Origin::Timer { .. } => Trust::TrustedSystem,
        Origin::Webhook { .. } | Origin::Callback { .. } => Trust::TrustedIntegration,
        Origin::Channel { .. } => Trust::UntrustedExternal,
    }
}

/// The surface of a message that the runtime itself makes.
pub fn own_surface(origin: &Origin) -> Surface {
    match origin {
        Origin::Task { .. } => Surface::TaskRejoin,
        Origin::Timer { .. } => Surface::TimerScheduler,
        Origin::System { .. }
        | Origin::Operator { .. }
        | Origin::Webhook { .. }
        | Origin::Callback { .. }
        | Origin::Channel { .. } => Surface::RuntimeSystem,
    }
}

/// Whether a message of this kind may come from this origin.
pub fn allows(origin: &Origin, kind: MessageKind) -> bool {
    use MessageKind as Kind;
    match origin {
        Origin::Operator { .. } => matches!(kind, Kind::OperatorPrompt | Kind::Control),
        Origin::System { .. } => matches!(kind, Kind::SystemTick | Kind::InternalFollowup | Kind::Control),
        Origin::Task { .. } => matches!(kind, Kind::TaskStatus | Kind::TaskResult | Kind::InternalFollowup),
        Origin::Timer { .. } => kind == Kind::TimerTick,
        Origin::Webhook { .. } => kind == Kind::WebhookEvent,
        Origin::Callback { .. } => kind == Kind::CallbackEvent,
        Origin::Channel { .. } => kind == Kind::ChannelEvent,
    }
}

/// Whether a message of this origin may name this lane: only an operator goes before all others.
pub fn may_name(origin: &Origin, lane: Lane) -> bool {
    lane != Lane::Interject || matches!(origin, Origin::Operator { .. })
}

/// What of the queue a message of this origin may fill.
pub(super) fn room(origin: &Origin) -> Room {
    match origin {
        Origin::Operator { .. } | Origin::System { .. } | Origin::Task { .. } | Origin::Timer { .. } => Room::Whole,
        Origin::Webhook { .. } | Origin::Callback { .. } | Origin::Channel { .. } => Room::Shared,
    }
}

/// The lane a message takes when its sender may not, or does not, choose.
pub fn lane(kind: MessageKind) -> Lane {
    use MessageKind as Kind;
    match kind {
        Kind::OperatorPrompt => Lane::Interject,
        Kind::TimerTick | Kind::TaskResult | Kind::SystemTick | Kind::Control | Kind::InternalFollowup => Lane::Next,
        Kind::WebhookEvent | Kind::CallbackEvent | Kind::ChannelEvent => Lane::Normal,
        Kind::TaskStatus => Lane::Background,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_from_the_origins_of_the_matrix_and_no_other() {
        let origins = [
            Origin::Operator { actor_id: None },
            Origin::System { subsystem: "test".into() },
            Origin::Task { task: crate::words::id::TaskId(1) },
            Origin::Timer { timer_id: crate::words::id::TimerId(1) },
            Origin::Webhook { source: "test".into(), event_type: None },
            Origin::Callback { descriptor_id: "test".into(), source: None },
            Origin::Channel { channel_id: "test".into(), sender_id: None },
        ];
        let allowed: Vec<String> = origins
            .iter()
            .map(|origin| {
                let kinds = MessageKind::NAMES
                    .iter()
                    .filter(|name| allows(origin, MessageKind::from_name(name).expect("a name of the list")));
                format!("{}: {}", trust(origin, None), kinds.copied().collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(
            allowed,
            [
                "trusted_operator: operator_prompt control",
                "trusted_system: control system_tick internal_followup",
                "trusted_system: internal_followup task_status task_result",
                "trusted_system: timer_tick",
                "trusted_integration: webhook_event",
                "trusted_integration: callback_event",
                "untrusted_external: channel_event",
            ]
        );
    }
}
