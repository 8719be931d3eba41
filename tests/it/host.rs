//! A runtime in this process, over a store that can be made to fail.

use crate::daemon::{BORN, PATIENCE, marked};
use futures::future::join_all;
use holon::decide::agent::{AgentCommand, NewAgent};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::{Rejection, Request, RequestKey};
use holon::events::agent::{Answer, Role};
use holon::events::call::CallResult;
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::turn::{Entry, TurnEvent};
use holon::events::{AgentEvent, Cause, Event, QueueEvent};
use holon::fold::agent::Lifecycle;
use holon::fold::row::{RecordKind, RecordRow};
use holon::ledger::memory::MemoryStore;
use holon::ledger::reader;
use holon::ledger::redb::RedbStore;
use holon::ledger::{Append, AppendError, Head, LogRow, Outcomes, Records, Store, StoreError};
use holon::runtime::handle::{Handle, SubmitError};
use holon::runtime::host::{Host, Parts};
use holon::runtime::model::catalog::Models;
use holon::runtime::process::Processes;
use holon::runtime::secret::Secrets;
use holon::runtime::settings::Settings;
use holon::runtime::source::Source;
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, Boot, EventSeq, MessageId};
use holon::words::time::Timestamp;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// A store whose disk can be full, for all or for one after another one was written, and in which two can look for one
/// agent at once.
#[derive(Default)]
pub struct FullStore {
    inner: MemoryStore,
    full: AtomicBool,
    /// Once the first of them has written, the second writes no more.
    pub cut: Mutex<Option<(AgentId, AgentId)>>,
    meeting: Option<Meeting>,
}

impl FullStore {
    fn commit_one(&self, append: &Append) -> Result<(), AppendError> {
        let writes = |agent: &AgentId| append.parts.iter().any(|part| part.agent == *agent);
        let mut cut = self.cut.lock().unwrap();
        if self.full.load(Ordering::SeqCst) || cut.as_ref().is_some_and(|(first, next)| first == next && writes(next)) {
            return Err(AppendError::Store(StoreError::NoSpace("the disk is full".into())));
        }
        if let Some((first, next)) = &mut *cut
            && writes(first)
        {
            *first = next.clone();
        }
        self.inner.commit(std::slice::from_ref(append)).remove(0)
    }
}

/// The first two who look for the head of `agent` both see what was there before either of them went on.
struct Meeting {
    agent: AgentId,
    looks: AtomicUsize,
    both: Barrier,
}

impl Meeting {
    fn over(agent: &AgentId) -> Self {
        Self { agent: agent.clone(), looks: AtomicUsize::new(0), both: Barrier::new(2) }
    }

    fn attend(&self, agent: &AgentId) {
        if self.agent == *agent && self.looks.fetch_add(1, Ordering::SeqCst) < 2 {
            self.both.wait();
        }
    }
}

impl Store for FullStore {
    fn token(&self, token_hash: &Hash) -> Result<Option<AgentId>, StoreError> {
        self.inner.token(token_hash)
    }

    fn commit(&self, batch: &[Append]) -> Outcomes {
        batch.iter().map(|append| self.commit_one(append)).collect()
    }

    fn head(&self, agent: &AgentId) -> Result<Option<Head>, StoreError> {
        let head = self.inner.head(agent);
        self.meeting.iter().for_each(|meeting| meeting.attend(agent));
        head
    }

    fn records(&self, agent: &AgentId, after: EventSeq, until: EventSeq) -> Result<Records, StoreError> {
        self.inner.records(agent, after, until)
    }

    fn log(&self, after: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        self.inner.log(after, limit)
    }

    fn log_end(&self) -> Result<u64, StoreError> {
        self.inner.log_end()
    }

    fn anchor(&self, agent: &AgentId, seq: EventSeq) -> Result<Option<Hash>, StoreError> {
        self.inner.anchor(agent, seq)
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.checkpoint(agent)
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(hash)
    }

