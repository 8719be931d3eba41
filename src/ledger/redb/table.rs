//! The tables of the file. Agents are numbered in it, so that keys stay short.

use redb::{Key, ReadTransaction, Table, TableDefinition, Value, WriteTransaction};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Numbers kept beside the ledgers: the format and the boots.
pub const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
/// Agent id to its number in this file.
pub const AGENTS: TableDefinition<&str, u32> = TableDefinition::new("agents");
pub const NAMES: TableDefinition<u32, &str> = TableDefinition::new("names");
/// All records in commit order: the agent's number in four little-endian bytes, then the record.
pub const LOG: TableDefinition<u64, &[u8]> = TableDefinition::new("log");
/// (agent, event_seq) to the record's place in the log.
pub const INDEX: TableDefinition<(u32, u64), u64> = TableDefinition::new("index");
/// The authority on where a ledger ends: event_seq and link.
pub const HEADS: TableDefinition<u32, (u64, [u8; 32])> = TableDefinition::new("heads");
/// Links kept for reading from the middle.
pub const ANCHORS: TableDefinition<(u32, u64), [u8; 32]> = TableDefinition::new("anchors");
/// List entries, in the order of ids.
pub const LIST: TableDefinition<&str, &[u8]> = TableDefinition::new("list");
/// Agents to be woken at boot.
pub const DUE: TableDefinition<u32, ()> = TableDefinition::new("due");
/// (time, agent), and the time of each agent.
pub const DEADLINES: TableDefinition<(i64, u32), ()> = TableDefinition::new("deadlines");
pub const DEADLINE_OF: TableDefinition<u32, i64> = TableDefinition::new("deadline_of");
/// (agent, kind, number) to the first and the last event of a record that is closed.
pub const RECORDS: TableDefinition<(u32, u8, u64), (u64, u64)> = TableDefinition::new("records");
/// Hash of a live capability's token to its agent.
pub const TOKENS: TableDefinition<[u8; 32], u32> = TableDefinition::new("tokens");
pub const CHECKPOINTS: TableDefinition<u32, &[u8]> = TableDefinition::new("checkpoints");
pub const BLOBS: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("blobs");
/// Payloads that records name and that are no rows. What is not here may be swept, so this is no cache.
pub const FILES: TableDefinition<[u8; 32], ()> = TableDefinition::new("files");

/// Opens every table once, so that readers find them.
pub(super) fn create(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    transaction.open_table(NUMBERS)?;
    transaction.open_table(AGENTS)?;
    transaction.open_table(NAMES)?;
    transaction.open_table(LOG)?;
    transaction.open_table(INDEX)?;
    transaction.open_table(HEADS)?;
    transaction.open_table(ANCHORS)?;
    transaction.open_table(LIST)?;
    transaction.open_table(DUE)?;
    transaction.open_table(DEADLINES)?;
    transaction.open_table(DEADLINE_OF)?;
    transaction.open_table(RECORDS)?;
    transaction.open_table(TOKENS)?;
    transaction.open_table(CHECKPOINTS)?;
    transaction.open_table(BLOBS)?;
    transaction.open_table(FILES)?;
    Ok(())
}

pub(super) fn number(transaction: &ReadTransaction, name: &str) -> Result<Option<u64>, redb::Error> {
    Ok(transaction.open_table(NUMBERS)?.get(name)?.map(|value| value.value()))
}

pub(super) fn set_number(transaction: &WriteTransaction, name: &str, value: u64) -> Result<(), redb::Error> {
    transaction.open_table(NUMBERS)?.insert(name, value)?;
    Ok(())
}

/// The number of an agent in this file.
pub(super) fn agent(transaction: &ReadTransaction, id: &str) -> Result<Option<u32>, redb::Error> {
    Ok(transaction.open_table(AGENTS)?.get(id)?.map(|number| number.value()))
}

/// A table that is written.
///
/// After a panic of the engine its tables panic once more when they are dropped, since its locks are poisoned. A
/// second panic while the first unwinds would end the process, so it is stopped here.
pub(super) struct Written<'t, K: Key + 'static, V: Value + 'static>(Option<Table<'t, K, V>>);

impl<'t, K: Key, V: Value> Written<'t, K, V> {
    pub(super) fn open(
        transaction: &'t WriteTransaction,
        definition: TableDefinition<K, V>,
    ) -> Result<Self, redb::Error> {
        Ok(Self(Some(transaction.open_table(definition)?)))
    }
}

impl<'t, K: Key, V: Value> Deref for Written<'t, K, V> {
    type Target = Table<'t, K, V>;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref().expect("the table is there until it is dropped")
    }
}

impl<K: Key, V: Value> DerefMut for Written<'_, K, V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_mut().expect("the table is there until it is dropped")
    }
}

impl<K: Key + 'static, V: Value + 'static> Drop for Written<'_, K, V> {
    fn drop(&mut self) {
        let table = self.0.take();
        if thread::panicking() {
            // The first panic is the one that is told.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(table)));
        }
    }
}
