//! Payloads that events name by their hash and keep elsewhere (architecture 23).

use super::task::CommandOutput;
use super::turn::{CallResult, Entry, Section};
use super::{Event, OperatorEvent, QueueEvent, TaskEvent, TurnEvent};
use crate::words::content::Content;
use crate::words::hash::Hash;

/// A payload as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    pub hash: Hash,
    /// Its size, where the event says it.
    pub bytes: Option<u64>,
}

/// Every payload that must be there for `event` to be whole.
pub fn payloads(event: &Event) -> Vec<Payload> {
    match event {
        Event::Queue(QueueEvent::Enqueued(event)) => of_content(&event.body).collect(),
        Event::Operator(OperatorEvent::BriefCreated(event)) => of_content(&event.text).collect(),
        Event::Turn(event) => of_turn(event),
        Event::Task(TaskEvent::Exited(event)) => of_output(&event.output),
        Event::Agent(_) | Event::Queue(QueueEvent::Settled(_)) | Event::Task(_) | Event::Waiting(_) => Vec::new(),
    }
}

fn of_content(content: &Content) -> impl Iterator<Item = Payload> {
    content.stored().map(|hash| Payload { hash, bytes: Some(content.bytes()) }).into_iter()
}

fn of_section(section: &Section) -> Payload {
    Payload { hash: section.hash, bytes: Some(section.bytes) }
}

fn of_output(output: &CommandOutput) -> Vec<Payload> {
    let kept = output.kept.iter().map(|kept| Payload { hash: kept.hash, bytes: Some(kept.bytes) });
    of_content(&output.shown).chain(kept).collect()
}

fn of_turn(event: &TurnEvent) -> Vec<Payload> {
    match event {
        TurnEvent::RoundRequested(event) => {
            let tools = Payload { hash: event.tools, bytes: None };
            event.added.iter().map(of_section).chain([tools]).collect()
        }
        TurnEvent::Entry(event) => of_entry(&event.entry),
        TurnEvent::Started(_)
        | TurnEvent::RoundAttempted(_)
        | TurnEvent::RoundAttemptFailed(_)
        | TurnEvent::Aborted(_)
        | TurnEvent::Terminal(_) => Vec::new(),
    }
}

fn of_entry(entry: &Entry) -> Vec<Payload> {
    match entry {
        Entry::Assistant { text, answer, .. } => of_content(text).chain([of_section(answer)]).collect(),
        Entry::ToolResult { result, .. } => of_result(result),
        Entry::Incoming { .. } | Entry::Interjection { .. } => Vec::new(),
    }
}

fn of_result(result: &CallResult) -> Vec<Payload> {
    match result {
        CallResult::Exited { output, .. }
        | CallResult::Promoted { output, .. }
        | CallResult::TaskOutput { output, .. } => of_content(&output.text).collect(),
        CallResult::AlreadyRunning { .. } | CallResult::Slept | CallResult::Refused(_) => Vec::new(),
    }
}
