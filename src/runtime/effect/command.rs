//! One managed command: launched once, found again after a crash, and its end to a command.

use crate::decide::Request;
use crate::decide::task::TaskCommand;
use crate::events::Cause;
use crate::events::call::Shown;
use crate::events::task::{CommandOutput, CommandSpec, Exit, Kept, Supervisor};
use crate::fold::task::Task;
use crate::runtime::effect::workspace::{Place, home};
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::process::{Ended, Excerpt, Execution, Found, LaunchError, RunKey, Running, Spec};
use crate::words::content::{Blob, Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq, TaskId};
use crate::words::limit::{BYTES_PER_TOKEN, COMMAND_OUTPUT_BYTES_MAX, EXCERPT_BYTES_MAX, STOP_GRACE_MS};
use std::sync::Arc;
use tracing::field::{DisplayValue, display};

/// The kept output, and the line that says what it leaves out.
const KEPT_BYTES_MAX: u64 = COMMAND_OUTPUT_BYTES_MAX + 1_024;

/// What came of a step of a run.
enum Step {
    /// The command has begun.
    Begun(Supervisor),
    Ended(Ended),
    /// It never began, and never will under this attempt.
    NeverBegan,
}

/// A command under way, as the state describes it.
#[derive(Clone)]
pub(in crate::runtime) struct CommandRun {
    agent: AgentId,
    task: TaskId,
    attempt: EventSeq,
    boot: Boot,
    signer: Option<Hash>,
    supervisor: Option<Supervisor>,
    spec: CommandSpec,
    shown_bytes_max: usize,
    place: Place,
}

/// The name of a command's run folder.
pub(in crate::runtime) fn run_name(agent: &AgentId, task: TaskId, attempt: EventSeq) -> String {
    format!("{agent}-{task}-{attempt}")
}

/// The agent and the task that a run folder is named after.
pub(in crate::runtime) fn parse_run_name(name: &str) -> Option<(AgentId, TaskId)> {
    let (rest, _) = name.rsplit_once('-')?;
    let (agent, number) = rest.rsplit_once("-task-")?;
    Some((AgentId::parse(agent).ok()?, format!("task-{number}").parse().ok()?))
}

/// The execution of the attempt of `task` that runs; none if none does.
pub(in crate::runtime) fn execution(agent: &AgentId, id: TaskId, task: &Task) -> Option<Execution> {
    let attempt = task.attempt?;
    let name = run_name(agent, id, attempt.seq);
    Some(Execution { name, signer: attempt.signer, supervisor: task.supervisor.clone() })
}

/// The key of the supervisors that this boot starts for a task.
fn key(shared: &Shared, agent: &AgentId, task: TaskId) -> RunKey {
    shared.processes.key(&format!("{agent}-{task}"))
}

/// The request to record that a command is about to be launched by this boot.
pub(in crate::runtime) fn start(shared: &Shared, agent: &AgentId, task: TaskId, replaces: Option<EventSeq>) -> Request {
    let signer = Some(key(shared, agent, task).signer());
    Request::new(TaskCommand::Start { task, boot: shared.boot, replaces, signer }, Cause::Runtime)
}

/// Whose run folder it is, for the log.
pub(in crate::runtime) fn owner(name: &str) -> Option<DisplayValue<AgentId>> {
    parse_run_name(name).map(|(agent, _)| display(agent))
}

impl CommandRun {
    /// The run of `task` that `attempt` names. `place`: where the agent works.
    pub(crate) fn of(agent: &AgentId, id: TaskId, task: &Task, attempt: EventSeq, place: Place) -> Option<Self> {
        let begun = task.attempt.filter(|begun| begun.seq == attempt)?;
        let request = task.command()?;
        Some(Self {
            agent: agent.clone(),
            task: id,
            attempt,
            boot: begun.boot,
            signer: begun.signer,
            supervisor: task.supervisor.clone(),
            spec: request.spec.clone(),
            shown_bytes_max: shown_bytes_max(request.shown_tokens),
            place,
        })
    }

