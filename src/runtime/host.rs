//! The host: which agents are awake here.

use super::agent_loop;
use super::deadline::Deadlines;
use super::effect::delivery::Transport;
use super::effect::{command, trigger};
use super::feed::Feed;
use super::handle::{Handle, Occupancy, SubmitError};
use super::home::HomeLedger;
use super::mail::Mail;
use super::meter::Meter;
use super::model::catalog::Models;
use super::permit::{PermitKind, Permits, WaitingForPermit};
use super::process::Processes;
use super::secret::{self, Secrets};
use super::settings::Settings;
use super::source::Source;
use crate::decide::Request;
use crate::decide::agent::{AgentCommand, NewAgent};
use crate::decide::home::HomeCommand;
use crate::decide::workspace::WorkspaceCommand;
use crate::events::Cause;
use crate::events::agent::Role;
use crate::events::workspace::Projection;
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::blob::Blobs;
use crate::ledger::reader::{self, ReadError};
use crate::ledger::writer::{Writer, WriterThread};
use crate::ledger::{Head, Store};
use crate::words::id::{AgentId, Boot, TaskId};
use crate::words::limit::{HOST_BACKGROUND_COMMANDS_MAX, INBOX_SUBMISSIONS_MAX, INBOX_SUBMISSIONS_RESERVED};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};

/// Agents folded at once while many wake: loading is bound by the processors.
const LOADS_AT_ONCE: usize = 8;

/// A running runtime.
pub struct Host {
    handle: Handle,
    writer_thread: WriterThread,
    wheel: tokio::task::JoinHandle<()>,
}

/// What a host is made of.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub boot: Boot,
    pub blobs_folder: PathBuf,
    /// Where agents have their home folders.
    pub agents_folder: PathBuf,
    pub processes: Processes,
    pub models: Models,
    pub source: Source,
    pub secrets: Secrets,
    pub settings: Settings,
}

pub(super) struct Shared {
    pub store: Arc<dyn Store>,
    pub writer: Writer,
    pub home: HomeLedger,
    pub blobs: Blobs,
    pub boot: Boot,
    pub agents_folder: PathBuf,
    pub processes: Processes,
    pub models: Models,
    pub source: Source,
    pub secrets: Secrets,
    pub transport: Transport,
    pub settings: Settings,
    pub feed: Feed,
    pub meter: Meter,
    pub deadlines: Deadlines,
    pub turns: Permits,
    pub model_calls: Permits,
    /// Where commands begin, and run while a call waits for them.
    pub commands: Permits,
    /// Where they go on.
    pub background: Permits,
    pub loads: Semaphore,
    /// Held while a skill's folder and the record of it change together.
    pub skills: tokio::sync::Mutex<()>,
    /// Held while a secret is kept and the event that names it recorded.
    pub secrets_change: tokio::sync::Mutex<()>,
    awake: Mutex<HashMap<AgentId, Inbox>>,
    quarantine: Mutex<BTreeMap<AgentId, String>>,
    shutting_down: AtomicBool,
    /// Loops that have not ended.
    loops: watch::Sender<usize>,
}

/// An awake agent, as the host knows it.
#[derive(Clone)]
struct Inbox {
    mail: UnboundedSender<Mail>,
    /// Submissions that wait.
    waiting: Arc<AtomicUsize>,
}

/// The receiving end of an inbox.
pub(super) struct Received {
    pub mail: UnboundedReceiver<Mail>,
    pub me: UnboundedSender<Mail>,
    waiting: Arc<AtomicUsize>,
}

