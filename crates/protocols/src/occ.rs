//! Optimistic concurrency control with decentralised versions.
//!
//! # Algorithm (sto §3.3; versions as in Silo, which STO's non-opaque mode follows, §3.6)
//!
//! Reads keep the version that they saw and lock nothing. Writes are buffered until commit. Then the commit
//!
//! 1. locks every segment to be written, in the order of first write, and those that were not read after all others
//!    (`version::lock_writes`). A lock that stays taken after bounded spinning aborts the attempt, so there is no deadlock.
//!    Predicates are checked and become reads;
//! 2. checks that every version read is unchanged and not locked by others, and that every bucket and leaf is
//!    unchanged;
//! 3. installs the writes and unlocks them with a new version. It is larger than every version read or overwritten
//!    and than the worker's last one, and has the worker's number in its low bits.
//!
//! # Invariants
//!
//! 1. *Stable reads.* The value of a read was installed under exactly the version that the read keeps.
//! 2. *Unique versions.* No two commits give one segment the same version: a worker uses no number twice, and its own number is in the
//!    version. (A worker that takes over another's number takes over its [`OccLocal`], too.) So an unchanged version means an unchanged
//!    value, whatever happened in between.
//! 3. *Locks at commit only*, except those of records that the attempt has inserted.
//! 4. *Announce, then check.* An attempt announces a write by the word's lock, and an insertion by the latch of its bucket or leaf. It checks
//!    after it has announced everything. Locks, latches and checks are sequentially consistent, so they have one total order.
//! 5. *Version zero.* A segment that no transaction has made is unlocked at version zero. A record that an attempt inserts is locked
//!    from the start; nobody reads it at version zero unless its inserter has aborted, which leaves it dead.
//!
//! # Why it is serializable
//!
//! The serialization point c(T) of a transaction T is its first check (or, without reads, its last lock or latch) in the total order. All locks
//! and latches of T come before c(T); its unlocks, and its removals of records, come after. Of two transactions T and U:
//!
//! - *U reads what T wrote*, or misses what T deleted. T unlocked after c(T); U saw that before c(U).
//! - *U overwrites what T wrote.* U locked after T's unlock and before c(U).
//! - *U overwrites what T read.* T's check found the word unlocked and unchanged, so it comes before U's lock; c(T) is that check or an earlier
//!   one.
//! - *U inserts where T observed absence.* The same, with U's latch in the place of the lock.
//!
//! So c(T) is before c(U) in each case. Two transactions that each write what the other reads (write skew) would need both orders. A predicate
//! counts as a read of the state in which phase 1 evaluated it; the body knows only that it holds.
//!
//! It is not opaque. An attempt that will abort may have read x from before a commit and y from after it, or x twice in two states. A body's own
//! error, or its panic, counts only if its reads are validated
//! ([`validate_before_rollback`](hotrow_core::Steps::validate_before_rollback)). Two attempts may abort each other several times; backoff and the
//! starvation gate end that.
//!
//! # Deviations
//!
//! - STO draws the version from a global clock by default. Here, as in Silo, there is no clock (`tl2` has one).
//!   Silo's version also carries an epoch, for its log and snapshots; ours does not.
//! - Silo sorts the write set to avoid deadlock. STO found bounded spinning without sorting faster (§5.6), and so
//!   did we.
//! - A locked version that differs from the one read aborts the attempt at once instead of after spinning.
//! - STO unlocks after all installations. Here each write is unlocked at its own: all checks have passed, and a reader of new
//!   and old segments fails its own check.
//! - An inserted record changes the version of its bucket or leaf when it enters the index (as in Silo), not when its insertion commits (as in
//!   STO's hash table).
//! - An item may have both a read and a predicate (sto §3.2 excludes that): a counter can be tested and then read.

use crate::host::{Algorithm, Host, hosts_itself};
use crate::registry::only;
use crate::version::{self, Version, VersionWord, Versioned};
use hotrow_core::{Absent, Attempt, ConflictCause, Prepared, Steps, Variant, Variants};
use hotrow_sync::atomic::{Ordering, fence};

/// The steps of an optimistic protocol with a version beside each value that read by it. Writes wait for the commit.
macro_rules! reads_versions {
    () => {
        #[cfg_attr(not(debug_assertions), inline(always))]
        fn before_load(
            &self,
            attempt: &mut hotrow_core::Attempt<H>,
            item: hotrow_core::ItemId,
            _look: hotrow_core::Look,
        ) -> Result<hotrow_core::Before, hotrow_core::ConflictCause> {
            $crate::reads::before::<Self, H>(attempt, item)
        }

        #[cfg_attr(not(debug_assertions), inline(always))]
        fn after_load(
            &self,
            attempt: &mut hotrow_core::Attempt<H>,
            item: hotrow_core::ItemId,
            look: hotrow_core::Look,
            before: hotrow_core::Before,
        ) -> Result<(), hotrow_core::ConflictCause> {
            match look {
                hotrow_core::Look::Peek => $crate::reads::after_peek::<Self, H>(attempt, item, before)?,
                _ => $crate::reads::after_read::<Self, H>(attempt, item, before)?,
            };
            Ok(())
        }

        #[inline]
        fn new_locked_header(&self, _attempt: &hotrow_core::Attempt<H>) -> H::Header {
            H::new_header($crate::version::VersionWord::new_locked())
        }
    };
}
pub(crate) use reads_versions;

