//! Waiting for durability without holding a thread.

use crate::database::Database;
use hotrow_core::{Abort, Durability, Error, NotDurable, Profile, Protocol, Transaction};
use hotrow_log::{Failure, Log, WhenDurable};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
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

fn not_durable(failure: &Failure) -> NotDurable {
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

impl<P: Protocol> Database<P> {
    /// Runs a transaction as [`transact`](hotrow_core::Engine::transact) does, but returns as soon as it has committed, with a ticket for
    /// its durability. What it has committed may be undone by a crash until the ticket says otherwise.
    ///
    /// # Errors
    ///
    /// As [`Engine::transact`](hotrow_core::Engine::transact).
    #[track_caller]
    pub fn transact_with_ticket<R>(
        &self,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<(R, Ticket), Error> {
        let place = Location::caller();
        self.with_worker(|worker| {
            let profile = Profile { durability: Durability::Buffered, ..Profile::UNKNOWN };
            let result = worker.called_from(place).try_transact_as(profile, &mut body)?;
            Ok((result, self.ticket(worker.epoch())))
        })
    }

    /// The epoch up to which all commits are durable: see [`Worker::epoch`](hotrow_core::Worker::epoch). The greatest number in a
    /// database without a directory.
    pub fn durable_epoch(&self) -> u64 {
        self.durable().map_or(u64::MAX, |durable| durable.log.durable_epoch())
    }

    /// Returns a ticket for all commits up to an epoch: that of a worker's [last transaction](hotrow_core::Worker::epoch), say.
    pub fn ticket(&self, epoch: u64) -> Ticket {
        Ticket::new(self.durable().map(|durable| (durable.log.clone(), epoch)))
    }
}
