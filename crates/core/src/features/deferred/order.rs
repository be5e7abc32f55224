//! The order of a transaction's own operations on one key.
//!
//! An intention runs as soon as it can, so those of one transaction do not run in the order in which they were
//! deferred. Two on one key do. Let E be the earlier one and F the later one, and neither has run:
//!
//! 1. *Both are deferred for the key's segment*, at once or [late](super::late). The segment's item holds F back with
//!    E. A late operation has the place at which it was deferred, and finds its segment before any queue of its object
//!    is joined: F has no turn before that.
//! 2. *E finds its segment only when it runs* (an insertion), *F is deferred for the segment or is late.* This does not
//!    happen: E is going to change the index, so the operation that defers F makes E run first
//!    ([`settle_structure`](DeferralAccess::settle_structure)).
//! 3. *F has no queue that could keep it back*: it finds its segment, or makes it, when it runs, or it works on a
//!    segment that the attempt has made. It waits for each operation on the same object that was deferred earlier and
//!    has not run, unless both keys are known and differ. The key of a late one is not known before that has found its
//!    segment.
//!
//! Rule 3 makes no attempt wait for another one. An attempt waits for turns in the order of the list, in which E comes
//! before F. In a [stage](super::late) F may have to wait for an E whose queue is joined later. If the stage needs the
//! result of F, the attempt starts over and defers nothing, as it does whenever a key depends on results of a higher
//! rank.
//!
//! Keys are compared by their hashes, and only if an intention is held back. If two keys have the same hash, F waits
//! unnecessarily.

use super::intention::{Intention, Intentions, NO_OBJECT};
use crate::features::deferred::DeferralAccess;
use crate::kernel::item::{Flags, Item};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;

impl<P: Protocol> ObjectAccess<'_, P> {
    /// True if an intention whose inputs are known has to wait for one that was deferred earlier, because no queue
    /// keeps it behind that. `waiting` is the list in which [`held_back`](Intentions::held_back) names positions before
    /// its own.
    #[inline]
    pub(super) fn must_follow(&self, intention: &Intention<P>, waiting: &[Intention<P>]) -> bool {
        let Intentions { held_back, late, .. } = &self.attempt.features.intentions;
        if held_back.is_empty() && late.is_empty() {
            return false;
        }
        let is_inserted = |id| self.attempt.items.get(id).is(Flags::INSERTED);
        (intention.finds_segment_of != NO_OBJECT || intention.item.is_some_and(is_inserted))
            && self.follows_another(intention, waiting)
    }

    #[cold]
    #[inline(never)]
    fn follows_another(&self, intention: &Intention<P>, waiting: &[Intention<P>]) -> bool {
        let Intentions { held_back, late, .. } = &self.attempt.features.intentions;
        let object = self.object_of(intention);
        if late.iter().any(|late| late.object == object && late.intention.order < intention.order) {
            return true;
        }
        let mut earlier = held_back.iter().map(|at| &waiting[*at as usize]);
        let mut key = None;
        earlier.any(|one| {
            self.object_of(one) == object && {
                let key = *key.get_or_insert_with(|| self.key_hash(intention));
                let differs = key.zip(self.key_hash(one)).is_some_and(|(key, other)| key != other);
                !differs
            }
        })
    }

    /// Returns the item for which an intention was deferred, unless it works on another segment.
    fn own_item(&self, intention: &Intention<P>) -> Option<&Item<P>> {
        let id = intention.item.filter(|_| intention.finds_segment_of == NO_OBJECT);
        id.map(|id| self.attempt.items.get(id))
    }

    /// Returns the number of the object on which an intention works; [`NO_OBJECT`] for a computation.
    fn object_of(&self, intention: &Intention<P>) -> u32 {
        let of_item = self.own_item(intention).map(|item| item.object().meta().number());
        of_item.unwrap_or(intention.finds_segment_of)
    }

    /// Returns a hash of the key on which an intention works, if it is known.
    fn key_hash(&self, intention: &Intention<P>) -> Option<u64> {
        match self.own_item(intention) {
            // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
            Some(item) => Some(unsafe { item.object().identify(item.segment()) }),
            // SAFETY: the attempt is in progress, and it is the only user of its operations.
            None => unsafe { intention.operation.key_hash(&self.attempt.features.operations.results) },
        }
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// Notes that the last deferred intention finds its segment of this object, or makes it, only when it runs, and may
    /// change the object's index. It runs after all operations on this object that were deferred earlier, except those
    /// whose [keys](crate::Input::key_hash) are known to differ from its own.
    pub fn finds_segment(&mut self, meta: &ObjectMeta) {
        self.will_change_structure(meta);
        if self.defers()
            && let Some(last) = self.attempt.features.intentions.waiting.last_mut()
        {
            last.finds_segment_of = meta.number();
        }
    }
}
