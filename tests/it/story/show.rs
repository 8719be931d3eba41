//! Events, effects and answers, a short line each.

use crate::world::World;
use holon::events::agent::{AgentEvent, Answer};
use holon::events::call::CallResult;
use holon::events::operator::OperatorEvent;
use holon::events::queue::{MessageOutcome, QueueEvent, Trust};
use holon::events::task::{Exit, TaskEvent};
use holon::events::turn::{AfterAttempt, Entry, RoundRequested, TurnEvent, TurnTerminal};
use holon::events::waiting::WaitingEvent;
use holon::events::{Envelope, Event, MemoryEvent};
use holon::fold::owed::Owed;
use holon::fold::posture::Posture;
use holon::fold::turn::Phase;
use holon::words::content::Content;
use holon::words::time::Timestamp;
use serde_json::Value;
use std::fmt::Display;

pub fn event(envelope: &Envelope) -> String {
    match &envelope.event {
        Event::Agent(event) => agent(event),
        Event::Queue(event) => queue(event),
        Event::Turn(event) => turn(event, envelope),
        Event::Task(event) => task(event, envelope),
        Event::Memory(MemoryEvent::EpisodeFinalized(event)) => {
            format!("{} holds {} to {}: {}", event.episode, event.first, event.last, event.boundary)
        }
        Event::Work(_) | Event::Workspace(_) | Event::Memory(_) => plainly(&envelope.event),
        Event::Waiting(WaitingEvent::WakeRequested(event)) => {
            let body = event.body.as_ref().map(|body| format!(" | {}", line(body))).unwrap_or_default();
            format!("{} {} by wake: {}{body}", event.message, event.disposition, event.reason)
        }
        Event::Operator(OperatorEvent::BriefCreated(event)) => {
            format!("{} {} {}: {}", event.brief, event.kind, about(&event.message), line(&event.text))
        }
        Event::Home(_) | Event::Waiting(_) | Event::Operator(_) => plainly(&envelope.event),
    }
}

/// The kind and what is filled of the body: each field by its path, texts by their first line.
fn plainly(event: &Event) -> String {
    let mut body = serde_json::to_value(event).expect("a body is JSON");
    if body["derived_from"]["trust"] == "trusted_operator" {
        body["derived_from"] = Value::Null;
    }
    format!("{}{}", event.kind(), fields("", &body))
}

fn fields(path: &str, value: &Value) -> String {
    let below = |(name, member): (&String, &Value)| match (path, name.as_str()) {
        (_, "inline") => fields(path, member),
        ("", _) => fields(name, member),
        _ => fields(&format!("{path}.{name}"), member),
    };
    match value {
        Value::Null => String::new(),
        Value::Object(members) => members.iter().map(below).collect(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().map(|item| fields(&format!("{path}[]"), item)).collect()
        }
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => format!(" {path}={value}"),
        Value::String(text) => {
            let line = holon::words::content::excerpt(text.lines().next().unwrap_or_default(), 80);
            if line.contains([' ', '=']) || line.is_empty() {
                format!(" {path}={line:?}")
            } else {
                format!(" {path}={line}")
            }
        }
    }
}

fn agent(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Created(event) => format!("created {}", event.agent_id),
        AgentEvent::Started(_) => "started".into(),
        AgentEvent::Stopped(event) => format!("stopped: {}", event.reason),
        AgentEvent::Paused(event) => format!("paused: {}", event.reason),
        AgentEvent::RequestAnswered(event) => format!("key {} answered {}", event.key, answer(&event.answer)),
        _ => plainly(&Event::Agent(event.clone())),
    }
}

fn queue(event: &QueueEvent) -> String {
    match event {
        QueueEvent::Enqueued(event) => {
            let (kind, lane, trust) = (event.kind, event.lane, event.trust);
            let from =
                event.derived_from.as_ref().filter(|from| from.trust != Trust::TrustedOperator && from.trust != trust);
            let from = from.map(|from| format!(" from {}", from.trust)).unwrap_or_default();
            format!("{} enqueued {lane} {kind} {trust}{from}: {}", event.message, line(&event.body))
        }
        QueueEvent::Settled(event) => format!("{} settled {}", event.message, outcome(&event.outcome)),
    }
}

pub fn outcome(outcome: &MessageOutcome) -> String {
    match outcome {
        MessageOutcome::Processed(run) => format!("processed {run}"),
        MessageOutcome::Aborted(run) => format!("aborted {run}"),
        MessageOutcome::Interjected(run) => format!("interjected {run}"),
        MessageOutcome::Coalesced(message) => format!("coalesced {message}"),
        MessageOutcome::Dropped(reason) => format!("dropped: {reason}"),
    }
}

fn turn(event: &TurnEvent, envelope: &Envelope) -> String {
    match event {
        TurnEvent::Started(event) => format!("{} begun on {}", event.run, event.message),
        TurnEvent::RoundRequested(event) => requested(event),
        TurnEvent::RoundAttempted(event) => {
            format!("round {} attempt {} boot {} model {}", event.round, envelope.seq, event.boot.0, event.model)
        }
        TurnEvent::RoundAttemptFailed(event) => {
            format!("attempt {} failed {}: {}", event.attempt, event.error.kind, after(&event.then, envelope.at))
        }
        TurnEvent::Entry(event) => entry(&event.entry),
        TurnEvent::CallStarted(event) => {
            format!("call {}/{} attempt {} boot {}", event.round, event.call, envelope.seq, event.boot.0)
        }
        TurnEvent::Aborted(event) => format!("{} aborted {}: {}", event.run, event.mode, event.reason),
        TurnEvent::Terminal(event) => terminal(event),
    }
}