    fn name(&self) -> String {
        run_name(&self.agent, self.task, self.attempt)
    }

    /// Launches the command, or finds it again, until its supervisor is known; from then on follows it to its end. The
    /// supervisor is on the ledger before anything else is made of it.
    pub(crate) async fn run(self, shared: Arc<Shared>) -> What {
        match self.step(&shared).await {
            Ok(Step::Begun(supervisor)) => {
                let command = TaskCommand::Supervise { task: self.task, attempt: self.attempt, supervisor };
                What::command(Request::new(command, Cause::Task(self.task)))
            }
            Ok(Step::Ended(ended)) => self.end(shared, ended).await,
            Ok(Step::NeverBegan) => self.begin_again(&shared),
            Err(exit) => self.exited(exit, 0, Content::from(""), Vec::new(), (0, false, None)),
        }
    }

    async fn step(&self, shared: &Arc<Shared>) -> Result<Step, Exit> {
        let found = shared.processes.find(&self.execution()).map_err(|error| self.unknown(&error))?;
        match found {
            Found::Running(running) if self.supervisor.is_some() => self.wait(running).await.map(Step::Ended),
            Found::Running(running) => Ok(Step::Begun(running.supervisor().clone())),
            Found::Ended(ended) | Found::Lost(ended) => Ok(Step::Ended(ended)),
            // Nothing of it is there, and only this boot could have made it: it was not launched yet.
            Found::NeverBegan if self.boot == shared.boot && !shared.processes.is_known(&self.name()) => {
                let running = self.launch(shared)?;
                if running.begun().await {
                    return Ok(Step::Begun(running.supervisor().clone()));
                }
                self.wait(running).await.map(Step::Ended)
            }
            Found::NeverBegan => Ok(Step::NeverBegan),
        }
    }

    fn execution(&self) -> Execution {
        Execution { name: self.name(), signer: self.signer, supervisor: self.supervisor.clone() }
    }

    async fn wait(&self, running: Running) -> Result<Ended, Exit> {
        running.ended().await.map_err(|error| self.unknown(&error))
    }

    /// The end of a command that may have run, and of which nothing can be learnt.
    fn unknown(&self, error: &dyn std::fmt::Display) -> Exit {
        tracing::error!(agent = %self.agent, task = %self.task, %error, "what became of a command cannot be learnt");
        Exit::Lost
    }

    fn launch(&self, shared: &Arc<Shared>) -> Result<Running, Exit> {
        let workdir = self.place.folder(self.spec.workdir.as_deref()).map_err(|reason| not_started(&reason))?;
        let spec = Spec {
            attempt: self.attempt,
            cmd: self.spec.cmd.clone(),
            shell: self.spec.shell.clone(),
            login: self.spec.login,
            workdir,
            environment: shared.settings.command_environment.of_agent(&self.agent, &home(shared, &self.agent)),
            accepts_input: self.spec.accepts_input,
            output_bytes_max: COMMAND_OUTPUT_BYTES_MAX,
            grace_ms: STOP_GRACE_MS,
            limits: shared.settings.tree_limits,
        };
        shared.processes.launch(&self.name(), &spec, &key(shared, &self.agent, self.task)).map_err(
            |error| match error {
                LaunchError::Unheld(_) => self.unknown(&error),
                LaunchError::Folder(_) | LaunchError::Spawn { .. } => not_started(&error.to_string()),
            },
        )
    }

    fn begin_again(&self, shared: &Shared) -> What {
        What::command(start(shared, &self.agent, self.task, Some(self.attempt)))
    }

    async fn end(self, shared: Arc<Shared>, ended: Ended) -> What {
        let run = self.clone();
        let keeping = tokio::task::spawn_blocking(move || run.keep(&shared, &ended));
        match keeping.await {
            Ok(what) => what,
            Err(error) => {
                tracing::error!(agent = %self.agent, task = %self.task, %error, "a command's output cannot be kept");
                self.exited(Exit::Lost, 0, Content::from(""), Vec::new(), (0, true, None))
            }
        }
    }

