//! Proof that ledgers are whole, or where they are not.
//!
//! Each ledger is walked from its genesis in bounded memory: chain, links kept, head, fold, and every payload that an
//! event names. Rows and checkpoints are caches; one that disagrees is noted, for it changes no ledger.

use super::stats::each_agent;
use crate::events::payload::payloads;
use crate::events::{Envelope, codec};
use crate::fold::home::HomeState;
use crate::fold::row::{ListRow, closes, rows};
use crate::fold::{AgentState, IllegalEvent};
use crate::ledger::blob::Blobs;
use crate::ledger::reader::{Damage, LinkedEvent, ReadError, Reader};
use crate::ledger::{Head, Store, StoreError, chain, checkpoint};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq};
use crate::words::limit::ANCHOR_EVENTS;
use crate::words::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Notes on one agent, before the rest of them is left out.
const NOTES_MAX: usize = 8;
/// Payloads found whole that are remembered, since many events name the same.
const PAYLOADS_REMEMBERED_MAX: usize = 65_536;
/// Records linked at a time where nothing but the chain is asked for.
const RECORDS_CHUNK: u64 = 512;
/// List entries read at a time.
const ROWS_CHUNK: usize = 1_024;

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The home's own ledger, then those of agents in the order of ids.
    pub agents: Vec<AgentReport>,
    /// What concerns no agent alone.
    pub notes: Vec<String>,
}

/// What was found of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    pub agent: AgentId,
    /// Events that were verified: all of them, unless there is damage.
    pub events: u64,
    /// The link of the chain after those.
    pub head: Hash,
    pub damage: Option<Found>,
    /// Caches that disagree with the ledger.
    pub notes: Vec<String>,
}

/// The first damage of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first event of which damage can be shown.
    pub seq: EventSeq,
    pub reason: String,
}

/// How far a verification has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub agents: u64,
    pub events: u64,
}

impl Report {
    /// Whether no ledger is damaged.
    pub fn is_whole(&self) -> bool {
        self.agents.iter().all(|agent| agent.damage.is_none())
    }
}

/// Verifies the ledger of one agent, or of all. `progress` is told now and then.
///
/// An error means that not even the agents could be named.
pub fn verify(
    store: &dyn Store,
    blobs: &Blobs,
    only: Option<&AgentId>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let wakes = Wakes::read(store).map_err(|error| report.notes.push(format!("wakes cannot be read: {error}")));
    let mut verifier = Verifier {
        store,
        blobs,
        wakes: wakes.ok(),
        listed: Listed { store, rows: Vec::new().into_iter(), last: None, fault: None },
        whole: BTreeSet::new(),
        progress,
        done: Progress::default(),
    };
    if only.is_none() && store.head(&AgentId::home()) != Ok(None) {
        report.agents.push(home(store));
    }
    each_agent(store, only, |agent| {
        let strays = verifier.listed.before(agent);
        report.agents.extend(strays.iter().filter(|_| only.is_none()).map(lost));
        let entry = verifier.listed.take(agent);
        report.agents.push(verifier.agent(agent, entry.as_ref()));
        Ok(())
    })?;
    if only.is_none() {
        report.agents.extend(verifier.listed.rest().iter().map(lost));
    }
    report.notes.extend(verifier.listed.fault.map(|error| format!("the list cannot be read: {error}")));
    Ok(report)
}

/// Verifies the home's own ledger, which has neither rows nor payloads.
pub fn home(store: &dyn Store) -> AgentReport {
    let mut reader = Reader::genesis(&AgentId::home());
    let mut state = HomeState::default();
    let damage = walk_home(store, &mut reader, &mut state).err().map(|error| match error {
        ReadError::Store(error) => Found { seq: state.head.next(), reason: error.to_string() },
        ReadError::Damaged { seq, damage, .. } => Found { seq, reason: damage.to_string() },
    });
    AgentReport { agent: AgentId::home(), events: state.head.0, head: reader.at().hash, damage, notes: Vec::new() }
}

