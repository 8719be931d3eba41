//! One agent, one loop, one owner of its state.
//!
//! The loop takes all the mail that waits, decides, commits once, answers, and then reconciles what is owed with what
//! is running. It has one append under way at most, so that effects start from durable state alone. After a failed
//! append it answers nobody from what it had staged, and folds the ledger again.

mod append;
mod place;
mod reload;
mod start;

use super::effect::call::{self};
use super::effect::command::{self};
use super::effect::trigger;
use super::handle::SubmitError;
use super::host::{Received, Shared};
use super::mail::{Mail, Outcome, Submission, What};
use super::reconcile::{Change, changes};
use super::secret;
use crate::context::{self, Contents, PromptError};
use crate::decide::operator::{DeliveryEnd, OperatorCommand};
use crate::decide::turn::{NewRound, TurnCommand};
use crate::decide::{Rejection, Request, Staged, handle};
use crate::events::agent::Answer;
use crate::events::task::TaskExited;
use crate::events::turn::AttemptErrorKind;
use crate::events::{Cause, Event, TaskEvent, WaitingEvent};
use crate::fold::AgentState;
use crate::fold::owed::{Effect, Owed, owed};
use crate::fold::row::Rows;
use crate::ledger::chain;
use crate::ledger::{AppendError, Head};
use crate::words::content::Blob;
use crate::words::id::AgentId;
use crate::words::limit::{COMMIT_BYTES_MAX, SUBMISSIONS_PER_BATCH_MAX};
use futures::FutureExt;
use place::Held;
use reload::Unwritten;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub(super) use command::parse_run_name;

struct AgentLoop {
    shared: Arc<Shared>,
    id: AgentId,
    received: Received,
    state: AgentState,
    head: Head,
    running: BTreeMap<Effect, AbortHandle>,
    held: Held,
    /// The rows as they were written last.
    rows: Option<Rows>,
    going_down: bool,
}

type Reply = oneshot::Sender<Result<Answer, SubmitError>>;
/// An effect, what came of it, and the payloads of that.
type Told = (Effect, Request, Vec<Blob>);
type Read = Box<dyn FnOnce(&AgentState) + Send>;

/// What one commit is made of, beside its events.
#[derive(Default)]
struct Batch {
    staged: Staged,
    blobs: Vec<Blob>,
    answers: Vec<(Reply, Result<Answer, Rejection>)>,
    reads: Vec<Read>,
    /// Outcomes that are part of it. After a failed commit they are handed in again: what they tell has happened.
    outcomes: Vec<Told>,
    bytes: usize,
}

/// Why a loop stops before its time.
enum Stop {
    /// The core contradicts itself, or the ledger is damaged: nobody is served from this state.
    Apart(String),
    /// The last events were not written.
    NotWritten(Unwritten),
}

/// Starts the loop of an agent.
pub(super) fn spawn(shared: Arc<Shared>, id: AgentId, received: Received) {
    tokio::spawn(async move {
        let running = AssertUnwindSafe(run(shared.clone(), id.clone(), received)).catch_unwind().await;
        let retired = running.unwrap_or_else(|_| {
            shared.set_apart(&id, "its loop failed; the log tells where".into());
            false
        });
        shared.ended(&id, retired);
    });
}

/// True when the loop retired; then it is not among the awake any more.
async fn run(shared: Arc<Shared>, id: AgentId, received: Received) -> bool {
    let loaded = load(&shared, &id).await;
    let (state, head) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            tracing::error!(agent = %id, %error, "the agent cannot be loaded");
            return false;
        }
    };
    let mut this = AgentLoop {
        shared,
        id,
        received,
        state,
        head,
        running: BTreeMap::new(),
        held: Held::default(),
        rows: None,
        going_down: false,
    };
    let retired = this.serve().await;
    this.running.values().for_each(AbortHandle::abort);
    this.held.give_up();
    retired
}

async fn load(shared: &Arc<Shared>, id: &AgentId) -> Result<(AgentState, Head), SubmitError> {
    let _turn = shared.loads.acquire().await;
    let (shared, id) = (shared.clone(), id.clone());
    super::handle::blocking(move || {
        let loaded = shared.load(&id)?;
        Ok::<_, SubmitError>(loaded.unwrap_or_else(|| (AgentState::unborn(id.clone()), chain::genesis(&id))))
    })
    .await
}

