//! After an append that was refused: the ledger is folded again, and nothing that has happened is lost.

use super::{AgentLoop, Read, Told, load};
use crate::ledger::AppendError;
use crate::runtime::handle::SubmitError;
use crate::runtime::mail::{Mail, Outcome, What};
use std::time::Duration;

/// First and longest wait before the ledger is read again.
const WAIT_FIRST: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What is left of a batch that was not written.
pub(super) struct Unwritten {
    pub(super) error: AppendError,
    /// What they tell has happened all the same.
    pub(super) outcomes: Vec<Told>,
    /// They look at what is durable.
    pub(super) reads: Vec<Read>,
}

impl AgentLoop {
    /// Folds the ledger again, and hands in again what is left. False when the host goes down meanwhile.
    pub(super) async fn reload(&mut self, unwritten: Unwritten) -> bool {
        let Unwritten { error, outcomes, reads } = unwritten;
        // Who was taken for somebody else has no disk to wait for.
        let is_conflict = matches!(error, AppendError::Conflict { .. });
        let mut wait = if is_conflict { Duration::ZERO } else { WAIT_FIRST };
        let mut kept: Vec<Mail> = reads.into_iter().map(Mail::Read).collect();
        while self.sit_out(wait, &mut kept).await {
            match load(&self.shared, &self.id).await {
                Ok((state, head)) => {
                    (self.state, self.head, self.rows) = (state, head, None);
                    let told = |(effect, request, blobs)| Outcome { effect, what: What::Command { request, blobs } };
                    kept.extend(outcomes.into_iter().map(told).map(Mail::Outcome));
                    // The loop owns the receiving end, so the sending end works.
                    kept.into_iter().for_each(|mail| drop(self.received.me.send(mail)));
                    return true;
                }
                Err(SubmitError::Quarantined { .. }) => return false,
                Err(error) => tracing::error!(agent = %self.id, %error, "the ledger cannot be read yet"),
            }
            wait = (wait * 2).clamp(WAIT_FIRST, WAIT_MAX);
        }
        false
    }

    /// Waits, and keeps the mail that comes; submissions are refused. False when the host goes down.
    async fn sit_out(&mut self, wait: Duration, kept: &mut Vec<Mail>) -> bool {
        let pause = tokio::time::sleep(wait);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return true,
                mail = self.received.mail.recv() => match mail {
                    Some(Mail::Submit(submission)) => {
                        self.received.taken();
                        let reason = "the ledger could not be written; try again";
                        drop(submission.reply.send(Err(SubmitError::Unavailable(reason.into()))));
                    }
                    Some(Mail::Shutdown) | None => return false,
                    Some(mail) => kept.push(mail),
                },
            }
        }
    }
}
