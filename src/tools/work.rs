//! Tools of the work plane.

use super::{Tool, invalid, read, schema_of, text};
use crate::decide::profile::Family;
use crate::events::call::{Action, CallError, View};
use crate::events::work::{BlockerChange, PlanStatus, Todo, TodoStatus, WorkChange};
use crate::words::content::Blob;
use crate::words::id::WorkId;
use crate::words::limit::RECHECK_MS_DEFAULT;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "CreateWorkItem",
        family: Family::Core,
        description: "Open a work item: what you are to achieve, kept until it is completed. Takes the focus unless \
                      focus is false.",
        mutates: true,
        schema: schema_of::<CreateWorkItem>,
        read: |arguments, blobs| read::<CreateWorkItem>(arguments)?.action(blobs),
    },
    Tool {
        name: "UpdateWorkItem",
        family: Family::Core,
        description: "Alter a work item. Lists are replaced whole, what is absent stays. A blocker says what stands \
                      in the way and is looked at again after recheck_after_ms.",
        mutates: true,
        schema: schema_of::<UpdateWorkItem>,
        read: |arguments, blobs| read::<UpdateWorkItem>(arguments)?.action(blobs),
    },
    Tool {
        name: "PickWorkItem",
        family: Family::Core,
        description: "Take another open work item into focus.",
        mutates: true,
        schema: schema_of::<OneWorkItem>,
        read: |arguments, _| Ok(Action::PickWork { work: read::<OneWorkItem>(arguments)?.work()? }),
    },
    Tool {
        name: "ListWorkItems",
        family: Family::Core,
        description: "List work items with where they stand.",
        mutates: false,
        schema: schema_of::<ListWorkItems>,
        read: |arguments, _| {
            let with_completed = read::<ListWorkItems>(arguments)?.include_completed;
            Ok(Action::Look(View::WorkItems { with_completed }))
        },
    },
    Tool {
        name: "GetWorkItem",
        family: Family::Core,
        description: "Show a work item in full.",
        mutates: false,
        schema: schema_of::<OneWorkItem>,
        read: |arguments, _| Ok(Action::Look(View::WorkItem(read::<OneWorkItem>(arguments)?.work()?))),
    },
    Tool {
        name: "CompleteWorkItem",
        family: Family::Core,
        description: "Complete a work item, for good. Its report is result_summary, or the text of this round.",
        mutates: true,
        schema: schema_of::<CompleteWorkItem>,
        read: |arguments, blobs| read::<CompleteWorkItem>(arguments)?.action(blobs),
    },
];

/// Arguments of CreateWorkItem.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateWorkItem {
    /// What is to be achieved.
    objective: String,
    plan: Option<String>,
    todo_list: Option<Vec<TodoEntry>>,
    plan_status: Option<PlanStatusName>,
    /// What must hold for it to be done.
    acceptance: Option<String>,
    /// Whether other work, that of children included, must respect it.
    constraint: Option<bool>,
    /// Items that are to be done before, such as work-2.
    depends_on: Option<Vec<String>>,
    delivery_target: Option<String>,
    parent_work_item_id: Option<String>,
    /// Whether it takes the focus. True when absent.
    focus: Option<bool>,
}

/// Arguments of UpdateWorkItem.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateWorkItem {
    /// The item, such as work-2.
    work_item_id: String,
    objective: Option<String>,
    plan: Option<String>,
    todo_list: Option<Vec<TodoEntry>>,
    plan_status: Option<PlanStatusName>,
    acceptance: Option<String>,
    constraint: Option<bool>,
    depends_on: Option<Vec<String>>,
    delivery_target: Option<String>,
    parent_work_item_id: Option<String>,
    /// What stands in its way.
    blocker: Option<String>,
    /// Nothing stands in its way any more.
    #[serde(default)]
    clear_blocker: bool,
    /// When to look at the blocker again, in milliseconds. An hour when absent.
    recheck_after_ms: Option<u64>,
}

/// Arguments of CompleteWorkItem.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompleteWorkItem {
    /// The item, such as work-2.
    work_item_id: String,
    /// What came of it.
    result_summary: Option<String>,
}

/// Arguments of PickWorkItem and GetWorkItem.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneWorkItem {
    /// The item, such as work-2.
    work_item_id: String,
}

