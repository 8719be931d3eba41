//! Input for a running command: written once, or not at all when the runtime goes down in between (architecture 11).

use crate::decide::Request;
use crate::decide::task::TaskCommand;
use crate::events::Cause;
use crate::runtime::handle::Handle;
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::process::Found;
use crate::words::content::Content;
use crate::words::id::{EventSeq, TaskId};
use std::sync::Arc;

/// Writes `text` to the command whose run folder is `name`.
pub(in crate::runtime) async fn write(
    shared: Arc<Shared>,
    name: String,
    (task, entry): (TaskId, EventSeq),
    text: Content,
) -> What {
    if let Err(error) = feed(&shared, &name, entry, text).await {
        tracing::warn!(name, %task, %error, "input did not reach its command");
    }
    What::command(Request::new(TaskCommand::InputDelivered { task, entry }, Cause::Runtime))
}

/// The mark comes before the writing: a boot that finds it does not write again.
async fn feed(shared: &Arc<Shared>, name: &str, entry: EventSeq, text: Content) -> Result<(), String> {
    let text = Handle { shared: shared.clone() }.text(text).await.map_err(|error| error.to_string())?;
    if !shared.processes.mark_input(name, entry.0).map_err(|error| error.to_string())? {
        return Err("the runtime went down while it was written, so it is not written again".into());
    }
    match shared.processes.find(name).map_err(|error| error.to_string())? {
        Found::Running(running) => running.send_input(text.as_bytes()).await.map_err(|error| error.to_string()),
        Found::Ended(_) | Found::Lost(_) | Found::NeverBegan => Err("the command does not run".into()),
    }
}
