//! The chain: each record is linked to all before it, and the first link names the agent (architecture 14).
//!
//! Genesis is `blake3(FORMAT || agent_id)`; then `hash = blake3(previous hash || record bytes)`.

use super::{Head, Records};
use crate::events::Envelope;
use crate::events::codec::{self, CodecError};
use crate::events::payload::payloads;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::ANCHOR_EVENTS;

/// Begins every chain. Another record format would bring another name.
const FORMAT: &[u8] = b"holon ledger 1\n";

/// The head of a ledger without events.
pub fn genesis(agent: &AgentId) -> Head {
    let mut hasher = blake3::Hasher::new();
    hasher.update(FORMAT).update(agent.as_str().as_bytes());
    Head { seq: EventSeq::ZERO, hash: Hash(*hasher.finalize().as_bytes()) }
}

/// The head after one more record.
pub fn link(head: Head, record: &[u8]) -> Head {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head.hash.0).update(record);
    Head { seq: head.seq.next(), hash: Hash(*hasher.finalize().as_bytes()) }
}

/// Events encoded and linked, ready for an append.
#[derive(Debug)]
pub struct Linked {
    pub records: Records,
    pub anchors: Vec<Head>,
    /// Payloads that the events name.
    pub payloads: Vec<Hash>,
    pub head: Head,
}

/// Encodes `envelopes` and links them to `head`.
pub fn extend(head: Head, envelopes: &[Envelope]) -> Result<Linked, CodecError> {
    let mut linked = Linked { records: Records::default(), anchors: Vec::new(), payloads: Vec::new(), head };
    for envelope in envelopes {
        let record = linked.records.push_with(|bytes| codec::encode(envelope, bytes))?;
        linked.head = link(linked.head, record);
        assert_eq!(linked.head.seq, envelope.seq, "events are staged in their order");
        if envelope.seq.0.is_multiple_of(ANCHOR_EVENTS) {
            linked.anchors.push(linked.head);
        }
        linked.payloads.extend(payloads(&envelope.event).iter().map(|payload| payload.hash));
    }
    Ok(linked)
}
