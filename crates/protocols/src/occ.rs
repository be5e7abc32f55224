//! Optimistic concurrency control with decentralised versions.
//!
//! # Algorithm (sto §3.3; versions as in Silo, which STO's non-opaque mode follows, §3.6)
//!
//! Reads keep the version that they saw and lock nothing. Writes are buffered until commit. Then the commit
//!
//! 1. locks every segment to be written, in the order of first write. A lock that stays taken after bounded spinning
//!    aborts the attempt, so there is no deadlock. Predicates are checked and become reads;
//! 2. checks that every version read is unchanged and not locked by others, and that every bucket and leaf is
//!    unchanged;
//! 3. installs the writes and unlocks them with a new version. It is larger than every version read or overwritten
//!    and than the worker's last one, and has the worker's number in its low bits.
//!
//! # Why it is serializable
//!
//! All locks are held while the reads are checked. So the moment between phases 1 and 2 is the transaction's place
//! in the serial order: its reads are unchanged at that moment, and its writes are visible to nobody before it and
//! to everybody after it. Two transactions that each write what the other reads cannot both pass. Locks (and the
//! latches of early inserts) are taken, and versions are checked, by sequentially consistent accesses. In their
//! total order each transaction's locks come before its checks, so one of the two sees the other's lock.
//!
//! # Deviations
//!
//! - STO draws the version from a global clock by default. Here, as in Silo, there is no clock (`tl2` has one).
//!   Silo's version also carries an epoch, for its log and snapshots; ours does not.
//! - Silo sorts the write set to avoid deadlock. STO found bounded spinning without sorting faster (§5.6), and so
//!   did we.
//! - A locked version that differs from the one read aborts the attempt at once instead of after spinning.

mod fallback;
mod ic3;
mod latch;
mod region;

pub use fallback::FallbackLocks;

use crate::host::{Algorithm, Host, hosts_itself};
use crate::reads;
use crate::version::{self, Version, VersionWord};
use hotrow_core::{
    Absent, Attempt, ConflictCause, ItemId, LoggedReads, PieceRanks, Prepared, Rival, TouchedSegment,
    Variant, Variants,
};
use hotrow_sync::atomic::{Ordering, fence};

/// Optimistic concurrency control: sto §3.3, with Silo's decentralised versions.
///
/// Not opaque: an attempt that will abort may have seen two states. This cannot harm safe code. But a body must not
/// loop on an assumption that holds only in a consistent state.
#[derive(Debug)]
pub struct Occ {
    options: OccOptions,
    /// The order of pieces: of `ic3`.
    order: Option<Box<ic3::Order>>,
    /// Locks that the fallback from regions takes besides those of segments: of variants with `+partitions` or `+global`.
    partitions: Option<fallback::Partitions>,
}

/// The difference between `occ` and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OccOptions {
    /// Procedures are executed in pieces, where the database [was told to chop](hotrow_core::Engine::begin_chopping) them: `chop`.
    pub chops: bool,
    /// Pieces of different transactions are ordered by the ranks of tables, so that more of them may conflict: `ic3`.
    pub orders_pieces: bool,
    /// Pieces that have committed can be taken back, with all that have seen them: `ic3+cascading`.
    pub cascades: bool,
    /// Commits are hardware transactions, where there are any: `dbx`.
    pub uses_regions: bool,
    /// The locks that commits take if regions fail: `+partitions`, `+global`.
    pub fallback: FallbackLocks,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct OccLocal {
    /// The number of its last version.
    last: u64,
    /// The commit was a region, so that nothing is left to be installed.
    in_region: bool,
    /// Its transaction in pieces, under `ic3`.
    order: ic3::OrderLocal,
    /// The partitions of what the attempt has touched, if the fallback takes their locks.
    partitions: Vec<u32>,
    /// True if it has taken them.
    has_partitions: bool,
}

