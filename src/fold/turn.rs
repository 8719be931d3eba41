//! The turn plane: a turn as a state machine (architecture 9).
//!
//! | from            | event                       | to              |
//! |-----------------|-----------------------------|-----------------|
//! | none            | Started                     | round owed      |
//! | round owed      | RoundRequested              | round requested |
//! | finished        | RoundRequested              | round requested: a prompt came meanwhile |
//! | round requested | RoundAttempted              | round requested |
//! | round requested | RoundAttemptFailed          | round requested, to be tried again or given up |
//! | round requested | Entry Assistant with calls  | calls           |
//! | round requested | Entry Assistant, no calls   | finished        |
//! | calls           | CallStarted                 | calls           |
//! | calls           | Entry ToolResult            | calls; after the last: round owed, or finished if the turn yields |
//! | any             | Entry Incoming, Interjection, Aborted | same  |
//! | any             | Terminal, its message settled | none          |
//!
//! **Invariant:** a round keeps the beginning of the prompt before it; only a recap takes the place of earlier rounds.

use super::queue::Queued;
use super::{Illegal, Place};
use crate::events::call::{Call, CallResult};
use crate::events::memory::MemoryEvent;
use crate::events::operator::{BriefKind, OperatorEvent, ReplyRoute};
use crate::events::queue::{DerivedFrom, MessageKind, MessageSettled};
use crate::events::task::Caller;
use crate::events::turn::{
    AfterAttempt, AttemptError, AttemptErrorKind, CallStarted, Entry, RoundAttemptFailed, RoundAttempted,
    RoundRequested, Section, SectionKind, TurnEvent, TurnOutcome, TurnPolicy, TurnStarted, TurnTerminal, UsageTotal,
};
use crate::events::work::WorkEvent;
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{Boot, EventSeq, MessageId, RunId, TaskId, WorkId};
use crate::words::limit::{DIGEST_LINE_BYTES_MAX, RECENT_KEPT_MAX, REPLY_ROUTES_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The id given last.
    pub last: RunId,
    /// Model rounds recorded in all turns.
    pub rounds_total: u64,
    pub usage_total: UsageTotal,
    pub current: Option<Box<Turn>>,
    /// Turns that the next prompt repeats, the oldest first.
    pub recent: VecDeque<RecentTurn>,
    pub last_ended: Option<EndedTurn>,
}

/// The turn that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub run: RunId,
    pub started: EventSeq,
    pub started_at: Timestamp,
    pub policy: TurnPolicy,
    pub message: MessageId,
    pub queued: Queued,
    pub message_settled: bool,
    /// The round requested last; rounds count from 1.
    pub round: u32,
    pub usage: UsageTotal,
    /// The prompt of the round requested last.
    pub sections: Vec<Section>,
    /// What was recorded since, and joins the next prompt.
    pub fresh: Vec<Fresh>,
    pub phase: Phase,
    /// When the step under way began.
    pub step_at: Timestamp,
    /// The brief that answers the message.
    pub answered: Option<EventSeq>,
    /// The work in focus when it began, or that it has taken up since.
    pub work: Option<WorkId>,
    /// What that brief says.
    pub answer: Option<Content>,
    /// The report of the work that it completed last: its answer, if it says nothing else.
    pub report: Option<(WorkId, Content)>,
    /// Tool calls made so far.
    pub calls_done: u32,
    /// Where its answer goes back to: to all whose prompts it has taken in.
    pub reply_routes: Vec<ReplyRoute>,
    /// What all that it makes rests on: the least trusted of the messages that it has taken in.
    pub derived: DerivedFrom,
}

/// A recorded step that no prompt holds yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fresh {
    Assistant(Section),
    /// `bytes`: of what it shows, about.
    ToolResult {
        seq: EventSeq,
        call_id: String,
        tool: String,
        bytes: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    RoundOwed,
    RoundRequested(Requested),
    Calls(Calls),
    Finished { text: Content },
}

