//! Input for a running command: written down as often as it takes, and fed to the command once by its supervisor.

use crate::decide::Request;
use crate::decide::task::TaskCommand;
use crate::events::Cause;
use crate::events::agent::ErrandOutcome;
use crate::fold::task::Input;
use crate::runtime::effect::command::owner;
use crate::runtime::handle::{Handle, SubmitError};
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::process::InputError;
use crate::words::id::{EventSeq, TaskId};
use std::sync::Arc;
use std::time::Duration;

/// First and longest wait before input that could not be given is given again.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Why a command has not been given its input yet.
#[derive(Debug, thiserror::Error)]
enum GiveError {
    #[error(transparent)]
    Text(#[from] SubmitError),
    #[error(transparent)]
    Input(#[from] InputError),
}

/// Gives `input` to the command whose run folder is `name`, once the command has begun. What a command that has ended
/// was owed is closed by its end.
///
/// Nothing is passed over: later input would be fed with a hole before it.
pub(in crate::runtime) async fn deliver(
    shared: Arc<Shared>,
    name: String,
    (task, entry): (TaskId, EventSeq),
    input: Input,
) -> What {
    let mut wait = RETRY_FIRST;
    loop {
        match give(&shared, &name, &input).await {
            Ok(()) => {
                let command = TaskCommand::InputDelivered { task, entry, outcome: ErrandOutcome::Taken };
                return What::command(Request::new(command, Cause::Runtime));
            }
            Err(GiveError::Input(error @ (InputError::Ended | InputError::NotAccepted))) => {
                tracing::warn!(agent = owner(&name), name, %task, %error, "input did not reach its command");
                return What::Nothing;
            }
            Err(GiveError::Input(InputError::NotBegun)) => {}
            Err(error) => {
                tracing::warn!(agent = owner(&name), name, %task, %error, "input cannot be given to its command yet");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

async fn give(shared: &Arc<Shared>, name: &str, input: &Input) -> Result<(), GiveError> {
    let text = Handle { shared: shared.clone() }.text(input.text.clone()).await?;
    Ok(shared.processes.give_input(name, input.offset, text.as_bytes())?)
}
