//! What the surfaces hold of the runtime. Cheap to clone; shows no channels.

use super::effect::delivery::CallbackSecret;
use super::effect::workspace::resolve;
use super::effect::{output, trigger};
use super::feed::Follower;
use super::host::Shared;
use super::mail::{Mail, Submission};
use super::meter::Counts;
use super::model::catalog::ModelError;
use super::permit::{Occupied, WaitingForPermit};
use super::secret::SecretError;
use super::source::{CAPABILITY_PREFIX, Token};
use crate::decide::operator::OperatorCommand;
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Attribution, Command, Rejection, Request, agent::AgentCommand};
use crate::events::agent::Answer;
use crate::events::operator::BindingTerms;
use crate::events::waiting::DeliveryMode;
use crate::fold::AgentState;
use crate::fold::row::{self, ListRow};
use crate::ledger::blob::{BlobError, Blobs};
use crate::ledger::reader::{self, ReadError};
use crate::ledger::{Head, LogRow, Store, StoreError};
use crate::words::content::{Blob, Content};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, BindingId, Boot, EventSeq, TaskId, TriggerId, WorkId};
use secrecy::SecretString;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

#[derive(Clone)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
}

/// Why a command was not carried out. Nothing of it was recorded.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error("agent {agent} is set apart: {reason}")]
    Quarantined { agent: AgentId, reason: String },
    #[error("too many requests wait for this agent")]
    Overloaded,
    #[error("the runtime is shutting down")]
    ShuttingDown,
    #[error("the ledger cannot be written or read at the moment: {0}")]
    Unavailable(String),
}

