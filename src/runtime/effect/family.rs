//! What an agent owes to others: its results to its supervisor, its directions and its input to its children.
//!
//! One errand of a kind is under way to one receiver, so that they come in their order; the receiver takes each in once,
//! however often it comes. See [`crate::decide::errand`].

use crate::decide::Request;
use crate::decide::agent::AgentCommand;
use crate::decide::errand::{self, Matter, Wanted};
use crate::decide::task::TaskCommand;
use crate::events::Cause;
use crate::events::agent::ErrandOutcome;
use crate::events::task::ChildLifecycle;
use crate::fold::AgentState;
use crate::fold::outbox::Delivery;
use crate::runtime::handle::{Handle, SubmitError};
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::words::id::{AgentId, EventSeq, TaskId};
use std::sync::Arc;
use std::time::Duration;

/// First and longest wait before an agent that did not take an errand is asked again. Whoever has waited the longest one
/// is told of in the log.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Something to be told to another agent, and what follows for this one.
pub(in crate::runtime) struct Errand {
    to: AgentId,
    request: Request,
    then: Then,
}

/// What is recorded when an errand has come to its end.
enum Then {
    Delivered { entry: EventSeq },
    InputDelivered { task: TaskId, entry: EventSeq },
    Directed { task: TaskId, lifecycle: ChildLifecycle, entry: EventSeq },
}

impl Then {
    fn request(self, outcome: ErrandOutcome) -> Request {
        match self {
            Self::Delivered { entry } => Request::new(AgentCommand::Delivered { entry, outcome }, Cause::Runtime),
            Self::InputDelivered { task, entry } => {
                Request::new(TaskCommand::InputDelivered { task, entry, outcome }, Cause::Runtime)
            }
            // A child that has ended is past all direction; its report tells of its end.
            Self::Directed { task, lifecycle, entry } => {
                Request::new(TaskCommand::ChildDirected { task, lifecycle, entry }, Cause::Runtime)
            }
        }
    }
}

impl Errand {
    /// What the event `entry` of a supervised agent owes.
    pub(crate) fn delivery(state: &AgentState, entry: EventSeq) -> Option<Self> {
        let (to, task) = (state.agent.supervisor.clone()?, state.agent.supervising_task?);
        let what = match state.outbox.owed.get(&entry)?.clone() {
            Delivery::Report { status, report, usage, derived_from } => {
                Matter::Report { task, status, report, usage, derived_from }
            }
            Delivery::Notice { text, derived_from } => Matter::Notice { task, text, derived_from },
        };
        Some(Self::new(state, to, entry, what, Then::Delivered { entry }))
    }

    /// What the event `entry` wants a child to be.
    pub(crate) fn direction(
        state: &AgentState,
        task: TaskId,
        lifecycle: ChildLifecycle,
        entry: EventSeq,
    ) -> Option<Self> {
        let child = state.tasks.open.get(&task)?.child()?.agent.clone();
        let then = Then::Directed { task, lifecycle, entry };
        Some(Self::new(state, child, entry, Matter::Direction(lifecycle), then))
    }

    /// Input for a child: a message of its supervisor.
    pub(crate) fn input(state: &AgentState, task: TaskId, entry: EventSeq) -> Option<Self> {
        let open = state.tasks.open.get(&task)?;
        let (child, input) = (open.child()?.agent.clone(), open.inputs.get(&entry)?);
        let what = Matter::Input { task, text: input.text.clone(), derived_from: input.derived.clone() };
        Some(Self::new(state, child, entry, what, Then::InputDelivered { task, entry }))
    }

    fn new(state: &AgentState, to: AgentId, entry: EventSeq, what: Matter, then: Then) -> Self {
        let from = state.agent_id.clone();
        let errand = errand::Errand { from: from.clone(), entry, what };
        Self { to, request: Request::new(AgentCommand::Take(errand), Cause::Agent(from)), then }
    }

    /// Runs until it was taken in, or is not wanted any more.
    pub(crate) async fn run(self, shared: Arc<Shared>) -> What {
        let mut wait = RETRY_FIRST;
        loop {
            let told = Handle { shared: shared.clone() }.submit(&self.to, self.request.clone(), Vec::new()).await;
            match told {
                Ok(_) => return What::command(self.then.request(ErrandOutcome::Taken)),
                Err(SubmitError::Rejected(rejection)) if rejection.wanted() == Wanted::Never => {
                    tracing::debug!(to = %self.to, %rejection, "what was owed is not wanted");
                    return What::command(self.then.request(ErrandOutcome::NotWanted));
                }
                Err(SubmitError::ShuttingDown) => return What::Nothing,
                Err(error) if wait < RETRY_MAX => {
                    tracing::debug!(to = %self.to, %error, "what is owed is not taken yet");
                }
                Err(error) => {
                    tracing::error!(to = %self.to, %error, "what is owed was not taken for a while; it is tried again every 30 s");
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }
}
