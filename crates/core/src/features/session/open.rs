//! The thread's side of a session: the open transaction.

use super::link::{Answer, Link, Next, Request, cancelled};
use crate::features::cancelling::Switch;
use crate::features::retries::Inside;
use crate::kernel::abort::{Abort, CancelCause, Error};
use crate::kernel::object_access::{AttemptOutcome, ObjectAccess};
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::identity::Origin;
use crate::memory::retained::{self, HolderKind};
use crate::memory::thread_mark::{is_rolling_back, set_rollback};
use crate::memory::users_code::{Panics, contained, drop_payload, message_of};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::event::Event;
use std::any::Any;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::time::Duration;

/// A session's transaction, on its thread.
pub(super) struct OpenSession<'w, P: Protocol> {
    transaction: ObjectAccess<'w, P>,
    /// The deadline of the waits of each statement.
    deadline: Option<Duration>,
    /// The numbers of the session's marks. Between two statements each stands for a part that is open.
    marks: Vec<u64>,
    /// Number of marks so far.
    marks_made: u64,
    /// The last statement of a task, and the mark before it.
    unsettled: Option<(u64, Arc<Statement>)>,
}

/// The statement of a task, which is undone unless its future has returned the result.
#[derive(Debug, Default)]
pub(super) struct Statement {
    has_returned: AtomicBool,
}

impl Statement {
    /// Notes that the future returns the result.
    pub(super) fn has_returned(&self) {
        // Relaxed: the next request makes it visible.
        self.has_returned.store(true, Ordering::Relaxed);
    }
}

/// The error of a statement that did not end the transaction.
pub(super) enum StatementError<E> {
    /// The statement's own.
    Own(E),
    /// The statement has caught an error that was to roll it back.
    Caught,
}

impl<'w, P: Protocol> OpenSession<'w, P> {
    pub(super) fn new(transaction: ObjectAccess<'w, P>) -> Self {
        let deadline = transaction.attempt.course.deadline;
        Self { transaction, deadline, marks: Vec::new(), marks_made: 0, unsettled: None }
    }

    /// Runs a statement behind a savepoint. There is no result if the transaction cannot go on.
    pub(super) fn run<R, E>(
        &mut self,
        statement: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, E>,
        result: &mut Option<Result<R, StatementError<E>>>,
    ) -> Answer {
        set_rollback(false);
        self.transaction.attempt.course.set_deadline(self.deadline);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.transaction.savepoint(|tx| match statement(tx) {
                Ok(_) if is_rolling_back() || tx.0.attempt.hears(Moments::HALF_CHANGED) => {
                    Err(StatementError::Caught)
                }
                Ok(result) => Ok(result),
                Err(error) => Err(StatementError::Own(error)),
            })
        }));
        *result = ran?.ok();
        // An error of the statement's own is told only if what the session has found absent is absent still: otherwise the session
        // has lost, whatever the error says (of a key that exists, say).
        if let Some(Err(StatementError::Own(_))) = result
            && !self.transaction.is_stopped()
            && let Err(lost) = self.transaction.attempt.check_structures()
        {
            let _ = self.transaction.lose(lost);
        }
        Ok(())
    }

    /// Sets a mark before a task's statement, until it is [settled](Self::settle).
    pub(super) fn keep_mark(&mut self, statement: Arc<Statement>) {
        self.unsettled = self.mark().map(|mark| (mark, statement));
    }

    /// Undoes the last statement of a task, if its future has not returned the result. Before the next request.
    fn settle(&mut self) {
        if let Some((mark, statement)) = self.unsettled.take() {
            // Relaxed: see `has_returned`.
            self.end_marks(mark, statement.has_returned.load(Ordering::Relaxed));
        }
    }

    /// Sets a mark and returns its number; `None` if the transaction cannot go on.
    pub(super) fn mark(&mut self) -> Option<u64> {
        self.transaction.open_mark().ok()?;
        self.marks_made += 1;
        self.marks.push(self.marks_made);
        Some(self.marks_made)
    }

    /// Undoes all that was written since a mark, which stays. False if there is no such mark.
    pub(super) fn roll_back_to(&mut self, mark: u64) -> bool {
        self.end_marks(mark, false) && self.transaction.open_mark().is_ok() && {
            self.marks.push(mark);
            true
        }
    }

    /// Gives a mark up. False if there is no such mark.
    pub(super) fn release(&mut self, mark: u64) -> bool {
        self.end_marks(mark, true)
    }

    fn end_marks(&mut self, mark: u64, keeps: bool) -> bool {
        let Some(at) = self.marks.iter().position(|known| *known == mark) else { return false };
        self.marks.truncate(at);
        self.transaction.end_marks(at, keeps);
        true
    }

    /// Commits, or fails to.
    pub(super) fn commit(mut self) -> Ending {
        // It has the last statement's deadline, as a statement of its own.
        self.transaction.attempt.course.budget.since = None;
        let committed = catch_unwind(AssertUnwindSafe(|| {
            self.transaction.end_marks(0, true);
            self.transaction.end_alone(true, ObjectAccess::commit)
        }));
        match committed {
            Ok(outcome) => Ending::of(outcome, false),
            Err(panic) => Ending::by_panic(panic),
        }
    }

    /// Rolls back, for this cause.
    pub(super) fn roll_back(self, cause: Result<(), Error<()>>) -> Ending {
        self.transaction.end_alone(false, |tx| tx.cancel(&mut Panics::default()));
        Ending { result: cause, panic: None, reason: None }
    }

    /// Goes on after a request, or ends: because of a panic, of a conflict, or because the session was told to.
    pub(super) fn after(self, answer: Answer, switch: &Switch, name: &str) -> ControlFlow<Ending, Self> {
        if answer.is_ok() && !self.transaction.is_stopped() {
            if switch.is_cancelled() {
                return ControlFlow::Break(self.roll_back(Err(cancelled(name, CancelCause::Requested))));
            }
            return ControlFlow::Continue(self);
        }
        let is_late = self.transaction.attempt.course.is_out_of_time();
        let outcome = self.transaction.end_alone(false, |tx| tx.give_up(&mut Panics::default()));
        ControlFlow::Break(match (answer, outcome) {
            // The statement may have panicked over what it should not have seen.
            (Err(panic), outcome @ AttemptOutcome::Lost(_)) => {
                drop_payload(panic);
                Ending::of(outcome, is_late)
            }
            (Err(panic), _) => Ending::by_panic(panic),
            (Ok(()), outcome) => Ending::of(outcome, is_late),
        })
    }
}

