//! The part of deferral in the operations of a body, which may reach segments with intentions, and in those of intentions.

use crate::kernel::abort::Abort;
use crate::kernel::item::ItemId;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use std::ptr::NonNull;

impl<P: Protocol> ObjectAccess<'_, P> {
    /// The item of the intention that ran last, if an intention runs and the item is of this segment.
    #[inline(always)]
    pub(crate) fn item_of_intention(&self, segment: NonNull<P::Header>) -> Option<ItemId> {
        if !self.attempt.can_defer() {
            return None;
        }
        self.attempt.features.execution.latest().filter(|latest| self.attempt.items.is_at(*latest, segment))
    }

    /// Notes that the attempt depends on other transactions' writes. An intention that reads its own segment at its
    /// turn does not count.
    #[inline]
    pub(crate) fn note_read(&mut self, id: ItemId) {
        if self.attempt.can_defer() && self.keeps_reads() {
            self.attempt.features.execution.note_read(id);
        }
    }

    /// Runs all deferred operations if an operation of the body reaches a segment with intentions, so that it sees its
    /// own changes. [`read`](Self::read), [`read_for_update`](Self::read_for_update), [`write`](Self::write) and
    /// [`peek`](Self::peek) do so themselves; a datatype that looks at an item before it calls one of them calls this
    /// first.
    ///
    /// # Errors
    ///
    /// As [`settle`](Self::settle).
    #[inline]
    pub(crate) fn settle_before(&mut self, id: ItemId) -> Result<(), Abort> {
        if self.attempt.can_defer()
            && self.attempt.items.get(id).intentions > 0
            && self.attempt.features.execution.running != Some(id)
        {
            self.settle_segment(id)
        } else {
            Ok(())
        }
    }
}
