//! Appends to rows, and rows to answers.

use super::table::{
    AGENTS, ANCHORS, BLOBS, CHECKPOINTS, DEADLINE_OF, DEADLINES, DUE, FILES, HEADS, INDEX, LIST, LOG, NAMES, RECORDS,
    TOKENS, Written, agent,
};
use crate::fold::row::{RecordKind, RecordRow};
use crate::ledger::{Append, AppendError, Head, LogRow, Outcomes, Part, Records, chain};
use crate::words::content::Blob;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::time::Timestamp;
use redb::{AccessGuard, Range, ReadOnlyTable, ReadTransaction, ReadableTable, WriteTransaction};
use std::ops::Bound;

/// The tables of one commit.
struct Writing<'t> {
    agents: Written<'t, &'static str, u32>,
    names: Written<'t, u32, &'static str>,
    log: Written<'t, u64, &'static [u8]>,
    index: Written<'t, (u32, u64), u64>,
    heads: Written<'t, u32, (u64, [u8; 32])>,
    anchors: Written<'t, (u32, u64), [u8; 32]>,
    list: Written<'t, &'static str, &'static [u8]>,
    due: Written<'t, u32, ()>,
    deadlines: Written<'t, (i64, u32), ()>,
    deadline_of: Written<'t, u32, i64>,
    records: Written<'t, (u32, u8, u64), (u64, u64)>,
    tokens: Written<'t, [u8; 32], u32>,
    checkpoints: Written<'t, u32, &'static [u8]>,
    blobs: Written<'t, [u8; 32], &'static [u8]>,
    files: Written<'t, [u8; 32], ()>,
    /// The log's next key.
    next: u64,
    /// A record with its agent's number before it.
    row: Vec<u8>,
}

/// Writes every append of the batch that meets its expected heads; the others fail alone.
pub(super) fn append_all(transaction: &WriteTransaction, batch: &[Append]) -> Result<Outcomes, redb::Error> {
    let mut writing = Writing::open(transaction)?;
    batch.iter().map(|append| writing.append(append)).collect()
}

impl<'t> Writing<'t> {
    fn open(transaction: &'t WriteTransaction) -> Result<Self, redb::Error> {
        let log = Written::open(transaction, LOG)?;
        let next = log.last()?.map_or(1, |(key, _)| key.value() + 1);
        Ok(Self {
            agents: Written::open(transaction, AGENTS)?,
            names: Written::open(transaction, NAMES)?,
            log,
            index: Written::open(transaction, INDEX)?,
            heads: Written::open(transaction, HEADS)?,
            anchors: Written::open(transaction, ANCHORS)?,
            list: Written::open(transaction, LIST)?,
            due: Written::open(transaction, DUE)?,
            deadlines: Written::open(transaction, DEADLINES)?,
            deadline_of: Written::open(transaction, DEADLINE_OF)?,
            records: Written::open(transaction, RECORDS)?,
            tokens: Written::open(transaction, TOKENS)?,
            checkpoints: Written::open(transaction, CHECKPOINTS)?,
            blobs: Written::open(transaction, BLOBS)?,
            files: Written::open(transaction, FILES)?,
            next,
            row: Vec::new(),
        })
    }

    fn append(&mut self, append: &Append) -> Result<Result<(), AppendError>, redb::Error> {
        let mut numbers = Vec::with_capacity(append.parts.len());
        for part in &append.parts {
            let (number, found) = self.head(&part.agent)?;
            if found != Some(part.expected) {
                let (agent, expected) = (part.agent.clone(), part.expected.seq);
                let found = found.map_or(EventSeq::ZERO, |head| head.seq);
                return Ok(Err(AppendError::Conflict { agent, expected, found }));
            }
            numbers.push(number);
        }
        for (part, number) in append.parts.iter().zip(numbers) {
            let agent = number.map_or_else(|| self.new_number(&part.agent), Ok)?;
            self.part(agent, part)?;
        }
        for blob in &append.blobs {
            self.blob(blob)?;
        }
        for hash in append.parts.iter().flat_map(|part| &part.payloads) {
            self.named(hash)?;
        }
        Ok(Ok(()))
    }