    fn names_file(&self, hash: &Hash) -> Result<bool, StoreError> {
        self.inner.names_file(hash)
    }

    fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, StoreError> {
        self.inner.agents(after, limit)
    }

    fn list(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<(AgentId, Vec<u8>)>, StoreError> {
        self.inner.list(after, limit)
    }

    fn due(&self) -> Result<Vec<AgentId>, StoreError> {
        self.inner.due()
    }

    fn deadlines(&self) -> Result<Vec<(Timestamp, AgentId)>, StoreError> {
        self.inner.deadlines()
    }

    fn record(&self, agent: &AgentId, kind: RecordKind, number: u64) -> Result<Option<RecordRow>, StoreError> {
        self.inner.record(agent, kind, number)
    }

    fn records_closed(
        &self,
        agent: &AgentId,
        kind: RecordKind,
        before: u64,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        self.inner.records_closed(agent, kind, before, limit)
    }

    fn forget_checkpoints(&self) -> Result<(), StoreError> {
        self.inner.forget_checkpoints()
    }
}

pub fn main_agent() -> AgentId {
    AgentId::parse("main").unwrap()
}

pub async fn start(store: Arc<dyn Store>, folder: &Path, boot: u64) -> Host {
    start_asking("builtin/runbook", store, folder, boot).await
}

async fn start_asking(model: &str, store: Arc<dyn Store>, folder: &Path, boot: u64) -> Host {
    Host::start(parts(model, store, folder, boot)).await.unwrap()
}

pub fn parts(model: &str, store: Arc<dyn Store>, folder: &Path, boot: u64) -> Parts {
    for name in ["run", "blobs", "workspace"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_holon"));
    let settings = Settings::new(main_agent(), folder.join("workspace"), vec![model.into()]);
    Parts {
        store,
        boot: Boot(boot),
        blobs_folder: folder.join("blobs"),
        agents_folder: folder.join("agents"),
        processes: Processes::new(&folder.join("run"), Some(program)).unwrap(),
        models: Models::new(Vec::new()),
        source: Source::system(),
        secrets: Secrets::open(&folder.join("secrets.json")).unwrap(),
        settings,
    }
}

pub fn prompt(text: &str) -> Request {
    let new = NewMessage {
        kind: MessageKind::OperatorPrompt,
        lane: None,
        origin: Origin::Operator { actor_id: None },
        surface: Surface::CliPrompt,
        admission: Admission::LocalProcess,
        body_type: BodyType::Text,
        body: Content::from(text),
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        reply_route: None,
        derived_from: None,
    };
    Request::new(QueueCommand::Enqueue(new), Cause::Operator)
}

pub async fn create(handle: &Handle, agent: &AgentId) {
    let new = NewAgent { agent_id: agent.clone(), role: Role::Named, template: None };
    handle.submit(agent, Request::new(AgentCommand::Create(new), Cause::Operator), Vec::new()).await.unwrap();
}

/// Waits until nothing is open, then gives the messages that were ever taken in and how many ended.
pub async fn at_rest(handle: &Handle, agent: &AgentId) -> (u64, usize) {
    let mut follower = handle.follow(agent, EventSeq::ZERO);
    loop {
        let open = |state: &holon::fold::AgentState| {
            (state.turns.current.is_some() || !state.queue.waiting.is_empty(), state.queue.last)
        };
        let (open, MessageId(last)) = handle.read(agent, open).await.unwrap();
        if !open {
            let id = agent.clone();
            let events = events(handle, &id).await;
            let settled = events.iter().filter(|event| matches!(event, Event::Queue(QueueEvent::Settled(_))));
            return (last, settled.count());
        }
        assert!(follower.grown().await);
    }
}

pub async fn events(handle: &Handle, agent: &AgentId) -> Vec<Event> {
    let id = agent.clone();
    let page = handle.ledger(agent, move |store| reader::page(store, &id, EventSeq::ZERO, 1_000_000));
    page.await.unwrap().into_iter().map(|event| event.envelope.event).collect()
}

#[tokio::test]
async fn while_the_disk_is_full_callers_are_told_and_afterwards_service_resumes() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(FullStore::default());
    let host = start(store.clone(), folder.path(), 1).await;
    let (handle, agent) = (host.handle(), main_agent());
    let first = handle.submit(&agent, prompt("say: one"), Vec::new()).await.unwrap();
    assert_eq!(first, Answer::Message(MessageId(1)));
    at_rest(&handle, &agent).await;

    store.full.store(true, Ordering::SeqCst);
    let refused = handle.submit(&agent, prompt("say: lost"), Vec::new()).await;
    assert!(matches!(&refused, Err(SubmitError::Unavailable(reason)) if reason.contains("full")), "{refused:?}");
    let again = handle.submit(&agent, prompt("say: lost too"), Vec::new()).await;
    assert!(matches!(again, Err(SubmitError::Unavailable(_))), "{again:?}");

    store.full.store(false, Ordering::SeqCst);
    let message = loop {
        match handle.submit(&agent, prompt("say: two"), Vec::new()).await {
            Ok(answer) => break answer,
            Err(SubmitError::Unavailable(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(message, Answer::Message(MessageId(2)), "what was refused left nothing behind");
    assert_eq!(at_rest(&handle, &agent).await, (2, 2));
    host.shutdown().await;
}

#[tokio::test]
async fn what_has_happened_is_recorded_after_a_full_disk_and_happens_once() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(FullStore::default());
    let host = start(store.clone(), folder.path(), 1).await;
    let (handle, agent) = (host.handle(), main_agent());
    let fifo = folder.path().join("workspace/go");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    handle.submit(&agent, prompt("$ echo ran >> ran.txt; cat go"), Vec::new()).await.unwrap();
    let mut follower = handle.follow(&agent, EventSeq::ZERO);
    let running = |state: &holon::fold::AgentState| state.tasks.open.values().any(|task| task.attempt.is_some());
    while !handle.read(&agent, running).await.unwrap() {
        assert!(follower.grown().await);
    }

    store.full.store(true, Ordering::SeqCst);
    // The command ends while its exit cannot be recorded.
    tokio::task::spawn_blocking(move || std::fs::write(&fifo, "done\n").unwrap()).await.unwrap();
    let refused = handle.submit(&agent, prompt("say: lost"), Vec::new()).await;
    assert!(matches!(refused, Err(SubmitError::Unavailable(_))), "{refused:?}");
    store.full.store(false, Ordering::SeqCst);

    let (taken, settled) = at_rest(&handle, &agent).await;
    assert_eq!((taken, settled), (1, 1));
    assert_eq!(std::fs::read_to_string(folder.path().join("workspace/ran.txt")).unwrap(), "ran\n");
    handle.verify(&agent).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn an_idle_agent_is_unloaded_and_woken_by_whatever_comes() {
    let folder = TempDir::new().unwrap();
    let host = start(Arc::new(MemoryStore::default()), folder.path(), 1).await;
    let handle = host.handle();
    let agents: Vec<AgentId> = (0..40).map(|number| AgentId::parse(&format!("agent-{number}")).unwrap()).collect();
    let work = agents.iter().map(|agent| {
        let handle = handle.clone();
        async move {
            create(&handle, agent).await;
            let answers = (0..5).map(|number| handle.submit(agent, prompt(&format!("say: {number}")), Vec::new()));
            join_all(answers).await.into_iter().for_each(|answer| {
                answer.unwrap();
            });
            assert_eq!(at_rest(&handle, agent).await, (5, 5));
        }
    });
    join_all(work).await;
    host.shutdown().await;
}

#[tokio::test]
async fn an_idempotency_key_holds_over_a_restart() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(MemoryStore::default());
    let keyed = |text: &str| {
        let key = Some(RequestKey { key: "once".into(), fingerprint: Hash::of(text.as_bytes()) });
        Request { key, ..prompt(text) }
    };
    let host = start(store.clone(), folder.path(), 1).await;
    let first = host.handle().submit(&main_agent(), keyed("say: x"), Vec::new()).await.unwrap();
    host.shutdown().await;

    let host = start(store, folder.path(), 2).await;
    let handle = host.handle();
    let again = handle.submit(&main_agent(), keyed("say: x"), Vec::new()).await.unwrap();
    assert_eq!(again, first);
    let other = handle.submit(&main_agent(), keyed("say: y"), Vec::new()).await;
    assert!(matches!(other, Err(SubmitError::Rejected(Rejection::KeyReused))), "{other:?}");
    assert_eq!(at_rest(&handle, &main_agent()).await, (1, 1));
    drop(handle);
    host.shutdown().await;
}

#[tokio::test]
async fn reads_of_a_sleeping_agent_wake_nobody() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(MemoryStore::default());
    let host = start(store.clone(), folder.path(), 1).await;
    host.shutdown().await;
    let host = start(store, folder.path(), 2).await;
    let handle = host.handle();
    assert_eq!(handle.read(&main_agent(), |state| state.head).await.unwrap(), EventSeq(BORN));
    assert_eq!(handle.occupancy().agents_awake, 0, "nothing was due, and reading wakes nobody");
    let unknown = handle.read(&AgentId::parse("nobody").unwrap(), |state| state.head).await;
    assert!(matches!(unknown, Err(SubmitError::Rejected(Rejection::UnknownAgent))), "{unknown:?}");
    drop(handle);
    host.shutdown().await;
}

#[tokio::test]
async fn a_runtime_that_goes_down_closes_its_ledger_whoever_still_holds_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.redb");
    let store = Arc::new(RedbStore::open(&path).unwrap());
    store.prepare().unwrap();
    let host = start(store.clone(), folder.path(), 1).await;
    let handle = host.handle();
    host.shutdown().await;
    assert!(RedbStore::open_read_only(&path).unwrap().head(&main_agent()).unwrap().is_some());
    let late = handle.submit(&main_agent(), prompt("say: too late"), Vec::new()).await;
    assert!(matches!(late, Err(SubmitError::Unavailable(_))), "{late:?}");
    assert!(matches!(store.head(&main_agent()), Err(StoreError::Closed(_))));
}

/// A model that has every agent bear `twin`, which is told something first.
fn bearing_twin(folder: &Path) -> String {
    let arguments = json!({"preset": "public_named", "agent_id": "twin", "initial_message": "hello"});
    let spawn = json!({"tool": "SpawnAgent", "arguments": arguments});
    let script = folder.join("script.json");
    std::fs::write(&script, json!({"rounds": [{"calls": [spawn]}, {"text": "done"}]}).to_string()).unwrap();
    format!("scripted/{}", script.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_births_under_one_name_at_once_one_is_refused_and_both_turns_go_on() {
    let folder = TempDir::new().unwrap();
    let [parent, other, twin] = ["main", "other", "twin"].map(|id| AgentId::parse(id).unwrap());
    let store = Arc::new(FullStore { meeting: Some(Meeting::over(&twin)), ..FullStore::default() });
    let host = start_asking(&bearing_twin(folder.path()), store, folder.path(), 1).await;
    let handle = host.handle();
    create(&handle, &other).await;

    let mut came_to = Vec::new();
    for parent in [&parent, &other] {
        handle.submit(parent, prompt("a twin, please"), Vec::new()).await.unwrap();
    }
    for parent in [&parent, &other] {
        let rest = tokio::time::timeout(PATIENCE, at_rest(&handle, parent));
        assert_eq!(rest.await.expect("the turn goes on"), (1, 1));
        came_to.extend(events(&handle, parent).await.iter().filter_map(came_of_spawn));
        handle.verify(parent).await.unwrap();
    }
    came_to.sort();
    assert_eq!(came_to, ["agent_exists", "spawned twin"]);
    let born = events(&handle, &twin).await;
    assert!(matches!(&born[..], [Event::Agent(AgentEvent::Created(_)), ..]), "{born:?}");
    handle.verify(&twin).await.unwrap();
    drop(handle);
    host.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_is_born_after_its_creation_was_refused_begins_at_once() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(MemoryStore::default());
    let host = start_asking(&bearing_twin(folder.path()), store, folder.path(), 1).await;
    let (handle, twin) = (host.handle(), AgentId::parse("twin").unwrap());
    let new = NewAgent { agent_id: twin.clone(), role: Role::Named, template: None };
    let key = Some(RequestKey { key: String::new(), fingerprint: Hash::of(b"create") });
    let nameless = Request { key, ..Request::new(AgentCommand::Create(new), Cause::Operator) };
    let refused = handle.submit(&twin, nameless, Vec::new()).await;
    assert!(matches!(refused, Err(SubmitError::Rejected(Rejection::Invalid { .. }))), "{refused:?}");
    assert_eq!(handle.occupancy().agents_awake, 2, "the loop that refused is still there");

    handle.submit(&main_agent(), prompt("a twin, please"), Vec::new()).await.unwrap();
    assert_eq!(at_rest(&handle, &main_agent()).await, (1, 1));
    let rest = tokio::time::timeout(PATIENCE, at_rest(&handle, &twin));
    assert_eq!(rest.await.expect("it takes up what it was told"), (1, 1));
    drop(handle);
    host.shutdown().await;
}

fn came_of_spawn(event: &Event) -> Option<String> {
    let Event::Turn(TurnEvent::Entry(entry)) = event else { return None };
    let Entry::ToolResult { result, .. } = &entry.entry else { return None };
    Some(match result {
        CallResult::Spawned { agent, .. } => format!("spawned {agent}"),
        CallResult::Refused(error) => error.kind.clone(),
        other => panic!("not what a birth comes to: {other:?}"),
    })
}

#[tokio::test]
async fn an_archived_agent_leaves_no_process_and_all_of_its_history() {
    let folder = TempDir::new().unwrap();
    let host = start(Arc::new(MemoryStore::default()), folder.path(), 1).await;
    let (handle, main, child) = (host.handle(), main_agent(), AgentId::parse("main.c1").unwrap());
    let marker = format!("MARKED={}.", folder.path().file_name().unwrap().display());
    let begun = folder.path().join("workspace/begun");
    nix::unistd::mkfifo(&begun, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut begun = tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(begun).unwrap();
    let command = format!("$ export {marker}; (setsid sleep 1000 &); echo > begun; sleep 1000");
    for runbook in [format!("{command}\nwait task"), format!("spawn: help\n  {command}"), format!("{command}; :")] {
        at_rest(&handle, &main).await;
        handle.submit(&main, prompt(&runbook), Vec::new()).await.unwrap();
        tokio::time::timeout(PATIENCE, begun.read_u8()).await.expect("it begins").unwrap();
    }
    assert!(marked(&marker).len() >= 6);
    let history = async |agent: &AgentId| {
        let (id, handle) = (agent.clone(), handle.clone());
        handle.ledger(agent, move |store| reader::page(store, &id, EventSeq::ZERO, 1_000_000)).await.unwrap()
    };
    let before = [history(&main).await, history(&child).await];

    handle.submit(&main, Request::new(AgentCommand::Archive, Cause::Operator), Vec::new()).await.unwrap();
    for (agent, before) in [&main, &child].into_iter().zip(before) {
        let mut follower = handle.follow(agent, EventSeq::ZERO);
        while handle.read(agent, |state| state.agent.lifecycle).await.unwrap() != Lifecycle::Archived {
            assert!(tokio::time::timeout(PATIENCE, follower.grown()).await.expect("it ends"));
        }
        let after = history(agent).await;
        let last = before.last().expect("it has begun");
        assert_eq!(after[before.len() - 1].hash, last.hash, "nothing is erased");
        handle.verify(agent).await.unwrap();
    }
    assert_eq!(marked(&marker), Vec::<String>::new());
    drop(handle);
    host.shutdown().await;
}
