//! The home's own ledger: one owner of its state, one append under way.

use super::handle::{Handle, SubmitError, blocking};
use super::host::Shared;
use super::source::Token;
use crate::decide::home::{HomeCommand, handle};
use crate::events::Cause;
use crate::events::home::Scope;
use crate::fold::home::HomeState;
use crate::ledger::chain::{self, Linked};
use crate::ledger::reader;
use crate::ledger::{Append, Head, Part, Store};
use crate::words::id::{AgentId, TokenName};
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// Begins every named token, so that one that leaked is recognised.
const TOKEN_PREFIX: &str = "holon_";

/// A named token as a surface asks for it.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: TokenName,
    pub scopes: Vec<Scope>,
    pub lifetime_ms: Option<u64>,
}

/// The home's ledger as the host has it.
pub(super) struct HomeLedger {
    /// The head that the next append expects; none when the ledger is to be read first. Held while one is under way.
    head: Mutex<Option<Head>>,
    /// What is durable.
    state: watch::Sender<Arc<HomeState>>,
}

impl HomeLedger {
    /// Reads the ledger of `store`. One that is damaged is told of, and stays empty here: the host quarantines it.
    pub(super) fn open(store: &dyn Store) -> (Self, Result<(), reader::ReadError>) {
        let (state, head, outcome) = match reader::home(store) {
            Ok((state, head)) => (state, Some(head), Ok(())),
            Err(error) => (HomeState::default(), None, Err(error)),
        };
        (Self { head: Mutex::new(head), state: watch::Sender::new(Arc::new(state)) }, outcome)
    }
}

impl Handle {
    /// Decides a command about the home; answers when what it led to is durable.
    pub async fn submit_home(&self, command: HomeCommand, cause: Cause) -> Result<(), SubmitError> {
        let shared = self.shared.clone();
        // Whoever asked may go; what was begun comes to its end, and the state here stays that of the ledger.
        let submitted = tokio::spawn(async move { shared.submit_home(command, cause).await });
        submitted.await.unwrap_or_else(|error| Err(SubmitError::Unavailable(error.to_string())))
    }

    /// Makes a named token. Its secret is told this once.
    pub async fn create_token(&self, new: NewToken, cause: Cause) -> Result<Token, SubmitError> {
        let NewToken { name, scopes, lifetime_ms } = new;
        let token = Token::draw(TOKEN_PREFIX).map_err(|error| SubmitError::Unavailable(error.to_string()))?;
        let command = HomeCommand::CreateToken { name, scopes, token_hash: token.hash(), lifetime_ms };
        self.submit_home(command, cause).await?;
        Ok(token)
    }

    /// The home's durable state.
    pub fn home(&self) -> Arc<HomeState> {
        self.shared.home.state.borrow().clone()
    }

    /// Follows the home's durable state.
    pub fn follow_home(&self) -> watch::Receiver<Arc<HomeState>> {
        self.shared.home.state.subscribe()
    }

    /// Whether a token is asked for because the home has named ones. When its ledger cannot be read nobody knows, so
    /// one is asked for.
    pub fn requires_token(&self) -> bool {
        self.home().requires_token || self.shared.quarantine_of(&AgentId::home()).is_some()
    }

    /// Folds and verifies the home's whole ledger.
    pub async fn verify_home(&self) -> Result<Head, SubmitError> {
        self.ledger(&AgentId::home(), |store| reader::home(store).map(|(_, head)| head)).await
    }
}

impl Shared {
    async fn submit_home(self: Arc<Self>, command: HomeCommand, cause: Cause) -> Result<(), SubmitError> {
        let id = AgentId::home();
        if let Some(reason) = self.quarantine_of(&id) {
            return Err(SubmitError::Quarantined { agent: id, reason });
        }
        let mut head = self.home.head.lock().await;
        let (mut state, expected) = match head.take() {
            Some(head) => (HomeState::clone(&self.home.state.borrow()), head),
            None => self.read_home().await?,
        };
        let decided = handle(&mut state, &command, &cause, self.source.now());
        let envelopes = match decided.map_err(|illegal| SubmitError::Unavailable(illegal.to_string()))? {
            Ok(envelopes) => envelopes,
            Err(rejection) => {
                *head = Some(expected);
                return Err(rejection.into());
            }
        };
        let linked = chain::extend(expected, &envelopes).expect("decisions keep events within their bounds");
        let after = linked.head;
        let append = Append { parts: vec![part(expected, linked)], blobs: Vec::new() };
        let watch = self.source.stopwatch();
        // After a failure nobody knows what was written, so that the ledger is read before the next append.
        if let Err(error) = self.writer.append(append).await {
            self.meter.failed();
            return Err(SubmitError::Unavailable(error.to_string()));
        }
        self.meter.appended(envelopes.len(), watch.elapsed_us());
        *head = Some(after);
        self.home.state.send_replace(Arc::new(state));
        self.feed.publish(&id, after.seq);
        Ok(())
    }

    async fn read_home(self: &Arc<Self>) -> Result<(HomeState, Head), SubmitError> {
        let shared = self.clone();
        blocking(move || shared.read(&AgentId::home(), reader::home)).await
    }
}

/// The home has no rows: no list names it, and nothing wakes it.
fn part(expected: Head, linked: Linked) -> Part {
    let Linked { records, anchors, payloads, head } = linked;
    Part {
        agent: AgentId::home(),
        expected,
        records,
        head,
        anchors,
        payloads,
        list: None,
        due: None,
        deadline: None,
        closed: Vec::new(),
        tokens: Vec::new(),
        checkpoint: None,
    }
}
