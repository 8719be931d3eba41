//! Tool calls: what a model asks for, read from its arguments, and what came of it.
//!
//! A call of the control plane commits with its effect and its result. One that needs the outside is begun by an
//! event of its own first (architecture 11, 12).

use crate::events::agent::Preset;
use crate::events::task::{CommandSpec, Exit, TaskStatus, WorkspaceMode};
use crate::events::waiting::DeliveryMode;
use crate::events::work::WorkChange;
use crate::events::workspace::WorkspaceName;
use crate::words::content::Content;
use crate::words::id::{AgentId, MessageId, NoticeId, TaskId, TimerId, TriggerId, WaitId, WorkId, WorkspaceId};

shape! {
    /// A request for a managed command, as a tool call or an operator makes it.
    pub struct ExecRequest {
        spec: CommandSpec,
        /// How long the call waits before it answers with a task handle.
        yield_ms: u64,
        /// Output shown in the answer.
        shown_tokens: u32,
        /// Whether an equal command that runs already is answered with its handle.
        reuse_running: bool,
        /// A line for people, if it was given one.
        summary: Option<String>,
    }
}

shape! {
    /// A tool call's refusal, in terms a model can act on.
    pub struct CallError {
        /// A stable code, such as `invalid_tool_input`.
        kind: String,
        field: Option<String>,
        message: String,
        hint: Option<String>,
    }
}

shape! {
    /// What WaitFor waits for.
    pub enum WaitFor {
        OperatorInput,
        TaskResult(TaskId),
        External { resource: Option<String>, },
        Timer { after_ms: u64, },
    }
}

shape! {
    /// What a child begins with of its parent's context (control-plane seed, Fresh versus forked).
    pub enum ContextMode { Fresh, Fork, }
}
names!(ContextMode { Fresh = "fresh", Fork = "fork", });

shape! {
    /// What SpawnAgent asks for.
    pub struct SpawnRequest {
        preset: Preset,
        initial_message: Option<Content>,
        /// For a public agent, as the caller chose it.
        agent_id: Option<AgentId>,
        context: ContextMode,
        mode: WorkspaceMode,
        /// For `explicit_root`.
        workspace_root: Option<String>,
    }
}

shape! {
    /// A part of the agent's state, or of what has left it, that a call looks at.
    pub enum View {
        Agent,
        Tasks,
        Task(TaskId),
        WorkItems { with_completed: bool, },
        WorkItem(WorkId),
        Timers,
        Memory { entry: Option<String>, },
    }
}

shape! {
    /// What a tool call asks for, read from its arguments.
    pub enum Action {
        Exec(ExecRequest),
        /// `offset`: the byte to begin at, for paging; the head and tail when absent. `wait_ms`: how long to wait for
        /// the end when it still runs.
        TaskOutput { task: TaskId, offset: Option<u64>, wait_ms: u64, shown_tokens: u32, },
        TaskInput { task: TaskId, text: Content, },
        TaskStop { task: TaskId, },
        Sleep { reason: Option<String>, },
        WaitFor {
            wake: WaitFor,
            reason: String,
            work: Option<WorkId>,
            recheck_after_ms: Option<u64>,
            no_fallback_reason: Option<String>,
        },
        CreateTimer { duration_ms: u64, interval_ms: Option<u64>, summary: Option<String>, },
        CancelTimer { timer: TimerId, },
        CreateTrigger { mode: DeliveryMode, label: String, work: Option<WorkId>, },
        CancelTrigger { trigger: TriggerId, },
        CreateWork { change: WorkChange, focus: bool, },
        UpdateWork { work: WorkId, change: WorkChange, },
        PickWork { work: WorkId, },
        CompleteWork { work: WorkId, report: Option<Content>, },
        UpdateMemory { entry: String, text: Option<Content>, work: Option<WorkId>, },
        Enqueue { text: Content, },
        Notify { text: Content, },
        Look(View),
        ReadFile { path: String, first_line: u64, lines_max: u32, },
        SearchFiles { pattern: String, path: Option<String>, glob: Option<String>, matches_max: u32, },
        ApplyPatch { patch: Content, },
        UseWorkspace { workspace: WorkspaceName, cwd: Option<String>, },
        AttachWorkspace { path: String, },
        DetachWorkspace { workspace: WorkspaceId, },
        Spawn(SpawnRequest),
        /// The arguments could not be read, or the tool is not there.
        Refused(CallError),
    }
}

