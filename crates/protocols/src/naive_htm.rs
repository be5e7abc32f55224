//! Transactions that are one hardware transaction each: `serial` whose lock is elided (dbx-tc §2.2, the naive use of hardware
//! transactional memory).
//!
//! # Algorithm
//!
//! A transaction first waits until the lock is free, and then runs whole in a region that has read the lock's word. If somebody takes the
//! lock, the region is aborted. It is tried again as often as [`Tries`](hotrow_core::region::Tries) says, and in the end with the lock, as
//! under `serial`. Where there are no hardware transactions, it is `serial`.
//!
//! An attempt runs with the lock, from its beginning, if regions have failed; if the body returns an error, panics, or has effects at once
//! (boosting); while commits are stamped, because the values that they replace must be kept; in sessions; and when it is stepped by hand. So
//! errors and panics of bodies come from attempts with the lock.
//!
//! # Why it is serializable
//!
//! A region that commits has read the lock as free at that moment, so it is as if the transaction had held the lock then. `serial` orders all
//! others.
//!
//! # Deviations
//!
//! The paper has no cache here. A table that is made with one (`TableBuilder::cached`, dbx-tc §3.3) takes new records into a few lines, from which
//! they are written back after the region.

use crate::host::{Algorithm, Host};
use crate::registry::only;
use crate::serial::{EngineLock, Holder, Locked, SerialLocal, runs_under_lock};
use crate::worker_states;
use hotrow_core::region::UNFIT;
use hotrow_core::{Attempt, Elision, Steps, Variant, Variants};
use hotrow_sync::region;

/// One hardware transaction for each transaction: dbx-tc §2.2.
#[derive(Debug)]
pub struct NaiveHtm {
    lock: EngineLock,
}

impl Variants for NaiveHtm {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "naive-htm",
        summary: "serial, each transaction whole in one hardware transaction; where there are none, as on most machines, it is serial",
        source: "dbx-tc §2.2",
        for_comparison: true,
    }];
    // As under `serial`; and a region that has seen anything else is aborted.
    const OPAQUE: bool = true;
    const CONCURRENT: bool = false;
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;
    const ALLOWS_REGIONS: bool = true;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        only(Self::VARIANTS, name)
    }

    fn uses_regions(&self) -> bool {
        true
    }

    fn new((): &()) -> Self {
        Self { lock: EngineLock::new() }
    }
}

impl NaiveHtm {
    #[inline]
    fn draw_stamp<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if attempt.draw_stamp() && H::local(&attempt.local).holds == Some(Holder::ELIDED) {
            // The values that it replaces must be kept for snapshots, which a region does not do.
            region::abort::<UNFIT>();
        }
    }
}

impl Locked for NaiveHtm {
    #[inline(always)]
    fn lock(&self) -> &EngineLock {
        &self.lock
    }
}

// SAFETY: as for `Serial`; a region that elides the lock commits only if nobody has held it meanwhile.
unsafe impl Algorithm for NaiveHtm {
    const TRACKS_READS: bool = false;
    const ENTERS: bool = true;
    type Header = ();
    type Mark = ();
    type Local = SerialLocal;
}

impl<H: Host<NaiveHtm>> Steps<H> for NaiveHtm {
    runs_under_lock!();
}

impl<H: Host<NaiveHtm>> Elision<H> for NaiveHtm {
    #[inline]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm().filter(|_| region::is_available())
    }

    fn wait_to_elide(&self, attempt: &mut Attempt<H>) -> bool {
        self.lock.wait_until_free(|| attempt.wait_max())
    }

    #[inline]
    fn enter_region(&self, attempt: &mut Attempt<H>) -> bool {
        H::local_mut(&mut attempt.local).holds = Some(Holder::ELIDED);
        self.lock.is_free()
    }
}
