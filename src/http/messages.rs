//! Messages: taken in, and told of.

use super::Shared;
use super::auth::Caller;
use super::extract::{Agent, Body, Control, Nothing, Public, Query, Rid};
use super::peer::Peer;
use super::reply::{Failure, Reply};
use crate::decide::queue::{NewMessage, QueueCommand};
use crate::decide::waiting::WaitingCommand;
use crate::decide::{Attribution, Rejection};
use crate::events::actor::ActorPeer;
use crate::events::agent::Answer;
use crate::events::operator::{BriefCreated, BriefKind};
use crate::events::queue::{Admission, MessageKind, MessageOutcome, Origin, QueueEvent, Surface};
use crate::events::{Cause, Event, OperatorEvent};
use crate::fold::row::RecordKind;
use crate::ledger::Store;
use crate::ledger::reader::{self, LinkedEvent, ReadError};
use crate::wire::message::{DROPPED_BY_OPERATOR, DropManyBody, EnqueueBody, PromptBody, WakeBody, says_trust};
use crate::wire::record;
use crate::words::content::Blob;
use crate::words::id::{AgentId, BriefId, EventSeq, MessageId, RunId, TokenName};
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

/// Briefs of one run that are looked through for those of a message.
const BRIEFS_OF_RUN_MAX: usize = 256;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/enqueue", post(enqueue))
        .route("/agents/{id}/enqueue", post(enqueue))
        .route("/agents/{id}/messages/{rid}", get(message))
        .route("/control/agents/{id}/prompt", post(prompt))
        .route("/control/agents/{id}/wake", post(wake))
        .route("/control/agents/{id}/messages/{rid}/drop", post(put_aside))
        .route("/control/agents/{id}/messages/drop", post(put_many_aside))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DropBody {
    reason: Option<String>,
    trust: Option<String>,
}

says_trust!(DropBody);

async fn enqueue(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    caller: Caller,
    Public(id): Public,
    body: Body<EnqueueBody>,
) -> Reply {
    app.count_unproven(&caller, &peer, Some(&id))?;
    let (new, blob) = body.value.message()?;
    let by = Attribution { cause: Cause::External, key: body.key };
    take_in(&app, &id, new, blob, by).await
}

async fn prompt(State(app): State<Shared>, caller: Caller, Public(id): Public, body: Control<PromptBody>) -> Reply {
    let admission = if caller.has_token() { Admission::ControlAuthenticated } else { Admission::LocalProcess };
    let actor = caller.actor.token.unwrap_or_else(TokenName::control);
    let (new, blob) = body.value.message(&actor, Surface::HttpControlPrompt, admission);
    let new = match caller.actor.peer {
        ActorPeer::AgentProcess(agent) => said_by(&agent, new),
        ActorPeer::Unknown | ActorPeer::Local { .. } | ActorPeer::Address(_) => new,
    };
    take_in(&app, &id, new, blob, body.by).await
}

/// A prompt that the command of an agent sends is what that agent says, and is trusted no more than a stranger's word:
/// the turn that it comes from may answer one.
fn said_by(agent: &AgentId, new: NewMessage) -> NewMessage {
    let origin = Origin::Channel { channel_id: "agent_process".into(), sender_id: Some(agent.to_string()) };
    NewMessage { kind: MessageKind::ChannelEvent, lane: None, origin, ..new }
}

pub(super) async fn take_in(app: &Shared, id: &AgentId, new: NewMessage, blob: Option<Blob>, by: Attribution) -> Reply {
    let request = by.request(QueueCommand::Enqueue(new));
    let answer = app.handle.submit(id, request, blob.into_iter().collect()).await?;
    let Answer::Message(message) = answer else { return Err(unexpected(&answer)) };
    Ok(Json(json!({"ok": true, "agent_id": id, "message_id": message})))
}

async fn wake(State(app): State<Shared>, Public(id): Public, body: Control<WakeBody>) -> Reply {
    let command = WaitingCommand::Wake(body.value.into());
    let request = body.by.request(command);
    let answer = app.handle.submit(&id, request, Vec::new()).await?;
    let Answer::Woken { disposition, message } = answer else { return Err(unexpected(&answer)) };
    let name = disposition.name();
    Ok(Json(json!({"ok": true, "agent_id": id, "disposition": name, "message_id": message})))
}

/// The operator wants the message gone: it is settled, and the reason stands with it.
async fn put_aside(State(app): State<Shared>, Public(id): Public, Rid(rid): Rid, body: Control<DropBody>) -> Reply {
    let message: MessageId = rid.parse().map_err(|_| unknown(&id, &rid))?;
    let reason = body.value.reason.unwrap_or_else(|| DROPPED_BY_OPERATOR.into());
    let request = body.by.request(QueueCommand::Drop { message, reason });
    app.handle.submit(&id, request, Vec::new()).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "message_id": message})))
}

/// What waits is put aside, the oldest first; what is left is for the next request.
async fn put_many_aside(State(app): State<Shared>, Public(id): Public, body: Control<DropManyBody>) -> Reply {
    let request = body.by.request(body.value.command()?);
    let answer = app.handle.submit(&id, request, Vec::new()).await?;
    let Answer::Dropped { dropped, left } = answer else { return Err(unexpected(&answer)) };
    Ok(Json(json!({"ok": true, "agent_id": id, "dropped": dropped, "left": left})))
}

fn unknown(id: &AgentId, rid: &str) -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "message_not_found", format!("{id} has no message {rid}"))
}

