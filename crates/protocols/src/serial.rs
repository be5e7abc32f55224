//! One lock around the database, and no concurrency control under it (H-Store: Kallman et al., "H-Store: a
//! High-Performance, Distributed Main Memory Transaction Processing System", VLDB 2008).
//!
//! # Algorithm
//!
//! An attempt takes the engine's lock in its first operation on an object and keeps it until its cleanup is over. So
//! one transaction runs at a time. Under the lock reads leave no items, nothing is validated, and a commit only installs. Code of the body before the first operation runs beside other transactions.
//!
//! A thread that finds the lock taken spins, then queues and parks, until the policy's deadline if there is one: see
//! `lock`. A transaction waits for nothing but this lock, so there is no deadlock between threads. A thread that would wait
//! without a deadline for a transaction of its own (two that [`Worker::begin`](hotrow_core::Worker::begin) holds open, or one
//! that was leaked) gets [`Misuse::Nested`](hotrow_core::Misuse::Nested) instead.
//!
//! # Without the lock
//!
//! `none` leaves the lock out. It admits one worker at a time, so there is nothing to control: it is the limit that
//! protocols are measured against, not a protocol. A transaction still does what it must do under any protocol: it finds
//! its own pending writes, keeps them until it commits, and drops them if it rolls back.
//!
//! # Why it is serializable
//!
//! Transactions follow each other in the order in which they take the lock. Each sees the state that the one before
//! has left, indexes included: a dead record is taken out of its index before the lock is released. An attempt that
//! rolls back has seen a true state, too, so its error needs no validation.
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

use crate::host::{Algorithm, Host, hosts_itself};
use crate::worker_states::{self, AttemptStamp};
use hotrow_core::region::UNFIT;
use hotrow_core::{Absent, Attempt, ConflictCause, EnterError, ItemId, Prepared, Reason, Variant, Variants};
use hotrow_sync::profile::waiting;
use hotrow_sync::region;
use lock::{EngineLock, Holder};

/// One lock around all transactions of an engine: H-Store, VLDB 2008.
#[derive(Debug)]
pub struct Serial {
    lock: EngineLock,
    options: SerialOptions,
}

/// The difference between `serial` and `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SerialOptions {
    /// Transactions of all workers follow each other: `serial`.
    Locked,
    /// There is one worker, and no lock: `none`.
    OneWorker,
    /// As `Locked`, but transactions first try to do without the lock, as one hardware transaction each: `naive-htm`.
    Elided,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct SerialLocal {
    /// The worker's attempt as the holder of the engine's lock, if it is that; without a lock each attempt is.
    holds: Option<Holder>,
    /// The identity under which the worker waits.
    stamp: AttemptStamp,
}

impl Serial {
    #[cold]
    #[inline(never)]
    fn wait<H: Host<Self>>(&self, attempt: &mut Attempt<H>, holder: Holder) -> Result<(), EnterError> {
        if self.lock.is_held_by(holder) && attempt.wait_max().time().is_none() {
            return Err(EnterError::Nested);
        }
        let _waiting = waiting("the lock of all objects", 0);
        H::local_mut(&mut attempt.local).stamp =
            self.lock.begin_wait(attempt, H::local(&attempt.local).stamp);
        if !self.lock.wait(H::local(&attempt.local).stamp, holder, || attempt.wait_max()) {
            return Err(EnterError::Lost(Reason::WriteLocked));
        }
        H::local_mut(&mut attempt.local).holds = Some(holder);
        Ok(())
    }

    #[inline(always)]
    fn release<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if let Some(holder) = H::local_mut(&mut attempt.local).holds.take()
            && self.options != SerialOptions::OneWorker
            && holder != Holder::ELIDED
        {
            self.lock.unlock(holder);
        }
    }
}

