//! Queue plane: messages, with a provenance that the runtime assigns and nobody changes.

use super::operator::ReplyRoute;
use crate::words::content::Content;
use crate::words::id::{MessageId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId};

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

impl Trust {
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
        }
        /// A message has its outcome and leaves the queue.
        0x0202 message_settled 1 since "0.1.0" => Settled(MessageSettled) {
            message: MessageId,
            outcome: MessageOutcome,
        }
    }
}
