//! The link between a session's handle and its thread.
//!
//! One word says whose turn it is:
//!
//! ```text
//! OPENING ──► READY ──caller──► ASKED ──thread──► READY or ENDED
//!    │          └────thread───► ENDING ─────────► ENDED
//!    └──────────────────────────────────────────► ENDED
//! ```
//!
//! In `READY` either side may act: the caller asks, or the thread ends the transaction because nobody has asked for too long.
//! A compare-and-swap decides. In `ASKED` the thread uses what the caller has lent, and the caller does nothing but wait. So
//! the caller's borrows last. All else is under mutexes that nobody waits for.

use super::open::{Ending, OpenSession};
use crate::features::cancelling::Switch;
use crate::kernel::abort::{Abort, CancelCause, Cancelled, Error};
use crate::kernel::protocol::Protocol;
use crate::memory::retained::{Holder, told_cause};
use crate::memory::users_code::contained;
use hotrow_sync::atomic::{AtomicU32, Ordering, unfollowed::AtomicU64};
use hotrow_sync::event::Event;
use hotrow_sync::{Arc, Mutex, lock};
use std::any::Any;
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const OPENING: u32 = 0;
const READY: u32 = 1;
const ASKED: u32 = 2;
const ENDING: u32 = 3;
const ENDED: u32 = 4;

/// A number that no other session of the process has.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The outcome of work on the session's thread: the payload of its panic, if it panicked.
pub(super) type Answer = Result<(), Box<dyn Any + Send>>;

/// The state that a session's handle and its thread share.
pub(super) struct Link<P: Protocol> {
    /// A number that no other session of the process has.
    pub(super) id: u64,
    pub(super) name: String,
    idle_max: Duration,
    phase: AtomicU32,
    request: Mutex<Option<Request<P>>>,
    /// The end of the transaction, once it has ended.
    ending: Mutex<Option<Result<(), Error<()>>>>,
    /// The panic that has ended it, until it is passed on.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The reason of a rollback at the commit, until it is passed on.
    reason: Mutex<Option<Abort>>,
    /// The event at which the caller waits.
    answered: Event,
    /// The task that waits, instead of a caller.
    waker: Mutex<Option<Waker>>,
    pub(super) switch: Arc<Switch>,
    /// The event at which the thread waits for the next request.
    pub(super) idles_at: Arc<Event>,
}

/// A caller's request to the session's thread.
pub(super) enum Request<P: Protocol> {
    Work(Work<P>),
    Owned(OwnedWork<P>),
    Commit,
    RollBack,
}

