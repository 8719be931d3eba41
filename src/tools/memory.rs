//! Tools of the memory plane.

use super::work::work;
use super::{Tool, invalid, read, schema_of, text};
use crate::decide::profile::Family;
use crate::events::call::{Action, CallError, View};
use crate::words::content::Blob;
use crate::words::limit::NAME_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "MemoryUpdate",
        family: Family::Core,
        description: "Write a named note over, or remove it when no text is given. Notes are part of every prompt.",
        mutates: true,
        schema: schema_of::<MemoryUpdate>,
        read: |arguments, blobs| read::<MemoryUpdate>(arguments)?.action(blobs),
    },
    Tool {
        name: "MemoryGet",
        family: Family::Core,
        description: "Show one note, or all of them and the digests of past turns.",
        mutates: false,
        schema: schema_of::<MemoryGet>,
        read: |arguments, _| {
            let MemoryGet { entry } = read(arguments)?;
            Ok(Action::Look(View::Memory { entry: entry.map(name).transpose()? }))
        },
    },
];

/// Arguments of MemoryUpdate.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryUpdate {
    /// The note's name.
    entry: String,
    /// What it says; without it the note is removed.
    text: Option<String>,
    /// The work it is bound to, such as work-2.
    work_item_id: Option<String>,
}

/// Arguments of MemoryGet.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryGet {
    entry: Option<String>,
}

impl MemoryUpdate {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        let work = self.work_item_id.map(|id| work("work_item_id", &id)).transpose()?;
        let text = self.text.map(|note| text("text", note, blobs)).transpose()?;
        Ok(Action::UpdateMemory { entry: name(self.entry)?, text, work })
    }
}

fn name(entry: String) -> Result<String, CallError> {
    if entry.trim().is_empty() || entry.len() > NAME_BYTES_MAX || entry.contains('\n') {
        return Err(invalid("entry", "must be one line of 1 to 256 bytes", "choose a short name"));
    }
    Ok(entry)
}
