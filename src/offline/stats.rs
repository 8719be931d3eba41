//! What lies in the ledgers: how many events of which kind, and how large they are.

use crate::events::codec;
use crate::events::payload::payloads;
use crate::ledger::{Head, Store, StoreError};
use crate::words::id::{AgentId, EventSeq};
use serde::Serialize;
use std::collections::BTreeMap;

/// Agents named at a time.
const AGENTS_CHUNK: usize = 1_024;
/// Records read at a time.
const RECORDS_CHUNK: u64 = 512;

/// How many there are, and their size together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub count: u64,
    pub bytes: u64,
}

/// What some ledgers hold. Nothing of it was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub agents: u64,
    pub events: Count,
    /// By the kind's name on the wire.
    pub kinds: BTreeMap<&'static str, Count>,
    /// Records that cannot be read.
    pub unreadable: Count,
    /// Payloads as events name them; one that several name counts as often.
    pub payloads: Count,
}

impl Count {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The recorded head of one agent, or of all, in the order of ids.
pub fn heads(store: &dyn Store, only: Option<&AgentId>) -> Result<Vec<(AgentId, Head)>, StoreError> {
    let mut heads = Vec::new();
    each_agent(store, only, |agent| {
        heads.extend(store.head(agent)?.map(|head| (agent.clone(), head)));
        Ok(())
    })?;
    Ok(heads)
}

/// Counts the events of one agent, or of all.
pub fn stats(store: &dyn Store, only: Option<&AgentId>) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    each_agent(store, only, |agent| stats.count(store, agent))?;
    Ok(stats)
}

/// Shows every agent that has a ledger, or `only` that one, without holding all their names.
pub(super) fn each_agent(
    store: &dyn Store,
    only: Option<&AgentId>,
    mut visit: impl FnMut(&AgentId) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if let Some(agent) = only {
        return if store.head(agent) == Ok(None) { Ok(()) } else { visit(agent) };
    }
    let mut last = None;
    loop {
        let agents = store.agents(last.as_ref(), AGENTS_CHUNK)?;
        agents.iter().try_for_each(&mut visit)?;
        match agents.into_iter().last() {
            Some(agent) => last = Some(agent),
            None => return Ok(()),
        }
    }
}

impl Stats {
    fn count(&mut self, store: &dyn Store, agent: &AgentId) -> Result<(), StoreError> {
        self.agents += 1;
        let mut after = EventSeq::ZERO;
        loop {
            let records = store.records(agent, after, EventSeq(after.0 + RECORDS_CHUNK))?;
            if records.is_empty() {
                return Ok(());
            }
            records.iter().for_each(|record| self.count_record(record));
            after = EventSeq(after.0 + records.len() as u64);
        }
    }

    fn count_record(&mut self, record: &[u8]) {
        let bytes = record.len() as u64;
        self.events.add(bytes);
        let Ok(envelope) = codec::decode(record) else { return self.unreadable.add(bytes) };
        self.kinds.entry(envelope.event.kind()).or_default().add(bytes);
        for payload in payloads(&envelope.event) {
            self.payloads.add(payload.bytes.unwrap_or(0));
        }
    }
}
