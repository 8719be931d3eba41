//! The waiting plane: waits, and wakes. Timers and triggers have files of their own.
//!
//! A source that fires means "look again": it triggers waits and brings a message that carries their work. It does not
//! decide that what was waited for is so (semantics 6).

use super::call::Called;
use super::queue::{OwnMessage, Room, admits, has_room, not_private, over};
use super::trigger::{self, NewCallback};
use super::{Decision, Rejection, timer, webhook};
use crate::events::Event;
use crate::events::agent::{Answer, WakeDisposition};
use crate::events::call::{CallResult, WaitFor};
use crate::events::queue::{DerivedFrom, Lane, MessageKind, Origin, Subject};
use crate::events::waiting::{
    DeliveryMode, Recoverability, WaitCancelled, WaitConsumed, WaitCreated, WaitExpired, WaitOwner, WaitSuperseded,
    WaitTrigger, WaitTriggered, WakeOn, WakeRequested,
};
use crate::fold::AgentState;
use crate::fold::queue::wake_mark;
use crate::fold::turn::Turn;
use crate::fold::waiting::Wait;
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{MessageId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId};
use crate::words::limit::{
    EXCERPT_BYTES_MAX, NOTE_BYTES_MAX, RECHECK_MS_DEFAULT, WAIT_MS_MAX, WAIT_MS_MIN, WAITS_MAX, WAKE_REASONS_MAX,
    WAKE_REASONS_RESERVED, WAKE_TEXT_BYTES_MAX,
};
use crate::words::prompt_text::PromptText;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingCommand {
    Wake(NewWake),
    CreateTimer {
        duration_ms: u64,
        interval_ms: Option<u64>,
        summary: Option<String>,
    },
    CancelTimer {
        timer: TimerId,
    },
    /// A timer's time has come.
    FireTimer {
        timer: TimerId,
    },
    CancelWait {
        wait: WaitId,
    },
    /// A wait's time has come.
    EndWait {
        wait: WaitId,
    },
    /// The token was drawn by the runtime; it is shown to the caller and kept nowhere.
    CreateTrigger {
        mode: DeliveryMode,
        label: String,
        work: Option<WorkId>,
        token_hash: Hash,
    },
    RevokeTrigger {
        trigger: TriggerId,
    },
    /// Somebody used a capability.
    Callback(NewCallback),
    /// The runtime keeps the secret, and with it the one before for a while if senders are to change over.
    SetWebhookSecret {
        /// Its name.
        secret: String,
        keeps_previous: bool,
    },
    ClearWebhookSecret,
}

/// What WaitFor asks for.
pub(super) struct NewWait {
    pub wake: WaitFor,
    pub reason: String,
    pub work: Option<WorkId>,
    pub recheck_after_ms: Option<u64>,
    pub no_fallback_reason: Option<String>,
}

/// A request for the agent's attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWake {
    pub reason: String,
    pub source: Option<String>,
    pub correlation_id: Option<String>,
    pub causation_id: Option<String>,
    /// What came along, from a capability's holder.
    pub body: Option<Content>,
    /// What it rests on; none when the operator asks for it.
    pub derived_from: Option<DerivedFrom>,
}

pub(super) fn decide(state: &AgentState, command: &WaitingCommand, at: Timestamp) -> Result<Decision, Rejection> {
    match command {
        WaitingCommand::Wake(wake) => {
            not_private(state)?;
            wake_up(state, wake, None, Room::Whole)
        }
        WaitingCommand::CreateTimer { duration_ms, interval_ms, summary } => {
            admits(state)?;
            let (events, timer) = timer::set(state, *duration_ms, *interval_ms, summary.as_deref(), None)?;
            Ok(Decision::answering(events, Answer::Timer(timer)))
        }
        WaitingCommand::CancelTimer { timer } => {
            Ok(Decision::answering(timer::cancel(state, *timer, "operator")?, Answer::Timer(*timer)))
        }
        WaitingCommand::FireTimer { timer } => timer::fire(state, *timer, at).map(Decision::of),
        WaitingCommand::CancelWait { wait } => {
            let events = cancel(state, *wait, "operator")?;
            Ok(Decision::answering(events, Answer::Wait(*wait)))
        }
        WaitingCommand::EndWait { wait } => end(state, *wait, at).map(Decision::of),
        WaitingCommand::CreateTrigger { mode, label, work, token_hash } => {
            admits(state)?;
            let (event, trigger) = trigger::create(state, *mode, label, *work, *token_hash)?;
            Ok(Decision::answering(vec![event], Answer::Trigger(trigger)))
        }
        WaitingCommand::RevokeTrigger { trigger } => {
            let events = trigger::revoke(state, *trigger, "operator")?;
            Ok(Decision::answering(events, Answer::Trigger(*trigger)))
        }
        WaitingCommand::Callback(callback) => trigger::deliver(state, callback),
        WaitingCommand::SetWebhookSecret { secret, keeps_previous } => webhook::set(state, secret, *keeps_previous),
        WaitingCommand::ClearWebhookSecret => Ok(Decision::of(webhook::clear(state, "operator"))),
    }
}

