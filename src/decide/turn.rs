//! The turn plane: beginning a turn, its rounds and their attempts, and its end.

use super::call::CallEnd;
use super::workspace::GuidanceFile;
use super::{Decision, Rejection, call, waiting, workspace};
use crate::events::Event;
use crate::events::call::Call;
use crate::events::operator::{BriefCreated, BriefKind};
use crate::events::queue::{MessageOutcome, MessageSettled, Subject};
use crate::events::turn::{
    AbortMode, AfterAttempt, AttemptError, AttemptErrorKind, CurrentRunAborted, Entry, RoundAttemptFailed,
    RoundAttempted, RoundRequested, Section, StopReason, TurnEntry, TurnOutcome, TurnPolicy, TurnStarted, TurnTerminal,
    Usage,
};
use crate::fold::AgentState;
use crate::fold::posture::{PostureKind, posture};
use crate::fold::queue::work_of;
use crate::fold::turn::{Phase, Requested, Turn};
use crate::words::content::{Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{Boot, EventSeq, MessageId, RunId};
use crate::words::limit::{BOOTS_PER_STEP_MAX, EXCERPT_BYTES_MAX, RETRY_MS_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnCommand {
    Start {
        policy: TurnPolicy,
        /// The guidance files, as they were read for the turn.
        guidance: Vec<GuidanceFile>,
    },
    /// The call that is next is about to be made at the outside.
    BeginCall {
        run: RunId,
        round: u32,
        call: u32,
        boot: Boot,
    },
    EndCall {
        run: RunId,
        attempt: EventSeq,
        end: CallEnd,
    },
    /// The prompt of the next round, built; the first attempt is begun with it.
    Request(NewRound),
    /// A new attempt at the requested round.
    Attempt {
        run: RunId,
        boot: Boot,
    },
    Record(NewAnswer),
    FailAttempt {
        run: RunId,
        attempt: EventSeq,
        error: AttemptError,
    },
    /// The prompt could not be built.
    Fail {
        run: RunId,
        round: u32,
        code: String,
        detail: String,
    },
}

/// A prompt, as it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRound {
    pub run: RunId,
    pub round: u32,
    pub boot: Boot,
    pub keeps: u32,
    pub added: Vec<Section>,
    pub tools: Hash,
    pub request: Hash,
    pub interjections: Vec<MessageId>,
}

/// What a model answered, its calls read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAnswer {
    pub run: RunId,
    pub attempt: EventSeq,
    pub text: Content,
    pub answer: Section,
    pub calls: Vec<Call>,
    pub stop: StopReason,
    pub usage: Usage,
}

pub(super) fn decide(state: &AgentState, command: &TurnCommand, at: Timestamp) -> Result<Decision, Rejection> {
    let events = match command {
        TurnCommand::Start { policy, guidance } => start(state, policy, guidance)?,
        TurnCommand::BeginCall { run, round, call, boot } => call::begin(state, *run, *round, *call, *boot)?,
        TurnCommand::EndCall { run, attempt, end } => return call::end(state, *run, *attempt, end),
        TurnCommand::Request(new) => request(state, new, at)?,
        TurnCommand::Attempt { run, boot } => attempt(state, *run, *boot, at)?,
        TurnCommand::Record(new) => record(state, new)?,
        TurnCommand::FailAttempt { run, attempt, error } => fail_attempt(state, *run, *attempt, error, at)?,
        TurnCommand::Fail { run, round, code, detail } => fail(state, *run, *round, code, detail)?,
    };
    Ok(Decision::of(events))
}

fn start(state: &AgentState, policy: &TurnPolicy, guidance: &[GuidanceFile]) -> Result<Vec<Event>, Rejection> {
    if posture(state).kind != PostureKind::HasQueuedInput {
        return Err(Rejection::NothingToDo);
    }
    let (message, queued) = state.queue.first().ok_or(Rejection::NothingToDo)?;
    let run = state.turns.last.next();
    // The work that the message is about comes into focus, if it is open; else what was in focus stays there.
    let work = work_of(&queued.about).into_iter().find(|work| state.works.open.contains_key(work));
    let work = work.or(state.works.focus);
    let mut events = workspace::guidance(state, guidance);
    events.push(TurnStarted { run, message, policy: policy.clone(), work }.into());
    events.push(TurnEntry { run, entry: Entry::Incoming { message } }.into());
    events.extend(waiting::consume(state, run, &queued.about, work));
    if queued.from_operator {
        let text = format!("{run} has taken up {message}.");
        events.push(brief(state, 0, BriefKind::Ack, run, message, Content::from(text.as_str())));
    }
    Ok(events)
}

