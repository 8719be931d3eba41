//! The durable store: all ledgers in one redb file (architecture 4), so that commits of different agents share one
//! sync and a parent and its child commit together.
//!
//! Every commit sets quick-repair, so that reopening after a crash does not grow with history. Errors *and panics* of
//! the engine are caught here; after a failed commit the file is closed and opened again.

mod row;
pub mod table;

use super::{Append, AppendError, Head, Outcomes, Records, Store, StoreError};
use crate::fold::row::{RecordKind, RecordRow};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use redb::{Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Memory that redb may keep of the file's pages.
pub const CACHE_BYTES: usize = 128 * 1024 * 1024;

/// Opens the database file; again after each failure.
pub type Opener = Box<dyn Fn() -> Result<Database, redb::DatabaseError> + Send + Sync>;

pub struct RedbStore {
    opener: Option<Opener>,
    database: RwLock<Option<Open>>,
}

enum Open {
    Writable(Database),
    /// For looking at a home while nobody serves it.
    ReadOnly(ReadOnlyDatabase),
}

impl RedbStore {
    /// Opens or creates the file at `path`.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path: PathBuf = path.to_owned();
        Self::with_opener(Box::new(move || Database::builder().set_cache_size(CACHE_BYTES).create(&path)))
    }

    /// Opens whatever `opener` opens.
    pub fn with_opener(opener: Opener) -> Result<Self, StoreError> {
        let database = guarded(|| opener().map_err(StoreError::from))?;
        let store = Self { opener: Some(opener), database: RwLock::new(Some(Open::Writable(database))) };
        store.write(table::create)?;
        Ok(store)
    }

    /// Opens an existing file for reading alone.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let database =
            guarded(|| Database::builder().set_cache_size(CACHE_BYTES).open_read_only(path).map_err(StoreError::from))?;
        Ok(Self { opener: None, database: RwLock::new(Some(Open::ReadOnly(database))) })
    }

    /// A number kept beside the ledgers.
    pub fn number(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.read(|transaction| table::number(transaction, name))
    }

    pub fn set_number(&self, name: &str, value: u64) -> Result<(), StoreError> {
        self.write(|transaction| Ok(table::set_number(transaction, name, value)?))
    }

    fn read<T>(&self, act: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        guarded(|| {
            let transaction = match database.as_ref().ok_or_else(closed)? {
                Open::Writable(database) => database.begin_read(),
                Open::ReadOnly(database) => database.begin_read(),
            };
            Ok(act(&transaction.map_err(redb::Error::from)?)?)
        })
    }

    /// One durable transaction. After a failure the file is opened anew, so that the next one finds a working engine.
    fn write<T>(&self, act: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        let outcome = {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            guarded(|| {
                let Some(Open::Writable(database)) = database.as_ref() else { return Err(closed()) };
                let mut transaction = database.begin_write().map_err(redb::Error::from)?;
                transaction.set_quick_repair(true);
                let value = act(&transaction)?;
                transaction.commit().map_err(redb::Error::from)?;
                Ok(value)
            })
        };
        if let Err(error) = &outcome {
            tracing::error!(%error, "a commit failed; the store is opened again");
            self.reopen();
        }
        outcome
    }

    fn reopen(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        let Some(opener) = &self.opener else { return };
        // The old handle holds the file's lock, so it goes first. A panic of its destructor is the engine's as well.
        if let Err(error) = guarded(|| {
            *database = None;
            Ok(())
        }) {
            tracing::error!(%error, "closing the store failed");
        }
        match guarded(|| opener().map_err(StoreError::from)) {
            Ok(fresh) => *database = Some(Open::Writable(fresh)),
            Err(error) => {
                tracing::error!(%error, "the store could not be opened again; the next commit tries once more")
            }
        }
    }

    fn ensure_open(&self) {
        let is_open = self.database.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if !is_open {
            self.reopen();
        }
    }
}

fn closed() -> StoreError {
    StoreError::Closed("it could not be opened again after a failure".into())
}

/// Runs `act`, turning a panic of the engine into an error.
fn guarded<T>(act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(StoreError::Panicked(text.unwrap_or_else(|| "without a message".into())))
    })
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        let text = error.to_string();
        match &error {
            redb::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => Self::NoSpace(text),
            redb::Error::Corrupted(_) => Self::Damaged(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<redb::DatabaseError> for StoreError {
    fn from(error: redb::DatabaseError) -> Self {
        redb::Error::from(error).into()
    }
}

impl Store for RedbStore {
    fn commit(&self, batch: &[Append]) -> Outcomes {
        self.ensure_open();
        self.write(|transaction| row::append_all(transaction, batch))
            .unwrap_or_else(|error| batch.iter().map(|_| Err(AppendError::Store(error.clone()))).collect())
    }

    fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, StoreError> {
        self.read(|transaction| row::agents(transaction, after, limit))
    }

    fn head(&self, agent: &AgentId) -> Result<Option<Head>, StoreError> {
        self.read(|transaction| row::head(transaction, agent))
    }

    fn records(&self, agent: &AgentId, after: EventSeq, until: EventSeq) -> Result<Records, StoreError> {
        self.read(|transaction| row::records(transaction, agent, after, until))
    }

    fn anchor(&self, agent: &AgentId, seq: EventSeq) -> Result<Option<Hash>, StoreError> {
        self.read(|transaction| row::anchor(transaction, agent, seq))
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|transaction| row::checkpoint(transaction, agent))
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|transaction| row::blob(transaction, hash))
    }

    fn list(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<(AgentId, Vec<u8>)>, StoreError> {
        self.read(|transaction| row::list(transaction, after, limit))
    }

    fn due(&self) -> Result<Vec<AgentId>, StoreError> {
        self.read(row::due)
    }

    fn deadlines(&self) -> Result<Vec<(Timestamp, AgentId)>, StoreError> {
        self.read(row::deadlines)
    }

    fn record(&self, agent: &AgentId, kind: RecordKind, number: u64) -> Result<Option<RecordRow>, StoreError> {
        let rows = self.records_closed(agent, kind, number.saturating_add(1), 1)?;
        Ok(rows.into_iter().find(|row| row.number == number))
    }

    fn records_closed(
        &self,
        agent: &AgentId,
        kind: RecordKind,
        before: u64,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        self.read(|transaction| row::records_closed(transaction, agent, kind, before, limit))
    }

    fn forget_checkpoints(&self) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.delete_table(table::CHECKPOINTS)?;
            transaction.open_table(table::CHECKPOINTS)?;
            Ok(())
        })
    }
}
