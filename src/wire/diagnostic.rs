//! What looks wrong with what an agent waits for (state seed; semantics 10). Seen, never acted on.

use crate::events::waiting::{Recoverability, WaitOwner};
use crate::fold::AgentState;
use crate::fold::posture::{PostureKind, WorkScheduling, posture, work_standing};
use crate::fold::waiting::Wait;
use crate::fold::work::{Blocker, WorkItem};
use crate::words::id::{WaitId, WorkId};
use serde_json::{Value, json};

/// `GET /agents/:id/diagnostics`.
pub fn diagnostics(state: &AgentState) -> Value {
    let posture = posture(state);
    let rests = !matches!(posture.kind, PostureKind::ActiveTurn | PostureKind::HasQueuedInput);
    let items = || state.works.open.iter().map(|(id, item)| (*id, item));
    let idle = items().filter(|_| rests).filter_map(|(id, item)| idle_work(state, id, item));
    let blocked = items().filter_map(|(id, item)| unstructured(state, id, item.blocker.as_ref()?));
    let weak = state.waiting.active().filter_map(|(id, wait)| weak(id, wait));
    json!({
        "agent_id": state.agent_id,
        "event_seq": state.head,
        "posture": posture.kind.name(),
        "diagnostics": idle.chain(blocked).chain(weak).collect::<Vec<_>>(),
    })
}

/// The agent appears idle, and could go on.
fn idle_work(state: &AgentState, id: WorkId, item: &WorkItem) -> Option<Value> {
    let standing = work_standing(state, id, item);
    let (severity, message) = match (standing.scheduling, item.held) {
        (WorkScheduling::Blocked, Some(_)) if item.blocker.is_none() => {
            ("warning", "its continuations changed nothing: it is held until an input, an update or a wake comes")
        }
        (WorkScheduling::Runnable, _) if !state.agent.lifecycle.admits() => {
            ("info", "the agent does not run: start it")
        }
        (WorkScheduling::Runnable, _) => ("info", "it can go on, and waits for its next continuation"),
        (
            WorkScheduling::Blocked
            | WorkScheduling::WaitingTask
            | WorkScheduling::WaitingExternal
            | WorkScheduling::WaitingOperator,
            _,
        ) => return None,
    };
    Some(json!({
        "kind": "idle_with_runnable_work",
        "severity": severity,
        "message": message,
        "work_item_id": id,
        "evidence": [standing.evidence],
    }))
}

/// A blocker in words alone: nothing will say that it is gone.
fn unstructured(state: &AgentState, id: WorkId, blocker: &Blocker) -> Option<Value> {
    if state.waiting.active_of(&WaitOwner::Work(id)).is_some() {
        return None;
    }
    let (severity, message) = match blocker.recheck_at {
        Some(_) => ("info", "a blocker without a wait: the agent looks at it again at recheck_at, and not before"),
        None => ("warning", "a blocker without a wait and without a recheck: nothing will take it up again"),
    };
    Some(json!({
        "kind": "blocker_without_wait",
        "severity": severity,
        "message": message,
        "work_item_id": id,
        "recheck_at": blocker.recheck_at,
        "evidence": [blocker.seq],
    }))
}

/// An external wait that rests on the default recheck, or on nothing.
fn weak(id: WaitId, wait: &Wait) -> Option<Value> {
    let (severity, message) = match wait.recoverability.as_ref()? {
        Recoverability::Recoverable => return None,
        Recoverability::Weak => ("info", "an external wait that rests on the default recheck alone"),
        Recoverability::ExplicitNoFallback(_) => ("warning", "an external wait that nothing but the outside can end"),
    };
    Some(json!({
        "kind": "weak_external_wait",
        "severity": severity,
        "message": message,
        "work_item_id": wait.work(),
        "wait_condition_id": id,
        "evidence": [wait.created],
    }))
}