impl Variants for Occ {
    const VARIANTS: &'static [Variant] = &[
        Variant {
            name: "occ",
            summary: "optimistic: lock writes and check reads at commit, no shared clock",
            source: "sto §3.3",
            for_comparison: false,
        },
        Variant {
            name: "chop",
            summary: "procedures in pieces, each a small transaction of occ",
            source: "dbx-tc §3, §4",
            for_comparison: false,
        },
        Variant {
            name: "chop-htm",
            summary: "chop whose pieces commit in hardware transactions; where there are none, as on most machines, it is chop; +partitions, +global: coarser locks if they fail",
            source: "dbx-tc §3, §4",
            for_comparison: true,
        },
        Variant {
            name: "ic3",
            summary: "procedures in pieces, one for each table, that others see at once and come after",
            source: "IC3, SIGMOD 2016; drp §2.2, §7",
            for_comparison: false,
        },
        Variant {
            name: "ic3+cascading",
            summary: "ic3 that decides in every piece; one that rolls back takes back its pieces, with all that have seen them",
            source: "IC3, SIGMOD 2016",
            for_comparison: false,
        },
        Variant {
            name: "dbx",
            summary: "occ whose commit is one hardware transaction; where there are none, as on most machines, it is occ; +partitions, +global: as chop-htm",
            source: "DBX, EuroSys 2014",
            for_comparison: true,
        },
    ];
    const OPAQUE: bool = false;
    const ALLOWS_CHOPPING: bool = true;
    const ALLOWS_REGIONS: bool = true;

    type Options = OccOptions;

    fn options(name: &str) -> Option<OccOptions> {
        if name == "ic3+cascading" {
            return Self::options("ic3").map(|options| OccOptions { cascades: true, ..options });
        }
        let (name, fallback) = FallbackLocks::split(name)?;
        let options = match name {
            "occ" => Some(OccOptions::default()),
            "chop" => Some(OccOptions { chops: true, ..OccOptions::default() }),
            "chop-htm" => Some(OccOptions { chops: true, uses_regions: true, ..OccOptions::default() }),
            "ic3" => Some(OccOptions { chops: true, orders_pieces: true, ..OccOptions::default() }),
            "dbx" => Some(OccOptions { uses_regions: true, ..OccOptions::default() }),
            _ => None,
        };
        let has_fallback = |options: &OccOptions| options.uses_regions || fallback == FallbackLocks::Segments;
        options.filter(has_fallback).map(|options| OccOptions { fallback, ..options })
    }

    fn name(options: &OccOptions) -> String {
        let name = match options {
            OccOptions { cascades: true, .. } => "ic3+cascading",
            OccOptions { orders_pieces: true, .. } => "ic3",
            OccOptions { chops: true, uses_regions: true, .. } => "chop-htm",
            OccOptions { chops: true, .. } => "chop",
            OccOptions { uses_regions: true, .. } => "dbx",
            _ => "occ",
        };
        format!("{name}{}", options.fallback.suffix())
    }

    fn chops(&self) -> bool {
        self.options.chops
    }

    fn orders_pieces(&self) -> bool {
        self.options.orders_pieces
    }

    fn takes_back_pieces(&self) -> bool {
        self.options.cascades
    }

    fn uses_regions(&self) -> bool {
        self.options.uses_regions
    }

    fn new(options: &OccOptions) -> Self {
        Self {
            options: *options,
            order: options.orders_pieces.then(|| Box::new(ic3::Order::new(options.cascades))),
            partitions: fallback::Partitions::new(options.fallback),
        }
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed
// (`VersionWord::stable`, `version::lock_writes`). Each write is installed once, after everything that can fail.
unsafe impl Algorithm for Occ {
    const WORKERS_MAX: u32 = version::WORKERS_MAX;
    type Header = VersionWord;
    type Mark = Version;
    type Local = OccLocal;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin<H: Host<Self>>(&self, _attempt: &mut Attempt<H>) {}

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<H: Host<Self>, V>(
        &self,
        attempt: &mut Attempt<H>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        reads::read::<Occ, H, _>(attempt, item, load).map(|(_, value)| value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write<H: Host<Self>>(&self, _attempt: &mut Attempt<H>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    #[inline]
    fn peek<H: Host<Self>, V>(
        &self,
        attempt: &mut Attempt<H>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        version::peek::<Occ, H, _>(attempt, item, load).map(|(_, value)| value)
    }

    fn rival<H: Host<Self>>(&self, attempt: &Attempt<H>, header: &VersionWord) -> Option<Rival> {
        version::rival::<Occ, H>(attempt, header)
    }

    #[inline]
    fn commit_number<H: Host<Self>>(&self, attempt: &Attempt<H>) -> u64 {
        H::local(&attempt.local).last
    }

    #[inline]
    fn new_locked_header<H: Host<Self>>(&self, _attempt: &Attempt<H>) -> VersionWord {
        VersionWord::new_locked()
    }

    #[inline]
    fn prepare<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if let Some((order, ranks)) = self.ordered(attempt) {
            H::local_mut(&mut attempt.local).last =
                order.prepare(attempt, ranks)?.max(H::local(&attempt.local).last) + 1;
            return Ok(());
        }
        if attempt.items.writes().is_empty() {
            version::upgrade_predicates::<Occ, H>(attempt)?;
            if !self.options.orders_pieces {
                attempt.draw_stamp_of_reads();
            }
            return Self::validate_reads(attempt);
        }
        if self.options.uses_regions {
            let committed = self.commit_in_region(attempt);
            H::local_mut(&mut attempt.local).in_region = committed == Some(Ok(()));
            if let Some(committed) = committed {
                return committed;
            }
        }
        let overwritten = version::lock_writes::<Occ, H>(attempt)?;
        version::upgrade_predicates::<Occ, H>(attempt)?;
        attempt.draw_stamp();
        let read = version::validate_beside_locks::<Occ, H>(attempt)?;
        if let Some(order) = &self.order {
            order.bring_back(attempt);
        }
        H::local_mut(&mut attempt.local).last = overwritten.max(read).max(H::local(&attempt.local).last) + 1;
        Ok(())
    }

    #[inline]
    fn finish<H: Host<Self>>(&self, mut prepared: Prepared<'_, H>) {
        let attempt = prepared.attempt();
        if H::local(&attempt.local).in_region {
            return;
        }
        if let Some((order, ranks)) = self.ordered(attempt) {
            order.publish(attempt, ranks);
        }
        let version = Version::new(H::local(&attempt.local).last, attempt.worker());
        let attempt = version::install_writes::<Occ, H>(prepared, version);
        if let Some(partitions) = &self.partitions {
            partitions.unlock(H::local_mut(&mut attempt.local));
        }
    }

    #[inline]
    fn validate_before_rollback<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if let Some((order, ranks)) = self.ordered(attempt) {
            return order.validate_before_rollback(attempt, ranks);
        }
        version::upgrade_predicates::<Occ, H>(attempt)?;
        Self::validate_reads(attempt)
    }

    #[inline]
    fn abort<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if let Some(order) = &self.order {
            order.release(attempt);
        }
        version::release::<Occ, H>(attempt);
        if let Some(partitions) = &self.partitions {
            partitions.unlock(H::local_mut(&mut attempt.local));
        }
    }

    fn before_piece<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if let Some(order) = &self.order {
            order.before_piece(attempt);
        }
    }

    fn settle_pieces<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> bool {
        self.order.as_ref().is_none_or(|order| order.settle(attempt))
    }

    fn take_pieces_back<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if let Some(order) = &self.order {
            order.take_back(attempt);
        }
    }

    fn end_pieces<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        if let Some(order) = &self.order {
            order.end(attempt);
        }
    }
}

impl Occ {
    /// Validates an attempt that has locked nothing.
    #[inline]
    fn validate_reads<H: Host<Self>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        // Orders the reads before the checks; the reader's side of `VersionWord`.
        fence(Ordering::Acquire);
        version::validate::<Occ, H>(attempt).map(|_| ())
    }

    /// The order of pieces, and the ranks of the attempt's piece, if it may conflict with others.
    #[inline(always)]
    fn ordered<H: Host<Self>>(&self, attempt: &Attempt<H>) -> Option<(&ic3::Order, PieceRanks)> {
        Some((self.order.as_deref()?, attempt.piece_ranks()?))
    }
}

impl<H: Host<Occ>> LoggedReads<H> for Occ {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<V>(
        &self,
        attempt: &mut Attempt<H>,
        segment: TouchedSegment<H>,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        reads::log::<Occ, H, _>(attempt, segment, load).map(|(_, value)| value)
    }
}

impl version::Versioned for Occ {}

hosts_itself!(Occ { Deferral = Absent, Stealing = Absent, RangeLocks = Absent, LoggedReads = Occ });