/// The capabilities of such a protocol: its reads are logged, and its versions name the winner of a conflict, and the commit by the number of the
/// worker's last version (`last` in its state).
macro_rules! tells_versions {
    ($protocol:ident) => {
        impl<H: $crate::host::Host<$protocol>> hotrow_core::LoggedReads<H> for $protocol {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn of(protocol: &H) -> Option<&Self> {
                protocol.algorithm()
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn before_load(
                &self,
                segment: &hotrow_core::TouchedSegment<H>,
            ) -> Result<hotrow_core::Before, hotrow_core::ConflictCause> {
                $crate::reads::before_logged::<$protocol, H>(segment)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn after_load(
                &self,
                attempt: &mut hotrow_core::Attempt<H>,
                segment: &hotrow_core::TouchedSegment<H>,
                before: hotrow_core::Before,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::reads::log::<$protocol, H>(attempt, segment, before).map(drop)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn loads_to_write(&self) -> bool {
                true
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn mark_to_write(
                &self,
                _attempt: &mut hotrow_core::Attempt<H>,
                segment: &hotrow_core::TouchedSegment<H>,
                before: hotrow_core::Before,
            ) -> Option<H::Mark> {
                $crate::reads::mark_to_write::<$protocol, H>(segment, before)
            }
        }

        impl<H: $crate::host::Host<$protocol>> hotrow_core::Reports<H> for $protocol {
            #[cfg_attr(not(debug_assertions), inline(always))]
            fn of(protocol: &H) -> Option<&Self> {
                protocol.algorithm()
            }

            fn rival(
                &self,
                attempt: &hotrow_core::Attempt<H>,
                header: &H::Header,
            ) -> Option<hotrow_core::Rival> {
                $crate::version::rival::<$protocol, H>(attempt, header)
            }

            #[inline]
            fn commit_number(&self, attempt: &hotrow_core::Attempt<H>) -> u64 {
                H::local(&attempt.local).last
            }
        }

        impl $crate::version::Versioned for $protocol {}
    };
}
pub(crate) use tells_versions;

/// Optimistic concurrency control: sto §3.3, with Silo's decentralised versions.
///
/// Not opaque: an attempt that will abort may have seen two states. This cannot harm safe code. But a body must not
/// loop on an assumption that holds only in a consistent state.
#[derive(Debug)]
pub struct Occ;

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct OccLocal {
    /// The number of its last version.
    last: u64,
}

impl Variants for Occ {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "occ",
        summary: "optimistic: lock writes and check reads at commit, no shared clock",
        source: "sto §3.3",
        for_comparison: false,
    }];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = version::WORKERS_MAX;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed
// (`StableWord`, `version::lock_writes`). Each write is installed once, after everything that can fail.
unsafe impl Algorithm for Occ {
    type Header = VersionWord;
    type Mark = Version;
    type Local = OccLocal;
}

impl<H: Host<Occ>> Steps<H> for Occ {
    reads_versions!();

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if attempt.items.writes().is_empty() {
            version::upgrade_predicates::<Self, H>(attempt)?;
            return validate_reads::<Self, H>(attempt);
        }
        let highest = lock_and_validate::<Self, H>(attempt)?;
        let local = H::local_mut(&mut attempt.local);
        // INVARIANT 25: No two commits give a segment the same version.
        local.last = highest.max(local.last) + 1;
        Ok(())
    }

    #[inline]
    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let attempt = prepared.attempt();
        let version = Version::new(H::local(&attempt.local).last, attempt.worker());
        version::install_writes::<Self, H>(prepared, version);
    }

    #[inline]
    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        version::upgrade_predicates::<Self, H>(attempt)?;
        validate_reads::<Self, H>(attempt)
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<H>) {
        version::release::<Self, H>(attempt);
    }
}

/// Validates an attempt that has locked nothing.
#[inline]
pub(crate) fn validate_reads<A: Versioned, H: Host<A>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
    // Orders the reads before the checks; the reader's side of `VersionWord`.
    fence(Ordering::Acquire);
    version::validate::<A, H>(attempt).map(|_| ())
}

/// Phases 1 and 2 of an attempt that writes. Returns the highest number among the versions read and overwritten.
#[inline]
pub(crate) fn lock_and_validate<A: Versioned, H: Host<A>>(
    attempt: &mut Attempt<H>,
) -> Result<u64, ConflictCause> {
    let overwritten = version::lock_writes::<A, H>(attempt)?;
    version::upgrade_predicates::<A, H>(attempt)?;
    // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
    attempt.draw_stamp();
    let read = version::validate_beside_locks::<A, H>(attempt)?;
    Ok(overwritten.max(read))
}

tells_versions!(Occ);

hosts_itself!(Occ {
    Deferral = Absent,
    Stealing = Absent,
    RangeLocks = Absent,
    LoggedReads = Occ,
    PieceOrder = Absent,
    Elision = Absent,
    Reports = Occ,
});
