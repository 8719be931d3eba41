//! Pages of a task's kept output, for tasks that run, that ended, or that the state has forgotten.

use super::command::{run_name, shown_bytes_max};
use super::outside::{Ended, refused, viewed};
use crate::decide::call::CallEnd;
use crate::events::task::{CommandOutput, TaskStatus};
use crate::events::{Event, TaskEvent};
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::reader;
use crate::runtime::handle::{Handle, SubmitError, blocking};
use crate::runtime::host::Shared;
use crate::runtime::process::unfinished;
use crate::words::id::TaskId;
use serde_json::json;
use std::sync::Arc;

/// The byte to begin at, and the most bytes.
type Range = (u64, u64);

/// Bytes of kept output, and how many are kept in all.
type Piece = (Vec<u8>, u64);

/// The bytes from `offset` on, as far as the call wants to be shown them.
pub(super) async fn page(shared: &Arc<Shared>, state: &AgentState, task: TaskId, offset: u64, tokens: u32) -> Ended {
    let range = (offset, shown_bytes_max(tokens) as u64);
    let read = match state.tasks.open.get(&task) {
        Some(open) => {
            let name = open.attempt.map(|attempt| run_name(&state.agent_id, task, attempt.seq));
            running(shared, name, range).await.map(|piece| (open.status(), piece))
        }
        None => ended(shared, state, task, range).await,
    };
    match read {
        Ok((status, piece)) => viewed(shown(task, status, offset, piece)),
        Err(end) => (end, Vec::new()),
    }
}

/// A character that the page ends within begins the next one.
fn shown(task: TaskId, status: TaskStatus, offset: u64, (mut bytes, kept_bytes): Piece) -> String {
    let start = offset.min(kept_bytes);
    if start + (bytes.len() as u64) < kept_bytes {
        bytes.truncate(bytes.len() - unfinished(&bytes));
    }
    let end = start + bytes.len() as u64;
    json!({
        "task_id": task, "status": status.name(), "offset": start, "next_offset": end,
        "output": String::from_utf8_lossy(&bytes), "output_bytes": kept_bytes, "truncated": end < kept_bytes,
    })
    .to_string()
}

/// A command that has not begun has written nothing.
async fn running(shared: &Arc<Shared>, name: Option<String>, (offset, bytes_max): Range) -> Result<Piece, CallEnd> {
    let Some(name) = name else { return Ok(Piece::default()) };
    let shared = shared.clone();
    let read = tokio::task::spawn_blocking(move || shared.processes.output_from(&name, offset, bytes_max)).await;
    read.map_err(|error| fault(&error))?.map_err(|error| fault(&error))
}

async fn ended(
    shared: &Arc<Shared>,
    state: &AgentState,
    task: TaskId,
    range: Range,
) -> Result<(TaskStatus, Piece), CallEnd> {
    let row = shared.store.record(&state.agent_id, RecordKind::Task, task.0).map_err(|error| fault(&error))?;
    let row = row.ok_or_else(|| refused("not_found", "there is no such task"))?;
    let event = reader::event(&*shared.store, &state.agent_id, row.last).map_err(|error| fault(&error))?;
    let Some(Event::Task(TaskEvent::Exited(exited))) = event.map(|event| event.envelope.event) else {
        return Err(refused("not_found", "the task's end is not recorded"));
    };
    let piece = kept(shared, &exited.output, range).await.map_err(|error| fault(&error))?;
    Ok((exited.status, piece))
}

/// A part of the kept file, or of what was shown where that was all.
async fn kept(shared: &Arc<Shared>, output: &CommandOutput, (offset, bytes_max): Range) -> Result<Piece, SubmitError> {
    let Some(kept) = &output.kept else {
        let text = Handle { shared: shared.clone() }.text(output.shown.clone()).await?;
        let (from, bytes) = (usize::try_from(offset).unwrap_or(usize::MAX), text.len() as u64);
        let part = text.into_bytes().into_iter().skip(from).take(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        return Ok((part.collect(), bytes));
    };
    let (blobs, hash) = (shared.blobs.clone(), kept.hash);
    blocking(move || blobs.read_from(&hash, offset, bytes_max).map_err(SubmitError::from)).await
}

fn fault(error: &dyn std::fmt::Display) -> CallEnd {
    refused("unavailable", &error.to_string())
}
