//! The memory plane: notes of the agent, and the episodes that hold its turns.

use super::Rejection;
use super::queue::over;
use crate::events::Event;
use crate::events::memory::WorkingMemoryUpdated;
use crate::fold::AgentState;
use crate::words::content::Content;
use crate::words::id::WorkId;
use crate::words::limit::{MEMORY_BYTES_MAX, MEMORY_ENTRIES_MAX, MEMORY_ENTRY_BYTES_MAX};

/// Writes a note over, or removes it.
pub(super) fn update(
    state: &AgentState,
    entry: &str,
    text: Option<&Content>,
    work: Option<WorkId>,
) -> Result<Vec<Event>, Rejection> {
    let entries = &state.memory.entries;
    if let Some(work) = work.filter(|work| !state.works.open.contains_key(work)) {
        let reason = format!("names {work}, which is not open");
        return Err(Rejection::Invalid { field: "work_item_id", reason });
    }
    if text.is_some_and(|text| text.bytes() > MEMORY_ENTRY_BYTES_MAX as u64) {
        return Err(over("text", MEMORY_ENTRY_BYTES_MAX));
    }
    let others = entries.iter().filter(|(name, _)| *name != entry);
    let others_bytes: u64 = others.map(|(_, other)| other.text.bytes()).sum();
    if text.is_some_and(|text| others_bytes + text.bytes() > MEMORY_BYTES_MAX as u64) {
        let reason = format!("would make all notes longer than {MEMORY_BYTES_MAX} bytes; remove some");
        return Err(Rejection::Invalid { field: "text", reason });
    }
    match (text, entries.contains_key(entry)) {
        (None, false) => return Err(Rejection::Unknown { what: "note", id: entry.to_owned() }),
        (Some(_), false) if entries.len() >= MEMORY_ENTRIES_MAX => {
            return Err(Rejection::TooMany { what: "notes", max: MEMORY_ENTRIES_MAX });
        }
        (Some(_) | None, _) => {}
    }
    let (entry, text) = (entry.to_owned(), text.cloned());
    Ok(vec![WorkingMemoryUpdated { entry, text, work }.into()])
}