fn running(state: &AgentState, run: RunId) -> Result<&Turn, Rejection> {
    state.turns.current.as_deref().filter(|turn| turn.run == run).ok_or(Rejection::StaleAttempt)
}

/// The turn and its requested round, if `attempt` is the one under way.
fn attempted(state: &AgentState, run: RunId, attempt: EventSeq) -> Result<(&Turn, &Requested), Rejection> {
    let turn = running(state, run)?;
    match &turn.phase {
        Phase::RoundRequested(round) if round.attempt.is_some_and(|begun| begun.seq == attempt) => Ok((turn, round)),
        Phase::RoundRequested(_) | Phase::RoundOwed | Phase::Calls(_) | Phase::Finished { .. } => {
            Err(Rejection::StaleAttempt)
        }
    }
}

/// Whether `round` is the one to be requested next.
fn owes(turn: &Turn, round: u32) -> bool {
    matches!(turn.phase, Phase::RoundOwed | Phase::Finished { .. }) && turn.round + 1 == round
}

/// Budgets are checked before the next round is bought (semantics 3).
fn request(state: &AgentState, new: &NewRound, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    let turn = running(state, new.run)?;
    if !owes(turn, new.round) {
        return Err(Rejection::StaleAttempt);
    }
    if let Some(limit) = exhausted(state, turn, at) {
        return Ok(fail_budget(state, turn, limit));
    }
    let requested = RoundRequested {
        run: new.run,
        round: new.round,
        keeps: new.keeps,
        added: new.added.clone(),
        tools: new.tools,
        request: new.request,
        interjections: new.interjections.clone(),
    };
    let attempted = RoundAttempted { run: new.run, round: new.round, boot: new.boot, model: 0 };
    let mut events = vec![requested.into()];
    events.extend(acknowledge(state, turn, &new.interjections));
    events.push(attempted.into());
    Ok(events)
}

/// Tells each operator whose prompt joins the run that it has.
fn acknowledge(state: &AgentState, turn: &Turn, messages: &[MessageId]) -> Vec<Event> {
    let unaware = messages.iter().filter(|message| {
        state.queue.waiting.get(message).is_some_and(|queued| queued.from_operator && !queued.acknowledged)
    });
    let briefs = unaware.enumerate().map(|(index, message)| {
        let text = format!("{} takes in {message}.", turn.run);
        brief(state, index as u64, BriefKind::Ack, turn.run, *message, Content::from(text.as_str()))
    });
    briefs.collect()
}

fn exhausted(state: &AgentState, turn: &Turn, at: Timestamp) -> Option<&'static str> {
    let policy = &turn.policy;
    if turn.round >= policy.rounds_max {
        return Some("model rounds");
    }
    if at.since_ms(turn.started_at) >= policy.turn_ms_max {
        return Some("wall time");
    }
    if policy.tokens_per_agent_max.is_some_and(|max| state.turns.usage_total.tokens() >= max) {
        return Some("tokens of the agent and its children");
    }
    (turn.usage.tokens() >= policy.tokens_per_turn_max).then_some("tokens")
}

/// A step that died with every boot that began it is given up, so that it cannot loop for ever (architecture 10).
fn attempt(state: &AgentState, run: RunId, boot: Boot, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    let turn = running(state, run)?;
    let Phase::RoundRequested(requested) = &turn.phase else { return Err(Rejection::StaleAttempt) };
    // The time binds the first attempt after a failure. One that died with its boot was due already, and is due
    // again whatever the clock says now.
    let is_due = requested.attempt.map_or(at >= requested.not_before, |attempt| attempt.boot != boot);
    if !is_due {
        return Err(Rejection::NothingToDo);
    }
    if requested.boots >= BOOTS_PER_STEP_MAX {
        let text = format!(
            "{run} failed: the runtime went down {} times during this model round, so it is not tried again.\n\
             hint: look at the model and the host, then send the message again.",
            requested.boots
        );
        return Ok(failed(state, turn, "attempts_exhausted", &text));
    }
    Ok(vec![RoundAttempted { run, round: turn.round, boot, model: requested.model }.into()])
}