fn requested(event: &RoundRequested) -> String {
    let kinds: Vec<&str> = event.added.iter().map(|section| section.kind.name()).collect();
    let taken: Vec<String> = event.interjections.iter().map(|message| format!(" takes {message}")).collect();
    format!("round {} keeps {} adds {}{}", event.round, event.keeps, kinds.join(" "), taken.concat())
}

fn after(then: &AfterAttempt, at: Timestamp) -> String {
    match then {
        AfterAttempt::Again { model, not_before } => format!("model {model} in {} ms", not_before.since_ms(at)),
        AfterAttempt::GiveUp => "give up".into(),
    }
}

fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Incoming { message } => format!("incoming {message}"),
        Entry::Interjection { message } => format!("interjection {message}"),
        Entry::Assistant { round, text, calls, .. } => format!("said {round}: {} ({} calls)", line(text), calls.len()),
        Entry::ToolResult { round, call, result } => format!("result {round}/{call} {}", tool_result(result)),
    }
}

fn tool_result(result: &CallResult) -> String {
    match result {
        CallResult::Exited { task, exit, output, .. } => format!("{task} {}: {}", ended(exit), line(&output.text)),
        CallResult::Promoted { task, .. } => format!("{task} promoted"),
        CallResult::AlreadyRunning { task } => format!("{task} already running"),
        CallResult::TaskOutput { task, status, exit, output } => {
            let exit = exit.as_ref().map_or_else(|| "no end".into(), ended);
            format!("{task} {status}, {exit}: {}", line(&output.text))
        }
        CallResult::Slept => "slept".into(),
        CallResult::Refused(error) => format!("refused {}", error.kind),
        _ => fields("", &serde_json::to_value(result).expect("a result is JSON")).trim_start().to_owned(),
    }
}

fn terminal(event: &TurnTerminal) -> String {
    let reason = event.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
    format!("{} {}{reason} after {} rounds", event.run, event.outcome, event.rounds)
}

fn task(event: &TaskEvent, envelope: &Envelope) -> String {
    match event {
        TaskEvent::CreateRequested(event) => format!("{} requested: {}", event.task, event.summary),
        TaskEvent::Supervised(event) => format!("{} supervised by {}", event.task, event.supervisor.pid),
        TaskEvent::Started(event) => format!("{} attempt {} boot {}", event.task, envelope.seq, event.boot.0),
        TaskEvent::Promoted(event) => format!("{} promoted", event.task),
        TaskEvent::StopRequested(event) => format!("{} to be ended: {}", event.task, event.reason),
        TaskEvent::Exited(event) => format!("{} {}, {}", event.task, event.status, ended(&event.exit)),
        _ => plainly(&Event::Task(event.clone())),
    }
}

fn ended(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::NotStarted(reason) => format!("not started ({reason})"),
        Exit::Lost => "lost".into(),
        Exit::Reported(_) => "reported".into(),
        Exit::LimitExceeded { limit, max } => format!("more than {max} {limit}"),
    }
}

pub fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Done => "done".into(),
        Answer::Message(message) => message.to_string(),
        Answer::Aborted(run) => format!("aborted {run}"),
        Answer::Woken { disposition, message } => format!("{disposition} {message}"),
        Answer::Work(id) => id.to_string(),
        Answer::Wait(id) => id.to_string(),
        Answer::Timer(id) => id.to_string(),
        Answer::Trigger(id) => id.to_string(),
        Answer::Task(id) => id.to_string(),
        Answer::Workspace(id) => id.to_string(),
        Answer::Notice(id) => id.to_string(),
        Answer::Binding(id) => id.to_string(),
        Answer::WebhookSecret(set) => format!("secret {set}"),
        Answer::Dropped { dropped, left } => format!("dropped {dropped}, left {left}"),
    }
}

pub fn owed(owed: &Owed, at: Timestamp) -> String {
    let effect = format!("{:?}", owed.effect);
    if owed.not_before <= at { effect } else { format!("{effect} in {} ms", owed.not_before.since_ms(at)) }
}

pub fn posture(posture: &Posture) -> String {
    let evidence: Vec<u64> = posture.evidence.iter().map(|seq| seq.0).collect();
    let tasks = if posture.has_active_tasks { ", tasks active" } else { "" };
    let weak = if posture.has_weak_external_wait { ", a weak wait" } else { "" };
    let timers =
        if posture.timers_pending > 0 { format!(", timers {}", posture.timers_pending) } else { String::new() };
    format!("{} {} {evidence:?}{tasks}{weak}{timers}", posture.kind.name(), posture.reason)
}

/// The round and the place of the call that is next.
pub fn next_call(world: &World) -> (u32, u32) {
    match world.turn().map(|turn| &turn.phase) {
        Some(Phase::Calls(calls)) => (calls.round, calls.done),
        _ => (0, 0),
    }
}

fn about(message: &Option<impl Display>) -> String {
    message.as_ref().map_or_else(|| "nothing".into(), ToString::to_string)
}

/// The text's first line, cut to what a story can bear.
fn line(content: &Content) -> String {
    let text = content.excerpt().lines().next().unwrap_or_default();
    holon::words::content::excerpt(text, 80).to_owned()
}
