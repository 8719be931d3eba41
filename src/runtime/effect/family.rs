//! What an agent owes to others: its results to its supervisor, its directions and its input to its children.
//!
//! Each is taken in once, however often it is told: results by the state of the task they end, all else by a key.

use crate::decide::agent::AgentCommand;
use crate::decide::queue::{NewMessage, QueueCommand};
use crate::decide::task::TaskCommand;
use crate::decide::{Command, Rejection, Request, RequestKey};
use crate::events::Cause;
use crate::events::queue::{Admission, BodyType, Lane, MessageKind, Origin, Surface};
use crate::events::task::ChildLifecycle;
use crate::fold::AgentState;
use crate::fold::outbox::Delivery;
use crate::runtime::handle::{Handle, SubmitError};
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq, TaskId};
use std::sync::Arc;
use std::time::Duration;

/// First and longest wait before an agent that could not be reached is told again.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Something to be told to another agent, and what follows for this one once it was.
pub(in crate::runtime) struct Errand {
    to: AgentId,
    request: Request,
    then: Request,
}

impl Errand {
    /// What the event `entry` of a supervised agent owes.
    pub(crate) fn delivery(state: &AgentState, entry: EventSeq) -> Option<Self> {
        let (to, task) = (state.agent.supervisor.clone()?, state.agent.supervising_task?);
        let child = state.agent_id.clone();
        let (command, key) = match state.outbox.owed.get(&entry)? {
            Delivery::Report { status, report, usage } => {
                let (status, report, usage) = (*status, report.clone(), *usage);
                (TaskCommand::TakeReport { task, child: child.clone(), status, report, usage }, None)
            }
            Delivery::Notice { text } => {
                let text = text.clone();
                (TaskCommand::TakeNotice { task, child: child.clone(), text }, Some(key("notice", &child, entry)))
            }
        };
        let request = Request { command: command.into(), cause: Cause::Agent(child), key };
        Some(Self { to, request, then: Request::new(AgentCommand::Delivered { entry }, Cause::Runtime) })
    }

    /// What a child is to be.
    pub(crate) fn direction(state: &AgentState, task: TaskId, lifecycle: ChildLifecycle) -> Option<Self> {
        let child = state.tasks.open.get(&task)?.child()?;
        let command = match lifecycle {
            ChildLifecycle::Active => AgentCommand::Start,
            ChildLifecycle::Stopped => AgentCommand::Stop,
            ChildLifecycle::Archived => AgentCommand::Archive,
        };
        let request = Request::new(command, Cause::Agent(state.agent_id.clone()));
        let then = Request::new(TaskCommand::ChildDirected { task, lifecycle }, Cause::Runtime);
        Some(Self { to: child.agent.clone(), request, then })
    }

    /// Input for a child: a message of its supervisor.
    pub(crate) fn input(state: &AgentState, task: TaskId, entry: EventSeq) -> Option<Self> {
        let open = state.tasks.open.get(&task)?;
        let (child, input) = (open.child()?, open.inputs.get(&entry)?);
        let request = Request {
            command: QueueCommand::Enqueue(follow_up(task, input.text.clone())).into(),
            cause: Cause::Agent(state.agent_id.clone()),
            key: Some(key("input", &state.agent_id, entry)),
        };
        let then = Request::new(TaskCommand::InputDelivered { task, entry }, Cause::Runtime);
        Some(Self { to: child.agent.clone(), request, then })
    }

    /// Tells it until it was taken in. One who has ended, or is not there, needs no telling.
    pub(crate) async fn run(self, shared: Arc<Shared>) -> What {
        let mut wait = RETRY_FIRST;
        loop {
            let told = Handle { shared: shared.clone() }.submit(&self.to, self.request.clone(), Vec::new()).await;
            match told {
                Ok(_) => return What::command(self.then),
                Err(SubmitError::Rejected(rejection)) if !self.may_be_taken_later(&rejection) => {
                    tracing::debug!(to = %self.to, %rejection, "what was owed is not wanted");
                    return What::command(self.then);
                }
                Err(SubmitError::ShuttingDown) => return What::Nothing,
                Err(error) => tracing::debug!(to = %self.to, %error, "what is owed cannot be told yet"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// A stopped child takes its input when it is started.
    fn may_be_taken_later(&self, rejection: &Rejection) -> bool {
        let is_input = matches!(self.request.command, Command::Queue(_));
        is_input && matches!(rejection, Rejection::AgentStopped | Rejection::QueueFull { .. })
    }
}

fn key(kind: &str, from: &AgentId, entry: EventSeq) -> RequestKey {
    let key = format!("{kind} {from}:{entry}");
    RequestKey { fingerprint: Hash::of(key.as_bytes()), key }
}

fn follow_up(task: TaskId, text: Content) -> NewMessage {
    NewMessage {
        kind: MessageKind::InternalFollowup,
        lane: Some(Lane::Next),
        origin: Origin::Task { task },
        surface: Surface::TaskRejoin,
        admission: Admission::RuntimeOwned,
        body_type: BodyType::Text,
        body: text,
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        reply_route: None,
    }
}
