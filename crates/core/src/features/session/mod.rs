//! Sessions: owned transactions in progress, whose statements come one at a time from any thread.
//!
//! # A thread of its own
//!
//! An open attempt is bound to a thread: its pinned epoch is that thread's, and so is the mark against nesting. So a session
//! has a thread for as long as it is open, on which its statements run, one after the other. The thread comes from a pool of
//! parked ones (`threads`). The handle ([`Session`]) hands a statement over and waits until it has run, so a statement may
//! borrow from its caller (`link`). A statement costs one or two microseconds while both threads still spin, and about fifteen
//! if they have parked.
//!
//! # Statements
//!
//! A statement runs behind a [savepoint](crate::features::savepoint) (`open`). If it returns an error of its own, what it has written is
//! undone, and the session goes on. If the attempt has lost a conflict, was told to end, or the statement panics, the
//! transaction is rolled back at once, and every later call says why.
//!
//! There is one attempt and no retry: the engine does not have the statements any more, and their caller has acted upon
//! their results. The result of a statement is certain when the session has committed, and not before: under a protocol that
//! is not [opaque](crate::Variants::is_opaque) two reads may even contradict each other, and the commit then fails.
//!
//! Where a protocol defers operations, those of a session run at once all the same, because each statement can be undone
//! alone.
//!
//! # The end of an idle session
//!
//! The thread waits for the next statement for as long as the session may idle, and then rolls back. So a session whose handle
//! was leaked, or whose user went to lunch, holds its locks and its epoch for a bounded time. A [`Canceller`] ends a session
//! that idles at once, too. A statement that runs hears of it as a transaction hears that it retains too much memory
//! (`retained`): at its next operation, at its commit, or while it waits for a lock ([`WaitLimit`](crate::WaitLimit)).

mod asynchronous;
mod link;
mod local;
mod open;
mod threads;

use crate::features::cancelling::Canceller;
use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::memory::thread_mark::in_transaction;
pub use asynchronous::AsyncSession;
use hotrow_sync::{Arc, thread};
use link::{Answer, Link, Request, next_id};
pub use local::LocalSession;
use open::{OpenSession, StatementError, serve};
use std::fmt;
use std::time::Duration;

/// The properties of a [`Session`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// The name by which errors and reports call it. Default: `unnamed`.
    pub name: String,
    /// The time without a statement after which the session is rolled back ([`CancelCause::Idle`](crate::CancelCause::Idle)).
    /// A longer one lets a slow user finish, and lets one that has gone away hold locks and memory for longer. Default: 30
    /// seconds. [`Duration::MAX`]: never.
    pub idle_max: Duration,
    /// The transaction's declaration about itself. Default: nothing is known.
    pub profile: Profile,
}

impl SessionOptions {
    /// The default options, with a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same options with another limit of the time without a statement.
    #[must_use]
    pub fn idle_max(self, idle_max: Duration) -> Self {
        Self { idle_max, ..self }
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { name: String::from("unnamed"), idle_max: Duration::from_secs(30), profile: Profile::UNKNOWN }
    }
}

/// A mark between two statements of a [`Session`], to which the session can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark {
    session: u64,
    number: u64,
}

impl SessionMark {
    /// The mark that was set, if it was.
    fn of(session: u64, number: Option<u64>) -> Result<Self, Error> {
        Ok(Self { session, number: number.ok_or(Misuse::UnknownMark)? })
    }
}

/// The result of a statement that has run.
fn returned<R, E>(result: Option<Result<R, StatementError<E>>>) -> Result<R, Error<E>> {
    match result.expect("the statement has run") {
        Ok(result) => Ok(result),
        Err(StatementError::Own(error)) => Err(Error::Rollback(error)),
        Err(StatementError::Caught) => Err(Error::Misuse(Misuse::CaughtError)),
    }
}

/// A transaction in progress that is owned: it may be kept, sent to another thread, and go on there.
///
/// [`Engine::begin`] begins it, each call of [`run`](Self::run) is a statement of it, and [`commit`](Self::commit) ends it.
/// Dropping it rolls it back, and returns when nothing is held any more.
///
/// The calls block their thread while the statement runs; asynchronous code has [`AsyncSession`]. A session
/// is not used within a transaction of the calling thread, which could wait for itself: that is [`Misuse::Nested`].
///
/// In a simulation there are no sessions.
pub struct Session<P: Protocol> {
    link: Arc<Link<P>>,
    /// True once the transaction was asked to end.
    is_over: bool,
}

impl<P: Protocol> Engine<P> {
    /// Begins a transaction that is not a closure: its statements come one at a time, from any thread. See [`Session`].
    ///
    /// # Errors
    ///
    /// [`Misuse::Nested`] within a transaction, [`Misuse::TooManyWorkers`], [`Misuse::NoThread`], [`Misuse::Unsupported`] in a
    /// simulation; [`Error::MemoryLimit`] and [`Error::Timeout`] as for [`Engine::transact`] before its first attempt.
    pub fn begin(&self, options: SessionOptions) -> Result<Session<P>, Error> {
        let link = self.start_session(options)?;
        match link.wait_until_open() {
            Ok(()) => Ok(Session { link, is_over: false }),
            Err(error) => Err(link.of_any_type(error)),
        }
    }

