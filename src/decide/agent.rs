//! The agent plane: creating, starting, stopping, aborting.

use super::errand::{self, Errand};
use super::{Decision, Rejection, operator, queue, turn, webhook};
use crate::events::Event;
use crate::events::agent::{
    AgentArchiveRequested, AgentArchived, AgentCreated, AgentModelCleared, AgentModelSet, AgentPaused, AgentStarted,
    AgentStopped, Answer, DelegationReported, ErrandOutcome, OutboxDelivered, Ownership, Preset, Role, Visibility,
};
use crate::events::queue::{MessageKind, MessageOutcome, MessageSettled, Origin};
use crate::events::task::{ChildLifecycle, TaskStatus, TaskStopRequested};
use crate::events::turn::{AbortMode, TurnOutcome};
use crate::events::waiting::TriggerRevoked;
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::posture::{NO_PROGRESS, PostureKind, posture};
use crate::words::content::Content;
use crate::words::id::{AgentId, EventSeq, MessageId, RunId, TriggerId};
use crate::words::limit::NAME_BYTES_MAX;
use crate::words::prompt_text::PromptText;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentCommand {
    Create(NewAgent),
    Start,
    Stop,
    /// The agent is to end, and its children with it.
    Archive,
    /// What the event `entry` owes the supervisor was taken in there, or is not wanted.
    Delivered {
        entry: EventSeq,
        outcome: ErrandOutcome,
    },
    /// Another agent owes this one something.
    Take(Errand),
    Abort {
        run: Option<RunId>,
        mode: AbortMode,
    },
    /// Which model its turns ask first; the host's when none is named.
    ChooseModel {
        model: Option<String>,
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
        AgentCommand::Start => start(state),
        AgentCommand::Stop => stop(state),
        AgentCommand::Archive => archive(state),
        AgentCommand::Delivered { entry, outcome } => delivered(state, *entry, *outcome),
        AgentCommand::Take(errand) => errand::take(state, errand),
        AgentCommand::Abort { run, mode } => abort(state, *run, *mode),
        AgentCommand::ChooseModel { model } => choose_model(state, model.as_ref()),
    }
}

