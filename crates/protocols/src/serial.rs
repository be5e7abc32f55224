//! One lock around the database, and no concurrency control under it (H-Store: Kallman et al., "H-Store: a
//! High-Performance, Distributed Main Memory Transaction Processing System", VLDB 2008).
//!
//! # Algorithm
//!
//! An attempt takes the engine's lock in its first operation on an object and keeps it until its cleanup is over. So one transaction runs at a
//! time. Under the lock reads leave no items, nothing is validated, and a commit only installs. Code of the body before the first operation
//! runs beside other transactions.
//!
//! A thread that finds the lock taken spins, then queues and parks, until the policy's deadline if there is one: see
//! `lock`. A transaction waits for nothing but this lock, so there is no deadlock between threads. A thread that would wait
//! without a deadline for a transaction of its own (two that [`Worker::begin`](hotrow_core::Worker::begin) holds open, or one
//! that was leaked) gets [`Misuse::Nested`](hotrow_core::Misuse::Nested) instead.
//!
//! # Why it is serializable
//!
//! Transactions follow each other in the order in which they take the lock. Each sees the state that the one before
//! has left, indexes included: a dead record is taken out of its index before the lock is released. An attempt that
//! rolls back has seen a true state, too, so its error needs no validation.
//!
//! Predicates are evaluated at commit all the same: a recorded history learns there which value they hold of.
//!
//! A body must not wait for another transaction: everybody waits. Code of keys (`Hash`, `Ord`, `Debug`) that steps a transaction of its own
//! works under other protocols until the two meet on a row, and not here.
//!
//! # Leaked transactions
//!
//! A transaction that was leaked ([`std::mem::forget`]) has installed nothing. Its lock is released when its worker, or
//! the next worker with the same number, begins an attempt. Until then the others wait, as they wait for a body that
//! never ends. Records that it has inserted are never present; others take them for dead ones.
//!
//! # Deviations
//!
//! - H-Store has one lock, and one thread, for each partition of the data, and moves transactions to the thread. Here
//!   the database is one partition, and any thread runs its transaction itself.

mod lock;

use crate::host::{Algorithm, Host};
use crate::registry::only;
use crate::worker_states::{self, AttemptStamp};
use hotrow_core::{Attempt, EnterError, Reason, Steps, Variant, Variants};
use hotrow_sync::profile::waiting;
pub(crate) use lock::{EngineLock, Holder};

