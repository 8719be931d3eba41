//! How a loop starts what is owed: each effect becomes a task that ends in mail.

use super::AgentLoop;
use crate::context;
use crate::decide::operator::OperatorCommand;
use crate::decide::task::TaskCommand;
use crate::decide::turn::TurnCommand;
use crate::decide::waiting::WaitingCommand;
use crate::decide::work::WorkCommand;
use crate::decide::{Command, Request};
use crate::events::Cause;
use crate::events::call::Action;
use crate::fold::owed::Effect;
use crate::runtime::effect::call::ModelCall;
use crate::runtime::effect::command::{self, CommandRun};
use crate::runtime::effect::delivery::Submission;
use crate::runtime::effect::family::Errand;
use crate::runtime::effect::outside::OutsideCall;
use crate::runtime::effect::{guidance, input, prompt, workspace, worktree};
use crate::runtime::mail::{Mail, Outcome, What};
use crate::words::id::{EventSeq, RunId, TaskId};
use futures::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;

impl AgentLoop {
    pub(super) fn start(&mut self, effect: Effect) {
        let (shared, boot) = (self.shared.clone(), self.shared.boot);
        match effect {
            Effect::StartTurn => {
                let reading = guidance::Reading::of(&shared, &self.state);
                let policy = shared.settings.policy(self.state.agent.model.as_ref());
                self.spawn(effect, async move {
                    let (guidance, blobs) = reading.read(&shared).await;
                    let request = Request::new(TurnCommand::Start { policy, guidance }, Cause::Runtime);
                    What::Command { request, blobs }
                });
            }
            Effect::BeginAttempt { run, .. } => {
                self.at_once(effect, Request::new(TurnCommand::Attempt { run, boot }, Cause::Run(run)));
            }
            Effect::PrepareRound { .. } => self.start_prompt(effect),
            Effect::CallModel { attempt, .. } => {
                if let Some(call) = ModelCall::of(&self.state.turns, attempt, self.claim()) {
                    self.spawn(effect, call.make(shared));
                }
            }
            Effect::StartTask { task } => {
                let (claim, id) = (self.claim(), self.id.clone());
                self.spawn(effect, async move {
                    let permit = shared.commands.take(claim).await;
                    let request = command::start(&shared, &id, task, None);
                    What::Placed { request, permit }
                });
            }
            Effect::RunTask { task, attempt } => self.start_run(effect, task, attempt),
            Effect::StopTask { task, attempt } => {
                let open = self.state.tasks.open.get(&task);
                let execution = open.and_then(|open| command::execution(&self.id, task, open));
                if let Some(execution) =
                    execution.filter(|execution| execution.name == command::run_name(&self.id, task, attempt))
                {
                    self.spawn(effect, async move {
                        let stopped = tokio::task::spawn_blocking(move || command::stop(&shared, &execution)).await;
                        stopped.map_or(What::Panicked, |()| What::Nothing)
                    });
                }
            }
            Effect::PromoteTask { task, attempt } => self.start_promotion(effect, task, attempt),
            Effect::ReadTask { .. } => self.start_reading(effect),
            Effect::BeginCall { run, round, call, .. } => {
                let command = TurnCommand::BeginCall { run, round, call, boot };
                self.at_once(effect, Request::new(command, Cause::Run(run)));
            }
            Effect::RunCall { run, attempt } => self.start_call(effect, run, attempt),
            Effect::ContinueWork { work } => self.by_runtime(effect, WorkCommand::Continue { work }),
            Effect::Recheck => self.by_runtime(effect, WorkCommand::Recheck),
            Effect::EndWait { wait } => self.by_runtime(effect, WaitingCommand::EndWait { wait }),
            Effect::FireTimer { timer } => self.by_runtime(effect, WaitingCommand::FireTimer { timer }),
            Effect::DeliverInput { task, attempt: Some(attempt), entry } => {
                self.start_input(effect, task, attempt, entry);
            }
            Effect::DeliverInput { task, attempt: None, entry } => {
                self.start_errand(effect, Errand::input(&self.state, task, entry));
            }
            Effect::DirectChild { task, lifecycle, entry } => {
                self.start_errand(effect, Errand::direction(&self.state, task, lifecycle, entry));
            }
            Effect::Deliver { entry } => self.start_errand(effect, Errand::delivery(&self.state, entry)),
            Effect::BeginDelivery { binding, .. } => {
                self.by_runtime(effect, OperatorCommand::BeginDelivery { binding, boot });
            }
            Effect::SubmitDelivery { binding, attempt } => {
                if let Some(submission) = Submission::of(&self.state, binding, attempt) {
                    self.spawn(effect, submission.make(shared));
                }
            }
            Effect::SettleWorktree { task } => {
                if let Some(worktree) = self.state.workspaces.worktrees.get(&task) {
                    self.spawn(effect, worktree::settle(shared, task, worktree.clone()));
                }
            }
        }
    }

