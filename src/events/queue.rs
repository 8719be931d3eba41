//! Queue plane: messages, with a provenance that the runtime assigns and nobody changes.

use super::operator::ReplyRoute;
use crate::words::content::Content;
use crate::words::id::{AgentId, MessageId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId};

shape! {
    /// Four first-in first-out lanes; the oldest message of the highest lane that is not empty is next (semantics 2).
    pub enum Lane { Interject, Next, Normal, Background, }
}
names!(Lane { Interject = "interject", Next = "next", Normal = "normal", Background = "background", });

shape! {
    /// What a message is.
    pub enum MessageKind {
        OperatorPrompt,
        Control,
        SystemTick,
        InternalFollowup,
        TaskStatus,
        TaskResult,
        TimerTick,
        WebhookEvent,
        CallbackEvent,
        ChannelEvent,
    }
}
names!(MessageKind {
    OperatorPrompt = "operator_prompt",
    Control = "control",
    SystemTick = "system_tick",
    InternalFollowup = "internal_followup",
    TaskStatus = "task_status",
    TaskResult = "task_result",
    TimerTick = "timer_tick",
    WebhookEvent = "webhook_event",
    CallbackEvent = "callback_event",
    ChannelEvent = "channel_event",
});

shape! {
    /// How far a message is trusted. Follows from its origin, never from its sender's word (semantics 2).
    pub enum Trust { TrustedOperator, TrustedSystem, TrustedIntegration, UntrustedExternal, }
}
names!(Trust {
    TrustedOperator = "trusted_operator",
    TrustedSystem = "trusted_system",
    TrustedIntegration = "trusted_integration",
    UntrustedExternal = "untrusted_external",
});

shape! {
    /// What a text rests on that a turn or a record brought forth: trust is never raised by passing text along.
    pub struct DerivedFrom {
        /// The least trust of all that it rests on.
        trust: Trust,
        /// The agent whose turn made it; none for this one.
        agent: Option<AgentId>,
        /// The message that the turn answered; none where somebody acted without a turn.
        message: Option<MessageId>,
    }
}

impl DerivedFrom {
    /// What was not made by a turn: by the operator's own request, or with a capability.
    pub fn directly(trust: Trust) -> Self {
        Self { trust, agent: None, message: None }
    }

    /// As an event says it: none stands for the operator's own request.
    pub fn or_operator(from: Option<&Self>) -> Self {
        from.cloned().unwrap_or_else(|| Self::directly(Trust::TrustedOperator))
    }

    /// The less trusted of two; this one if they are trusted alike.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        if self.trust.least(other.trust) == self.trust { self } else { other }
    }

    /// As another agent names it: `agent` is whose it was.
    #[must_use]
    pub fn of(self, agent: &AgentId) -> Self {
        Self { agent: self.agent.or_else(|| Some(agent.clone())), ..self }
    }
}

impl Trust {
    /// The less trusted of two. The variants stand in this order.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        if self as u8 >= other as u8 { self } else { other }
    }

    /// The class of authority that a trust gives, one to one.
    pub fn authority_class(self) -> &'static str {
        match self {
            Self::TrustedOperator => "operator_instruction",
            Self::TrustedSystem => "runtime_instruction",
            Self::TrustedIntegration => "integration_signal",
            Self::UntrustedExternal => "external_evidence",
        }
    }
}

shape! {
    /// Where a message came from (control-plane seed, MessageOrigin).
    pub enum Origin {
        Operator { actor_id: Option<String>, },
        Channel { channel_id: String, sender_id: Option<String>, },
        Webhook { source: String, event_type: Option<String>, },
        Callback { descriptor_id: String, source: Option<String>, },
        Timer { timer_id: TimerId, },
        System { subsystem: String, },
        Task { task: TaskId, },
    }
}