    /// The exit is recorded whatever becomes of the output: a full disk stops the output, not the ledger.
    fn keep(&self, shared: &Shared, ended: &Ended) -> What {
        let shown = shared.processes.output_so_far(&self.name(), self.shown_bytes_max).unwrap_or_else(|error| {
            tracing::error!(agent = %self.agent, task = %self.task, %error, "a command's output cannot be read");
            Excerpt::default()
        });
        let cut = shown.cut || ended.cut;
        let kept = if cut { self.keep_file(shared) } else { None };
        let (content, blob) = Content::new(shown.text);
        let blobs = shared.blobs.keep_large(blob.into_iter().collect()).unwrap_or_else(|error| {
            tracing::error!(agent = %self.agent, task = %self.task, %error, "a command's output cannot be kept");
            Vec::new()
        });
        let duration_ms = ended.duration_ms.unwrap_or(0);
        self.exited(ended.exit.clone(), duration_ms, content, blobs, (ended.output_bytes, cut, kept))
    }

    fn keep_file(&self, shared: &Shared) -> Option<Kept> {
        let cannot = |error: &dyn std::fmt::Display| {
            tracing::error!(agent = %self.agent, task = %self.task, %error, "a command's output cannot be kept");
        };
        let file = shared.processes.output_file(&self.name()).inspect_err(|error| cannot(error)).ok().flatten()?;
        let kept = shared.blobs.keep_file(&file, KEPT_BYTES_MAX).inspect_err(|error| cannot(error)).ok();
        kept.map(|(hash, bytes)| Kept { hash, bytes })
    }

    fn exited(
        &self,
        exit: Exit,
        duration_ms: u64,
        shown: Content,
        blobs: Vec<Blob>,
        (bytes, cut, kept): (u64, bool, Option<Kept>),
    ) -> What {
        let output = CommandOutput { shown, bytes, cut, kept };
        let command = TaskCommand::Exit { task: self.task, attempt: self.attempt, exit, duration_ms, output };
        What::Command { request: Request::new(command, Cause::Task(self.task)), blobs }
    }
}

/// What a command's absence is recorded with has its bound, whatever a path was like.
fn not_started(reason: &str) -> Exit {
    Exit::NotStarted(excerpt(reason, EXCERPT_BYTES_MAX).to_owned())
}

pub(in crate::runtime) fn shown_bytes_max(tokens: u32) -> usize {
    usize::try_from(u64::from(tokens) * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
}

/// What a running command has written so far, as a call is shown it.
pub(in crate::runtime) async fn shown_so_far(shared: Arc<Shared>, name: String, tokens: u32) -> (Shown, Vec<Blob>) {
    let read = move || {
        let shown = shared.processes.output_so_far(&name, shown_bytes_max(tokens)).unwrap_or_else(|error| {
            tracing::error!(agent = owner(&name), name, %error, "a command's output cannot be read");
            Excerpt::default()
        });
        let (text, blob) = Content::new(shown.text);
        let blobs = shared.blobs.keep_large(blob.into_iter().collect()).unwrap_or_else(|error| {
            tracing::error!(agent = owner(&name), name, %error, "a command's output cannot be kept");
            Vec::new()
        });
        (Shown { text, bytes: shown.bytes, cut: shown.cut }, blobs)
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a command's output cannot be read");
        (Shown { text: Content::from(""), bytes: 0, cut: true }, Vec::new())
    })
}

/// Asks a command to end, or not to begin; its end comes through its run.
pub(in crate::runtime) fn stop(shared: &Shared, execution: &Execution) {
    let name = &execution.name;
    if let Err(error) = shared.processes.stop(execution) {
        tracing::error!(agent = owner(name), name, %error, "a command cannot be told to end");
    }
}
