//! Transactions in pieces: each piece commits by itself (dbx-tc §3; `hotrow_procedures::chopping` says when that is right).
//!
//! A piece is an ordinary transaction of the protocol. All pieces of a transaction are one transaction in everything but that:
//!
//! - *Snapshots.* The transaction has one stamp, that of its first piece, which must contain whatever conflicts with others. It is
//!   announced from there until its last piece has installed, so that no snapshot sees a part of it (dbx-tc §4.3). A later piece
//!   may find that a commit with a later stamp has changed the same segment, in a way that commutes. Then the piece's change is
//!   made to the version that was kept for snapshots as well (dbx-tc §4.4, Algorithm 1: `KeptWrites::keep`).
//! - *Histories.* The events of all pieces are those of one attempt. Attempts at a later piece that abort leave none.
//! - *The end.* Once the first piece has committed, the transaction must get to its end: its later pieces heed no limit of the
//!   retry policy, no deadline and no memory limit, and do not wait at the gate of the oldest.
//!
//! # Others
//!
//! A transaction that is not known to the analysis may see what no serial order explains, if it runs beside one between two
//! pieces. So the two exclude each other. An unknown transaction (a *whole* one) counts itself and waits for all that are announced
//! before it begins. A transaction in pieces looks at the count when it has announced itself, before its first piece commits; if
//! there is anybody, the attempt is lost, and the next one has all pieces in one. (As one piece it is in nobody's way, so it is not
//! counted: otherwise transactions that are in nobody's way would keep each other from being in pieces.) Each does first what the other looks at, with a full fence in
//! between, so at least one of them sees the other.

use crate::features::snapshot::Snapshots;
use crate::kernel::abort::{Abort, Error};
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::PieceOrder;
use crate::kernel::capabilities::PieceRanks;
use crate::kernel::engine::Engine;
use crate::kernel::loss::ConflictReport;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::Counter;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use hotrow_sync::Arc;

/// Counters of transactions in pieces.
impl Counter {
    /// Pieces that others followed.
    pub const PIECES: Counter =
        Counter::count("pieces", "pieces of transactions that committed before the last one");
    /// Transactions that excluded others in pieces.
    pub const WHOLE: Counter =
        Counter::count("whole", "transactions that ran whole and kept others from being in pieces");
}

/// The counters of transactions in pieces.
pub(crate) const COUNTERS: &[Counter] = &[Counter::PIECES, Counter::WHOLE];

/// Counters of pieces that are ordered by ranks.
impl Counter {
    /// Dependencies between transactions in pieces.
    pub const DEPENDENCIES: Counter =
        Counter::count("dependencies", "transactions in pieces that others had to come before");
    /// Waits of pieces.
    pub const PIECE_WAITS: Counter =
        Counter::count("piece_waits", "waits of a transaction in pieces for one before it");
}

/// The counters of pieces that are ordered by ranks.
pub(crate) const ORDER_COUNTERS: &[Counter] = &[Counter::DEPENDENCIES, Counter::PIECE_WAITS];

/// The place of an attempt's piece in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Piece {
    /// The transaction is not known to the analysis.
    #[default]
    Whole,
    /// The transaction is one piece.
    Only,
    First,
    /// Neither the first nor the last.
    Middle,
    Last,
}

impl Piece {
    /// True if a piece of the transaction has committed.
    #[inline(always)]
    pub(crate) fn is_later(self) -> bool {
        matches!(self, Self::Middle | Self::Last)
    }

    /// True if other pieces follow.
    #[inline(always)]
    pub(crate) fn goes_on(self) -> bool {
        matches!(self, Self::First | Self::Middle)
    }
}

/// Counts a whole transaction while it lives.
pub(crate) struct WholeGuard(Arc<Snapshots>);

impl WholeGuard {
    /// Counts a transaction, and waits for all that are between two pieces.
    #[cold]
    pub(crate) fn enter(snapshots: &Arc<Snapshots>) -> Self {
        snapshots.enter_whole();
        Self(snapshots.clone())
    }
}

impl Drop for WholeGuard {
    fn drop(&mut self) {
        self.0.leave_whole();
    }
}

/// A transaction in pieces: see [`Worker::in_pieces`].
pub struct Pieces<'w, P: Protocol> {
    worker: &'w mut Worker<P>,
    has_committed: bool,
    /// True if the protocol orders pieces, and must learn of the end.
    is_ordered: bool,
}

impl<P: Protocol> std::fmt::Debug for Pieces<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("has_committed", &self.has_committed).finish_non_exhaustive()
    }
}

