//! Footprints: the segments that a lost attempt has touched, for which the next attempt queues before its body runs.
//!
//! A wild transaction (drp §4.2) does not declare what it touches. But its next attempt will most likely touch what the last
//! one has touched. So it can be executed "in a second pass" like a tame one (drp §4): it queues for all these segments in the
//! order of ranks, and then runs its body, which reads and writes each of them at its turn.
//!
//! # Scouts
//!
//! An attempt that meets another transaction at its first read has a footprint of one segment. So the protocol may let it go on
//! although it has lost ([`Attempt::become_scout`]). Such a *scout* reads on and buffers its writes, but it cannot commit, and
//! its insertions do not enter the index, because they would be in the way of others. At its end it loses over the
//! conflict that made it a scout.
//!
//! # Memory
//!
//! A footprint is a list of pointers, which are valid as long as the epoch of the lost attempt is pinned. The report of the
//! loss carries the pin to the next attempt. So a footprint without a pin is not used, and a transaction that waits between
//! two attempts, holding nothing, has none.

use crate::features::deferred::DeferralAccess;
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::Access;
use crate::kernel::capabilities::Deferral as _;
use crate::kernel::item::{ItemId, TouchedSegment};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::memory::pin::Pin;

/// The segments of a footprint, with the access for which to queue.
pub(crate) type Footprint<P> = Vec<(TouchedSegment<P>, Access)>;

impl<P: Protocol> Attempt<P> {
    /// Lets the attempt go on although it has lost, to learn what its transaction touches. It loses with `cause` at its end,
    /// whatever its body does.
    pub fn become_scout(&mut self, cause: ConflictCause) {
        self.features.scout.get_or_insert(cause);
    }

    /// True if the attempt has lost, and goes on as a scout.
    #[inline]
    pub fn is_scout(&self) -> bool {
        self.features.scout.is_some()
    }

    /// True if `lost` is the loss with which a scout ends: its body has run to its end.
    pub fn is_end_of_scout(&self, lost: &ConflictCause) -> bool {
        self.features.scout.as_ref() == Some(lost)
    }

    /// True if the attempt has made, or would have made, a segment, or a deferred operation may make one.
    pub fn may_insert(&self) -> bool {
        self.features.scout_inserts || self.changes_structure() || self.will_restructure()
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Ends a scout.
    #[cold]
    pub(crate) fn end_scout(&mut self) {
        if let Some(cause) = self.attempt.features.scout {
            let _ = self.lose(cause);
        }
    }

    /// Keeps the footprint of the attempt, which has just lost, and returns the pin with which it is valid. Transactions that
    /// make no other attempt keep none.
    pub(crate) fn keep_footprint(&mut self, lost: &ConflictCause) -> Option<Pin> {
        let deferral = P::Deferral::of(self.protocol)?;
        if self.attempt.course.is_last {
            return None;
        }
        let mut footprint = std::mem::take(&mut self.attempt.features.footprint);
        footprint.clear();
        deferral.footprint(self.attempt, lost, &mut |item, access| footprint.push((item.touched, access)));
        self.attempt.features.footprint = footprint;
        (!self.attempt.features.footprint.is_empty()).then(Pin::new)
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// True if the attempt cannot commit, and only learns what its transaction touches. A datatype that would change shared
    /// memory at once does not do so then.
    #[inline]
    pub fn is_scout(&self) -> bool {
        self.attempt.can_defer() && self.attempt.is_scout()
    }

    /// Notes that a scout would have inserted something.
    pub fn scout_insertion(&mut self) {
        self.attempt.features.scout_inserts = true;
    }
}

/// Queues for the footprint of the attempt before.
#[cold]
#[inline(never)]
pub(crate) fn line_up_early<P: Protocol>(protocol: &P, attempt: &mut Attempt<P>) {
    let footprint = std::mem::take(&mut attempt.features.footprint);
    // The caller holds the pin with which the footprint was kept, so segments and objects are in memory. The attempt has
    // a pin of its own by now.
    let items: Vec<(ItemId, Access)> =
        footprint.iter().map(|(touched, access)| (attempt.items.find_or_add(*touched), *access)).collect();
    attempt.features.footprint = footprint;
    attempt.features.footprint.clear();
    if let Some(deferral) = P::Deferral::of(protocol) {
        deferral.line_up_early(attempt, &items);
    }
}
