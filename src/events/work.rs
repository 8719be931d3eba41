//! Work plane: what the agent is trying to achieve (control-plane seed, WorkItem).

use crate::events::queue::DerivedFrom;
use crate::words::content::Content;
use crate::words::id::WorkId;

shape! {
    /// How far the plan of a work item has come.
    pub enum PlanStatus {
        Draft,
        Ready,
        /// The operator has to say something first.
        NeedsInput,
    }
}
names!(PlanStatus { Draft = "draft", Ready = "ready", NeedsInput = "needs_input", });

shape! {
    pub enum TodoStatus { Pending, InProgress, Completed, }
}
names!(TodoStatus { Pending = "pending", InProgress = "in_progress", Completed = "completed", });

shape! {
    /// A step of a work item's plan.
    pub struct Todo {
        text: String,
        status: TodoStatus,
    }
}

shape! {
    /// What stands in a work item's way, without a wait for it.
    pub enum BlockerChange {
        /// The agent looks at it again when `recheck_after_ms` have passed since the event.
        Set { text: String, recheck_after_ms: u64, },
        Clear,
    }
}

shape! {
    /// What is altered of a work item; what is none stays. Lists are replaced whole, and empty texts clear.
    pub struct WorkChange {
        objective: Option<String>,
        plan: Option<Content>,
        todos: Option<Vec<Todo>>,
        plan_status: Option<PlanStatus>,
        acceptance: Option<Content>,
        blocker: Option<BlockerChange>,
        /// Whether other work, that of children included, must respect it.
        is_constraint: Option<bool>,
        depends_on: Option<Vec<WorkId>>,
        /// What the result is delivered to, such as a repository or a ticket.
        delivery_target: Option<String>,
        parent: Option<WorkId>,
    }
}

plane! {
    /// Facts about work.
    WorkEvent {
        /// A work item was opened. `change` holds what it begins with, its objective included.
        0x0401 work_item_created 1 since "0.1.0" => Created(WorkItemCreated) {
            work: WorkId,
            change: WorkChange,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// A work item was altered; its revision goes up by one.
        0x0402 work_item_updated 1 since "0.1.0" => Updated(WorkItemUpdated) {
            work: WorkId,
            change: WorkChange,
            /// What it rests on; none when the operator asked for it.
            derived_from: Option<DerivedFrom>,
        }
        /// The agent's focus moved.
        0x0403 work_item_picked 1 since "0.1.0" => Picked(WorkItemPicked) {
            work: WorkId,
        }
        /// The work is done, for good.
        0x0404 work_item_completed 1 since "0.1.0" => Completed(WorkItemCompleted) {
            work: WorkId,
            /// The completion report.
            report: Content,
            todos_unfinished: u32,
        }
        /// Runnable work is continued by a tick of its own.
        0x0405 work_item_continued 1 since "0.1.0" => Continued(WorkItemContinued) {
            work: WorkId,
        }
        /// Continuations changed nothing: the item waits for news, visibly (semantics 4).
        0x0406 work_item_held 1 since "0.1.0" => Held(WorkItemHeld) {
            work: WorkId,
            /// A stable code, such as `no_progress`.
            reason: String,
        }
        /// The times to look at blockers again have come; each is over with this.
        0x0407 work_item_recheck_consumed 1 since "0.1.0" => Rechecked(WorkItemRechecked) {
            work: Vec<WorkId>,
        }
    }
}