/// Something came that may end waits.
pub(super) enum News {
    Operator,
    /// From outside; for the work that it is bound to, or for whoever waits.
    External(Option<WorkId>),
    Task(TaskId),
}

/// The active waits that `news` ends.
pub(super) fn ended_by<'a>(state: &'a AgentState, news: &News) -> Vec<(WaitId, &'a Wait)> {
    let ends = |wait: &Wait| match (news, &wait.wake) {
        (News::Operator, WakeOn::OperatorInput) => true,
        (News::External(work), WakeOn::External { .. }) => work.is_none() || wait.work() == *work,
        (News::Task(task), WakeOn::TaskResult(awaited)) => task == awaited,
        (News::Operator | News::External(_) | News::Task(_), _) => false,
    };
    state.waiting.active().filter(|(_, wait)| ends(wait)).collect()
}

/// The facts that end waits.
pub(super) fn triggered(waits: &[(WaitId, &Wait)], by: &WaitTrigger) -> Vec<Event> {
    waits.iter().map(|(wait, _)| WaitTriggered { wait: *wait, by: by.clone() }.into()).collect()
}

/// What the message about waits is about: them, and their work.
pub(super) fn subjects(waits: &[(WaitId, &Wait)]) -> Vec<Subject> {
    let work = waits.iter().filter_map(|(_, wait)| wait.work()).map(Subject::Work);
    waits.iter().map(|(wait, _)| Subject::Wait(*wait)).chain(work).collect()
}

/// Records a wait and ends the turn after the round.
pub(super) fn wait_for(state: &AgentState, turn: &Turn, new: &NewWait) -> Called {
    check(state, new)?;
    let owner = owner(state, turn, new.work)?;
    let wait = state.waiting.last_wait.next();
    let mut events = Vec::new();
    if let Some((before, _)) = state.waiting.active_of(&owner) {
        events.push(WaitSuperseded { wait: before, by: wait }.into());
    }
    let (recheck_after_ms, recoverability) = fallback(new);
    let wake = match &new.wake {
        WaitFor::OperatorInput => WakeOn::OperatorInput,
        WaitFor::TaskResult(task) => WakeOn::TaskResult(*task),
        WaitFor::External { resource } => WakeOn::External { resource: resource.clone() },
        WaitFor::Timer { after_ms } => WakeOn::Timer { after_ms: *after_ms },
    };
    let reason = new.reason.clone();
    let derived_from = Some(turn.derived.clone());
    let created =
        WaitCreated { wait, owner: owner.clone(), wake, reason, recheck_after_ms, recoverability, derived_from };
    events.push(created.into());
    if let WaitFor::TaskResult(task) = new.wake {
        events.extend(ended_already(state, turn, wait, task, &owner));
    }
    Ok((events, CallResult::Waiting { wait }))
}

fn check(state: &AgentState, new: &NewWait) -> Result<(), Rejection> {
    let invalid = |field, reason: String| Err(Rejection::Invalid { field, reason });
    if new.reason.trim().is_empty() {
        return invalid("reason", "must not be empty".into());
    }
    let resource = match &new.wake {
        WaitFor::External { resource } => resource.as_ref(),
        WaitFor::OperatorInput | WaitFor::TaskResult(_) | WaitFor::Timer { .. } => None,
    };
    let texts = [
        ("reason", Some(&new.reason)),
        ("resource", resource),
        ("no_fallback_reason", new.no_fallback_reason.as_ref()),
    ];
    if let Some((field, _)) = texts.iter().find(|(_, text)| text.is_some_and(|text| text.len() > NOTE_BYTES_MAX)) {
        return Err(over(field, NOTE_BYTES_MAX));
    }
    let after_ms = match new.wake {
        WaitFor::Timer { after_ms } => Some(after_ms),
        WaitFor::OperatorInput | WaitFor::TaskResult(_) | WaitFor::External { .. } => None,
    };
    let times = [("after_ms", after_ms), ("recheck_after_ms", new.recheck_after_ms)];
    let bounds = WAIT_MS_MIN..=WAIT_MS_MAX;
    if let Some((field, _)) = times.iter().find(|(_, time)| time.is_some_and(|time| !bounds.contains(&time))) {
        return invalid(field, format!("is not between {WAIT_MS_MIN} and {WAIT_MS_MAX}"));
    }
    if let WaitFor::TaskResult(task) = new.wake
        && (task.0 == 0 || task > state.tasks.last)
    {
        return invalid("resource", format!("names {task}, which there is not"));
    }
    if state.waiting.waits.len() >= WAITS_MAX {
        return Err(Rejection::TooMany { what: "waits", max: WAITS_MAX });
    }
    Ok(())
}

