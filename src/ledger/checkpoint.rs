//! A saved fold, made and thrown away freely: it shortens a wake and changes no answer (architecture 21).

use super::Head;
use crate::events::codec;
use crate::fold::{AgentState, FOLD_VERSION};
use crate::words::hash::Hash;
use crate::words::id::EventSeq;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Header {
    fold_version: u32,
    seq: EventSeq,
    /// The link of the chain at `seq`.
    link: Hash,
    /// Of the state's bytes.
    own: Hash,
}

/// The checkpoint of `state`, whose ledger is at `head`.
pub fn encode(state: &AgentState, head: Head) -> Vec<u8> {
    assert_eq!(state.head, head.seq, "a checkpoint is of its head");
    let body = codec::to_bytes(state);
    let header = Header { fold_version: FOLD_VERSION, seq: head.seq, link: head.hash, own: Hash::of(&body) };
    let header = codec::to_bytes(&header);
    let mut bytes = vec![u8::try_from(header.len()).expect("a header is short")];
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(&body);
    bytes
}

/// The state and its head; none for anything but an intact checkpoint of this fold.
pub fn decode(bytes: &[u8]) -> Option<(AgentState, Head)> {
    let (length, rest) = bytes.split_first()?;
    let (header, body) = rest.split_at_checked(usize::from(*length))?;
    let header: Header = codec::from_bytes(header).ok()?;
    if header.fold_version != FOLD_VERSION || header.own != Hash::of(body) {
        return None;
    }
    let state: AgentState = codec::from_bytes(body).ok()?;
    (state.head == header.seq).then_some((state, Head { seq: header.seq, hash: header.link }))
}
