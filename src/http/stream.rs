//! Following a ledger over HTTP: it is read from any seq, then its head is waited for (architecture 22).
//!
//! Many followers of one agent are mostly at the same place, so what one has rendered serves the others. A follower
//! that is slow reads the ledger at its own pace; what is kept for it is its position.

use super::Shared;
use super::reply::Failure;
use crate::ledger::reader;
use crate::runtime::feed::Follower;
use crate::wire::event::{Projection, write_frame};
use crate::words::id::{AgentId, EventSeq};
use crate::words::limit::{HEARTBEAT_MS, STREAM_CHUNK_EVENTS, SUBSCRIBERS_MAX};
use axum::body::Bytes;
use axum::http::StatusCode;
use futures::stream::Stream as FrameStream;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Rendered chunks kept for the followers of one agent.
const CHUNKS_KEPT_MAX: usize = 8;
const HEARTBEAT: Bytes = Bytes::from_static(b": heartbeat\n\n");
/// What a client is told first: how long to wait before it reconnects.
const OPENING: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// Rendered frames that followers share.
#[derive(Default)]
pub(super) struct Frames {
    rings: Mutex<HashMap<(AgentId, Projection), Arc<Ring>>>,
    subscribers: Arc<AtomicUsize>,
}

/// The chunks rendered last for one agent. The lock is held while a chunk is rendered, so that it is done once.
#[derive(Default)]
struct Ring {
    chunks: tokio::sync::Mutex<VecDeque<Chunk>>,
}

/// The frames of the events after `after`, up to and with `until`.
#[derive(Clone)]
struct Chunk {
    after: EventSeq,
    until: EventSeq,
    frames: Bytes,
}

/// One follower.
pub(super) struct Stream {
    app: Shared,
    agent: AgentId,
    projection: Projection,
    ring: Arc<Ring>,
    follower: Follower,
    at: EventSeq,
    /// Events still to be sent; none for an endless stream.
    left: Option<u64>,
    opened: bool,
    _subscription: Subscription,
}

/// One of the places for subscribers.
struct Subscription(Arc<AtomicUsize>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Frames {
    fn subscribe(&self) -> Result<Subscription, Failure> {
        if self.subscribers.fetch_add(1, Ordering::Relaxed) >= SUBSCRIBERS_MAX {
            self.subscribers.fetch_sub(1, Ordering::Relaxed);
            let detail = "too many streams are open";
            return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", detail));
        }
        Ok(Subscription(self.subscribers.clone()))
    }

    fn ring(&self, agent: &AgentId, projection: Projection) -> Arc<Ring> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        rings.retain(|_, ring| Arc::strong_count(ring) > 1);
        rings.entry((agent.clone(), projection)).or_default().clone()
    }
}

impl Stream {
    pub(super) fn open(
        app: &Shared,
        agent: AgentId,
        after: EventSeq,
        projection: Projection,
        limit: Option<u64>,
    ) -> Result<Self, Failure> {
        let subscription = app.frames.subscribe()?;
        let ring = app.frames.ring(&agent, projection);
        let follower = app.handle.follow(&agent, after);
        Ok(Self {
            app: app.clone(),
            agent,
            projection,
            ring,
            follower,
            at: after,
            left: limit,
            opened: false,
            _subscription: subscription,
        })
    }

    /// The frames as they come; ends with the limit, or when the ledger cannot be read.
    pub(super) fn frames(self) -> impl FrameStream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut this| async move {
            let frames = this.next().await?;
            Some((Ok(frames), this))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !self.opened {
            self.opened = true;
            return Some(OPENING);
        }
        loop {
            if self.left == Some(0) || self.app.is_going_down() {
                return None;
            }
            match self.read().await {
                Ok(Some(frames)) => return Some(frames),
                Ok(None) => {}
                Err(failure) => {
                    tracing::warn!(agent = %self.agent, error = failure.0.detail, "a stream ends");
                    return None;
                }
            }
            let going_down = self.app.going_down();
            let grown = tokio::time::timeout(Duration::from_millis(HEARTBEAT_MS), self.follower.grown());
            tokio::select! {
                () = going_down => return None,
                grown = grown => match grown {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(_) => return Some(HEARTBEAT),
                },
            }
        }
    }

    /// What follows the position; none at the head.
    async fn read(&mut self) -> Result<Option<Bytes>, Failure> {
        let chunk = match self.left {
            // A limited stream may end within a chunk, so it renders its own.
            Some(left) => {
                let events = usize::try_from(left).map_or(STREAM_CHUNK_EVENTS, |left| left.min(STREAM_CHUNK_EVENTS));
                self.render(events).await?
            }
            None => self.shared().await?,
        };
        let Some(chunk) = chunk else { return Ok(None) };
        self.left = self.left.map(|left| left - (chunk.until.0 - chunk.after.0));
        self.at = chunk.until;
        Ok(Some(chunk.frames))
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
        let (agent, after, projection) = (self.agent.clone(), self.at, self.projection);
        let chunk = self.app.handle.ledger(&self.agent, move |store| {
            let events = reader::page(store, &agent, after, events_max)?;
            let Some(last) = events.last() else { return Ok(None) };
            let mut frames = Vec::new();
            for event in &events {
                write_frame(&mut frames, &agent, &event.envelope, event.previous, event.hash, projection);
            }
            Ok(Some(Chunk { after, until: last.envelope.seq, frames: frames.into() }))
        });
        Ok(chunk.await?)
    }
}
