//! Waking an agent: independent of its history, by its checkpoint.

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
use common::{Target, figure, folder, in_turns, median, microseconds, scale, timed, title};
use holon::decide::Request;
use holon::decide::queue::QueueCommand;
use holon::events::Cause;
use holon::ledger::reader;
use holon::ledger::redb::RedbStore;
use holon::runtime::host::{Host, Parts};
use holon::runtime::model::catalog::Models;
use holon::runtime::process::Processes;
use holon::runtime::secret::Secrets;
use holon::runtime::settings::Settings;
use holon::runtime::source::Source;
use holon::words::id::{AgentId, Boot};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SHORT_EVENTS: u64 = 1_000;
const LONG_EVENTS: u64 = 100_000;
const LOADS: usize = 400;
const WAKES: usize = 100;
/// Longer than a loop lingers that is told not to.
const ASLEEP: Duration = Duration::from_millis(4);

fn main() {
    title("wake of an agent: a long history (ours) beside a short one (bare)");
    let folder = folder();
    let store = Arc::new(RedbStore::open(&folder.path().join("ledger.redb")).expect("a new file"));
    let long = LONG_EVENTS * scale() as u64;
    let agents = [("long", long), ("short", SHORT_EVENTS)].map(|(name, events)| {
        let mut author = Author::paused(name);
        // Ends as far behind the last checkpoint as the other one.
        author.write_history(&*store, events + 128 - events % 256);
        author.id()
    });
    let [ours, bare] = &agents;
    let load = |agent: &AgentId| timed(|| reader::load(&*store, agent).expect("a whole ledger").expect("an agent")).1;
    let (ours_took, bare_took) = in_turns(LOADS, || load(ours), || load(bare));
    let what = format!("load, {long} events beside {SHORT_EVENTS}");
    report(&what, &ours_took, &bare_took);
    through_the_host(folder.path(), store, &agents, long);
}

fn through_the_host(folder: &Path, store: Arc<RedbStore>, [ours, bare]: &[AgentId; 2], long: u64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut settings = Settings::new(AgentId::parse("short").expect("a name"), folder.to_owned(), Vec::new());
    settings.linger_ms = 0;
    let parts = Parts {
        store,
        boot: Boot(2),
        blobs_folder: folder.join("blobs"),
        agents_folder: folder.join("agents"),
        processes: Processes::new(&folder.join("run"), None).expect("a folder"),
        models: Models::new(Vec::new()),
        source: Source::system(),
        secrets: Secrets::open(&folder.join("secrets.json")).expect("no secrets"),
        settings,
    };
    let host = runtime.block_on(Host::start(parts)).expect("a host");
    let wake = |agent: &AgentId| {
        std::thread::sleep(ASLEEP);
        let command = QueueCommand::Enqueue(common::ledger::message("wake".into()));
        let request = Request::new(command, Cause::External);
        timed(|| runtime.block_on(host.handle().submit(agent, request, Vec::new())).expect("an answer")).1
    };
    let (ours_took, bare_took) = in_turns(WAKES, || wake(ours), || wake(bare));
    let what = format!("asleep to a durable answer, {long} events beside {SHORT_EVENTS}");
    report(&what, &ours_took, &bare_took);
    runtime.block_on(host.shutdown());
}

fn report(what: &str, ours: &[Duration], bare: &[Duration]) {
    figure(what, median(&microseconds(ours)), median(&microseconds(bare)), "us", Target::AtMost(2.0));
}
