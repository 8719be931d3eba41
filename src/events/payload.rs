//! Payloads that events name by their hash and keep elsewhere (architecture 23).

use super::agent::AgentEvent;
use super::call::{Action, CallResult};
use super::task::CommandOutput;
use super::turn::{Entry, Section};
use super::work::WorkChange;
use super::{
    Event, MemoryEvent, OperatorEvent, QueueEvent, TaskEvent, TurnEvent, WaitingEvent, WorkEvent, WorkspaceEvent,
};
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
        Event::Agent(event) => of_agent(event),
        Event::Queue(QueueEvent::Enqueued(event)) => of_content(&event.body).collect(),
        Event::Operator(OperatorEvent::BriefCreated(event)) => of_content(&event.text).collect(),
        Event::Operator(OperatorEvent::NotificationRequested(event)) => of_content(&event.text).collect(),
        Event::Turn(event) => of_turn(event),
        Event::Task(event) => of_task(event),
        Event::Work(event) => of_work(event),
        Event::Workspace(WorkspaceEvent::GuidanceRead(event)) => event.content.iter().flat_map(of_content).collect(),
        Event::Memory(MemoryEvent::Updated(event)) => event.text.iter().flat_map(of_content).collect(),
        Event::Memory(MemoryEvent::EpisodeFinalized(event)) => of_content(&event.digest).collect(),
        Event::Waiting(WaitingEvent::WakeRequested(event)) => event.body.iter().flat_map(of_content).collect(),
        Event::Home(_)
        | Event::Queue(QueueEvent::Settled(_))
        | Event::Waiting(_)
        | Event::Workspace(_)
        | Event::Operator(_) => Vec::new(),
    }
}

fn of_content(content: &Content) -> impl Iterator<Item = Payload> {
    content.stored().map(|hash| Payload { hash, bytes: Some(content.bytes()) }).into_iter()
}

fn of_section(section: &Section) -> Payload {
    Payload { hash: section.hash, bytes: Some(section.bytes) }
}

fn of_agent(event: &AgentEvent) -> Vec<Payload> {
    match event {
        AgentEvent::Inherited(event) => of_content(&event.view).collect(),
        AgentEvent::Reported(event) => of_content(&event.report).collect(),
        AgentEvent::Created(_)
        | AgentEvent::Started(_)
        | AgentEvent::Stopped(_)
        | AgentEvent::Paused(_)
        | AgentEvent::Spawned(_)
        | AgentEvent::Delivered(_)
        | AgentEvent::ModelSet(_)
        | AgentEvent::ModelCleared(_)
        | AgentEvent::ArchiveRequested(_)
        | AgentEvent::Archived(_)
        | AgentEvent::RequestAnswered(_)
        | AgentEvent::ErrandTaken(_) => Vec::new(),
    }
}

fn of_work(event: &WorkEvent) -> Vec<Payload> {
    match event {
        WorkEvent::Created(event) => of_change(&event.change).collect(),
        WorkEvent::Updated(event) => of_change(&event.change).collect(),
        WorkEvent::Completed(event) => of_content(&event.report).collect(),
        WorkEvent::Picked(_) | WorkEvent::Continued(_) | WorkEvent::Held(_) | WorkEvent::Rechecked(_) => Vec::new(),
    }
}

fn of_change(change: &WorkChange) -> impl Iterator<Item = Payload> {
    change.plan.iter().chain(&change.acceptance).flat_map(of_content)
}

fn of_task(event: &TaskEvent) -> Vec<Payload> {
    match event {
        TaskEvent::Exited(event) => of_output(&event.output),
        TaskEvent::InputRequested(event) => of_content(&event.text).collect(),
        TaskEvent::CreateRequested(_)
        | TaskEvent::Supervised(_)
        | TaskEvent::Started(_)
        | TaskEvent::Promoted(_)
        | TaskEvent::StopRequested(_)
        | TaskEvent::ChildSpawned(_)
        | TaskEvent::InputDelivered(_)
        | TaskEvent::ChildDirected(_) => Vec::new(),
    }
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
        | TurnEvent::CallStarted(_)
        | TurnEvent::Aborted(_)
        | TurnEvent::Terminal(_) => Vec::new(),
    }
}

fn of_entry(entry: &Entry) -> Vec<Payload> {
    match entry {
        Entry::Assistant { text, answer, calls, .. } => {
            let asked = calls.iter().flat_map(|call| of_action(&call.action));
            of_content(text).chain([of_section(answer)]).chain(asked).collect()
        }
        Entry::ToolResult { result, .. } => of_result(result),
        Entry::Incoming { .. } | Entry::Interjection { .. } => Vec::new(),
    }
}

fn of_action(action: &Action) -> Vec<Payload> {
    match action {
        Action::TaskInput { text, .. } | Action::Enqueue { text } | Action::Notify { text } => {
            of_content(text).collect()
        }
        Action::ApplyPatch { patch } => of_content(patch).collect(),
        Action::CreateWork { change, .. } | Action::UpdateWork { change, .. } => of_change(change).collect(),
        Action::CompleteWork { report, .. } => report.iter().flat_map(of_content).collect(),
        Action::UpdateMemory { text, .. } => text.iter().flat_map(of_content).collect(),
        Action::Spawn(request) => request.initial_message.iter().flat_map(of_content).collect(),
        Action::Exec(_)
        | Action::TaskOutput { .. }
        | Action::TaskStop { .. }
        | Action::Sleep { .. }
        | Action::WaitFor { .. }
        | Action::CreateTimer { .. }
        | Action::CancelTimer { .. }
        | Action::CreateTrigger { .. }
        | Action::CancelTrigger { .. }
        | Action::PickWork { .. }
        | Action::Look(_)
        | Action::ReadFile { .. }
        | Action::SearchFiles { .. }
        | Action::UseWorkspace { .. }
        | Action::AttachWorkspace { .. }
        | Action::DetachWorkspace { .. }
        | Action::Refused(_) => Vec::new(),
    }
}

fn of_result(result: &CallResult) -> Vec<Payload> {
    result.shown().into_iter().flat_map(|shown| of_content(&shown.text)).collect()
}
