//! Pending writes that are kept beside their items, because a part of the body that may be undone alone is about to change them.

use crate::kernel::item::{Flags, Item, Payload};
use crate::kernel::protocol::Protocol;
use crate::memory::arena::Arena;
use crate::memory::cell::{Cell, Value};
use crate::memory::pin::Pin;

/// An item's pending write as it was when a part of the body began, with the item's tag.
///
/// An object makes it in [`Object::save`](crate::Object::save), and gets it back in
/// [`Object::restore`](crate::Object::restore).
#[must_use]
pub struct SavedWrite {
    payload: Option<Payload>,
    discard: unsafe fn(Payload, &Pin),
    flags: u16,
    tag: u16,
}

/// Makes [`SavedWrite`]s in the attempt's memory.
pub struct Saver<'a, P: Protocol> {
    pub(crate) item: &'a Item<P>,
    pub(crate) arena: &'a Arena,
}

impl<P: Protocol> Saver<'_, P> {
    /// Saves a pending write that has no payload.
    pub fn nothing(&self) -> SavedWrite {
        self.saved(None, |_, _| ())
    }

    /// Saves a payload of plain data.
    pub fn plain<T: Copy + 'static>(&self, payload: &T) -> SavedWrite {
        self.saved(Some(Payload::of::<P, T>(*payload, self.arena)), |_, _| ())
    }

    /// Saves a value as a payload that can be installed: a [`Cell::Pending`] of its type.
    pub fn value<T: Value>(&self, value: &T) -> SavedWrite {
        /// # Safety
        ///
        /// The payload holds a pending `T`, which is used nowhere else.
        unsafe fn discard<P: Protocol, T: Value>(payload: Payload, pin: &Pin) {
            // SAFETY: the caller's promise.
            T::Cell::discard(unsafe { payload.address::<P, <T::Cell as Cell<T>>::Pending>().read() }, pin);
        }
        let pending = T::Cell::pend(value.clone());
        self.saved(Some(Payload::of::<P, _>(pending, self.arena)), discard::<P, T>)
    }

    /// Saves a copy of a payload, which may own memory.
    pub fn cloned<T: Clone + Send + 'static>(&self, payload: &T) -> SavedWrite {
        /// # Safety
        ///
        /// The payload holds a `T`, which is used nowhere else.
        unsafe fn discard<P: Protocol, T: Send + 'static>(payload: Payload, pin: &Pin) {
            // SAFETY: the caller's promise.
            pin.drop_later(unsafe { payload.address::<P, T>().read() });
        }
        self.saved(Some(Payload::of::<P, T>(payload.clone(), self.arena)), discard::<P, T>)
    }

    fn saved(&self, payload: Option<Payload>, discard: unsafe fn(Payload, &Pin)) -> SavedWrite {
        SavedWrite { payload, discard, flags: self.item.flags & Flags::CLEANUP.0, tag: self.item.tag }
    }
}

impl SavedWrite {
    /// Drops it.
    pub(crate) fn discard(self, pin: &Pin) {
        if let Some(payload) = self.payload {
            // SAFETY: made together with its function, and consumed here.
            unsafe { (self.discard)(payload, pin) };
        }
    }

    /// Returns the payload.
    ///
    /// # Safety
    ///
    /// It was saved with a payload of this type, under this protocol.
    pub unsafe fn take<P: Protocol, T>(self) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.payload.expect("saved with a payload").address::<P, T>().read() }
    }
}

impl<P: Protocol> Item<P> {
    /// Takes the payload out of the item, which has none afterwards; `None` if it had none.
    ///
    /// # Safety
    ///
    /// The payload, if there is one, is of type `T`.
    #[inline]
    pub unsafe fn take_payload<T>(&mut self) -> Option<T> {
        if !self.has_payload() {
            return None;
        }
        self.unmark(Flags::PAYLOAD);
        // SAFETY: there is a payload, of this type by the caller's promise, and it is not used again.
        Some(unsafe { self.payload::<T>().read() })
    }

    /// Gives the item a saved write again.
    ///
    /// # Safety
    ///
    /// The write was saved of this item, which has no payload now.
    pub unsafe fn put_back(&mut self, saved: SavedWrite) {
        debug_assert!(!self.has_payload(), "the later payload was taken out");
        let SavedWrite { payload, flags, tag, .. } = saved;
        self.unmark(Flags::CLEANUP);
        self.mark_as(Flags(flags));
        self.tag = tag;
        if let Some(payload) = payload {
            self.mark_as(Flags::PAYLOAD);
            self.payload = payload;
        }
    }

    /// Sets the datatype's own mark.
    ///
    /// # Safety
    ///
    /// The item is the caller's object's, and that object's functions can work with this tag and the item's payload.
    pub unsafe fn set_tag(&mut self, tag: u16) {
        self.tag = tag;
    }
}
