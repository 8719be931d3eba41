//! Replay: recorded commands to the ledgers they make, and a ledger to the state it folds to.
//!
//! A fixture of `replay-fixtures/` is a folder with `commands.jsonl`, `ledger.bin`, `state.json` and a README, and such
//! a ledger and state for each agent that is born on the way. It is checked both ways: the commands give the ledgers
//! byte for byte, and those bytes fold to the states.
//!
//! **Invariant:** nothing here reads a clock, a random number or anything else that is not in the fixture.

use crate::decide::agent::AgentCommand;
use crate::decide::{Born, Command, Request, Staged, handle};
use crate::events::codec::{self, CodecError};
use crate::fold::invariant::{self, Broken};
use crate::fold::{AgentState, IllegalEvent};
use crate::ledger::{Records, chain};
use crate::words::id::AgentId;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A command as it was given, with the reading of the clock it was decided by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub at: Timestamp,
    /// Whom it was given to; none for the agent that the first command creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    pub request: Request,
}

/// A fixture, or a ledger, that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("line {line} of the commands cannot be read: {error}")]
    Line { line: usize, error: serde_json::Error },
    #[error("the commands do not begin with an agent's creation")]
    NoCreation,
    #[error("command {step} is for {agent}, who is not there")]
    NobodyThere { step: usize, agent: AgentId },
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

/// The agent that the steps create.
pub fn creates(steps: &[Step]) -> Result<&AgentId, ReplayError> {
    let first = steps.first().map(|step| &step.request.command);
    let Some(Command::Agent(AgentCommand::Create(new))) = first else { return Err(ReplayError::NoCreation) };
    Ok(&new.agent_id)
}

/// The records that the steps lead to, by their agents. A refused command leads to none.
pub fn run(steps: &[Step]) -> Result<BTreeMap<AgentId, Records>, ReplayError> {
    let first = creates(steps)?;
    let unborn = Born { state: AgentState::unborn(first.clone()), staged: Staged::default() };
    let mut agents = BTreeMap::from([(first.clone(), unborn)]);
    for (number, step) in (1..).zip(steps) {
        let agent = step.agent.as_ref().unwrap_or(first);
        let taker = agents.get_mut(agent);
        let taker = taker.ok_or_else(|| ReplayError::NobodyThere { step: number, agent: agent.clone() })?;
        let births = take(taker, step, number)?;
        agents.extend(births.into_iter().map(|born| (born.state.agent_id.clone(), born)));
    }
    agents.into_iter().map(|(agent, born)| Ok((agent.clone(), recorded(&agent, &born.staged)?))).collect()
}

/// Decides a step; answers who was born with it.
fn take(taker: &mut Born, step: &Step, number: usize) -> Result<Vec<Born>, ReplayError> {
    // A refusal is as good an outcome as an answer: neither leaves a trace but its events.
    let _ = handle(&mut taker.state, &step.request, step.at, &mut taker.staged)
        .map_err(|error| ReplayError::Contradiction { step: number, error })?;
    invariant::check(&taker.state).map_err(|broken| ReplayError::Broken { step: number, broken })?;
    Ok(std::mem::take(&mut taker.staged.births))
}

fn recorded(agent: &AgentId, staged: &Staged) -> Result<Records, ReplayError> {
    let linked = chain::extend(chain::genesis(agent), &staged.envelopes);
    linked
        .map(|linked| linked.records)
        .map_err(|error| ReplayError::Unreadable { record: staged.envelopes.len(), error })
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