impl From<BlobError> for SubmitError {
    fn from(error: BlobError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<SecretError> for SubmitError {
    fn from(error: SecretError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A capability as a surface asks for it.
#[derive(Clone, Debug)]
pub struct NewTrigger {
    pub mode: DeliveryMode,
    pub label: String,
    pub work: Option<WorkId>,
}

/// A capability that is there.
#[derive(Debug)]
pub struct CreatedTrigger {
    pub trigger: TriggerId,
    /// How to use it, told this once; none when it was made by the same request before.
    pub url: Option<String>,
}

/// What a host has under way.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    pub agents_awake: usize,
    pub turns: Occupied,
    pub model_calls: Occupied,
    pub commands: Occupied,
    pub background_commands: Occupied,
}

impl Handle {
    /// Decides a command; answers when what it led to is durable.
    pub async fn submit(&self, agent: &AgentId, request: Request, blobs: Vec<Blob>) -> Result<Answer, SubmitError> {
        let creates = matches!(request.command, Command::Agent(AgentCommand::Create(_)));
        if !creates && !self.shared.is_awake(agent) && self.shared.store.head(agent)?.is_none() {
            return Err(Rejection::UnknownAgent.into());
        }
        let blobs = self.keep_large(blobs).await?;
        let (reply, answer) = oneshot::channel();
        self.shared.post(agent, Mail::Submit(Submission { request, blobs, reply }))?;
        answer.await.unwrap_or_else(|_| Err(self.shared.absence(agent)))
    }

    /// Looks at an agent's durable state. A sleeping agent is not woken by that.
    pub async fn read<T: Send + 'static>(
        &self,
        agent: &AgentId,
        look: impl FnOnce(&AgentState) -> T + Send + 'static,
    ) -> Result<T, SubmitError> {
        if let Some(reason) = self.shared.quarantine_of(agent) {
            return Err(SubmitError::Quarantined { agent: agent.clone(), reason });
        }
        let (reply, answer) = oneshot::channel();
        let mut look = Some(move |state: &AgentState| {
            // The one who asked may have gone.
            let _ = reply.send(look(state));
        });
        if !self.shared.post_if_awake(agent, || Mail::Read(Box::new(look.take().expect("posted once")))) {
            let look = look.take().expect("not posted");
            let (shared, id) = (self.shared.clone(), agent.clone());
            blocking(move || shared.load(&id).map(|loaded| loaded.map(|(state, _)| look(&state))))
                .await?
                .ok_or(Rejection::UnknownAgent)?;
        }
        answer.await.map_err(|_| self.shared.absence(agent))
    }

    /// List entries of the agents that follow `after`, in the order of ids, and why any is set apart.
    pub async fn list(
        &self,
        after: Option<AgentId>,
        limit: usize,
    ) -> Result<Vec<(AgentId, Option<ListRow>, Option<String>)>, SubmitError> {
        let shared = self.shared.clone();
        let rows = blocking(move || shared.store.list(after.as_ref(), limit)).await?;
        let entry = |(id, bytes): (AgentId, Vec<u8>)| {
            let reason = self.shared.quarantine_of(&id);
            (id, crate::events::codec::from_bytes(&bytes).ok(), reason)
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    /// Where the ledgers of the agents that follow `after` end, in the order of ids.
    pub async fn heads(&self, after: Option<AgentId>, limit: usize) -> Result<Vec<(AgentId, Head)>, SubmitError> {
        let store = self.shared.store.clone();
        let head = move |agent: AgentId| match store.head(&agent) {
            Ok(head) => head.map(|head| Ok((agent, head))),
            Err(error) => Some(Err(error)),
        };
        let shared = self.shared.clone();
        blocking(move || shared.store.agents(after.as_ref(), limit)?.into_iter().filter_map(head).collect()).await
    }

    /// Reads from an agent's ledger off the loop. Damage that is found sets the agent apart.
    pub async fn ledger<T: Send + 'static>(
        &self,
        agent: &AgentId,
        read: impl FnOnce(&dyn Store) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, SubmitError> {
        let (shared, id) = (self.shared.clone(), agent.clone());
        blocking(move || shared.read(&id, |store| read(store))).await
    }

    /// The text of `content`, whole.
    pub async fn text(&self, content: Content) -> Result<String, SubmitError> {
        match content {
            Content::Inline(text) => Ok(text),
            Content::Stored { hash, .. } => {
                let blobs = self.shared.blobs.clone();
                let bytes = blocking(move || blobs.read(&hash)).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }

    /// Those of the texts that are kept.
    pub async fn stored_texts(&self, hashes: Vec<Hash>) -> Result<BTreeMap<Hash, String>, SubmitError> {
        let shared = self.shared.clone();
        let read = move |hash: Hash| Some((hash, String::from_utf8(shared.blobs.read(&hash).ok()?).ok()?));
        blocking(move || Ok::<_, StoreError>(hashes.into_iter().filter_map(read).collect())).await
    }

    /// A page of a task's output: at most `bytes_max` bytes from `offset` on.
    pub async fn task_output(
        &self,
        agent: &AgentId,
        task: TaskId,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Value, SubmitError> {
        let open = self.read(agent, move |state| output::Open::of(state, task)).await?;
        output::read(self, agent, open, task, (offset, bytes_max)).await
    }

    /// The path of a folder that is there, every symlink in it followed, or why it is none.
    pub async fn folder(&self, path: &str) -> Result<Result<String, String>, SubmitError> {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            return Ok(Err(format!("{} is not an absolute path", path.display())));
        }
        let resolved = blocking(move || Ok::<_, StoreError>(resolve(&path))).await?;
        Ok(resolved.map(|path| path.to_string_lossy().into_owned()))
    }

    /// Makes a capability by which the outside reaches an agent.
    pub async fn create_trigger(
        &self,
        agent: &AgentId,
        new: NewTrigger,
        by: Attribution,
    ) -> Result<CreatedTrigger, SubmitError> {
        let token = Token::draw(CAPABILITY_PREFIX).map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        let NewTrigger { mode, label, work } = new;
        let command = WaitingCommand::CreateTrigger { mode, label, work, token_hash: token.hash() };
        let request = by.request(command);
        let Answer::Trigger(trigger) = self.submit(agent, request, Vec::new()).await? else {
            return Err(Rejection::KeyReused.into());
        };
        let kept = move |state: &AgentState| state.waiting.triggers.get(&trigger).map(|trigger| trigger.token_hash);
        let opens = self.read(agent, kept).await? == Some(token.hash());
        let base = &self.settings().callback_base_url;
        let url = opens.then(|| format!("{base}{}", trigger::path(mode.name(), &token)));
        Ok(CreatedTrigger { trigger, url })
    }

    /// Binds the operator to a transport. `terms` still lack the name of their secret.
    pub async fn bind(
        &self,
        agent: &AgentId,
        mut terms: BindingTerms,
        (url, bearer_token): (reqwest::Url, Option<String>),
        by: Attribution,
    ) -> Result<BindingId, SubmitError> {
        let kept = CallbackSecret { url: url.into(), bearer_token }.kept();
        let name = secret_name("binding", agent)?;
        terms.secret.clone_from(&name);
        let request = by.request(OperatorCommand::Bind { terms });
        let (answer, _) = self.submit_with_secret(agent, request, name, kept).await?;
        bound(&answer)
    }

    /// Ends the binding of that name or id.
    pub async fn unbind(&self, agent: &AgentId, name: String, by: Attribution) -> Result<BindingId, SubmitError> {
        let request = by.request(OperatorCommand::Unbind { name });
        bound(&self.submit(agent, request, Vec::new()).await?)
    }

    /// Keeps a secret, then has the command recorded that names it: what is named is there. One that nothing names in
    /// the end is forgotten. Answers whether it is named.
    pub(super) async fn submit_with_secret(
        &self,
        agent: &AgentId,
        request: Request,
        name: String,
        secret: SecretString,
    ) -> Result<(Answer, bool), SubmitError> {
        let _one_at_a_time = self.shared.secrets_change.lock().await;
        self.read(agent, |_| ()).await?;
        self.keep_secret(name.clone(), Some(secret)).await?;
        let answer = self.submit(agent, request, Vec::new()).await;
        let wanted = name.clone();
        let is_named = self.read(agent, move |state| row::secrets(state).contains(&wanted)).await?;
        if !is_named && let Err(error) = self.keep_secret(name, None).await {
            tracing::warn!(%agent, %error, "a secret that nothing names stays until the next boot");
        }
        Ok((answer?, is_named))
    }

    /// The agent that a live capability belongs to.
    pub async fn holder(&self, token_hash: Hash) -> Result<Option<AgentId>, SubmitError> {
        let shared = self.shared.clone();
        blocking(move || shared.store.token(&token_hash)).await
    }

    /// Follows an agent's ledger.
    pub fn follow(&self, agent: &AgentId, seen: EventSeq) -> Follower {
        self.shared.feed.follow(agent, seen)
    }

    /// Follows the ledgers of all agents.
    pub fn follow_all(&self) -> Follower {
        self.shared.feed.follow_all()
    }

    /// Records of all agents in the order of their commits, after the place `after`.
    pub async fn log(&self, after: u64, limit: usize) -> Result<Vec<LogRow>, SubmitError> {
        let store = self.shared.store.clone();
        blocking(move || store.log(after, limit)).await
    }

    /// The place of the last record of all.
    pub async fn log_end(&self) -> Result<u64, SubmitError> {
        let store = self.shared.store.clone();
        blocking(move || store.log_end()).await
    }

    /// Whether anything is recorded of an agent.
    pub fn exists(&self, agent: &AgentId) -> Result<bool, SubmitError> {
        Ok(self.shared.store.head(agent)?.is_some())
    }

    pub fn store(&self) -> Arc<dyn Store> {
        self.shared.store.clone()
    }

    /// The secret that is kept under `key`.
    pub fn secret(&self, key: &str) -> Option<SecretString> {
        self.shared.secrets.get(key)
    }

    /// Keeps a secret under `key`, in place of the one before; none forgets it.
    pub async fn keep_secret(&self, key: String, secret: Option<SecretString>) -> Result<(), SubmitError> {
        let shared = self.shared.clone();
        blocking(move || match secret {
            Some(secret) => shared.secrets.set(&key, secret),
            None => shared.secrets.clear(&key),
        })
        .await
    }

    pub fn blobs(&self) -> &Blobs {
        &self.shared.blobs
    }

    pub fn settings(&self) -> &super::settings::Settings {
        &self.shared.settings
    }

    pub fn boot(&self) -> Boot {
        self.shared.boot
    }

    pub fn now(&self) -> crate::words::time::Timestamp {
        self.shared.source.now()
    }

    pub fn occupancy(&self) -> Occupancy {
        self.shared.occupancy()
    }

    /// What an agent cannot begin for want of a place.
    pub fn waits_for_permit(&self, agent: &AgentId) -> Vec<WaitingForPermit> {
        self.shared.waits_for_permit(agent)
    }

    /// Who cannot go on for want of a place, `limit` at most of each kind.
    pub fn waiting_for_permit(&self, limit: usize) -> Vec<WaitingForPermit> {
        self.shared.waiting_for_permit(limit)
    }

    /// What was counted since the start.
    pub fn counts(&self) -> Counts {
        self.shared.meter.counts(self.shared.writer.commits())
    }

    /// The models that are known by name, and whether each can be asked.
    pub fn models(&self) -> BTreeMap<String, bool> {
        let models = &self.shared.models;
        let references = models.references().into_iter().chain(self.settings().models.iter().cloned());
        references.map(|reference| (reference.clone(), models.is_available(&reference))).collect()
    }

    /// A model's reference in full, if anything answers for it.
    pub fn model_in_full(&self, reference: &str) -> Result<String, ModelError> {
        self.shared.models.in_full(reference)
    }

    /// Agents that are set apart, and why.
    pub fn quarantined(&self) -> Vec<(AgentId, String)> {
        self.shared.quarantined()
    }

    /// Folds and verifies an agent's whole ledger.
    pub async fn verify(&self, agent: &AgentId) -> Result<Head, SubmitError> {
        let (shared, id) = (self.shared.clone(), agent.clone());
        blocking(move || shared.read(&id, |store| reader::fold(store, &id).map(|(_, head)| head))).await
    }

    async fn keep_large(&self, blobs: Vec<Blob>) -> Result<Vec<Blob>, SubmitError> {
        if blobs.is_empty() {
            return Ok(blobs);
        }
        let keeper = self.shared.blobs.clone();
        blocking(move || keeper.keep_large(blobs)).await
    }
}

/// A name under which a secret may be kept; it tells nothing of the secret.
pub(super) fn secret_name(purpose: &str, agent: &AgentId) -> Result<String, SubmitError> {
    let drawn = Token::draw("").map_err(|error| SubmitError::Unavailable(error.to_string()))?;
    Ok(format!("{purpose}/{agent}/{:.32}", drawn.hash().to_string()))
}

/// The binding that was altered.
fn bound(answer: &Answer) -> Result<BindingId, SubmitError> {
    let Answer::Binding(binding) = answer else { return Err(Rejection::KeyReused.into()) };
    Ok(*binding)
}

/// Runs `act` where it may block.
pub(super) async fn blocking<T: Send + 'static, E>(
    act: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, SubmitError>
where
    E: Send + 'static,
    SubmitError: From<E>,
{
    match tokio::task::spawn_blocking(act).await {
        Ok(outcome) => outcome.map_err(SubmitError::from),
        Err(error) => Err(SubmitError::Unavailable(error.to_string())),
    }
}
