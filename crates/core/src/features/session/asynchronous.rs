//! Sessions for asynchronous code: the same transaction on a thread of its own, whose calls are futures.
//!
//! A statement is handed over as in a [`Session`](super::Session), but nothing is lent: it owns what it uses. Its future is woken
//! when the session's thread has answered. So no executor's thread waits.
//!
//! # Dropped futures
//!
//! A statement whose future is dropped has no effect. If it was not handed over, it never runs. If it was, it runs to its end, and
//! is undone: each statement leaves a mark on the session's thread, which is settled before the next request. Its writes stay if
//! its future has returned the result, and are undone otherwise. The next call waits for a statement that still runs.

use super::link::{Answer, Link, Request};
use super::open::{OpenSession, Statement, StatementError};
use super::{Canceller, SessionMark, SessionOptions, may_wait};
use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use hotrow_sync::{Arc, Mutex, lock};
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;

/// A [`Session`](super::Session) for asynchronous code: each call is a future, which never blocks the thread that polls it.
///
/// [`Engine::begin_async`] begins it. While it is open it has a thread of its own, on which its statements run, so a thousand open
/// sessions are a thousand threads; transactions that are one closure need none
/// ([`Engine::transact_async`](crate::Engine::transact_async)).
///
/// Each future may be dropped at any await. A statement has had no effect then, and the session goes on; the commit may have
/// happened, or happen yet. Dropping the session rolls it back soon, and does not wait for that.
///
/// In a simulation there are no sessions.
pub struct AsyncSession<P: Protocol> {
    link: Arc<Link<P>>,
    /// True once the transaction was asked to end.
    is_over: bool,
}

/// The result of a statement, from its thread to its future.
struct Returned<R, E> {
    result: Mutex<Option<Result<R, StatementError<E>>>>,
    statement: Arc<Statement>,
}

impl<P: Protocol> Engine<P> {
    /// As [`begin`](Self::begin), for asynchronous code: the future is ready when the transaction is open. See [`AsyncSession`].
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub async fn begin_async(&self, options: SessionOptions) -> Result<AsyncSession<P>, Error> {
        // Ends the transaction if the future is dropped.
        let session = AsyncSession { link: self.start_session(options)?, is_over: false };
        session.answered().await;
        match session.link.outcome_of_begin() {
            Ok(()) => Ok(session),
            Err(error) => Err(session.link.of_any_type(error)),
        }
    }
}

impl<P: Protocol> AsyncSession<P> {
    /// Runs a statement: a part of the transaction. It runs once, on the session's thread.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](super::Session::run).
    ///
    /// # Panics
    ///
    /// Passes on a panic of the statement, which has ended the transaction.
    pub async fn run<R: Send + 'static>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, Abort> + Send + 'static,
    ) -> Result<R, Error> {
        self.try_run(statement).await
    }

    /// As [`run`](Self::run), with an error type of the user's own, which is returned unchanged in [`Error::Rollback`].
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub async fn try_run<R: Send + 'static, E: From<Abort> + Send + 'static>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, E> + Send + 'static,
    ) -> Result<R, Error<E>> {
        let returned = Arc::new(Returned { result: Mutex::new(None), statement: Arc::default() });
        let returns = returned.clone();
        self.ask(move |session| {
            session.keep_mark(returns.statement.clone());
            let mut result = None;
            let answer = session.run(statement, &mut result);
            *lock(&returns.result) = result;
            answer
        })
        .await?;
        returned.statement.has_returned();
        let result = lock(&returned.result).take();
        super::returned(result)
    }

    /// As [`Session::savepoint`](super::Session::savepoint).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), if the transaction has ended.
    pub async fn savepoint(&mut self) -> Result<SessionMark, Error> {
        let marked = Arc::new(Mutex::new(None));
        let marks = marked.clone();
        self.ask(move |session| {
            *lock(&marks) = session.mark();
            Ok(())
        })
        .await?;
        let number = lock(&marked).take();
        SessionMark::of(self.link.id, number)
    }

    /// As [`Session::roll_back_to`](super::Session::roll_back_to). If its future is dropped, the rollback may have happened.
    ///
    /// # Errors
    ///
    /// As [`Session::roll_back_to`](super::Session::roll_back_to).
    pub async fn roll_back_to(&mut self, mark: SessionMark) -> Result<(), Error> {
        self.end_mark(mark, |session, number| session.roll_back_to(number)).await
    }

    /// As [`Session::release`](super::Session::release). If its future is dropped, the mark may be gone.
    ///
    /// # Errors
    ///
    /// As [`Session::roll_back_to`](super::Session::roll_back_to).
    pub async fn release(&mut self, mark: SessionMark) -> Result<(), Error> {
        self.end_mark(mark, |session, number| session.release(number)).await
    }

    async fn end_mark(
        &mut self,
        mark: SessionMark,
        end: fn(&mut OpenSession<'_, P>, u64) -> bool,
    ) -> Result<(), Error> {
        let known = Arc::new(Mutex::new(false));
        let (is_mine, is_known) = (mark.session == self.link.id, known.clone());
        self.ask(move |session| {
            *lock(&is_known) = is_mine && end(session, mark.number);
            Ok(())
        })
        .await?;
        let is_known = *lock(&known);
        if is_known { Ok(()) } else { Err(Misuse::UnknownMark.into()) }
    }

    /// Tries to commit. If its future is dropped after its first poll, the commit may have happened, or happen yet.
    ///
    /// # Errors
    ///
    /// As [`Session::commit`](super::Session::commit).
    ///
    /// # Panics
    ///
    /// Passes on a panic of users' code before the commit point.
    pub async fn commit(mut self) -> Result<(), Error> {
        may_wait()?;
        self.answered().await;
        self.is_over = true;
        self.put(Request::Commit).await.map_err(|error| self.link.of_any_type(error))
    }

    /// Rolls back. Nothing is held any more when the future is ready.
    pub async fn roll_back(mut self) {
        self.link.switch.cancel();
        self.is_over = true;
        poll_fn(|context| self.link.poll_end(context)).await;
    }

    /// Returns a handle by which any thread can end the transaction.
    pub fn canceller(&self) -> Canceller {
        Canceller { switch: self.link.switch.clone() }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.link.name
    }

    /// True if the transaction is still open. It may end at any moment.
    pub fn is_open(&self) -> bool {
        self.link.is_open()
    }

    /// Waits until the session's thread has served what was asked before.
    fn answered(&self) -> impl Future<Output = ()> {
        poll_fn(|context| self.link.poll_answer(context))
    }

    /// Has work done on the session's thread while the transaction is open.
    async fn ask<E: From<Abort>>(
        &mut self,
        work: impl FnOnce(&mut OpenSession<'_, P>) -> Answer + Send + 'static,
    ) -> Result<(), Error<E>> {
        may_wait()?;
        // For a statement whose future was dropped.
        self.answered().await;
        self.put(Request::Owned(Box::new(work))).await.map_err(|error| self.link.of_any_type(error))
    }

    async fn put(&self, request: Request<P>) -> Result<(), Error<()>> {
        self.link.put(request);
        self.answered().await;
        match self.link.take_panic() {
            Some(panic) => resume_unwind(panic),
            None => self.link.outcome(),
        }
    }
}

impl<P: Protocol> Drop for AsyncSession<P> {
    /// Has the transaction rolled back, by its thread.
    fn drop(&mut self) {
        if !self.is_over {
            self.link.switch.cancel();
        }
    }
}

impl<P: Protocol> fmt::Debug for AsyncSession<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncSession").field("name", &self.name()).field("is_open", &self.is_open()).finish()
    }
}
