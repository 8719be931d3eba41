//! The ledger floor: events become durable here, and are read back only after they were verified.
//!
//! [`Store`] is the small trait behind which an engine sits; [`writer`] puts everything that waits into one
//! transaction; [`reader`] walks the chain. A store keeps bytes and knows nothing of what they mean.
//!
//! **Invariant:** every append names the head that it expects; there is no path without it (architecture 16).

pub mod blob;
pub mod chain;
pub mod checkpoint;
pub mod home;
pub mod memory;
pub mod owner;
pub mod reader;
pub mod redb;
pub mod writer;

use crate::fold::row::{RecordKind, RecordRow, TokenRow};
use crate::words::content::Blob;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;

/// The last event of a ledger and the link of the chain there: the authority on where a ledger ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: EventSeq,
    pub hash: Hash,
}

/// Encoded records that follow each other, in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// What is to become durable at once, or not at all. One part for each ledger.
#[derive(Clone, Debug, Default)]
pub struct Append {
    pub parts: Vec<Part>,
    /// Payloads up to the size that rides in a transaction; larger ones are files already.
    pub blobs: Vec<Blob>,
}

/// One ledger's share of an append.
#[derive(Clone, Debug)]
pub struct Part {
    pub agent: AgentId,
    /// The head that the writer believes in.
    pub expected: Head,
    pub records: Records,
    /// The head afterwards.
    pub head: Head,
    /// Links kept for reading from the middle.
    pub anchors: Vec<Head>,
    /// Payloads that the records name. Those that are no rows afterwards are files, and are noted as such.
    pub payloads: Vec<Hash>,
    /// The list entry, if it changed.
    pub list: Option<Vec<u8>>,
    /// Whether the agent is to be woken at boot, if that changed.
    pub due: Option<bool>,
    /// When it is to be woken otherwise, if that changed.
    pub deadline: Option<Option<Timestamp>>,
    pub closed: Vec<RecordRow>,
    /// Capabilities that became live, or worthless.
    pub tokens: Vec<TokenRow>,
    pub checkpoint: Option<Vec<u8>>,
}

/// Why an append did not happen. It failed alone: others of the same batch are not concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("agent {agent}: the ledger is at event {found}, not at the expected {expected}")]
    Conflict { agent: AgentId, expected: EventSeq, found: EventSeq },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The engine failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("no space is left for the ledger: {0}")]
    NoSpace(String),
    #[error("the disk failed under the ledger: {0}")]
    Io(String),
    #[error("the store failed: {0}")]
    Failed(String),
    #[error("the store's file is damaged: {0}")]
    Damaged(String),
    #[error("the store's file was not closed in good order, and reading alone does not mend it")]
    Unfinished,
    #[error("the store panicked: {0}")]
    Panicked(String),
    #[error("the store is closed: {0}")]
    Closed(String),
}

/// A record in its place among those of all ledgers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// From 1, in the order of commits.
    pub place: u64,
    pub agent: AgentId,
    pub record: Vec<u8>,
}

/// The outcome of each append of a batch, in the batch's order.
pub type Outcomes = Vec<Result<(), AppendError>>;

/// An engine that keeps ledgers. Reads see what is durable.
pub trait Store: Send + Sync {
    /// Ends the store in good order; whatever comes later is refused.
    fn close(&self) {}

    /// One transaction, one sync. A conflict fails its append alone; an engine failure fails them all.
    fn commit(&self, batch: &[Append]) -> Outcomes;

    /// Agents with a ledger whose ids follow `after`, in the order of ids. The home's own ledger is no agent's.
    fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, StoreError>;

    fn head(&self, agent: &AgentId) -> Result<Option<Head>, StoreError>;

    /// Records after `after` up to and with `until`, as far as they are there.
    fn records(&self, agent: &AgentId, after: EventSeq, until: EventSeq) -> Result<Records, StoreError>;

    /// Records of all ledgers in the order of their commits, after the place `after`. Nothing chains these places:
    /// a ledger's own order and bytes are verified through [`reader`].
    fn log(&self, after: u64, limit: usize) -> Result<Vec<LogRow>, StoreError>;

    /// The place of the last record of all.
    fn log_end(&self) -> Result<u64, StoreError>;

    /// The link kept at `seq`, if one is.
    fn anchor(&self, agent: &AgentId, seq: EventSeq) -> Result<Option<Hash>, StoreError>;

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Vec<u8>>, StoreError>;

    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError>;

    /// Whether a record names a payload that was no row at that time.
    fn names_file(&self, hash: &Hash) -> Result<bool, StoreError>;

    /// List entries of agents whose ids follow `after`, in the order of ids.
    fn list(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<(AgentId, Vec<u8>)>, StoreError>;

    /// Agents to be woken at boot, in the order of ids.
    fn due(&self) -> Result<Vec<AgentId>, StoreError>;

    /// When other agents are to be woken, earliest first and then in the order of ids.
    fn deadlines(&self) -> Result<Vec<(Timestamp, AgentId)>, StoreError>;

    fn record(&self, agent: &AgentId, kind: RecordKind, number: u64) -> Result<Option<RecordRow>, StoreError>;

    /// Closed records with numbers below `before`, the highest first.
    fn records_closed(
        &self,
        agent: &AgentId,
        kind: RecordKind,
        before: u64,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError>;

    /// The agent that a live capability belongs to.
    fn token(&self, token_hash: &Hash) -> Result<Option<AgentId>, StoreError>;

    /// Removes every checkpoint: reads take longer and answer the same.
    fn forget_checkpoints(&self) -> Result<(), StoreError>;
}

impl Records {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all records together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// Lets `write` append one record to the buffer.
    pub fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<&[u8], E> {
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(&self.bytes[start..])
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}
