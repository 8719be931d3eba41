//! The event log: pages and streams (wire, Events).

use super::Shared;
use super::auth::Caller;
use super::extract::{Agent, Nothing, Query, malformed};
use super::reply::Failure;
use super::stream::{Stream, Subject};
use crate::events::home::Scope;
use crate::ledger::reader;
use crate::wire::catalogue;
use crate::wire::event::{Projection, render};
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::{EVENTS_PAGE_DEFAULT, EVENTS_PAGE_MAX};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/schema/events", get(schema))
        .route("/events/stream", get(stream_of_all))
        .route("/agents/{id}/events", get(page))
        .route("/agents/{id}/events/stream", get(stream))
        .route("/home/events", get(page_of_home))
        .route("/home/events/stream", get(stream_of_home))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    before_seq: Option<u64>,
    after_seq: Option<u64>,
    limit: Option<usize>,
    order: Option<String>,
    projection: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    after_seq: Option<u64>,
    limit: Option<u64>,
    projection: Option<String>,
}

#[derive(serde::Serialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    oldest_seq: Option<u64>,
    newest_seq: Option<u64>,
    has_older: bool,
    has_newer: bool,
    order: &'static str,
    limit: usize,
}

/// Every kind of event that a ledger may hold.
async fn schema(_: Query<Nothing>) -> Json<Value> {
    Json(catalogue::events())
}

async fn page(
    State(app): State<Shared>,
    caller: Caller,
    Agent(id): Agent,
    Query(query): Query<PageQuery>,
) -> Result<Response, Failure> {
    page_of(&app, &caller, id, &query).await
}

async fn page_of_home(
    State(app): State<Shared>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Response, Failure> {
    page_of(&app, &caller, AgentId::home(), &query).await
}

async fn page_of(app: &Shared, caller: &Caller, id: AgentId, query: &PageQuery) -> Result<Response, Failure> {
    let ascending = match query.order.as_deref() {
        None | Some("desc") => false,
        Some("asc") => true,
        Some(other) => return Err(malformed("invalid_query", &format!("order is asc or desc, not {other:?}"))),
    };
    let projection = projection(caller, query.projection.as_deref())?;
    let limit = query.limit.unwrap_or(EVENTS_PAGE_DEFAULT).clamp(1, EVENTS_PAGE_MAX);
    let head = head(app, &id).await?;
    let span = Span::of(query, head, limit as u64, ascending);
    let ledger_id = id.clone();
    let wanted = span.len();
    let events = app.handle.ledger(&id, move |store| {
        if wanted == 0 { Ok(Vec::new()) } else { reader::page(store, &ledger_id, EventSeq(span.from - 1), wanted) }
    });
    let mut shown = Vec::with_capacity(wanted);
    for event in events.await? {
        let text = render(&id, &event.envelope, event.previous, event.hash, projection);
        shown.push(RawValue::from_string(text).expect("rendered as JSON"));
    }
    if !ascending {
        shown.reverse();
    }
    let page = Page {
        events: shown,
        oldest_seq: (wanted > 0).then_some(span.from),
        newest_seq: (wanted > 0).then_some(span.to),
        has_older: span.from > 1 && head > 0,
        has_newer: span.to < head,
        order: if ascending { "asc" } else { "desc" },
        limit,
    };
    Ok(Json(page).into_response())
}

/// The events of a page: from and to, both included; none when `from` is past `to`.
#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
}

impl Span {
    /// The sequence has no gaps, so a page is arithmetic.
    fn of(query: &PageQuery, head: u64, limit: u64, ascending: bool) -> Self {
        let low = query.after_seq.unwrap_or(0).min(head) + 1;
        let high = query.before_seq.map_or(head, |before| before.saturating_sub(1)).min(head);
        if ascending {
            Self { from: low, to: high.min(low.saturating_add(limit - 1)) }
        } else {
            Self { from: low.max((high + 1).saturating_sub(limit)), to: high }
        }
    }

    fn len(self) -> usize {
        usize::try_from((self.to + 1).saturating_sub(self.from)).unwrap_or(usize::MAX)
    }
}

/// The raw record shows what agents were told and what they ran: it is for those who control them.
fn projection(caller: &Caller, name: Option<&str>) -> Result<Projection, Failure> {
    let Some(name) = name else { return Ok(Projection::default()) };
    let unknown = || malformed("invalid_query", &format!("projection is operator or local_debug, not {name:?}"));
    let projection = Projection::from_name(name).ok_or_else(unknown)?;
    if projection == Projection::LocalDebug {
        caller.needs(Scope::Operate)?;
    }
    Ok(projection)
}

async fn head(app: &Shared, id: &AgentId) -> Result<u64, Failure> {
    let ledger_id = id.clone();
    let head = app.handle.ledger(id, move |store| Ok(store.head(&ledger_id)?)).await?;
    let head = head.ok_or(crate::decide::Rejection::UnknownAgent)?;
    Ok(head.seq.0)
}

async fn stream(
    State(app): State<Shared>,
    caller: Caller,
    Agent(id): Agent,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let head = head(&app, &id).await?;
    open(&app, caller, Subject::Agent(id), head, &query, &headers)
}

async fn stream_of_home(
    State(app): State<Shared>,
    caller: Caller,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let id = AgentId::home();
    let head = head(&app, &id).await?;
    open(&app, caller, Subject::Agent(id), head, &query, &headers)
}

/// Everything that public agents do, in the order in which it became durable. Its cursor is the place in that order.
/// What concerns the home has a place there too, and is told by the home's own stream alone.
async fn stream_of_all(
    State(app): State<Shared>,
    caller: Caller,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let head = app.handle.log_end().await?;
    open(&app, caller, Subject::Everyone, head, &query, &headers)
}

fn open(
    app: &Shared,
    caller: Caller,
    subject: Subject,
    head: u64,
    query: &StreamQuery,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    let projection = projection(&caller, query.projection.as_deref())?;
    let after = resumed(headers)?.or(query.after_seq).unwrap_or(head);
    if after > head {
        return Err(beyond(after, head));
    }
    let stream = Stream::open(app, caller, subject, after, projection, query.limit)?;
    let mut response = Body::from_stream(stream.frames()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, "text/event-stream".parse().expect("a plain header"));
    response.headers_mut().insert(CACHE_CONTROL, "no-store".parse().expect("a plain header"));
    Ok(response)
}

/// A client that reconnects says what it has seen, whatever its address said at first.
fn resumed(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok());
    seq.map(Some).ok_or_else(|| malformed("invalid_header", "Last-Event-ID is an event_seq"))
}

fn beyond(after: u64, head: u64) -> Failure {
    let detail = format!("event {after} is not there yet: the ledger is at {head}");
    let failure = Failure::new(StatusCode::NOT_FOUND, "cursor_not_found", detail);
    let failure = failure.hint("start after an event that you have seen, or at 0");
    Failure(failure.0.with("after_seq", after).with("event_seq", after).with("head", head))
}