    /// An agent's number, if it has one, and its head: none for a ledger whose head is lost, to which every append is
    /// refused, and fails alone.
    fn head(&self, agent: &AgentId) -> Result<(Option<u32>, Option<Head>), redb::Error> {
        let Some(number) = self.agents.get(agent.as_str())?.map(|number| number.value()) else {
            return Ok((None, Some(chain::genesis(agent))));
        };
        Ok((Some(number), self.heads.get(number)?.map(|head| head_of(head.value()))))
    }

    fn part(&mut self, agent: u32, part: &Part) -> Result<(), redb::Error> {
        let mut seq = part.expected.seq;
        for record in part.records.iter() {
            seq = seq.next();
            self.row.clear();
            self.row.extend_from_slice(&agent.to_le_bytes());
            self.row.extend_from_slice(record);
            self.log.insert(self.next, self.row.as_slice())?;
            self.index.insert((agent, seq.0), self.next)?;
            self.next += 1;
        }
        assert_eq!(seq, part.head.seq, "an append's head is its last record");
        self.heads.insert(agent, (part.head.seq.0, part.head.hash.0))?;
        for anchor in &part.anchors {
            self.anchors.insert((agent, anchor.seq.0), anchor.hash.0)?;
        }
        self.derived(agent, part)
    }

    /// Rows that follow from the state, as far as they changed.
    fn derived(&mut self, agent: u32, part: &Part) -> Result<(), redb::Error> {
        if let Some(list) = &part.list {
            self.list.insert(part.agent.as_str(), list.as_slice())?;
        }
        for row in &part.closed {
            self.records.insert((agent, row.kind.number(), row.number), (row.first.0, row.last.0))?;
        }
        for token in &part.tokens {
            if token.is_live {
                self.tokens.insert(token.token_hash.0, agent)?;
            } else {
                self.tokens.remove(token.token_hash.0)?;
            }
        }
        match part.due {
            Some(true) => drop(self.due.insert(agent, ())?),
            Some(false) => drop(self.due.remove(agent)?),
            None => {}
        }
        if let Some(deadline) = part.deadline {
            self.deadline(agent, deadline)?;
        }
        if let Some(checkpoint) = &part.checkpoint {
            self.checkpoints.insert(agent, checkpoint.as_slice())?;
        }
        Ok(())
    }

    fn deadline(&mut self, agent: u32, deadline: Option<Timestamp>) -> Result<(), redb::Error> {
        let before = match deadline {
            Some(at) => self.deadline_of.insert(agent, at.0)?.map(|before| before.value()),
            None => self.deadline_of.remove(agent)?.map(|before| before.value()),
        };
        if let Some(before) = before {
            self.deadlines.remove((before, agent))?;
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at.0, agent), ())?;
        }
        Ok(())
    }

    fn new_number(&mut self, agent: &AgentId) -> Result<u32, redb::Error> {
        let number = self.names.last()?.map_or(1, |(number, _)| number.value() + 1);
        self.agents.insert(agent.as_str(), number)?;
        self.names.insert(number, agent.as_str())?;
        Ok(number)
    }

    fn blob(&mut self, blob: &Blob) -> Result<(), redb::Error> {
        if self.blobs.get(blob.hash.0)?.is_none() {
            self.blobs.insert(blob.hash.0, blob.bytes.as_slice())?;
        }
        Ok(())
    }

    /// A named payload that is no row is a file.
    fn named(&mut self, hash: &Hash) -> Result<(), redb::Error> {
        if self.blobs.get(hash.0)?.is_none() {
            self.files.insert(hash.0, ())?;
        }
        Ok(())
    }
}

fn head_of((seq, hash): (u64, [u8; 32])) -> Head {
    Head { seq: EventSeq(seq), hash: Hash(hash) }
}