fn record(state: &AgentState, new: &NewAnswer) -> Result<Vec<Event>, Rejection> {
    let (turn, requested) = attempted(state, new.run, new.attempt)?;
    let entry = Entry::Assistant {
        round: turn.round,
        attempt: new.attempt,
        model: turn.policy.models.get(requested.model as usize).cloned().unwrap_or_default(),
        text: new.text.clone(),
        answer: new.answer.clone(),
        calls: new.calls.clone(),
        stop: new.stop,
        usage: new.usage.clone(),
    };
    let mut events = vec![TurnEntry { run: new.run, entry }.into()];
    for message in requested.interjections.iter().filter(|message| state.queue.waiting.contains_key(message)) {
        events.push(TurnEntry { run: new.run, entry: Entry::Interjection { message: *message } }.into());
        let outcome = MessageOutcome::Interjected(new.run);
        events.push(MessageSettled { message: *message, outcome }.into());
    }
    let joined = requested.interjections.iter().filter_map(|message| state.queue.waiting.get(message));
    let about: Vec<Subject> = joined.flat_map(|queued| queued.about.clone()).collect();
    if !about.is_empty() {
        events.extend(waiting::consume(state, new.run, &about, turn.work));
    }
    Ok(events)
}

fn fail_attempt(
    state: &AgentState,
    run: RunId,
    attempt: EventSeq,
    error: &AttemptError,
    at: Timestamp,
) -> Result<Vec<Event>, Rejection> {
    let (turn, requested) = attempted(state, run, attempt)?;
    let then = after(&turn.policy, requested, attempt, error, at);
    Ok(vec![RoundAttemptFailed { run, attempt, error: error.clone(), then }.into()])
}

/// Retries with back-off, then the fallback chain, then no more (semantics 3).
fn after(
    policy: &TurnPolicy,
    requested: &Requested,
    attempt: EventSeq,
    error: &AttemptError,
    at: Timestamp,
) -> AfterAttempt {
    if !is_transient(error.kind) {
        return AfterAttempt::GiveUp;
    }
    if error.kind == AttemptErrorKind::Interrupted {
        return AfterAttempt::Again { model: requested.model, not_before: at };
    }
    let failures = requested.failures + 1;
    if failures < policy.attempts_per_model_max {
        let wait_ms = back_off_ms(policy.retry_ms_first, failures, attempt).max(error.retry_after_ms.unwrap_or(0));
        return AfterAttempt::Again { model: requested.model, not_before: at.after_ms(wait_ms.min(RETRY_MS_MAX)) };
    }
    match requested.model + 1 {
        next if (next as usize) < policy.models.len() => AfterAttempt::Again { model: next, not_before: at },
        _ => AfterAttempt::GiveUp,
    }
}

fn is_transient(kind: AttemptErrorKind) -> bool {
    use AttemptErrorKind as Kind;
    match kind {
        Kind::Timeout | Kind::Connection | Kind::RateLimited | Kind::Server | Kind::Interrupted => true,
        Kind::Authentication
        | Kind::InvalidRequest
        | Kind::ContextLength
        | Kind::InvalidAnswer
        | Kind::NotConfigured => false,
    }
}

/// Doubles with each failure; up to half of it again as jitter, derived from the attempt so that replay agrees.
fn back_off_ms(first_ms: u64, failures: u32, attempt: EventSeq) -> u64 {
    let wait_ms = first_ms.saturating_mul(1 << (failures - 1).min(20)).min(RETRY_MS_MAX);
    let spread = attempt.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    wait_ms + spread % (wait_ms / 2 + 1)
}

fn fail(state: &AgentState, run: RunId, round: u32, code: &str, detail: &str) -> Result<Vec<Event>, Rejection> {
    let turn = running(state, run)?;
    if !owes(turn, round) {
        return Err(Rejection::StaleAttempt);
    }
    Ok(no_further(state, turn, code, &format!("{run} failed: {}", excerpt(detail, EXCERPT_BYTES_MAX))))
}

fn fail_budget(state: &AgentState, turn: &Turn, limit: &str) -> Vec<Event> {
    let text = format!(
        "{} failed: it has used up its {limit} after {} model rounds.\n\
         hint: ask for less at once, or raise the limit and send the message again.",
        turn.run, turn.round
    );
    no_further(state, turn, "budget_exhausted", &text)
}

/// The end of a turn whose next round is not to be had. One that has its answer wanted the round only for a prompt
/// that came late, which waits for a turn of its own.
fn no_further(state: &AgentState, turn: &Turn, code: &str, text: &str) -> Vec<Event> {
    match &turn.phase {
        Phase::Finished { text } => complete(state, turn, text),
        Phase::RoundOwed | Phase::RoundRequested(_) | Phase::Calls(_) => failed(state, turn, code, text),
    }
}

