//! Errands: what one agent owes another, as the receiver takes it in (architecture 19).
//!
//! Errands of a kind come in the order of their entries and need no keys: the receiver knows the last one that it took.
//! What it refuses is owed on, unless the refusal says that nobody waits for it any more.

use super::{Decision, Rejection, agent, queue, task};
use crate::events::agent::{ErrandKind, ErrandTaken};
use crate::events::queue::DerivedFrom;
use crate::events::task::{ChildLifecycle, TaskStatus};
use crate::events::turn::UsageTotal;
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::{AgentId, EventSeq, TaskId};
use serde::{Deserialize, Serialize};

/// What `from` owes this agent by its event `entry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errand {
    pub from: AgentId,
    pub entry: EventSeq,
    pub what: Matter,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// What a child wants known.
    Notice { task: TaskId, text: Content, derived_from: Option<DerivedFrom> },
    /// A child's result.
    Report {
        task: TaskId,
        status: TaskStatus,
        report: Content,
        usage: UsageTotal,
        /// What it rests on in the child.
        derived_from: Option<DerivedFrom>,
    },
    /// Words of the supervisor, by the task that the child is to it.
    Input { task: TaskId, text: Content, derived_from: DerivedFrom },
    /// What the supervisor wants the child to be.
    Direction(ChildLifecycle),
}

/// Whether an errand that was refused is to be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Later,
    Never,
}

impl Matter {
    pub fn kind(&self) -> ErrandKind {
        match self {
            Self::Notice { .. } | Self::Report { .. } | Self::Input { .. } => ErrandKind::Message,
            Self::Direction(_) => ErrandKind::Direction,
        }
    }
}

impl Rejection {
    /// Only the end of the receiver, or of what the errand is about, makes an errand unwanted. Whatever else stands in
    /// its way may pass.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a refusal that nobody thought of loses nothing")]
    pub fn wanted(&self) -> Wanted {
        match self {
            Self::UnknownAgent | Self::AgentArchived | Self::Unknown { .. } | Self::Ended { .. } => Wanted::Never,
            _ => Wanted::Later,
        }
    }
}

/// Takes an errand in; one that was taken before, or that a later one overtook, has no effect.
pub(super) fn take(state: &AgentState, errand: &Errand) -> Result<Decision, Rejection> {
    let Errand { from, entry, what } = errand;
    if state.errands.has_taken(from, what.kind(), *entry) {
        return Ok(Decision::default());
    }
    let led_to = match what {
        Matter::Notice { task, text, derived_from } => {
            task::take_notice(state, *task, from, text, derived_from.as_ref())?
        }
        Matter::Report { task, status, report, usage, derived_from } => {
            task::take_report(state, *task, from, *status, report, *usage, derived_from.as_ref())?
        }
        Matter::Input { task, text, derived_from } => {
            queue::take_input(state, *task, from, text, derived_from.clone())?
        }
        Matter::Direction(lifecycle) => agent::take_direction(state, from, *lifecycle)?,
    };
    // It stands first: a report ends the child's handle, and with it the memory of what came from there.
    let taken = ErrandTaken { from: from.clone(), errand: what.kind(), entry: *entry };
    Ok(Decision::of([taken.into()].into_iter().chain(led_to).collect()))
}
