//! The agent plane: creating, starting, stopping, aborting.

use super::{Decision, Rejection, turn};
use crate::events::Event;
use crate::events::agent::{
    AgentCreated, AgentPaused, AgentStarted, AgentStopped, Answer, Ownership, Preset, Role, Visibility,
};
use crate::events::call::{CallResult, SpawnRequest};
use crate::events::task::TaskStopRequested;
use crate::events::turn::AbortMode;
use crate::events::workspace::Worktree;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::turn::Turn;
use crate::words::content::Content;
use crate::words::id::{AgentId, EventSeq, RunId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    Create(NewAgent),
    Start,
    Stop,
    /// The agent is to end, and its children with it.
    Archive,
    /// The supervisor has taken in what the event `entry` owes it.
    Delivered {
        entry: EventSeq,
    },
    Abort {
        run: Option<RunId>,
        mode: AbortMode,
    },
}

/// A public agent as the operator asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAgent {
    pub agent_id: AgentId,
    pub role: Role,
    pub template: Option<String>,
}

pub(super) fn decide(state: &AgentState, command: &AgentCommand) -> Result<Decision, Rejection> {
    match command {
        AgentCommand::Create(new) => create(state, new),
        AgentCommand::Start => Ok(Decision::of(start(state))),
        AgentCommand::Stop => Ok(Decision::of(stop(state))),
        AgentCommand::Archive => archive(state),
        AgentCommand::Delivered { entry } => delivered(state, *entry),
        AgentCommand::Abort { run, mode } => abort(state, *run, *mode),
    }
}

/// The same request again changes nothing; another one under the same id is refused (wire, Differences).
fn create(state: &AgentState, new: &NewAgent) -> Result<Decision, Rejection> {
    if state.is_born() {
        let same = state.agent.template == new.template && state.agent.preset == Preset::PublicNamed;
        return if same { Ok(Decision::default()) } else { Err(Rejection::AgentExists) };
    }
    let created = AgentCreated {
        agent_id: new.agent_id.clone(),
        role: new.role,
        visibility: Visibility::Public,
        ownership: Ownership::SelfOwned,
        preset: Preset::PublicNamed,
        lineage_parent: None,
        supervisor: None,
        supervising_task: None,
        template: new.template.clone(),
    };
    Ok(Decision::of(vec![created.into()]))
}

/// A child that is ready to be born: where it works and what it inherits are settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewChild {
    pub request: SpawnRequest,
    /// The view of this agent's context, for a fork.
    pub view: Option<Content>,
    /// Where it works, if not at its own home: the resolved root.
    pub execution_root: Option<String>,
    /// For `worktree`.
    pub worktree: Option<Worktree>,
}

/// Bears a child: the parent's events and the birth are one append (architecture 19).
pub(super) fn spawn(_state: &AgentState, _turn: &Turn, _child: &NewChild) -> Result<(Decision, CallResult), Rejection> {
    Err(Rejection::NothingToDo)
}

/// What an agent between turns leads to by itself: its report, or its end.
pub(super) fn follow_up(_state: &AgentState) -> Vec<Event> {
    Vec::new()
}

fn archive(_state: &AgentState) -> Result<Decision, Rejection> {
    Err(Rejection::NothingToDo)
}

fn delivered(_state: &AgentState, _entry: EventSeq) -> Result<Decision, Rejection> {
    Err(Rejection::NothingToDo)
}

fn start(state: &AgentState) -> Vec<Event> {
    match state.agent.lifecycle {
        Lifecycle::Paused | Lifecycle::Stopped => vec![AgentStarted {}.into()],
        Lifecycle::Active | Lifecycle::Unborn | Lifecycle::Archiving | Lifecycle::Archived => Vec::new(),
    }
}

/// Stopping aborts the run and interrupts every command; the queue and all records stay (semantics 1).
fn stop(state: &AgentState) -> Vec<Event> {
    if !state.agent.lifecycle.admits() {
        return Vec::new();
    }
    let mut events = turn::abort(state, AbortMode::Stop, "agent_stopped");
    let open = state.tasks.open.iter().filter(|(_, task)| task.stopping.is_none());
    events.extend(open.map(|(id, _)| stop_task(*id, "agent_stopped")));
    events.push(AgentStopped { reason: "operator".into() }.into());
    events
}

fn abort(state: &AgentState, run: Option<RunId>, mode: AbortMode) -> Result<Decision, Rejection> {
    let current = state.turns.current.as_ref().map(|turn| turn.run).ok_or(Rejection::NoCurrentRun)?;
    if let Some(requested) = run.filter(|run| *run != current) {
        return Err(Rejection::StaleRun { requested, current });
    }
    let mut events = turn::abort(state, mode, "operator_aborted");
    let foreground = state.tasks.open.iter().filter(|(_, task)| task.in_foreground() && task.stopping.is_none());
    events.extend(foreground.map(|(id, _)| stop_task(*id, "operator_aborted")));
    if mode == AbortMode::StopAfterAbort && state.agent.lifecycle == Lifecycle::Active {
        events.push(AgentPaused { reason: "operator_aborted".into() }.into());
    }
    Ok(Decision::answering(events, Answer::Aborted(current)))
}

fn stop_task(task: crate::words::id::TaskId, reason: &str) -> Event {
    TaskStopRequested { task, reason: reason.into() }.into()
}
