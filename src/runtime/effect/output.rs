//! Pages of a task's kept output, for tasks that run, that ended, or that the state has forgotten.

use super::command::{run_name, shown_bytes_max};
use super::outside::{Ended, refused, viewed};
use crate::decide::Rejection;
use crate::events::task::{CommandOutput, TaskStatus};
use crate::events::{Event, TaskEvent};
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::StoreError;
use crate::ledger::reader;
use crate::runtime::handle::{Handle, SubmitError, blocking};
use crate::runtime::process::unfinished;
use crate::words::id::{AgentId, TaskId};
use serde_json::{Value, json};

/// A task that has not ended, as its output is found.
pub(in crate::runtime) struct Open {
    status: TaskStatus,
    /// The run that writes it; none before the first.
    run: Option<String>,
}

/// The byte to begin at, and the most bytes.
type Range = (u64, u64);

/// Bytes of kept output, and how many are kept in all.
type Piece = (Vec<u8>, u64);

impl Open {
    pub(in crate::runtime) fn of(state: &AgentState, task: TaskId) -> Option<Self> {
        let open = state.tasks.open.get(&task)?;
        let run = open.attempt.map(|attempt| run_name(&state.agent_id, task, attempt.seq));
        Some(Self { status: open.status(), run })
    }
}

/// The bytes from `offset` on, as far as the call wants to be shown them.
pub(super) async fn page(handle: &Handle, state: &AgentState, task: TaskId, offset: u64, tokens: u32) -> Ended {
    let (open, bytes_max) = (Open::of(state, task), shown_bytes_max(tokens) as u64);
    match read(handle, &state.agent_id, open, task, (offset, bytes_max)).await {
        Ok(shown) => viewed(shown.to_string()),
        Err(SubmitError::Rejected(rejection)) => (refused(rejection.code(), &rejection.to_string()), Vec::new()),
        Err(error) => (refused("unavailable", &error.to_string()), Vec::new()),
    }
}

/// A page of output as JSON.
pub(in crate::runtime) async fn read(
    handle: &Handle,
    agent: &AgentId,
    open: Option<Open>,
    task: TaskId,
    range: Range,
) -> Result<Value, SubmitError> {
    let (status, piece) = match open {
        Some(Open { status, run }) => (status, running(handle, run, range).await?),
        None => ended(handle, agent, task, range).await?,
    };
    Ok(shown(task, status, range.0, piece))
}

/// A character that the page ends within begins the next one.
fn shown(task: TaskId, status: TaskStatus, offset: u64, (mut bytes, kept_bytes): Piece) -> Value {
    let start = offset.min(kept_bytes);
    if start + (bytes.len() as u64) < kept_bytes {
        bytes.truncate(bytes.len() - unfinished(&bytes));
    }
    let end = start + bytes.len() as u64;
    json!({
        "task_id": task, "status": status.name(), "offset": start, "next_offset": end,
        "output": String::from_utf8_lossy(&bytes), "output_bytes": kept_bytes, "truncated": end < kept_bytes,
    })
}

/// A command that has not begun has written nothing; what one that has just gone left is told by the task's end.
async fn running(handle: &Handle, run: Option<String>, (offset, bytes_max): Range) -> Result<Piece, SubmitError> {
    let Some(run) = run else { return Ok(Piece::default()) };
    let shared = handle.shared.clone();
    blocking(move || {
        let piece = shared.processes.output_from(&run, offset, bytes_max);
        Ok::<_, StoreError>(piece.unwrap_or_default())
    })
    .await
}

async fn ended(
    handle: &Handle,
    agent: &AgentId,
    task: TaskId,
    range: Range,
) -> Result<(TaskStatus, Piece), SubmitError> {
    let ledger_id = agent.clone();
    let event = handle.ledger(agent, move |store| match store.record(&ledger_id, RecordKind::Task, task.0)? {
        Some(row) => reader::event(store, &ledger_id, row.last),
        None => Ok(None),
    });
    let Some(Event::Task(TaskEvent::Exited(exited))) = event.await?.map(|event| event.envelope.event) else {
        return Err(Rejection::Unknown { what: "task", id: task.to_string() }.into());
    };
    Ok((exited.status, kept(handle, &exited.output, range).await?))
}

/// A part of the kept file, or of what was shown where that was all.
async fn kept(handle: &Handle, output: &CommandOutput, (offset, bytes_max): Range) -> Result<Piece, SubmitError> {
    let Some(kept) = &output.kept else {
        let text = handle.text(output.shown.clone()).await?;
        let (from, bytes) = (usize::try_from(offset).unwrap_or(usize::MAX), text.len() as u64);
        let part = text.into_bytes().into_iter().skip(from).take(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        return Ok((part.collect(), bytes));
    };
    let (shared, hash) = (handle.shared.clone(), kept.hash);
    blocking(move || shared.blobs.read_from(&hash, offset, bytes_max).map_err(SubmitError::from)).await
}
