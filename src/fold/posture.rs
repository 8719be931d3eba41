//! Posture: the derived answer to "what is this agent doing" (state seed, Derived AgentSchedulingPosture).
//!
//! The scheduler and every surface ask this one function. It is never stored, and neither are the scheduling states of
//! work items that it rests on.

use super::AgentState;
use super::agent::Lifecycle;
use super::work::WorkItem;
use crate::events::waiting::{Recoverability, WaitOwner, WakeOn};
use crate::events::work::PlanStatus;
use crate::words::id::{EventSeq, WorkId};
use serde::{Deserialize, Serialize};

/// The seed's values, in its order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostureKind {
    Archived,
    ActiveTurn,
    HasQueuedInput,
    HasRunnableWork,
    WaitingForTask,
    WaitingForExternal,
    WaitingForOperator,
    Blocked,
    Idle,
}

/// A posture, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posture {
    pub kind: PostureKind,
    /// A stable code.
    pub reason: &'static str,
    /// The events that the answer rests on.
    pub evidence: Vec<EventSeq>,
    /// Whether managed executions are open, whatever the posture.
    pub has_active_tasks: bool,
    /// Whether an external wait rests on nothing but the default recheck, or on nothing at all.
    pub has_weak_external_wait: bool,
    /// Timers that are set.
    pub timers_pending: usize,
}

/// Where an open work item stands with the scheduler (semantics 4). A completed one is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkScheduling {
    Runnable,
    WaitingTask,
    WaitingExternal,
    WaitingOperator,
    Blocked,
}

/// A scheduling state, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkStanding {
    pub scheduling: WorkScheduling,
    /// A stable code.
    pub reason: &'static str,
    pub evidence: EventSeq,
}

impl PostureKind {
    pub const ALL: [Self; 9] = [
        Self::Archived,
        Self::ActiveTurn,
        Self::HasQueuedInput,
        Self::HasRunnableWork,
        Self::WaitingForTask,
        Self::WaitingForExternal,
        Self::WaitingForOperator,
        Self::Blocked,
        Self::Idle,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::ActiveTurn => "active_turn",
            Self::HasQueuedInput => "has_queued_input",
            Self::HasRunnableWork => "has_runnable_work",
            Self::WaitingForTask => "waiting_for_task",
            Self::WaitingForExternal => "waiting_for_external",
            Self::WaitingForOperator => "waiting_for_operator",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
        }
    }
}

impl WorkScheduling {
    pub fn name(self) -> &'static str {
        match self {
            Self::Runnable => "runnable",
            Self::WaitingTask => "waiting_task",
            Self::WaitingExternal => "waiting_external",
            Self::WaitingOperator => "waiting_operator",
            Self::Blocked => "blocked",
        }
    }

    /// What the agent is doing if this is what holds its work up.
    fn posture(self) -> PostureKind {
        match self {
            Self::Runnable => PostureKind::HasRunnableWork,
            Self::WaitingTask => PostureKind::WaitingForTask,
            Self::WaitingExternal => PostureKind::WaitingForExternal,
            Self::WaitingOperator => PostureKind::WaitingForOperator,
            Self::Blocked => PostureKind::Blocked,
        }
    }
}

/// What the agent is doing, and why that is the answer.
pub fn posture(state: &AgentState) -> Posture {
    let (kind, reason, evidence) = answer(state);
    Posture {
        kind,
        reason,
        evidence,
        has_active_tasks: !state.tasks.open.is_empty(),
        has_weak_external_wait: state.waiting.active().any(|(_, wait)| is_weak(wait.recoverability.as_ref())),
        timers_pending: state.waiting.timers.len(),
    }
}

fn is_weak(recoverability: Option<&Recoverability>) -> bool {
    matches!(recoverability, Some(Recoverability::Weak | Recoverability::ExplicitNoFallback(_)))
}

