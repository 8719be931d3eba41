//! Connections whose clients do not take what they are sent: they are waited for, and not for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A connection on which a write fails when for so long nothing of it could be written.
pub(super) struct Patient<I> {
    io: I,
    wait_max: Duration,
    /// Runs while a write waits.
    wait: Option<Pin<Box<Sleep>>>,
}

impl<I> Patient<I> {
    pub(super) fn new(io: I, wait_max: Duration) -> Self {
        Self { io, wait_max, wait: None }
    }

    /// What came of a write, unless it has waited too long.
    fn within(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.wait = None;
            return written;
        }
        let wait_max = self.wait_max;
        let wait = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait_max)));
        ready!(wait.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of what it is sent")))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Patient<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Patient<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, pieces);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn a_write_of_which_nothing_is_taken_fails() {
        let (ours, _theirs) = duplex(8);
        let mut patient = Patient::new(ours, Duration::from_millis(10));
        let failed = patient.write_all(b"more than eight").await.expect_err("nobody reads");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn each_time_something_is_taken_the_wait_begins_anew() {
        let (ours, mut theirs) = duplex(8);
        let mut patient = Patient::new(ours, Duration::from_secs(30));
        let written = async {
            patient.write_all(&[7; 24]).await.expect("it is read");
            patient
        };
        let read = async {
            let mut bytes = [0; 24];
            theirs.read_exact(&mut bytes).await.expect("it is written");
            bytes
        };
        let (patient, bytes) = tokio::join!(written, read);
        assert_eq!(bytes, [7; 24]);
        assert!(patient.wait.is_none(), "what was written is not waited for");
    }
}
