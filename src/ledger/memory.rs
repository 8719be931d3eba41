//! The store in memory, for tests and simulation. It answers as the durable one does, step by step.

use super::{Append, AppendError, Head, LogRow, Outcomes, Part, Records, Store, StoreError, chain};
use crate::fold::row::{RecordKind, RecordRow};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    ledgers: BTreeMap<AgentId, Ledger>,
    /// Whose record lies at each place of the log, and its number there.
    log: Vec<(AgentId, usize)>,
    blobs: BTreeMap<Hash, Vec<u8>>,
    tokens: BTreeMap<Hash, AgentId>,
    files: BTreeSet<Hash>,
}

#[derive(Debug)]
struct Ledger {
    head: Head,
    records: Vec<Vec<u8>>,
    anchors: BTreeMap<EventSeq, Hash>,
    list: Option<Vec<u8>>,
    due: bool,
    deadline: Option<Timestamp>,
    closed: BTreeMap<(RecordKind, u64), RecordRow>,
    checkpoint: Option<Vec<u8>>,
}

impl Ledger {
    fn new(agent: &AgentId) -> Self {
        Self {
            head: chain::genesis(agent),
            records: Vec::new(),
            anchors: BTreeMap::new(),
            list: None,
            due: false,
            deadline: None,
            closed: BTreeMap::new(),
            checkpoint: None,
        }
    }

    fn take(&mut self, part: &Part) {
        self.head = part.head;
        self.records.extend(part.records.iter().map(<[u8]>::to_vec));
        self.anchors.extend(part.anchors.iter().map(|anchor| (anchor.seq, anchor.hash)));
        self.closed.extend(part.closed.iter().map(|row| ((row.kind, row.number), *row)));
        if part.list.is_some() {
            self.list.clone_from(&part.list);
        }
        self.due = part.due.unwrap_or(self.due);
        self.deadline = part.deadline.unwrap_or(self.deadline);
        if part.checkpoint.is_some() {
            self.checkpoint.clone_from(&part.checkpoint);
        }
    }
}

impl Tables {
    fn following(&self, after: Option<&AgentId>) -> impl Iterator<Item = (&AgentId, &Ledger)> {
        self.ledgers.range::<AgentId, _>((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    fn conflict(&self, part: &Part) -> Option<AppendError> {
        let found = self.ledgers.get(&part.agent).map_or_else(|| chain::genesis(&part.agent), |ledger| ledger.head);
        let agent = part.agent.clone();
        (found != part.expected).then_some(AppendError::Conflict {
            agent,
            expected: part.expected.seq,
            found: found.seq,
        })
    }

    fn append(&mut self, append: &Append) -> Result<(), AppendError> {
        if let Some(conflict) = append.parts.iter().find_map(|part| self.conflict(part)) {
            return Err(conflict);
        }
        for part in &append.parts {
            let ledger = self.ledgers.entry(part.agent.clone()).or_insert_with(|| Ledger::new(&part.agent));
            let first = ledger.records.len();
            ledger.take(part);
            self.log.extend((first..ledger.records.len()).map(|index| (part.agent.clone(), index)));
            for token in &part.tokens {
                if token.is_live {
                    self.tokens.insert(token.token_hash, part.agent.clone());
                } else {
                    self.tokens.remove(&token.token_hash);
                }
            }
        }
        self.blobs.extend(append.blobs.iter().map(|blob| (blob.hash, blob.bytes.clone())));
        let named = append.parts.iter().flat_map(|part| &part.payloads);
        self.files.extend(named.filter(|hash| !self.blobs.contains_key(*hash)));
        Ok(())
    }
}

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: &[Append]) -> Outcomes {
        let mut tables = self.tables();
        batch.iter().map(|append| tables.append(append)).collect()
    }

    fn agents(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<AgentId>, StoreError> {
        let tables = self.tables();
        Ok(tables.following(after).map(|(id, _)| id.clone()).filter(|id| !id.is_home()).take(limit).collect())
    }

    fn head(&self, agent: &AgentId) -> Result<Option<Head>, StoreError> {
        Ok(self.tables().ledgers.get(agent).map(|ledger| ledger.head))
    }

    fn records(&self, agent: &AgentId, after: EventSeq, until: EventSeq) -> Result<Records, StoreError> {
        let mut records = Records::default();
        if let Some(ledger) = self.tables().ledgers.get(agent) {
            let index = |seq: EventSeq| usize::try_from(seq.0).unwrap_or(usize::MAX);
            let end = ledger.records.len().min(index(until));
            let start = end.min(index(after));
            ledger.records[start..end].iter().for_each(|record| records.push(record));
        }
        Ok(records)
    }

    fn log(&self, after: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        let tables = self.tables();
        let rows = (1..).zip(&tables.log).filter(|(place, _)| *place > after).take(limit);
        let row = |(place, (agent, index)): (u64, &(AgentId, usize))| LogRow {
            place,
            agent: agent.clone(),
            record: tables.ledgers[agent].records[*index].clone(),
        };
        Ok(rows.map(row).collect())
    }

    fn log_end(&self) -> Result<u64, StoreError> {
        Ok(self.tables().log.len() as u64)
    }

    fn anchor(&self, agent: &AgentId, seq: EventSeq) -> Result<Option<Hash>, StoreError> {
        Ok(self.tables().ledgers.get(agent).and_then(|ledger| ledger.anchors.get(&seq).copied()))
    }

    fn token(&self, token_hash: &Hash) -> Result<Option<AgentId>, StoreError> {
        Ok(self.tables().tokens.get(token_hash).cloned())
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables().ledgers.get(agent).and_then(|ledger| ledger.checkpoint.clone()))
    }

    fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.tables().blobs.get(hash).cloned())
    }

    fn names_file(&self, hash: &Hash) -> Result<bool, StoreError> {
        Ok(self.tables().files.contains(hash))
    }

    fn list(&self, after: Option<&AgentId>, limit: usize) -> Result<Vec<(AgentId, Vec<u8>)>, StoreError> {
        let tables = self.tables();
        let rows = tables.following(after).filter_map(|(id, ledger)| Some((id.clone(), ledger.list.clone()?)));
        Ok(rows.take(limit).collect())
    }

    fn due(&self) -> Result<Vec<AgentId>, StoreError> {
        let tables = self.tables();
        Ok(tables.ledgers.iter().filter(|(_, ledger)| ledger.due).map(|(id, _)| id.clone()).collect())
    }

    fn deadlines(&self) -> Result<Vec<(Timestamp, AgentId)>, StoreError> {
        let tables = self.tables();
        let rows = tables.ledgers.iter().filter_map(|(id, ledger)| Some((ledger.deadline?, id.clone())));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        Ok(rows)
    }

    fn record(&self, agent: &AgentId, kind: RecordKind, number: u64) -> Result<Option<RecordRow>, StoreError> {
        Ok(self.tables().ledgers.get(agent).and_then(|ledger| ledger.closed.get(&(kind, number)).copied()))
    }

    fn records_closed(
        &self,
        agent: &AgentId,
        kind: RecordKind,
        before: u64,
        limit: usize,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let tables = self.tables();
        let Some(ledger) = tables.ledgers.get(agent) else { return Ok(Vec::new()) };
        let rows = ledger.closed.range((kind, 0)..(kind, before)).rev();
        Ok(rows.take(limit).map(|(_, row)| *row).collect())
    }

    fn forget_checkpoints(&self) -> Result<(), StoreError> {
        self.tables().ledgers.values_mut().for_each(|ledger| ledger.checkpoint = None);
        Ok(())
    }
}
