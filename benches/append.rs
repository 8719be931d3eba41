//! Appends: our whole path (decide, fold, link, writer, store) beside redb that writes the very same rows.

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

use common::bare::{self, Layout};
use common::ledger::{Author, write_agents};
use common::{Target, figure, folder, in_turns, median, microseconds, timed, title};
use holon::ledger::Append;
use holon::ledger::redb::RedbStore;
use holon::ledger::writer::Writer;
use redb::Database;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Rounds of each measurement.
const ROUNDS: usize = 5;
/// Commits of one round with one writer.
const COMMITS_PER_ROUND: usize = 200;
/// Events of one round with many.
const EVENTS_PER_ROUND: usize = 12_288;
/// Submissions that a loop takes at once.
const EVENTS_PER_APPEND_MAX: usize = 256;

fn main() {
    title("append");
    one_writer();
    for waiting in [1, 64, 512] {
        for agents in [1, 512, 10_000] {
            many(waiting, agents);
        }
    }
}

/// A store with its writer, and a bare file beside it.
struct Sides {
    writer: Writer,
    store: Arc<RedbStore>,
    database: Database,
    layout: Layout,
    runtime: Runtime,
    _folder: TempDir,
}

impl Sides {
    fn new() -> Self {
        let folder = folder();
        let store = Arc::new(RedbStore::open(&folder.path().join("ours.redb")).expect("a new file"));
        let (writer, _thread) = Writer::start(store.clone()).expect("a thread");
        let database = bare::open(&folder.path().join("bare.redb"));
        let runtime = Runtime::new().expect("a runtime");
        Self { writer, store, database, layout: Layout::default(), runtime, _folder: folder }
    }

    /// The same agents on both sides: ours to append with, and their twins to take rows from.
    fn authors(&mut self, count: usize, round: usize) -> (Vec<Author>, Vec<Author>) {
        let make = || (0..count).map(|agent| Author::new(&format!("agent-{round}-{agent}"))).collect::<Vec<_>>();
        let (mut ours, mut twins) = (make(), make());
        write_agents(&*self.store, &mut ours);
        let births: Vec<Append> = twins.iter_mut().map(Author::append).collect();
        bare::commit(&self.database, &self.layout.rows(&births)).expect("a commit");
        (scattered(ours), scattered(twins))
    }
}

/// In another order than that of their rows: who speaks next has nothing to do with who was created next.
fn scattered(mut authors: Vec<Author>) -> Vec<Author> {
    authors.sort_by_key(|author| blake3::hash(author.id().as_str().as_bytes()).to_string());
    authors
}

fn one_writer() {
    let mut sides = Sides::new();
    let (mut ours, mut twins) = sides.authors(1, 0);
    let Sides { writer, database, layout, runtime, .. } = &mut sides;
    let author = &mut ours[0];
    let commit_ours = || {
        let ((), duration) = timed(|| {
            author.step();
            runtime.block_on(writer.append(author.append())).expect("an append");
        });
        duration
    };
    let twin = &mut twins[0];
    let commit_bare = || {
        twin.step();
        let rows = layout.rows(&[twin.append()]);
        timed(|| bare::commit(database, &rows).expect("a commit")).1
    };
    let (ours, bare) = in_turns(ROUNDS * COMMITS_PER_ROUND, commit_ours, commit_bare);
    let (ours, bare) = (median(&microseconds(&ours)), median(&microseconds(&bare)));
    figure("one append alone, median", ours, bare, "us", Target::AtMost(1.15));
}

/// `waiting` submissions at any time, over `agents` agents. An agent's loop takes together what waits for it.
fn many(waiting: usize, agents: usize) {
    let mut sides = Sides::new();
    let lanes = waiting.min(agents);
    let events_per_append = (waiting / lanes).min(EVENTS_PER_APPEND_MAX);
    let events = if waiting == 1 { COMMITS_PER_ROUND } else { EVENTS_PER_ROUND };
    let (mut ours, mut twins) = sides.authors(agents, 0);
    let Sides { writer, database, layout, runtime, .. } = &mut sides;
    let round_ours = || {
        let split = split(std::mem::take(&mut ours), lanes);
        let appends = events / lanes / events_per_append;
        let (back, duration) = timed(|| runtime.block_on(append_all(writer, split, appends, events_per_append)));
        ours = back;
        (appends * lanes * events_per_append) as f64 / duration.as_secs_f64()
    };
    let round_bare = || {
        let mut next = 0;
        let batches: Vec<_> = (0..events / waiting)
            .map(|_| {
                let batch: Vec<Append> = (0..waiting / events_per_append)
                    .map(|_| {
                        next = (next + 1) % twins.len();
                        (0..events_per_append).for_each(|_| twins[next].step());
                        twins[next].append()
                    })
                    .collect();
                layout.rows(&batch)
            })
            .collect();
        let write = || batches.iter().for_each(|rows| bare::commit(database, rows).expect("a commit"));
        (batches.len() * waiting) as f64 / timed(write).1.as_secs_f64()
    };
    let (ours, bare) = in_turns(ROUNDS, round_ours, round_bare);
    let what = format!("{waiting} waiting over {agents} agents");
    let target = if waiting == 1 { Target::None } else { Target::AtLeast(0.75) };
    figure(&what, median(&ours), median(&bare), "events/s", target);
}

/// Deals agents out to lanes.
fn split(authors: Vec<Author>, lanes: usize) -> Vec<Vec<Author>> {
    let mut split: Vec<Vec<Author>> = (0..lanes).map(|_| Vec::new()).collect();
    authors.into_iter().enumerate().for_each(|(place, author)| split[place % lanes].push(author));
    split
}

/// Each lane has one append under way at any time, of one agent after the other.
async fn append_all(writer: &Writer, lanes: Vec<Vec<Author>>, appends: usize, events: usize) -> Vec<Author> {
    let lanes = lanes.into_iter().map(|mut authors| {
        let writer = writer.clone();
        tokio::spawn(async move {
            for append in 0..appends {
                let next = append % authors.len();
                let author = &mut authors[next];
                (0..events).for_each(|_| author.step());
                writer.append(author.append()).await.expect("an append");
            }
            authors
        })
    });
    let lanes: Vec<_> = lanes.collect();
    let mut back = Vec::new();
    for lane in lanes {
        back.extend(lane.await.expect("a lane"));
    }
    back
}
