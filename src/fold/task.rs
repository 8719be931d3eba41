//! The task plane: managed executions.
//!
//! | from                | event           | to      |
//! |---------------------|-----------------|---------|
//! | none                | CreateRequested | owed    |
//! | owed                | Started         | running |
//! | running             | Started         | running: the attempt before never began |
//! | owed, running       | Promoted        | same, in the background |
//! | owed, running       | StopRequested   | same, to be ended; one that is owed ends in the same commit |
//! | owed, running       | Exited          | none    |
//!
//! **Invariant:** an open task's attempt is the `event_seq` of the event that began it.

use super::{Illegal, Place};
use crate::events::task::{
    Caller, CommandOutput, CommandSpec, Exit, TaskCreateRequested, TaskEvent, TaskExited, TaskStarted, TaskStatus,
};
use crate::events::turn::ExecRequest;
use crate::words::id::{Boot, EventSeq, TaskId};
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
    pub request: ExecRequest,
    pub summary: String,
    pub caller: Option<Caller>,
    /// Whether it goes on in the background of the call that asked for it.
    pub promoted: bool,
    pub attempt: Option<Attempt>,
    /// Boots that began it.
    pub boots: u32,
    /// Why it is to be ended.
    pub stopping: Option<String>,
}

/// A run of a task's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub seq: EventSeq,
    pub at: Timestamp,
    pub boot: Boot,
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
        match (&self.stopping, self.attempt) {
            (Some(_), _) => TaskStatus::Cancelling,
            (None, Some(_)) => TaskStatus::Running,
            (None, None) => TaskStatus::Queued,
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
        let equal = |task: &Task| task.request.spec == *spec && !task.in_foreground() && task.stopping.is_none();
        self.open.iter().find(|(_, task)| equal(task)).map(|(id, _)| *id)
    }

    pub(super) fn evolve(&mut self, event: &TaskEvent, place: Place) -> Result<(), Illegal> {
        match event {
            TaskEvent::CreateRequested(event) => self.create(event, place),
            TaskEvent::Started(event) => self.open(event.task)?.start(event, place),
            TaskEvent::Promoted(event) => self.open(event.task)?.promote(),
            TaskEvent::StopRequested(event) => {
                self.open(event.task)?.stopping = Some(event.reason.clone());
                Ok(())
            }
            TaskEvent::Exited(event) => self.exit(event, place),
        }
    }

    fn open(&mut self, task: TaskId) -> Result<&mut Task, Illegal> {
        self.open.get_mut(&task).ok_or("the task is not open")
    }

    fn create(&mut self, event: &TaskCreateRequested, place: Place) -> Result<(), Illegal> {
        if event.task != self.last.next() {
            return Err("task ids go up by one");
        }
        self.last = event.task;
        let task = Task {
            requested: place.seq,
            requested_at: place.at,
            request: event.request.clone(),
            summary: event.summary.clone(),
            caller: event.caller.clone(),
            promoted: false,
            attempt: None,
            boots: 0,
            stopping: None,
        };
        self.open.insert(event.task, task);
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
    fn start(&mut self, event: &TaskStarted, place: Place) -> Result<(), Illegal> {
        if self.attempt.is_none_or(|attempt| attempt.boot != event.boot) {
            self.boots += 1;
        }
        self.attempt = Some(Attempt { seq: place.seq, at: place.at, boot: event.boot });
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
