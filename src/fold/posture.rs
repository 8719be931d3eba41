//! Posture: the derived answer to "what is this agent doing" (state seed, Derived AgentSchedulingPosture).
//!
//! The scheduler and every surface ask this one function. It is never stored.

use super::AgentState;
use super::agent::Lifecycle;
use crate::words::id::EventSeq;
use serde::{Deserialize, Serialize};

/// The seed's values, in its order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl PostureKind {
    pub fn name(self) -> &'static str {
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

/// What the agent is doing, and why that is the answer.
pub fn posture(state: &AgentState) -> Posture {
    let (kind, reason, evidence) = answer(state);
    Posture { kind, reason, evidence, has_active_tasks: !state.tasks.open.is_empty() }
}

fn answer(state: &AgentState) -> (PostureKind, &'static str, Vec<EventSeq>) {
    let lifecycle = vec![state.agent.lifecycle_seq];
    match state.agent.lifecycle {
        Lifecycle::Unborn => return (PostureKind::Archived, "unborn", Vec::new()),
        Lifecycle::Stopped => return (PostureKind::Archived, "stopped", lifecycle),
        Lifecycle::Paused => return (PostureKind::Archived, "paused", lifecycle),
        Lifecycle::Active => {}
    }
    if let Some(turn) = &state.turns.current {
        return (PostureKind::ActiveTurn, "turn_running", vec![turn.started]);
    }
    if let Some((_, first)) = state.queue.first() {
        return (PostureKind::HasQueuedInput, "message_waiting", vec![first.seq]);
    }
    let last = state.turns.last_ended.iter().map(|turn| turn.ended).collect();
    (PostureKind::Idle, "nothing_open", last)
}
