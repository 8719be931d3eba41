//! The records of the planes, one kind like another: listed page by page, and told one by one.
//!
//! What is open is in the state, and what has ended is found through the store.

use super::Shared;
use super::extract::{Agent, Nothing, Query, Rid, malformed};
use super::reply::{Failure, Reply, page};
use crate::decide::Rejection;
use crate::events::Envelope;
use crate::fold::AgentState;
use crate::fold::row::{RecordKind, RecordRow};
use crate::ledger::Store;
use crate::ledger::reader::{self, ReadError};
use crate::tools::view;
use crate::wire::{binding, record, waiting, work};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, BindingId, EventSeq, NoticeId, TaskId, TimerId, TriggerId, WaitId, WorkId};
use crate::words::limit::{PAGE_DEFAULT, PAGE_MAX};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Events before its completion from which a work item is told; what was written earlier is told as it began.
const WORK_EVENTS_MAX: u64 = 512;

/// A kind of record.
pub(super) struct Kind {
    record: RecordKind,
    /// As refusals name it.
    what: &'static str,
    path: &'static str,
    number: fn(&str) -> Option<u64>,
    /// The numbers of those that are open, the highest first.
    open: fn(&AgentState) -> Vec<u64>,
    open_one: fn(&AgentState, u64) -> Option<Value>,
    ended: Ended,
}

/// Tells a record from where its events lie.
type Ended = fn(&dyn Store, &AgentId, &RecordRow) -> Result<Option<Value>, ReadError>;

pub(super) const WORK_ITEMS: Kind = Kind {
    record: RecordKind::Work,
    what: "work item",
    path: "work-items",
    number: |id| number(id, |WorkId(number)| number),
    open: |state| state.works.open.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = WorkId(number);
        Some(view::work(state, id, state.works.open.get(&id)?))
    },
    ended: completed_work,
};

pub(super) const TASKS: Kind = Kind {
    record: RecordKind::Task,
    what: "task",
    path: "tasks",
    number: |id| number(id, |TaskId(number)| number),
    open: |state| state.tasks.open.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = TaskId(number);
        Some(record::open_task(&state.agent_id, id, state.tasks.open.get(&id)?))
    },
    ended: |store, agent, row| told(store, agent, row, record::ended_task),
};

pub(super) const TIMERS: Kind = Kind {
    record: RecordKind::Timer,
    what: "timer",
    path: "timers",
    number: |id| number(id, |TimerId(number)| number),
    open: |state| state.waiting.timers.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = TimerId(number);
        Some(waiting::timer(&state.agent_id, id, state.waiting.timers.get(&id)?))
    },
    ended: |store, agent, row| told(store, agent, row, waiting::ended_timer),
};

pub(super) const WAITS: Kind = Kind {
    record: RecordKind::Wait,
    what: "wait",
    path: "waits",
    number: |id| number(id, |WaitId(number)| number),
    open: |state| state.waiting.waits.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = WaitId(number);
        Some(waiting::wait(&state.agent_id, id, state.waiting.waits.get(&id)?))
    },
    ended: |store, agent, row| told(store, agent, row, waiting::ended_wait),
};

pub(super) const TRIGGERS: Kind = Kind {
    record: RecordKind::Trigger,
    what: "external trigger",
    path: "external-triggers",
    number: |id| number(id, |TriggerId(number)| number),
    open: |state| state.waiting.triggers.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = TriggerId(number);
        Some(waiting::trigger(&state.agent_id, id, state.waiting.triggers.get(&id)?))
    },
    ended: |store, agent, row| told(store, agent, row, waiting::revoked_trigger),
};

pub(super) const BINDINGS: Kind = Kind {
    record: RecordKind::Binding,
    what: "operator binding",
    path: "operator-bindings",
    number: |id| number(id, |BindingId(number)| number),
    open: |state| state.bindings.open.keys().rev().map(|id| id.0).collect(),
    open_one: |state, number| {
        let id = BindingId(number);
        Some(binding::binding(&state.agent_id, id, state.bindings.open.get(&id)?))
    },
    ended: |store, agent, row| told(store, agent, row, binding::revoked_binding),
};

const NOTICES: Kind = Kind {
    record: RecordKind::Notice,
    what: "operator notification",
    path: "operator-notifications",
    number: |id| number(id, |NoticeId(number)| number),
    open: |_| Vec::new(),
    open_one: |_, _| None,
    ended: |store, agent, row| told(store, agent, row, record::told_notice),
};

const ALL: [&Kind; 7] = [&WORK_ITEMS, &TASKS, &TIMERS, &WAITS, &TRIGGERS, &BINDINGS, &NOTICES];

pub(super) fn routes() -> Router<Shared> {
    let routes = |router: Router<Shared>, kind: &'static Kind| {
        let listed = move |State(app): State<Shared>, Agent(id): Agent, Query(query): Query<PageQuery>| async move {
            list(kind, &app, &id, &query).await
        };
        let told = move |State(app): State<Shared>, Agent(id): Agent, Rid(rid): Rid, _: Query<Nothing>| async move {
            one(kind, &app, &id, &rid).await
        };
        let path = format!("/agents/{{id}}/{}", kind.path);
        router.route(&path, get(listed)).route(&format!("{path}/{{rid}}"), get(told))
    };
    ALL.into_iter().fold(Router::new(), routes)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    limit: Option<usize>,
    /// From the link to the page before.
    cursor: Option<String>,
}

