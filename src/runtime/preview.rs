//! What an agent would be sent for a prompt, without sending it.
//!
//! The commands that would follow are decided on a copy of the state, so a preview cannot differ from the real prompt
//! in how it comes about; nothing of it is recorded.

use super::effect::{guidance, prompt};
use super::handle::{Handle, SubmitError, blocking};
use super::host::Shared;
use crate::context::{self, Contents, Prompt};
use crate::decide::agent::AgentCommand;
use crate::decide::queue::{NewMessage, QueueCommand};
use crate::decide::turn::TurnCommand;
use crate::decide::workspace::GuidanceFile;
use crate::decide::{Command, Rejection, Request, Staged, handle};
use crate::events::turn::{Section, SectionKind};
use crate::events::{Cause, Envelope};
use crate::fold::AgentState;
use crate::words::content::Blob;
use crate::words::hash::Hash;
use crate::words::id::AgentId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of a prompt, and its text.
#[derive(Clone, Debug)]
pub struct Shown {
    pub kind: SectionKind,
    pub text: String,
}

/// A prompt that nobody was sent.
#[derive(Clone, Debug)]
pub struct Preview {
    pub model: String,
    pub sections: Vec<Shown>,
}

impl Handle {
    /// The prompt of the round that `new` would lead to, or join.
    pub async fn preview(
        &self,
        agent: &AgentId,
        cause: Cause,
        new: NewMessage,
        blob: Option<Blob>,
    ) -> Result<Preview, SubmitError> {
        let state = self.read(agent, AgentState::clone).await?;
        let reading = guidance::Reading::of(&self.shared, &state);
        let (files, mut blobs) = reading.read(&self.shared).await;
        blobs.extend(blob);
        let shared = self.shared.clone();
        blocking(move || preview(&shared, state, (cause, new), files, blobs)).await
    }
}

fn preview(
    shared: &Arc<Shared>,
    mut state: AgentState,
    new: (Cause, NewMessage),
    guidance: Vec<GuidanceFile>,
    blobs: Vec<Blob>,
) -> Result<Preview, SubmitError> {
    let staged = imagine(shared, &mut state, new, guidance)?;
    let Some(turn) = state.turns.current.as_deref() else { return Err(Rejection::NothingToDo.into()) };
    let contents = contents(shared, &state, &staged, blobs);
    let prompt = context::render(&state, turn, &contents);
    let prompt = prompt.map_err(|error| SubmitError::Unavailable(error.to_string()))?;
    let kept = turn.sections.iter().take(usize::try_from(prompt.keeps).unwrap_or(usize::MAX));
    let sections = kept.chain(&prompt.added).map(|section| shown(shared, section, &prompt));
    let model = turn.policy.models.first().cloned().unwrap_or_default();
    Ok(Preview { model, sections: sections.collect::<Result<_, _>>()? })
}

/// Takes the prompt in, and begins the turn that follows if none runs.
fn imagine(
    shared: &Arc<Shared>,
    state: &mut AgentState,
    (cause, new): (Cause, NewMessage),
    guidance: Vec<GuidanceFile>,
) -> Result<Vec<Envelope>, SubmitError> {
    let mut staged = Staged::default();
    let mut tell = |state: &mut AgentState, command: Command| {
        let request = Request::new(command, cause.clone());
        let told = handle(state, &request, shared.source.now(), &mut staged);
        told.map_err(|illegal| SubmitError::Unavailable(illegal.to_string()))?.map_err(SubmitError::from)
    };
    // A stopped agent would be started before it is sent anything.
    tell(state, AgentCommand::Start.into())?;
    tell(state, QueueCommand::Enqueue(new).into())?;
    if state.turns.current.is_none() {
        let policy = shared.settings.policy(state.agent.model.as_ref());
        tell(state, TurnCommand::Start { policy, guidance }.into())?;
    }
    Ok(staged.envelopes)
}

/// What is recorded is read; what was only imagined is at hand.
fn contents(shared: &Arc<Shared>, state: &AgentState, staged: &[Envelope], blobs: Vec<Blob>) -> Contents {
    let imagined: BTreeMap<_, _> = staged.iter().map(|envelope| (envelope.seq, envelope.clone())).collect();
    let at_hand: BTreeMap<Hash, Vec<u8>> = blobs.into_iter().map(|blob| (blob.hash, blob.bytes)).collect();
    let mut needs = context::needs(state);
    needs.events.retain(|seq| !imagined.contains_key(seq));
    needs.hashes.retain(|hash| !at_hand.contains_key(hash));
    let mut contents = prompt::contents(&*shared.store, &shared.blobs, &state.agent_id, &needs);
    contents.events.extend(imagined);
    contents.blobs.extend(at_hand);
    contents
}

fn shown(shared: &Arc<Shared>, section: &Section, prompt: &Prompt) -> Result<Shown, SubmitError> {
    let fresh = prompt.blobs.iter().find(|blob| blob.hash == section.hash).map(|blob| blob.bytes.clone());
    let bytes = fresh.map_or_else(|| shared.blobs.read(&section.hash), Ok)?;
    Ok(Shown { kind: section.kind, text: String::from_utf8_lossy(&bytes).into_owned() })
}
