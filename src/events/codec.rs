//! Events to bytes and back. The only file that names bincode.
//!
//! A record is the bincode of `(tag, version, event_seq, at, cause)` followed by the bincode of the body, in the
//! standard configuration: little-endian, variable-length integers. `ledger-schema/README.md` gives it byte by byte.

use super::vocabulary::KindRow;
use super::{Cause, Envelope, Event, PLANES, upcast};
use crate::words::id::EventSeq;
use crate::words::limit::EVENT_BYTES_MAX;
use crate::words::time::Timestamp;
use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bincode reckons each integer at its full width of up to eight bytes, though one byte may hold it. Whatever may be
/// written must be readable, so its limit only bounds what a length that lies can reserve.
const RESERVED_BYTES_MAX: usize = 8 * EVENT_BYTES_MAX;

const WIRE: Configuration<LittleEndian, Varint, Limit<RESERVED_BYTES_MAX>> =
    bincode::config::standard().with_limit::<RESERVED_BYTES_MAX>();

/// Bytes that are not an event of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("unknown event tag {0:#06x}")]
    UnknownTag(u16),
    #[error("event tag {tag:#06x} has the unknown version {version}")]
    UnknownVersion { tag: u16, version: u8 },
    #[error("{0} bytes are left over after the event")]
    LeftOver(usize),
    #[error("an event of {0} bytes is over the limit of {EVENT_BYTES_MAX}")]
    TooLong(usize),
    #[error("malformed bytes: {0}")]
    Malformed(String),
}

/// Appends the record of `envelope`.
pub fn encode(envelope: &Envelope, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = bytes.len();
    let tag = envelope.event.tag();
    let version = row(tag).ok_or(CodecError::UnknownTag(tag))?.version;
    append(bytes, &(tag, version, envelope.seq, envelope.at, &envelope.cause))?;
    envelope.event.encode_body(bytes)?;
    let written = bytes.len() - start;
    if written > EVENT_BYTES_MAX { Err(CodecError::TooLong(written)) } else { Ok(()) }
}

/// Reads one record, which must use every byte.
pub fn decode(bytes: &[u8]) -> Result<Envelope, CodecError> {
    if bytes.len() > EVENT_BYTES_MAX {
        return Err(CodecError::TooLong(bytes.len()));
    }
    let ((tag, version, seq, at, cause), head): ((u16, u8, EventSeq, Timestamp, Cause), usize) = read(bytes)?;
    let today = row(tag).ok_or(CodecError::UnknownTag(tag))?.version;
    let body = upcast::lift(tag, version, today, &bytes[head..])?;
    Ok(Envelope { seq, at, cause, event: Event::decode_body(tag, body)? })
}

/// The version in which an event's body is written.
pub fn version(event: &Event) -> u8 {
    row(event.tag()).map_or(0, |row| row.version)
}

/// The kind that `tag` marks.
fn row(tag: u16) -> Option<&'static KindRow> {
    PLANES.iter().flat_map(|(_, kinds)| kinds.iter()).find(|kind| kind.tag == tag)
}

/// Any value of ours to bytes: checkpoints and derived rows share the events' form.
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, bincode::config::standard()).expect("encoding into memory cannot fail")
}

/// The reverse of [`to_bytes`], using every byte. Only for bytes whose integrity was checked: there is no bound.
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, read) = bincode::serde::decode_from_slice(bytes, bincode::config::standard()).map_err(malformed)?;
    whole(value, bytes.len() - read)
}

pub(super) fn append<T: Serialize>(bytes: &mut Vec<u8>, value: &T) -> Result<(), CodecError> {
    bincode::serde::encode_into_std_write(value, bytes, WIRE)
        .map(|_| ())
        .map_err(|error| CodecError::Malformed(error.to_string()))
}

pub(super) fn read_whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (value, used) = read(bytes)?;
    whole(value, bytes.len() - used)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), CodecError> {
    bincode::serde::decode_from_slice(bytes, WIRE).map_err(malformed)
}

fn whole<T>(value: T, left_over: usize) -> Result<T, CodecError> {
    if left_over == 0 { Ok(value) } else { Err(CodecError::LeftOver(left_over)) }
}

fn malformed(error: bincode::error::DecodeError) -> CodecError {
    CodecError::Malformed(error.to_string())
}
