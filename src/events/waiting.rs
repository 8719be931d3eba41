//! Waiting plane: waits, timers, external triggers and wakes.
//!
//! Durations count from the reading of the clock that their own event carries (architecture 4).

use crate::events::agent::WakeDisposition;
use crate::events::queue::DerivedFrom;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, MessageId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId};

shape! {
    /// Whose wait it is.
    pub enum WaitOwner { Agent, Work(WorkId), }
}

shape! {
    /// What ends a wait.
    pub enum WakeOn {
        OperatorInput,
        TaskResult(TaskId),
        /// News from outside: a webhook, a callback, a channel, or a wake.
        External { resource: Option<String>, },
        Timer { after_ms: u64, },
    }
}

shape! {
    /// What happens when the outside never calls back (semantics 6).
    pub enum Recoverability {
        /// The agent said when it looks again.
        Recoverable,
        /// It did not say, and the default applies.
        Weak,
        /// It said why nothing would help.
        ExplicitNoFallback(String),
    }
}

shape! {
    /// What ended a wait.
    pub enum WaitTrigger {
        Task(TaskId),
        /// The message that came.
        Message(MessageId),
        /// Its time came.
        Due,
    }
}

shape! {
    /// What a callback does.
    pub enum DeliveryMode {
        /// It wakes the agent; what it says is a hint.
        Wake,
        /// Its body becomes a message.
        Enqueue,
    }
}
names!(DeliveryMode { Wake = "wake", Enqueue = "enqueue", });

plane! {
    /// Facts about waits and wakes.
    WaitingEvent {
        /// Somebody asked for the agent's attention; the tick carries the reason.
        0x0601 wake_requested 1 since "0.1.0" => WakeRequested(WakeRequested) {
            reason: String,
            source: Option<String>,
            correlation_id: Option<String>,
            causation_id: Option<String>,
            /// What came along, from a capability's holder.
            body: Option<Content>,
            disposition: WakeDisposition,
            /// The tick that names this wake.
            message: MessageId,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// Something is waited for.
        0x0602 wait_created 1 since "0.1.0" => WaitCreated(WaitCreated) {
            wait: WaitId,
            owner: WaitOwner,
            wake: WakeOn,
            reason: String,
            /// When the agent looks by itself, if nothing came.
            recheck_after_ms: Option<u64>,
            /// For external waits.
            recoverability: Option<Recoverability>,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// What was waited for may have come.
        0x0603 wait_triggered 1 since "0.1.0" => WaitTriggered(WaitTriggered) {
            wait: WaitId,
            by: WaitTrigger,
        }
        /// A turn has taken up what a wait brought.
        0x0604 wait_consumed 1 since "0.1.0" => WaitConsumed(WaitConsumed) {
            wait: WaitId,
            run: RunId,
        }
        /// Nobody waits for it any more.
        0x0605 wait_cancelled 1 since "0.1.0" => WaitCancelled(WaitCancelled) {
            wait: WaitId,
            reason: String,
        }
        /// A later wait of the same owner took its place.
        0x0606 wait_superseded 1 since "0.1.0" => WaitSuperseded(WaitSuperseded) {
            wait: WaitId,
            by: WaitId,
        }
        /// Nothing came until the time to look by oneself.
        0x0607 wait_expired 1 since "0.1.0" => WaitExpired(WaitExpired) {
            wait: WaitId,
        }
        /// A message is to come by itself, `duration_ms` from here, and then every `interval_ms` if that is given.
        0x0608 timer_created 1 since "0.1.0" => TimerCreated(TimerCreated) {
            timer: TimerId,
            duration_ms: u64,
            interval_ms: Option<u64>,
            summary: Option<String>,
            work: Option<WorkId>,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// A timer brought its message. One without an interval is gone with that.
        0x0609 timer_fired 1 since "0.1.0" => TimerFired(TimerFired) {
            timer: TimerId,
            message: MessageId,
        }
        /// A timer brings nothing more.
        0x060A timer_cancelled 1 since "0.1.0" => TimerCancelled(TimerCancelled) {
            timer: TimerId,
            reason: String,
        }
        /// Whoever holds the capability may reach the agent. Its token was shown once and is kept nowhere.
        0x060B external_trigger_created 1 since "0.1.0" => TriggerCreated(TriggerCreated) {
            trigger: TriggerId,
            mode: DeliveryMode,
            token_hash: Hash,
            label: String,
            work: Option<WorkId>,
        }
        /// The capability is worth nothing any more.
        0x060C external_trigger_revoked 1 since "0.1.0" => TriggerRevoked(TriggerRevoked) {
            trigger: TriggerId,
            reason: String,
        }
        /// Somebody used the capability; the message holds or names what came.
        0x060D callback_delivered 1 since "0.1.0" => CallbackDelivered(CallbackDelivered) {
            trigger: TriggerId,
            message: MessageId,
        }
        /// From here on webhooks must be signed.
        0x060E webhook_secret_set 1 since "0.1.0" => WebhookSecretSet(WebhookSecretSet) {
            /// Under which name the home keeps it.
            secret: String,
            /// The event that set the secret before, which is accepted for `previous_ms` more.
            previous: Option<EventSeq>,
            previous_ms: u64,
        }
        /// Anybody may send a webhook again.
        0x060F webhook_secret_cleared 1 since "0.1.0" => WebhookSecretCleared(WebhookSecretCleared) {
            reason: String,
        }
    }
}
