//! Briefs and the transcript.

use super::Shared;
use super::extract::{Agent, Query};
use super::reply::Reply;
use crate::events::turn::{Entry, TurnEntry, TurnEvent};
use crate::events::{Envelope, Event, OperatorEvent, QueueEvent};
use crate::fold::AgentState;
use crate::fold::row::RecordKind;
use crate::ledger::reader;
use crate::wire::record;
use crate::words::content::Content;
use crate::words::id::{AgentId, EventSeq, MessageId, RunId};
use crate::words::limit::{PAGE_DEFAULT, PAGE_MAX};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Events of one turn that its transcript is read from, the last ones.
const TRANSCRIPT_EVENTS_MAX: u64 = 4_096;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/briefs", get(briefs))
        .route("/transcript", get(transcript))
        .route("/agents/{id}/briefs", get(briefs))
        .route("/agents/{id}/transcript", get(transcript))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitQuery {
    limit: Option<usize>,
}

impl LimitQuery {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX)
    }
}

/// The newest briefs, the oldest of them first.
async fn briefs(State(app): State<Shared>, Agent(id): Agent, Query(query): Query<LimitQuery>) -> Reply {
    app.handle.read(&id, |_| ()).await?;
    let (ledger_id, limit) = (id.clone(), query.limit());
    let events = app.handle.ledger(&id, move |store| {
        let rows = store.records_closed(&ledger_id, RecordKind::Brief, u64::MAX, limit)?;
        let events = rows.iter().rev().map(|row| reader::event(store, &ledger_id, row.first));
        events.collect::<Result<Vec<_>, _>>()
    });
    let mut shown = Vec::new();
    for event in events.await?.into_iter().flatten() {
        let Event::Operator(OperatorEvent::BriefCreated(brief)) = &event.envelope.event else { continue };
        let text = app.handle.text(brief.text.clone()).await?;
        shown.push(record::brief(&id, brief, event.envelope.at, &text));
    }
    Ok(Json(Value::Array(shown)))
}

/// The entries of the turn that runs, or of the one that ended last.
async fn transcript(State(app): State<Shared>, Agent(id): Agent, Query(query): Query<LimitQuery>) -> Reply {
    let current = |state: &AgentState| state.turns.current.as_ref().map(|turn| (turn.run, turn.started, state.head));
    let current = app.handle.read(&id, current).await?;
    let ledger_id = id.clone();
    let events = app.handle.ledger(&id, move |store| {
        let ended = store.records_closed(&ledger_id, RecordKind::Run, u64::MAX, 1)?;
        let ended = ended.first().map(|row| (RunId(row.number), row.first, row.last));
        let Some((run, first, last)) = current.or(ended) else { return Ok(Vec::new()) };
        let after = (first.0 - 1).max(last.0.saturating_sub(TRANSCRIPT_EVENTS_MAX));
        let wanted = usize::try_from(last.0 - after).unwrap_or(usize::MAX);
        let events = reader::page(store, &ledger_id, EventSeq(after), wanted)?;
        Ok(events.into_iter().map(|event| event.envelope).filter(|envelope| is_entry_of(run, envelope)).collect())
    });
    let entries: Vec<Envelope> = events.await?;
    let mut shown = Vec::new();
    for envelope in entries.iter().skip(entries.len().saturating_sub(query.limit())) {
        let text = text(&app, &id, envelope).await?;
        shown.extend(record::transcript_entry(&id, envelope, &text));
    }
    Ok(Json(Value::Array(shown)))
}

fn is_entry_of(run: RunId, envelope: &Envelope) -> bool {
    matches!(&envelope.event, Event::Turn(TurnEvent::Entry(entry)) if entry.run == run)
}

/// The text of an entry: a message's body, what the model said, what a tool showed.
async fn text(app: &Shared, id: &AgentId, envelope: &Envelope) -> Result<String, super::reply::Failure> {
    let Event::Turn(TurnEvent::Entry(TurnEntry { entry, .. })) = &envelope.event else { return Ok(String::new()) };
    let content = match entry {
        Entry::Assistant { text, .. } => Some(text.clone()),
        Entry::ToolResult { result, .. } => result.shown().map(|shown| shown.text.clone()),
        Entry::Incoming { message } | Entry::Interjection { message } => body(app, id, *message).await?,
    };
    match content {
        Some(content) => Ok(app.handle.text(content).await?),
        None => Ok(String::new()),
    }
}

async fn body(app: &Shared, id: &AgentId, message: MessageId) -> Result<Option<Content>, super::reply::Failure> {
    let open: BTreeMap<MessageId, EventSeq> = app
        .handle
        .read(id, |state| state.turns.current.iter().map(|turn| (turn.message, turn.queued.seq)).collect())
        .await?;
    let ledger_id = id.clone();
    let event = app.handle.ledger(id, move |store| {
        let row = store.record(&ledger_id, RecordKind::Message, message.0)?;
        let seq = open.get(&message).copied().or(row.map(|row| row.first));
        seq.map_or(Ok(None), |seq| reader::event(store, &ledger_id, seq))
    });
    let Some(event) = event.await? else { return Ok(None) };
    let Event::Queue(QueueEvent::Enqueued(message)) = event.envelope.event else { return Ok(None) };
    Ok(Some(message.body))
}