impl Variants for Serial {
    const VARIANTS: &'static [Variant] = &[
        Variant {
            name: "serial",
            summary: "one lock around the database: one transaction at a time, without concurrency control",
            source: "H-Store, VLDB 2008",
            for_comparison: false,
        },
        Variant {
            name: "none",
            summary: "no concurrency control, one worker only: the limit for all others",
            source: "-",
            for_comparison: false,
        },
        Variant {
            name: "naive-htm",
            summary: "serial, each transaction whole in one hardware transaction; where there are none, as on most machines, it is serial",
            source: "dbx-tc §2.2",
            for_comparison: true,
        },
    ];
    // Other transactions have ended when an attempt sees its first value.
    const OPAQUE: bool = true;
    const CONCURRENT: bool = false;
    const ALLOWS_REGIONS: bool = true;

    type Options = SerialOptions;

    fn options(name: &str) -> Option<SerialOptions> {
        match name {
            "serial" => Some(SerialOptions::Locked),
            "none" => Some(SerialOptions::OneWorker),
            "naive-htm" => Some(SerialOptions::Elided),
            _ => None,
        }
    }

    fn name(options: &SerialOptions) -> String {
        match options {
            SerialOptions::Locked => String::from("serial"),
            SerialOptions::OneWorker => String::from("none"),
            SerialOptions::Elided => String::from("naive-htm"),
        }
    }

    fn uses_regions(&self) -> bool {
        self.options == SerialOptions::Elided
    }

    fn new(options: &SerialOptions) -> Self {
        Self { lock: EngineLock::new(), options: *options }
    }
}

// SAFETY: an attempt that has entered an object holds the engine's lock until after its cleanup, and there is one
// holder at a time. Without the lock there is one worker, and so one attempt. So nothing is installed while a `load` runs, no two installs run at the same time, and nobody else
// reaches a segment that the attempt makes. The lock of an attempt that was leaked is released early: that attempt
// installs nothing any more. Each write is installed once, in a commit that cannot fail.
unsafe impl Algorithm for Serial {
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;

    fn workers_max(options: &SerialOptions) -> u32 {
        match options {
            SerialOptions::OneWorker => 1,
            SerialOptions::Locked | SerialOptions::Elided => <Self as Algorithm>::WORKERS_MAX,
        }
    }

    const TRACKS_READS: bool = false;
    type Header = ();
    type Mark = ();
    type Local = SerialLocal;

    #[inline(always)]
    fn begin<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        // Held only if the worker's previous transaction was leaked.
        self.release(attempt);
        if self.options == SerialOptions::OneWorker {
            H::local_mut(&mut attempt.local).holds = Some(Holder::on_thread(0));
        }
    }

    #[inline(always)]
    fn enter<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), EnterError> {
        if H::local(&attempt.local).holds.is_some() {
            return Ok(());
        }
        let holder = Holder::on_thread(attempt.thread());
        if !self.lock.try_lock(holder) {
            return self.wait(attempt, holder);
        }
        H::local_mut(&mut attempt.local).holds = Some(holder);
        Ok(())
    }

    #[inline(always)]
    fn read<H: Host<Self>, V>(
        &self,
        _: &mut Attempt<H>,
        _: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        Ok(load())
    }

    #[inline(always)]
    fn write<H: Host<Self>>(&self, _attempt: &mut Attempt<H>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    #[inline(always)]
    fn peek<H: Host<Self>, V>(
        &self,
        _: &mut Attempt<H>,
        _: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        Ok(load())
    }

    #[inline(always)]
    fn new_locked_header<H: Host<Self>>(&self, _attempt: &Attempt<H>) {}

    #[inline]
    fn prepare<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        // They hold, as nobody else has installed since they were set. Histories learn here of which value they hold.
        attempt.check_predicates(|attempt, id| Ok(attempt.predicate_holds(id)))?;
        if attempt.draw_stamp() && H::local(&attempt.local).holds == Some(Holder::ELIDED) {
            // What it replaces must be kept for snapshots, which a region does not do.
            region::abort::<UNFIT>();
        }
        Ok(())
    }

    #[inline]
    fn finish<H: Host<Self>>(&self, prepared: Prepared<'_, H>) {
        prepared.install_all(|_| (), |_| ());
    }

    #[inline]
    fn abort<H: Host<Self>>(&self, _attempt: &mut Attempt<H>) {}

    #[inline(always)]
    fn elides_locks(&self) -> bool {
        self.options == SerialOptions::Elided && region::is_available()
    }

    fn wait_to_elide<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> bool {
        self.lock.wait_until_free(|| attempt.wait_max())
    }

    #[inline]
    fn enter_region<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> bool {
        H::local_mut(&mut attempt.local).holds = Some(Holder::ELIDED);
        self.lock.is_free()
    }

    #[inline(always)]
    fn after_cleanup<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        self.release(attempt);
    }
}

hosts_itself!(Serial { Deferral = Absent, Stealing = Absent, RangeLocks = Absent, LoggedReads = Absent });