shape! {
    /// The surface that took a message in.
    pub enum Surface {
        CliPrompt,
        RunOnce,
        HttpControlPrompt,
        HttpPublicEnqueue,
        HttpWebhook,
        HttpCallbackEnqueue,
        HttpCallbackWake,
        RemoteOperatorTransport,
        TimerScheduler,
        RuntimeSystem,
        TaskRejoin,
    }
}
names!(Surface {
    CliPrompt = "cli_prompt",
    RunOnce = "run_once",
    HttpControlPrompt = "http_control_prompt",
    HttpPublicEnqueue = "http_public_enqueue",
    HttpWebhook = "http_webhook",
    HttpCallbackEnqueue = "http_callback_enqueue",
    HttpCallbackWake = "http_callback_wake",
    RemoteOperatorTransport = "remote_operator_transport",
    TimerScheduler = "timer_scheduler",
    RuntimeSystem = "runtime_system",
    TaskRejoin = "task_rejoin",
});

shape! {
    /// On what grounds a message was admitted.
    pub enum Admission {
        PublicUnauthenticated,
        ControlAuthenticated,
        OperatorTransportAuthenticated,
        ExternalTriggerCapability,
        LocalProcess,
        RuntimeOwned,
        /// It was signed with the agent's secret.
        WebhookSigned,
    }
}
names!(Admission {
    PublicUnauthenticated = "public_unauthenticated",
    ControlAuthenticated = "control_authenticated",
    OperatorTransportAuthenticated = "operator_transport_authenticated",
    ExternalTriggerCapability = "external_trigger_capability",
    LocalProcess = "local_process",
    RuntimeOwned = "runtime_owned",
    WebhookSigned = "webhook_signed",
});

shape! {
    /// How a body is to be read (control-plane seed, MessageBody).
    pub enum BodyType { Text, Json, Brief, }
}
names!(BodyType { Text = "text", Json = "json", Brief = "brief", });

shape! {
    /// Whose words a message's body is.
    pub enum Author {
        /// The sender's: a prompt quotes them.
        Sender,
        /// The runtime's own, in which others are quoted already.
        Runtime,
    }
}
names!(Author { Sender = "sender", Runtime = "runtime", });

shape! {
    /// What a message is about, beside what its body says.
    pub enum Subject {
        Task(TaskId),
        /// The turn takes it as its focus.
        Work(WorkId),
        Wait(WaitId),
        Timer(TimerId),
        Trigger(TriggerId),
    }
}

shape! {
    /// How a message ended. Every accepted message ends in exactly one of these (semantics 2).
    pub enum MessageOutcome {
        /// A turn was spent on it.
        Processed(RunId),
        /// Its turn was aborted.
        Aborted(RunId),
        /// The running turn took it in at a safe point.
        Interjected(RunId),
        /// Another message stands for it.
        Coalesced(MessageId),
        /// It was put aside, for a reason an operator can read.
        Dropped(String),
    }
}

plane! {
    /// Facts about messages.
    QueueEvent {
        /// A message was taken in and waits.
        0x0201 message_enqueued 1 since "0.1.0" => Enqueued(MessageEnqueued) {
            message: MessageId,
            lane: Lane,
            kind: MessageKind,
            origin: Origin,
            trust: Trust,
            surface: Surface,
            admission: Admission,
            body_type: BodyType,
            body: Content,
            about: Vec<Subject>,
            /// JSON text, as the sender gave it.
            metadata: Option<String>,
            correlation_id: Option<String>,
            causation_id: Option<String>,
            /// What the sender asked for; it elevates nothing.
            provided_trust: Option<Trust>,
            /// Where its answer goes back to, if it came through a binding.
            reply_route: Option<ReplyRoute>,
            /// What the body rests on, when a turn or a record of the agent brought it forth.
            derived_from: Option<DerivedFrom>,
            author: Author,
        }
        /// A message has its outcome and leaves the queue.
        0x0202 message_settled 1 since "0.1.0" => Settled(MessageSettled) {
            message: MessageId,
            outcome: MessageOutcome,
        }
    }
}

impl MessageEnqueued {
    /// What a turn that answers the message rests on.
    pub fn trust_passed_on(&self) -> Trust {
        self.derived_from.as_ref().map_or(self.trust, |from| from.trust)
    }
}