shape! {
    /// A tool call of a model round.
    pub struct Call {
        /// The model's own name for it.
        id: String,
        tool: String,
        action: Action,
    }
}

shape! {
    /// Output of a command, or what a call has read, as it is shown, and how much there was.
    pub struct Shown {
        text: Content,
        /// Bytes of the whole.
        bytes: u64,
        /// Whether `text` leaves something out.
        cut: bool,
    }
}

shape! {
    /// How a file changed.
    pub enum FileChange { Created, Modified, Deleted, Renamed, }
}
names!(FileChange { Created = "created", Modified = "modified", Deleted = "deleted", Renamed = "renamed", });

shape! {
    /// A file that a patch changed.
    pub struct PatchedFile {
        path: String,
        change: FileChange,
        added: u32,
        removed: u32,
    }
}

shape! {
    /// What a tool call came to.
    pub enum CallResult {
        /// The command ended in time.
        Exited { task: TaskId, exit: Exit, duration_ms: u64, output: Shown, },
        /// The command goes on as a task.
        Promoted { task: TaskId, output: Shown, },
        /// An equal command runs already.
        AlreadyRunning { task: TaskId, },
        /// A task's output; its end when it has one.
        TaskOutput { task: TaskId, status: TaskStatus, exit: Option<Exit>, output: Shown, },
        TaskInput { task: TaskId, bytes: u64, },
        TaskStop { task: TaskId, status: TaskStatus, },
        /// The turn ends after this round.
        Slept,
        /// The turn ends after this round; the wait goes on.
        Waiting { wait: WaitId, },
        TimerSet { timer: TimerId, },
        TimerCancelled { timer: TimerId, },
        /// `file`: where the capability URL is to be found, readable by the agent's commands alone.
        TriggerCreated { trigger: TriggerId, file: String, },
        TriggerRevoked { trigger: TriggerId, },
        /// `notes`: what the caller should know, such as todos left open.
        WorkWritten { work: WorkId, revision: u32, notes: Vec<String>, },
        MemoryWritten { entry: String, },
        Enqueued { message: MessageId, },
        Notified { notice: NoticeId, },
        /// What a call looked at: a JSON object.
        Viewed(Shown),
        Patched { files: Vec<PatchedFile>, },
        InWorkspace { workspace: WorkspaceName, root: Option<String>, cwd: String, },
        Detached { workspace: WorkspaceId, },
        Spawned { agent: AgentId, task: Option<TaskId>, },
        /// It was under way when the runtime went down: it may or may not have taken effect.
        Interrupted,
        Refused(CallError),
    }
}

impl CallResult {
    /// What the result shows, if it shows anything.
    pub fn shown(&self) -> Option<&Shown> {
        match self {
            Self::Exited { output, .. }
            | Self::Promoted { output, .. }
            | Self::TaskOutput { output, .. }
            | Self::Viewed(output) => Some(output),
            Self::AlreadyRunning { .. }
            | Self::TaskInput { .. }
            | Self::TaskStop { .. }
            | Self::Slept
            | Self::Waiting { .. }
            | Self::TimerSet { .. }
            | Self::TimerCancelled { .. }
            | Self::TriggerCreated { .. }
            | Self::TriggerRevoked { .. }
            | Self::WorkWritten { .. }
            | Self::MemoryWritten { .. }
            | Self::Enqueued { .. }
            | Self::Notified { .. }
            | Self::Patched { .. }
            | Self::InWorkspace { .. }
            | Self::Detached { .. }
            | Self::Spawned { .. }
            | Self::Interrupted
            | Self::Refused(_) => None,
        }
    }

    /// Whether the turn ends after the round of this call.
    pub fn yields(&self) -> bool {
        matches!(self, Self::Slept | Self::Waiting { .. })
    }
}
