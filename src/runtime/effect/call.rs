//! One model call: a recorded prompt to a provider, and its answer to a command.

use crate::context::request::{ModelAnswer, ModelRequest, Part, ToolSchema};
use crate::decide::Request;
use crate::decide::turn::{NewAnswer, TurnCommand};
use crate::events::Cause;
use crate::events::turn::{AttemptError, AttemptErrorKind, Section, SectionKind};
use crate::fold::turn::{Phase, Turn, Turns};
use crate::ledger::blob::Blobs;
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::permit::Claim;
use crate::tools;
use crate::words::content::{Blob, Content};
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, RunId};
use crate::words::limit::{CALL_NAME_BYTES_MAX, CALLS_PER_ROUND_MAX, MODEL_TEXT_BYTES_MAX};
use std::sync::Arc;

/// A model call, as the state describes it.
pub(in crate::runtime) struct ModelCall {
    run: RunId,
    attempt: EventSeq,
    /// `provider/model`.
    model: String,
    sections: Vec<Section>,
    tools: Hash,
    output_tokens_max: u32,
    rounds_before: u64,
    claim: Claim,
}

impl ModelCall {
    /// The call that `attempt` names, if it is the one under way.
    pub(crate) fn of(turns: &Turns, attempt: EventSeq, claim: Claim) -> Option<Self> {
        let turn: &Turn = turns.current.as_deref()?;
        let Phase::RoundRequested(requested) = &turn.phase else { return None };
        let begun = requested.attempt.filter(|begun| begun.seq == attempt)?;
        Some(Self {
            run: turn.run,
            attempt,
            model: turn.policy.models.get(begun.model as usize).cloned().unwrap_or_default(),
            sections: turn.sections.clone(),
            tools: requested.tools,
            output_tokens_max: turn.policy.output_tokens_per_round_max,
            rounds_before: turns.rounds_total,
            claim,
        })
    }

    /// Calls the model and says what came of it.
    pub(crate) async fn make(self, shared: Arc<Shared>) -> What {
        let answered = self.answer(&shared).await;
        let (run, attempt) = (self.run, self.attempt);
        let recorded = match answered {
            Ok(answer) => self.record(&shared, answer).await,
            Err(error) => Err(error),
        };
        recorded.unwrap_or_else(|error| failed(run, attempt, error))
    }

    async fn answer(&self, shared: &Shared) -> Result<ModelAnswer, AttemptError> {
        let resolved = shared.models.resolve(&self.model)?;
        let request = self.request(resolved.model, shared.blobs.clone()).await?;
        let _place = shared.model_calls.take(self.claim.clone()).await;
        let answer = resolved.provider.complete(&request).await?;
        check(&answer)?;
        Ok(answer)
    }

    /// The provider-neutral request, read back from what the round recorded.
    async fn request(&self, model: String, blobs: Blobs) -> Result<ModelRequest, AttemptError> {
        let (sections, tools) = (self.sections.clone(), self.tools);
        let read = tokio::task::spawn_blocking(move || read_prompt(&blobs, &sections, &tools));
        let (parts, tools) = read.await.map_err(|error| unreadable(&error))??;
        let (output_tokens_max, rounds_before) = (self.output_tokens_max, self.rounds_before);
        Ok(ModelRequest { model, parts, tools, output_tokens_max, rounds_before })
    }

    async fn record(self, shared: &Shared, answer: ModelAnswer) -> Result<What, AttemptError> {
        let said = serde_json::to_vec(&answer.said).map_err(|error| unreadable(&error))?;
        let section = Blob::new(said);
        let (calls, call_blobs) = tools::read_calls(&answer.said.calls, answer.stop);
        let (text, text_blob) = Content::new(answer.said.text);
        let new = NewAnswer {
            run: self.run,
            attempt: self.attempt,
            text,
            answer: Section { kind: SectionKind::Assistant, hash: section.hash, bytes: section.bytes.len() as u64 },
            calls,
            stop: answer.stop,
            usage: answer.usage,
        };
        let blobs = std::iter::once(section).chain(text_blob).chain(call_blobs).collect();
        let keeper = shared.blobs.clone();
        let kept = tokio::task::spawn_blocking(move || keeper.keep_large(blobs)).await;
        // An answer that was paid for is not given up for a full disk; what is missing shows when it is read.
        let blobs = match kept {
            Ok(Ok(blobs)) => blobs,
            Ok(Err(error)) => return Err(unreadable(&error)),
            Err(error) => return Err(unreadable(&error)),
        };
        let request = Request::new(TurnCommand::Record(new), Cause::Run(self.run));
        Ok(What::Command { request, blobs })
    }
}

/// The command that records a failed call.
pub(in crate::runtime) fn failed(run: RunId, attempt: EventSeq, error: AttemptError) -> What {
    What::command(Request::new(TurnCommand::FailAttempt { run, attempt, error }, Cause::Run(run)))
}

/// A failure of ours, not of the model.
pub(in crate::runtime) fn fault(kind: AttemptErrorKind, message: impl Into<String>) -> AttemptError {
    AttemptError { kind, status: None, message: message.into(), retry_after_ms: None }
}

fn unreadable(error: &dyn std::fmt::Display) -> AttemptError {
    fault(AttemptErrorKind::InvalidRequest, format!("the recorded prompt cannot be used: {error}"))
}

fn read_prompt(
    blobs: &Blobs,
    sections: &[Section],
    tools: &Hash,
) -> Result<(Vec<Part>, Vec<ToolSchema>), AttemptError> {
    let part = |section: &Section| {
        let bytes = blobs.read(&section.hash).map_err(|error| unreadable(&error))?;
        Part::read(section.kind, &bytes).map_err(|error| unreadable(&error))
    };
    let parts = sections.iter().map(part).collect::<Result<_, _>>()?;
    let tools = blobs.read(tools).map_err(|error| unreadable(&error))?;
    Ok((parts, serde_json::from_slice(&tools).map_err(|error| unreadable(&error))?))
}

/// Providers bound what they hand out; this bounds what is recorded, whoever the provider is.
fn check(answer: &ModelAnswer) -> Result<(), AttemptError> {
    let arguments: usize = answer.said.calls.iter().map(|call| call.arguments.len()).sum();
    let names_fit = answer.said.calls.iter().all(|call| {
        !call.id.is_empty() && call.id.len() <= CALL_NAME_BYTES_MAX && call.tool.len() <= CALL_NAME_BYTES_MAX
    });
    let calls_fit = answer.said.calls.len() <= CALLS_PER_ROUND_MAX;
    if answer.said.text.len() + arguments > MODEL_TEXT_BYTES_MAX || !names_fit || !calls_fit {
        return Err(fault(AttemptErrorKind::InvalidAnswer, "the answer is too long, or its calls are too many"));
    }
    Ok(())
}