pub(super) fn agents(
    transaction: &ReadTransaction,
    after: Option<&AgentId>,
    limit: usize,
) -> Result<Vec<AgentId>, redb::Error> {
    let table = transaction.open_table(AGENTS)?;
    let ids = table.range::<&str>(following(after))?.map(|entry| ledger_id(entry?.0.value()));
    ids.filter(|id| !id.as_ref().is_ok_and(AgentId::is_home)).take(limit).collect()
}

/// The keys after that of an agent; all without one.
fn following(after: Option<&AgentId>) -> (Bound<&str>, Bound<&str>) {
    (after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.as_str())), Bound::Unbounded)
}

/// An agent gets its number and its first head in one transaction, so that one without the other is damage.
pub(super) fn head(transaction: &ReadTransaction, id: &AgentId) -> Result<Option<Head>, redb::Error> {
    let Some(number) = agent(transaction, id.as_str())? else { return Ok(None) };
    let heads = transaction.open_table(HEADS)?;
    let lost = || redb::Error::Corrupted(format!("the head of agent {id} is missing"));
    Ok(Some(head_of(heads.get(number)?.ok_or_else(lost)?.value())))
}

/// A record whose place in the log holds another agent's, or none, ends the answer: the reader tells the damage.
pub(super) fn records(
    transaction: &ReadTransaction,
    id: &AgentId,
    after: EventSeq,
    until: EventSeq,
) -> Result<Records, redb::Error> {
    let mut records = Records::default();
    let Some(number) = agent(transaction, id.as_str())? else { return Ok(records) };
    let index = transaction.open_table(INDEX)?;
    let mut log = Log { table: transaction.open_table(LOG)?, next: 0, run: None };
    let mut expected = after;
    for entry in index.range((number, after.0 + 1)..=(number, until.0))? {
        let (key, place) = entry?;
        expected = expected.next();
        let Some(row) = log.get(place.value())?.filter(|_| key.value().1 == expected.0) else { break };
        let Some(record) = row.value().strip_prefix(&number.to_le_bytes()) else { break };
        records.push(record);
    }
    Ok(records)
}

/// Reads the log row by row where a ledger's records lie side by side, and looks each up where they do not.
struct Log {
    table: ReadOnlyTable<u64, &'static [u8]>,
    /// The place after the one read last.
    next: u64,
    run: Option<Range<'static, u64, &'static [u8]>>,
}

impl Log {
    fn get(&mut self, place: u64) -> Result<Option<AccessGuard<'static, &'static [u8]>>, redb::Error> {
        let follows = place == self.next;
        self.next = place + 1;
        if !follows {
            self.run = None;
            return Ok(self.table.get(place)?);
        }
        let run = match &mut self.run {
            Some(run) => run,
            none => none.insert(self.table.range(place..)?),
        };
        let row = run.next().transpose()?;
        Ok(row.filter(|(key, _)| key.value() == place).map(|(_, row)| row))
    }
}

/// A row without an agent that has a name is passed over: the reader of the ledger that misses it tells the damage.
pub(super) fn log(transaction: &ReadTransaction, after: u64, limit: usize) -> Result<Vec<LogRow>, redb::Error> {
    let names = transaction.open_table(NAMES)?;
    let mut rows = Vec::new();
    for entry in transaction.open_table(LOG)?.range(after.saturating_add(1)..)?.take(limit) {
        let (place, row) = entry?;
        let Some((number, record)) = row.value().split_first_chunk() else { continue };
        let Some(agent) = named(&names, u32::from_le_bytes(*number))? else { continue };
        rows.push(LogRow { place: place.value(), agent, record: record.to_vec() });
    }
    Ok(rows)
}

pub(super) fn log_end(transaction: &ReadTransaction) -> Result<u64, redb::Error> {
    Ok(transaction.open_table(LOG)?.last()?.map_or(0, |(place, _)| place.value()))
}

pub(super) fn anchor(transaction: &ReadTransaction, id: &AgentId, seq: EventSeq) -> Result<Option<Hash>, redb::Error> {
    let Some(number) = agent(transaction, id.as_str())? else { return Ok(None) };
    Ok(transaction.open_table(ANCHORS)?.get((number, seq.0))?.map(|hash| Hash(hash.value())))
}

