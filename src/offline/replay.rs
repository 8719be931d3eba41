//! Replay: recorded commands to the ledger they make, and a ledger to the state it folds to.
//!
//! A fixture of `replay-fixtures/` is a folder with `commands.jsonl`, `ledger.bin`, `state.json` and a README. It is
//! checked both ways: the commands give the ledger byte for byte, and those bytes fold to the state.
//!
//! **Invariant:** nothing here reads a clock, a random number or anything else that is not in the fixture.

use crate::decide::agent::AgentCommand;
use crate::decide::{Command, Request, Staged, handle};
use crate::events::codec::{self, CodecError};
use crate::fold::invariant::{self, Broken};
use crate::fold::{AgentState, IllegalEvent};
use crate::ledger::{Records, chain};
use crate::words::id::AgentId;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A command as it was given, with the reading of the clock it was decided by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub at: Timestamp,
    pub request: Request,
}

/// A fixture, or a ledger, that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("line {line} of the commands cannot be read: {error}")]
    Line { line: usize, error: serde_json::Error },
    #[error("the commands do not begin with an agent's creation")]
    NoCreation,
    #[error("command {step} contradicts the core: {error}")]
    Contradiction { step: usize, error: IllegalEvent },
    #[error("after command {step}: {broken}")]
    Broken { step: usize, broken: Broken },
    #[error("the ledger ends within a record, at byte {0}")]
    Cut(usize),
    #[error("record {record} cannot be read: {error}")]
    Unreadable { record: usize, error: CodecError },
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    #[error(transparent)]
    Contradictory(#[from] Broken),
}

/// Reads `commands.jsonl`: one step a line.
pub fn parse(text: &str) -> Result<Vec<Step>, ReplayError> {
    let read = |(index, line)| serde_json::from_str(line).map_err(|error| ReplayError::Line { line: index + 1, error });
    text.lines().enumerate().map(read).collect()
}

/// Writes `commands.jsonl`.
pub fn to_lines(steps: &[Step]) -> String {
    let line = |step| serde_json::to_string(step).expect("commands are JSON");
    steps.iter().map(|step| line(step) + "\n").collect()
}

/// The records that the steps lead to. A refused command leads to none.
pub fn run(steps: &[Step]) -> Result<Records, ReplayError> {
    let agent = created(steps)?;
    let mut state = AgentState::unborn(agent.clone());
    let mut staged = Staged::default();
    for (index, step) in steps.iter().enumerate() {
        take(&mut state, step, &mut staged, index + 1)?;
    }
    let linked = chain::extend(chain::genesis(agent), &staged.envelopes);
    linked
        .map(|linked| linked.records)
        .map_err(|error| ReplayError::Unreadable { record: staged.envelopes.len(), error })
}

fn take(state: &mut AgentState, step: &Step, staged: &mut Staged, number: usize) -> Result<(), ReplayError> {
    // A refusal is as good an outcome as an answer: neither leaves a trace but its events.
    let _ = handle(state, &step.request, step.at, staged)
        .map_err(|error| ReplayError::Contradiction { step: number, error })?;
    invariant::check(state).map_err(|broken| ReplayError::Broken { step: number, broken })
}

fn created(steps: &[Step]) -> Result<&AgentId, ReplayError> {
    let first = steps.first().map(|step| &step.request.command);
    let Some(Command::Agent(AgentCommand::Create(new))) = first else { return Err(ReplayError::NoCreation) };
    Ok(&new.agent_id)
}

/// Folds the records of `agent`, in their order.
pub fn fold(agent: &AgentId, records: &Records) -> Result<AgentState, ReplayError> {
    let mut state = AgentState::unborn(agent.clone());
    for (index, record) in records.iter().enumerate() {
        let envelope = codec::decode(record).map_err(|error| ReplayError::Unreadable { record: index + 1, error })?;
        state.evolve(&envelope)?;
    }
    invariant::check(&state)?;
    Ok(state)
}

/// Writes `ledger.bin`: before each record its length, as four little-endian bytes.
pub fn to_file(records: &Records) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(records.bytes() + 4 * records.len());
    for record in records.iter() {
        let length = u32::try_from(record.len()).expect("a record is within its limit");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(record);
    }
    bytes
}

/// Reads `ledger.bin`.
pub fn from_file(bytes: &[u8]) -> Result<Records, ReplayError> {
    let mut records = Records::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let cut = || ReplayError::Cut(bytes.len() - rest.len());
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let (record, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(cut)?;
        records.push(record);
        rest = after;
    }
    Ok(records)
}

/// The state as `state.json` shows it: every field, in the order of the fold.
pub fn to_json(state: &AgentState) -> String {
    serde_json::to_string_pretty(state).expect("a state is JSON") + "\n"
}

/// Reads a state back from `state.json`.
pub fn from_json(text: &str) -> Result<AgentState, serde_json::Error> {
    serde_json::from_str(text)
}
