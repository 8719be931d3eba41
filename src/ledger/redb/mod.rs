//! The durable store: all ledgers in one redb file (architecture 4), so that commits of different agents share one
//! sync and a parent and its child commit together.
//!
//! Every commit sets quick-repair, so that reopening after a crash does not grow with history. Errors *and panics* of
//! the engine are caught here; after a failed commit the file is closed and opened again.

mod row;
pub mod table;

use super::home::{LOCK_PAUSE, LOCK_TRIES};
use super::{Append, AppendError, Head, LogRow, Outcomes, Records, Store, StoreError};
use crate::fold::row::{RecordKind, RecordRow};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use redb::{Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, WriteTransaction};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Memory that redb may keep of the file's pages.
pub const CACHE_BYTES: usize = 128 * 1024 * 1024;

/// Opens the database file; again after each failure.
pub type Opener = Box<dyn Fn() -> Result<Database, redb::DatabaseError> + Send + Sync>;

pub struct RedbStore {
    opener: Option<Opener>,
    database: RwLock<Option<Open>>,
    /// Whether it was closed for good.
    is_over: AtomicBool,
}

enum Open {
    Writable(Database),
    /// For looking at a home while nobody serves it.
    ReadOnly(ReadOnlyDatabase),
}

impl RedbStore {
    /// Opens or creates the file at `path`. A file made by another release may need [`Self::prepare`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path: PathBuf = path.to_owned();
        if !path.exists() {
            create(&path)?;
        }
        Self::opened(Box::new(move || open_patiently(&path)))
    }

    /// Opens whatever `opener` opens, and prepares it.
    pub fn with_opener(opener: Opener) -> Result<Self, StoreError> {
        let store = Self::opened(opener)?;
        store.prepare()?;
        Ok(store)
    }

    fn opened(opener: Opener) -> Result<Self, StoreError> {
        let database = guarded(|| opener().map_err(StoreError::from))?;
        Ok(Self::of(Some(opener), Open::Writable(database)))
    }

    /// Makes the tables that are not there.
    pub fn prepare(&self) -> Result<(), StoreError> {
        self.write(table::create)
    }

    /// Opens an existing file for reading alone.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let database =
            guarded(|| Database::builder().set_cache_size(CACHE_BYTES).open_read_only(path).map_err(StoreError::from))?;
        Ok(Self::of(None, Open::ReadOnly(database)))
    }

    fn of(opener: Option<Opener>, database: Open) -> Self {
        Self { opener, database: RwLock::new(Some(database)), is_over: AtomicBool::new(false) }
    }

    /// A number kept beside the ledgers.
    pub fn number(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.read(|transaction| table::number(transaction, name))
    }

    pub fn set_number(&self, name: &str, value: u64) -> Result<(), StoreError> {
        self.write(|transaction| table::set_number(transaction, name, value))
    }

    /// After the disk has failed or the engine has panicked, it reads no further until the file is opened anew.
    fn read<T>(&self, act: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        self.ensure_open();
        let outcome = {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            guarded(|| {
                let transaction = match database.as_ref().ok_or_else(closed)? {
                    Open::Writable(database) => database.begin_read(),
                    Open::ReadOnly(database) => database.begin_read(),
                };
                Ok(act(&transaction.map_err(redb::Error::from)?)?)
            })
        };
        if let Err(error @ (StoreError::Io(_) | StoreError::Panicked(_))) = &outcome {
            tracing::error!(%error, "the ledger could not be read; the store is opened again");
            self.reopen();
        }
        outcome
    }

    /// One durable transaction. After a failure the file is opened anew, so that the next one finds a working engine.
    fn write<T>(&self, act: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>) -> Result<T, StoreError> {
        self.ensure_open();
        let outcome = {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            guarded(|| match database.as_ref().ok_or_else(closed)? {
                Open::Writable(database) => commit(database, act),
                Open::ReadOnly(_) => Err(StoreError::Closed("it is open for reading alone".into())),
            })
        };
        if let Err(error) = &outcome {
            tracing::error!(%error, "a commit failed; the store is opened again");
            self.reopen();
        }
        outcome
    }

    /// Whoever finds the store closed opens it: an agent that folds its ledger anew reads before anybody writes.
    fn ensure_open(&self) {
        let is_open = self.database.read().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_open {
            return;
        }
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            self.open_anew(&mut database);
        }
    }

    fn reopen(&self) {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*database, Some(Open::ReadOnly(_))) {
            return;
        }
        // The old handle holds the file's lock, so it goes first.
        close(database.take());
        self.open_anew(&mut database);
    }

    fn open_anew(&self, database: &mut Option<Open>) {
        let Some(opener) = self.opener.as_ref().filter(|_| !self.is_over.load(Ordering::SeqCst)) else { return };
        match guarded(|| opener().map_err(StoreError::from)) {
            Ok(fresh) => *database = Some(Open::Writable(fresh)),
            Err(error) => {
                tracing::error!(%error, "the store could not be opened again; the next access tries once more");
            }
        }
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        Store::close(self);
    }
}

