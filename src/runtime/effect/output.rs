//! Pages of a task's kept output, for tasks that run, that ended, or that the state has forgotten.

use super::command::run_name;
use super::outside::{Ended, refused, viewed};
use crate::events::task::CommandOutput;
use crate::events::{Event, TaskEvent};
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::reader;
use crate::runtime::handle::Handle;
use crate::runtime::host::Shared;
use crate::words::id::TaskId;
use crate::words::limit::BYTES_PER_TOKEN;
use serde_json::json;
use std::sync::Arc;

/// The bytes from `offset` on, as far as the call wants to be shown them.
pub(super) async fn page(shared: &Arc<Shared>, state: &AgentState, task: TaskId, offset: u64, tokens: u32) -> Ended {
    let read = match state.tasks.open.get(&task) {
        Some(open) => {
            let name = open.attempt.map(|attempt| run_name(&state.agent_id, task, attempt.seq));
            Ok((open.status().name(), running(shared, name.as_deref())))
        }
        None => ended(shared, state, task).await,
    };
    let (status, text) = match read {
        Ok(read) => read,
        Err(end) => return (end, Vec::new()),
    };
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let start = text.ceil_char_boundary(start);
    let length = usize::try_from(u64::from(tokens) * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
    let end = text.floor_char_boundary(start.saturating_add(length).min(text.len())).max(start);
    viewed(
        json!({
            "task_id": task, "status": status, "offset": start, "next_offset": end, "output": &text[start..end],
            "output_bytes": text.len(), "truncated": end < text.len(),
        })
        .to_string(),
    )
}

fn running(shared: &Shared, name: Option<&str>) -> String {
    let output = name.map(|name| shared.processes.output_so_far(name, usize::MAX));
    output.and_then(Result::ok).map(|shown| shown.text).unwrap_or_default()
}

async fn ended(
    shared: &Arc<Shared>,
    state: &AgentState,
    task: TaskId,
) -> Result<(&'static str, String), crate::decide::call::CallEnd> {
    let fault = |error: &dyn std::fmt::Display| refused("unavailable", &error.to_string());
    let row = shared.store.record(&state.agent_id, RecordKind::Task, task.0).map_err(|error| fault(&error))?;
    let row = row.ok_or_else(|| refused("not_found", "there is no such task"))?;
    let event = reader::event(&*shared.store, &state.agent_id, row.last).map_err(|error| fault(&error))?;
    let Some(Event::Task(TaskEvent::Exited(exited))) = event.map(|event| event.envelope.event) else {
        return Err(refused("not_found", "the task's end is not recorded"));
    };
    let text = whole(shared, &exited.output).await.map_err(|error| fault(&error))?;
    Ok((exited.status.name(), text))
}

/// The kept file, or what was shown where that was all.
async fn whole(shared: &Arc<Shared>, output: &CommandOutput) -> Result<String, crate::runtime::handle::SubmitError> {
    match &output.kept {
        Some(kept) => {
            let bytes = shared.blobs.read(&kept.hash)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        None => (Handle { shared: shared.clone() }).text(output.shown.clone()).await,
    }
}
