//! The verified fold of a ledger beside the bare chain of blake3 over the same bytes.

#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    dead_code,
    unreachable_pub,
    reason = "a benchmark reads the clock, prints, may fail by a panic, and shares more than each one uses"
)]

mod common;

use common::ledger::Author;
use common::{Target, figure, folder, in_turns, median, scale, timed, title};
use holon::ledger::memory::MemoryStore;
use holon::ledger::redb::RedbStore;
use holon::ledger::{Head, Records, Store, chain, reader};
use holon::words::id::EventSeq;

const ROUNDS: usize = 7;
const EVENTS: u64 = 100_000;

fn main() {
    title("fold");
    let events = EVENTS * scale() as u64;
    let folder = folder();
    let durable = RedbStore::open(&folder.path().join("ledger.redb")).expect("a new file");
    measure("from redb", &durable, events);
    measure("from memory", &MemoryStore::default(), events);
}

fn measure(name: &str, store: &dyn Store, events: u64) {
    let mut author = Author::new("main");
    author.write_history(store, events);
    let agent = author.id();
    let records = store.records(&agent, EventSeq::ZERO, EventSeq(events)).expect("the records");
    let bytes = records.bytes() as f64;
    let ours = || {
        let ((_, head), duration) = timed(|| reader::fold(store, &agent).expect("a whole ledger"));
        assert_eq!(head, author.head);
        bytes / duration.as_secs_f64() / 1e6
    };
    let bare = || {
        let (head, duration) = timed(|| link_all(chain::genesis(&agent), &records));
        assert_eq!(head, author.head);
        bytes / duration.as_secs_f64() / 1e6
    };
    let (ours, bare) = in_turns(ROUNDS, ours, bare);
    let what = format!("{events} events {name}, {:.0} bytes each", bytes / events as f64);
    figure(&what, median(&ours), median(&bare), "MB/s", Target::AtLeast(0.6));
}

/// The chain alone, by blake3 as it is.
fn link_all(mut head: Head, records: &Records) -> Head {
    for record in records.iter() {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head.hash.0).update(record);
        head.hash.0 = *hasher.finalize().as_bytes();
        head.seq = head.seq.next();
    }
    head
}
