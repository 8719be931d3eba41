//! The bytes of the ledger: pinned, refused when they are not ours, and never a reason to panic.

use crate::pinned;
use crate::sample;
use holon::events::codec::{self, CodecError};
use holon::events::operator::{BriefCreated, BriefKind};
use holon::events::{Cause, Envelope, Event, PLANES, TurnEvent};
use holon::words::content::Content;
use holon::words::id::{BriefId, EventSeq, MessageId};
use holon::words::limit::EVENT_BYTES_MAX;
use holon::words::time::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One record of each kind, as the first release wrote it: `kind hexadecimal`.
const GOLDEN: &str = "tests/it/golden/records.txt";

fn encode(envelope: &Envelope) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(envelope, &mut bytes).expect("samples are within their bounds");
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing into a string");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits");
    text.as_bytes().chunks(2).map(digits).collect()
}

#[test]
fn every_kind_has_its_pinned_bytes() {
    let today: BTreeMap<&str, String> =
        sample::envelopes().iter().map(|envelope| (envelope.event.kind(), hex(&encode(envelope)))).collect();
    let path = pinned::path(GOLDEN);
    let text = if path.exists() { pinned::read_text(&path) } else { String::new() };
    let golden: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    for (kind, bytes) in &golden {
        assert_eq!(today.get(kind).map(String::as_str), Some(*bytes), "the bytes of a {kind} have changed");
    }
    let missing: Vec<&&str> = today.keys().filter(|kind| !golden.contains_key(*kind)).collect();
    if pinned::is_writing("UPDATE_GOLDEN") {
        let text: String = today.iter().map(|(kind, bytes)| format!("{kind} {bytes}\n")).collect();
        pinned::write(&path, text.as_bytes());
    } else {
        assert!(missing.is_empty(), "{missing:?} have no pinned bytes: `UPDATE_GOLDEN=1 cargo test codec` adds them");
    }
}

#[test]
fn every_kind_has_a_sample_and_reads_back_as_it_was() {
    let samples = sample::envelopes();
    for kind in PLANES.iter().flat_map(|(_, kinds)| kinds.iter()) {
        let sample = samples.iter().find(|envelope| envelope.event.kind() == kind.kind);
        let sample = sample.unwrap_or_else(|| panic!("{} has no sample", kind.kind));
        assert_eq!(sample.event.tag(), kind.tag);
        assert_eq!(codec::decode(&encode(sample)).as_ref(), Ok(sample));
    }
}

#[test]
fn tags_are_given_once() {
    let mut tags = BTreeMap::new();
    for kind in PLANES.iter().flat_map(|(_, kinds)| kinds.iter()) {
        let before = tags.insert(kind.tag, kind.kind);
        assert_eq!(before, None, "{} takes the tag of another kind", kind.kind);
    }
}

#[test]
fn a_record_that_is_cut_anywhere_is_refused() {
    for envelope in sample::envelopes() {
        let bytes = encode(&envelope);
        for end in 0..bytes.len() {
            assert!(codec::decode(&bytes[..end]).is_err(), "{} cut at byte {end}", envelope.event.kind());
        }
    }
}

#[test]
fn bytes_that_are_left_over_are_refused() {
    for envelope in sample::envelopes() {
        let mut bytes = encode(&envelope);
        bytes.push(0);
        assert_eq!(codec::decode(&bytes), Err(CodecError::LeftOver(1)), "{}", envelope.event.kind());
    }
}

#[test]
fn unknown_tags_and_versions_are_named() {
    // A record begins with its tag, here of two bytes behind their mark, and its version.
    let bytes = encode(&sample::envelopes()[0]);
    assert_eq!(bytes[..4], [251, 0x01, 0x01, 1]);
    let changed = |index: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[index] = byte;
        codec::decode(&bytes)
    };
    assert_eq!(changed(1, 0xEE), Err(CodecError::UnknownTag(0x01EE)));
    assert_eq!(changed(3, 9), Err(CodecError::UnknownVersion { tag: 0x0101, version: 9 }));
}