/// A model round under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// The event that holds the request.
    pub seq: EventSeq,
    /// The event since which it stands as it does.
    pub since: EventSeq,
    /// Of the tools' schemas.
    pub tools: Hash,
    pub interjections: Vec<MessageId>,
    /// The model's place in the policy.
    pub model: u32,
    /// Attempts with that model that failed.
    pub failures: u32,
    pub attempt: Option<Attempt>,
    /// Boots that began an attempt since the last result.
    pub boots: u32,
    /// Before this time no attempt is begun.
    pub not_before: Timestamp,
    /// Set when no further attempt is to be made.
    pub given_up: Option<AttemptError>,
}

/// A model call that has no result yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub seq: EventSeq,
    pub boot: Boot,
    pub model: u32,
}

/// The tool calls of the last round, done in the order given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    pub round: u32,
    pub calls: Vec<Call>,
    /// Calls that have their result.
    pub done: u32,
    /// The command that the next one waits for.
    pub task: Option<TaskId>,
    /// The attempt of the next one at the outside.
    pub attempt: Option<CallAttempt>,
    /// Boots that began it.
    pub boots: u32,
    pub text: Content,
    /// Whether the turn ends after these calls.
    pub yields: bool,
}

/// An attempt of a tool call that has no result yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallAttempt {
    pub seq: EventSeq,
    pub boot: Boot,
}

/// A turn of the past as the next prompt repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentTurn {
    pub run: RunId,
    pub started: EventSeq,
    /// What began it.
    pub kind: MessageKind,
    /// Whether an episode holds it, so that it may leave.
    pub held: bool,
    pub work: Option<WorkId>,
    pub outcome: TurnOutcome,
    /// Tool calls that it made.
    pub calls_done: u32,
    /// The beginning of the answer, for the digest of an episode.
    pub answer_line: String,
    pub message_seq: EventSeq,
    pub message: Section,
    /// The brief that answered it.
    pub answer: Option<EventSeq>,
}

/// How the last turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTurn {
    pub run: RunId,
    pub message: MessageId,
    /// The event that enqueued the message.
    pub message_seq: EventSeq,
    pub outcome: TurnOutcome,
    pub reason: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub ended: EventSeq,
    pub usage: UsageTotal,
    /// What its brief says.
    pub answer: Option<Content>,
    pub work: Option<WorkId>,
    /// What that rests on.
    pub derived: DerivedFrom,
}

/// The first line that is not blank, within the bound of a digest.
fn first_line(text: &Content) -> String {
    let line = text.excerpt().lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    excerpt(line, DIGEST_LINE_BYTES_MAX).to_owned()
}

/// Whether an entry is something done, and not only said, looked at or put off.
pub(super) fn is_progress(entry: &Entry) -> bool {
    match entry {
        Entry::ToolResult { result, .. } => !matches!(
            result,
            CallResult::Slept | CallResult::Waiting { .. } | CallResult::Viewed(_) | CallResult::Refused(_)
        ),
        Entry::Incoming { .. } | Entry::Assistant { .. } | Entry::Interjection { .. } => false,
    }
}

impl Calls {
    /// The first call that has no result.
    pub fn next(&self) -> Option<&Call> {
        self.calls.get(self.done as usize)
    }
}

impl Turns {
    /// The calls under way, with their turn.
    pub fn calls(&self) -> Option<(&Turn, &Calls)> {
        let turn = self.current.as_deref()?;
        match &turn.phase {
            Phase::Calls(calls) => Some((turn, calls)),
            Phase::RoundOwed | Phase::RoundRequested(_) | Phase::Finished { .. } => None,
        }
    }

    /// What the words of the turn that runs, or of the last one, rest on.
    pub fn derived(&self) -> Option<&DerivedFrom> {
        let ended = self.last_ended.as_ref().map(|turn| &turn.derived);
        self.current.as_ref().map(|turn| &turn.derived).or(ended)
    }

    pub fn is_spent_on(&self, message: MessageId) -> bool {
        self.current.as_ref().is_some_and(|turn| turn.message == message)
    }