impl<P: Protocol> Worker<P> {
    /// Runs a transaction in pieces, in an engine that [chops](crate::Engine::begin_chopping).
    pub fn in_pieces<R>(&mut self, run: impl FnOnce(&mut Pieces<'_, P>) -> R) -> R {
        // Not given away, so that it cannot be leaked.
        let is_ordered = self.orders_pieces();
        let mut pieces = Pieces { worker: self, has_committed: false, is_ordered };
        run(&mut pieces)
    }
}

impl<P: Protocol> Pieces<'_, P> {
    /// Runs a piece: as [`Worker::try_transact_as`]. The first one may fail like any transaction. Those after it are repeated until
    /// they commit; their bodies must not roll back. `is_last`: no other follows. Whatever conflicts with others is in the first
    /// piece; or the protocol [orders](PieceOrder) pieces, and each that conflicts has `ranks`, above those of the
    /// pieces before it. Then the first one that writes has some, if any has.
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact_as`].
    #[inline]
    pub fn piece<R, E: From<Abort>>(
        &mut self,
        profile: Profile,
        ranks: Option<PieceRanks>,
        is_last: bool,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        self.worker.attempt.features.piece = match (self.has_committed, is_last) {
            (false, true) => Piece::Only,
            (false, false) => Piece::First,
            (true, false) => Piece::Middle,
            (true, true) => Piece::Last,
        };
        if self.is_ordered {
            self.worker.attempt.features.piece_ranks = ranks;
            self.worker.attempt.features.ends_later = is_last;
        }
        let result = self.worker.try_transact_as(profile, body);
        if result.is_ok() {
            self.has_committed = self.is_ordered || !is_last;
        } else if self.is_ordered && !self.has_committed {
            // Another one that follows would be the first of another transaction.
            self.worker.end_ordered_pieces();
        }
        result
    }
}

impl<P: Protocol> Drop for Pieces<'_, P> {
    fn drop(&mut self) {
        self.worker.attempt.features.piece = Piece::Whole;
        if self.is_ordered {
            self.worker.end_ordered_pieces();
            if self.has_committed {
                self.worker.slot.counters.commit();
            }
        }
        if self.has_committed {
            // After a panic of users' code in a later piece the pieces that have committed stay.
            self.worker.attempt.end_pieces();
        }
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// True if transactions run that the analysis does not know: a transaction must not be in pieces then.
    pub fn must_be_whole(&self) -> bool {
        let announcement = self.0.attempt.features.announcement.as_ref();
        announcement.is_some_and(|announcement| announcement.snapshots().has_whole())
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Announces a piece that others follow, before the first half of its commit. False if the attempt is lost because the
    /// transaction must be whole.
    #[cold]
    #[inline(never)]
    pub(crate) fn announce_piece(&mut self) -> bool {
        let attempt = &mut *self.attempt;
        let Some(announcement) = &mut attempt.features.announcement else { return true };
        if attempt.features.piece == Piece::First && !announcement.begin_pieces() {
            let _ = self.stop(Stop::Lost(ConflictReport::at_gate()));
            return false;
        }
        true
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Counts a commit that may be that of a piece.
    pub(crate) fn count_piece(&self) {
        if self.attempt.features.piece.goes_on() {
            self.counters().count(const { Counter::PIECES.place::<P>() });
        } else if !self.attempt.features.ends_later {
            // One that ends later is counted when it has ended.
            self.slot.counters.commit();
        }
    }
}

impl<P: Protocol> Attempt<P> {
    /// Draws the stamp of a piece that others follow and that only reads: the transaction's place in the order is this piece's. For a
    /// protocol that does not [order](PieceOrder) pieces, after predicates are checked and before reads are
    /// validated.
    #[inline(always)]
    pub fn draw_stamp_of_reads(&mut self) {
        if P::ALLOWS_CHOPPING && self.features.piece.goes_on() {
            self.draw_stamp();
        }
    }

    /// The ranks of the attempt's piece, if its protocol [orders](PieceOrder) pieces and this one may conflict with those of other
    /// transactions.
    #[inline(always)]
    pub fn piece_ranks(&self) -> Option<PieceRanks> {
        self.features.piece_ranks
    }
}

impl<P: Protocol> Engine<P> {
    /// True if its variant of the protocol executes procedures [in pieces](crate::Pieces).
    #[inline]
    pub fn allows_chopping(&self) -> bool {
        // A later piece would log values that its transaction's stamp is too old for.
        P::ALLOWS_CHOPPING && !self.shared.features.has_log && self.shared.protocol.chops()
    }

    /// True if its variant of the protocol orders pieces by [ranks](crate::PieceRanks).
    pub fn orders_pieces(&self) -> bool {
        self.allows_chopping() && P::PieceOrder::of(&self.shared.protocol).is_some()
    }

    /// Admits transactions [in pieces](Worker::in_pieces). From then on others exclude them. Call it when no transaction is
    /// running.
    pub fn begin_chopping(&self) {
        self.shared.features.snapshots.begin_chopping();
    }
}

impl<P: Protocol> Worker<P> {
    /// Excludes transactions in pieces, if there may be any and the one that begins is none.
    #[inline(always)]
    pub(crate) fn exclude_pieces(&self) -> Option<WholeGuard> {
        let excludes = P::ALLOWS_CHOPPING
            && self.shared.features.snapshots.is_chopping()
            && self.attempt.features.piece == Piece::Whole;
        excludes.then(|| {
            self.slot.counters.named().count(const { Counter::WHOLE.place::<P>() });
            WholeGuard::enter(&self.shared.features.snapshots)
        })
    }

    /// True if the protocol orders pieces.
    pub(crate) fn orders_pieces(&self) -> bool {
        P::PieceOrder::of(&self.shared.protocol).is_some()
    }

    /// Waits until a piece may begin, where the protocol orders them.
    #[cold]
    pub(crate) fn await_piece(&mut self) {
        let Self { shared, attempt, .. } = self;
        if let Some(order) = P::PieceOrder::of(&shared.protocol) {
            order.before_piece(attempt);
        }
    }

    /// Ends a transaction in pieces under a protocol that orders them.
    pub(crate) fn end_ordered_pieces(&mut self) {
        let Self { shared, attempt, .. } = self;
        attempt.features.piece_ranks = None;
        attempt.features.ends_later = false;
        if let Some(order) = P::PieceOrder::of(&shared.protocol) {
            order.end_pieces(attempt);
        }
    }
}
