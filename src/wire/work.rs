//! Work items that are completed, and how a client alters one.

use super::message::{BodyError, says_trust};
use crate::events::work::{
    BlockerChange, PlanStatus, Todo, TodoStatus, WorkChange, WorkEvent, WorkItemCompleted, WorkItemCreated,
};
use crate::events::{Envelope, Event};
use crate::tools::view;
use crate::words::content::{Blob, Content};
use crate::words::id::{AgentId, WorkId};
use crate::words::limit::{CALL_TEXT_BYTES_MAX, RECHECK_MS_DEFAULT};
use serde::Deserialize;
use serde_json::{Value, json};

/// A completed item, told by the events that opened, altered and completed it.
pub fn completed<'a>(
    agent: &AgentId,
    first: &Envelope,
    altered: impl Iterator<Item = &'a Envelope>,
    last: &Envelope,
) -> Option<Value> {
    let Event::Work(WorkEvent::Created(WorkItemCreated { work, change, .. })) = &first.event else { return None };
    let Event::Work(WorkEvent::Completed(end)) = &last.event else { return None };
    let (mut change, mut revision) = (change.clone(), 1);
    for envelope in altered {
        if let Event::Work(WorkEvent::Updated(event)) = &envelope.event
            && event.work == *work
        {
            take_over(&mut change, &event.change);
            revision += 1;
        }
    }
    Some(shown(agent, *work, &change, revision, end, (first, last)))
}

/// What a later change says stands.
fn take_over(change: &mut WorkChange, later: &WorkChange) {
    fn take<T: Clone>(old: &mut Option<T>, new: Option<&T>) {
        if let Some(new) = new {
            *old = Some(new.clone());
        }
    }
    take(&mut change.objective, later.objective.as_ref());
    take(&mut change.plan, later.plan.as_ref());
    take(&mut change.todos, later.todos.as_ref());
    take(&mut change.plan_status, later.plan_status.as_ref());
    take(&mut change.acceptance, later.acceptance.as_ref());
    take(&mut change.is_constraint, later.is_constraint.as_ref());
    take(&mut change.depends_on, later.depends_on.as_ref());
    take(&mut change.delivery_target, later.delivery_target.as_ref());
    take(&mut change.parent, later.parent.as_ref());
}

fn shown(
    agent: &AgentId,
    work: WorkId,
    change: &WorkChange,
    revision: u32,
    end: &WorkItemCompleted,
    (first, last): (&Envelope, &Envelope),
) -> Value {
    let todos = change.todos.iter().flatten().map(|todo| json!({"text": todo.text, "status": todo.status}));
    json!({
        "id": work,
        "agent_id": agent,
        "objective": change.objective,
        "state": "completed",
        "scheduling": "completed",
        "is_current": false,
        "plan": change.plan.as_ref().map(view::text),
        "plan_status": change.plan_status.unwrap_or(PlanStatus::Draft),
        "todo_list": todos.collect::<Vec<_>>(),
        "todos_unfinished": end.todos_unfinished,
        "acceptance": change.acceptance.as_ref().map(view::text),
        "revision": revision,
        "constraint": change.is_constraint.unwrap_or(false),
        "depends_on": change.depends_on.clone().unwrap_or_default(),
        "delivery_target": change.delivery_target,
        "parent_work_item_id": change.parent,
        "result_summary": view::text(&end.report),
        "created_at": first.at,
        "updated_at": last.at,
        "completed_at": last.at,
    })
}

/// `POST /control/agents/:id/work-items`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateBody {
    objective: String,
    trust: Option<String>,
}

says_trust!(CreateBody, UpdateBody);

/// `POST /control/agents/:id/work-items/:wid/update`: what is absent stays.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpdateBody {
    objective: Option<String>,
    plan: Option<String>,
    todo_list: Option<Vec<TodoBody>>,
    plan_status: Option<String>,
    acceptance: Option<String>,
    constraint: Option<bool>,
    depends_on: Option<Vec<WorkId>>,
    delivery_target: Option<String>,
    parent_work_item_id: Option<WorkId>,
    /// What stands in its way; an empty text clears it.
    blocked_by: Option<String>,
    recheck_after_ms: Option<u64>,
    trust: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TodoBody {
    text: String,
    status: String,
}

impl CreateBody {
    /// What the item begins with.
    pub fn change(self) -> Result<WorkChange, BodyError> {
        let objective = Some(self.objective.trim().to_owned());
        Ok(UpdateBody { objective, ..UpdateBody::default() }.change()?.0)
    }
}

impl UpdateBody {
    /// The change, and the texts that are stored beside it.
    pub fn change(self) -> Result<(WorkChange, Vec<Blob>), BodyError> {
        let mut blobs = Vec::new();
        let blocker = self.blocker()?;
        let change = WorkChange {
            objective: self.objective,
            plan: self.plan.map(|plan| long_text("plan", plan, &mut blobs)).transpose()?,
            todos: self.todo_list.map(|todos| todos.into_iter().map(TodoBody::todo).collect()).transpose()?,
            plan_status: self.plan_status.as_deref().map(plan_status).transpose()?,
            acceptance: self.acceptance.map(|notes| long_text("acceptance", notes, &mut blobs)).transpose()?,
            blocker,
            is_constraint: self.constraint,
            depends_on: self.depends_on,
            delivery_target: self.delivery_target,
            parent: self.parent_work_item_id,
        };
        Ok((change, blobs))
    }

    fn blocker(&self) -> Result<Option<BlockerChange>, BodyError> {
        match (self.blocked_by.as_deref(), self.recheck_after_ms) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(invalid("recheck_after_ms", "is given without blocked_by")),
            (Some(""), _) => Ok(Some(BlockerChange::Clear)),
            (Some(text), after_ms) => {
                let recheck_after_ms = after_ms.unwrap_or(RECHECK_MS_DEFAULT);
                Ok(Some(BlockerChange::Set { text: text.to_owned(), recheck_after_ms }))
            }
        }
    }
}

impl TodoBody {
    fn todo(self) -> Result<Todo, BodyError> {
        let status = TodoStatus::from_name(&self.status).ok_or_else(|| {
            let names = TodoStatus::NAMES.join(", ");
            invalid("todo_list", format!("has a status {:?}, which is none of {names}", self.status))
        })?;
        Ok(Todo { text: self.text, status })
    }
}

fn plan_status(name: &str) -> Result<PlanStatus, BodyError> {
    let names = || format!("is one of {}", PlanStatus::NAMES.join(", "));
    PlanStatus::from_name(name).ok_or_else(|| invalid("plan_status", names()))
}

/// A text that is stored beside its event where it does not fit in.
pub fn long_text(field: &'static str, text: String, blobs: &mut Vec<Blob>) -> Result<Content, BodyError> {
    if text.len() > CALL_TEXT_BYTES_MAX {
        return Err(invalid(field, format!("is longer than {CALL_TEXT_BYTES_MAX} bytes")));
    }
    let (content, blob) = Content::new(text);
    blobs.extend(blob);
    Ok(content)
}

fn invalid(field: &'static str, reason: impl Into<String>) -> BodyError {
    BodyError::Invalid { field, reason: reason.into() }
}
