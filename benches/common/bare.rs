//! The bare side: the very rows that our store would write, by redb alone, with the same durability.

use holon::ledger::redb::{CACHE_BYTES, table};
use holon::ledger::{Append, Part};
use redb::Database;
use std::collections::HashMap;
use std::path::Path;

/// Key and value of a closed record's row.
type RecordRow = ((u32, u8, u64), (u64, u64));

/// The rows of one commit, ready to be inserted.
#[derive(Default)]
pub struct Rows {
    agents: Vec<(String, u32)>,
    log: Vec<(u64, Vec<u8>)>,
    index: Vec<((u32, u64), u64)>,
    heads: Vec<(u32, (u64, [u8; 32]))>,
    anchors: Vec<((u32, u64), [u8; 32])>,
    list: Vec<(String, Vec<u8>)>,
    records: Vec<RecordRow>,
    due: Vec<(u32, bool)>,
    checkpoints: Vec<(u32, Vec<u8>)>,
}

/// Turns appends into rows, keeping count of what the file holds.
#[derive(Default)]
pub struct Layout {
    numbers: HashMap<String, u32>,
    log_key: u64,
}

impl Layout {
    pub fn rows(&mut self, batch: &[Append]) -> Rows {
        let mut rows = Rows::default();
        for part in batch.iter().flat_map(|append| &append.parts) {
            self.part(part, &mut rows);
        }
        rows
    }

    fn part(&mut self, part: &Part, rows: &mut Rows) {
        let name = part.agent.as_str();
        let next = self.numbers.len() as u32 + 1;
        let agent = *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            rows.agents.push((name.to_owned(), next));
            next
        });
        for (seq, record) in (part.expected.seq.0 + 1..).zip(part.records.iter()) {
            self.log_key += 1;
            rows.log.push((self.log_key, [&agent.to_le_bytes(), record].concat()));
            rows.index.push(((agent, seq), self.log_key));
        }
        rows.heads.push((agent, (part.head.seq.0, part.head.hash.0)));
        rows.anchors.extend(part.anchors.iter().map(|anchor| ((agent, anchor.seq.0), anchor.hash.0)));
        rows.list.extend(part.list.iter().map(|list| (name.to_owned(), list.clone())));
        let closed = part.closed.iter();
        rows.records.extend(closed.map(|row| ((agent, row.kind.number(), row.number), (row.first.0, row.last.0))));
        rows.due.extend(part.due.iter().map(|due| (agent, *due)));
        rows.checkpoints.extend(part.checkpoint.iter().map(|checkpoint| (agent, checkpoint.clone())));
    }
}

pub fn open(path: &Path) -> Database {
    Database::builder().set_cache_size(CACHE_BYTES).create(path).expect("a new file")
}

/// One durable transaction with the settings of our store.
pub fn commit(database: &Database, rows: &Rows) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    insert(&transaction, rows)?;
    transaction.commit()?;
    Ok(())
}

fn insert(transaction: &redb::WriteTransaction, rows: &Rows) -> Result<(), redb::Error> {
    macro_rules! table {
        ($rows:expr, $name:ident, |$table:ident, $row:ident| $insert:expr) => {
            if !$rows.is_empty() {
                let mut $table = transaction.open_table(table::$name)?;
                for $row in &$rows {
                    $insert;
                }
            }
        };
    }
    table!(rows.agents, AGENTS, |agents, row| agents.insert(row.0.as_str(), row.1)?);
    table!(rows.agents, NAMES, |names, row| names.insert(row.1, row.0.as_str())?);
    table!(rows.log, LOG, |log, row| log.insert(row.0, row.1.as_slice())?);
    table!(rows.index, INDEX, |index, row| index.insert(row.0, row.1)?);
    table!(rows.heads, HEADS, |heads, row| heads.insert(row.0, row.1)?);
    table!(rows.anchors, ANCHORS, |anchors, row| anchors.insert(row.0, row.1)?);
    table!(rows.list, LIST, |list, row| list.insert(row.0.as_str(), row.1.as_slice())?);
    table!(rows.records, RECORDS, |records, row| records.insert(row.0, row.1)?);
    table!(rows.due, DUE, |due, row| if row.1 {
        due.insert(row.0, ())?;
    } else {
        due.remove(row.0)?;
    });
    table!(rows.checkpoints, CHECKPOINTS, |checkpoints, row| checkpoints.insert(row.0, row.1.as_slice())?);
    Ok(())
}