    pub(super) fn start(&mut self, event: &TurnStarted, queued: Queued, place: Place) -> Result<(), Illegal> {
        if self.current.is_some() {
            return Err("a turn runs");
        }
        if event.run != self.last.next() {
            return Err("run ids go up by one");
        }
        self.last = event.run;
        let reply_routes = queued.reply_route.clone().into_iter().collect();
        let derived = DerivedFrom { trust: queued.trust, agent: None, message: Some(event.message) };
        self.current = Some(Box::new(Turn {
            run: event.run,
            started: place.seq,
            started_at: place.at,
            policy: event.policy.clone(),
            message: event.message,
            queued,
            message_settled: false,
            round: 0,
            usage: UsageTotal::default(),
            sections: Vec::new(),
            fresh: Vec::new(),
            phase: Phase::RoundOwed,
            step_at: place.at,
            answered: None,
            answer: None,
            work: event.work,
            report: None,
            calls_done: 0,
            reply_routes,
            derived,
        }));
        Ok(())
    }

    pub(super) fn evolve(&mut self, event: &TurnEvent, place: Place) -> Result<(), Illegal> {
        match event {
            TurnEvent::Started(_) => Err("a turn starts with its message"),
            TurnEvent::RoundRequested(event) => self.running(event.run)?.request(event, place),
            TurnEvent::RoundAttempted(event) => self.running(event.run)?.attempt(event, place),
            TurnEvent::RoundAttemptFailed(event) => self.running(event.run)?.attempt_failed(event, place),
            TurnEvent::CallStarted(event) => self.running(event.run)?.start_call(event, place),
            TurnEvent::Entry(event) => self.enter(event.run, &event.entry, place),
            TurnEvent::Aborted(event) => self.running(event.run).map(|_| ()),
            TurnEvent::Terminal(event) => self.end(event, place),
        }
    }

    pub(super) fn settle_message(&mut self, event: &MessageSettled) -> Result<(), Illegal> {
        let turn = self.current.as_mut().ok_or("no turn runs")?;
        if turn.message_settled || turn.message != event.message {
            return Err("the message is settled once");
        }
        turn.message_settled = true;
        Ok(())
    }

    /// Notes the brief that answers the turn's message.
    pub(super) fn told(&mut self, event: &OperatorEvent, place: Place) {
        if let OperatorEvent::BriefCreated(brief) = event
            && let Some(turn) = &mut self.current
            && brief.kind != BriefKind::Ack
            && brief.run == Some(turn.run)
        {
            turn.answered = Some(place.seq);
            turn.answer = Some(brief.text.clone());
        }
    }

    /// The turn goes with the work that it takes up, and keeps the report of what it completes.
    pub(super) fn worked(&mut self, event: &WorkEvent) {
        let Some(turn) = &mut self.current else { return };
        match event {
            WorkEvent::Picked(event) => turn.work = Some(event.work),
            WorkEvent::Completed(event) => turn.report = Some((event.work, event.report.clone())),
            WorkEvent::Created(_)
            | WorkEvent::Updated(_)
            | WorkEvent::Continued(_)
            | WorkEvent::Held(_)
            | WorkEvent::Rechecked(_) => {}
        }
    }

    /// The turn took in a prompt: its answer goes back to where that came from, too. Beyond the bound the route that
    /// was heard of longest ago makes room.
    pub(super) fn answers_to(&mut self, route: Option<ReplyRoute>) {
        let (Some(turn), Some(route)) = (&mut self.current, route) else { return };
        let routes = &mut turn.reply_routes;
        let same = |other: &ReplyRoute| other.binding == route.binding && other.route_id == route.route_id;
        routes.retain(|other| !same(other));
        if routes.len() >= REPLY_ROUTES_MAX {
            routes.remove(0);
        }
        routes.push(route);
    }

    /// The turn is to see these prompts as well: what it makes from here on rests on them, too.
    pub(super) fn takes_in(&mut self, message: MessageId, queued: &Queued) {
        if let Some(turn) = &mut self.current {
            let joined = DerivedFrom { trust: queued.trust, agent: None, message: Some(message) };
            turn.derived = turn.derived.clone().least(joined);
        }
    }

