//! Records that have left the state, for a call that looks at them.

use crate::events::Event;
use crate::events::call::View;
use crate::events::task::TaskEvent;
use crate::events::work::WorkEvent;
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::reader;
use crate::runtime::host::Shared;
use serde_json::{Value, json};

/// A completed work item, or an ended task.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other views are of the state alone")]
pub(super) fn find(shared: &Shared, state: &AgentState, view: &View) -> Option<Value> {
    match view {
        View::WorkItem(work) => match last(shared, state, RecordKind::Work, work.0)? {
            Event::Work(WorkEvent::Completed(event)) => Some(json!({
                "id": event.work, "state": "completed", "completion_report": event.report.excerpt(),
                "todos_unfinished": event.todos_unfinished,
            })),
            _ => None,
        },
        View::Task(task) => match last(shared, state, RecordKind::Task, task.0)? {
            Event::Task(TaskEvent::Exited(event)) => Some(json!({
                "task_id": event.task, "status": event.status.name(), "output_bytes": event.output.bytes,
            })),
            _ => None,
        },
        _ => None,
    }
}

/// The event that closed a record.
fn last(shared: &Shared, state: &AgentState, kind: RecordKind, number: u64) -> Option<Event> {
    let row = shared.store.record(&state.agent_id, kind, number).ok()??;
    reader::event(&*shared.store, &state.agent_id, row.last).ok()?.map(|event| event.envelope.event)
}
