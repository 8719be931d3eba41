//! Operator plane: briefs, the user-facing output apart from traces; and the transports that carry it to the operator
//! (semantics 8).

use crate::words::content::Content;
use crate::words::id::{BindingId, Boot, BriefId, EventSeq, MessageId, NoticeId, RunId, WorkId};
use std::collections::BTreeMap;

shape! {
    /// What a brief tells.
    pub enum BriefKind {
        /// The message is being worked on.
        Ack,
        /// The message's answer.
        Result,
        /// Why there is no answer, and what to do.
        Failure,
    }
}
names!(BriefKind { Ack = "ack", Result = "result", Failure = "failure", });

shape! {
    /// What a binding is to carry, for whom and where to. Its callback URL and its token are secrets.
    pub struct BindingTerms {
        /// As the operator's clients know it.
        name: String,
        transport: String,
        /// The one who speaks through it.
        operator_actor_id: String,
        default_route_id: String,
        /// The callback URL up to its path.
        callback_origin: String,
        /// Whether deliveries show a token.
        is_authorized: bool,
        /// Under which name the URL and the token are kept, outside the ledger.
        secret: String,
        capabilities: BTreeMap<String, bool>,
        provider: Option<String>,
        provider_identity_ref: Option<String>,
        /// JSON text, as it was given.
        metadata: Option<String>,
    }
}

shape! {
    /// Where an answer goes back to.
    pub struct ReplyRoute {
        binding: BindingId,
        route_id: String,
        correlation_id: Option<String>,
    }
}

plane! {
    /// Facts told to the operator.
    OperatorEvent {
        /// The operator was told something.
        0x0801 brief_created 1 since "0.1.0" => BriefCreated(BriefCreated) {
            brief: BriefId,
            kind: BriefKind,
            run: Option<RunId>,
            message: Option<MessageId>,
            /// The work that the brief reports as done.
            work: Option<WorkId>,
            text: Content,
        }
        /// The agent wants somebody to know: the operator, or the supervisor of a private agent (semantics 8).
        0x0802 operator_notification_requested 1 since "0.1.0" => NotificationRequested(NotificationRequested) {
            notice: NoticeId,
            text: Content,
            work: Option<WorkId>,
        }
        /// A transport reaches the operator on these terms, in place of any that it had.
        0x0803 operator_transport_binding_upserted 1 since "0.1.0" => BindingUpserted(BindingUpserted) {
            binding: BindingId,
            terms: BindingTerms,
        }
        /// The transport carries nothing more; what it was owed goes with it.
        0x0804 operator_transport_binding_revoked 1 since "0.1.0" => BindingRevoked(BindingRevoked) {
            binding: BindingId,
            reason: String,
        }
        /// A delivery of what the event `entry` says is about to be attempted.
        0x0805 operator_delivery_submitted 1 since "0.1.0" => DeliverySubmitted(DeliverySubmitted) {
            binding: BindingId,
            entry: EventSeq,
            route_id: String,
            boot: Boot,
        }
        /// The transport has taken it.
        0x0806 operator_delivery_completed 1 since "0.1.0" => DeliveryCompleted(DeliveryCompleted) {
            binding: BindingId,
            /// The event of the attempt.
            attempt: EventSeq,
            /// The transport's name for it.
            transport_delivery_id: Option<String>,
        }
        /// The attempt failed, and another follows after `retry_after_ms`.
        0x0807 operator_delivery_failed 1 since "0.1.0" => DeliveryFailed(DeliveryFailed) {
            binding: BindingId,
            attempt: EventSeq,
            summary: String,
            retry_after_ms: u64,
        }
        /// It is not attempted again: the transport refused it for good, or too much waits.
        0x0808 operator_delivery_abandoned 1 since "0.1.0" => DeliveryAbandoned(DeliveryAbandoned) {
            binding: BindingId,
            entry: EventSeq,
            route_id: String,
            reason: String,
        }
    }
}