    /// A turn that an episode holds may leave the prompt, when others come.
    pub(super) fn remembered(&mut self, event: &MemoryEvent) {
        if let MemoryEvent::EpisodeFinalized(episode) = event {
            self.recent.iter_mut().filter(|turn| turn.run <= episode.last).for_each(|turn| turn.held = true);
        }
    }

    /// A command was requested for the call that is next.
    pub(super) fn open_call(&mut self, caller: &Caller, task: TaskId) -> Result<(), Illegal> {
        let calls = self.running(caller.run)?.calls(caller.round, caller.call)?;
        if calls.task.is_some() {
            return Err("the call has its command");
        }
        calls.task = Some(task);
        Ok(())
    }

    /// Counts what a child cost.
    pub(super) fn spent_by_child(&mut self, usage: &UsageTotal) {
        self.usage_total.include(usage);
    }

    fn running(&mut self, run: RunId) -> Result<&mut Turn, Illegal> {
        self.current.as_deref_mut().filter(|turn| turn.run == run).ok_or("the run is not the one that runs")
    }

    fn enter(&mut self, run: RunId, entry: &Entry, place: Place) -> Result<(), Illegal> {
        if let Entry::Assistant { usage, .. } = entry {
            self.rounds_total += 1;
            self.usage_total.add(usage);
        }
        let turn = self.running(run)?;
        turn.step_at = place.at;
        match entry {
            Entry::Incoming { .. } | Entry::Interjection { .. } => Ok(()),
            Entry::Assistant { .. } => turn.said(entry),
            Entry::ToolResult { round, call, result } => turn.call_done(*round, *call, result, place),
        }
    }

    fn end(&mut self, event: &TurnTerminal, place: Place) -> Result<(), Illegal> {
        self.running(event.run)?;
        let Some(turn) = self.current.take() else { return Err("no turn runs") };
        if !turn.message_settled {
            return Err("the turn's message is not settled");
        }
        if let Some(message) = turn.sections.iter().find(|section| section.kind == SectionKind::Message) {
            while self.recent.len() >= RECENT_KEPT_MAX && self.recent.front().is_some_and(|turn| turn.held) {
                self.recent.pop_front();
            }
            self.recent.push_back(RecentTurn {
                run: turn.run,
                started: turn.started,
                kind: turn.queued.kind,
                held: false,
                work: turn.work,
                outcome: event.outcome,
                calls_done: turn.calls_done,
                answer_line: turn.answer.as_ref().map(first_line).unwrap_or_default(),
                message_seq: turn.queued.seq,
                message: message.clone(),
                answer: turn.answered,
            });
        }
        self.last_ended = Some(EndedTurn {
            run: turn.run,
            message: turn.message,
            message_seq: turn.queued.seq,
            outcome: event.outcome,
            reason: event.reason.clone(),
            started_at: turn.started_at,
            ended_at: place.at,
            ended: place.seq,
            usage: turn.usage,
            answer: turn.answer,
            work: turn.work,
            derived: turn.derived,
        });
        Ok(())
    }
}

impl Turn {
    fn request(&mut self, event: &RoundRequested, place: Place) -> Result<(), Illegal> {
        if !matches!(self.phase, Phase::RoundOwed | Phase::Finished { .. }) {
            return Err("no round is owed");
        }
        if event.round != self.round + 1 {
            return Err("rounds go up by one");
        }
        if event.keeps as usize > self.sections.len() {
            return Err("it keeps sections that are not there");
        }
        self.round = event.round;
        self.sections.truncate(event.keeps as usize);
        self.sections.extend(event.added.iter().cloned());
        self.fresh.clear();
        self.phase = Phase::RoundRequested(Requested {
            seq: place.seq,
            since: place.seq,
            tools: event.tools,
            interjections: event.interjections.clone(),
            model: 0,
            failures: 0,
            attempt: None,
            boots: 0,
            not_before: place.at,
            given_up: None,
        });
        Ok(())
    }

