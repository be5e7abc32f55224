//! Segments: the unit of conflict.

use crate::abort::Abort;
use crate::cell::{Cell, Value};
use crate::deferred::Access;
use crate::item::Item;
use crate::object::Object;
use crate::operations::{Deferred, Input};
use crate::pin::Pin;
use crate::protocol::Protocol;
use crate::savepoint::{SavedWrite, Saver};
use crate::transaction::{ObjectAccess, ReadValue};
use hotrow_sync::prefetch::prefetch;
use std::ptr::NonNull;

/// A value with its protocol's header. Two operations on different segments commute.
///
/// Simple datatypes (a box, an array) are made of segments: a [`SegmentObject`](crate::SegmentObject) holds them, and
/// needs no `unsafe` of the author's. Another object may hold some, too: it calls [`read`](Self::read),
/// [`write`](Self::write) and [`update`](Self::update) in its operations, and passes [`install`](Self::install),
/// [`undo`](Self::undo), [`save`](Self::save) and [`restore`](Self::restore) on.
#[repr(C)]
pub struct Segment<T: Value, P: Protocol> {
    header: P::Header,
    cell: T::Cell,
}

type Pending<T> = <<T as Value>::Cell as Cell<T>>::Pending;

impl<T: Value, P: Protocol> Segment<T, P> {
    /// Makes a segment that holds `value`, unlocked, never written.
    pub fn new(value: T) -> Self {
        Self { header: P::Header::default(), cell: T::Cell::new(value) }
    }

    /// The segment's address, as items know it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn address(&self) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct; the pointer keeps the whole segment's
        // provenance, so `from_address` may go back.
        NonNull::from(self).cast()
    }

    /// Returns the segment at an address.
    ///
    /// # Safety
    ///
    /// `address` comes from [`address`](Self::address) of a segment of this type that is still in memory.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn from_address<'a>(address: NonNull<P::Header>) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { address.cast::<Self>().as_ref() }
    }

    /// Reads the value, or the attempt's own pending one if it has written the segment.
    ///
    /// # Safety
    ///
    /// As for [`ObjectAccess::read`]: the segment is `object`'s, whose functions for the commit pass on to this
    /// type's; both are freed through the epoch only; and `tx` is of an operation of `object`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn read<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        // SAFETY: the caller's promise.
        match unsafe { tx.read(object, self.address(), || self.cell.load()) }? {
            // SAFETY: a pending write of a segment has a payload of this type (`write`, `update`).
            ReadValue::Own(id) => Ok(look(T::Cell::pending(unsafe { tx.payload::<Pending<T>>(id) }))),
            // SAFETY: the protocol found the snapshot stable, and the attempt has been pinned since before the load.
            ReadValue::Shared(snapshot) => Ok(look(unsafe { T::Cell::view(&snapshot, tx.pin()) })),
        }
    }

    /// Writes a value without looking at the old one.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn write<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        value: T,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise; payloads of segments are of this type.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            if pending {
                *T::Cell::pending_mut(tx.payload::<Pending<T>>(id)) = value;
            } else {
                tx.set_write(id, T::Cell::pend(value));
            }
        }
        Ok(())
    }

    /// Changes a pending copy of the value in place.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn update<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        // SAFETY: the caller's promise; payloads of segments are of this type; the snapshot is stable.
        unsafe {
            let (id, snapshot) = tx.read_for_update(object, self.address(), || self.cell.load())?;
            let pending = match snapshot {
                None => tx.payload::<Pending<T>>(id),
                Some(snapshot) => {
                    let value = T::Cell::view(&snapshot, tx.pin()).clone();
                    tx.set_write(id, T::Cell::pend(value))
                }
            };
            Ok(change(T::Cell::pending_mut(pending)))
        }
    }

    /// Defers work on the segment, and prefetches its value, which may be in another cache line than the header.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    unsafe fn defer<I: Input, R: 'static, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        access: Access,
        inputs: I,
        work: impl FnOnce(&Self, &mut ObjectAccess<'_, P>, &O, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort> {
        if P::DEFERS {
            prefetch(&raw const self.cell);
        }
        let (segment, owner) = (NonNull::from(self), NonNull::from(object));
        // SAFETY: the caller's promise; segment and object stay in memory until the attempt ends.
        unsafe {
            tx.defer(object, self.address(), access, inputs, move |tx, inputs| {
                work(segment.as_ref(), tx, owner.as_ref(), inputs)
            })
        }
    }

    /// Reads the value when it is the transaction's turn.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn defer_read<I: Input, R: 'static, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        inputs: I,
        look: impl FnOnce(&T, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        // SAFETY: the caller's promise.
        unsafe {
            self.defer(tx, object, Access::Read, inputs, move |segment, tx, owner, inputs| {
                segment.read(tx, owner, |value| look(value, inputs))
            })
        }
    }

    /// Changes the value when it is the transaction's turn.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn defer_update<I: Input, R: 'static, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        inputs: I,
        change: impl FnOnce(&mut T, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        // SAFETY: the caller's promise.
        unsafe {
            self.defer(tx, object, Access::Write, inputs, move |segment, tx, owner, inputs| {
                segment.update(tx, owner, |value| change(value, inputs))
            })
        }
    }

    /// Replaces the value by `value` when it is the transaction's turn; `value` must be known by then.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn defer_write<I: Input<Value = T>, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        value: I,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise.
        unsafe {
            self.defer(tx, object, Access::Write, value, |segment, tx, owner, value| {
                segment.write(tx, owner, value)
            })?;
        }
        Ok(())
    }

    /// Installs the pending write of a segment, for the object's [`Object::install`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write, and the caller holds the lock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn install(item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise; the payload is consumed here and nowhere else.
        unsafe {
            let segment = Self::from_address(item.segment());
            segment.cell.install(item.payload::<Pending<T>>().read(), pin);
        }
    }

    /// Saves the pending write of a segment, for the object's [`Object::save`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write.
    pub unsafe fn save(item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the caller's promise; a pending write of a segment has a payload of this type.
        saver.value(T::Cell::pending(unsafe { &*item.payload::<Pending<T>>() }))
    }

    /// Gives an item a saved write again, or none, for the object's [`Object::restore`].
    ///
    /// # Safety
    ///
    /// As for [`save`](Self::save).
    pub unsafe fn restore(item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: as for `save`.
        if let Some(pending) = unsafe { item.take_payload::<Pending<T>>() } {
            T::Cell::discard(pending, pin);
        }
        if let Some(saved) = saved {
            // SAFETY: the caller's promise; the payload has been taken out.
            unsafe { item.put_back(saved) };
        }
    }

    /// Discards the pending write of a segment, for the object's [`Object::undo`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write.
    #[inline]
    pub unsafe fn undo(item: &mut Item<P>, pin: &Pin) {
        // SAFETY: as for `install`.
        unsafe { T::Cell::discard(item.payload::<Pending<T>>().read(), pin) };
    }
}
