//! Floor 4, second half: the prompt, in two pure steps (architecture 25).
//!
//! [`needs`] names the events and texts that a prompt is made of; somebody reads them; [`render`] makes the prompt.
//! Every section is stored under its hash, so that an auditor reads a prompt back and never renders it again.
//! Within a turn a prompt grows, which keeps its beginning the same for a provider's cache, until it reaches its budget
//! and [`recap`] stands for its earlier rounds. [`fork`] derives what a child begins with.

pub mod fork;
mod recap;
pub mod request;
mod standing;
mod text;

use crate::events::agent::Preset;
use crate::events::codec;
use crate::events::turn::{Entry, Section, SectionKind};
use crate::events::{Envelope, Event, OperatorEvent, QueueEvent, TurnEvent, WaitingEvent};
use crate::fold::AgentState;
use crate::fold::memory::Episode;
use crate::fold::queue::Queued;
use crate::fold::turn::{Fresh, Turn};
use crate::tools;
use crate::words::content::{Blob, Content};
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, MessageId};
use crate::words::limit::{INTERJECTIONS_PER_ROUND_MAX, PROMPT_BYTES_MAX};
use crate::words::prompt_text::PromptText;
use request::{ToolResultPart, ToolSchema};
use std::collections::BTreeMap;

/// The contents that something is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub events: Vec<EventSeq>,
    /// Stored texts that the state names itself.
    pub hashes: Vec<Hash>,
}

/// What the needed events and hashes hold.
#[derive(Debug, Default)]
pub struct Contents {
    /// What was asked for, read or not.
    pub asked: Needs,
    pub events: BTreeMap<EventSeq, Envelope>,
    pub blobs: BTreeMap<Hash, Vec<u8>>,
}

/// A content that was not read, or is not what the state says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error("event {0} or what it names was not read, or is not what the state says")]
    Event(EventSeq),
    #[error("the stored text {0} was not read, or is not what the state says")]
    Blob(Hash),
}

impl Contents {
    fn event(&self, seq: EventSeq) -> Result<&Envelope, Missing> {
        self.events.get(&seq).ok_or(Missing::Event(seq))
    }

    /// The whole text of an event's content; empty for an event without any.
    fn text(&self, seq: EventSeq) -> Result<&str, Missing> {
        match content(&self.event(seq)?.event) {
            None => Ok(""),
            Some(text) => self.content(text),
        }
    }

    /// The whole of a text.
    fn content<'a>(&'a self, content: &'a Content) -> Result<&'a str, Missing> {
        match content {
            Content::Inline(text) => Ok(text),
            Content::Stored { hash, .. } => {
                let bytes = self.blobs.get(hash).ok_or(Missing::Blob(*hash))?;
                std::str::from_utf8(bytes).map_err(|_| Missing::Blob(*hash))
            }
        }
    }

    /// Whether what is missing was asked for: if not, the state has moved on since.
    pub fn asked_for(&self, missing: Missing) -> bool {
        match missing {
            Missing::Event(seq) => self.asked.events.contains(&seq),
            Missing::Blob(hash) => {
                self.asked.hashes.contains(&hash) || self.events.values().any(|event| names(&event.event) == Some(hash))
            }
        }
    }
}

/// A prompt that is ready to be recorded.
#[derive(Debug)]
pub struct Prompt {
    /// Sections of the round before that stay.
    pub keeps: u32,
    pub added: Vec<Section>,
    /// The new sections' bytes, and the tools' schemas.
    pub blobs: Vec<Blob>,
    pub tools: Hash,
    /// Of the provider-neutral request.
    pub request: Hash,
    pub interjections: Vec<MessageId>,
}

/// A prompt that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("the prompt has {bytes} bytes, more than the {bytes_max} that are allowed")]
    TooLong { bytes: u64, bytes_max: u64 },
}

/// The contents that the next prompt is made of.
pub fn needs(state: &AgentState) -> Needs {
    let Some(turn) = state.turns.current.as_deref() else { return Needs::default() };
    let mut needs = if turn.sections.is_empty() { opening_needs(state, turn) } else { Needs::default() };
    needs.events.extend(turn.fresh.iter().filter_map(|fresh| match fresh {
        Fresh::Assistant(_) => None,
        Fresh::ToolResult { seq, .. } => Some(*seq),
    }));
    needs.events.extend(joining(state).map(|(_, queued)| queued.seq));
    needs.hashes.extend(recap::hashes(turn));
    needs
}

