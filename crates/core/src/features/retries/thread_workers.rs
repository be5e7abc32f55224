//! Workers that threads keep, and the transactions of an engine that run on them.

use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::identity::EngineId;
use crate::memory::thread_mark::in_transaction;
use hotrow_sync::local;
use std::any::Any;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::panic::Location;

impl<P: Protocol> Engine<P> {
    /// Registers a worker, with which a thread runs transactions. Keep one per thread. If the protocol admits no more, it is the one
    /// that [`transact`](Self::transact) keeps for the calling thread.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooManyWorkers`] when the protocol admits no more at a time.
    pub fn worker(&self) -> Result<Worker<P>, Misuse> {
        let refused = match self.register(0..self.workers_max()) {
            Err(refused @ Misuse::TooManyWorkers { .. }) => refused,
            made => return made,
        };
        ThreadWorkers::kept(self).map(|worker| *worker).ok_or(refused)
    }

    /// Registers a worker that only reads on snapshots, beside the only one that the protocol admits if it admits no more.
    pub(crate) fn worker_for_snapshots(&self) -> Result<Worker<P>, Misuse> {
        match self.workers_max() {
            1 => self.register(1..u32::MAX),
            workers_max => self.register(0..workers_max),
        }
    }

    /// Runs a transaction on the calling thread's own worker, which is registered at first use and kept
    /// until the thread ends. See [`Worker::transact`].
    ///
    /// # Errors
    ///
    /// As [`Worker::transact`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn transact<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact(body)
    }

    /// As [`transact`](Self::transact), with an error type of the user's own. See [`Worker::try_transact`].
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn try_transact<R, E: From<Abort>>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let place = Location::caller();
        self.with_worker(|worker| worker.called_from(place).try_transact(body))
    }

    /// As [`transact`](Self::transact), for a transaction that declares facts about itself: that it only reads, say, or reads on a
    /// snapshot. The profile must be true in all attempts. See [`Worker::try_transact_as`].
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact_as`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn transact_as<R>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact_as(profile, body)
    }

    /// As [`transact_as`](Self::transact_as), with an error type of the user's own.
    ///
    /// # Errors
    ///
    /// As [`transact_as`](Self::transact_as).
    #[track_caller]
    pub fn try_transact_as<R, E: From<Abort>>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        let place = Location::caller();
        self.with_worker(|worker| worker.called_from(place).try_transact_as(profile, body))
    }

    /// Calls a function with the calling thread's own worker, which is registered at first use and kept until the thread
    /// ends.
    ///
    /// # Errors
    ///
    /// Those of the function; [`Misuse::TooManyWorkers`], and [`Misuse::Nested`] within a transaction.
    #[inline]
    pub fn with_worker<R, E>(
        &self,
        run: impl FnOnce(&mut Worker<P>) -> Result<R, Error<E>>,
    ) -> Result<R, Error<E>> {
        let mut taken = ThreadWorkers::take(self)?;
        let result = run(&mut taken.worker);
        taken.put_back(self.shared.id);
        result
    }
}

/// The workers that `Engine::transact` keeps for the current thread, one per engine.
struct ThreadWorkers;

local! {
    static WORKERS: RefCell<Vec<(EngineId, Box<dyn Any>)>> = RefCell::new(Vec::new());
}

/// Maximum number of engines whose workers a thread keeps; the one used least recently goes first.
const THREAD_WORKERS_MAX: usize = 8;

/// A worker that was taken out of its thread's list. Dropped, because a function has panicked with it, it is given up.
struct TakenWorker<P: Protocol> {
    worker: ManuallyDrop<Box<Worker<P>>>,
}

impl<P: Protocol> TakenWorker<P> {
    #[inline]
    fn put_back(self, id: EngineId) {
        let mut taken = ManuallyDrop::new(self);
        // SAFETY: `taken` is not used again, nor dropped.
        ThreadWorkers::put_back(id, unsafe { ManuallyDrop::take(&mut taken.worker) });
    }
}

impl<P: Protocol> Drop for TakenWorker<P> {
    /// Is never inlined, so that programs do not compile how a worker is dropped.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped here only; `put_back` forgets what it has taken.
        unsafe { ManuallyDrop::drop(&mut self.worker) };
    }
}

impl ThreadWorkers {
    /// Calls a function with the thread's list. `None` once the thread is ending and the list is gone (a transaction
    /// run by the `Drop` of another thread-local value).
    fn with<R>(work: impl FnOnce(&mut Vec<(EngineId, Box<dyn Any>)>) -> R) -> Option<R> {
        WORKERS.try_with(|workers| work(&mut workers.borrow_mut()))
    }

    #[inline(never)]
    fn take<P: Protocol>(engine: &Engine<P>) -> Result<TakenWorker<P>, Misuse> {
        let worker = match Self::kept(engine) {
            Some(worker) => worker,
            None if in_transaction() => return Err(Misuse::Nested),
            None => Box::new(engine.register(0..engine.workers_max())?),
        };
        Ok(TakenWorker { worker: ManuallyDrop::new(worker) })
    }

    /// Takes the worker that is kept for an engine, and is idle.
    fn kept<P: Protocol>(engine: &Engine<P>) -> Option<Box<Worker<P>>> {
        let kept = Self::with(|workers| {
            let at = workers.iter().position(|(id, _)| *id == engine.shared.id)?;
            Some(workers.remove(at).1)
        });
        kept.flatten().and_then(|worker| worker.downcast::<Worker<P>>().ok())
    }

    #[inline(never)]
    fn put_back<P: Protocol>(id: EngineId, worker: Box<Worker<P>>) {
        let evicted = Self::with(|workers| {
            let evicted = (workers.len() >= THREAD_WORKERS_MAX).then(|| workers.remove(0));
            workers.push((id, worker));
            evicted
        });
        // Dropped outside the borrow: dropping a worker may run users' code (the `Drop` of values that the epoch
        // frees).
        drop(evicted);
    }
}
