//! What agents owe each other, while strangers send what they can and the power fails at the worst moment.

use crate::host::{FullStore, at_rest, events, main_agent, parts, prompt};
use crate::world::BEGINNING;
use holon::events::queue::MessageKind;
use holon::events::{AgentEvent, Event, QueueEvent};
use holon::fold::AgentState;
use holon::runtime::handle::Handle;
use holon::runtime::host::{Host, Parts};
use holon::runtime::source::Source;
use holon::words::id::{AgentId, EventSeq};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

async fn serve(clock: &Source, store: Arc<FullStore>, folder: &Path, boot: u64) -> Host {
    let parts = Parts { source: clock.clone(), ..parts("builtin/runbook", store, folder, boot) };
    Host::start(parts).await.unwrap()
}

pub(super) async fn until(
    handle: &Handle,
    agent: &AgentId,
    holds: impl Fn(&AgentState) -> bool + Clone + Send + 'static,
) {
    let mut follower = handle.follow(agent, EventSeq::ZERO);
    while !handle.read(agent, holds.clone()).await.unwrap() {
        let grown = tokio::time::timeout(crate::daemon::PATIENCE, follower.grown()).await;
        assert!(grown.expect("it comes to that"));
    }
}

pub(super) fn is_notice(event: &Event) -> bool {
    matches!(event, Event::Queue(QueueEvent::Enqueued(message)) if message.kind == MessageKind::TaskStatus)
}

#[tokio::test]
async fn a_notice_that_was_taken_in_before_the_power_failed_is_not_taken_in_again_after_two_days() {
    let folder = TempDir::new().unwrap();
    let (main, child) = (main_agent(), AgentId::parse("main.c1").unwrap());
    let store = Arc::new(FullStore::default());
    let clock = Source::manual(BEGINNING);
    let host = serve(&clock, store.clone(), folder.path(), 1).await;
    let handle = host.handle();
    let gate = folder.path().join("workspace/go");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    handle.submit(&main, prompt("spawn: ask\n  $ cat go\n  wait operator"), Vec::new()).await.unwrap();
    at_rest(&handle, &main).await;

    // The supervisor writes that it has the notice; the child does not come to write that it was taken in.
    *store.cut.lock().unwrap() = Some((main.clone(), child.clone()));
    tokio::task::spawn_blocking(move || std::fs::write(&gate, "go\n").unwrap()).await.unwrap();
    until(&handle, &main, |state| state.queue.last.0 > 1).await;
    host.shutdown().await;
    assert!(events(&handle, &child).await.iter().all(|event| !is_delivered(event)), "the child knows nothing of it");

    *store.cut.lock().unwrap() = None;
    clock.set(BEGINNING.after_ms(2 * DAY_MS));
    let host = serve(&clock, store, folder.path(), 2).await;
    let handle = host.handle();
    until(&handle, &child, |state| state.outbox.owed.is_empty()).await;
    let notices = events(&handle, &main).await.iter().filter(|event| is_notice(event)).count();
    assert_eq!(notices, 1);
    host.shutdown().await;
}

fn is_delivered(event: &Event) -> bool {
    matches!(event, Event::Agent(AgentEvent::Delivered(_)))
}