pub(super) fn checkpoint(transaction: &ReadTransaction, id: &AgentId) -> Result<Option<Vec<u8>>, redb::Error> {
    let Some(number) = agent(transaction, id.as_str())? else { return Ok(None) };
    Ok(transaction.open_table(CHECKPOINTS)?.get(number)?.map(|bytes| bytes.value().to_vec()))
}

pub(super) fn blob(transaction: &ReadTransaction, hash: &Hash) -> Result<Option<Vec<u8>>, redb::Error> {
    Ok(transaction.open_table(BLOBS)?.get(hash.0)?.map(|bytes| bytes.value().to_vec()))
}

pub(super) fn names_file(transaction: &ReadTransaction, hash: &Hash) -> Result<bool, redb::Error> {
    Ok(transaction.open_table(FILES)?.get(hash.0)?.is_some())
}

pub(super) fn list(
    transaction: &ReadTransaction,
    after: Option<&AgentId>,
    limit: usize,
) -> Result<Vec<(AgentId, Vec<u8>)>, redb::Error> {
    let table = transaction.open_table(LIST)?;
    let mut rows = Vec::new();
    for entry in table.range::<&str>(following(after))?.take(limit) {
        let (id, row) = entry?;
        rows.push((ledger_id(id.value())?, row.value().to_vec()));
    }
    Ok(rows)
}

pub(super) fn due(transaction: &ReadTransaction) -> Result<Vec<AgentId>, redb::Error> {
    let names = transaction.open_table(NAMES)?;
    let mut agents = Vec::new();
    for entry in transaction.open_table(DUE)?.iter()? {
        agents.extend(named(&names, entry?.0.value())?);
    }
    agents.sort();
    Ok(agents)
}

pub(super) fn deadlines(transaction: &ReadTransaction) -> Result<Vec<(Timestamp, AgentId)>, redb::Error> {
    let names = transaction.open_table(NAMES)?;
    let mut rows = Vec::new();
    for entry in transaction.open_table(DEADLINES)?.iter()? {
        let (at, number) = entry?.0.value();
        rows.extend(named(&names, number)?.map(|agent| (Timestamp(at), agent)));
    }
    rows.sort();
    Ok(rows)
}

fn named(names: &impl ReadableTable<u32, &'static str>, number: u32) -> Result<Option<AgentId>, redb::Error> {
    names.get(number)?.map(|name| ledger_id(name.value())).transpose()
}

fn ledger_id(text: &str) -> Result<AgentId, redb::Error> {
    AgentId::of_ledger(text).map_err(|error| redb::Error::Corrupted(format!("{text:?} is no ledger's id: {error}")))
}

pub(super) fn records_closed(
    transaction: &ReadTransaction,
    id: &AgentId,
    kind: RecordKind,
    before: u64,
    limit: usize,
) -> Result<Vec<RecordRow>, redb::Error> {
    let Some(agent) = agent(transaction, id.as_str())? else { return Ok(Vec::new()) };
    let table = transaction.open_table(RECORDS)?;
    let mut rows = Vec::new();
    for entry in table.range((agent, kind.number(), 0)..(agent, kind.number(), before))?.rev().take(limit) {
        let (key, row) = entry?;
        let (first, last) = row.value();
        rows.push(RecordRow { kind, number: key.value().2, first: EventSeq(first), last: EventSeq(last) });
    }
    Ok(rows)
}

pub(super) fn token(transaction: &ReadTransaction, token_hash: &Hash) -> Result<Option<AgentId>, redb::Error> {
    let Some(number) = transaction.open_table(TOKENS)?.get(token_hash.0)?.map(|number| number.value()) else {
        return Ok(None);
    };
    let names = transaction.open_table(NAMES)?;
    Ok(names.get(number)?.and_then(|name| AgentId::parse(name.value()).ok()))
}