/// The end of a turn whose model cannot be reached.
pub(super) fn fail_provider(state: &AgentState, turn: &Turn, error: &AttemptError) -> Vec<Event> {
    use AttemptErrorKind as Kind;
    let hint = match error.kind {
        Kind::NotConfigured => "configure the provider, or choose another model",
        Kind::Authentication => "check the provider's key",
        Kind::RateLimited => "wait for the provider's limit to pass, or configure a fallback model",
        Kind::Timeout | Kind::Connection | Kind::Server | Kind::Interrupted => {
            "check that the provider can be reached, or configure a fallback model"
        }
        Kind::ContextLength => "send a shorter message, or choose a model with a longer context",
        Kind::InvalidRequest | Kind::InvalidAnswer => "choose another model; the events of this run tell more",
    };
    let status = error.status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    let models = turn.policy.models.join(", ");
    let models = excerpt(&models, EXCERPT_BYTES_MAX);
    let detail = excerpt(&error.message, EXCERPT_BYTES_MAX);
    let text = format!(
        "{} failed: no answer from {models}: {}{status}: {detail}\nhint: {hint}, then send the message again.",
        turn.run, error.kind
    );
    failed(state, turn, error.kind.name(), &text)
}

/// The message that the running turn is spent on.
pub(super) fn current_message(state: &AgentState) -> Option<MessageId> {
    state.turns.current.as_ref().map(|turn| turn.message)
}

/// The end of a turn that has its answer. The report of the work it completed is its answer when it says nothing else.
pub(super) fn complete(state: &AgentState, turn: &Turn, text: &Content) -> Vec<Event> {
    let report = turn.report.as_ref();
    let said = Some(text).filter(|text| text.bytes() > 0).or(report.map(|(_, report)| report)).cloned();
    let text = said.unwrap_or_else(|| Content::from("(The turn ended without text.)"));
    let (brief, kind, work) = (state.briefs.last.next(), BriefKind::Result, report.map(|(work, _)| *work));
    let answer = BriefCreated { brief, kind, run: Some(turn.run), message: Some(turn.message), work, text }.into();
    let settled = settle_message(turn, MessageOutcome::Processed(turn.run));
    vec![answer, settled, terminal(turn, TurnOutcome::Completed, None)]
}

fn failed(state: &AgentState, turn: &Turn, code: &str, text: &str) -> Vec<Event> {
    let failure = brief(state, 0, BriefKind::Failure, turn.run, turn.message, Content::from(text));
    let settled = settle_message(turn, MessageOutcome::Processed(turn.run));
    vec![failure, settled, terminal(turn, TurnOutcome::Failed, Some(code))]
}

/// The end of the run under way, if there is one. Prompts that it had not taken in stay in the queue.
pub(super) fn abort(state: &AgentState, mode: AbortMode, reason: &str) -> Vec<Event> {
    let Some(turn) = state.turns.current.as_deref() else { return Vec::new() };
    let text = format!("{} was aborted: {reason}. The message is not tried again.", turn.run);
    vec![
        CurrentRunAborted { run: turn.run, mode, reason: reason.to_owned() }.into(),
        brief(state, 0, BriefKind::Failure, turn.run, turn.message, Content::from(text.as_str())),
        settle_message(turn, MessageOutcome::Aborted(turn.run)),
        terminal(turn, TurnOutcome::Aborted, Some(reason)),
    ]
}

/// The brief that follows `before` others of the same decision.
fn brief(state: &AgentState, before: u64, kind: BriefKind, run: RunId, message: MessageId, text: Content) -> Event {
    let brief = crate::words::id::BriefId(state.briefs.last.0 + before + 1);
    BriefCreated { brief, kind, run: Some(run), message: Some(message), work: None, text }.into()
}

fn settle_message(turn: &Turn, outcome: MessageOutcome) -> Event {
    MessageSettled { message: turn.message, outcome }.into()
}

fn terminal(turn: &Turn, outcome: TurnOutcome, reason: Option<&str>) -> Event {
    let known = turn.usage.rounds_unknown == 0 && turn.round > 0;
    let usage = Usage {
        input_tokens: known.then_some(turn.usage.input_tokens),
        output_tokens: known.then_some(turn.usage.output_tokens),
    };
    let reason = reason.map(str::to_owned);
    TurnTerminal { run: turn.run, outcome, reason, rounds: turn.round, usage }.into()
}