/// The same request again changes nothing; another one under the same id is refused (wire, Differences).
fn create(state: &AgentState, new: &NewAgent) -> Result<Decision, Rejection> {
    if matches!(state.agent.lifecycle, Lifecycle::Archiving | Lifecycle::Archived) {
        return Err(Rejection::AgentArchived);
    }
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

/// The agent is to end: its run is aborted, its commands and children are ended, its messages put aside, and its
/// capabilities revoked. It is sealed once nothing is open.
fn archive(state: &AgentState) -> Result<Decision, Rejection> {
    match state.agent.lifecycle {
        Lifecycle::Archiving | Lifecycle::Archived => Ok(Decision::default()),
        Lifecycle::Unborn => Err(Rejection::UnknownAgent),
        Lifecycle::Active | Lifecycle::Paused | Lifecycle::Stopped => Ok(Decision::of(to_end(state, "operator"))),
    }
}

fn to_end(state: &AgentState, reason: &str) -> Vec<Event> {
    let mut events = turn::abort(state, AbortMode::Stop, "agent_archived");
    let open = state.tasks.open.iter().filter(|(_, task)| task.stopping.is_none());
    events.extend(open.map(|(id, _)| stop_task(*id, "agent_archived")));
    let put_aside = |message: &MessageId| {
        let outcome = MessageOutcome::Dropped("agent_archived".into());
        MessageSettled { message: *message, outcome }.into()
    };
    events.extend(state.queue.waiting.keys().map(put_aside));
    let revoked = |trigger: &TriggerId| TriggerRevoked { trigger: *trigger, reason: "agent_archived".into() }.into();
    events.extend(state.waiting.triggers.keys().map(revoked));
    events.extend(webhook::clear(state, "agent_archived"));
    events.push(AgentArchiveRequested { reason: reason.to_owned() }.into());
    events
}

/// Told twice, it is delivered once.
fn delivered(state: &AgentState, entry: EventSeq, outcome: ErrandOutcome) -> Result<Decision, Rejection> {
    let owed = state.outbox.owed.contains_key(&entry);
    Ok(Decision::of(if owed { vec![OutboxDelivered { entry, outcome }.into()] } else { Vec::new() }))
}

/// The supervisor wants the agent to be so. It may be so already.
pub(super) fn take_direction(
    state: &AgentState,
    from: &AgentId,
    lifecycle: ChildLifecycle,
) -> Result<Vec<Event>, Rejection> {
    supervised_by(state, from)?;
    let directed = match lifecycle {
        ChildLifecycle::Active => start(state),
        ChildLifecycle::Stopped => stop(state),
        ChildLifecycle::Archived => archive(state),
    };
    Ok(directed?.own)
}

/// Only the supervisor speaks to a child so.
pub(super) fn supervised_by(state: &AgentState, from: &AgentId) -> Result<(), Rejection> {
    let is_supervisor = state.agent.supervisor.as_ref() == Some(from);
    if is_supervisor { Ok(()) } else { Err(Rejection::Unknown { what: "supervisor", id: from.to_string() }) }
}

/// What an agent between turns leads to by itself: a delegation that has come to rest or was ended is reported, an
/// agent whose report was taken ends, and one that is to end does so once nothing is open.
pub(super) fn follow_up(state: &AgentState) -> Vec<Event> {
    match state.agent.lifecycle {
        Lifecycle::Archiving if owes_report(state) => vec![report(state, TaskStatus::Cancelled)],
        Lifecycle::Archiving if is_closed(state) => vec![AgentArchived {}.into()],
        Lifecycle::Active if owes_report(state) => come_to_rest(state),
        Lifecycle::Active | Lifecycle::Paused | Lifecycle::Stopped if is_reported(state) => {
            to_end(state, "delegation_ended")
        }
        Lifecycle::Active
        | Lifecycle::Paused
        | Lifecycle::Stopped
        | Lifecycle::Archiving
        | Lifecycle::Unborn
        | Lifecycle::Archived => Vec::new(),
    }
}

fn is_closed(state: &AgentState) -> bool {
    state.turns.current.is_none()
        && state.tasks.open.is_empty()
        && state.outbox.owed.is_empty()
        && state.bindings.open.is_empty()
        && state.workspaces.worktrees.is_empty()
}

fn owes_report(state: &AgentState) -> bool {
    state.agent.is_supervised() && state.outbox.report.is_none()
}

fn is_reported(state: &AgentState) -> bool {
    state.outbox.report.is_some() && state.outbox.owed.is_empty()
}

/// The result is the brief of the turn after which nothing was left to do, or of the one that failed or got nowhere
/// (semantics 1). A delegation that only its supervisor can help on asks it, once a turn.
fn come_to_rest(state: &AgentState) -> Vec<Event> {
    let Some(turn) = &state.turns.last_ended else { return Vec::new() };
    let standing = posture(state);
    let status = match (turn.outcome, standing.kind) {
        (_, PostureKind::HasQueuedInput) => return Vec::new(),
        (TurnOutcome::Failed, _) => TaskStatus::Failed,
        (_, PostureKind::Blocked) if standing.reason == NO_PROGRESS => TaskStatus::Failed,
        (TurnOutcome::Completed, PostureKind::Idle) => TaskStatus::Completed,
        (TurnOutcome::Aborted, PostureKind::Idle) => TaskStatus::Cancelled,
        (TurnOutcome::Interrupted, PostureKind::Idle) => TaskStatus::Interrupted,
        (_, PostureKind::WaitingForOperator | PostureKind::Blocked) if state.briefs.last_notice_seq < turn.ended => {
            return operator::ask_supervisor(state, turn.answer.as_ref());
        }
        (TurnOutcome::Completed | TurnOutcome::Aborted | TurnOutcome::Interrupted, _) => return Vec::new(),
    };
    vec![report(state, status)]
}

/// What came of a delegation: the last brief, and what it cost.
fn report(state: &AgentState, status: TaskStatus) -> Event {
    let last = state.turns.last_ended.as_ref();
    let report = last.and_then(|turn| turn.answer.clone());
    let report = report.unwrap_or_else(|| Content::from("(There is no brief.)"));
    DelegationReported { status, run: last.map(|turn| turn.run), report, usage: state.turns.usage_total }.into()
}

fn start(state: &AgentState) -> Result<Decision, Rejection> {
    match state.agent.lifecycle {
        Lifecycle::Paused | Lifecycle::Stopped => {
            Ok(Decision::of([AgentStarted {}.into()].into_iter().chain(resumption(state)).collect()))
        }
        Lifecycle::Active | Lifecycle::Unborn => Ok(Decision::default()),
        Lifecycle::Archiving | Lifecycle::Archived => Err(Rejection::AgentArchived),
    }
}

/// A delegation that was stopped in the middle of a run goes on with the start, unless something else takes it on.
fn resumption(state: &AgentState) -> Option<Event> {
    let cut = state.turns.last_ended.as_ref().filter(|turn| turn.outcome == TurnOutcome::Aborted)?;
    let has_task = state.tasks.open.values().any(|task| task.stopping.is_none());
    let is_on = has_task || !state.queue.waiting.is_empty() || !state.works.open.is_empty();
    if !state.agent.is_supervised() || state.outbox.report.is_some() || is_on {
        return None;
    }
    let text = PromptText::new().own("You were stopped during ").own(cut.run);
    let text = text.own(" and started again. Go on with what you were told.");
    let (kind, origin) = (MessageKind::InternalFollowup, Origin::System { subsystem: "start".into() });
    Some(queue::OwnMessage::new(kind, origin, text, cut.derived.clone()).enqueued(state).1)
}

/// Stopping aborts the run and interrupts every command; the queue and all records stay, and children are paused with
/// their handles (semantics 1).
fn stop(state: &AgentState) -> Result<Decision, Rejection> {
    match state.agent.lifecycle {
        Lifecycle::Archiving | Lifecycle::Archived => return Err(Rejection::AgentArchived),
        Lifecycle::Stopped | Lifecycle::Unborn => return Ok(Decision::default()),
        Lifecycle::Active | Lifecycle::Paused => {}
    }
    let mut events = turn::abort(state, AbortMode::Stop, "agent_stopped");
    let commands = state.tasks.open.iter().filter(|(_, task)| task.stopping.is_none() && task.command().is_some());
    events.extend(commands.map(|(id, _)| stop_task(*id, "agent_stopped")));
    events.push(AgentStopped { reason: "operator".into() }.into());
    Ok(Decision::of(events))
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

fn choose_model(state: &AgentState, model: Option<&String>) -> Result<Decision, Rejection> {
    let chosen = match model {
        _ if state.agent.model.as_ref() == model => None,
        Some(model) if model.is_empty() || model.len() > NAME_BYTES_MAX => {
            let reason = format!("has 1 to {NAME_BYTES_MAX} bytes");
            return Err(Rejection::Invalid { field: "model", reason });
        }
        Some(model) => Some(AgentModelSet { model: model.clone() }.into()),
        None => Some(AgentModelCleared {}.into()),
    };
    Ok(Decision::of(chosen.into_iter().collect()))
}

fn stop_task(task: crate::words::id::TaskId, reason: &str) -> Event {
    TaskStopRequested { task, reason: reason.into() }.into()
}