impl AgentLoop {
    async fn serve(&mut self) -> bool {
        loop {
            let owed = self.reconcile();
            if self.going_down && self.running.is_empty() {
                return false;
            }
            let Some(mail) = self.next(&owed).await else { return true };
            match self.take(mail).await {
                Ok(()) => {}
                Err(Stop::Apart(reason)) => {
                    self.shared.set_apart(&self.id, reason);
                    return false;
                }
                Err(Stop::NotWritten(mut unwritten)) => {
                    let error = &unwritten.error;
                    tracing::error!(agent = %self.id, %error, "events were not written; folding the ledger again");
                    if let AppendError::Conflict { agent, .. } = error
                        && *agent != self.id
                    {
                        unwritten.outcomes.iter_mut().for_each(|told| append::refuse_birth(told, agent));
                    }
                    if !self.reload(unwritten).await {
                        return false;
                    }
                }
            }
        }
    }

    /// The next mail; none when nothing was to be done for a while and the agent left the awake ones.
    async fn next(&mut self, owed: &[Owed]) -> Option<Mail> {
        let at_rest =
            self.running.is_empty() && !self.held.waits_for_turn() && !owed.iter().any(|owed| self.is_due(owed));
        if !at_rest {
            return self.received.mail.recv().await;
        }
        let linger = Duration::from_millis(self.shared.settings.linger_ms);
        loop {
            match tokio::time::timeout(linger, self.received.mail.recv()).await {
                Ok(mail) => return mail,
                Err(_) if self.shared.retire(&self.id, &self.received) => return None,
                Err(_) => {}
            }
        }
    }

    fn is_due(&self, owed: &Owed) -> bool {
        owed.not_before <= self.shared.source.now()
    }

    /// Takes `first` and whatever else waits, commits once, answers last.
    async fn take(&mut self, first: Mail) -> Result<(), Stop> {
        let mut batch = Batch::default();
        self.sort(first, &mut batch).await?;
        for _ in 1..SUBMISSIONS_PER_BATCH_MAX {
            if batch.bytes >= COMMIT_BYTES_MAX {
                break;
            }
            let Ok(mail) = self.received.mail.try_recv() else { break };
            self.sort(mail, &mut batch).await?;
        }
        self.commit(batch).await
    }

    async fn sort(&mut self, mail: Mail, batch: &mut Batch) -> Result<(), Stop> {
        match mail {
            Mail::Submit(submission) => self.submit(submission, batch),
            Mail::Read(look) => {
                batch.reads.push(look);
                Ok(())
            }
            Mail::Outcome(outcome) => self.outcome(outcome, batch).await,
            Mail::Place(permit) => {
                self.held.take_turn(permit);
                Ok(())
            }
            Mail::Background { task, place } => {
                self.held.go_on_in_background(task, place);
                Ok(())
            }
            Mail::Nudge => {
                self.look_again().await;
                Ok(())
            }
            Mail::Shutdown => self.go_down(batch),
        }
    }

    /// A loop that was woken for an agent that is not there, for a request that was refused, stays for a while. The
    /// agent may be born by another one meanwhile, who then nudges.
    async fn look_again(&mut self) {
        if self.state.is_born() {
            return;
        }
        match load(&self.shared, &self.id).await {
            Ok((state, head)) => (self.state, self.head) = (state, head),
            Err(error) => tracing::error!(agent = %self.id, %error, "the agent cannot be loaded yet"),
        }
    }

    fn submit(&mut self, submission: Submission, batch: &mut Batch) -> Result<(), Stop> {
        self.received.taken();
        let answer = self.decide(&submission.request, batch)?;
        if answer.is_ok() {
            batch.add_blobs(submission.blobs);
        }
        batch.answers.push((submission.reply, answer));
        Ok(())
    }

    fn decide(&mut self, request: &Request, batch: &mut Batch) -> Result<Result<Answer, Rejection>, Stop> {
        let at = self.shared.source.now();
        handle(&mut self.state, request, at, &mut batch.staged).map_err(|illegal| Stop::Apart(illegal.to_string()))
    }