/// The end of a session, and the panic or the reason of a rollback at the commit, if one has ended it.
pub(super) struct Ending {
    pub(super) result: Result<(), Error<()>>,
    pub(super) panic: Option<Box<dyn Any + Send>>,
    pub(super) reason: Option<Abort>,
}

impl Ending {
    fn with(result: Result<(), Error<()>>) -> Self {
        Self { result, panic: None, reason: None }
    }

    /// The end of an attempt.
    fn of(outcome: AttemptOutcome, is_late: bool) -> Self {
        let error = match outcome.result() {
            Ok(()) => return Self::with(Ok(())),
            Err(Error::Conflict(conflict)) if is_late => Error::Timeout(conflict),
            Err(error) => error,
        };
        let mut reason = None;
        let error = error.map_rollback(|abort| reason = Some(abort));
        Self { result: Err(error), panic: None, reason }
    }

    fn by_panic(panic: Box<dyn Any + Send>) -> Self {
        let message = message_of(&*panic);
        Self { result: Err(Error::Panicked { message }), panic: Some(panic), reason: None }
    }
}

/// Serves a session from its begin to its end, on its thread.
pub(super) fn serve<P: Protocol>(link: &Link<P>, mut worker: Worker<P>, profile: Profile) {
    let ending = catch_unwind(AssertUnwindSafe(|| serve_until_end(link, &mut worker, profile)));
    // Before the caller goes on: its number is free again then.
    contained(|| drop(worker));
    link.end(ending.unwrap_or_else(Ending::by_panic));
}

fn serve_until_end<P: Protocol>(link: &Link<P>, worker: &mut Worker<P>, profile: Profile) -> Ending {
    let (_inside, transaction) = match worker.begin_session(&link.name, profile, link.idles_at.clone()) {
        Ok(begun) => begun,
        Err(error) => return Ending::with(Err(error.of_any_body())),
    };
    link.switch.show(transaction.attempt.holder);
    let mut session = OpenSession::new(transaction);
    link.answer();
    loop {
        let next = link.next(session.transaction.attempt.holder);
        session.settle();
        let answer = match next {
            // SAFETY: the request was taken in the phase `ASKED`, which lasts until `answer` or `end` is called below.
            Next::Serve(Request::Work(work)) => unsafe { work.run(&mut session) },
            Next::Serve(Request::Owned(work)) => {
                catch_unwind(AssertUnwindSafe(|| work(&mut session))).unwrap_or_else(Err)
            }
            Next::Serve(Request::Commit) => {
                return session.commit();
            }
            Next::Serve(Request::RollBack) => {
                return session.roll_back(Ok(()));
            }
            Next::End(cause) => {
                return session.roll_back(Err(cause));
            }
        };
        session = match session.after(answer, &link.switch, &link.name) {
            ControlFlow::Continue(session) => session,
            ControlFlow::Break(ending) => return ending,
        };
        link.answer();
    }
}

impl<P: Protocol> Worker<P> {
    /// Begins the only attempt of a session, on the session's thread.
    pub(super) fn begin_session(
        &mut self,
        name: &str,
        profile: Profile,
        idles_at: Arc<Event>,
    ) -> Result<(Inside, ObjectAccess<'_, P>), Error<Infallible>> {
        let (name, protocol) = (name.to_owned(), self.shared.name.clone());
        let kind = HolderKind::Session { name, worker: self.id(), protocol };
        retained::make_session(self.attempt.holder, kind, idles_at);
        self.attempt.make_interactive();
        self.features.origin = Some(Origin::Name("a session"));
        let inside = self.admit(&profile, Location::caller())?;
        let thread = inside.thread();
        Ok((inside, self.open_attempt(0, true, thread, profile, true)))
    }
}
