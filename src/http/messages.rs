//! Messages: taken in, and told of.

use super::Shared;
use super::extract::{Agent, Body};
use super::reply::{Failure, Reply};
use super::serve::Peer;
use crate::decide::queue::{NewMessage, QueueCommand};
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Rejection, Request, RequestKey};
use crate::events::agent::Answer;
use crate::events::queue::{Admission, MessageOutcome, QueueEvent, Surface};
use crate::events::{Cause, Event, OperatorEvent};
use crate::fold::row::RecordKind;
use crate::ledger::reader;
use crate::wire::message::{EnqueueBody, PromptBody, WakeBody};
use crate::wire::record;
use crate::words::content::Blob;
use crate::words::id::{AgentId, BriefId, EventSeq, MessageId};
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

/// Briefs that are looked through for those of one message.
const BRIEFS_SEARCHED_MAX: usize = 64;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/enqueue", post(enqueue_default))
        .route("/agents/{id}/enqueue", post(enqueue))
        .route("/agents/{id}/messages/{message}", get(message))
        .route("/control/agents/{id}/prompt", post(prompt))
        .route("/control/agents/{id}/wake", post(wake))
}

async fn enqueue_default(State(app): State<Shared>, body: Body<EnqueueBody>) -> Reply {
    let id = app.handle.settings().default_agent.clone();
    enqueue(State(app), Agent(id), body).await
}

async fn enqueue(State(app): State<Shared>, Agent(id): Agent, body: Body<EnqueueBody>) -> Reply {
    let (new, blob) = body.value.message()?;
    take_in(&app, &id, new, blob, Cause::External, body.key).await
}

async fn prompt(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Agent(id): Agent,
    body: Body<PromptBody>,
) -> Reply {
    let authenticated = app.auth.requires_token() && matches!(peer, Peer::Tcp(_));
    let admission = if authenticated { Admission::ControlAuthenticated } else { Admission::LocalProcess };
    let (new, blob) = body.value.message(Surface::HttpControlPrompt, admission);
    take_in(&app, &id, new, blob, Cause::Operator, body.key).await
}

async fn take_in(
    app: &Shared,
    id: &AgentId,
    new: NewMessage,
    blob: Option<Blob>,
    cause: Cause,
    key: Option<RequestKey>,
) -> Reply {
    let request = Request { command: QueueCommand::Enqueue(new).into(), cause, key };
    match app.handle.submit(id, request, blob.into_iter().collect()).await? {
        Answer::Message(message) => Ok(Json(json!({"ok": true, "agent_id": id, "message_id": message}))),
        other => Err(unexpected(&other)),
    }
}

async fn wake(State(app): State<Shared>, Agent(id): Agent, body: Body<WakeBody>) -> Reply {
    let command = WaitingCommand::Wake(body.value.into()).into();
    let request = Request { command, cause: Cause::Operator, key: body.key };
    match app.handle.submit(&id, request, Vec::new()).await? {
        Answer::Woken { disposition, message } => {
            let name = disposition.name();
            Ok(Json(json!({"ok": true, "agent_id": id, "disposition": name, "message_id": message})))
        }
        other => Err(unexpected(&other)),
    }
}

/// A key that answered another kind of request: its fingerprint would have to be the same.
pub(super) fn unexpected(answer: &Answer) -> Failure {
    tracing::error!(?answer, "a request was answered with another request's answer");
    Failure::from(Rejection::KeyReused)
}

async fn message(State(app): State<Shared>, Path((id, message)): Path<(String, String)>) -> Reply {
    let id = AgentId::parse(&id);
    let id = id.map_err(|error| super::extract::malformed("invalid_agent_id", &error.to_string()))?;
    let unknown = || Failure::new(StatusCode::NOT_FOUND, "message_not_found", format!("{id} has no {message}"));
    let number: MessageId = message.parse().map_err(|_| unknown())?;
    let (first, last) = place(&app, &id, number).await?.ok_or_else(unknown)?;
    let ledger_id = id.clone();
    let found = app.handle.ledger(&id, move |store| {
        let enqueued = reader::event(store, &ledger_id, first)?;
        let settled = last.map(|last| reader::event(store, &ledger_id, last)).transpose()?.flatten();
        let rows = store.records_closed(&ledger_id, RecordKind::Brief, u64::MAX, BRIEFS_SEARCHED_MAX)?;
        let mut briefs = Vec::new();
        for row in rows.into_iter().take_while(|row| row.first > first) {
            briefs.extend(reader::event(store, &ledger_id, row.first)?);
        }
        Ok((enqueued, settled, briefs))
    });
    let (enqueued, settled, briefs) = found.await?;
    let Some(envelope) = enqueued.map(|event| event.envelope) else { return Err(unknown()) };
    let Event::Queue(QueueEvent::Enqueued(enqueued)) = &envelope.event else { return Err(unknown()) };
    let outcome = settled.and_then(|event| outcome(event.envelope.event));
    let mut briefs: Vec<BriefId> =
        briefs.into_iter().filter_map(|event| brief_of(&event.envelope.event, number)).collect();
    briefs.reverse();
    let text = app.handle.text(enqueued.body.clone()).await?;
    let run = outcome.as_ref().and_then(record::run_of);
    Ok(Json(record::message(&id, enqueued, envelope.at, &text, outcome.as_ref(), run, &briefs)))
}

/// The events that took a message in and settled it.
async fn place(app: &Shared, id: &AgentId, number: MessageId) -> Result<Option<(EventSeq, Option<EventSeq>)>, Failure> {
    let open = app.handle.read(id, move |state| {
        let in_turn = state.turns.current.as_ref().filter(|turn| turn.message == number).map(|turn| turn.queued.seq);
        in_turn.or_else(|| state.queue.waiting.get(&number).map(|queued| queued.seq))
    });
    if let Some(seq) = open.await? {
        return Ok(Some((seq, None)));
    }
    let ledger_id = id.clone();
    let row = app.handle.ledger(id, move |store| Ok(store.record(&ledger_id, RecordKind::Message, number.0)?)).await?;
    Ok(row.map(|row| (row.first, Some(row.last))))
}

fn outcome(event: Event) -> Option<MessageOutcome> {
    match event {
        Event::Queue(QueueEvent::Settled(settled)) => Some(settled.outcome),
        _ => None,
    }
}

fn brief_of(event: &Event, message: MessageId) -> Option<BriefId> {
    let Event::Operator(OperatorEvent::BriefCreated(brief)) = event else { return None };
    (brief.message == Some(message)).then_some(brief.brief)
}
