//! Operations on the parts of split rows: values that may be absent.
//!
//! They are those of any segment, and depend besides on the row's being there: an operation that reads the part by what it reads, and
//! one that does not read it by a predicate, as a replacement of a row does.

use super::{Pending, Segment, tag};
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::SavedWrite;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::{Look, Protocol};
use crate::kit::column_groups::{Part, Words};
use crate::memory::cell::{Cell, Value};
use crate::memory::pin::Pin;
use std::convert::Infallible;
use std::ptr::NonNull;

/// The result of an operation on a part.
#[derive(Debug)]
pub enum Presence<V> {
    /// The row is there.
    Present(V),
    /// The attempt has deleted the row.
    Deleted,
    /// The row is not there. The attempt depends on nothing here: it looks for the key again.
    Absent,
}

impl<V> Presence<V> {
    /// Applies a function to the value.
    #[inline]
    pub fn map<O>(self, f: impl FnOnce(V) -> O) -> Presence<O> {
        let Ok(mapped) = self.try_map(|value| Ok::<_, Infallible>(f(value)));
        mapped
    }

    /// As [`map`](Self::map), with a function that may fail.
    ///
    /// # Errors
    ///
    /// The function's.
    #[inline]
    pub fn try_map<O, E>(self, f: impl FnOnce(V) -> Result<O, E>) -> Result<Presence<O>, E> {
        Ok(match self {
            Self::Present(value) => Presence::Present(f(value)?),
            Self::Deleted => Presence::Deleted,
            Self::Absent => Presence::Absent,
        })
    }

    /// The row's value, without one if the attempt has deleted the row; `None` if it is not there.
    #[inline]
    pub fn unless_absent(self) -> Option<Option<V>> {
        match self {
            Self::Present(value) => Some(Some(value)),
            Self::Deleted => Some(None),
            Self::Absent => None,
        }
    }
}

type CellOf<W> = <Part<W> as Value>::Cell;