fn opening_needs(state: &AgentState, turn: &Turn) -> Needs {
    let answers = state.turns.recent.iter().filter_map(|recent| recent.answer);
    let wakes = turn.queued.wakes.iter().map(|wake| wake.seq);
    let guidance = state.workspaces.guidance.values().map(|guidance| &guidance.content);
    let inherited = state.agent.inherited.iter().map(|inherited| &inherited.view);
    let episodes = episodes(state).map(|episode| &episode.digest);
    let notes = state.memory.entries.values().map(|entry| &entry.text);
    let texts = guidance.chain(inherited).chain(episodes).chain(notes).filter_map(Content::stored);
    let work = state.works.focused().into_iter().flat_map(|(_, item)| standing::work_hashes(item));
    Needs { events: answers.chain([turn.queued.seq]).chain(wakes).collect(), hashes: texts.chain(work).collect() }
}

/// The episodes that stand for turns which a prompt does not repeat.
fn episodes(state: &AgentState) -> impl Iterator<Item = &Episode> {
    let repeated = state.turns.recent.front().map(|turn| turn.run);
    state.memory.episodes.iter().filter(move |episode| repeated.is_none_or(|first| episode.first < first))
}

/// The prompts that join the next round: a portion of those that wait, so that neither the round's event nor its
/// prompt outgrows its bound. The rest joins the rounds after it.
fn joining(state: &AgentState) -> impl Iterator<Item = (MessageId, &Queued)> {
    let bytes_max = state.turns.current.as_deref().map_or(0, recap::portion_bytes_max);
    let mut bytes = 0;
    state.queue.interjections().take(INTERJECTIONS_PER_ROUND_MAX).take_while(move |(_, queued)| {
        let is_first = bytes == 0;
        bytes += queued.body_bytes.max(1);
        is_first || bytes <= bytes_max
    })
}

/// The hashes under which the rest of an event's content is stored.
pub fn names(event: &Event) -> Option<Hash> {
    content(event).and_then(Content::stored)
}

/// The text that an event contributes to a prompt.
fn content(event: &Event) -> Option<&Content> {
    match event {
        Event::Queue(QueueEvent::Enqueued(event)) => Some(&event.body),
        Event::Operator(OperatorEvent::BriefCreated(event)) => Some(&event.text),
        Event::Waiting(WaitingEvent::WakeRequested(event)) => event.body.as_ref(),
        Event::Turn(TurnEvent::Entry(event)) => match &event.entry {
            Entry::ToolResult { result, .. } => result.shown().map(|shown| &shown.text),
            Entry::Incoming { .. } | Entry::Assistant { .. } | Entry::Interjection { .. } => None,
        },
        Event::Agent(_)
        | Event::Queue(_)
        | Event::Turn(_)
        | Event::Work(_)
        | Event::Task(_)
        | Event::Waiting(_)
        | Event::Workspace(_)
        | Event::Operator(_)
        | Event::Memory(_)
        | Event::Home(_) => None,
    }
}

/// Makes the prompt of the round that is owed.
pub fn render(state: &AgentState, turn: &Turn, contents: &Contents) -> Result<Prompt, PromptError> {
    let mut made = Making { contents, preset: state.agent.preset, added: Vec::new(), blobs: Vec::new() };
    if turn.sections.is_empty() {
        made.opening(state, turn)?;
    }
    let keeps = made.keep(turn)?;
    for fresh in &turn.fresh {
        made.fresh(fresh)?;
    }
    let mut interjections = Vec::new();
    for (message, queued) in joining(state) {
        made.message(SectionKind::Interjection, queued.seq, &[])?;
        interjections.push(message);
    }
    made.finish(turn, keeps, interjections)
}

/// The hash that stands for a request: its model is the attempt's affair, all else is in here.
pub fn request_hash(sections: &[Section], tools: Hash, output_tokens_max: u32) -> Hash {
    let sections: Vec<(SectionKind, Hash)> = sections.iter().map(|section| (section.kind, section.hash)).collect();
    Hash::of(&codec::to_bytes(&(sections, tools, output_tokens_max)))
}

/// The tools' schemas as they are stored.
pub fn tools_blob(schemas: &[ToolSchema]) -> Blob {
    Blob::new(serde_json::to_vec(schemas).expect("plain fields are JSON"))
}

/// A prompt in the making.
struct Making<'a> {
    contents: &'a Contents,
    preset: Preset,
    added: Vec<Section>,
    blobs: Vec<Blob>,
}

