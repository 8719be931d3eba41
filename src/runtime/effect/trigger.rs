//! A capability's URL: it goes into a file that only the user's own programs may read, its hash into the ledger.
//!
//! The files of all agents lie in one folder, so that a boot finds those that open nothing without looking at every
//! agent. It is outside of the homes, where a tool could read a URL into the ledger.

use super::outside::{Ended, refused};
use crate::decide::call::CallEnd;
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::source::{CAPABILITY_PREFIX, Token};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, TriggerId};
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The path below the server by which a token is used.
pub(in crate::runtime) fn path(mode: &str, token: &Token) -> String {
    format!("/callbacks/{mode}/{}", token.expose())
}

/// Draws the capability that a call asks for. What an attempt that died has left is written over.
pub(super) fn create(shared: &Shared, state: &AgentState) -> Ended {
    let trigger = state.waiting.last_trigger.next();
    let drawn = Token::draw(CAPABILITY_PREFIX).and_then(|token| {
        let file = write(shared, &state.agent_id, trigger, &token)?;
        Ok(CallEnd::Trigger { token_hash: token.hash(), file: file.to_string_lossy().into_owned() })
    });
    (drawn.unwrap_or_else(|error| refused("unavailable", &error.to_string())), Vec::new())
}

/// The URL with either mode: which one holds is the capability's affair.
fn write(shared: &Shared, agent: &AgentId, trigger: TriggerId, token: &Token) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder(shared))?;
    let file = file(shared, agent, trigger);
    let mut options = fs::File::options();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&file)?;
    let base = &shared.settings.callback_base_url;
    writeln!(opened, "{base}{}\n{base}{}", path("wake", token), path("enqueue", token))?;
    opened.sync_all()?;
    Ok(file)
}

fn folder(shared: &Shared) -> PathBuf {
    shared.agents_folder.with_file_name("triggers")
}

fn file(shared: &Shared, agent: &AgentId, trigger: TriggerId) -> PathBuf {
    folder(shared).join(format!("{agent}-{trigger}.url"))
}

/// Removes the URL of a capability that was revoked.
pub(in crate::runtime) fn forget(shared: &Shared, agent: &AgentId, trigger: TriggerId) {
    match fs::remove_file(file(shared, agent, trigger)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%agent, %trigger, %error, "a revoked URL cannot be removed; the next boot tries again");
        }
        Ok(()) | Err(_) => {}
    }
}

/// Removes the URLs that open nothing: a crash came between a file and its event, or between a revocation and its file.
pub(in crate::runtime) fn sweep(shared: &Shared) {
    let entries = match fs::read_dir(folder(shared)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return tracing::warn!(%error, "the URLs of external triggers cannot be listed"),
        Ok(entries) => entries,
    };
    for entry in entries {
        if let Err(error) = entry.and_then(|entry| sweep_one(shared, &entry.path())) {
            tracing::warn!(%error, "a URL cannot be looked at or removed; the next boot tries again");
        }
    }
}

/// A file that was not finished holds no token, and opens nothing either.
fn sweep_one(shared: &Shared, path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let url = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let token = url.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match shared.store.token(&Hash::of(token)).map_err(io::Error::other)? {
        Some(_) => Ok(()),
        None => fs::remove_file(path),
    }
}