fn walk_home(store: &dyn Store, reader: &mut Reader, state: &mut HomeState) -> Result<(), ReadError> {
    loop {
        let events = reader.read(store, ANCHOR_EVENTS)?;
        if events.is_empty() {
            return reader.check_end(store);
        }
        for LinkedEvent { envelope, .. } in &events {
            let damaged = |illegal: IllegalEvent| ReadError::Damaged {
                agent: AgentId::home(),
                seq: envelope.seq,
                damage: illegal.into(),
            };
            state.evolve(envelope).map_err(damaged)?;
        }
    }
}

/// An agent that is listed, and of which there is nothing else.
fn lost(agent: &AgentId) -> AgentReport {
    let genesis = chain::genesis(agent);
    let found = Found { seq: genesis.seq.next(), reason: "the agent is listed, and its ledger is missing".into() };
    AgentReport { agent: agent.clone(), events: 0, head: genesis.hash, damage: Some(found), notes: Vec::new() }
}

struct Verifier<'a> {
    store: &'a dyn Store,
    blobs: &'a Blobs,
    wakes: Option<Wakes>,
    listed: Listed<'a>,
    /// Payloads found whole.
    whole: BTreeSet<Hash>,
    progress: &'a mut dyn FnMut(Progress),
    done: Progress,
}

/// One ledger on its way from the genesis to its head.
struct Walk {
    state: AgentState,
    /// The last event that was verified and folded.
    at: Head,
    /// The saved fold, until its event is reached.
    checkpoint: Option<(AgentState, Head)>,
    damage: Option<Found>,
    notes: Vec<String>,
}

impl Walk {
    fn new(agent: &AgentId) -> Self {
        let state = AgentState::unborn(agent.clone());
        Self { state, at: chain::genesis(agent), checkpoint: None, damage: None, notes: Vec::new() }
    }

    fn agent(&self) -> &AgentId {
        &self.state.agent_id
    }

    fn note(&mut self, text: impl Into<String>) {
        match self.notes.len() {
            NOTES_MAX => self.notes.push("and more".into()),
            count if count < NOTES_MAX => self.notes.push(text.into()),
            _ => {}
        }
    }

    fn found(&mut self, seq: EventSeq, reason: String) {
        if self.damage.as_ref().is_none_or(|damage| seq < damage.seq) {
            self.damage = Some(Found { seq, reason });
        }
    }

    fn report(self) -> AgentReport {
        let Head { seq, hash } = self.at;
        let Self { state, damage, notes, .. } = self;
        AgentReport { agent: state.agent_id, events: seq.0, head: hash, damage, notes }
    }
}

