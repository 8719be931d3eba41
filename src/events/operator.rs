//! Operator plane: briefs, the user-facing output apart from traces (semantics 8).

use crate::words::content::Content;
use crate::words::id::{BriefId, MessageId, NoticeId, RunId, WorkId};

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
    }
}
