//! Reading what a prompt is made of.

use crate::context::{self, Contents};
use crate::ledger::Store;
use crate::ledger::blob::Blobs;
use crate::ledger::reader;
use crate::words::id::{AgentId, EventSeq};

/// The events at `needs` and the payloads they name. What cannot be read is left out: rendering tells what it misses.
pub(in crate::runtime) fn contents(store: &dyn Store, blobs: &Blobs, agent: &AgentId, needs: &[EventSeq]) -> Contents {
    let mut contents = Contents { asked: needs.to_vec(), ..Contents::default() };
    for seq in needs {
        let event = match reader::event(store, agent, *seq) {
            Ok(Some(event)) => event.envelope,
            Ok(None) => continue,
            Err(error) => {
                tracing::error!(%agent, %seq, %error, "an event of a prompt cannot be read");
                continue;
            }
        };
        if let Some(hash) = context::names(&event.event) {
            match blobs.read(&hash) {
                Ok(bytes) => drop(contents.blobs.insert(hash, bytes)),
                Err(error) => tracing::error!(%agent, %seq, %error, "a payload of a prompt cannot be read"),
            }
        }
        contents.events.insert(*seq, event);
    }
    contents
}
