//! Following a ledger, or all of them, over HTTP: it is read from anywhere, then its head is waited for (architecture 22).
//!
//! Many followers of the same are mostly at the same place, so what one has rendered serves the others. A follower
//! that is slow reads the ledger at its own pace; what is kept for it is its position.

use super::Shared;
use super::auth::Caller;
use super::reply::Failure;
use crate::events::codec;
use crate::fold::home::HomeState;
use crate::ledger::reader::{self, LinkedEvent};
use crate::ledger::{LogRow, Store};
use crate::runtime::feed::Follower;
use crate::runtime::handle::SubmitError;
use crate::wire::event::{Projection, write_frame};
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::{HEARTBEAT_MS, STREAM_CHUNK_EVENTS};
use axum::body::Bytes;
use axum::http::StatusCode;
use futures::stream::Stream as FrameStream;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Rendered chunks kept for the followers of one subject.
const CHUNKS_KEPT_MAX: usize = 8;
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");
/// What a client is told first: how long to wait before it reconnects.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// Rendered frames that followers share.
pub(super) struct Frames {
    rings: Mutex<HashMap<(Subject, Projection), Arc<Ring>>>,
    subscribers: Arc<Subscribers>,
    subscribers_max: usize,
}

/// How many streams are open, and how many of them have events to send that they have not.
#[derive(Default)]
struct Subscribers {
    open: AtomicUsize,
    behind: AtomicUsize,
}

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// One agent; the cursor is its `event_seq`.
    Agent(AgentId),
    /// All public agents; the cursor is the place in the order of commits.
    Everyone,
}

impl Subject {
    fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Everyone => None,
        }
    }
}

/// The chunks rendered last for one subject. The lock is held while a chunk is rendered, so that it is done once.
#[derive(Default)]
struct Ring {
    chunks: tokio::sync::Mutex<VecDeque<Chunk>>,
}

/// The frames of the events after `after`, up to and with `until`.
#[derive(Clone)]
struct Chunk {
    after: u64,
    until: u64,
    events: u64,
    frames: Bytes,
}

/// One follower.
pub(super) struct Stream {
    app: Shared,
    subject: Subject,
    projection: Projection,
    ring: Arc<Ring>,
    follower: Follower,
    /// Whoever reads it, and what its right rests on.
    caller: Caller,
    home: watch::Receiver<Arc<HomeState>>,
    at: u64,
    /// Events still to be sent; none for an endless stream.
    left: Option<u64>,
    opened: bool,
    subscription: Subscription,
}

/// One of the places for subscribers.
struct Subscription {
    all: Arc<Subscribers>,
    is_behind: bool,
}

impl Subscription {
    fn is_behind(&mut self, is_behind: bool) {
        match (self.is_behind, is_behind) {
            (false, true) => drop(self.all.behind.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.all.behind.fetch_sub(1, Ordering::Relaxed)),
            (true, true) | (false, false) => {}
        }
        self.is_behind = is_behind;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.is_behind(false);
        self.all.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Frames {
    pub(super) fn new(subscribers_max: usize) -> Self {
        Self { rings: Mutex::default(), subscribers: Arc::default(), subscribers_max }
    }

    fn subscribe(&self) -> Result<Subscription, Failure> {
        if self.subscribers.open.fetch_add(1, Ordering::Relaxed) >= self.subscribers_max {
            self.subscribers.open.fetch_sub(1, Ordering::Relaxed);
            let detail = "too many streams are open";
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail));
        }
        Ok(Subscription { all: self.subscribers.clone(), is_behind: false })
    }

    /// Streams that are open, and those among them that have not yet sent all there is.
    pub(super) fn subscribers(&self) -> (usize, usize) {
        let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (read(&self.subscribers.open), read(&self.subscribers.behind))
    }

    fn ring(&self, subject: &Subject, projection: Projection) -> Arc<Ring> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.retain(|_, ring| Arc::strong_count(ring) > 1);
        rings.entry((subject.clone(), projection)).or_default().clone()
    }
}

impl Stream {
    pub(super) fn open(
        app: &Shared,
        caller: Caller,
        subject: Subject,
        after: u64,
        projection: Projection,
        limit: Option<u64>,
    ) -> Result<Self, Failure> {
        let subscription = app.frames.subscribe()?;
        let ring = app.frames.ring(&subject, projection);
        let follower = match &subject {
            Subject::Agent(agent) => app.handle.follow(agent, EventSeq(after)),
            Subject::Everyone => app.handle.follow_all(),
        };
        Ok(Self {
            app: app.clone(),
            subject,
            projection,
            ring,
            follower,
            caller,
            home: app.handle.follow_home(),
            at: after,
            left: limit,
            opened: false,
            subscription,
        })
    }