type Answer = (PostureKind, &'static str, Vec<EventSeq>);

fn answer(state: &AgentState) -> Answer {
    if let Some(reason) = unavailable(state.agent.lifecycle) {
        let evidence = Some(state.agent.lifecycle_seq).filter(|_| state.is_born());
        return (PostureKind::Archived, reason, evidence.into_iter().collect());
    }
    if let Some(turn) = &state.turns.current {
        return (PostureKind::ActiveTurn, "turn_running", vec![turn.started]);
    }
    if let Some((_, first)) = state.queue.first() {
        return (PostureKind::HasQueuedInput, "message_waiting", vec![first.seq]);
    }
    standing(state).unwrap_or_else(|| {
        let last = state.turns.last_ended.iter().map(|turn| turn.ended).collect();
        (PostureKind::Idle, "nothing_open", last)
    })
}

fn unavailable(lifecycle: Lifecycle) -> Option<&'static str> {
    match lifecycle {
        Lifecycle::Active => None,
        Lifecycle::Unborn | Lifecycle::Paused | Lifecycle::Stopped | Lifecycle::Archiving | Lifecycle::Archived => {
            Some(lifecycle.name())
        }
    }
}

/// The highest of what holds up open work and of the agent's own wait.
fn standing(state: &AgentState) -> Option<Answer> {
    let items = state.works.open.iter().map(|(id, item)| work_standing(state, *id, item));
    let own = state.waiting.active_of(&WaitOwner::Agent).map(|(_, wait)| waiting_for(&wait.wake, wait.created));
    let standings: Vec<WorkStanding> = items.chain(own).collect();
    let highest = standings.iter().min_by_key(|standing| standing.scheduling.posture())?;
    let alike = standings.iter().filter(|standing| standing.scheduling == highest.scheduling);
    let evidence = alike.map(|standing| standing.evidence).take(EVIDENCE_MAX).collect();
    Some((highest.scheduling.posture(), highest.reason, evidence))
}

/// The reason of work that was continued in vain, and is held.
pub const NO_PROGRESS: &str = "no_progress";

/// Events that an answer names at most.
const EVIDENCE_MAX: usize = 8;

/// Where an open work item stands, and why.
pub fn work_standing(state: &AgentState, id: WorkId, item: &WorkItem) -> WorkStanding {
    let stands = |scheduling, reason, evidence| WorkStanding { scheduling, reason, evidence };
    if item.plan_status == PlanStatus::NeedsInput {
        return stands(WorkScheduling::WaitingOperator, "needs_input", item.updated);
    }
    if let Some((_, wait)) = state.waiting.active_of(&WaitOwner::Work(id)) {
        return waiting_for(&wait.wake, wait.created);
    }
    if let Some(blocker) = &item.blocker {
        return stands(WorkScheduling::Blocked, "blocker", blocker.seq);
    }
    match item.held {
        Some(held) => stands(WorkScheduling::Blocked, NO_PROGRESS, held),
        None => stands(WorkScheduling::Runnable, "work_open", item.updated),
    }
}

fn waiting_for(wake: &WakeOn, evidence: EventSeq) -> WorkStanding {
    let (scheduling, reason) = match wake {
        WakeOn::OperatorInput => (WorkScheduling::WaitingOperator, "operator"),
        WakeOn::TaskResult(_) => (WorkScheduling::WaitingTask, "task"),
        WakeOn::External { .. } => (WorkScheduling::WaitingExternal, "external"),
        WakeOn::Timer { .. } => (WorkScheduling::WaitingExternal, "timer"),
    };
    WorkStanding { scheduling, reason, evidence }
}

/// The runnable item that is to be continued next: the focus first, then the one that was written longest ago.
pub fn runnable(state: &AgentState) -> Option<(WorkId, &WorkItem)> {
    let is_runnable =
        |id: WorkId, item: &WorkItem| work_standing(state, id, item).scheduling == WorkScheduling::Runnable;
    let focus = state.works.focused().filter(|(id, item)| is_runnable(*id, item));
    focus.or_else(|| {
        let items = state.works.open.iter().map(|(id, item)| (*id, item)).filter(|(id, item)| is_runnable(*id, item));
        items.min_by_key(|(id, item)| (item.continue_at(), item.updated, *id))
    })
}
