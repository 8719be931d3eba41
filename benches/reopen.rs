//! Opening a home: after a kill, and with many agents. Both are to cost next to nothing however much there is.

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

use common::ledger::{Author, write_agents};
use common::server::{Server, prepare};
use common::socket::{Connection, get};
use common::{Target, alone, child, figure, folder, in_turns, median, role, scale, timed, title};
use holon::ledger::reader;
use holon::ledger::redb::RedbStore;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const SMALL_EVENTS: u64 = 100_000;
const LARGE_EVENTS: u64 = 1_000_000;
const ROUNDS: usize = 3;
const AGENTS: usize = 10_000;
/// One agent in so many has something to do at boot.
const DUE_EVERY: usize = 100;

fn main() {
    if let Some((_, arguments)) = role() {
        return write_until_killed(Path::new(&arguments[0]));
    }
    let large = LARGE_EVENTS * scale() as u64;
    title("reopen after kill -9: a long history (ours) beside a short one (bare)");
    let (ours_folder, bare_folder) = (folder(), folder());
    let ours = history(ours_folder.path(), large);
    let bare = history(bare_folder.path(), SMALL_EVENTS);
    let reopened = |path: &PathBuf| {
        kill_while_writing(path);
        timed(|| first_answer(path)).1.as_secs_f64() * 1e3
    };
    let (ours, bare) = in_turns(ROUNDS, || reopened(&ours), || reopened(&bare));
    let what = format!("first answer, {large} events beside {SMALL_EVENTS}");
    figure(&what, median(&ours), median(&bare), "ms", Target::AtMost(2.0));

    let agents = AGENTS * scale();
    title("cold start of a daemon");
    for (agents, first, due) in [(agents / 10, Target::None, Target::None), (agents, at_most(1.0), at_most(5.0))] {
        cold_start(agents, first, due);
    }
}

fn at_most(seconds: f64) -> Target {
    Target::AtMost(seconds)
}

fn history(folder: &Path, events: u64) -> PathBuf {
    let path = folder.join("ledger.redb");
    let store = RedbStore::open(&path).expect("a new file");
    Author::new("main").write_history(&store, events);
    path
}

/// Opens the file and folds what is behind the last checkpoint.
fn first_answer(path: &Path) {
    let store = RedbStore::open(path).expect("a file after a crash");
    let agent = Author::new("main").id();
    let (state, head) = reader::load(&store, &agent).expect("a whole ledger").expect("an agent");
    assert_eq!(state.head, head.seq);
}

/// Lets a child commit to the file, and kills it in the middle.
fn kill_while_writing(path: &Path) {
    let mut writing = child("writer", &[path.display().to_string()]).stdout(Stdio::piped()).spawn().expect("a child");
    let mut output = BufReader::new(writing.stdout.take().expect("its output is ours"));
    output.read_line(&mut String::new()).expect("it has begun");
    std::thread::sleep(Duration::from_millis(50));
    writing.kill().expect("it runs");
    writing.wait().expect("it is ours");
}

fn write_until_killed(path: &Path) {
    let store = RedbStore::open(path).expect("the file");
    let name = format!("writer-{}", std::process::id());
    let mut author = Author::new(&name);
    loop {
        (0..16).for_each(|_| author.step());
        common::ledger::commit(&store, &[author.append()]);
        if author.head.seq.0 < 32 {
            println!("begun");
            std::io::stdout().flush().expect("somebody reads");
        }
    }
}

fn cold_start(agents: usize, first: Target, due: Target) {
    let folder = folder();
    let home = folder.path().join("home");
    let mut authors: Vec<Author> = (0..agents).map(|agent| Author::new(&format!("agent-{agent}"))).collect();
    authors.iter_mut().step_by(DUE_EVERY).for_each(Author::enqueue);
    prepare(&home, |store| write_agents(store, &mut authors));
    let start = Instant::now();
    let server = Server::daemon(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connection = Connection::open(server.address).await;
        connection.send(&get("/agents/list?limit=1")).await;
        connection.answer().await;
        alone(&format!("{agents} agents: first answer"), start.elapsed().as_secs_f64(), "s", first);
        for author in authors.iter().step_by(DUE_EVERY) {
            let path = format!("/agents/{}/events?limit=1", author.id());
            loop {
                connection.send(&get(&path)).await;
                let answer = connection.answer().await;
                let newest: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
                if newest["newest_seq"].as_u64() > Some(author.head.seq.0) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let what = format!("{agents} agents: all of {} due ones scheduled", agents / DUE_EVERY);
        alone(&what, start.elapsed().as_secs_f64(), "s", due);
    });
}