    /// The frames as they come; ends with the limit, or when the ledger cannot be read.
    pub(super) fn frames(self) -> impl FrameStream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut this| async move {
            let frames = this.next().await?;
            Some((Ok(frames), this))
        })
    }

    /// What is sent next. A ledger that grows by what is not shown does not put the heartbeat off.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.opened {
            self.opened = true;
            return Some(OPENING);
        }
        let heartbeat_at = Instant::now() + Duration::from_millis(HEARTBEAT_MS);
        loop {
            if self.left == Some(0) || self.app.is_going_down() || !self.caller.is_still_admitted(&self.app) {
                return None;
            }
            let read = self.read().await;
            // Until its client has taken these, and there is nothing more.
            self.subscription.is_behind(matches!(read, Ok(Some(_))));
            match read {
                Ok(Some(frames)) if !frames.is_empty() => return Some(frames),
                Ok(Some(_)) if Instant::now() < heartbeat_at => continue,
                Ok(Some(_)) => return Some(HEARTBEAT),
                Ok(None) => {}
                Err(failure) => {
                    let agent = self.subject.agent().map(tracing::field::display);
                    tracing::warn!(agent, error = failure.0.detail, "a stream ends");
                    return None;
                }
            }
            tokio::select! {
                () = self.app.going_down() => return None,
                grown = self.follower.grown() => if !grown { return None },
                // A token may have been revoked.
                changed = self.home.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(heartbeat_at) => return Some(HEARTBEAT),
            }
        }
    }

    /// What follows the position, and is empty where all events are those of private agents; none at the head.
    async fn read(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(chunk) = self.chunk().await? else { return Ok(None) };
        self.left = self.left.map(|left| left - chunk.events);
        self.at = chunk.until;
        Ok(Some(chunk.frames))
    }

    async fn chunk(&self) -> Result<Option<Chunk>, Failure> {
        match self.left {
            // A limited stream may end within a chunk, so it renders its own.
            Some(left) => {
                let events = usize::try_from(left).map_or(STREAM_CHUNK_EVENTS, |left| left.min(STREAM_CHUNK_EVENTS));
                self.render(events).await
            }
            None => self.shared().await,
        }
    }

    async fn shared(&self) -> Result<Option<Chunk>, Failure> {
        let mut chunks = self.ring.chunks.lock().await;
        if let Some(chunk) = chunks.iter().find(|chunk| chunk.after == self.at) {
            return Ok(Some(chunk.clone()));
        }
        let chunk = self.render(STREAM_CHUNK_EVENTS).await?;
        if let Some(chunk) = &chunk {
            if chunks.len() == CHUNKS_KEPT_MAX {
                chunks.pop_front();
            }
            chunks.push_back(chunk.clone());
        }
        Ok(chunk)
    }

    async fn render(&self, events_max: usize) -> Result<Option<Chunk>, Failure> {
        match &self.subject {
            Subject::Agent(agent) => self.render_agent(agent.clone(), events_max).await,
            Subject::Everyone => self.render_everyone(events_max).await,
        }
    }

    async fn render_agent(&self, agent: AgentId, events_max: usize) -> Result<Option<Chunk>, Failure> {
        let (after, projection, ledger_id) = (self.at, self.projection, agent.clone());
        let chunk = self.app.handle.ledger(&agent, move |store| {
            let events = reader::page(store, &ledger_id, EventSeq(after), events_max)?;
            let mut chunk = Chunk::after(after);
            let mut frames = Vec::new();
            for event in &events {
                chunk.until = event.envelope.seq.0;
                chunk.events += 1;
                frame(&mut frames, chunk.until, &ledger_id, event, projection);
            }
            Ok((chunk.events > 0).then(|| chunk.with(frames)))
        });
        Ok(chunk.await?)
    }

    /// The places of the log say what comes next; the events themselves are read and verified agent by agent.
    async fn render_everyone(&self, events_max: usize) -> Result<Option<Chunk>, Failure> {
        let rows = self.app.handle.log(self.at, events_max).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let mut chunk = Chunk::after(self.at);
        chunk.until = last.place;
        let mut frames = Vec::new();
        for run in rows.chunk_by(|one, next| one.agent == next.agent) {
            let agent = &run[0].agent;
            for (place, event) in self.run(agent, run).await? {
                chunk.events += 1;
                frame(&mut frames, place, agent, &event, self.projection);
            }
        }
        Ok(Some(chunk.with(frames)))
    }

    /// The events of rows that one agent has in a row; none of a private agent, nor of one that is set apart.
    async fn run(&self, agent: &AgentId, rows: &[LogRow]) -> Result<Vec<(u64, LinkedEvent)>, Failure> {
        // Every private agent has such an id, and no other. The home is no agent.
        if agent.has_child_form() || agent.is_home() {
            return Ok(Vec::new());
        }
        let seq = |row: &LogRow| Some((codec::decode(&row.record).ok()?.seq, row.place));
        let places: BTreeMap<EventSeq, u64> = rows.iter().filter_map(seq).collect();
        let Some((first, wanted)) = places.keys().next().map(|first| (first.0, rows.len())) else {
            return Ok(Vec::new());
        };
        let ledger_id = agent.clone();
        let page = move |store: &dyn Store| reader::page(store, &ledger_id, EventSeq(first - 1), wanted);
        match self.app.handle.ledger(agent, page).await {
            Ok(events) => {
                let place = |event: LinkedEvent| Some((*places.get(&event.envelope.seq)?, event));
                Ok(events.into_iter().filter_map(place).collect())
            }
            Err(SubmitError::Quarantined { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Chunk {
    fn after(after: u64) -> Self {
        Self { after, until: after, events: 0, frames: Bytes::new() }
    }

    fn with(self, frames: Vec<u8>) -> Self {
        Self { frames: frames.into(), ..self }
    }
}

fn frame(frames: &mut Vec<u8>, cursor: u64, agent: &AgentId, event: &LinkedEvent, projection: Projection) {
    write_frame(frames, cursor, agent, &event.envelope, event.previous, event.hash, projection);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_counts_as_behind_once_and_not_beyond_its_end() {
        let frames = Frames::new(2);
        let (mut one, other) = (frames.subscribe().ok().unwrap(), frames.subscribe().ok().unwrap());
        one.is_behind(true);
        one.is_behind(true);
        assert!(frames.subscribe().is_err(), "there are no more places");
        assert_eq!(frames.subscribers(), (2, 1));
        drop(other);
        assert_eq!(frames.subscribers(), (1, 1));
        drop(one);
        assert_eq!(frames.subscribers(), (0, 0));
    }
}
