//! Looks at segments: a protocol's first half, the load of the value, and the protocol's second half.
//!
//! The protocol never calls what loads a value. So its code is compiled once, and not for each type of a value, and a value stays in
//! registers.

use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::LoggedReads;
use crate::kernel::item::{ItemId, TouchedSegment};
use crate::kernel::object_access::LOADED;
use crate::kernel::protocol::{Before, ConflictCause, Look, Protocol};
use hotrow_sync::spin::Spin;

impl<P: Protocol> Attempt<P> {
    /// Loads the value of an item's segment until it is stable, within bounds.
    #[inline(always)]
    pub(crate) fn load<V>(
        &mut self,
        protocol: &P,
        item: ItemId,
        look: Look,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        match self.load_once(protocol, item, look, &mut load) {
            Ok(value) => Ok(value),
            Err(lost) => self.load_again(protocol, item, look, load, lost),
        }
    }

    #[inline(always)]
    fn load_once<V>(
        &mut self,
        protocol: &P,
        item: ItemId,
        look: Look,
        load: &mut impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let before = protocol.before_load(self, item, look)?;
        let value = load();
        protocol.after_load(self, item, look, before)?;
        Ok(value)
    }

    /// Makes further looks while the conflict may pass. Out of line, so that a look that no writer meets keeps nothing for a second
    /// one. For the same reason it takes `load` by value.
    #[cold]
    #[inline(never)]
    fn load_again<V>(
        &mut self,
        protocol: &P,
        item: ItemId,
        look: Look,
        mut load: impl FnMut() -> V,
        lost: ConflictCause,
    ) -> Result<V, ConflictCause> {
        let mut value = None;
        self.load_again_by(protocol, item, look, &mut || value = Some(load()), lost)?;
        Ok(value.expect(LOADED))
    }

    /// Is compiled once for all values.
    #[inline(never)]
    pub(crate) fn load_again_by(
        &mut self,
        protocol: &P,
        item: ItemId,
        look: Look,
        mut load: &mut dyn FnMut(),
        mut lost: ConflictCause,
    ) -> Result<(), ConflictCause> {
        let mut spin = Spin::new();
        while lost.is_passing() && spin.turn() {
            match self.load_once(protocol, item, look, &mut load) {
                Ok(()) => return Ok(()),
                Err(later) => lost = later,
            }
        }
        Err(lost.settled())
    }

    /// Begins to load the value of a segment that is going to be written, and was not touched yet: its item is made when the value is
    /// loaded, in one look. `None`, here and at the [end](Self::end_load_to_write), if the caller has to make the read by the item.
    ///
    /// In builds that are not optimized both are compiled once, and not for each value.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin_load_to_write(
        &mut self,
        reads: &P::LoggedReads,
        touched: &TouchedSegment<P>,
    ) -> Option<Before> {
        // The path must not depend on addresses, as it would with an answer of the index's filter alone: simulations repeat.
        if !reads.loads_to_write() || self.items.has(touched) {
            return None;
        }
        touched.announce();
        reads.before_load(touched).ok()
    }

    /// Ends such a load: adds the item.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn end_load_to_write(
        &mut self,
        reads: &P::LoggedReads,
        touched: &TouchedSegment<P>,
        before: Before,
    ) -> Option<ItemId> {
        let mark = reads.mark_to_write(self, touched, before)?;
        Some(self.items.add_read(*touched, mark))
    }

    /// As [`load`](Self::load), for a read that is logged.
    #[inline(always)]
    pub(crate) fn load_logged<V>(
        &mut self,
        reads: &P::LoggedReads,
        touched: TouchedSegment<P>,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        match self.load_logged_once(reads, &touched, &mut load) {
            Ok(value) => Ok(value),
            Err(lost) => self.load_logged_again(reads, touched, load, lost),
        }
    }

    #[inline(always)]
    fn load_logged_once<V>(
        &mut self,
        reads: &P::LoggedReads,
        touched: &TouchedSegment<P>,
        load: &mut impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let before = reads.before_load(touched)?;
        let value = load();
        reads.after_load(self, touched, before)?;
        Ok(value)
    }

    /// See [`load_again`](Self::load_again).
    #[cold]
    #[inline(never)]
    fn load_logged_again<V>(
        &mut self,
        reads: &P::LoggedReads,
        touched: TouchedSegment<P>,
        mut load: impl FnMut() -> V,
        lost: ConflictCause,
    ) -> Result<V, ConflictCause> {
        let mut value = None;
        self.load_logged_again_by(reads, &touched, &mut || value = Some(load()), lost)?;
        Ok(value.expect(LOADED))
    }

    /// Is compiled once for all values.
    #[inline(never)]
    pub(crate) fn load_logged_again_by(
        &mut self,
        reads: &P::LoggedReads,
        touched: &TouchedSegment<P>,
        mut load: &mut dyn FnMut(),
        mut lost: ConflictCause,
    ) -> Result<(), ConflictCause> {
        let mut spin = Spin::new();
        while lost.is_passing() && spin.turn() {
            match self.load_logged_once(reads, touched, &mut load) {
                Ok(()) => return Ok(()),
                Err(later) => lost = later,
            }
        }
        Err(if lost.is_passing() { self.reads.lost_at_read(touched, lost.reason()) } else { lost })
    }
}