impl Received {
    /// Counts a submission as taken out.
    pub(super) fn taken(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Host {
    /// Starts the runtime: wakes whoever is due, and sets the deadlines of all others.
    pub async fn start(parts: Parts) -> Result<Self, SubmitError> {
        let (writer, writer_thread) =
            Writer::start(parts.store.clone()).map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        let (home, read) = HomeLedger::open(&*parts.store);
        let shared = Arc::new(Shared::new(parts, writer, home));
        shared.admit_home(read)?;
        shared.sweep_runs();
        shared.sweep_payloads();
        trigger::sweep(&shared);
        let wheel = tokio::spawn({
            let shared = shared.clone();
            async move { shared.deadlines.run(&shared.source, |agent| shared.nudge(&agent)).await }
        });
        for (at, agent) in shared.store.deadlines()? {
            shared.deadlines.set(&agent, Some(at));
        }
        for agent in shared.store.due()? {
            shared.nudge(&agent);
        }
        let host = Self { handle: Handle { shared }, writer_thread, wheel };
        host.record_boot().await;
        host.create_default_agent().await?;
        tokio::spawn(secret::sweep(host.handle()));
        Ok(host)
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends every loop after what it has under way, then the writer. Commands go on under their supervisors.
    pub async fn shutdown(self) {
        let shared = self.handle.shared.clone();
        shared.shutting_down.store(true, Ordering::SeqCst);
        #[expect(clippy::disallowed_methods, reason = "all of them are told, in any order")]
        let inboxes: Vec<Inbox> = shared.awake().values().cloned().collect();
        for inbox in inboxes {
            // A loop that has just ended needs no telling.
            let _ = inbox.mail.send(Mail::Shutdown);
        }
        let mut loops = shared.loops.subscribe();
        // The sender lives in `shared`, which we hold.
        let _ = loops.wait_for(|count| *count == 0).await;
        self.wheel.abort();
        let _ = self.wheel.await;
        // Whoever still holds the runtime is refused from here on, and holds nothing up.
        shared.writer.close();
        let joined = tokio::task::spawn_blocking(move || self.writer_thread.join()).await;
        if let Err(error) = joined {
            tracing::error!(%error, "the ledger's writer could not be waited for");
        }
    }

    /// A home whose ledger cannot be written is served all the same; the log and its quarantine tell.
    async fn record_boot(&self) {
        let settings = self.handle.settings().recorded.clone();
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let boot = HomeCommand::Boot { boot: self.handle.boot(), release, settings };
        if let Err(error) = self.handle.submit_home(boot, Cause::Runtime).await {
            tracing::error!(%error, "the boot is not recorded in the home's ledger");
        }
    }

    async fn create_default_agent(&self) -> Result<(), SubmitError> {
        let agent_id = self.handle.settings().default_agent.clone();
        if self.handle.exists(&agent_id)? {
            return self.open_workspace(&agent_id).await;
        }
        let new = NewAgent { agent_id: agent_id.clone(), role: Role::Default, template: None };
        let request = Request::new(AgentCommand::Create(new), Cause::Runtime);
        self.handle.submit(&agent_id, request, Vec::new()).await?;
        self.open_workspace(&agent_id).await
    }

    /// The workspace that holon was started with is attached to the default agent, which works there unless it has
    /// chosen another place since.
    async fn open_workspace(&self, agent: &AgentId) -> Result<(), SubmitError> {
        let workspace = &self.handle.settings().workspace;
        let Ok(root) = super::effect::workspace::resolve(workspace) else {
            tracing::warn!(workspace = %workspace.display(), "the workspace is not there");
            return Ok(());
        };
        let anchor = root.to_string_lossy().into_owned();
        let known = anchor.clone();
        let takes_it =
            move |state: &AgentState| state.workspaces.at(&known).is_none() && state.agent.lifecycle.admits();
        match self.handle.read(agent, takes_it).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // An agent that is set apart does not keep the others from being served.
            Err(SubmitError::Quarantined { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let projection = Projection::CanonicalRoot;
        let request = Request::new(WorkspaceCommand::Attach { anchor, projection }, Cause::Runtime);
        self.handle.submit(agent, request, Vec::new()).await.map(|_| ())
    }
}

/// Public callers leave room for everybody else.
fn room_in_inbox(cause: &Cause) -> usize {
    let is_public = matches!(cause, Cause::External);
    INBOX_SUBMISSIONS_MAX - if is_public { INBOX_SUBMISSIONS_RESERVED } else { 0 }
}

impl Shared {
    fn new(parts: Parts, writer: Writer, home: HomeLedger) -> Self {
        let settings = parts.settings;
        Self {
            blobs: Blobs::new(parts.store.clone(), parts.blobs_folder).in_boot(parts.boot),
            store: parts.store,
            writer,
            home,
            boot: parts.boot,
            agents_folder: parts.agents_folder,
            processes: parts.processes,
            models: parts.models,
            source: parts.source,
            secrets: parts.secrets,
            transport: Transport::default(),
            feed: Feed::default(),
            meter: Meter::default(),
            deadlines: Deadlines::default(),
            turns: Permits::new(settings.turns_max),
            model_calls: Permits::new(settings.model_calls_max),
            commands: Permits::new(settings.commands_max),
            background: Permits::new(HOST_BACKGROUND_COMMANDS_MAX),
            loads: Semaphore::new(LOADS_AT_ONCE),
            skills: tokio::sync::Mutex::default(),
            secrets_change: tokio::sync::Mutex::default(),
            settings,
            awake: Mutex::default(),
            quarantine: Mutex::default(),
            shutting_down: AtomicBool::new(false),
            loops: watch::Sender::new(0),
        }
    }

    /// A damaged ledger of the home is quarantined: the agents are served, and named tokens open nothing.
    fn admit_home(&self, read: Result<(), ReadError>) -> Result<(), SubmitError> {
        match read {
            Ok(()) => Ok(()),
            Err(ReadError::Store(error)) => Err(error.into()),
            Err(error @ ReadError::Damaged { .. }) => {
                self.set_apart(&AgentId::home(), error.to_string());
                Ok(())
            }
        }
    }

    /// The folder that everything of this runtime lies in.
    pub(super) fn home_folder(&self) -> &Path {
        self.agents_folder.parent().unwrap_or(&self.agents_folder)
    }

    /// Hands mail to an agent's loop, waking the agent if it sleeps.
    pub(super) fn post(self: &Arc<Self>, agent: &AgentId, mail: Mail) -> Result<(), SubmitError> {
        if let Some(reason) = self.quarantine_of(agent) {
            return Err(SubmitError::Quarantined { agent: agent.clone(), reason });
        }
        let mut awake = self.awake();
        if self.shutting_down.load(Ordering::SeqCst) {
            return Err(SubmitError::ShuttingDown);
        }
        let inbox = awake.entry(agent.clone()).or_insert_with(|| self.wake(agent));
        if let Mail::Submit(submission) = &mail
            && inbox.waiting.fetch_add(1, Ordering::Relaxed) >= room_in_inbox(&submission.request.cause)
        {
            inbox.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(SubmitError::Overloaded);
        }
        inbox.mail.send(mail).map_err(|_| SubmitError::Unavailable("the agent's loop has ended".into()))
    }

    /// Hands mail to an agent's loop if it has one.
    pub(super) fn post_if_awake(&self, agent: &AgentId, mail: impl FnOnce() -> Mail) -> bool {
        match self.awake().get(agent) {
            Some(inbox) => inbox.mail.send(mail()).is_ok(),
            None => false,
        }
    }

    pub(super) fn is_awake(&self, agent: &AgentId) -> bool {
        self.awake().contains_key(agent)
    }

    /// Wakes an agent to look for what is due.
    pub(super) fn nudge(self: &Arc<Self>, agent: &AgentId) {
        if let Err(error) = self.post(agent, Mail::Nudge) {
            tracing::warn!(%agent, %error, "an agent that is due cannot be woken");
        }
    }

    fn wake(self: &Arc<Self>, agent: &AgentId) -> Inbox {
        let (mail, received) = unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let inbox = Inbox { mail: mail.clone(), waiting: waiting.clone() };
        self.loops.send_modify(|count| *count += 1);
        agent_loop::spawn(self.clone(), agent.clone(), Received { mail: received, me: mail, waiting });
        inbox
    }

    /// Takes an agent with nothing to do out of the awake ones, unless mail has come.
    pub(super) fn retire(&self, agent: &AgentId, received: &Received) -> bool {
        let mut awake = self.awake();
        let idle = received.mail.is_empty();
        if idle {
            awake.remove(agent);
        }
        idle
    }

    /// A loop has ended. One that retired left the awake ones before, and another may have taken its place since.
    pub(super) fn ended(&self, agent: &AgentId, retired: bool) {
        if !retired {
            self.awake().remove(agent);
        }
        self.loops.send_modify(|count| *count -= 1);
    }

    /// Sets an agent apart; all others are served on.
    pub(super) fn set_apart(&self, agent: &AgentId, reason: String) {
        tracing::error!(%agent, %reason, "the agent is set apart");
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner).insert(agent.clone(), reason);
    }

    pub(super) fn quarantine_of(&self, agent: &AgentId) -> Option<String> {
        self.quarantine.lock().unwrap_or_else(PoisonError::into_inner).get(agent).cloned()
    }

    pub(super) fn quarantined(&self) -> Vec<(AgentId, String)> {
        let quarantine = self.quarantine.lock().unwrap_or_else(PoisonError::into_inner);
        quarantine.iter().map(|(agent, reason)| (agent.clone(), reason.clone())).collect()
    }

    /// Why an agent's loop gave no answer.
    pub(super) fn absence(&self, agent: &AgentId) -> SubmitError {
        match self.quarantine_of(agent) {
            Some(reason) => SubmitError::Quarantined { agent: agent.clone(), reason },
            None if self.shutting_down.load(Ordering::SeqCst) => SubmitError::ShuttingDown,
            None => SubmitError::Unavailable("the agent's loop gave no answer".into()),
        }
    }

    /// An agent's durable state.
    pub(super) fn load(&self, agent: &AgentId) -> Result<Option<(AgentState, Head)>, SubmitError> {
        self.read(agent, |store| reader::load(store, agent))
    }

    /// Reads a ledger. Damage sets the agent apart.
    pub(super) fn read<T>(
        &self,
        agent: &AgentId,
        read: impl FnOnce(&dyn Store) -> Result<T, ReadError>,
    ) -> Result<T, SubmitError> {
        read(&*self.store).map_err(|error| match error {
            ReadError::Store(error) => error.into(),
            ReadError::Damaged { .. } => {
                let reason = error.to_string();
                self.set_apart(agent, reason.clone());
                SubmitError::Quarantined { agent: agent.clone(), reason }
            }
        })
    }

    pub(super) fn occupancy(&self) -> Occupancy {
        Occupancy {
            agents_awake: self.awake().len(),
            turns: self.turns.occupied(),
            model_calls: self.model_calls.occupied(),
            commands: self.commands.occupied(),
            background_commands: self.background.occupied(),
        }
    }

    /// The places that hold agents up, kind by kind.
    fn permits(&self) -> [(PermitKind, &Permits); 3] {
        let (turns, model_calls, commands) = (&self.turns, &self.model_calls, &self.commands);
        [(PermitKind::Turn, turns), (PermitKind::ModelCall, model_calls), (PermitKind::Command, commands)]
    }

    /// What an agent cannot begin for want of a place.
    pub(super) fn waits_for_permit(&self, agent: &AgentId) -> Vec<WaitingForPermit> {
        let waits = |(kind, permits): (PermitKind, &Permits)| {
            Some(WaitingForPermit { agent_id: agent.clone(), kind, since: permits.waits(agent)? })
        };
        self.permits().into_iter().filter_map(waits).collect()
    }

    /// Who cannot go on for want of a place, `limit` at most of each kind.
    pub(super) fn waiting_for_permit(&self, limit: usize) -> Vec<WaitingForPermit> {
        let waiting = |(kind, permits): (PermitKind, &Permits)| {
            let named = move |(agent_id, since)| WaitingForPermit { agent_id, kind, since };
            permits.waiting(limit).into_iter().map(named)
        };
        self.permits().into_iter().flat_map(waiting).collect()
    }

    /// Removes the run folders of commands whose end is recorded: a crash came between the two.
    fn sweep_runs(&self) {
        let names = match self.processes.names() {
            Ok(names) => names,
            Err(error) => return tracing::warn!(%error, "run folders cannot be listed"),
        };
        for name in names.iter().filter(|name| self.is_recorded(name)) {
            if let Err(error) = self.processes.remove(name) {
                tracing::warn!(agent = command::owner(name), %error, name, "a run folder cannot be removed");
            }
        }
    }

    /// Removes the payloads of requests that earlier boots refused, or did not come to record.
    fn sweep_payloads(&self) {
        if let Err(error) = self.blobs.sweep() {
            tracing::warn!(%error, "payloads that no event names cannot be removed; the next boot tries again");
        }
    }

    fn is_recorded(&self, name: &str) -> bool {
        let parsed = agent_loop::parse_run_name(name);
        parsed.is_some_and(|(agent, TaskId(number))| {
            matches!(self.store.record(&agent, RecordKind::Task, number), Ok(Some(_)))
        })
    }

    fn awake(&self) -> MutexGuard<'_, HashMap<AgentId, Inbox>> {
        self.awake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
