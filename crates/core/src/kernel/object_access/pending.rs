//! Pending writes: the payloads that the commit will install.

use super::ObjectAccess;
use crate::kernel::item::{Flags, ItemId, TouchedSegment};
use crate::kernel::object::Object;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use hotrow_sync::profile;
use std::ptr::NonNull;

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Gives an item its pending write, which the object's `install` or `undo` will consume.
    ///
    /// # Safety
    ///
    /// The item has no pending write yet; its object's functions expect a payload of type `T`; and the
    /// write was announced ([`write`](Self::write), [`read_for_update`](Self::read_for_update)).
    #[inline]
    pub unsafe fn set_write<T>(&mut self, id: ItemId, pending: T) -> &mut T {
        self.has_written();
        self.history_mut().record_change(id);
        self.attempt.set_write(id, pending)
    }

    /// Returns room for a pending write, for [`set_write_at`](Self::set_write_at).
    #[inline]
    pub fn reserve<T>(&mut self) -> *mut T {
        self.attempt.reserve()
    }

    /// As [`set_write`](Self::set_write), for a pending write that is in its place already.
    ///
    /// # Safety
    ///
    /// As for [`set_write`](Self::set_write). The place was [reserved](Self::reserve) in this attempt and used for no
    /// other write, and holds a `T`. A `T` is larger than a pointer.
    #[inline]
    pub unsafe fn set_write_at<T>(&mut self, id: ItemId, place: *mut T) -> &mut T {
        self.has_written();
        self.history_mut().record_change(id);
        // SAFETY: the caller's promise.
        unsafe { self.attempt.items.mark_write(id).set_payload_at(place) }
    }

    /// Requests a call of [`Object::cleanup`] for an item with a pending write. Inserted items get it anyway.
    ///
    /// # Safety
    ///
    /// The item is the caller's object's, and that object's `cleanup` can work with it.
    #[inline]
    pub unsafe fn want_cleanup(&mut self, id: ItemId) {
        self.attempt.items.get_mut(id).mark_as(Flags::CLEANUP);
        self.attempt.hears.add(Moments::CLEANUP);
    }

    /// Requests a call of [`Object::check`] for each pending write before the commit.
    #[inline]
    pub fn want_check(&mut self) {
        self.attempt.hears.add(Moments::CHECK);
    }

    /// Begins changes that belong together: a row and its entries in indexes, say. Until they
    /// [end](Self::end_joint_changes) the attempt cannot commit, so an operation that fails between them, or panics, is
    /// undone behind a savepoint or ends the transaction with [`Misuse::CaughtError`](crate::Misuse::CaughtError). Returns
    /// what to end them with.
    #[must_use]
    #[inline]
    pub fn begin_joint_changes(&mut self) -> bool {
        let around = self.attempt.hears(Moments::HALF_CHANGED);
        self.attempt.hears.add(Moments::HALF_CHANGED);
        around
    }

    /// Ends such changes.
    #[inline]
    pub fn end_joint_changes(&mut self, around: bool) {
        self.attempt.hears.set(Moments::HALF_CHANGED, around);
    }

    /// Notes that the next holder of a segment's lock relies on finding this attempt's insertions.
    #[inline]
    pub fn release_after_inserts(&mut self, id: ItemId) {
        self.attempt.items.get_mut(id).mark_as(Flags::RELEASE_AFTER_INSERTS);
    }

    /// Marks an item as written although its write needs no payload (a delete).
    ///
    /// # Safety
    ///
    /// The object's `install` and `undo` can do without a payload, and the write was announced.
    #[inline]
    pub unsafe fn set_write_without_payload(&mut self, id: ItemId) {
        self.has_written();
        self.history_mut().record_change(id);
        self.attempt.items.mark_write(id);
    }

    /// Replaces the payload of a pending write, or gives it one if it has none.
    ///
    /// # Safety
    ///
    /// The item has a pending write whose payload, if any, is of type `T`.
    #[inline]
    pub unsafe fn replace_payload<T>(&mut self, id: ItemId, payload: T) {
        if !self.attempt.items.get(id).has_payload() {
            self.attempt.set_payload(id, payload);
        } else {
            // SAFETY: the caller's promise.
            *unsafe { self.payload::<T>(id) } = payload;
        }
    }

    /// Gives a pending write another payload, of another type. The old one is forgotten, not dropped.
    ///
    /// # Safety
    ///
    /// The item is the caller's object's. When the object's functions see it next, they can work with its tag and this
    /// payload.
    #[inline]
    pub unsafe fn exchange_payload<T>(&mut self, id: ItemId, payload: T) {
        self.attempt.set_payload(id, payload);
    }

    /// Returns the header for a segment that this attempt makes, which holds its lock until it ends. No other attempt
    /// can read or write the segment before that, so it may be published at once ("poisoned", sto §4.1).
    #[inline]
    pub fn new_locked_header(&self) -> P::Header {
        self.protocol.new_locked_header(self.attempt)
    }

    /// Enters a segment whose header is a [`new_locked_header`](Self::new_locked_header) of this attempt, as written.
    /// Its pending write has no payload, because the value is in the segment already.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), and the segment has no item yet. The object's functions can work with the tag.
    #[inline]
    pub unsafe fn enter_inserted<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
        tag: u16,
    ) -> ItemId {
        self.has_written();
        // SAFETY: the caller's promise.
        let touched = unsafe { TouchedSegment::new(segment, NonNull::from(object)) };
        let meta = object.meta();
        profile::enter_object(std::ptr::from_ref(meta).addr(), || meta.name().to_owned());
        // SAFETY: as for the item.
        profile::touch_new(touched.address(), || unsafe { object.describe(segment) });
        let items = &mut self.attempt.items;
        let id = items.find_or_add(touched);
        let item = items.get_mut(id);
        item.mark_as(Flags::INSERTED);
        item.mark_as(Flags::LOCKED);
        item.mark_as(Flags::CLEANUP);
        item.tag = tag;
        items.mark_write(id);
        self.attempt.hears.add(Moments::CLEANUP);
        id
    }

    /// True if this attempt made a segment.
    pub fn has_made(&self, segment: NonNull<P::Header>) -> bool {
        self.attempt.has_made(segment)
    }

    /// The datatype's own mark on an item.
    #[inline]
    pub fn tag(&self, id: ItemId) -> u16 {
        self.attempt.items.get(id).tag
    }

    /// Sets the datatype's own mark on an item, by which the object's functions may tell the type of its payload.
    ///
    /// # Safety
    ///
    /// The item is the caller's object's. When the object's functions see it next, they can work with its tag and its
    /// payload of that moment.
    ///
    /// ```compile_fail,E0133
    /// fn retag<P: hotrow_core::Protocol>(tx: &mut hotrow_core::ObjectAccess<'_, P>, id: hotrow_core::ItemId) {
    ///     tx.set_tag(id, 7);
    /// }
    /// ```
    #[inline]
    pub unsafe fn set_tag(&mut self, id: ItemId, tag: u16) {
        self.attempt.items.get_mut(id).tag = tag;
    }

    /// An item's payload.
    ///
    /// # Safety
    ///
    /// The item has a payload, of type `T`.
    #[inline]
    pub unsafe fn payload<T>(&mut self, id: ItemId) -> &mut T {
        // SAFETY: the caller's promise; the arena lives until the attempt ends, and `&mut self` makes the
        // reference exclusive.
        unsafe { &mut *self.attempt.items.get_mut(id).payload_mut::<T>() }
    }

    /// True if an item has a pending write.
    #[inline]
    pub fn has_write(&self, id: ItemId) -> bool {
        self.attempt.items.get(id).is(Flags::WRITE)
    }
}
