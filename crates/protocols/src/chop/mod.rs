//! Procedures in pieces, and commits in hardware transactions: the protocols of dbx-tc, which differ from `occ` in one or both.
//!
//! | | whole procedures | procedures in pieces |
//! |---|---|---|
//! | commits by locks | `occ` | `chop` |
//! | commits in regions | `dbx` | `chop-htm` |
//!
//! # Algorithm (dbx-tc §3, §4)
//!
//! Each piece is a transaction of [`occ`](crate::occ): the analysis (`hotrow_procedures::chopping`) has seen to it that one piece of a
//! procedure at most may conflict with others. A piece that others follow draws its stamp even if it only reads, because the transaction's
//! place in the order is that of this piece. With regions, both halves of its commit are one hardware transaction ([`region`]), which
//! falls back to the commit of `occ`, perhaps with locks of partitions ([`fallback`]).
//!
//! # Why it is serializable
//!
//! Pieces are serializable among each other as transactions of `occ` are, or by [`region`]'s argument, and whole procedures of pieces by
//! the analysis. A transaction's place is within its first piece, so the order is that of real time. Transactions that the analysis does not
//! know overlap none that is between two pieces (`core/src/features/pieces.rs`, "Others").
//!
//! # After the first piece
//!
//! - If a closure panics, the panic passes on, and the first piece stays. So closures of later operations must not panic.
//! - An insertion that finds its key taken inserts nothing, as under every protocol: the analysis takes insertions whose results are not used
//!   for those of keys of their own.
//! - If a worker's thread dies, others go on; snapshots, unknown transactions and subscribers to the keys that it has marked wait for ever.
//!
//! # Deviations
//!
//! - Searches and insertions happen before the region; validation and installation are the region. In the paper the piece is.
//! - Operations on which the conflicting piece depends are executed in it, so that no update before it needs a local buffer (dbx-tc §4.3). All
//!   that comes after it is one piece, because it conflicts with nobody.
//! - Column groups are declared (dbx-tc §5, Figure 9, finds them by the kind of their columns).
//! - [`region`] and [`fallback`] have those of commits, `hotrow_procedures::chopping` those of the analysis and of published changes.

mod fallback;
mod region;

use fallback::FallbackLocks;

use crate::host::{Algorithm, Host};
use crate::occ::{self, reads_versions, tells_versions};
use crate::version::{self, Version, VersionWord};
use hotrow_core::{Attempt, ConflictCause, Prepared, Steps, Variant, Variants};

/// Procedures in pieces, and commits in hardware transactions: dbx-tc §3, §4; DBX, EuroSys 2014.
#[derive(Debug)]
pub struct Chop {
    options: ChopOptions,
    /// Locks that the fallback from regions takes besides those of segments: of variants with `+partitions` or `+global`.
    partitions: Option<fallback::Partitions>,
}

/// The difference between the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChopOptions {
    /// Procedures are executed in pieces, where the database [was told to chop](hotrow_core::Engine::begin_chopping) them: `chop`,
    /// `chop-htm`.
    pub chops: bool,
    /// Commits are hardware transactions, where there are any: `dbx`, `chop-htm`.
    pub uses_regions: bool,
    /// The locks that commits take if regions fail: `+partitions`, `+global`.
    pub fallback: FallbackLocks,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct ChopLocal {
    /// The number of its last version.
    last: u64,
    /// The commit was a region, so that nothing is left to be installed.
    in_region: bool,
    /// The partitions of what the attempt has touched, if the fallback takes their locks.
    partitions: Vec<u32>,
    /// True if it has taken them.
    has_partitions: bool,
}

impl Variants for Chop {
    const VARIANTS: &'static [Variant] = &[
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
            name: "dbx",
            summary: "occ whose commit is one hardware transaction; where there are none, as on most machines, it is occ; +partitions, +global: as chop-htm",
            source: "DBX, EuroSys 2014",
            for_comparison: true,
        },
    ];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = version::WORKERS_MAX;
    const ALLOWS_CHOPPING: bool = true;
    const ALLOWS_REGIONS: bool = true;

    type Options = ChopOptions;

    fn options(name: &str) -> Option<ChopOptions> {
        let (name, fallback) = FallbackLocks::split(name)?;
        let (chops, uses_regions) = match name {
            "chop" => (true, false),
            "chop-htm" => (true, true),
            "dbx" => (false, true),
            _ => return None,
        };
        let is_known = uses_regions || fallback == FallbackLocks::Segments;
        is_known.then_some(ChopOptions { chops, uses_regions, fallback })
    }

    fn name(options: &ChopOptions) -> String {
        let name = match (options.chops, options.uses_regions) {
            (true, false) => "chop",
            (true, true) => "chop-htm",
            (false, _) => "dbx",
        };
        format!("{name}{}", options.fallback.suffix())
    }

    fn chops(&self) -> bool {
        self.options.chops
    }

    fn uses_regions(&self) -> bool {
        self.options.uses_regions
    }

    fn new(options: &ChopOptions) -> Self {
        Self { options: *options, partitions: fallback::Partitions::new(options.fallback) }
    }
}

// SAFETY: as for `Occ`; and a region installs each write at the moment of its commit, when it has checked that no segment is locked.
unsafe impl Algorithm for Chop {
    type Header = VersionWord;
    type Mark = Version;
    type Local = ChopLocal;
}

impl<H: Host<Chop>> Steps<H> for Chop {
    reads_versions!();

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        H::local_mut(&mut attempt.local).in_region = false;
        if attempt.items.writes().is_empty() {
            version::upgrade_predicates::<Self, H>(attempt)?;
            attempt.draw_stamp_of_reads();
            return occ::validate_reads::<Self, H>(attempt);
        }
        if self.options.uses_regions
            && let Some(committed) = self.commit_in_region(attempt)
        {
            H::local_mut(&mut attempt.local).in_region = committed.is_ok();
            return committed;
        }
        let highest = occ::lock_and_validate::<Self, H>(attempt)?;
        let local = H::local_mut(&mut attempt.local);
        local.last = highest.max(local.last) + 1;
        Ok(())
    }

    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let attempt = prepared.attempt();
        if H::local(&attempt.local).in_region {
            return;
        }
        let version = Version::new(H::local(&attempt.local).last, attempt.worker());
        let attempt = version::install_writes::<Self, H>(prepared, version);
        if let Some(partitions) = &self.partitions {
            partitions.unlock(H::local_mut(&mut attempt.local));
        }
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        version::upgrade_predicates::<Self, H>(attempt)?;
        occ::validate_reads::<Self, H>(attempt)
    }

    fn abort(&self, attempt: &mut Attempt<H>) {
        version::release::<Self, H>(attempt);
        if let Some(partitions) = &self.partitions {
            partitions.unlock(H::local_mut(&mut attempt.local));
        }
    }
}

tells_versions!(Chop);
