//! Optimistic concurrency control with decentralised versions.
//!
//! # Algorithm (sto §3.3; versions as in Silo, which STO's non-opaque mode follows, §3.6)
//!
//! Reads note the version they saw and lock nothing. Writes are kept until commit. Then:
//!
//! 1. lock every segment to be written, in the order of first write; a lock that stays taken after bounded
//!    spinning aborts, so there is no deadlock. Check predicates and turn them into reads;
//! 2. check that every version read is unchanged and not locked by others, and so is every bucket and leaf;
//! 3. install the writes and unlock them with a new version: larger than every version read or
//!    overwritten and than the worker's last one, with the worker's number in its low bits.
//!
//! # Why it is right
//!
//! All locks are held while the reads are checked, so the moment between the two phases is the
//! transaction's place in the serial order: its reads are unchanged then, and its writes can be seen by
//! nobody before and by all after. Two transactions that each write what the other reads cannot both pass:
//! locks (and the latches of early inserts) are taken, and versions checked, by sequentially consistent
//! accesses, so in their one order each one's locks come before its checks, and one of the two sees the
//! other's.
//!
//! # Deviations
//!
//! - STO draws the version from a global clock by default; here, as in Silo, there is none (`tl2` has one).
//!   Silo's version also carries an epoch, for its log and snapshots; ours does not.
//! - Silo sorts the write set to avoid deadlock; STO found bounded spinning without sorting faster (§5.6),
//!   and so did we.
//! - A locked version that differs from the one read aborts at once instead of after spinning.

use crate::reads;
use crate::registry;
use crate::version::{self, Version, VersionWord};
use hotrow_core::{Absent, Attempt, ConflictCause, ItemId, Prepared, Protocol, Variant, Variants};
use hotrow_sync::atomic::{Ordering, fence};

/// Optimistic concurrency control: sto §3.3, with Silo's decentralised versions.
///
/// Not opaque: an attempt that will abort may have seen two states. Safe code cannot be harmed by that, but
/// a body must not loop on an assumption that only holds in a consistent state.
#[derive(Debug)]
pub struct Occ;

/// What a worker keeps: the number of its last version.
#[derive(Debug, Default)]
pub struct OccLocal {
    last: u64,
}

impl Variants for Occ {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "occ",
        summary: "optimistic: lock writes and check reads at commit, no shared clock",
        source: "sto §3.3",
    }];
    const OPAQUE: bool = false;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed
// (`VersionWord::stable`, `version::lock_writes`). All is installed once, after everything that can fail.
unsafe impl Protocol for Occ {
    const WORKERS_MAX: u32 = version::WORKERS_MAX;
    type Header = VersionWord;
    type Mark = Version;
    type Local = OccLocal;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(&self, _attempt: &mut Attempt<Self>) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        reads::read(attempt, item, load).map(|(_, value)| value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write(&self, _attempt: &mut Attempt<Self>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    #[inline]
    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        version::peek(attempt, item, load).map(|(_, value)| value)
    }

    #[inline]
    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> VersionWord {
        VersionWord::new_locked()
    }

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        if attempt.items.writes().is_empty() {
            return self.validate_before_rollback(attempt);
        }
        let overwritten = version::lock_writes(attempt)?;
        attempt.draw_stamp();
        version::upgrade_predicates(attempt)?;
        let read = version::validate(attempt)?;
        attempt.local.last = overwritten.max(read).max(attempt.local.last) + 1;
        Ok(())
    }

    #[inline]
    fn finish(&self, mut prepared: Prepared<'_, Self>) {
        let attempt = prepared.attempt();
        let version = Version::new(attempt.local.last, attempt.worker());
        version::install_writes(prepared, version);
    }

    #[inline]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        version::upgrade_predicates(attempt)?;
        // Orders the reads before the checks; the reader's side of `VersionWord`.
        fence(Ordering::Acquire);
        version::validate(attempt).map(|_| ())
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<Self>) {
        version::release(attempt);
    }
}