/// The named item, else the turn's, else the agent itself.
fn owner(state: &AgentState, turn: &Turn, named: Option<WorkId>) -> Result<WaitOwner, Rejection> {
    let is_open = |work: &WorkId| state.works.open.contains_key(work);
    match named {
        Some(work) if is_open(&work) => Ok(WaitOwner::Work(work)),
        Some(work) => {
            let reason = format!("names {work}, which is not open");
            Err(Rejection::Invalid { field: "work_item_id", reason })
        }
        None => Ok(turn.work.filter(is_open).map_or(WaitOwner::Agent, WaitOwner::Work)),
    }
}

/// When the agent looks by itself, and how far an external wait may be relied on.
fn fallback(new: &NewWait) -> (Option<u64>, Option<Recoverability>) {
    let asked = new.recheck_after_ms;
    match (&new.wake, asked, &new.no_fallback_reason) {
        (WaitFor::Timer { .. }, ..) => (None, None),
        (WaitFor::OperatorInput | WaitFor::TaskResult(_), asked, _) => (asked, None),
        (WaitFor::External { .. }, Some(after_ms), _) => (Some(after_ms), Some(Recoverability::Recoverable)),
        (WaitFor::External { .. }, None, Some(why)) => (None, Some(Recoverability::ExplicitNoFallback(why.clone()))),
        (WaitFor::External { .. }, None, None) => (Some(RECHECK_MS_DEFAULT), Some(Recoverability::Weak)),
    }
}

/// Waiting for a task that has ended triggers at once. The message that tells of the end may still wait.
fn ended_already(state: &AgentState, turn: &Turn, wait: WaitId, task: TaskId, owner: &WaitOwner) -> Vec<Event> {
    if state.tasks.open.contains_key(&task) {
        return Vec::new();
    }
    let mut events = vec![WaitTriggered { wait, by: WaitTrigger::Task(task) }.into()];
    if state.queue.result_of(task).is_none() {
        let mut about = vec![Subject::Wait(wait)];
        about.extend(work_of(owner).map(Subject::Work));
        let text = PromptText::new().own(task).own(" had ended before it was waited for.");
        events.push(tick(state, text, about, &turn.derived).1);
    }
    events
}

fn work_of(owner: &WaitOwner) -> Option<WorkId> {
    match owner {
        WaitOwner::Agent => None,
        WaitOwner::Work(work) => Some(*work),
    }
}

fn tick(state: &AgentState, text: PromptText, about: Vec<Subject>, derived: &DerivedFrom) -> (MessageId, Event) {
    let origin = Origin::System { subsystem: "wait".into() };
    let tick = OwnMessage::new(MessageKind::SystemTick, origin, text, derived.clone());
    tick.in_lane(Lane::Next).about(about).enqueued(state)
}

/// The triggered waits that a turn takes up: those that its message names, of its work, of the agent.
pub(super) fn consume(state: &AgentState, run: RunId, about: &[Subject], work: Option<WorkId>) -> Vec<Event> {
    let takes = |id: WaitId, wait: &Wait| {
        about.contains(&Subject::Wait(id)) || wait.work().is_none() || (work.is_some() && wait.work() == work)
    };
    let triggered = state.waiting.waits.iter().filter(|(id, wait)| !wait.is_active() && takes(**id, wait));
    triggered.map(|(wait, _)| WaitConsumed { wait: *wait, run }.into()).collect()
}

fn cancel(state: &AgentState, wait: WaitId, reason: &str) -> Result<Vec<Event>, Rejection> {
    let what = "wait";
    match state.waiting.waits.get(&wait) {
        Some(_) => Ok(vec![WaitCancelled { wait, reason: reason.to_owned() }.into()]),
        None if wait.0 > 0 && wait <= state.waiting.last_wait => Err(Rejection::Ended { what, id: wait.to_string() }),
        None => Err(Rejection::Unknown { what, id: wait.to_string() }),
    }
}