impl Verifier<'_> {
    fn agent(&mut self, agent: &AgentId, listed: Option<&ListRow>) -> AgentReport {
        let mut walk = Walk::new(agent);
        self.take_checkpoint(&mut walk);
        match self.walk(&mut walk) {
            Ok(()) => self.compare_rows(&mut walk, listed),
            Err(error) => {
                let (seq, reason) = self.explain(&mut walk, error);
                walk.found(seq, reason);
            }
        }
        self.done.agents += 1;
        (self.progress)(self.done);
        walk.report()
    }

    /// Chunks end where links are kept, so that each of them is verified.
    fn walk(&mut self, walk: &mut Walk) -> Result<(), ReadError> {
        let mut reader = Reader::genesis(walk.agent());
        loop {
            let events = reader.read(self.store, ANCHOR_EVENTS)?;
            if events.is_empty() {
                reader.check_end(self.store)?;
                return self.check_last_link(walk);
            }
            for event in &events {
                self.event(walk, event)?;
            }
            self.done.events += events.len() as u64;
            (self.progress)(self.done);
        }
    }

    fn event(&mut self, walk: &mut Walk, event: &LinkedEvent) -> Result<(), ReadError> {
        let (envelope, seq) = (&event.envelope, event.envelope.seq);
        self.check_payloads(walk, envelope);
        let closed = closes(&walk.state, envelope);
        if let Err(illegal) = walk.state.evolve(envelope) {
            return Err(ReadError::Damaged { agent: walk.agent().clone(), seq, damage: illegal.into() });
        }
        walk.at = Head { seq, hash: event.hash };
        if let Some(row) = closed
            && self.store.record(walk.agent(), row.kind, row.number) != Ok(Some(row))
        {
            walk.note(format!("the row of {:?} {}, closed by event {seq}, disagrees", row.kind, row.number));
        }
        compare_checkpoint(walk);
        Ok(())
    }

    fn check_payloads(&mut self, walk: &mut Walk, envelope: &Envelope) {
        for payload in payloads(&envelope.event) {
            if self.whole.contains(&payload.hash) {
                continue;
            }
            match self.blobs.check(&payload.hash) {
                Ok(()) => self.remember(payload.hash),
                Err(error) => walk.found(envelope.seq, error.to_string()),
            }
        }
    }

    fn remember(&mut self, payload: Hash) {
        if self.whole.len() == PAYLOADS_REMEMBERED_MAX {
            self.whole.clear();
        }
        self.whole.insert(payload);
    }

    /// A link kept at the head itself ends no chunk.
    fn check_last_link(&self, walk: &Walk) -> Result<(), ReadError> {
        let seq = walk.at.seq;
        if seq == EventSeq::ZERO || !seq.0.is_multiple_of(ANCHOR_EVENTS) {
            return Ok(());
        }
        let damage = match self.store.anchor(walk.agent(), seq)? {
            Some(hash) if hash == walk.at.hash => return Ok(()),
            Some(_) => Damage::Chain { holds: seq, breaks: seq },
            None => Damage::Link,
        };
        Err(ReadError::Damaged { agent: walk.agent().clone(), seq, damage })
    }

    /// Where the damage is and what it is, as closely as the rest of the ledger shows it.
    fn explain(&self, walk: &mut Walk, error: ReadError) -> (EventSeq, String) {
        let (seq, damage) = match error {
            ReadError::Store(error) => return (walk.at.seq.next(), error.to_string()),
            ReadError::Damaged { seq, damage, .. } => (seq, damage),
        };
        match damage {
            Damage::Link if self.leads_to_head(walk) => (seq, format!("{damage}; every record is whole")),
            Damage::Chain { breaks, .. } if self.leads_to_head(walk) => {
                (breaks, "the link kept at this event is not the chain's; every record is whole".into())
            }
            Damage::Chain { breaks, .. } => match self.first_illegal(walk, breaks) {
                Some((seq, illegal)) => (seq, format!("{illegal}; {damage}")),
                None => (seq, damage.to_string()),
            },
            Damage::Missing
            | Damage::Misplaced(_)
            | Damage::Unreadable(_)
            | Damage::Illegal(_)
            | Damage::Link
            | Damage::Head => (seq, damage.to_string()),
        }
    }

    /// Whether the records that follow are proven by the head, whatever the links kept in between say.
    fn leads_to_head(&self, walk: &Walk) -> bool {
        let Ok(Some(head)) = self.store.head(walk.agent()) else { return false };
        let mut at = walk.at;
        while at.seq < head.seq {
            let until = head.seq.min(EventSeq(at.seq.0 + RECORDS_CHUNK));
            match self.store.records(walk.agent(), at.seq, until) {
                Ok(records) if !records.is_empty() => at = records.iter().fold(at, chain::link),
                Ok(_) | Err(_) => return false,
            }
        }
        at == head
    }

    /// The first of the doubtful records up to `until` that cannot follow. The state is spoilt by it.
    fn first_illegal(&self, walk: &mut Walk, until: EventSeq) -> Option<(EventSeq, String)> {
        let records = self.store.records(walk.agent(), walk.at.seq, until).ok()?;
        let mut envelopes = records.iter().map_while(|record| codec::decode(record).ok());
        envelopes.find_map(|envelope| {
            let illegal = walk.state.evolve(&envelope).err()?;
            Some((envelope.seq, illegal.to_string()))
        })
    }

    fn take_checkpoint(&self, walk: &mut Walk) {
        match self.store.checkpoint(walk.agent()) {
            Ok(None) => {}
            Ok(Some(bytes)) => match checkpoint::decode(&bytes) {
                Some((state, _)) if state.agent_id != *walk.agent() => {
                    walk.note(format!("the checkpoint is of agent {}; it is passed over", state.agent_id));
                }
                Some(saved) => walk.checkpoint = Some(saved),
                None => walk.note("the checkpoint is damaged or of another fold; it is passed over"),
            },
            Err(error) => walk.note(format!("the checkpoint cannot be read: {error}")),
        }
    }

    fn compare_rows(&self, walk: &mut Walk, listed: Option<&ListRow>) {
        if let Some((_, head)) = walk.checkpoint.take() {
            walk.note(format!("the checkpoint is of event {}, beyond the head; it is passed over", head.seq));
        }
        // What is owed differs from boot to boot; whether and when something is does not.
        let rows = rows(&walk.state, Boot::default());
        if listed != Some(&rows.list) {
            walk.note("the list entry disagrees");
        }
        let Some(wakes) = &self.wakes else { return };
        if wakes.due.contains(walk.agent()) != rows.due {
            walk.note("the mark for a wake at boot disagrees");
        }
        if wakes.deadlines.get(walk.agent()).copied() != rows.deadline {
            walk.note("the time of the next wake disagrees");
        }
    }
}

