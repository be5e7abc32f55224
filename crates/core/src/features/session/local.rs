//! Sessions on the thread that has begun them.
//!
//! A program that has a thread for each of its users needs none besides: the transaction is open on the user's own thread, and a
//! statement is a call. What a [`Session`](super::Session) has, this one has; only the end of an idle one is its thread's affair,
//! because nobody else can end what is bound to a thread.

use super::link::{Answer, cancelled};
use super::open::{Ending, OpenSession, StatementError};
use super::{SessionMark, next_id, returned};
use crate::features::cancelling::{Canceller, Switch};
use crate::features::retries::Inside;
use crate::kernel::abort::{Abort, CancelCause, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::users_code::contained;
use hotrow_sync::event::Event;
use hotrow_sync::{Arc, thread};
use std::fmt;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::ptr::NonNull;

/// A [`Session`](super::Session) that runs on the thread that has begun it, and stays there.
///
/// [`Engine::begin_here`] begins it. A statement is a call: nothing is handed to another thread. While the session is open its thread is
/// inside a transaction, so that another one there is [`Misuse::Nested`].
///
/// One that is leaked keeps its thread inside a transaction for good, and retained memory from being freed.
///
/// Nobody ends it because it idles: its thread does that, by [`roll_back`](Self::roll_back) or by dropping it. A [`Canceller`] ends it
/// at its next call if it idles.
pub struct LocalSession<P: Protocol> {
    name: String,
    id: u64,
    switch: Arc<Switch>,
    /// The transaction, while it is open.
    open: Option<Open<P>>,
    /// The error that has ended it.
    ending: Result<(), Error<()>>,
}

/// A session's transaction with all that it borrows. The fields are dropped in this order.
struct Open<P: Protocol> {
    /// Borrows the worker, and never leaves this type with that lifetime.
    session: OpenSession<'static, P>,
    _inside: Inside,
    _worker: OwnedWorker<P>,
}

/// A worker in a place of its own, freed when this is dropped.
struct OwnedWorker<P: Protocol>(NonNull<Worker<P>>);

impl<P: Protocol> Drop for OwnedWorker<P> {
    fn drop(&mut self) {
        // SAFETY: from a box, and freed here only; what borrows it is dropped before (see `Open`), or was forgotten together with this.
        let worker = unsafe { Box::from_raw(self.0.as_ptr()) };
        contained(|| drop(worker));
    }
}

impl<P: Protocol> Engine<P> {
    /// Begins a session on the calling thread. See [`LocalSession`].
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn begin_here(&self, name: impl Into<String>, profile: Profile) -> Result<LocalSession<P>, Error> {
        if thread::is_simulated() {
            return Err(Misuse::Unsupported("in a simulation there are no sessions".to_owned()).into());
        }
        let (name, switch) = (name.into(), Arc::new(Switch::default()));
        let worker = OwnedWorker(NonNull::from(Box::leak(Box::new(self.worker()?))));
        // SAFETY: the place lives until `worker` is dropped, which is after all that borrows it; nobody else uses it.
        let borrowed: &'static mut Worker<P> = unsafe { &mut *worker.0.as_ptr() };
        let begun = borrowed.begin_session(&name, profile, Arc::new(Event::new()));
        let (inside, transaction) = begun.map_err(Error::of_any_body)?;
        switch.show(transaction.attempt.holder);
        let session = OpenSession::new(transaction);
        let open = Some(Open { session, _inside: inside, _worker: worker });
        Ok(LocalSession { name, id: next_id(), switch, open, ending: Ok(()) })
    }
}

impl<P: Protocol> LocalSession<P> {
    /// Runs a statement: a part of the transaction. It runs once.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](super::Session::run).
    ///
    /// # Panics
    ///
    /// Passes on a panic of the statement, which has ended the transaction.
    pub fn run<R>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, Abort>,
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
    pub fn try_run<R, E: From<Abort>>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let mut result: Option<Result<R, StatementError<E>>> = None;
        self.ask(|session| session.run(statement, &mut result))?;
        returned(result)
    }

    /// Sets a mark, as [`Session::savepoint`](super::Session::savepoint).
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), if the transaction has ended.
    pub fn savepoint(&mut self) -> Result<SessionMark, Error> {
        let mut number = None;
        self.ask(|session| {
            number = session.mark();
            Ok(())
        })?;
        SessionMark::of(self.id, number)
    }

    /// Undoes all that was written since the mark, which stays.
    ///
    /// # Errors
    ///
    /// As [`Session::roll_back_to`](super::Session::roll_back_to).
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
        end: impl Fn(&mut OpenSession<'_, P>, u64) -> bool,
    ) -> Result<(), Error> {
        let mut is_known = false;
        let is_mine = mark.session == self.id;
        self.ask(|session| {
            is_known = is_mine && end(session, mark.number);
            Ok(())
        })?;
        if is_known { Ok(()) } else { Err(Misuse::UnknownMark.into()) }
    }

    /// Tries to commit.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run): the transaction has had no effect.
    ///
    /// # Panics
    ///
    /// Passes on a panic of users' code before the commit point.
    pub fn commit(mut self) -> Result<(), Error> {
        match self.open.take() {
            Some(open) if self.switch.is_cancelled() => {
                let cause = cancelled(&self.name, CancelCause::Requested);
                self.end(open, |session| session.roll_back(Err(cause)))
            }
            Some(open) => self.end(open, |session| session.commit()),
            None => self.ended(),
        }
    }

    /// Rolls back. Dropping the session does the same.
    pub fn roll_back(self) {}

    /// Returns a handle by which any thread can end the transaction.
    pub fn canceller(&self) -> Canceller {
        Canceller { switch: self.switch.clone() }
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the transaction is still open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The error that has ended the transaction.
    fn ended<R, E: From<Abort>>(&self) -> Result<R, Error<E>> {
        match self.ending.clone() {
            Err(error) => Err(error.map_rollback(|()| Abort::rollback().into())),
            Ok(()) => unreachable!("a session that was asked to end is consumed"),
        }
    }

    /// Has work done in the transaction while it is open, and notes its end.
    fn ask<E: From<Abort>>(
        &mut self,
        work: impl FnOnce(&mut OpenSession<'_, P>) -> Answer,
    ) -> Result<(), Error<E>> {
        let Some(mut open) = self.open.take() else { return self.ended() };
        if self.switch.is_cancelled() {
            let cause = cancelled(&self.name, CancelCause::Requested);
            return self.end(open, |session| session.roll_back(Err(cause)));
        }
        let answer = work(&mut open.session);
        let Open { session, _inside, _worker } = open;
        match session.after(answer, &self.switch, &self.name) {
            ControlFlow::Continue(session) => {
                self.open = Some(Open { session, _inside, _worker });
                Ok(())
            }
            ControlFlow::Break(ending) => {
                drop(_inside);
                drop(_worker);
                self.note(ending)
            }
        }
    }

    /// Ends the transaction.
    fn end<E: From<Abort>>(
        &mut self,
        open: Open<P>,
        end: impl FnOnce(OpenSession<'_, P>) -> Ending,
    ) -> Result<(), Error<E>> {
        let Open { session, _inside, _worker } = open;
        let ending = end(session);
        drop(_inside);
        drop(_worker);
        self.note(ending)
    }

    /// Notes how the transaction has ended, and passes a panic on.
    fn note<E: From<Abort>>(&mut self, ending: Ending) -> Result<(), Error<E>> {
        let Ending { result, panic, mut reason } = ending;
        self.ending = result.clone();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        result.map_err(|error| error.map_rollback(|()| reason.take().unwrap_or_else(Abort::rollback).into()))
    }
}

impl<P: Protocol> Drop for LocalSession<P> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // The panic of a destructor of users' values is contained.
            let _: Result<(), Error> = self.end(open, |session| session.roll_back(Ok(())));
        }
    }
}

impl<P: Protocol> fmt::Debug for LocalSession<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSession").field("name", &self.name()).field("is_open", &self.is_open()).finish()
    }
}
