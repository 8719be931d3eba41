//! The prompt of a past model round, read back from what was stored for it.
//!
//! Nothing is rendered again: a round names what it keeps of the round before and what it adds, by hash. The sections
//! together have the hash that the round was recorded under, or the prompt is not given out.

use crate::context::request_hash;
use crate::events::turn::{RoundRequested, Section, SectionKind, TurnEvent};
use crate::events::{Envelope, Event};
use crate::fold::row::RecordKind;
use crate::ledger::Store;
use crate::ledger::blob::{BlobError, Blobs};
use crate::ledger::reader::{self, ReadError};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, EventSeq, RunId};
use serde::Serialize;

/// Events read at a time.
const EVENTS_CHUNK: usize = 512;

/// A prompt as the model got it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundPrompt {
    pub run: RunId,
    pub round: u32,
    /// The event that recorded the request.
    pub event_seq: EventSeq,
    /// Of the whole request, as recorded and as found.
    pub request: Hash,
    pub sections: Vec<PromptSection>,
    /// The tools' schemas, as JSON text.
    pub tools: String,
}

/// A section, and its bytes as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptSection {
    pub kind: &'static str,
    pub hash: Hash,
    pub text: String,
}

/// Why a prompt cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("there is no {run} of {agent}")]
    NoRun { agent: AgentId, run: RunId },
    #[error("{run} of {agent} asked for no such round")]
    NoRound { agent: AgentId, run: RunId },
    #[error("the sections are not those of the request that event {0} recorded")]
    Other(EventSeq),
    #[error(transparent)]
    Ledger(#[from] ReadError),
    #[error(transparent)]
    Payload(#[from] BlobError),
}

/// What the walk through a run has gathered.
#[derive(Default)]
struct Walk {
    output_tokens_max: u32,
    sections: Vec<Section>,
    requested: Option<(EventSeq, RoundRequested)>,
}

/// The prompt of a run's round; of its last one when none is named.
pub fn prompt(
    store: &dyn Store,
    blobs: &Blobs,
    agent: &AgentId,
    run: RunId,
    round: Option<u32>,
) -> Result<RoundPrompt, PromptError> {
    let first = began(store, agent, run)?.ok_or_else(|| PromptError::NoRun { agent: agent.clone(), run })?;
    let walk = gather(store, agent, first, (run, round))?;
    let Some((event_seq, requested)) = walk.requested else {
        return Err(PromptError::NoRound { agent: agent.clone(), run });
    };
    if request_hash(&walk.sections, requested.tools, walk.output_tokens_max) != requested.request {
        return Err(PromptError::Other(event_seq));
    }
    let text = |hash: &Hash| Ok::<_, BlobError>(String::from_utf8_lossy(&blobs.read(hash)?).into_owned());
    let section = |section: &Section| {
        Ok(PromptSection { kind: SectionKind::name(section.kind), hash: section.hash, text: text(&section.hash)? })
    };
    let sections = walk.sections.iter().map(section).collect::<Result<_, BlobError>>()?;
    let (request, tools) = (requested.request, text(&requested.tools)?);
    Ok(RoundPrompt { run, round: requested.round, event_seq, request, sections, tools })
}

/// The event that began a run, which has ended or is the one under way.
fn began(store: &dyn Store, agent: &AgentId, run: RunId) -> Result<Option<EventSeq>, PromptError> {
    if let Some(row) = store.record(agent, RecordKind::Run, run.0).map_err(ReadError::from)? {
        return Ok(Some(row.first));
    }
    let Some((state, _)) = reader::load(store, agent)? else { return Ok(None) };
    Ok(state.turns.current.filter(|turn| turn.run == run).map(|turn| turn.started))
}

fn gather(
    store: &dyn Store,
    agent: &AgentId,
    first: EventSeq,
    (run, round): (RunId, Option<u32>),
) -> Result<Walk, PromptError> {
    let (mut walk, mut after) = (Walk::default(), EventSeq(first.0 - 1));
    loop {
        let events = reader::page(store, agent, after, EVENTS_CHUNK)?;
        for event in &events {
            if walk.is_over(&event.envelope, run, round) {
                return Ok(walk);
            }
        }
        match events.last() {
            Some(last) => after = last.envelope.seq,
            None => return Ok(walk),
        }
    }
}

impl Walk {
    /// True when the wanted round was met, or the run has ended.
    fn is_over(&mut self, envelope: &Envelope, run: RunId, round: Option<u32>) -> bool {
        let Event::Turn(event) = &envelope.event else { return false };
        match event {
            TurnEvent::Started(event) if event.run == run => {
                self.output_tokens_max = event.policy.output_tokens_per_round_max;
                false
            }
            TurnEvent::RoundRequested(event) if event.run == run => {
                self.sections.truncate(event.keeps as usize);
                self.sections.extend(event.added.iter().cloned());
                let is_wanted = round.is_none_or(|round| round == event.round);
                self.requested = is_wanted.then(|| (envelope.seq, event.clone()));
                round == Some(event.round)
            }
            TurnEvent::Terminal(event) => event.run == run,
            TurnEvent::Started(_)
            | TurnEvent::RoundRequested(_)
            | TurnEvent::RoundAttempted(_)
            | TurnEvent::RoundAttemptFailed(_)
            | TurnEvent::Entry(_)
            | TurnEvent::CallStarted(_)
            | TurnEvent::Aborted(_) => false,
        }
    }
}
