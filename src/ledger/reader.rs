//! Reading ledgers: nothing is handed out before it was verified against the head or the next anchor.

use super::chain::{genesis, link};
use super::{Head, Store, StoreError, checkpoint};
use crate::events::Envelope;
use crate::events::codec::{self, CodecError};
use crate::fold::{AgentState, IllegalEvent};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::ANCHOR_EVENTS;

/// Events folded at a time, so that a long ledger needs no long buffer.
const FOLD_CHUNK_EVENTS: u64 = 4_096;

/// An event with its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedEvent {
    pub envelope: Envelope,
    pub previous: Hash,
    pub hash: Hash,
}

/// A ledger that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("agent {agent} is damaged at event {seq}: {damage}")]
    Damaged { agent: AgentId, seq: EventSeq, damage: Damage },
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the record is missing")]
    Missing,
    #[error("the chain does not hold: the record is not the one that was written, or not here")]
    Chain,
    #[error("the record cannot be read: {0}")]
    Unreadable(#[from] CodecError),
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    #[error("an append was recorded without its head, or the head is not of this ledger")]
    Head,
}

/// Reads on from a link that is trusted: the genesis, an anchor, a checkpoint's, or the one read last.
#[derive(Clone, Debug)]
pub struct Reader {
    agent: AgentId,
    at: Head,
}

impl Reader {
    /// From the first event on.
    pub fn genesis(agent: &AgentId) -> Self {
        Self { agent: agent.clone(), at: genesis(agent) }
    }

    /// From the last anchor at or before `after`. What comes between the two is read and verified as well.
    pub fn before(store: &dyn Store, agent: &AgentId, after: EventSeq) -> Result<Self, ReadError> {
        let seq = EventSeq(after.0 - after.0 % ANCHOR_EVENTS);
        if seq == EventSeq::ZERO {
            return Ok(Self::genesis(agent));
        }
        let damaged = || ReadError::Damaged { agent: agent.clone(), seq, damage: Damage::Missing };
        let hash = store.anchor(agent, seq)?.ok_or_else(damaged)?;
        Ok(Self { agent: agent.clone(), at: Head { seq, hash } })
    }

    /// The link up to which everything was read.
    pub fn at(&self) -> Head {
        self.at
    }

    /// At least one more event, about `events` of them; none at the head.
    pub fn read(&mut self, store: &dyn Store, events: u64) -> Result<Vec<LinkedEvent>, ReadError> {
        let mut linked = Vec::new();
        self.walk(store, events, |_, event| {
            linked.push(event);
            Ok(())
        })?;
        Ok(linked)
    }

    /// Verifies about `events` more, up to the head or an anchor, then shows each to `visit`.
    fn walk(
        &mut self,
        store: &dyn Store,
        events: u64,
        mut visit: impl FnMut(&mut Self, LinkedEvent) -> Result<(), Damage>,
    ) -> Result<(), ReadError> {
        let Some(end) = self.end(store, events)? else { return Ok(()) };
        let records = store.records(&self.agent, self.at.seq, end.seq)?;
        let mut links = Vec::with_capacity(records.len());
        let mut at = self.at;
        for record in records.iter() {
            at = link(at, record);
            links.push(at);
        }
        if at.seq != end.seq {
            return Err(self.damaged(at.seq.next(), Damage::Missing));
        }
        if at.hash != end.hash {
            return Err(self.suspect(&records, end));
        }
        for (record, next) in records.iter().zip(links) {
            let event = self.decode(record, next)?;
            self.at = next;
            visit(self, event).map_err(|damage| self.damaged(next.seq, damage))?;
        }
        Ok(())
    }

