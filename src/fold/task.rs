//! The task plane: managed executions.
//!
//! | from                | event           | to      |
//! |---------------------|-----------------|---------|
//! | none                | CreateRequested | owed    |
//! | owed                | Started         | running |
//! | running             | Started         | running: the attempt before never began |
//! | running             | Supervised      | running, and who supervises it is known: it has begun |
//! | owed, running       | Promoted        | same, in the background |
//! | owed, running       | StopRequested   | same, to be ended; one that is owed ends in the same commit |
//! | owed, running       | Exited          | none    |
//! | none                | ChildSpawned    | running: a child agent |
//! | running             | ChildDirected   | running, the child as directed |
//! | running             | InputRequested  | running, input owed |
//! | running             | InputDelivered  | running |
//!
//! **Invariant:** an open task's attempt is the `event_seq` of the event that began it.

use super::agent::Agent;
use super::{Illegal, Place};
use crate::events::call::ExecRequest;
use crate::events::queue::DerivedFrom;
use crate::events::task::{
    Caller, ChildLifecycle, CommandOutput, CommandSpec, Exit, Supervisor, TaskChildSpawned, TaskCreateRequested,
    TaskEvent, TaskExited, TaskInputRequested, TaskStarted, TaskStatus, TaskSupervised, WorkspaceMode,
};
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq, TaskId, WorkId};
use crate::words::limit::TASKS_ENDED_KEPT_MAX;
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// The id given last.
    pub last: TaskId,
    pub open: BTreeMap<TaskId, Task>,
    /// The tasks that ended last, for whoever asks for their output; older ones are found through the store.
    pub ended: VecDeque<Ended>,
}

/// A task that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub requested: EventSeq,
    pub requested_at: Timestamp,
    pub job: Job,
    pub summary: String,
    pub caller: Option<Caller>,
    /// Whether it goes on in the background of the call that asked for it.
    pub promoted: bool,
    pub attempt: Option<Attempt>,
    /// Boots that began it.
    pub boots: u32,
    /// Why it is to be ended.
    pub stopping: Option<String>,
    /// The event that asked for its end.
    pub stop_seq: EventSeq,
    /// The work it serves.
    pub work: Option<WorkId>,
    /// Input that is owed to it, by the events that asked for it.
    pub inputs: BTreeMap<EventSeq, Input>,
    /// Bytes of all input that was asked for.
    pub input_bytes: u64,
    /// Who supervises the attempt; none until its command is known to have begun.
    pub supervisor: Option<Supervisor>,
    /// What it was asked for on.
    pub derived: DerivedFrom,
}

/// What a task manages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    Command(ExecRequest),
    Child(Child),
}

/// A supervised child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub agent: AgentId,
    pub mode: WorkspaceMode,
    /// What it was directed to be last.
    pub lifecycle: ChildLifecycle,
    /// The event that asked for that.
    pub directed: EventSeq,
}

/// Input that is owed to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub text: Content,
    /// Its place in all input of the task.
    pub offset: u64,
    pub derived: DerivedFrom,
}

/// A run of a task's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub seq: EventSeq,
    pub at: Timestamp,
    pub boot: Boot,
    /// The digest of the key with which its supervisor signs.
    pub signer: Option<Hash>,
}

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub task: TaskId,
    pub seq: EventSeq,
    pub status: TaskStatus,
    pub exit: Exit,
    pub output: CommandOutput,
}

impl Task {
    pub fn status(&self) -> TaskStatus {
        match (&self.stopping, &self.job, self.attempt) {
            (Some(_), ..) => TaskStatus::Cancelling,
            (None, Job::Child(_), _) | (None, Job::Command(_), Some(_)) => TaskStatus::Running,
            (None, Job::Command(_), None) => TaskStatus::Queued,
        }
    }

    /// The command that it runs, if it runs one.
    pub fn command(&self) -> Option<&ExecRequest> {
        match &self.job {
            Job::Command(request) => Some(request),
            Job::Child(_) => None,
        }
    }

    /// The child that it supervises, if it does.
    pub fn child(&self) -> Option<&Child> {
        match &self.job {
            Job::Command(_) => None,
            Job::Child(child) => Some(child),
        }
    }

    /// What the child is to be, and the event that asks for it: it follows its supervisor, and ends with its handle.
    pub fn direction(&self, supervisor: &Agent) -> (ChildLifecycle, EventSeq) {
        match self.stopping {
            Some(_) => (ChildLifecycle::Archived, self.stop_seq),
            None => (supervisor.lifecycle.of_children(), supervisor.children_seq),
        }
    }

    /// The kind's name on the wire.
    pub fn kind(&self) -> &'static str {
        match self.job {
            Job::Command(_) => "command_task",
            Job::Child(_) => "child_agent_task",
        }
    }

    /// Whether a call of a running turn waits for it.
    pub fn in_foreground(&self) -> bool {
        self.caller.is_some() && !self.promoted
    }
}

