//! Waiting for durability without holding a thread.

use hotrow_core::NotDurable;
use hotrow_log::{Failure, Log, WhenDurable};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A promise that a transaction, which has committed, will be durable: [`wait`](Self::wait) for it, or `.await` it under any executor.
#[derive(Clone)]
pub struct Ticket {
    /// `None` if the database has no log.
    log: Option<(Log, u64)>,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("is_durable", &self.is_durable()).finish()
    }
}

impl Ticket {
    pub(crate) fn new(log: Option<(Log, u64)>) -> Self {
        Self { log }
    }

    /// True if the transaction is durable, and all that it has read. Always true in a database without a directory.
    pub fn is_durable(&self) -> bool {
        self.log.as_ref().is_none_or(|(log, epoch)| log.is_settled(*epoch))
    }

    /// Waits until the transaction is durable.
    ///
    /// # Errors
    ///
    /// [`NotDurable`] if it never will be, as far as one knows.
    pub fn wait(&self) -> Result<(), NotDurable> {
        match &self.log {
            Some((log, epoch)) => log.wait_appended(*epoch).map_err(|failure| not_durable(&failure)),
            None => Ok(()),
        }
    }
}

/// The error of a commit that the log has lost.
pub(crate) fn not_durable(failure: &Failure) -> NotDurable {
    NotDurable { reason: failure.to_string(), has_committed: true }
}

impl IntoFuture for Ticket {
    type Output = Result<(), NotDurable>;
    type IntoFuture = Awaited;

    fn into_future(self) -> Awaited {
        Awaited(self.log.map(|(log, epoch)| log.when_appended(epoch)))
    }
}

/// The future of a [`Ticket`].
pub struct Awaited(Option<WhenDurable>);

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").finish_non_exhaustive()
    }
}

impl Future for Awaited {
    type Output = Result<(), NotDurable>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            None => Poll::Ready(Ok(())),
            Some(when) => {
                Pin::new(when).poll(context).map(|ended| ended.map_err(|failure| not_durable(&failure)))
            }
        }
    }
}
