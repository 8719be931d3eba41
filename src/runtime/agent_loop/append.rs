//! From a batch to an append: the agent's own part, and one for each agent that is born with it.

use super::{AgentLoop, Batch, Told};
use crate::decide::call::CallEnd;
use crate::decide::turn::TurnCommand;
use crate::decide::{Born, Command, Staged};
use crate::events::codec;
use crate::fold::AgentState;
use crate::fold::row::{Rows, rows};
use crate::ledger::chain::{self, Linked};
use crate::ledger::{Append, AppendError, Head, Part, checkpoint};
use crate::runtime::effect::spawn;
use crate::words::id::{AgentId, Boot};
use crate::words::limit::CHECKPOINT_EVENTS;

impl AgentLoop {
    pub(super) async fn write(&mut self, batch: &mut Batch) -> Result<Head, AppendError> {
        let boot = self.shared.boot;
        let rows = rows(&self.state, boot);
        let own = part(&self.id, self.head, &mut batch.staged, (self.rows.as_ref(), &rows), &self.state);
        let head = own.head;
        let births = batch.staged.births.iter_mut().map(|born| birth(born, boot));
        let append =
            Append { parts: [own].into_iter().chain(births).collect(), blobs: std::mem::take(&mut batch.blobs) };
        let events = append.parts.iter().map(|part| part.records.len()).sum();
        let watch = self.shared.source.stopwatch();
        match self.shared.writer.append(append).await {
            Ok(()) => self.shared.meter.appended(events, watch.elapsed_us()),
            Err(error) => {
                self.shared.meter.failed();
                return Err(error);
            }
        }
        self.rows = Some(rows);
        Ok(head)
    }

    /// The loops of those who were born look for what is owed.
    pub(super) fn welcome(&self, births: &[Born]) {
        for born in births {
            self.shared.nudge(&born.state.agent_id);
        }
    }
}

/// Makes a birth the refusal that it comes to where somebody else was born first under its id (architecture 19).
pub(super) fn refuse_birth((_, request, blobs): &mut Told, taken: &AgentId) {
    if let Command::Turn(TurnCommand::EndCall { end, .. }) = &mut request.command
        && matches!(end, CallEnd::Child(_))
    {
        *end = spawn::taken(taken);
        blobs.clear();
    }
}

fn birth(born: &mut Born, boot: Boot) -> Part {
    let agent = born.state.agent_id.clone();
    let rows = rows(&born.state, boot);
    part(&agent, chain::genesis(&agent), &mut born.staged, (None, &rows), &born.state)
}

/// What is staged for one ledger; of the rows only what changed.
fn part(
    agent: &AgentId,
    expected: Head,
    staged: &mut Staged,
    (before, rows): (Option<&Rows>, &Rows),
    state: &AgentState,
) -> Part {
    let Linked { records, anchors, payloads, head } =
        chain::extend(expected, &staged.envelopes).expect("decisions keep events within their bounds");
    Part {
        agent: agent.clone(),
        expected,
        records,
        head,
        anchors,
        payloads,
        list: (before.map(|rows| &rows.list) != Some(&rows.list)).then(|| codec::to_bytes(&rows.list)),
        due: (before.map(|rows| rows.due) != Some(rows.due)).then_some(rows.due),
        deadline: (before.map(|rows| rows.deadline) != Some(rows.deadline)).then_some(rows.deadline),
        closed: std::mem::take(&mut staged.closed),
        tokens: std::mem::take(&mut staged.tokens),
        checkpoint: is_checkpoint_due(expected, head).then(|| checkpoint::encode(state, head)),
    }
}

fn is_checkpoint_due(before: Head, after: Head) -> bool {
    before.seq.0 / CHECKPOINT_EVENTS != after.seq.0 / CHECKPOINT_EVENTS
}
