//! Waiting plane: wakes.

use crate::events::agent::WakeDisposition;
use crate::words::id::MessageId;

plane! {
    /// Facts about waits and wakes.
    WaitingEvent {
        /// Somebody asked for the agent's attention; the tick carries the reason.
        0x0601 wake_requested 1 since "0.1.0" => WakeRequested(WakeRequested) {
            reason: String,
            source: Option<String>,
            correlation_id: Option<String>,
            causation_id: Option<String>,
            disposition: WakeDisposition,
            /// The tick that names this wake.
            message: MessageId,
        }
    }
}
