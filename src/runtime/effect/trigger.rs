//! Drawing a capability: its URL goes into a file that only the agent's commands may read, its hash into the ledger.

use super::outside::{Ended, refused};
use super::workspace::home;
use crate::decide::call::CallEnd;
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::source::Token;
use crate::words::id::{AgentId, TriggerId};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// The path below the server by which a token is used.
pub(in crate::runtime) fn path(mode: &str, token: &Token) -> String {
    format!("/callbacks/{mode}/{}", token.expose())
}

/// Draws the capability that a call asks for. What an attempt that died has left is written over.
pub(super) fn create(shared: &Shared, state: &AgentState) -> Ended {
    let trigger = state.waiting.last_trigger.next();
    let drawn = Token::draw().and_then(|token| {
        let file = write(shared, &state.agent_id, trigger, &token)?;
        Ok(CallEnd::Trigger { token_hash: token.hash(), file: file.to_string_lossy().into_owned() })
    });
    (drawn.unwrap_or_else(|error| refused("unavailable", &error.to_string())), Vec::new())
}

/// The URL with either mode: which one holds is the capability's affair.
fn write(shared: &Shared, agent: &AgentId, trigger: TriggerId, token: &Token) -> io::Result<PathBuf> {
    let file = file(shared, agent, trigger);
    fs::create_dir_all(file.parent().unwrap_or(&file))?;
    let mut options = fs::File::options();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&file)?;
    let base = &shared.settings.callback_base_url;
    writeln!(opened, "{base}{}\n{base}{}", path("wake", token), path("enqueue", token))?;
    opened.sync_all()?;
    Ok(file)
}

fn file(shared: &Shared, agent: &AgentId, trigger: TriggerId) -> PathBuf {
    home(shared, agent).join("triggers").join(format!("{trigger}.url"))
}