    fn attempt(&mut self, event: &RoundAttempted, place: Place) -> Result<(), Illegal> {
        let requested = self.requested()?;
        if requested.attempt.is_some_and(|attempt| attempt.boot == event.boot) {
            return Err("an attempt of this boot is under way");
        }
        requested.boots += 1;
        requested.model = event.model;
        requested.attempt = Some(Attempt { seq: place.seq, boot: event.boot, model: event.model });
        Ok(())
    }

    fn attempt_failed(&mut self, event: &RoundAttemptFailed, place: Place) -> Result<(), Illegal> {
        let requested = self.requested()?;
        if requested.attempt.is_none_or(|attempt| attempt.seq != event.attempt) {
            return Err("the attempt was replaced");
        }
        requested.attempt = None;
        requested.boots = 0;
        requested.since = place.seq;
        match &event.then {
            AfterAttempt::Again { model, not_before } => {
                let counts = event.error.kind != AttemptErrorKind::Interrupted;
                requested.failures = if *model == requested.model { requested.failures + u32::from(counts) } else { 0 };
                requested.model = *model;
                requested.not_before = *not_before;
            }
            AfterAttempt::GiveUp => requested.given_up = Some(event.error.clone()),
        }
        Ok(())
    }

    fn said(&mut self, entry: &Entry) -> Result<(), Illegal> {
        let Entry::Assistant { round, attempt, text, answer, calls, usage, .. } = entry else {
            return Err("not a model's entry");
        };
        let current = self.round;
        let requested = self.requested()?;
        if *round != current || requested.attempt.is_none_or(|begun| begun.seq != *attempt) {
            return Err("the attempt was replaced");
        }
        self.usage.add(usage);
        self.fresh.push(Fresh::Assistant(answer.clone()));
        self.phase = if calls.is_empty() {
            Phase::Finished { text: text.clone() }
        } else {
            let (calls, text) = (calls.clone(), text.clone());
            let yields = false;
            Phase::Calls(Calls { round: *round, calls, done: 0, task: None, attempt: None, boots: 0, text, yields })
        };
        Ok(())
    }

    fn start_call(&mut self, event: &CallStarted, place: Place) -> Result<(), Illegal> {
        let calls = self.calls(event.round, event.call)?;
        if calls.task.is_some() || calls.attempt.is_some_and(|attempt| attempt.boot == event.boot) {
            return Err("the call is under way");
        }
        calls.attempt = Some(CallAttempt { seq: place.seq, boot: event.boot });
        calls.boots += 1;
        Ok(())
    }

    fn call_done(&mut self, round: u32, call: u32, result: &CallResult, place: Place) -> Result<(), Illegal> {
        let calls = self.calls(round, call)?;
        let Some(asked) = calls.next() else { return Err("the call has its result") };
        let bytes = result.shown().map_or(0, |shown| shown.text.bytes());
        let fresh = Fresh::ToolResult { seq: place.seq, call_id: asked.id.clone(), tool: asked.tool.clone(), bytes };
        calls.done += 1;
        calls.task = None;
        calls.attempt = None;
        calls.boots = 0;
        calls.yields |= result.yields();
        let after = match (calls.next(), calls.yields) {
            (Some(_), _) => None,
            (None, true) => Some(Phase::Finished { text: calls.text.clone() }),
            (None, false) => Some(Phase::RoundOwed),
        };
        self.fresh.push(fresh);
        self.calls_done += 1;
        if let Some(phase) = after {
            self.phase = phase;
        }
        Ok(())
    }

    fn requested(&mut self) -> Result<&mut Requested, Illegal> {
        match &mut self.phase {
            Phase::RoundRequested(requested) => Ok(requested),
            Phase::RoundOwed | Phase::Calls(_) | Phase::Finished { .. } => Err("no round is requested"),
        }
    }

    /// The calls under way, if `call` of `round` is the one that is next.
    fn calls(&mut self, round: u32, call: u32) -> Result<&mut Calls, Illegal> {
        match &mut self.phase {
            Phase::Calls(calls) if calls.round == round && calls.done == call => Ok(calls),
            Phase::Calls(_) => Err("calls are done in their order"),
            Phase::RoundOwed | Phase::RoundRequested(_) | Phase::Finished { .. } => Err("no calls are under way"),
        }
    }
}