/// A destructor of the engine may panic as well.
fn close(database: Option<Open>) {
    let closed = guarded(|| {
        drop(database);
        Ok(())
    });
    if let Err(error) = closed {
        tracing::error!(%error, "closing the store failed");
    }
}

/// A file that is there is a whole one: a crash while it is made leaves only the temporary one behind.
fn create(path: &Path) -> Result<(), StoreError> {
    let temporary = path.with_extension("new");
    let failed = |error| StoreError::from(redb::Error::Io(error));
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let new = temporary.clone();
    drop(RedbStore::with_opener(Box::new(move || Database::create(&new)))?);
    fs::set_permissions(&temporary, Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    let folder = path.parent().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

fn commit<T>(
    database: &Database,
    act: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>,
) -> Result<T, StoreError> {
    let mut transaction = database.begin_write().map_err(redb::Error::from)?;
    transaction.set_quick_repair(true);
    let value = act(&transaction)?;
    transaction.commit().map_err(redb::Error::from)?;
    Ok(value)
}

/// Opens a file whose lock a killed holon's child may hold for a moment more, as it may the home's.
fn open_patiently(path: &Path) -> Result<Database, redb::DatabaseError> {
    let open = || Database::builder().set_cache_size(CACHE_BYTES).open(path);
    for _ in 1..LOCK_TRIES {
        match open() {
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => std::thread::sleep(LOCK_PAUSE),
            opened => return opened,
        }
    }
    open()
}

fn closed() -> StoreError {
    StoreError::Closed("it has ended, or could not be opened again after a failure".into())
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
    #[expect(clippy::wildcard_enum_match_arm, reason = "both enums are foreign and may grow")]
    fn from(error: redb::Error) -> Self {
        let text = error.to_string();
        match &error {
            redb::Error::Io(error) => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace(text),
                io::ErrorKind::InvalidData => Self::Damaged(text),
                _ => Self::Io(text),
            },
            redb::Error::PreviousIo => Self::Io(text),
            redb::Error::Corrupted(_) => Self::Damaged(text),
            redb::Error::RepairAborted => Self::Unfinished,
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
    fn close(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        close(self.database.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn commit(&self, batch: &[Append]) -> Outcomes {
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

    fn log(&self, after: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        self.read(|transaction| row::log(transaction, after, limit))
    }

    fn log_end(&self) -> Result<u64, StoreError> {
        self.read(row::log_end)
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

    fn names_file(&self, hash: &Hash) -> Result<bool, StoreError> {
        self.read(|transaction| row::names_file(transaction, hash))
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

    fn token(&self, token_hash: &Hash) -> Result<Option<AgentId>, StoreError> {
        self.read(|transaction| row::token(transaction, token_hash))
    }

    fn forget_checkpoints(&self) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.delete_table(table::CHECKPOINTS)?;
            transaction.open_table(table::CHECKPOINTS)?;
            Ok(())
        })
    }
}