/// One lock around all transactions of an engine: H-Store, VLDB 2008.
#[derive(Debug)]
pub struct Serial {
    lock: EngineLock,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct SerialLocal {
    /// The worker's attempt as the holder of the engine's lock, if it is that.
    pub(crate) holds: Option<Holder>,
    /// The identity under which the worker waits.
    stamp: AttemptStamp,
}

/// A protocol that runs one transaction at a time, under the engine's lock.
pub(crate) trait Locked: Algorithm<Local = SerialLocal> {
    /// Returns the lock.
    fn lock(&self) -> &EngineLock;
}

/// Takes the lock for an attempt, unless it holds it.
#[inline(never)]
pub(crate) fn enter<A: Locked, H: Host<A>>(
    algorithm: &A,
    attempt: &mut Attempt<H>,
) -> Result<(), EnterError> {
    if H::local(&attempt.local).holds.is_some() {
        return Ok(());
    }
    let holder = Holder::on_thread(attempt.thread());
    if !algorithm.lock().try_lock(holder) {
        return wait(algorithm, attempt, holder);
    }
    H::local_mut(&mut attempt.local).holds = Some(holder);
    Ok(())
}

#[cold]
#[inline(never)]
fn wait<A: Locked, H: Host<A>>(
    algorithm: &A,
    attempt: &mut Attempt<H>,
    holder: Holder,
) -> Result<(), EnterError> {
    let lock = algorithm.lock();
    if lock.is_held_by(holder) && attempt.wait_max().time().is_none() {
        return Err(EnterError::Nested);
    }
    let _waiting = waiting("the lock of all objects", 0);
    let stamp = lock.begin_wait(attempt, H::local(&attempt.local).stamp);
    H::local_mut(&mut attempt.local).stamp = stamp;
    if !lock.wait(stamp, holder, || attempt.wait_max()) {
        return Err(EnterError::Lost(Reason::WriteLocked));
    }
    H::local_mut(&mut attempt.local).holds = Some(holder);
    Ok(())
}

/// Releases the lock, if the attempt, or one that was leaked, holds it.
#[inline(always)]
pub(crate) fn release<A: Locked, H: Host<A>>(algorithm: &A, attempt: &mut Attempt<H>) {
    if let Some(holder) = H::local_mut(&mut attempt.local).holds.take()
        && holder != Holder::ELIDED
    {
        algorithm.lock().unlock(holder);
    }
}

/// The functions of a protocol under which nothing changes while an attempt runs: reads leave no items, nothing is validated, and a commit
/// only installs. Headers and marks are empty.
macro_rules! runs_alone {
    () => {
        #[inline(always)]
        fn before_load(
            &self,
            _: &mut hotrow_core::Attempt<H>,
            _: hotrow_core::ItemId,
            _: hotrow_core::Look,
        ) -> Result<hotrow_core::Before, hotrow_core::ConflictCause> {
            Ok(hotrow_core::Before(0))
        }

        #[inline(always)]
        fn after_load(
            &self,
            _: &mut hotrow_core::Attempt<H>,
            _: hotrow_core::ItemId,
            _: hotrow_core::Look,
            _: hotrow_core::Before,
        ) -> Result<(), hotrow_core::ConflictCause> {
            Ok(())
        }

        #[inline(always)]
        fn new_locked_header(&self, _: &hotrow_core::Attempt<H>) -> H::Header {
            H::new_header(())
        }

        #[inline]
        fn prepare(&self, attempt: &mut hotrow_core::Attempt<H>) -> Result<(), hotrow_core::ConflictCause> {
            // They hold, as nobody else has installed since they were set. Histories learn here of which value they hold.
            attempt.check_predicates(|attempt, id| Ok(attempt.predicate_holds(id)))?;
            self.draw_stamp(attempt);
            Ok(())
        }

        #[inline]
        fn finish(&self, prepared: hotrow_core::Prepared<'_, H>) {
            prepared.install_all(|_| (), |_| ());
        }

        #[inline]
        fn abort(&self, _: &mut hotrow_core::Attempt<H>) {}
    };
}
pub(crate) use runs_alone;

/// As [`runs_alone!`], for a [`Locked`] protocol: the functions that take and release the lock, too.
macro_rules! runs_under_lock {
    () => {
        $crate::serial::runs_alone!();

        #[inline(always)]
        fn begin(&self, attempt: &mut hotrow_core::Attempt<H>) {
            // Held only if the worker's previous transaction was leaked.
            $crate::serial::release(self, attempt);
        }

        #[inline(always)]
        fn enter(&self, attempt: &mut hotrow_core::Attempt<H>) -> Result<(), hotrow_core::EnterError> {
            $crate::serial::enter(self, attempt)
        }

        #[inline(always)]
        fn after_cleanup(&self, attempt: &mut hotrow_core::Attempt<H>) {
            $crate::serial::release(self, attempt);
        }
    };
}
pub(crate) use runs_under_lock;

impl Variants for Serial {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "serial",
        summary: "one lock around the database: one transaction at a time, without concurrency control",
        source: "H-Store, VLDB 2008",
        for_comparison: false,
    }];
    // Other transactions have ended when an attempt sees its first value.
    const OPAQUE: bool = true;
    const CONCURRENT: bool = false;
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self { lock: EngineLock::new() }
    }
}

impl Serial {
    #[inline(always)]
    fn draw_stamp<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        attempt.draw_stamp();
    }
}

impl Locked for Serial {
    #[inline(always)]
    fn lock(&self) -> &EngineLock {
        &self.lock
    }
}

// SAFETY: an attempt that has entered an object holds the engine's lock until after its cleanup, and there is one
// holder at a time. So nothing is installed while a `load` runs, no two installs run at the same time, and nobody else
// reaches a segment that the attempt makes. The lock of an attempt that was leaked is released early: that attempt
// installs nothing any more. Each write is installed once, in a commit that cannot fail.
unsafe impl Algorithm for Serial {
    const TRACKS_READS: bool = false;
    const ENTERS: bool = true;
    type Header = ();
    type Mark = ();
    type Local = SerialLocal;
}

impl<H: Host<Serial>> Steps<H> for Serial {
    runs_under_lock!();
}
