//! A capability's URL: it goes into a file that only the user's own programs may read, its hash into the ledger.
//!
//! The files of all agents lie in one folder, so that a boot finds those that open nothing without looking at every
//! agent. It is outside of the homes, where a tool could read a URL into the ledger.

use super::outside::{Ended, refused};
use crate::decide::call::CallEnd;
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::root::private::Private;
use crate::runtime::root::write::Takes;
use crate::runtime::root::{FileError, Root};
use crate::runtime::source::{CAPABILITY_PREFIX, Token};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, TriggerId};
use crate::words::limit::TRIGGER_FILE_BYTES_MAX;
use rustix::fs::Mode;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The path below the server by which a token is used.
pub(in crate::runtime) fn path(mode: &str, token: &Token) -> String {
    format!("/callbacks/{mode}/{}", token.expose())
}

/// Draws the capability that a call asks for. What an attempt that died has left is written over.
pub(super) fn create(shared: &Shared, state: &AgentState) -> Ended {
    let trigger = state.waiting.last_trigger.next();
    let drawn = Token::draw(CAPABILITY_PREFIX).map_err(FileError::from).and_then(|token| {
        let file = write(shared, &state.agent_id, trigger, &token)?;
        Ok(CallEnd::Trigger { token_hash: token.hash(), file: file.to_string_lossy().into_owned() })
    });
    (drawn.unwrap_or_else(|error| refused("unavailable", &error.to_string())), Vec::new())
}

/// The URL with either mode: which one holds is the capability's affair.
fn write(shared: &Shared, agent: &AgentId, trigger: TriggerId, token: &Token) -> Result<PathBuf, FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(shared.home_folder().join(FOLDER))?;
    let base = &shared.settings.callback_base_url;
    let urls = format!("{base}{}\n{base}{}\n", path("wake", token), path("enqueue", token));
    let (root, file) = (folder(shared)?, file(agent, trigger));
    root.write(&file, urls.as_bytes(), Mode::RUSR | Mode::WUSR, Takes::Place)?;
    Ok(root.path().join(file))
}

/// Where the files lie, in the home.
const FOLDER: &str = "triggers";

fn folder(shared: &Shared) -> Result<Root, FileError> {
    let home = shared.home_folder();
    Root::open(&home.join(FOLDER), Private::of_home(home, [FOLDER.into()]))
}

fn file(agent: &AgentId, trigger: TriggerId) -> PathBuf {
    PathBuf::from(format!("{agent}-{trigger}.url"))
}

/// Removes the URL of a capability that was revoked.
pub(in crate::runtime) fn forget(shared: &Shared, agent: &AgentId, trigger: TriggerId) {
    match folder(shared).and_then(|root| root.remove(&file(agent, trigger))) {
        Ok(()) | Err(FileError::Missing) => {}
        Err(error) => {
            tracing::warn!(%agent, %trigger, %error, "a revoked URL cannot be removed; the next boot tries again");
        }
    }
}

/// Removes the URLs that open nothing: a crash came between a file and its event, or between a revocation and its file.
pub(in crate::runtime) fn sweep(shared: &Shared) {
    let listed = folder(shared).and_then(|root| Ok((root.entries(Path::new(""), usize::MAX)?, root)));
    let (entries, root) = match listed {
        Err(FileError::Missing) => return,
        Err(error) => return tracing::warn!(%error, "the URLs of external triggers cannot be listed"),
        Ok(listed) => listed,
    };
    for entry in entries {
        if let Err(error) = sweep_one(shared, &root, &entry.path) {
            tracing::warn!(%error, "a URL cannot be looked at or removed; the next boot tries again");
        }
    }
}

/// A file that was not finished holds no token, and opens nothing either.
fn sweep_one(shared: &Shared, root: &Root, path: &Path) -> Result<(), FileError> {
    let bytes = root.read_own(path, TRIGGER_FILE_BYTES_MAX)?.0;
    let url = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let token = url.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match shared.store.token(&Hash::of(token)).map_err(io::Error::other)? {
        Some(_) => Ok(()),
        None => root.remove(path),
    }
}
