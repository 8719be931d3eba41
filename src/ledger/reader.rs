//! Reading ledgers: nothing is handed out before it was verified against the head or the next anchor.

use super::chain::{genesis, link};
use super::{Head, Records, Store, StoreError, checkpoint};
use crate::events::Envelope;
use crate::events::codec::{self, CodecError};
use crate::fold::home::HomeState;
use crate::fold::{AgentState, IllegalEvent};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::{ANCHOR_EVENTS, EVENT_BYTES_MAX};

/// Events folded at a time, so that a long ledger needs no long buffer.
const FOLD_CHUNK_EVENTS: u64 = 512;

const _: () = assert!(FOLD_CHUNK_EVENTS * EVENT_BYTES_MAX as u64 <= 128 * 1024 * 1024);

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
    #[error("the record is that of event {0}")]
    Misplaced(EventSeq),
    #[error("the record cannot be read: {0}")]
    Unreadable(#[from] CodecError),
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// A link stands for all records before it, so it cannot tell which of them was altered.
    #[error(
        "the chain holds up to event {holds} and not up to event {breaks}: \
         a record in between is not the one that was written, or the link kept at event {breaks} is not"
    )]
    Chain { holds: EventSeq, breaks: EventSeq },
    #[error("the link kept at this event is missing")]
    Link,
    #[error("the head does not agree with the records: it lies before the last of them, or is of another ledger")]
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
        let end = store.head(agent)?.map_or(EventSeq::ZERO, |head| head.seq);
        let after = after.min(end);
        let seq = EventSeq(after.0 - after.0 % ANCHOR_EVENTS);
        if seq == EventSeq::ZERO {
            return Ok(Self::genesis(agent));
        }
        let damaged = || ReadError::Damaged { agent: agent.clone(), seq, damage: Damage::Link };
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
        let links = self.links(&records);
        if links.last() != Some(&end) {
            let (seq, damage) = self.suspect(store, &records, &links, end)?;
            return Err(self.damaged(seq, damage));
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
        if events >= head.seq.0 - self.at.seq.0 {
            return Ok(Some(head));
        }
        let seq = EventSeq((self.at.seq.0 + events.max(1)).next_multiple_of(ANCHOR_EVENTS));
        if seq >= head.seq {
            return Ok(Some(head));
        }
        let hash = store.anchor(&self.agent, seq)?.ok_or_else(|| self.damaged(seq, Damage::Link))?;
        Ok(Some(Head { seq, hash }))
    }

    /// The link after each of `records`.
    fn links(&self, records: &Records) -> Vec<Head> {
        let mut at = self.at;
        let after = |record| {
            at = link(at, record);
            at
        };
        records.iter().map(after).collect()
    }

    fn decode(&self, record: &[u8], next: Head) -> Result<LinkedEvent, ReadError> {
        let envelope = decode(record, next.seq).map_err(|damage| self.damaged(next.seq, damage))?;
        Ok(LinkedEvent { envelope, previous: self.at.hash, hash: next.hash })
    }

    /// The first event of which damage can be shown, where the chain does not lead to `end`.
    fn suspect(
        &self,
        store: &dyn Store,
        records: &Records,
        links: &[Head],
        end: Head,
    ) -> Result<(EventSeq, Damage), StoreError> {
        let (holds, breaks) = self.narrow(store, links, end)?;
        let suspects = records.iter().zip(links).filter(|(_, link)| link.seq > holds && link.seq <= breaks);
        for (record, link) in suspects {
            if let Err(damage) = decode(record, link.seq) {
                return Ok((link.seq, damage));
            }
        }
        let last = links.last().map_or(self.at.seq, |link| link.seq);
        if last < breaks {
            return Ok((last.next(), Damage::Missing));
        }
        Ok((holds.next(), Damage::Chain { holds, breaks }))
    }

    /// The last link up to which the chain holds, and the next that is kept, up to which it does not.
    fn narrow(&self, store: &dyn Store, links: &[Head], end: Head) -> Result<(EventSeq, EventSeq), StoreError> {
        let mut holds = self.at.seq;
        let kept = |link: &&Head| link.seq < end.seq && link.seq.0.is_multiple_of(ANCHOR_EVENTS);
        for link in links.iter().filter(kept) {
            match store.anchor(&self.agent, link.seq)? {
                Some(hash) if hash == link.hash => holds = link.seq,
                Some(_) => return Ok((holds, link.seq)),
                None => {}
            }
        }
        Ok((holds, end.seq))
    }

    /// At the head: no record may follow it. One would be replaced by the next append.
    pub fn check_end(&self, store: &dyn Store) -> Result<(), ReadError> {
        let next = self.at.seq.next();
        if store.records(&self.agent, self.at.seq, next)?.is_empty() {
            return Ok(());
        }
        // An append in between brings its record and its head at once.
        let head = store.head(&self.agent)?;
        let moved = head.is_some_and(|head| head.seq >= next);
        if moved { Ok(()) } else { Err(self.damaged(next, Damage::Head)) }
    }

    fn damaged(&self, seq: EventSeq, damage: Damage) -> ReadError {
        ReadError::Damaged { agent: self.agent.clone(), seq, damage }
    }
}

/// Reads the record of event `seq`.
fn decode(record: &[u8], seq: EventSeq) -> Result<Envelope, Damage> {
    let envelope = codec::decode(record)?;
    if envelope.seq == seq { Ok(envelope) } else { Err(Damage::Misplaced(envelope.seq)) }
}

/// At most `limit` events after `after`, oldest first.
pub fn page(store: &dyn Store, agent: &AgentId, after: EventSeq, limit: usize) -> Result<Vec<LinkedEvent>, ReadError> {
    let mut reader = Reader::before(store, agent, after)?;
    let mut events = Vec::new();
    while events.len() < limit {
        let missing = after.0.saturating_sub(reader.at().seq.0).saturating_add((limit - events.len()) as u64);
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
    let reader = Reader { agent: state.agent_id.clone(), at: head };
    let head = to_the_head(store, reader, |envelope| state.evolve(envelope))?;
    Ok((state, head))
}

/// Folds the home's own ledger, verifying every record. It is short: a few events a boot, and one a token.
pub fn home(store: &dyn Store) -> Result<(HomeState, Head), ReadError> {
    let mut state = HomeState::default();
    let head = to_the_head(store, Reader::genesis(&AgentId::home()), |envelope| state.evolve(envelope))?;
    Ok((state, head))
}

/// Reads on to the head; answers where that is.
fn to_the_head(
    store: &dyn Store,
    mut reader: Reader,
    mut evolve: impl FnMut(&Envelope) -> Result<(), IllegalEvent>,
) -> Result<Head, ReadError> {
    loop {
        let before = reader.at();
        reader.walk(store, FOLD_CHUNK_EVENTS, |_, event| Ok(evolve(&event.envelope)?))?;
        if reader.at() == before {
            reader.check_end(store)?;
            return Ok(before);
        }
    }
}