/// The last record of the page before. One that has ended since is told of again, and none is left out.
#[derive(Clone, Copy)]
enum Cursor {
    Open(u64),
    Ended(u64),
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, Failure> {
        let number = |rest: &str| rest.parse().ok();
        let (open, ended) = (text.strip_prefix("open-"), text.strip_prefix("ended-"));
        let cursor = open.and_then(number).map(Self::Open).or_else(|| ended.and_then(number).map(Self::Ended));
        cursor.ok_or_else(|| malformed("invalid_cursor", "a cursor is taken from the link to the next page"))
    }

    fn text(self) -> String {
        match self {
            Self::Open(number) => format!("open-{number}"),
            Self::Ended(number) => format!("ended-{number}"),
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Open(number) | Self::Ended(number) => number,
        }
    }
}

/// What is open, then what has ended, each the newest first.
async fn list(kind: &'static Kind, app: &Shared, id: &AgentId, query: &PageQuery) -> Result<Response, Failure> {
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let cursor = query.cursor.as_deref().map(Cursor::parse).transpose()?;
    let mut found = app.handle.read(id, move |state| kind.open_after(state, cursor, limit + 1)).await?;
    let (ledger_id, missing) = (id.clone(), limit + 1 - found.len());
    let ended = app.handle.ledger(id, move |store| kind.ended_after(store, &ledger_id, cursor, missing)).await?;
    for (at, value) in ended {
        // One that ended between the two looks is among the open ones.
        if !found.iter().any(|(open, _)| open.number() == at.number()) {
            found.push((at, value));
        }
    }
    let last = found.get(limit - 1).filter(|_| found.len() > limit).map(|(at, _)| at.text());
    let next = last.map(|cursor| format!("/agents/{id}/{}?limit={limit}&cursor={cursor}", kind.path));
    page(found.into_iter().take(limit).map(|(_, value)| value).collect(), next)
}

/// One record, its longer texts included.
pub(super) async fn one(kind: &'static Kind, app: &Shared, id: &AgentId, rid: &str) -> Reply {
    let number = (kind.number)(rid);
    let unknown = || Rejection::Unknown { what: kind.what, id: rid.to_owned() };
    let open = app.handle.read(id, move |state| (kind.open_one)(state, number?)).await?;
    let value = match (open, number) {
        (Some(value), _) => Some(value),
        (None, Some(number)) => kind.ended_one(app, id, number).await?,
        (None, None) => None,
    };
    Ok(Json(whole(app, value.ok_or_else(unknown)?).await?))
}

impl Kind {
    fn open_after(&self, state: &AgentState, cursor: Option<Cursor>, limit: usize) -> Vec<(Cursor, Value)> {
        let before = match cursor {
            None => u64::MAX,
            Some(Cursor::Open(number)) => number,
            Some(Cursor::Ended(_)) => 0,
        };
        let numbers = (self.open)(state).into_iter().filter(|number| *number < before).take(limit);
        numbers.filter_map(|number| Some((Cursor::Open(number), (self.open_one)(state, number)?))).collect()
    }

    fn ended_after(
        &self,
        store: &dyn Store,
        id: &AgentId,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Vec<(Cursor, Value)>, ReadError> {
        let before = match cursor {
            None | Some(Cursor::Open(_)) => u64::MAX,
            Some(Cursor::Ended(number)) => number,
        };
        let mut found = Vec::new();
        for row in store.records_closed(id, self.record, before, limit)? {
            let value = (self.ended)(store, id, &row)?;
            found.extend(value.map(|value| (Cursor::Ended(row.number), value)));
        }
        Ok(found)
    }

    async fn ended_one(&'static self, app: &Shared, id: &AgentId, number: u64) -> Result<Option<Value>, Failure> {
        let ledger_id = id.clone();
        let found = app.handle.ledger(id, move |store| match store.record(&ledger_id, self.record, number)? {
            Some(row) => (self.ended)(store, &ledger_id, &row),
            None => Ok(None),
        });
        Ok(found.await?)
    }
}

fn number<T: FromStr>(id: &str, number: fn(T) -> u64) -> Option<u64> {
    id.parse().ok().map(number)
}

/// A record that its first and its last event tell.
fn told(
    store: &dyn Store,
    agent: &AgentId,
    row: &RecordRow,
    tell: fn(&AgentId, &Envelope, &Envelope) -> Option<Value>,
) -> Result<Option<Value>, ReadError> {
    let (first, last) = (reader::event(store, agent, row.first)?, reader::event(store, agent, row.last)?);
    Ok(first.zip(last).and_then(|(first, last)| tell(agent, &first.envelope, &last.envelope)))
}

fn completed_work(store: &dyn Store, agent: &AgentId, row: &RecordRow) -> Result<Option<Value>, ReadError> {
    let Some(first) = reader::event(store, agent, row.first)? else { return Ok(None) };
    let after = row.first.0.max(row.last.0.saturating_sub(WORK_EVENTS_MAX));
    let wanted = usize::try_from(row.last.0 - after).unwrap_or(usize::MAX);
    let events = reader::page(store, agent, EventSeq(after), wanted)?;
    let altered = events.iter().map(|event| &event.envelope);
    Ok(events.last().and_then(|last| work::completed(agent, &first.envelope, altered, &last.envelope)))
}

/// A record with its stored texts in it.
async fn whole(app: &Shared, value: Value) -> Result<Value, Failure> {
    let mut hashes = Vec::new();
    stored(&value, &mut hashes);
    if hashes.is_empty() {
        return Ok(value);
    }
    let texts: BTreeMap<Hash, String> = app.handle.stored_texts(hashes).await?;
    Ok(view::with_texts(value, &texts))
}

fn stored(value: &Value, hashes: &mut Vec<Hash>) {
    let members: Vec<&Value> = match value {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(members) => members.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    hashes.extend(value.get("stored").and_then(Value::as_str).and_then(Hash::parse));
    members.into_iter().for_each(|member| stored(member, hashes));
}