/// A checkpoint of the right link is believed, so a wrong state in it is damage.
fn compare_checkpoint(walk: &mut Walk) {
    let Some((state, head)) = walk.checkpoint.take_if(|(_, head)| head.seq == walk.at.seq) else { return };
    if head.hash != walk.at.hash {
        walk.note(format!("the checkpoint of event {} is of another history; it is passed over", head.seq));
    } else if state != walk.state {
        walk.found(head.seq, "the checkpoint of this event is not what the ledger folds to".into());
    }
}

/// When agents are to be woken, as the rows say it.
struct Wakes {
    due: BTreeSet<AgentId>,
    deadlines: BTreeMap<AgentId, Timestamp>,
}

impl Wakes {
    fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let due = store.due()?.into_iter().collect();
        let deadlines = store.deadlines()?.into_iter().map(|(at, agent)| (agent, at)).collect();
        Ok(Self { due, deadlines })
    }
}

/// The list, read along with the agents, since both are in the order of ids.
struct Listed<'a> {
    store: &'a dyn Store,
    rows: std::vec::IntoIter<(AgentId, Vec<u8>)>,
    last: Option<AgentId>,
    fault: Option<StoreError>,
}

impl Listed<'_> {
    /// Agents listed before `agent`.
    fn before(&mut self, agent: &AgentId) -> Vec<AgentId> {
        let mut passed = Vec::new();
        while self.next().is_some_and(|next| next < agent) {
            passed.extend(self.rows.next().map(|(agent, _)| agent));
        }
        passed
    }

    /// The entry of `agent`, once those before it were taken.
    fn take(&mut self, agent: &AgentId) -> Option<ListRow> {
        if self.next() != Some(agent) {
            return None;
        }
        self.rows.next().and_then(|(_, row)| codec::from_bytes(&row).ok())
    }

    fn rest(&mut self) -> Vec<AgentId> {
        let mut rest = Vec::new();
        while self.next().is_some() {
            rest.extend(self.rows.next().map(|(agent, _)| agent));
        }
        rest
    }

    fn next(&mut self) -> Option<&AgentId> {
        if self.rows.as_slice().is_empty() && self.fault.is_none() {
            match self.store.list(self.last.as_ref(), ROWS_CHUNK) {
                Ok(rows) => {
                    self.last = rows.last().map(|(agent, _)| agent.clone()).or(self.last.take());
                    self.rows = rows.into_iter();
                }
                Err(error) => self.fault = Some(error),
            }
        }
        self.rows.as_slice().first().map(|(agent, _)| agent)
    }
}