/// A timer's wait has come; any other is over without news, and the agent looks by itself.
fn end(state: &AgentState, id: WaitId, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    admits(state)?;
    let wait = state.waiting.waits.get(&id).filter(|wait| wait.is_active() && wait.due.is_some_and(|due| due <= at));
    let wait = wait.ok_or(Rejection::NothingToDo)?;
    let reason = excerpt(&wait.reason, EXCERPT_BYTES_MAX);
    let about = subjects(&[(id, wait)]);
    Ok(match wait.wake {
        WakeOn::Timer { .. } => {
            let tick = tick(state, PromptText::new().own("The time has come:").quote(reason), about, &wait.derived).1;
            vec![WaitTriggered { wait: id, by: WaitTrigger::Due }.into(), tick]
        }
        WakeOn::OperatorInput | WakeOn::TaskResult(_) | WakeOn::External { .. } => {
            let text = PromptText::new().own("Nothing came yet for ").own(id).own(", look by yourself:");
            vec![WaitExpired { wait: id }.into(), tick(state, text.quote(reason), about, &wait.derived).1]
        }
    })
}

/// Wakes the agent, and ends external waits: those of the work it is bound to, or all.
pub(super) fn wake_up(
    state: &AgentState,
    wake: &NewWake,
    work: Option<WorkId>,
    room: Room,
) -> Result<Decision, Rejection> {
    admits(state)?;
    check_bounds(wake)?;
    if let Some(body) = &wake.body {
        has_room(state, room, body.bytes())?;
    }
    let ended = ended_by(state, &News::External(work));
    let Some((message, waiting)) = state.queue.wake_tick() else { return Ok(woken(state, wake, work, &ended)) };
    let news = triggered(&ended, &WaitTrigger::Message(message));
    let mark = wake_mark(&wake.reason, wake.source.as_deref(), wake.body.as_ref());
    if waiting.wakes.iter().any(|named| named.mark == mark) {
        return Ok(told(wake, WakeDisposition::Ignored, message, news));
    }
    let reasons_max = WAKE_REASONS_MAX - if room == Room::Shared { WAKE_REASONS_RESERVED } else { 0 };
    if waiting.wakes.len() >= reasons_max {
        return Err(Rejection::QueueFull { waiting: waiting.wakes.len() });
    }
    Ok(told(wake, WakeDisposition::Coalesced, message, news))
}

fn check_bounds(wake: &NewWake) -> Result<(), Rejection> {
    if wake.reason.trim().is_empty() {
        return Err(Rejection::Invalid { field: "reason", reason: "must not be empty".into() });
    }
    let texts = [
        ("reason", Some(&wake.reason)),
        ("source", wake.source.as_ref()),
        ("correlation_id", wake.correlation_id.as_ref()),
        ("causation_id", wake.causation_id.as_ref()),
    ];
    match texts.iter().find(|(_, text)| text.is_some_and(|text| text.len() > WAKE_TEXT_BYTES_MAX)) {
        Some((field, _)) => Err(over(field, WAKE_TEXT_BYTES_MAX)),
        None => Ok(()),
    }
}

/// A tick of its own; later wakes join it for as long as it waits.
fn woken(state: &AgentState, wake: &NewWake, work: Option<WorkId>, ended: &[(WaitId, &Wait)]) -> Decision {
    let origin = Origin::System { subsystem: "wake".into() };
    let body = PromptText::new().own("The agent was woken.");
    let bound = work.filter(|work| state.works.open.contains_key(work)).map(Subject::Work);
    let about = bound.into_iter().chain(subjects(ended));
    let derived = DerivedFrom::or_operator(wake.derived_from.as_ref());
    let tick = OwnMessage::new(MessageKind::SystemTick, origin, body, derived);
    let (message, tick) = tick.about(about).enqueued(state);
    let mut events = vec![tick];
    events.extend(triggered(ended, &WaitTrigger::Message(message)));
    told(wake, WakeDisposition::Woken, message, events)
}

fn told(wake: &NewWake, disposition: WakeDisposition, message: MessageId, mut events: Vec<Event>) -> Decision {
    // A wake that says nothing new leaves no event: repeating it cannot grow the ledger.
    if disposition != WakeDisposition::Ignored {
        let event = WakeRequested {
            reason: wake.reason.clone(),
            source: wake.source.clone(),
            correlation_id: wake.correlation_id.clone(),
            causation_id: wake.causation_id.clone(),
            body: wake.body.clone(),
            disposition,
            message,
            derived_from: wake.derived_from.clone(),
        };
        events.push(event.into());
    }
    Decision::answering(events, Answer::Woken { disposition, message })
}
