//! Procedures in pieces, one for each table, that others see at once and come after (Wang, Mu, Cui, Yi, Chen, Li, "Scaling Multicore
//! Databases via Constrained Parallel Execution", SIGMOD 2016; drp §2.2, §7).
//!
//! A piece is a transaction of [`occ`](crate::occ), and one that may conflict with pieces of other transactions is put in order with them
//! besides: [`order`] has the algorithm, and why it is serializable.
//!
//! # After a piece has committed
//!
//! - If a closure panics, the panic passes on, and the committed pieces stay. The transaction ends when those before it have, and those that
//!   have seen it go on. So closures of later operations must not panic.
//! - If a worker's thread dies, or waits in a closure, those that have seen the pieces, snapshots and unknown transactions wait, without a deadline.
//! - Limits of the retry policy hold for the first piece only; the waits before it are as long as they have to be.
//!
//! # Deviations
//!
//! - There are no cascading aborts: nobody sees a piece before the last decision. A piece that loses a conflict is made again, and its
//!   transaction goes on.
//! - A dependency is found when a piece commits, not when it reads. Until then it runs as under `occ`, and is aborted if what it has read has
//!   changed. IC3 waits at the first access, and locks rows.
//! - Accessor lists are found by the hash of a row's rank; there is none beside each row, so rows are no larger ([`accessors`]).
//! - A piece waits for all pieces of lower and equal ranks of the transactions before it, not only for those in conflict: that is what makes the
//!   knowledge of direct predecessors enough. Pieces without any conflict, and operations on immutable tables, wait for nobody.
//! - Keys that come and go, and ranges in which they were looked for, are entered with their *span*, the first 64 bits of the images of the
//!   keys between which they lie (`Object::span`). A key that a piece inserts and deletes again is entered as one that is absent. In a hash
//!   index the span is the whole table.
//! - Commutative changes are writes to the order, except where nothing else touches the columns.
//! - Durable databases execute procedures whole, as under `chop`.

mod accessors;
mod order;

use crate::host::{Algorithm, Host};
use crate::occ::{self, reads_versions, tells_versions};
use crate::registry::only;
use crate::version::{self, Version, VersionWord};
use hotrow_core::{Attempt, ConflictCause, PieceOrder, Prepared, Steps, Variant, Variants};
use order::{Order, OrderLocal};

/// Pieces in the order of the tables: IC3, SIGMOD 2016.
#[derive(Debug)]
pub struct Ic3 {
    order: Box<Order>,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct Ic3Local {
    /// The number of its last version.
    last: u64,
    /// Its transaction in pieces.
    order: OrderLocal,
}

impl Variants for Ic3 {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "ic3",
        summary: "procedures in pieces, one for each table, that others see at once and come after",
        source: "IC3, SIGMOD 2016; drp §2.2, §7",
        for_comparison: false,
    }];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = version::WORKERS_MAX;
    const ALLOWS_CHOPPING: bool = true;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        only(Self::VARIANTS, name)
    }

    fn chops(&self) -> bool {
        true
    }

    fn new((): &()) -> Self {
        Self { order: Box::new(Order::new()) }
    }
}

// SAFETY: as for `Occ`: the order of pieces adds waits and latches.
unsafe impl Algorithm for Ic3 {
    type Header = VersionWord;
    type Mark = Version;
    type Local = Ic3Local;
}

impl<H: Host<Ic3>> Steps<H> for Ic3 {
    reads_versions!();

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        let highest = match attempt.piece_ranks() {
            Some(ranks) => self.order.prepare(attempt, ranks)?,
            None if attempt.items.writes().is_empty() => {
                version::upgrade_predicates::<Self, H>(attempt)?;
                return occ::validate_reads::<Self, H>(attempt);
            }
            None => occ::lock_and_validate::<Self, H>(attempt)?,
        };
        let local = H::local_mut(&mut attempt.local);
        local.last = highest.max(local.last) + 1;
        Ok(())
    }

    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let attempt = prepared.attempt();
        if let Some(ranks) = attempt.piece_ranks() {
            self.order.publish(attempt, ranks);
        }
        let version = Version::new(H::local(&attempt.local).last, attempt.worker());
        version::install_writes::<Self, H>(prepared, version);
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if let Some(ranks) = attempt.piece_ranks() {
            return self.order.validate_before_rollback(attempt, ranks);
        }
        version::upgrade_predicates::<Self, H>(attempt)?;
        occ::validate_reads::<Self, H>(attempt)
    }

    fn abort(&self, attempt: &mut Attempt<H>) {
        self.order.release(attempt);
        version::release::<Self, H>(attempt);
    }
}

impl<H: Host<Ic3>> PieceOrder<H> for Ic3 {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn before_piece(&self, attempt: &mut Attempt<H>) {
        self.order.before_piece(attempt);
    }

    fn end_pieces(&self, attempt: &mut Attempt<H>) {
        self.order.end(attempt);
    }
}

tells_versions!(Ic3);