    /// The link to read up to: the head, or an anchor about `events` away.
    fn end(&self, store: &dyn Store, events: u64) -> Result<Option<Head>, ReadError> {
        let head = store.head(&self.agent)?.unwrap_or_else(|| genesis(&self.agent));
        if head.seq < self.at.seq || (head.seq == self.at.seq && head.hash != self.at.hash) {
            return Err(self.damaged(head.seq, Damage::Head));
        }
        if head.seq == self.at.seq {
            return Ok(None);
        }
        let wanted = (self.at.seq.0 + events.max(1)).next_multiple_of(ANCHOR_EVENTS);
        if wanted >= head.seq.0 {
            return Ok(Some(head));
        }
        let seq = EventSeq(wanted);
        let hash = store.anchor(&self.agent, seq)?.ok_or_else(|| self.damaged(seq, Damage::Missing))?;
        Ok(Some(Head { seq, hash }))
    }

    fn decode(&self, record: &[u8], next: Head) -> Result<LinkedEvent, ReadError> {
        let envelope = codec::decode(record).map_err(|fault| self.damaged(next.seq, fault.into()))?;
        if envelope.seq != next.seq {
            return Err(self.damaged(next.seq, Damage::Chain));
        }
        Ok(LinkedEvent { envelope, previous: self.at.hash, hash: next.hash })
    }

    /// Names the first record that shows the damage; the chain alone only tells that there is some before `end`.
    fn suspect(&self, records: &super::Records, end: Head) -> ReadError {
        let mut seq = self.at.seq;
        for record in records.iter() {
            seq = seq.next();
            match codec::decode(record) {
                Ok(envelope) if envelope.seq == seq => {}
                Ok(_) => return self.damaged(seq, Damage::Chain),
                Err(fault) => return self.damaged(seq, fault.into()),
            }
        }
        self.damaged(end.seq, Damage::Chain)
    }

    fn damaged(&self, seq: EventSeq, damage: Damage) -> ReadError {
        ReadError::Damaged { agent: self.agent.clone(), seq, damage }
    }
}

/// At most `limit` events after `after`, oldest first.
pub fn page(store: &dyn Store, agent: &AgentId, after: EventSeq, limit: usize) -> Result<Vec<LinkedEvent>, ReadError> {
    let mut reader = Reader::before(store, agent, after)?;
    let mut events = Vec::new();
    while events.len() < limit {
        let missing = after.0.saturating_sub(reader.at().seq.0) + (limit - events.len()) as u64;
        let more = reader.read(store, missing)?;
        if more.is_empty() {
            break;
        }
        events.extend(more.into_iter().filter(|event| event.envelope.seq > after));
    }
    events.truncate(limit);
    Ok(events)
}

/// The event at `seq`, if the ledger reaches that far.
pub fn event(store: &dyn Store, agent: &AgentId, seq: EventSeq) -> Result<Option<LinkedEvent>, ReadError> {
    let before = EventSeq(seq.0.saturating_sub(1));
    Ok(page(store, agent, before, 1)?.into_iter().next())
}

/// The state and the head of an agent; none when nothing is recorded of it.
///
/// A checkpoint that does not fit is passed over: the whole ledger decides.
pub fn load(store: &dyn Store, agent: &AgentId) -> Result<Option<(AgentState, Head)>, ReadError> {
    if store.head(agent)?.is_none() {
        return Ok(None);
    }
    let saved = store.checkpoint(agent)?.and_then(|bytes| checkpoint::decode(&bytes));
    if let Some((state, head)) = saved.filter(|(state, _)| state.agent_id == *agent)
        && let Ok(loaded) = fold_from(store, state, head)
    {
        return Ok(Some(loaded));
    }
    fold(store, agent).map(Some)
}

/// Folds the whole ledger, verifying every record.
pub fn fold(store: &dyn Store, agent: &AgentId) -> Result<(AgentState, Head), ReadError> {
    fold_from(store, AgentState::unborn(agent.clone()), genesis(agent))
}

fn fold_from(store: &dyn Store, mut state: AgentState, head: Head) -> Result<(AgentState, Head), ReadError> {
    let mut reader = Reader { agent: state.agent_id.clone(), at: head };
    loop {
        let before = reader.at();
        reader.walk(store, FOLD_CHUNK_EVENTS, |_, event| Ok(state.evolve(&event.envelope)?))?;
        if reader.at() == before {
            return Ok((state, before));
        }
    }
}
