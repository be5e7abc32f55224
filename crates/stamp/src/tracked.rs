//! Workers of stores over an engine: they run transactions, and note how many items the largest one tracked.

use hotrow::{Abort, Deferred, Engine, Error, Protocol, Transaction, Worker};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicUsize, Ordering};

/// An engine, and the number of items of its largest transaction.
pub struct Tracked<P: Protocol> {
    engine: Engine<P>,
    items_max: Arc<AtomicUsize>,
}

impl<P: Protocol> Clone for Tracked<P> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), items_max: Arc::clone(&self.items_max) }
    }
}

impl<P: Protocol> Tracked<P> {
    /// Tracks the transactions that run on `engine` through stores made of this value and its clones.
    pub fn new(engine: Engine<P>) -> Self {
        Self { engine, items_max: Arc::default() }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// Returns the largest number of items of a committed transaction: see [`Transaction::items`]. Workers report it
    /// when they are dropped.
    pub fn items_max(&self) -> usize {
        self.items_max.load(Ordering::Relaxed)
    }

    /// Makes the state of the calling thread.
    ///
    /// # Panics
    ///
    /// If the engine has no worker left.
    pub(crate) fn worker(&self) -> TrackedWorker<'_, P> {
        let worker = self.engine.worker().expect("the engine has a worker for each thread");
        TrackedWorker { worker, items_max: 0, all: &self.items_max }
    }
}

/// A worker that notes the number of items.
pub struct TrackedWorker<'s, P: Protocol> {
    worker: Worker<P>,
    items_max: usize,
    all: &'s AtomicUsize,
}

impl<P: Protocol> TrackedWorker<'_, P> {
    /// Runs a transaction.
    ///
    /// # Panics
    ///
    /// If it fails: bodies have no errors of their own, and retry without a limit.
    pub(crate) fn transact<R>(&mut self, body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>) -> R {
        let mut items = 0;
        let result = self.worker.transact(noting_items(&mut items, body));
        self.end(items, result)
    }

    /// Runs a transaction whose result may be known only at its commit.
    ///
    /// # Panics
    ///
    /// As [`transact`](Self::transact).
    pub(crate) fn transact_deferred<R: Clone + 'static>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<Deferred<R>, Abort>,
    ) -> R {
        let mut items = 0;
        let result = self.worker.transact_deferred(noting_items(&mut items, body));
        self.end(items, result)
    }

    fn end<R>(&mut self, items: usize, result: Result<R, Error>) -> R {
        self.items_max = self.items_max.max(items);
        result.expect("a transaction without errors of its own commits")
    }
}

/// The body, which then also notes how many items its last attempt tracks.
fn noting_items<P: Protocol, R>(
    items: &mut usize,
    mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
) -> impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort> {
    move |tx| {
        let result = body(tx);
        *items = tx.items();
        result
    }
}

impl<P: Protocol> Drop for TrackedWorker<'_, P> {
    fn drop(&mut self) {
        // Relaxed: it is a number; the end of the thread publishes it.
        self.all.fetch_max(self.items_max, Ordering::Relaxed);
    }
}
