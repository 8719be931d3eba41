//! Task plane: managed execution. A command is recorded before it starts, and ends once (architecture 11).

use super::agent::ErrandOutcome;
use super::turn::UsageTotal;
use crate::events::call::ExecRequest;
use crate::events::queue::DerivedFrom;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{AgentId, Boot, EventSeq, RunId, TaskId, WorkId};

shape! {
    /// Where a task stands (semantics 5).
    pub enum TaskStatus { Queued, Running, Cancelling, Completed, Failed, Cancelled, Interrupted, }
}
names!(TaskStatus {
    Queued = "queued",
    Running = "running",
    Cancelling = "cancelling",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
    Interrupted = "interrupted",
});

shape! {
    /// A command line and how it is to be run.
    pub struct CommandSpec {
        cmd: String,
        /// Inside the execution root; the root itself when absent.
        workdir: Option<String>,
        /// The shell that reads `cmd`; `/bin/sh` when absent.
        shell: Option<String>,
        login: bool,
        /// Whether its standard input stays open for TaskInput.
        accepts_input: bool,
    }
}

shape! {
    /// What a command and all that it starts may use together: processes at once, bytes of memory.
    pub enum TreeLimit { Processes, Memory, }
}
names!(TreeLimit { Processes = "processes", Memory = "memory", });

impl TreeLimit {
    /// Why a command was ended that was beyond this limit.
    pub fn exceeded(self, max: u64) -> String {
        match self {
            Self::Processes => format!("ended by the runtime: it ran more than {max} processes at once"),
            Self::Memory => {
                format!("ended by the runtime: its processes used more than {max} bytes of memory together")
            }
        }
    }
}

shape! {
    /// How an execution ended.
    pub enum Exit {
        Code(i32),
        Signal(i32),
        /// It never ran; the text says why.
        NotStarted(String),
        /// Its end is unknown: it may or may not have taken effect.
        Lost,
        /// A child's report, and what it cost; the output is its text.
        Reported(UsageTotal),
        /// It was ended, because it and what it had started were together beyond a limit.
        LimitExceeded { limit: TreeLimit, max: u64, },
    }
}

shape! {
    /// The process that supervises a command, named so that another with the same number cannot be taken for it.
    pub struct Supervisor {
        pid: i32,
        /// Clock ticks between the machine's boot and the start of the process.
        start_time: u64,
        /// The machine's boot, by the kernel's random name for it.
        machine_boot: String,
    }
}

shape! {
    /// The whole kept output of an execution.
    pub struct Kept {
        hash: Hash,
        bytes: u64,
    }
}

shape! {
    /// What a command left behind.
    pub struct CommandOutput {
        /// As shown to whoever asked for the command: head and tail within its bound.
        shown: Content,
        /// Bytes the command wrote.
        bytes: u64,
        /// Whether `shown` leaves something out.
        cut: bool,
        /// The file of the kept output; none when `shown` is all there was.
        kept: Option<Kept>,
    }
}

shape! {
    /// The tool call that a task answers; `call` counts from 0 within the round.
    pub struct Caller {
        run: RunId,
        round: u32,
        call: u32,
    }
}

shape! {
    /// Whether a supervised child runs.
    #[derive(PartialOrd, Ord)]
    pub enum ChildLifecycle { Active, Stopped, Archived, }
}
names!(ChildLifecycle { Active = "active", Stopped = "stopped", Archived = "archived", });

shape! {
    /// Where a child works (control-plane seed, Workspace Projection Model).
    pub enum WorkspaceMode { Inherit, Worktree, ExplicitRoot, }
}
names!(WorkspaceMode { Inherit = "inherit", Worktree = "worktree", ExplicitRoot = "explicit_root", });

plane! {
    /// Facts about managed executions.
    TaskEvent {
        /// A command is owed.
        0x0501 task_create_requested 1 since "0.1.0" => CreateRequested(TaskCreateRequested) {
            task: TaskId,
            request: ExecRequest,
            /// A line for people.
            summary: String,
            /// The call that waits for it; none for a task of its own.
            caller: Option<Caller>,
            /// The work it serves.
            work: Option<WorkId>,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// The command is about to be run; its `event_seq` is the attempt's name. Durable before the spawn.
        0x0502 task_started 1 since "0.1.0" => Started(TaskStarted) {
            task: TaskId,
            boot: Boot,
            /// The digest of the public key with which its supervisor signs what it records.
            signer: Option<Hash>,
        }
        /// The command outlasted its call and goes on in the background.
        0x0503 task_promoted 1 since "0.1.0" => Promoted(TaskPromoted) {
            task: TaskId,
        }
        /// The command is to be ended.
        0x0504 task_stop_requested 1 since "0.1.0" => StopRequested(TaskStopRequested) {
            task: TaskId,
            reason: String,
        }
        /// The execution has ended.
        0x0505 task_exited 1 since "0.1.0" => Exited(TaskExited) {
            task: TaskId,
            attempt: Option<EventSeq>,
            status: TaskStatus,
            exit: Exit,
            output: CommandOutput,
        }
        /// A child agent was made, and is supervised by this handle.
        0x0506 task_child_spawned 1 since "0.1.0" => ChildSpawned(TaskChildSpawned) {
            task: TaskId,
            child: AgentId,
            summary: String,
            mode: WorkspaceMode,
            work: Option<WorkId>,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// Text is owed to the task's standard input, or to the child, from `offset` of all that it was given.
        0x0507 task_input_requested 1 since "0.1.0" => InputRequested(TaskInputRequested) {
            task: TaskId,
            text: Content,
            offset: u64,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// The text that the event `entry` owes was taken in, or is not wanted any more.
        0x0508 task_input_delivered 1 since "0.1.0" => InputDelivered(TaskInputDelivered) {
            task: TaskId,
            entry: EventSeq,
            outcome: ErrandOutcome,
        }
        /// A child is what its supervisor's lifecycle asks it to be.
        0x0509 child_directed 1 since "0.1.0" => ChildDirected(ChildDirected) {
            task: TaskId,
            lifecycle: ChildLifecycle,
            /// The event that asked for it.
            entry: EventSeq,
        }
        /// The command of an attempt has begun, under this supervisor.
        0x050a task_supervised 1 since "0.1.0" => Supervised(TaskSupervised) {
            task: TaskId,
            attempt: EventSeq,
            supervisor: Supervisor,
        }
    }
}
