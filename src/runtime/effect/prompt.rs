//! Reading what a prompt is made of.

use crate::context::{self, Contents, Needs};
use crate::ledger::Store;
use crate::ledger::blob::Blobs;
use crate::ledger::reader;
use crate::words::hash::Hash;
use crate::words::id::AgentId;

/// The needed events, the payloads they name, and the needed texts. What cannot be read is left out: rendering tells
/// what it misses.
pub(in crate::runtime) fn contents(store: &dyn Store, blobs: &Blobs, agent: &AgentId, needs: &Needs) -> Contents {
    let mut contents = Contents { asked: needs.clone(), ..Contents::default() };
    for seq in &needs.events {
        let event = match reader::event(store, agent, *seq) {
            Ok(Some(event)) => event.envelope,
            Ok(None) => continue,
            Err(error) => {
                tracing::error!(%agent, %seq, %error, "an event of a prompt cannot be read");
                continue;
            }
        };
        if let Some(hash) = context::names(&event.event) {
            read(blobs, agent, hash, &mut contents);
        }
        contents.events.insert(*seq, event);
    }
    for hash in &needs.hashes {
        read(blobs, agent, *hash, &mut contents);
    }
    contents
}

fn read(blobs: &Blobs, agent: &AgentId, hash: Hash, contents: &mut Contents) {
    match blobs.read(&hash) {
        Ok(bytes) => drop(contents.blobs.insert(hash, bytes)),
        Err(error) => tracing::error!(%agent, %error, "a payload of a prompt cannot be read"),
    }
}