    fn start_prompt(&mut self, effect: Effect) {
        let (shared, id, needs) = (self.shared.clone(), self.id.clone(), context::needs(&self.state));
        self.spawn(effect, async move {
            let read = move || prompt::contents(&*shared.store, &shared.blobs, &id, &needs);
            tokio::task::spawn_blocking(read).await.map_or(What::Panicked, What::Contents)
        });
    }

    fn start_run(&mut self, effect: Effect, id: TaskId, attempt: EventSeq) {
        let place = workspace::place(&self.shared, &self.state);
        let Some(task) = self.state.tasks.open.get(&id) else { return };
        if let Some(run) = CommandRun::of(&self.id, id, task, attempt, place) {
            // A command that ran before this boot has no place: it is followed all the same.
            self.spawn(effect, run.run(self.shared.clone()));
        }
    }

    fn start_promotion(&mut self, effect: Effect, task: TaskId, attempt: EventSeq) {
        let Some(open) = self.state.tasks.open.get(&task) else { return };
        let (shared, tokens) = (self.shared.clone(), open.command().map_or(0, |request| request.shown_tokens));
        let name = command::run_name(&self.id, task, attempt);
        self.spawn(effect, async move {
            let (shown, blobs) = command::shown_so_far(shared, name, tokens).await;
            let command = TaskCommand::Promote { task, attempt, shown };
            What::Command { request: Request::new(command, Cause::Task(task)), blobs }
        });
    }

    fn start_reading(&mut self, effect: Effect) {
        let Effect::ReadTask { run, round, call, task } = effect else { return };
        let next = self.state.turns.calls().and_then(|(_, calls)| calls.next());
        let Some(Action::TaskOutput { shown_tokens: tokens, .. }) = next.map(|call| &call.action) else { return };
        let tokens = *tokens;
        let attempt = self.state.tasks.open.get(&task).and_then(|open| open.attempt);
        let shared = self.shared.clone();
        let name = attempt.map(|attempt| command::run_name(&self.id, task, attempt.seq));
        self.spawn(effect, async move {
            let name = name.unwrap_or_else(|| "not-started".into());
            let (shown, blobs) = command::shown_so_far(shared, name, tokens).await;
            let command = TaskCommand::Read { run, round, call, task, shown };
            What::Command { request: Request::new(command, Cause::Run(run)), blobs }
        });
    }

    fn start_call(&mut self, effect: Effect, run: RunId, attempt: EventSeq) {
        let Some((_, calls)) = self.state.turns.calls().filter(|(turn, _)| turn.run == run) else { return };
        let Some(action) = calls.next().map(|call| call.action.clone()) else { return };
        let call = OutsideCall::of(&self.state, run, attempt, action);
        self.spawn(effect, call.make(self.shared.clone()));
    }

    fn start_input(&mut self, effect: Effect, task: TaskId, attempt: EventSeq, entry: EventSeq) {
        let input = self.state.tasks.open.get(&task).and_then(|open| open.inputs.get(&entry));
        if let Some(input) = input.cloned() {
            let name = command::run_name(&self.id, task, attempt);
            self.spawn(effect, input::deliver(self.shared.clone(), name, (task, entry), input));
        }
    }

    fn start_errand(&mut self, effect: Effect, errand: Option<Errand>) {
        if let Some(errand) = errand {
            self.spawn(effect, errand.run(self.shared.clone()));
        }
    }

    /// An effect that is a decision of the runtime itself.
    fn by_runtime(&mut self, effect: Effect, command: impl Into<Command>) {
        self.at_once(effect, Request::new(command, Cause::Runtime));
    }

    /// An effect that needs nothing but to be decided.
    fn at_once(&mut self, effect: Effect, request: Request) {
        self.spawn(effect, std::future::ready(What::command(request)));
    }

    fn spawn(&mut self, effect: Effect, future: impl Future<Output = What> + Send + 'static) {
        let me = self.received.me.clone();
        let task = tokio::spawn(async move {
            let what = AssertUnwindSafe(future).catch_unwind().await.unwrap_or(What::Panicked);
            // A loop that has ended is started again by whatever is owed.
            let _ = me.send(Mail::Outcome(Outcome { effect, what }));
        });
        self.running.insert(effect, task.abort_handle());
    }
}