    async fn outcome(&mut self, Outcome { effect, what }: Outcome, batch: &mut Batch) -> Result<(), Stop> {
        if !self.running.contains_key(&effect) {
            return Ok(()); // It was stopped meanwhile.
        }
        let (request, blobs) = match what {
            What::Command { request, blobs } => (request, blobs),
            What::Placed { request, permit } => {
                if let Effect::StartTask { task } = effect {
                    self.held.begin(task, permit);
                }
                (request, Vec::new())
            }
            What::Contents(contents) => match self.prompt(effect, &contents).await {
                Some(prompt) => prompt,
                None => {
                    self.running.remove(&effect);
                    return Ok(());
                }
            },
            What::Panicked => match self.after_panic(effect) {
                Some(request) => (request, Vec::new()),
                None => return Ok(()),
            },
            What::Nothing => return Ok(()),
        };
        self.conclude(effect, request, blobs, batch)
    }

    /// Records what came of an effect.
    fn conclude(&mut self, effect: Effect, request: Request, blobs: Vec<Blob>, batch: &mut Batch) -> Result<(), Stop> {
        match self.decide(&request, batch)? {
            Ok(_) => batch.add_blobs(blobs.clone()),
            Err(rejection) => tracing::debug!(agent = %self.id, ?effect, %rejection, "an outcome came too late"),
        }
        batch.outcomes.push((effect, request, blobs));
        Ok(())
    }

    /// The round that the contents make; none when the state has moved on and they do not any more.
    async fn prompt(&self, effect: Effect, contents: &Contents) -> Option<(Request, Vec<Blob>)> {
        let Effect::PrepareRound { run, round } = effect else { return None };
        let turn = self.state.turns.current.as_deref().filter(|turn| turn.run == run)?;
        let command = match context::render(&self.state, turn, contents) {
            Ok(prompt) => {
                let keeper = self.shared.blobs.clone();
                let kept = tokio::task::spawn_blocking(move || keeper.keep_large(prompt.blobs)).await;
                let blobs = match kept {
                    Ok(Ok(blobs)) => blobs,
                    Ok(Err(error)) => return Some(unusable(run, round, "prompt_not_kept", &error)),
                    Err(error) => return Some(unusable(run, round, "prompt_not_kept", &error)),
                };
                let new = NewRound {
                    run,
                    round,
                    boot: self.shared.boot,
                    keeps: prompt.keeps,
                    added: prompt.added,
                    tools: prompt.tools,
                    request: prompt.request,
                    interjections: prompt.interjections,
                };
                return Some((Request::new(TurnCommand::Request(new), Cause::Run(run)), blobs));
            }
            // A prompt came in meanwhile: its contents are read with the next try.
            Err(PromptError::Missing(missing)) if !contents.asked_for(missing) => return None,
            Err(error @ PromptError::Missing(_)) => unusable(run, round, "prompt_unreadable", &error),
            Err(error @ PromptError::TooLong { .. }) => unusable(run, round, "context_exhausted", &error),
        };
        Some(command)
    }

    fn after_panic(&self, effect: Effect) -> Option<Request> {
        tracing::error!(agent = %self.id, ?effect, "an effect failed by a fault of ours");
        match effect {
            Effect::CallModel { run, attempt } => {
                let error = call::fault(AttemptErrorKind::InvalidAnswer, "the provider's code failed");
                Some(Request::new(TurnCommand::FailAttempt { run, attempt, error }, Cause::Run(run)))
            }
            Effect::PrepareRound { run, round } => Some(unusable(run, round, "prompt_failed", &"a fault of ours").0),
            Effect::SubmitDelivery { binding, attempt } => {
                let end = DeliveryEnd::Failed {
                    summary: "the attempt failed by a fault of ours".into(),
                    retry_after_ms: None,
                };
                Some(Request::new(OperatorCommand::EndDelivery { binding, attempt, end }, Cause::Runtime))
            }
            Effect::StartTurn
            | Effect::BeginDelivery { .. }
            | Effect::BeginAttempt { .. }
            | Effect::StartTask { .. }
            | Effect::RunTask { .. }
            | Effect::StopTask { .. }
            | Effect::PromoteTask { .. }
            | Effect::ReadTask { .. }
            | Effect::BeginCall { .. }
            | Effect::RunCall { .. }
            | Effect::DeliverInput { .. }
            | Effect::DirectChild { .. }
            | Effect::SettleWorktree { .. }
            | Effect::Deliver { .. }
            | Effect::ContinueWork { .. }
            | Effect::Recheck
            | Effect::EndWait { .. }
            | Effect::FireTimer { .. } => None,
        }
    }

