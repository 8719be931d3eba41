//! Messages over HTTP, durable before the answer, beside the lower of two floors: as many messages in one bare commit,
//! and an axum handler that does nothing.

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
use common::server::{Server, prepare};
use common::socket::{Connection, post};
use common::{Target, child, figure, folder, median, role, scale, timed, title};
use holon::ledger::Append;
use redb::Database;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const ROUNDS: usize = 5;
const AGENTS: usize = 64;
/// How long one side is measured in one round.
const ROUND: Duration = Duration::from_millis(700);
const BARE_COMMITS: usize = 100;

fn main() {
    if role().is_some() {
        return do_nothing();
    }
    title("enqueue over HTTP, durable before the answer");
    let folder = folder();
    let home = folder.path().join("home");
    prepare(&home, |store| write_agents(store, &mut (0..AGENTS).map(paused).collect::<Vec<_>>()));
    let holon = Server::daemon(&home);
    let nothing = Server::start(child("nothing", &[]));
    let database = bare::open(&folder.path().join("bare.redb"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut floor = Floor::new(database);
    for concurrency in [1, 16, 64] {
        measure(concurrency, &runtime, holon.address, nothing.address, &mut floor);
    }
}

fn paused(agent: usize) -> Author {
    Author::paused(&format!("agent-{agent}"))
}

fn measure(concurrency: usize, runtime: &Runtime, holon: SocketAddr, nothing: SocketAddr, floor: &mut Floor) {
    let round = ROUND * scale() as u32;
    let (mut ours, mut commits, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(runtime.block_on(requests_per_second(holon, concurrency, round)));
        commits.push(floor.messages_per_second(concurrency));
        handlers.push(runtime.block_on(requests_per_second(nothing, concurrency, round)));
    }
    let (ours, commits, handlers) = (median(&ours), median(&commits), median(&handlers));
    figure(&format!("{concurrency} at once, beside a bare commit of as many"), ours, commits, "/s", Target::None);
    figure(&format!("{concurrency} at once, beside a handler that does nothing"), ours, handlers, "/s", Target::None);
    let target = if concurrency == 64 { Target::AtLeast(0.7) } else { Target::None };
    figure(&format!("{concurrency} at once, beside the lower of both"), ours, commits.min(handlers), "/s", target);
}

/// Requests answered over `concurrency` connections, each with one under way.
async fn requests_per_second(address: SocketAddr, concurrency: usize, round: Duration) -> f64 {
    let start = Instant::now();
    let ends = start + round;
    let local = tokio::task::LocalSet::new();
    let clients: Vec<_> = (0..concurrency).map(|client| local.spawn_local(ask(address, client, ends))).collect();
    local.await;
    let mut answers = 0;
    for client in clients {
        answers += client.await.expect("a client");
    }
    answers as f64 / start.elapsed().as_secs_f64()
}

async fn ask(address: SocketAddr, client: usize, ends: Instant) -> u64 {
    let mut connection = Connection::open(address).await;
    let text = "x".repeat(common::ledger::PAYLOAD_BYTES);
    let body = format!(r#"{{"text":"{text}"}}"#);
    let requests: Arc<[Vec<u8>]> =
        (0..AGENTS).map(|agent| post(&format!("/agents/agent-{agent}/enqueue"), &body)).collect();
    let mut answers = 0;
    while Instant::now() < ends {
        connection.send(&requests[(client + answers) % AGENTS]).await;
        connection.answer().await;
        answers += 1;
    }
    answers as u64
}

/// Bare commits of the rows of some messages.
struct Floor {
    database: Database,
    layout: Layout,
    authors: Vec<Author>,
}

impl Floor {
    fn new(database: Database) -> Self {
        let (mut layout, mut authors) = (Layout::default(), (0..AGENTS).map(paused).collect::<Vec<_>>());
        let births: Vec<Append> = authors.iter_mut().map(Author::append).collect();
        bare::commit(&database, &layout.rows(&births)).expect("a commit");
        Self { database, layout, authors }
    }

    fn messages_per_second(&mut self, concurrency: usize) -> f64 {
        let batches: Vec<_> = (0..BARE_COMMITS)
            .map(|_| {
                let some = self.authors.iter_mut().take(concurrency);
                let batch: Vec<Append> = some
                    .map(|author| {
                        author.step();
                        author.append()
                    })
                    .collect();
                self.layout.rows(&batch)
            })
            .collect();
        let write = || batches.iter().for_each(|rows| bare::commit(&self.database, rows).expect("a commit"));
        (BARE_COMMITS * concurrency) as f64 / timed(write).1.as_secs_f64()
    }
}

/// The child: axum, one route, no work.
fn do_nothing() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        let route = axum::routing::post(async || "{}");
        let router = axum::Router::new().route("/agents/{id}/enqueue", route);
        axum::serve(listener, router).await.expect("it serves");
    });
}
