//! The queue plane: messages that wait.
//!
//! | from    | event                    | to      |
//! |---------|--------------------------|---------|
//! | none    | Enqueued                 | waiting |
//! | waiting | turn Started             | none: the turn holds it |
//! | waiting | Settled                  | none    |
//! | waiting | WakeRequested            | waiting, with one more reason |
//!
//! **Invariant:** a lane's first message is its oldest, since ids only go up.

use super::{Illegal, Place};
use crate::events::operator::{BriefKind, OperatorEvent, ReplyRoute};
use crate::events::queue::{Lane, MessageEnqueued, MessageKind, Origin, Subject, Trust};
use crate::events::waiting::WakeRequested;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, MessageId, TaskId, WorkId};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The id given last.
    pub last: MessageId,
    pub waiting: BTreeMap<MessageId, Queued>,
    pub(super) lanes: [BTreeSet<MessageId>; 4],
    /// Bytes of the bodies that wait.
    pub body_bytes: u64,
}

/// A message that waits. Its body is in its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub seq: EventSeq,
    pub at: Timestamp,
    pub lane: Lane,
    pub kind: MessageKind,
    pub body_bytes: u64,
    pub about: Vec<Subject>,
    /// Whether an operator sent it.
    pub from_operator: bool,
    /// Whether its sender was told that a run has taken it up.
    pub acknowledged: bool,
    /// The wakes that this tick names; empty for all else.
    pub wakes: Vec<Wake>,
    /// Where its answer goes back to.
    pub reply_route: Option<ReplyRoute>,
    /// The least trust of what it rests on, which is the most that its turn passes on.
    pub trust: Trust,
}

/// A wake that a tick carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    pub mark: Hash,
    pub seq: EventSeq,
}

/// The position of a lane, highest first.
pub(super) fn rank(lane: Lane) -> usize {
    match lane {
        Lane::Interject => 0,
        Lane::Next => 1,
        Lane::Normal => 2,
        Lane::Background => 3,
    }
}

/// The work that a message is about.
pub fn work_of(about: &[Subject]) -> Vec<WorkId> {
    let work = |subject: &Subject| match subject {
        Subject::Work(work) => Some(*work),
        Subject::Task(_) | Subject::Wait(_) | Subject::Timer(_) | Subject::Trigger(_) => None,
    };
    about.iter().filter_map(work).collect()
}

/// What makes two wakes the same.
pub fn wake_mark(reason: &str, source: Option<&str>, body: Option<&Content>) -> Hash {
    let body = body.map_or_else(String::new, |body| match body {
        Content::Inline(text) => Hash::of(text.as_bytes()).to_string(),
        Content::Stored { hash, .. } => hash.to_string(),
    });
    Hash::of(format!("{}\n{body}\n{reason}", source.unwrap_or_default()).as_bytes())
}

impl Queue {
    /// The oldest message of the highest lane that is not empty.
    pub fn first(&self) -> Option<(MessageId, &Queued)> {
        let id = self.lanes.iter().find_map(|lane| lane.first())?;
        self.waiting.get_key_value(id).map(|(id, queued)| (*id, queued))
    }

    /// Operator prompts that a running turn takes in at its next safe point, oldest first.
    pub fn interjections(&self) -> impl Iterator<Item = (MessageId, &Queued)> {
        let prompts = self.lanes[rank(Lane::Interject)].iter().filter_map(|id| self.waiting.get_key_value(id));
        prompts.filter(|(_, queued)| queued.kind == MessageKind::OperatorPrompt).map(|(id, queued)| (*id, queued))
    }

    /// Those of `messages` that wait.
    pub(super) fn named<'a>(&'a self, messages: &'a [MessageId]) -> impl Iterator<Item = (MessageId, &'a Queued)> {
        messages.iter().filter_map(|id| self.waiting.get_key_value(id)).map(|(id, queued)| (*id, queued))
    }

    /// The tick that gathers wakes, if one waits.
    pub fn wake_tick(&self) -> Option<(MessageId, &Queued)> {
        let ticks = self.lanes[rank(Lane::Next)].iter().filter_map(|id| self.waiting.get_key_value(id));
        ticks.map(|(id, queued)| (*id, queued)).find(|(_, queued)| !queued.wakes.is_empty())
    }

    /// The waiting message that tells how `task` ended.
    pub fn result_of(&self, task: TaskId) -> Option<MessageId> {
        self.about(&Subject::Task(task)).find(|(_, queued)| queued.kind == MessageKind::TaskResult).map(|(id, _)| id)
    }

    /// The waiting messages that are about `subject`, oldest first.
    pub fn about<'a>(&'a self, subject: &'a Subject) -> impl Iterator<Item = (MessageId, &'a Queued)> {
        let about = self.waiting.iter().filter(|(_, queued)| queued.about.contains(subject));
        about.map(|(id, queued)| (*id, queued))
    }

    pub(super) fn enqueue(&mut self, event: &MessageEnqueued, place: Place) -> Result<(), Illegal> {
        if event.message != self.last.next() {
            return Err("message ids go up by one");
        }
        let queued = Queued {
            seq: place.seq,
            at: place.at,
            lane: event.lane,
            kind: event.kind,
            body_bytes: event.body.bytes(),
            about: event.about.clone(),
            from_operator: matches!(event.origin, Origin::Operator { .. }),
            acknowledged: false,
            wakes: Vec::new(),
            reply_route: event.reply_route.clone(),
            trust: event.trust_passed_on(),
        };
        self.body_bytes = self.body_bytes.checked_add(queued.body_bytes).ok_or("the bodies are beyond counting")?;
        self.last = event.message;
        self.lanes[rank(event.lane)].insert(event.message);
        self.waiting.insert(event.message, queued);
        Ok(())
    }

    pub(super) fn wake(&mut self, event: &WakeRequested, place: Place) -> Result<(), Illegal> {
        let queued = self.waiting.get_mut(&event.message).ok_or("the tick of a wake waits")?;
        let mark = wake_mark(&event.reason, event.source.as_deref(), event.body.as_ref());
        queued.wakes.push(Wake { mark, seq: place.seq });
        queued.trust = event.derived_from.as_ref().map_or(queued.trust, |from| queued.trust.least(from.trust));
        let bytes = event.body.as_ref().map_or(0, Content::bytes);
        queued.body_bytes = queued.body_bytes.saturating_add(bytes);
        self.body_bytes = self.body_bytes.checked_add(bytes).ok_or("the bodies are beyond counting")?;
        Ok(())
    }

    pub(super) fn acknowledged(&mut self, event: &OperatorEvent) {
        if let OperatorEvent::BriefCreated(brief) = event
            && brief.kind == BriefKind::Ack
            && let Some(queued) = brief.message.and_then(|message| self.waiting.get_mut(&message))
        {
            queued.acknowledged = true;
        }
    }

    /// Removes a message that waits.
    pub(super) fn take(&mut self, message: MessageId) -> Result<Queued, Illegal> {
        let queued = self.waiting.remove(&message).ok_or("the message does not wait")?;
        self.lanes[rank(queued.lane)].remove(&message);
        self.body_bytes -= queued.body_bytes;
        Ok(queued)
    }
}
