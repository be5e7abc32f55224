//! Conflicts that an attempt loses: their counting, while the segment is still in memory.

use super::table::Loss;
use crate::kernel::abort::{Abort, Misuse, Reason};
use crate::kernel::capabilities::{Reports, Rival};
use crate::kernel::item::{ItemId, TouchedSegment};
use crate::kernel::loss::ConflictReport;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::protocol::{ConflictCause, ConflictTarget, EnterError, Protocol};
use crate::memory::identity::ObjectMeta;
use crate::memory::users_code::contained;
use hotrow_sync::clock::Duration;
use hotrow_sync::lock;

/// The identity of all keys of an object together, in counts of conflicts.
const ALL_KEYS: u64 = u64::MAX;

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Ends the attempt over a conflict that only the datatype can see (an insert met another's).
    #[cold]
    pub fn conflict(&mut self, reason: Reason, item: ItemId) -> Abort {
        self.lose(ConflictCause::item(reason, item))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&mut self, lost: ConflictCause) -> Abort {
        if self.attempt.stop.is_some() || self.attempt.features.graph.has_blocked {
            return Abort::INTERNAL;
        }
        if self.attempt.has_to_end() {
            // It may have given up a wait for that.
            return self.heed();
        }
        if self.attempt.features.graph.is_thief {
            // The owner counts it and reports it.
            return self.stop(Stop::Lost(ConflictReport::of(lost.reason())));
        }
        self.attempt.features.operations.has_lost |= lost.reason() == Reason::Undeclared;
        let mut loss = self.report(lost);
        if self.attempt.can_defer() {
            loss.pin = self.keep_footprint(&lost);
        }
        self.stop(Stop::Lost(loss))
    }

    /// Counts a lost conflict while its segment is still in memory. Users' code that names the key runs without a lock.
    /// If it panics, the attempt has still lost.
    fn report<'a>(&'a self, lost: ConflictCause) -> ConflictReport {
        let is_reported = self.slot.features.origins.is_on();
        let identified = |touched: &'a TouchedSegment<P>| {
            let segment = touched.segment();
            let reports = P::Reports::of(self.protocol).filter(|_| is_reported);
            let rival = reports.and_then(|reports| reports.rival(self.attempt, touched.header()));
            // SAFETY: the segment is its object's, and in memory until the attempt ends.
            let identity = contained(|| unsafe { touched.object().identify(segment) });
            (touched.object(), identity.unwrap_or_default(), Ok(segment), rival)
        };
        let (object, identity, segment, rival) = match lost.target() {
            ConflictTarget::Item(id) => identified(&self.attempt.items.get(id).touched),
            ConflictTarget::Read(position) => identified(self.attempt.reads.get(position)),
            ConflictTarget::Structure(number) => {
                let (observed, object) = self.attempt.observation(number);
                (object, observed.node.addr().get() as u64, Err(observed.node), None)
            }
            ConflictTarget::Nothing => {
                self.count_tame_abort(lost.reason());
                self.slot.counters.abort(lost.reason());
                return ConflictReport::of(lost.reason());
            }
        };
        let describe = || {
            let key = contained(|| match segment {
                // SAFETY: as above.
                Ok(segment) => unsafe { object.describe(segment) },
                // SAFETY: observed by this object in this attempt.
                Err(node) => unsafe { object.describe_structure(node, self.attempt.pin()) },
            });
            (
                object.meta().name().to_owned(),
                key.unwrap_or_else(|| String::from("a key that cannot be shown")),
            )
        };
        self.count_tame_abort(lost.reason());
        self.count_lost(object.meta(), identity, lost.reason(), rival, describe)
    }

    /// Ends the attempt over a lock of all objects, which it wanted in order to enter this one.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse_all_keys(&mut self, meta: &ObjectMeta, error: EnterError) -> Abort {
        let EnterError::Lost(reason) = error else { return self.misuse(Misuse::Nested) };
        if self.attempt.has_to_end() {
            return self.heed();
        }
        self.conflict_over(meta, reason, ALL_KEYS, || String::from("all keys"))
    }

    /// Ends the attempt over a conflict that only the datatype can see, over a key without a segment. `identity` tells keys
    /// apart in counts of conflicts.
    #[cold]
    pub fn conflict_over(
        &mut self,
        meta: &ObjectMeta,
        reason: Reason,
        identity: u64,
        describe: impl Fn() -> String,
    ) -> Abort {
        let describe = || (meta.name().to_owned(), describe());
        let loss = self.count_lost(meta, identity, reason, None, describe);
        self.stop(Stop::Lost(loss))
    }

    /// Counts a lost conflict over a key of an object, which `describe` names.
    fn count_lost(
        &self,
        meta: &ObjectMeta,
        identity: u64,
        reason: Reason,
        rival: Option<Rival>,
        describe: impl Fn() -> (String, String),
    ) -> ConflictReport {
        self.slot.counters.abort(reason);
        let (origins, number) = (&self.slot.features.origins, meta.number());
        let sides = origins.is_on().then(|| {
            let other = rival.filter(|rival| rival.worker != self.attempt.worker());
            (self.slot.features.activity.read().0, other.map_or(0, |other| origins.of_rival(other)))
        });
        let time = self.attempt.course.lost_since.map_or(Duration::ZERO, |since| since.elapsed());
        let loss = Loss { reason, time, sides };
        let counted = lock(&self.slot.features.conflicts).count(number, identity, loss);
        if !counted {
            let (object, key) = describe();
            lock(&self.slot.features.conflicts).count_new(number, identity, loss, object, key);
        }
        if !self.describe {
            return ConflictReport::of(reason);
        }
        let sides =
            sides.map_or([None; 2], |(loser, winner)| [loser, winner].map(|side| origins.origin(side)));
        ConflictReport { reason, words: Some(describe()), sides, pin: None }
    }
}
