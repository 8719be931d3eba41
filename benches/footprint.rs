//! What agents cost that do nothing: on the disk, in memory, in processor time.

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

use common::ledger::{Author, PAYLOAD_BYTES, commit, write_agents};
use common::server::{Server, prepare};
use common::{Target, alone, figure, folder, scale, title};
use holon::ledger::redb::RedbStore;
use redb::Database;
use std::time::Duration;

const DISK_AGENTS: usize = 100;
const EVENTS_PER_AGENT: usize = 2_000;
const EVENTS_PER_APPEND: usize = 4;
const IDLE_AGENTS: usize = 10_000;
/// How long idle agents are watched, times the scale, to at most what the project promises.
const IDLE: Duration = Duration::from_secs(10);
const IDLE_MAX: Duration = Duration::from_secs(30);
/// After a start the runtime has this long to come to rest.
const SETTLING: Duration = Duration::from_secs(2);

fn main() {
    disk();
    idle();
}

fn disk() {
    title("disk");
    let folder = folder();
    let path = folder.path().join("ledger.redb");
    let store = RedbStore::open(&path).expect("a new file");
    let mut authors: Vec<Author> = (0..DISK_AGENTS).map(|agent| Author::new(&format!("agent-{agent}"))).collect();
    write_agents(&store, &mut authors);
    let events = EVENTS_PER_AGENT * scale();
    for _ in 0..events / EVENTS_PER_APPEND {
        let batch: Vec<_> = authors
            .iter_mut()
            .map(|author| {
                (0..EVENTS_PER_APPEND).for_each(|_| author.step());
                author.append()
            })
            .collect();
        commit(&store, &batch);
    }
    drop(store);
    let bytes = || std::fs::metadata(&path).expect("the file").len() as f64 / (events * DISK_AGENTS) as f64;
    let before = bytes();
    Database::open(&path).expect("the file").compact().expect("a smaller file");
    let payload = PAYLOAD_BYTES as f64;
    figure("bytes an event, before compaction", before, payload, "B", Target::None);
    figure("bytes an event, after compaction, beside its payload", bytes(), payload, "B", Target::AtMost(1.3));
}

fn idle() {
    let agents = IDLE_AGENTS * scale();
    title(&format!("{agents} idle agents"));
    let (many, few) = (home_of(agents), home_of(1));
    let (many, few) = (Server::daemon(&many.path().join("home")), Server::daemon(&few.path().join("home")));
    std::thread::sleep(SETTLING);
    let memory = many.usage().memory_bytes.saturating_sub(few.usage().memory_bytes);
    alone("memory of an idle agent", memory as f64 / agents as f64 / 1024.0, "KiB", Target::AtMost(2.0));
    let watched = (IDLE * scale() as u32).min(IDLE_MAX);
    let before = many.usage().processor;
    std::thread::sleep(watched);
    let used = many.usage().processor - before;
    let in_thirty_seconds = used.as_secs_f64() * 1e3 * 30.0 / watched.as_secs_f64();
    alone("processor time in 30 s", in_thirty_seconds, "ms", Target::AtMost(20.0));
}

fn home_of(agents: usize) -> tempfile::TempDir {
    let folder = folder();
    prepare(&folder.path().join("home"), |store| {
        let mut authors: Vec<Author> = (0..agents).map(|agent| Author::new(&format!("agent-{agent}"))).collect();
        write_agents(store, &mut authors);
    });
    folder
}