    /// Starts the thread of a session, which opens the transaction and then serves the link.
    fn start_session(&self, options: SessionOptions) -> Result<Arc<Link<P>>, Error> {
        may_wait()?;
        let worker = self.worker()?;
        let SessionOptions { name, idle_max, profile } = options;
        let link = Arc::new(Link::new(name, idle_max));
        let served = link.clone();
        let started = threads::run(Box::new(move || serve(&served, worker, profile)));
        started.map_err(|error| Misuse::NoThread { reason: error.to_string() })?;
        Ok(link)
    }
}

impl<P: Protocol> Session<P> {
    /// Runs a statement: a part of the transaction. It runs once, on the session's thread, while the caller waits.
    ///
    /// # Errors
    ///
    /// [`Error::Rollback`] with the statement's own error: what the statement has written is undone, and the session goes on. (If
    /// a key has come that the session had found absent, it has lost instead: so a row that "exists already" was there before, or
    /// the session had not asked. Rows that were read may have changed; that is found out at the commit.)
    /// So it does after [`Misuse::CaughtError`]. Any other error has ended the transaction, and later calls return the same:
    /// [`Error::Conflict`] or [`Error::Timeout`] if it has lost (run all statements again in a new session), and
    /// [`Error::Cancelled`], [`Error::MemoryLimit`], [`Error::Misuse`]. After a panic they return [`Error::Panicked`].
    ///
    /// [`Misuse::Nested`] within a transaction of the calling thread; that changes nothing.
    ///
    /// # Panics
    ///
    /// Passes on a panic of the statement, which has ended the transaction.
    pub fn run<R: Send>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, Abort> + Send,
    ) -> Result<R, Error> {
        self.try_run(statement)
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
    pub fn try_run<R: Send, E: From<Abort> + Send>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, E> + Send,
    ) -> Result<R, Error<E>> {
        let (mut statement, mut result) = (Some(statement), None);
        self.ask(&mut |session: &mut OpenSession<'_, P>| {
            let statement = statement.take().expect("a statement is run once");
            session.run(statement, &mut result)
        })?;
        returned(result)
    }

    /// Sets a mark, to which [`roll_back_to`](Self::roll_back_to) takes the transaction back. A later statement that changes
    /// what was written before the mark copies it once.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), if the transaction has ended.
    pub fn savepoint(&mut self) -> Result<SessionMark, Error> {
        let mut number = None;
        self.ask(&mut |session: &mut OpenSession<'_, P>| {
            number = session.mark();
            Ok(())
        })?;
        SessionMark::of(self.link.id, number)
    }

    /// Undoes all that was written since the mark. The mark stays, and marks behind it are gone. What was read since is still
    /// validated at the commit, and locks are held until then.
    ///
    /// # Errors
    ///
    /// [`Misuse::UnknownMark`] if the session does not have the mark; that changes nothing. As [`run`](Self::run), if the
    /// transaction has ended.
    pub fn roll_back_to(&mut self, mark: SessionMark) -> Result<(), Error> {
        self.end_mark(mark, |session, number| session.roll_back_to(number))
    }

    /// Gives the mark, and those behind it, up. What was written since stays.
    ///
    /// # Errors
    ///
    /// As [`roll_back_to`](Self::roll_back_to).
    pub fn release(&mut self, mark: SessionMark) -> Result<(), Error> {
        self.end_mark(mark, |session, number| session.release(number))
    }

    fn end_mark(
        &mut self,
        mark: SessionMark,
        end: impl Fn(&mut OpenSession<'_, P>, u64) -> bool + Send + Sync,
    ) -> Result<(), Error> {
        let mut is_known = false;
        let is_mine = mark.session == self.link.id;
        self.ask(&mut |session: &mut OpenSession<'_, P>| {
            is_known = is_mine && end(session, mark.number);
            Ok(())
        })?;
        if is_known { Ok(()) } else { Err(Misuse::UnknownMark.into()) }
    }

    /// Tries to commit.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run): the transaction has had no effect. [`Misuse::Nested`] within a transaction of the calling
    /// thread, for which the session is rolled back.
    ///
    /// # Panics
    ///
    /// Passes on a panic of users' code before the commit point.
    pub fn commit(mut self) -> Result<(), Error> {
        may_wait()?;
        self.is_over = true;
        self.link.ask(Request::Commit).map_err(|error| self.link.of_any_type(error))
    }

    /// Rolls back, and returns when nothing is held any more. Dropping the session does the same.
    pub fn roll_back(self) {}

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

    /// Has work done on the session's thread while the transaction is open.
    fn ask<E: From<Abort>>(
        &mut self,
        work: &mut (impl FnMut(&mut OpenSession<'_, P>) -> Answer + Send),
    ) -> Result<(), Error<E>> {
        may_wait()?;
        self.link.ask_for(work).map_err(|error| self.link.of_any_type(error))
    }
}

/// Checks that the calling thread may wait for a session.
fn may_wait() -> Result<(), Misuse> {
    if thread::is_simulated() {
        Err(Misuse::Unsupported("in a simulation there are no threads for sessions".to_owned()))
    } else if in_transaction() {
        Err(Misuse::Nested)
    } else {
        Ok(())
    }
}

impl<P: Protocol> Drop for Session<P> {
    /// Rolls back. Where the session must not be used, within a transaction of the calling thread, it does not wait until that
    /// has happened.
    fn drop(&mut self) {
        if !self.is_over {
            self.link.roll_back(may_wait().is_ok());
        }
    }
}

impl<P: Protocol> fmt::Debug for Session<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name()).field("is_open", &self.is_open()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
