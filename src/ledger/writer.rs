//! The one writer: a thread that takes everything that waits, commits it as one transaction, and answers all.

use super::{Append, AppendError, Store, StoreError};
use crate::words::limit::{APPENDS_PER_COMMIT_MAX, COMMIT_BYTES_MAX};
use futures::channel::oneshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Hands appends to the writer's thread. Its queue is bounded by its users: a loop has one append under way.
#[derive(Clone)]
pub struct Writer {
    jobs: Sender<Mail>,
    commits: Arc<AtomicU64>,
}

enum Mail {
    Append(Job),
    /// Nothing follows.
    Close,
}

/// The writer's thread, for whoever closes the house.
pub struct WriterThread {
    thread: JoinHandle<()>,
}

struct Job {
    append: Append,
    reply: oneshot::Sender<Result<(), AppendError>>,
}

impl Writer {
    /// Starts the thread. It ends when it is told to, or when the last [`Writer`] is gone.
    pub fn start(store: Arc<dyn Store>) -> std::io::Result<(Self, WriterThread)> {
        let (jobs, waiting) = channel();
        let commits = Arc::new(AtomicU64::new(0));
        let counted = commits.clone();
        let thread = std::thread::Builder::new().name("ledger-writer".into());
        let thread = thread.spawn(move || write(&*store, &waiting, &counted))?;
        Ok((Self { jobs, commits }, WriterThread { thread }))
    }

    /// Transactions so far.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Resolves when the append is durable, or has failed.
    pub async fn append(&self, append: Append) -> Result<(), AppendError> {
        let gone = || AppendError::Store(StoreError::Closed("the writer has ended".into()));
        let (reply, outcome) = oneshot::channel();
        self.jobs.send(Mail::Append(Job { append, reply })).map_err(|_| gone())?;
        outcome.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Has the thread write what was handed in, close the store and end.
    pub fn close(&self) {
        // A thread that has ended has nothing left to close.
        let _ = self.jobs.send(Mail::Close);
    }
}

impl WriterThread {
    /// Waits for the thread's end.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the ledger's writer panicked");
        }
    }
}

fn write(store: &dyn Store, waiting: &Receiver<Mail>, commits: &AtomicU64) {
    let mut is_last = false;
    while !is_last && let Ok(Mail::Append(first)) = waiting.recv() {
        let mut bytes = first.append.bytes();
        let mut jobs = vec![first];
        while jobs.len() < APPENDS_PER_COMMIT_MAX && bytes < COMMIT_BYTES_MAX && !is_last {
            match waiting.try_recv() {
                Ok(Mail::Append(job)) => {
                    bytes += job.append.bytes();
                    jobs.push(job);
                }
                Ok(Mail::Close) => is_last = true,
                Err(_) => break,
            }
        }
        commit(store, jobs);
        commits.fetch_add(1, Ordering::Relaxed);
    }
    store.close();
}

fn commit(store: &dyn Store, jobs: Vec<Job>) {
    let (batch, replies): (Vec<Append>, Vec<_>) = jobs.into_iter().map(|job| (job.append, job.reply)).unzip();
    let outcomes = store.commit(&batch);
    assert_eq!(outcomes.len(), replies.len(), "each append has its outcome");
    for (reply, outcome) in replies.into_iter().zip(outcomes) {
        // The one who asked may have gone; what is durable stays so.
        let _ = reply.send(outcome);
    }
}

impl Append {
    /// Bytes that the append brings into the transaction, rows aside.
    fn bytes(&self) -> usize {
        let records: usize = self.parts.iter().map(|part| part.records.bytes()).sum();
        records + self.blobs.iter().map(|blob| blob.bytes.len()).sum::<usize>()
    }
}