    /// Model calls are given up for this boot, and made again after it; commands go on under their supervisors.
    fn go_down(&mut self, batch: &mut Batch) -> Result<(), Stop> {
        self.going_down = true;
        let running: Vec<Effect> = self.running.keys().copied().collect();
        for effect in running {
            if let Some(task) = self.running.remove(&effect) {
                task.abort();
            }
            if let Effect::CallModel { run, attempt } = effect {
                let error = call::fault(AttemptErrorKind::Interrupted, "the runtime was shut down");
                let request = Request::new(TurnCommand::FailAttempt { run, attempt, error }, Cause::Runtime);
                self.conclude(effect, request, Vec::new(), batch)?;
            }
        }
        Ok(())
    }

    async fn commit(&mut self, mut batch: Batch) -> Result<(), Stop> {
        if !batch.staged.envelopes.is_empty() {
            let head = match self.write(&mut batch).await {
                Ok(head) => head,
                Err(error) => {
                    let reason = error.to_string();
                    let unavailable = || Err(SubmitError::Unavailable(reason.clone()));
                    batch.answers.into_iter().for_each(|(reply, _)| drop(reply.send(unavailable())));
                    let (outcomes, reads) = (batch.outcomes, batch.reads);
                    return Err(Stop::NotWritten(Unwritten { error, outcomes, reads }));
                }
            };
            self.head = head;
            self.shared.feed.publish(&self.id, head.seq);
            self.welcome(&batch.staged.births);
        }
        for (effect, ..) in &batch.outcomes {
            self.running.remove(effect);
        }
        self.forget_ended(&batch.staged);
        for (reply, answer) in batch.answers {
            // The caller may have gone.
            let _ = reply.send(answer.map_err(SubmitError::from));
        }
        batch.reads.into_iter().for_each(|look| look(&self.state));
        Ok(())
    }

    /// Commands whose end is durable need neither their place nor their run folder, revoked triggers no URL, and secrets
    /// that others took the place of are not kept.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most events leave nothing to be removed")]
    fn forget_ended(&mut self, staged: &Staged) {
        if !staged.secrets.is_empty() {
            secret::forget(&self.shared, staged.secrets.clone());
        }
        for envelope in &staged.envelopes {
            let (shared, id) = (&self.shared, &self.id);
            match &envelope.event {
                Event::Task(TaskEvent::Exited(exited)) => self.forget_task(exited),
                Event::Waiting(WaitingEvent::TriggerRevoked(revoked)) => trigger::forget(shared, id, revoked.trigger),
                _ => {}
            }
        }
    }

    fn forget_task(&mut self, exited: &TaskExited) {
        self.held.end(exited.task);
        let Some(attempt) = exited.attempt else { return };
        let (shared, name) = (self.shared.clone(), command::run_name(&self.id, exited.task, attempt));
        tokio::task::spawn_blocking(move || {
            if let Err(error) = shared.processes.remove(&name) {
                tracing::warn!(agent = command::owner(&name), name, %error, "a run folder cannot be removed; the next boot tries again");
            }
        });
    }

    /// Starts what is owed and not running, stops what is running and not owed.
    fn reconcile(&mut self) -> Vec<Owed> {
        let owed = owed(&self.state, self.shared.boot);
        if self.going_down {
            return owed;
        }
        let now = self.shared.source.now();
        let ahead = owed.iter().map(|owed| owed.not_before).filter(|at| *at > now);
        self.shared.deadlines.set(&self.id, ahead.min());
        self.claim_places(&owed);
        let running: Vec<Effect> = self.running.keys().copied().collect();
        for change in changes(&owed, &running, now, self.held.turn.is_some()) {
            match change {
                Change::Start(effect) => self.start(effect),
                Change::Stop(effect) => {
                    if let Some(task) = self.running.remove(&effect) {
                        task.abort();
                    }
                }
            }
        }
        owed
    }
}

impl Batch {
    fn add_blobs(&mut self, blobs: Vec<Blob>) {
        self.bytes += blobs.iter().map(|blob| blob.bytes.len()).sum::<usize>();
        self.blobs.extend(blobs);
    }
}

/// The end of a turn whose prompt cannot be made.
fn unusable(
    run: crate::words::id::RunId,
    round: u32,
    code: &str,
    detail: &dyn std::fmt::Display,
) -> (Request, Vec<Blob>) {
    let (code, detail) = (code.to_owned(), detail.to_string());
    (Request::new(TurnCommand::Fail { run, round, code, detail }, Cause::Run(run)), Vec::new())
}