impl Tasks {
    pub fn ended(&self, task: TaskId) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.task == task)
    }

    /// A background task that runs just this command.
    pub fn running(&self, spec: &CommandSpec) -> Option<TaskId> {
        let runs_it = |task: &Task| task.command().is_some_and(|request| request.spec == *spec);
        let equal = |task: &Task| runs_it(task) && !task.in_foreground() && task.stopping.is_none();
        self.open.iter().find(|(_, task)| equal(task)).map(|(id, _)| *id)
    }

    pub(super) fn evolve(&mut self, event: &TaskEvent, place: Place) -> Result<(), Illegal> {
        match event {
            TaskEvent::CreateRequested(event) => self.create(event, place),
            TaskEvent::Started(event) => self.open(event.task)?.start(event, place),
            TaskEvent::Supervised(event) => self.open(event.task)?.supervise(event),
            TaskEvent::Promoted(event) => self.open(event.task)?.promote(),
            TaskEvent::StopRequested(event) => {
                let task = self.open(event.task)?;
                (task.stopping, task.stop_seq) = (Some(event.reason.clone()), place.seq);
                Ok(())
            }
            TaskEvent::Exited(event) => self.exit(event, place),
            TaskEvent::ChildSpawned(event) => self.spawn(event, place),
            TaskEvent::InputRequested(event) => self.open(event.task)?.request_input(event, place),
            TaskEvent::InputDelivered(event) => {
                let task = self.open(event.task)?;
                task.inputs.remove(&event.entry).map(drop).ok_or("the input is not owed")
            }
            TaskEvent::ChildDirected(event) => match &mut self.open(event.task)?.job {
                Job::Child(child) => {
                    (child.lifecycle, child.directed) = (event.lifecycle, event.entry);
                    Ok(())
                }
                Job::Command(_) => Err("the task is no child's"),
            },
        }
    }

    fn open(&mut self, task: TaskId) -> Result<&mut Task, Illegal> {
        self.open.get_mut(&task).ok_or("the task is not open")
    }

    fn create(&mut self, event: &TaskCreateRequested, place: Place) -> Result<(), Illegal> {
        let mut task = Task::new(Job::Command(event.request.clone()), event.summary.clone(), event.work, place);
        task.derived = DerivedFrom::or_operator(event.derived_from.as_ref());
        task.caller.clone_from(&event.caller);
        self.insert(event.task, task)
    }

    fn spawn(&mut self, event: &TaskChildSpawned, place: Place) -> Result<(), Illegal> {
        let (lifecycle, directed) = (ChildLifecycle::Active, place.seq);
        let child = Child { agent: event.child.clone(), mode: event.mode, lifecycle, directed };
        let mut task = Task::new(Job::Child(child), event.summary.clone(), event.work, place);
        task.derived = DerivedFrom::or_operator(event.derived_from.as_ref());
        self.insert(event.task, task)
    }

    fn insert(&mut self, id: TaskId, task: Task) -> Result<(), Illegal> {
        if id != self.last.next() {
            return Err("task ids go up by one");
        }
        self.last = id;
        self.open.insert(id, task);
        Ok(())
    }

    fn exit(&mut self, event: &TaskExited, place: Place) -> Result<(), Illegal> {
        let task = self.open.remove(&event.task).ok_or("the task is not open")?;
        if task.attempt.map(|attempt| attempt.seq) != event.attempt {
            return Err("the exit is another attempt's");
        }
        if self.ended.len() == TASKS_ENDED_KEPT_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended {
            task: event.task,
            seq: place.seq,
            status: event.status,
            exit: event.exit.clone(),
            output: event.output.clone(),
        });
        Ok(())
    }
}

impl Task {
    fn new(job: Job, summary: String, work: Option<WorkId>, place: Place) -> Self {
        Self {
            requested: place.seq,
            requested_at: place.at,
            job,
            summary,
            caller: None,
            promoted: false,
            attempt: None,
            boots: 0,
            stopping: None,
            stop_seq: EventSeq::ZERO,
            work,
            inputs: BTreeMap::new(),
            input_bytes: 0,
            supervisor: None,
            derived: DerivedFrom::or_operator(None),
        }
    }

    fn request_input(&mut self, event: &TaskInputRequested, place: Place) -> Result<(), Illegal> {
        if event.offset != self.input_bytes {
            return Err("input follows input");
        }
        self.input_bytes += event.text.bytes();
        let derived = DerivedFrom::or_operator(event.derived_from.as_ref());
        self.inputs.insert(place.seq, Input { text: event.text.clone(), offset: event.offset, derived });
        Ok(())
    }

    fn start(&mut self, event: &TaskStarted, place: Place) -> Result<(), Illegal> {
        if self.attempt.is_none_or(|attempt| attempt.boot != event.boot) {
            self.boots += 1;
        }
        self.attempt = Some(Attempt { seq: place.seq, at: place.at, boot: event.boot, signer: event.signer });
        self.supervisor = None;
        Ok(())
    }

    fn supervise(&mut self, event: &TaskSupervised) -> Result<(), Illegal> {
        if self.attempt.map(|attempt| attempt.seq) != Some(event.attempt) {
            return Err("the supervisor is another attempt's");
        }
        if self.supervisor.replace(event.supervisor.clone()).is_some() {
            return Err("an attempt has one supervisor");
        }
        Ok(())
    }

    fn promote(&mut self) -> Result<(), Illegal> {
        if !self.in_foreground() {
            return Err("only a task that a call waits for is promoted");
        }
        self.promoted = true;
        Ok(())
    }
}