impl Making<'_> {
    /// What a turn begins with. Stable parts first: what seldom changes keeps its place for a provider's cache, and
    /// what changes with every turn comes last.
    fn opening(&mut self, state: &AgentState, turn: &Turn) -> Result<(), PromptError> {
        self.write(SectionKind::Contract, text::contract(state));
        for guidance in state.workspaces.guidance.values() {
            let said = self.contents.content(&guidance.content)?;
            self.write(SectionKind::Guidance, text::guidance(guidance.scope, &state.workspaces.active, said));
        }
        if let Some(inherited) = &state.agent.inherited {
            let view = PromptText::kept(self.contents.content(&inherited.view)?);
            self.write(SectionKind::Inherited, view);
        }
        for episode in episodes(state) {
            let digest = PromptText::kept(self.contents.content(&episode.digest)?);
            self.write(SectionKind::Episode, digest);
        }
        if let Some(notes) = standing::memory(state, self.contents, None)? {
            self.write(SectionKind::Memory, notes);
        }
        self.recent(state)?;
        if let Some(work) = standing::work(state, self.contents)? {
            self.write(SectionKind::Work, work);
        }
        let wakes: Vec<EventSeq> = turn.queued.wakes.iter().map(|wake| wake.seq).collect();
        self.message(SectionKind::Message, turn.queued.seq, &wakes)
    }

    fn recent(&mut self, state: &AgentState) -> Result<(), PromptError> {
        for recent in &state.turns.recent {
            // Its bytes were stored with the turn that brought it.
            self.added.push(Section { kind: SectionKind::EarlierMessage, ..recent.message.clone() });
            if let Some(answer) = recent.answer {
                let text = self.contents.text(answer)?.to_owned();
                self.add(SectionKind::EarlierAnswer, text.into_bytes());
            }
        }
        Ok(())
    }

    /// Sections of the round before that stay: all of them, or those around what gives way to a recap.
    fn keep(&mut self, turn: &Turn) -> Result<usize, PromptError> {
        let Some(range) = recap::dropped(turn) else { return Ok(turn.sections.len()) };
        let text = recap::text(turn, range.clone(), self.contents)?;
        self.write(SectionKind::Recap, text);
        let said = turn.sections[range.clone()].iter().filter(|section| section.kind == SectionKind::Interjection);
        self.added.extend(said.chain(&turn.sections[range.end..]).cloned());
        Ok(range.start)
    }

    fn message(&mut self, kind: SectionKind, seq: EventSeq, wakes: &[EventSeq]) -> Result<(), PromptError> {
        let envelope = self.contents.event(seq)?;
        let Event::Queue(QueueEvent::Enqueued(message)) = &envelope.event else {
            return Err(Missing::Event(seq).into());
        };
        let mut rendered = text::message(message, envelope.at, self.contents.text(seq)?);
        for seq in wakes {
            let Event::Waiting(WaitingEvent::WakeRequested(wake)) = &self.contents.event(*seq)?.event else {
                return Err(Missing::Event(*seq).into());
            };
            rendered = rendered.line().own_text(&text::wake(wake, self.contents.text(*seq)?));
        }
        self.write(kind, rendered);
        Ok(())
    }

    fn fresh(&mut self, fresh: &Fresh) -> Result<(), PromptError> {
        match fresh {
            Fresh::Assistant(section) => self.added.push(section.clone()),
            Fresh::ToolResult { seq, call_id, tool, .. } => {
                let part = self.tool_result(*seq, call_id, tool)?;
                self.add(SectionKind::ToolResult, part);
            }
        }
        Ok(())
    }

    fn tool_result(&self, seq: EventSeq, call_id: &str, tool: &str) -> Result<Vec<u8>, PromptError> {
        let Event::Turn(TurnEvent::Entry(entry)) = &self.contents.event(seq)?.event else {
            return Err(Missing::Event(seq).into());
        };
        let Entry::ToolResult { result, .. } = &entry.entry else { return Err(Missing::Event(seq).into()) };
        let text = tools::result::render(tool, result, self.contents.text(seq)?);
        let part = ToolResultPart { call_id: call_id.to_owned(), tool: tool.to_owned(), text };
        Ok(serde_json::to_vec(&part).expect("plain fields are JSON"))
    }

    /// A section in the runtime's own voice.
    fn write(&mut self, kind: SectionKind, text: PromptText) {
        self.add(kind, text.trimmed().into_string().into_bytes());
    }

    /// A section in somebody's voice: of the model, or of a tool.
    fn add(&mut self, kind: SectionKind, bytes: Vec<u8>) {
        let blob = Blob::new(bytes);
        self.added.push(Section { kind, hash: blob.hash, bytes: blob.bytes.len() as u64 });
        self.blobs.push(blob);
    }

    fn finish(mut self, turn: &Turn, keeps: usize, interjections: Vec<MessageId>) -> Result<Prompt, PromptError> {
        let sections: Vec<Section> = turn.sections[..keeps].iter().chain(&self.added).cloned().collect();
        let bytes = sections.iter().map(|section| section.bytes).sum();
        let bytes_max = recap::budget_bytes(turn).min(PROMPT_BYTES_MAX);
        if bytes > bytes_max {
            return Err(PromptError::TooLong { bytes, bytes_max });
        }
        let tools = tools_blob(&tools::schemas(self.preset));
        let keeps = u32::try_from(keeps).expect("a prompt has its bound");
        let tools_hash = tools.hash;
        self.blobs.push(tools);
        let request = request_hash(&sections, tools_hash, turn.policy.output_tokens_per_round_max);
        Ok(Prompt { keeps, added: self.added, blobs: self.blobs, tools: tools_hash, request, interjections })
    }
}