/// Work that a task hands over.
pub(super) type OwnedWork<P> = Box<dyn FnOnce(&mut OpenSession<'_, P>) -> Answer + Send>;

/// Work that a caller lends to the session's thread.
pub(super) struct Work<P: Protocol> {
    data: NonNull<()>,
    /// # Safety
    ///
    /// Called with this `data`, while the caller lends it.
    call: unsafe fn(NonNull<()>, &mut OpenSession<'_, P>) -> Answer,
}

// SAFETY: `Work::new` takes only work that may be sent.
unsafe impl<P: Protocol> Send for Work<P> {}

impl<P: Protocol> Work<P> {
    fn new<F: FnMut(&mut OpenSession<'_, P>) -> Answer + Send>(work: &mut F) -> Self {
        /// # Safety
        ///
        /// `data` is an exclusive reference to an `F`.
        unsafe fn call<P: Protocol, F: FnMut(&mut OpenSession<'_, P>) -> Answer>(
            data: NonNull<()>,
            session: &mut OpenSession<'_, P>,
        ) -> Answer {
            // SAFETY: the caller's promise.
            unsafe { data.cast::<F>().as_mut()(session) }
        }
        Self { data: NonNull::from(work).cast(), call: call::<P, F> }
    }

    /// Does the work.
    ///
    /// # Safety
    ///
    /// The session is in the phase `ASKED` since the work was given to it: the caller waits, and lends the work.
    pub(super) unsafe fn run(self, session: &mut OpenSession<'_, P>) -> Answer {
        // SAFETY: made together with the function; exclusive, because the caller does nothing but wait.
        unsafe { (self.call)(self.data, session) }
    }
}

/// The error of a session of this name that was cancelled for this cause.
pub(super) fn cancelled(session: &str, cause: CancelCause) -> Error<()> {
    Error::Cancelled(Cancelled { session: session.to_owned(), cause })
}

/// The next thing that the session's thread has to do.
pub(super) enum Next<P: Protocol> {
    Serve(Request<P>),
    /// Roll back: nobody has asked for too long, or the session was told to end.
    End(Error<()>),
}

impl<P: Protocol> Link<P> {
    pub(super) fn new(name: String, idle_max: Duration) -> Self {
        Self {
            id: next_id(),
            name,
            idle_max,
            phase: AtomicU32::new(OPENING),
            request: Mutex::new(None),
            ending: Mutex::new(None),
            panic: Mutex::new(None),
            reason: Mutex::new(None),
            answered: Event::new(),
            waker: Mutex::new(None),
            switch: Arc::default(),
            idles_at: Arc::new(Event::new()),
        }
    }

    fn phase(&self) -> u32 {
        // Acquire: pairs with the releases in `answer`, `end` and `ask`: each side sees what the other has done before.
        self.phase.load(Ordering::Acquire)
    }

    /// True if the transaction is open.
    pub(super) fn is_open(&self) -> bool {
        self.phase() < ENDING
    }

    fn wait_for_answer(&self) {
        self.answered.wait_until(|| matches!(self.phase(), READY | ENDED));
    }

    /// Waits until the transaction is open, for the caller. If it has idled for too long by then, its statements say so.
    pub(super) fn wait_until_open(&self) -> Result<(), Error<()>> {
        self.wait_for_answer();
        self.outcome_of_begin()
    }

    /// As [`wait_until_open`](Self::wait_until_open), when it is open.
    pub(super) fn outcome_of_begin(&self) -> Result<(), Error<()>> {
        match self.outcome() {
            Err(Error::Cancelled(_)) => Ok(()),
            outcome => outcome,
        }
    }

    /// Ready when the thread has served the last request, or the transaction has ended. Otherwise the context's task is woken then.
    pub(super) fn poll_answer(&self, context: &Context<'_>) -> Poll<()> {
        self.poll_until(context, |phase| matches!(phase, READY | ENDED))
    }

    /// Ready when the transaction has ended.
    pub(super) fn poll_end(&self, context: &Context<'_>) -> Poll<()> {
        self.poll_until(context, |phase| phase == ENDED)
    }

    fn poll_until(&self, context: &Context<'_>, holds: impl Fn(u32) -> bool) -> Poll<()> {
        if !holds(self.phase()) {
            let old = lock(&self.waker).replace(context.waker().clone());
            drop(old);
            // `tell` takes the waker behind the store of the phase.
            if !holds(self.phase()) {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Tells those that wait for a change of the phase.
    fn tell(&self) {
        self.answered.notify_all();
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            contained(|| waker.wake());
        }
    }

    /// Has work done on the session's thread, and waits for it. A panic that has ended the transaction is passed on.
    pub(super) fn ask_for(
        &self,
        work: &mut (impl FnMut(&mut OpenSession<'_, P>) -> Answer + Send),
    ) -> Result<(), Error<()>> {
        self.ask(Request::Work(Work::new(work)))
    }

    /// As [`ask_for`](Self::ask_for), for any request.
    pub(super) fn ask(&self, request: Request<P>) -> Result<(), Error<()>> {
        // Only if the request itself panicked: after an earlier panic there is none left.
        self.hand_over(request);
        if let Some(panic) = self.take_panic() {
            resume_unwind(panic);
        }
        self.outcome()
    }

    /// Takes the panic that has ended the transaction, to be passed on.
    pub(super) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        lock(&self.panic).take()
    }

    /// Rolls the transaction back. If it `waits`, nothing is held any more when it returns.
    pub(super) fn roll_back(&self, waits: bool) {
        if waits {
            self.hand_over(Request::RollBack);
        } else {
            self.put(Request::RollBack);
        }
    }

    /// Hands a request over, unless the transaction has ended, and waits until the thread has served it.
    fn hand_over(&self, request: Request<P>) {
        /// Waits, even if the caller unwinds: the thread uses what the caller lends.
        struct Lent<'a, P: Protocol>(&'a Link<P>);
        impl<P: Protocol> Drop for Lent<'_, P> {
            fn drop(&mut self) {
                self.0.wait_for_answer();
            }
        }

        let _lent = Lent(self);
        self.put(request);
    }

    /// Puts a request before the thread, unless the transaction has ended.
    pub(super) fn put(&self, request: Request<P>) {
        *lock(&self.request) = Some(request);
        // Release: the thread sees the request and what it lends.
        let asked = self.phase.compare_exchange(READY, ASKED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if asked {
            self.idles_at.notify_all();
        } else {
            *lock(&self.request) = None;
        }
    }

    /// The end of the transaction; `Ok` while it is open.
    pub(super) fn outcome(&self) -> Result<(), Error<()>> {
        lock(&self.ending).clone().unwrap_or(Ok(()))
    }

    /// Gives an error that no body has made the type of the body's errors. The reason of a rollback at the commit is passed
    /// on once.
    pub(super) fn of_any_type<E: From<Abort>>(&self, error: Error<()>) -> Error<E> {
        error.map_rollback(|()| lock(&self.reason).take().unwrap_or_else(Abort::rollback).into())
    }

    /// Answers the caller and goes on, for the thread.
    pub(super) fn answer(&self) {
        self.phase.store(READY, Ordering::Release);
        self.tell();
    }

    /// Waits for the next request, for the thread.
    pub(super) fn next(&self, holder: &'static Holder) -> Next<P> {
        let is_over = || self.phase() == ASKED || self.switch.is_cancelled() || holder.is_told();
        self.idles_at.wait_timeout(self.idle_max, is_over);
        let ends = self.phase.compare_exchange(READY, ENDING, Ordering::AcqRel, Ordering::Acquire).is_ok();
        let is_cancelled = self.switch.is_cancelled();
        if ends {
            return Next::End(match () {
                () if is_cancelled => cancelled(&self.name, CancelCause::Requested),
                () if holder.is_told() => told_cause(holder).into(),
                () => cancelled(&self.name, CancelCause::Idle { idle_max: self.idle_max }),
            });
        }
        let request = lock(&self.request).take().expect("the caller has put it there before it asked");
        if is_cancelled && !matches!(request, Request::RollBack) {
            return Next::End(cancelled(&self.name, CancelCause::Requested));
        }
        Next::Serve(request)
    }

    /// Ends the session, for the thread. Nothing is held any more.
    pub(super) fn end(&self, ending: Ending) {
        let Ending { result, panic, reason } = ending;
        *lock(&self.ending) = Some(result);
        *lock(&self.panic) = panic;
        *lock(&self.reason) = reason;
        self.phase.store(ENDED, Ordering::Release);
        self.tell();
    }
}