/// A key that answered another kind of request: its fingerprint would have to be the same.
pub(super) fn unexpected(answer: &Answer) -> Failure {
    tracing::error!(?answer, "a request was answered with another request's answer");
    Failure::from(Rejection::KeyReused)
}

/// What is known of a message before its events are read.
struct Place {
    first: EventSeq,
    /// The event that settled it.
    last: Option<EventSeq>,
    /// The run under way, if any, and where it started.
    current: Option<(RunId, EventSeq)>,
    /// Whether that run is spent on the message.
    in_turn: bool,
}

/// The events that tell of a message.
struct Found {
    enqueued: Option<LinkedEvent>,
    outcome: Option<MessageOutcome>,
    run: Option<RunId>,
    briefs: Vec<BriefCreated>,
}

async fn message(State(app): State<Shared>, Agent(id): Agent, Rid(rid): Rid, _: Query<Nothing>) -> Reply {
    let unknown = || unknown(&id, &rid);
    let number: MessageId = rid.parse().map_err(|_| unknown())?;
    let place = place(&app, &id, number).await?.ok_or_else(unknown)?;
    let ledger_id = id.clone();
    let found = app.handle.ledger(&id, move |store| find(store, &ledger_id, &place)).await?;
    let Some(envelope) = found.enqueued.map(|event| event.envelope) else { return Err(unknown()) };
    let Event::Queue(QueueEvent::Enqueued(enqueued)) = &envelope.event else { return Err(unknown()) };
    let answers = |brief: &&BriefCreated| {
        brief.message == Some(number)
            || (found.run.is_some_and(|run| brief.run == Some(run)) && brief.kind != BriefKind::Ack)
    };
    let briefs: Vec<BriefId> = found.briefs.iter().filter(answers).map(|brief| brief.brief).collect();
    let text = app.handle.text(enqueued.body.clone()).await?;
    Ok(Json(record::message(&id, enqueued, envelope.at, &text, found.outcome.as_ref(), found.run, &briefs)))
}

async fn place(app: &Shared, id: &AgentId, number: MessageId) -> Result<Option<Place>, Failure> {
    let open = app.handle.read(id, move |state| {
        let turn = state.turns.current.as_ref();
        let current = turn.map(|turn| (turn.run, turn.started));
        let in_turn = turn.filter(|turn| turn.message == number).map(|turn| turn.queued.seq);
        let first = in_turn.or_else(|| state.queue.waiting.get(&number).map(|queued| queued.seq));
        (first, current, in_turn.is_some())
    });
    let (first, current, in_turn) = open.await?;
    if let Some(first) = first {
        return Ok(Some(Place { first, last: None, current, in_turn }));
    }
    let ledger_id = id.clone();
    let row = app.handle.ledger(id, move |store| Ok(store.record(&ledger_id, RecordKind::Message, number.0)?)).await?;
    Ok(row.map(|row| Place { first: row.first, last: Some(row.last), current, in_turn }))
}

fn find(store: &dyn Store, id: &AgentId, place: &Place) -> Result<Found, ReadError> {
    let enqueued = reader::event(store, id, place.first)?;
    let settled = place.last.map(|last| reader::event(store, id, last)).transpose()?.flatten();
    let outcome = settled.and_then(|event| outcome(event.envelope.event));
    let current = place.current.map(|(run, _)| run);
    let run = outcome.as_ref().and_then(record::run_of).or(current.filter(|_| place.in_turn));
    // A prompt that joins the run under way is acknowledged before it is settled.
    let briefs = match run.or(current) {
        Some(run) => briefs_of(store, id, run, place)?,
        None => Vec::new(),
    };
    Ok(Found { enqueued, outcome, run, briefs })
}

/// The briefs of a run, those of other messages that it took in included.
fn briefs_of(store: &dyn Store, id: &AgentId, run: RunId, place: &Place) -> Result<Vec<BriefCreated>, ReadError> {
    let ended = store.record(id, RecordKind::Run, run.0)?.map(|row| (row.first, row.last));
    let current =
        place.current.filter(|(current, _)| *current == run).map(|(_, started)| (started, EventSeq(u64::MAX)));
    let Some((from, to)) = ended.or(current) else { return Ok(Vec::new()) };
    let first = first_brief_after(store, id, from)?;
    let before = first + BRIEFS_OF_RUN_MAX as u64;
    let mut rows = store.records_closed(id, RecordKind::Brief, before, BRIEFS_OF_RUN_MAX)?;
    rows.reverse();
    let mut briefs = Vec::new();
    for row in rows.iter().filter(|row| row.number >= first && row.first <= to) {
        if let Some(Event::Operator(OperatorEvent::BriefCreated(brief))) =
            reader::event(store, id, row.first)?.map(|event| event.envelope.event)
        {
            briefs.push(brief);
        }
    }
    Ok(briefs)
}

/// The number of the first brief after `seq`, found by halving: briefs are numbered in the order of their events.
fn first_brief_after(store: &dyn Store, id: &AgentId, seq: EventSeq) -> Result<u64, ReadError> {
    let last = store.records_closed(id, RecordKind::Brief, u64::MAX, 1)?;
    let (mut low, mut high) = (1, last.first().map_or(1, |row| row.number + 1));
    while low < high {
        let middle = low.midpoint(high);
        match store.record(id, RecordKind::Brief, middle)? {
            Some(row) if row.first <= seq => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

fn outcome(event: Event) -> Option<MessageOutcome> {
    let Event::Queue(QueueEvent::Settled(settled)) = event else { return None };
    Some(settled.outcome)
}
