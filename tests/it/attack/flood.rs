//! Ten thousand messages of strangers, while the operator and a child have something to say.

use super::errand::{is_notice, until};
use crate::host::{at_rest, events, main_agent, prompt, start};
use futures::future::join_all;
use holon::decide::agent::AgentCommand;
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::task::TaskCommand;
use holon::decide::{Command, Rejection, Request, RequestKey};
use holon::events::agent::Answer;
use holon::events::queue::{Admission, MessageKind, Origin, Surface};
use holon::events::turn::AbortMode;
use holon::events::{Cause, Event, QueueEvent};
use holon::fold::agent::Lifecycle;
use holon::ledger::memory::MemoryStore;
use holon::runtime::handle::{Handle, SubmitError};
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, TaskId};
use holon::words::limit::{QUEUE_MESSAGES_MAX, QUEUE_MESSAGES_RESERVED};
use std::sync::Arc;
use tempfile::TempDir;

const STRANGERS: usize = 10_000;

fn keyed(mut request: Request, key: &str) -> Request {
    request.key = Some(RequestKey { key: key.into(), fingerprint: Hash::of(b"the same request") });
    request
}

fn webhook(key: &str) -> Request {
    let Command::Queue(QueueCommand::Enqueue(prompt)) = prompt("{}").command else { unreachable!("a prompt") };
    let new = NewMessage {
        kind: MessageKind::WebhookEvent,
        origin: Origin::Webhook { source: "generic_webhook".into(), event_type: None },
        surface: Surface::HttpWebhook,
        admission: Admission::PublicUnauthenticated,
        ..prompt
    };
    keyed(Request::new(QueueCommand::Enqueue(new), Cause::External), key)
}

/// The agent is withheld from the scheduler, so that whatever comes waits.
async fn pause(handle: &Handle, agent: &AgentId) {
    handle.submit(agent, prompt("$ sleep 1000"), Vec::new()).await.unwrap();
    until(handle, agent, |state| state.turns.current.is_some()).await;
    let abort = AgentCommand::Abort { run: None, mode: AbortMode::StopAfterAbort };
    handle.submit(agent, Request::new(abort, Cause::Operator), Vec::new()).await.unwrap();
    until(handle, agent, |state| state.agent.lifecycle == Lifecycle::Paused).await;
}

/// Answers how many of them were taken in.
async fn flood(handle: &Handle, agent: &AgentId) -> usize {
    let mut taken = 0;
    for hundred in 0..STRANGERS / 100 {
        let keys = (0..100).map(|number| format!("key-{hundred}-{number}"));
        let sent = keys.map(|key| async move { handle.submit(agent, webhook(&key), Vec::new()).await });
        for answer in join_all(sent).await {
            match answer {
                Ok(_) => taken += 1,
                Err(SubmitError::Rejected(Rejection::QueueFull { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    taken
}

fn is_result(event: &Event) -> bool {
    matches!(event, Event::Queue(QueueEvent::Enqueued(message)) if message.kind == MessageKind::TaskResult)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_webhooks_lock_out_neither_the_operator_nor_a_child() {
    let folder = TempDir::new().unwrap();
    let host = start(Arc::new(MemoryStore::default()), folder.path(), 1).await;
    let (handle, main, child) = (host.handle(), main_agent(), AgentId::parse("main.c1").unwrap());
    let gate = folder.path().join("workspace/go");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    handle.submit(&main, prompt("spawn: ask\n  $ cat go\n  wait operator"), Vec::new()).await.unwrap();
    at_rest(&handle, &main).await;
    pause(&handle, &main).await;
    let first = handle.submit(&main, keyed(prompt("say: deployed"), "deploy"), Vec::new()).await.unwrap();

    let taken = flood(&handle, &main).await;
    assert_eq!(taken, QUEUE_MESSAGES_MAX - QUEUE_MESSAGES_RESERVED - 1, "the operator's prompt waits beside them");
    let again = handle.submit(&main, keyed(prompt("say: deployed"), "deploy"), Vec::new()).await.unwrap();
    assert_eq!(again, first, "the retry is the same message");
    let urgent = handle.submit(&main, prompt("say: stop that"), Vec::new()).await.unwrap();
    assert!(matches!(urgent, Answer::Message(_)), "{urgent:?}");

    tokio::task::spawn_blocking(move || std::fs::write(&gate, "go\n").unwrap()).await.unwrap();
    until(&handle, &main, |state| state.queue.waiting.values().any(|queued| queued.kind == MessageKind::TaskStatus))
        .await;
    let answer = TaskCommand::Input { task: TaskId(1), text: Content::from("go on") };
    handle.submit(&main, Request::new(answer, Cause::Operator), Vec::new()).await.unwrap();
    until(&handle, &child, |state| state.agent.lifecycle == Lifecycle::Archived).await;
    let told = events(&handle, &main).await;
    let of_child = told.iter().filter(|event| is_notice(event) || is_result(event)).map(is_result);
    assert_eq!(of_child.collect::<Vec<_>>(), [false, true], "one notice, then one result");
    host.shutdown().await;
}