/// An event whose record has exactly `bytes` bytes.
fn of_size(bytes: usize) -> Envelope {
    let brief = |length: usize| Envelope {
        seq: EventSeq(1),
        at: Timestamp(0),
        cause: Cause::Runtime,
        event: BriefCreated {
            work: None,
            brief: BriefId(1),
            kind: BriefKind::Result,
            run: None,
            message: None,
            text: Content::Inline("x".repeat(length)),
        }
        .into(),
    };
    let mut record = Vec::new();
    codec::encode(&brief(100_000), &mut record).expect("it is within the bound");
    brief(bytes + 100_000 - record.len())
}

#[test]
fn a_record_over_the_bound_is_neither_written_nor_read() {
    let longest = encode(&of_size(EVENT_BYTES_MAX));
    assert_eq!(longest.len(), EVENT_BYTES_MAX);
    assert!(codec::decode(&longest).is_ok());

    let refused = codec::encode(&of_size(EVENT_BYTES_MAX + 1), &mut Vec::new());
    assert_eq!(refused, Err(CodecError::TooLong(EVENT_BYTES_MAX + 1)));
    assert_eq!(codec::decode(&vec![0; EVENT_BYTES_MAX + 1]), Err(CodecError::TooLong(EVENT_BYTES_MAX + 1)));
}

#[test]
fn whatever_can_be_written_can_be_read_however_small_its_numbers() {
    let mut requested = sample::envelopes().into_iter().find(|envelope| envelope.event.kind() == "round_requested");
    let Some(Event::Turn(TurnEvent::RoundRequested(event))) = requested.as_mut().map(|envelope| &mut envelope.event)
    else {
        panic!("it is among the samples");
    };
    event.interjections = vec![MessageId(1); EVENT_BYTES_MAX - 1_000];
    let envelope = requested.expect("it was found");
    assert_eq!(codec::decode(&encode(&envelope)), Ok(envelope));
}

#[test]
fn a_length_that_lies_reserves_no_memory() {
    let mut bytes = encode(&of_size(300));
    let length = bytes.len();
    // The text's length stands right before its 'x's: 251 and two bytes.
    let text = bytes.iter().position(|byte| *byte == b'x').expect("the text is there");
    bytes.splice(text - 3..text, [253, 255, 255, 255, 255, 255, 255, 255, 127]);
    assert_eq!(bytes.len(), length + 6);
    assert!(matches!(codec::decode(&bytes), Err(CodecError::Malformed(_))));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        drop(codec::decode(&bytes));
    }

    #[test]
    fn changed_records_never_panic_and_never_pass_for_another_length(
        which in any::<prop::sample::Index>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let samples = sample::envelopes();
        let mut bytes = encode(which.get(&samples));
        for (place, byte) in flips {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(envelope) = codec::decode(&bytes) {
            let again = encode(&envelope);
            prop_assert_eq!(codec::decode(&again), Ok(envelope), "what was read can be written");
        }
    }
}

/// Tag, version, position, time, a small number, bytes, text, none, some, a list.
type Shape = (u16, u8, u64, i64, u32, Vec<u8>, String, Option<u64>, Option<String>, Vec<(u32, bool)>);

fn shape() -> Shape {
    let list = vec![(0, true), (250, false), (251, true), (65_536, false), (u32::MAX, true)];
    (0x0301, 1, u64::MAX, -1_795_167_000_000, 300, vec![7; 300], "ünïcode".into(), None, Some("x".into()), list)
}

#[test]
fn another_reader_of_the_format_agrees_on_its_bytes() {
    let varint = wincode::config::Configuration::default().with_varint_encoding();
    let ours = codec::to_bytes(&shape());
    assert_eq!(wincode::config::serialize(&shape(), varint).expect("it can be written"), ours);
    assert_eq!(wincode::config::deserialize::<Shape, _>(&ours, varint).expect("it can be read"), shape());
}

#[test]
fn every_pinned_record_reads_as_its_kind() {
    for line in pinned::read_text(&pinned::path(GOLDEN)).lines() {
        let (kind, bytes) = line.split_once(' ').expect("a kind and its bytes");
        let envelope = codec::decode(&unhex(bytes)).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(envelope.event.kind(), kind);
    }
}