/// Arguments of ListWorkItems.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListWorkItems {
    #[serde(default)]
    include_completed: bool,
}

/// A step of a plan.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoEntry {
    text: String,
    status: TodoStatusName,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoStatusName {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanStatusName {
    Draft,
    Ready,
    NeedsInput,
}

impl CreateWorkItem {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        let focus = self.focus.unwrap_or(true);
        let change = WorkChange {
            objective: Some(self.objective),
            plan: self.plan.map(|plan| text("plan", plan, blobs)).transpose()?,
            todos: self.todo_list.map(todos),
            plan_status: self.plan_status.map(plan_status),
            acceptance: self.acceptance.map(|notes| text("acceptance", notes, blobs)).transpose()?,
            blocker: None,
            is_constraint: self.constraint,
            depends_on: self.depends_on.map(|items| works("depends_on", &items)).transpose()?,
            delivery_target: self.delivery_target,
            parent: self.parent_work_item_id.map(|id| work("parent_work_item_id", &id)).transpose()?,
        };
        Ok(Action::CreateWork { change, focus })
    }
}

impl UpdateWorkItem {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        let blocker = self.blocker_change()?;
        let change = WorkChange {
            objective: self.objective,
            plan: self.plan.map(|plan| text("plan", plan, blobs)).transpose()?,
            todos: self.todo_list.map(todos),
            plan_status: self.plan_status.map(plan_status),
            acceptance: self.acceptance.map(|notes| text("acceptance", notes, blobs)).transpose()?,
            blocker,
            is_constraint: self.constraint,
            depends_on: self.depends_on.map(|items| works("depends_on", &items)).transpose()?,
            delivery_target: self.delivery_target,
            parent: self.parent_work_item_id.map(|id| work("parent_work_item_id", &id)).transpose()?,
        };
        Ok(Action::UpdateWork { work: work("work_item_id", &self.work_item_id)?, change })
    }

    fn blocker_change(&self) -> Result<Option<BlockerChange>, CallError> {
        match (&self.blocker, self.clear_blocker) {
            (Some(_), true) => Err(invalid("clear_blocker", "is given with a blocker", "give one of the two")),
            (None, true) => Ok(Some(BlockerChange::Clear)),
            (None, false) if self.recheck_after_ms.is_some() => {
                Err(invalid("recheck_after_ms", "is given without a blocker", "say what stands in the way"))
            }
            (None, false) => Ok(None),
            (Some(text), false) => {
                let recheck_after_ms = self.recheck_after_ms.unwrap_or(RECHECK_MS_DEFAULT);
                Ok(Some(BlockerChange::Set { text: text.clone(), recheck_after_ms }))
            }
        }
    }
}

impl CompleteWorkItem {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        let report = self.result_summary.map(|report| text("result_summary", report, blobs)).transpose()?;
        Ok(Action::CompleteWork { work: work("work_item_id", &self.work_item_id)?, report })
    }
}

impl OneWorkItem {
    fn work(&self) -> Result<WorkId, CallError> {
        work("work_item_id", &self.work_item_id)
    }
}

pub(super) fn work(field: &str, id: &str) -> Result<WorkId, CallError> {
    id.parse()
        .map_err(|_| invalid(field, "is not a work item's id", "they look like work-2, as CreateWorkItem gave it"))
}

fn works(field: &str, ids: &[String]) -> Result<Vec<WorkId>, CallError> {
    ids.iter().map(|id| work(field, id)).collect()
}

fn todos(entries: Vec<TodoEntry>) -> Vec<Todo> {
    let status = |name: TodoStatusName| match name {
        TodoStatusName::Pending => TodoStatus::Pending,
        TodoStatusName::InProgress => TodoStatus::InProgress,
        TodoStatusName::Completed => TodoStatus::Completed,
    };
    entries.into_iter().map(|entry| Todo { text: entry.text, status: status(entry.status) }).collect()
}

fn plan_status(name: PlanStatusName) -> PlanStatus {
    match name {
        PlanStatusName::Draft => PlanStatus::Draft,
        PlanStatusName::Ready => PlanStatus::Ready,
        PlanStatusName::NeedsInput => PlanStatus::NeedsInput,
    }
}