impl<W: Words, P: Protocol> Segment<Part<W>, P> {
    /// Reads the part, and announces a write of it, which [`store_part`](Self::store_part) may make.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), here and below.
    pub unsafe fn read_part_for_update<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
    ) -> Result<Presence<(ItemId, Part<W>)>, Abort> {
        // SAFETY: as above.
        unsafe {
            let (id, snapshot) = tx.read_for_update(object, self.address(), || self.cell.load())?;
            match snapshot {
                None => {
                    self.settle_changes(tx, id)?;
                    let part = *CellOf::<W>::pending(tx.payload::<Pending<Part<W>>>(id));
                    Ok(if part.is_present() { Presence::Present((id, part)) } else { Presence::Deleted })
                }
                Some(snapshot) => {
                    let part = *CellOf::<W>::view(&snapshot, tx.pin());
                    if part.is_present() {
                        return Ok(Presence::Present((id, part)));
                    }
                    tx.history_mut().forget_read();
                    Ok(Presence::Absent)
                }
            }
        }
    }

    /// Makes a part the pending write of an item.
    ///
    /// # Safety
    ///
    /// The item comes from [`read_part_for_update`](Self::read_part_for_update) in the same operation.
    pub unsafe fn store_part(tx: &mut ObjectAccess<'_, P>, id: ItemId, part: Part<W>) {
        // SAFETY: the caller's promise: changes were settled, and the write was announced.
        unsafe {
            if tx.has_write(id) {
                *CellOf::<W>::pending_mut(tx.payload::<Pending<Part<W>>>(id)) = part;
            } else {
                tx.set_write(id, CellOf::<W>::pend(part));
            }
        }
    }

    /// Replaces the part without reading it.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn write_part<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        part: Part<W>,
    ) -> Result<Presence<()>, Abort> {
        // SAFETY: as above.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            if pending {
                // The body goes on as it does because of conditions among changes.
                self.settle_changes(tx, id)?;
                let own = CellOf::<W>::pending_mut(tx.payload::<Pending<Part<W>>>(id));
                if !own.is_present() {
                    return Ok(Presence::Deleted);
                }
                *own = part;
            } else if self.is_present(tx, id)? {
                tx.set_write(id, CellOf::<W>::pend(part));
                tx.set_predicate::<()>(id, None);
            } else {
                return Ok(Presence::Absent);
            }
        }
        Ok(Presence::Present(()))
    }

    /// Deletes the part, unless the attempt has done so already.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn delete_part<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
    ) -> Result<Presence<()>, Abort> {
        // SAFETY: as above; read for update just now.
        unsafe {
            Ok(match self.read_part_for_update(tx, object)? {
                Presence::Present((id, mut part)) => {
                    part.set_absent();
                    Self::store_part(tx, id, part);
                    Presence::Present(())
                }
                Presence::Deleted => Presence::Present(()),
                Presence::Absent => Presence::Absent,
            })
        }
    }

    /// Makes the part of a row that the attempt has deleted one that is there again.
    ///
    /// # Safety
    ///
    /// See above. The attempt has a pending write of the part.
    pub unsafe fn insert_part_again<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        part: Part<W>,
    ) -> Result<Presence<()>, Abort> {
        // SAFETY: as above; a part that was deleted has a pending value.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            // INVARIANT 9: An item's payload is used only as its flags and its tag say.
            debug_assert!(pending && tx.tag(id) == tag::VALUE, "deleted before");
            *CellOf::<W>::pending_mut(tx.payload::<Pending<Part<W>>>(id)) = part;
        }
        Ok(Presence::Present(()))
    }

    /// Enters the part of a row that the attempt has made, whose header is [locked](ObjectAccess::new_locked_header).
    ///
    /// # Safety
    ///
    /// As for [`ObjectAccess::enter_inserted`].
    pub unsafe fn enter_part<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        part: Part<W>,
    ) {
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            let id = tx.enter_inserted(object, self.address(), tag::VALUE);
            tx.exchange_payload(id, CellOf::<W>::pend(part));
        }
    }

    /// Gives an item a saved write again, or none, for the object's [`Object::restore`]. The part of a row that the attempt has made
    /// is one of a deleted row then.
    ///
    /// # Safety
    ///
    /// As for [`restore`](Self::restore).
    pub unsafe fn restore_part(item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        if saved.is_none() && item.is(Flags::INSERTED) {
            // SAFETY: the caller's promise; such an item has a pending part.
            let pending = unsafe { &mut *item.payload_mut::<Pending<Part<W>>>() };
            *CellOf::<W>::pending_mut(pending) = Part::ABSENT;
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { Self::restore(item, saved, pin) };
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Makes sure that a segment which the operation has read is unchanged, for a value that is made of several segments: what was read
    /// of others since is of the same moment then. Most protocols learn only at the commit that it is not.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub unsafe fn check_unchanged<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
    ) -> Result<(), Abort> {
        // At its turns an attempt has each other one before it or behind it at all segments.
        if P::OPAQUE || !P::TRACKS_READS || !self.keeps_reads() || self.deferral().is_at_turn() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let id = unsafe { self.item(object, segment) };
        if self.deferral().is_scout() {
            // It does not keep what it has seen.
            return Err(self.conflict(Reason::ReadChanged, id));
        }
        let item = self.attempt.items.get(id);
        if item.is(Flags::WRITE) && !item.is(Flags::READ) {
            // The value that was read is the attempt's own.
            return Ok(());
        }
        if !item.is(Flags::READ)
            && let Some(mark) = self.attempt.reads.last_mark_of(segment.addr().get())
        {
            // The first read was logged.
            let item = self.attempt.items.get_mut(id);
            item.mark = mark;
            item.set(Flags::READ);
        }
        // A second read by the item must find what the first one has found.
        match self.attempt.load(self.protocol, id, Look::Read, || ()) {
            Ok(()) => Ok(()),
            Err(lost) => Err(self.lose(lost)),
        }
    }
}
