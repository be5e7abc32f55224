//! Operations on the parts of split rows: values that may be absent.
//!
//! They are those of any segment, and depend besides on the row's being there: an operation that reads the part by what it reads, and
//! one that does not read it by a predicate, as a replacement of a row does.

use super::{Pending, Segment, tag};
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object::SavedWrite;
use crate::kernel::protocol::{Look, Protocol};
use crate::kernel::transaction::{ObjectAccess, ReadValue};
use crate::kit::column_groups::{Part, Words};
use crate::kit::commit_time::{Addend, Addition, CommitTimeChange, CommitTimeChanges};
use crate::memory::cell::Cell;
use crate::memory::column::Column;
use crate::memory::pin::Pin;
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
    /// The row's value, without one if the attempt has deleted the row; `None` if it is not there.
    pub fn unless_absent(self) -> Option<Option<V>> {
        match self {
            Self::Present(value) => Some(Some(value)),
            Self::Deleted => Some(None),
            Self::Absent => None,
        }
    }
}

impl<W: Words, P: Protocol> Segment<Part<W>, P> {
    /// Reads the part.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), here and below.
    #[inline]
    pub unsafe fn read_part<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        look: impl FnOnce(&Part<W>) -> R,
    ) -> Result<Presence<R>, Abort> {
        if tx.is_on_snapshot() {
            let look = |part: &Part<W>| part.is_present().then(|| look(part));
            // SAFETY: the caller's promise.
            let seen = unsafe { self.read_on_snapshot(tx, object, look) };
            return Ok(seen.map_or(Presence::Absent, Presence::Present));
        }
        // SAFETY: the caller's promise; payloads are as their tags say; the snapshot is stable.
        unsafe {
            match tx.read(object, self.address(), || self.cell.load())? {
                ReadValue::Own(id) if tx.tag(id) == tag::CHANGES && !tx.keeps_reads() => {
                    Ok(Presence::Present(look(&self.read_changed(tx, id, Part::is_present)?)))
                }
                ReadValue::Own(id) => {
                    self.settle_part(tx, id)?;
                    let part = <Part<W> as crate::Value>::Cell::pending(tx.payload::<Pending<Part<W>>>(id));
                    Ok(if part.is_present() { Presence::Present(look(part)) } else { Presence::Deleted })
                }
                ReadValue::Shared(snapshot) => {
                    let part = <Part<W> as crate::Value>::Cell::view(&snapshot, tx.pin());
                    if part.is_present() {
                        return Ok(Presence::Present(look(part)));
                    }
                    tx.forget_read();
                    Ok(Presence::Absent)
                }
            }
        }
    }

    /// Reads the part, and announces a write of it, which [`store_part`](Self::store_part) may make.
    ///
    /// # Safety
    ///
    /// See above.
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
                    self.settle_part(tx, id)?;
                    let part = *<Part<W> as crate::Value>::Cell::pending(tx.payload::<Pending<Part<W>>>(id));
                    Ok(if part.is_present() { Presence::Present((id, part)) } else { Presence::Deleted })
                }
                Some(snapshot) => {
                    let part = *<Part<W> as crate::Value>::Cell::view(&snapshot, tx.pin());
                    if part.is_present() {
                        return Ok(Presence::Present((id, part)));
                    }
                    tx.forget_read();
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
                *<Part<W> as crate::Value>::Cell::pending_mut(tx.payload::<Pending<Part<W>>>(id)) = part;
            } else {
                tx.set_write(id, <Part<W> as crate::Value>::Cell::pend(part));
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
                if tx.tag(id) == tag::CHANGES {
                    // The body goes on as it does because of conditions among them.
                    self.settle_part(tx, id)?;
                }
                let own = <Part<W> as crate::Value>::Cell::pending_mut(tx.payload::<Pending<Part<W>>>(id));
                if !own.is_present() {
                    return Ok(Presence::Deleted);
                }
                *own = part;
            } else if self.is_there(tx, id)? {
                tx.set_write(id, <Part<W> as crate::Value>::Cell::pend(part));
                tx.set_predicate::<()>(id, None);
            } else {
                return Ok(Presence::Absent);
            }
        }
        Ok(Presence::Present(()))
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
    ) -> Result<(), Abort> {
        // SAFETY: as above; a part that was deleted has a pending value.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            debug_assert!(pending && tx.tag(id) == tag::VALUE, "deleted before");
            *<Part<W> as crate::Value>::Cell::pending_mut(tx.payload::<Pending<Part<W>>>(id)) = part;
        }
        Ok(())
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
            tx.exchange_payload(id, <Part<W> as crate::Value>::Cell::pend(part));
        }
    }

    /// Changes the part at the commit, without reading it. The change is taken, unless the row is not there. With
    /// `seems_present` it does not look whether it is: the commit will.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn change_part_at_commit<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        seems_present: bool,
        change: &mut Option<impl CommitTimeChange<Part<W>>>,
    ) -> Result<Presence<()>, Abort> {
        const ONCE: &str = "a change is made once";
        // SAFETY: as above.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            if pending && tx.tag(id) == tag::VALUE {
                let own = <Part<W> as crate::Value>::Cell::pending_mut(tx.payload::<Pending<Part<W>>>(id));
                if !own.is_present() {
                    return Ok(Presence::Deleted);
                }
                let changed = change.take().expect(ONCE).change(own);
                changed.map_err(|OutOfRange| ObjectAccess::overflow(object, self.address()))?;
                return Ok(Presence::Present(()));
            }
            if !pending && !seems_present && !self.is_there(tx, id)? {
                return Ok(Presence::Absent);
            }
            let before = if pending { *tx.payload(id) } else { CommitTimeChanges::NONE };
            match change.take().expect(ONCE).append(before, tx) {
                Ok(changes) => {
                    Self::set_changes(tx, id, pending, changes);
                    tx.set_predicate::<()>(id, None);
                    Ok(Presence::Present(()))
                }
                Err(change) => match self.read_part_for_update(tx, object)? {
                    Presence::Present((id, mut part)) => {
                        let changed = change.change(&mut part);
                        changed.map_err(|OutOfRange| ObjectAccess::overflow(object, self.address()))?;
                        Self::store_part(tx, id, part);
                        Ok(Presence::Present(()))
                    }
                    Presence::Deleted => Ok(Presence::Deleted),
                    Presence::Absent => Ok(Presence::Absent),
                },
            }
        }
    }

    /// Subtracts an amount from a column at the commit, if there is enough, and depends on that alone. `false` if there is not
    /// enough: then the attempt depends on the part.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn subtract_from_part<F: Addend, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        column: Column<Part<W>, F>,
        amount: F,
    ) -> Result<Presence<bool>, Abort> {
        // SAFETY: as above.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            let before = match (pending, tx.tag(id)) {
                (true, tag::VALUE) => None,
                (true, _) => {
                    let changes: CommitTimeChanges<Part<W>> = *tx.payload(id);
                    (!changes.runs_code()).then_some(changes)
                }
                (false, _) => Some(CommitTimeChanges::NONE),
            };
            if let Some(before) = before
                && !tx.is_in_part()
            {
                let load = || self.cell.load();
                let seen = if tx.has_read(id) { tx.read_beside_write(id, load) } else { tx.peek(id, load) }?;
                let mut seen = *<Part<W> as crate::Value>::Cell::view(&seen, tx.pin());
                if !seen.is_present() {
                    return if pending {
                        Err(tx.conflict(Reason::PredicateFailed, id))
                    } else {
                        Ok(Presence::Absent)
                    };
                }
                let base = *column.of_mut(&mut seen);
                if let Some(changes) = before.subtract_if_enough(tx, column, amount, base) {
                    Self::set_changes(tx, id, pending, changes);
                    tx.set_predicate::<()>(id, None);
                    return Ok(Presence::Present(true));
                }
            }
            match self.read_part_for_update(tx, object)? {
                Presence::Present((id, mut part)) => {
                    let is_enough = *column.of_mut(&mut part) >= amount;
                    if is_enough {
                        let changed = Addition::negative(column, amount).change(&mut part);
                        changed.map_err(|OutOfRange| ObjectAccess::overflow(object, self.address()))?;
                        Self::store_part(tx, id, part);
                    }
                    Ok(Presence::Present(is_enough))
                }
                Presence::Deleted => Ok(Presence::Deleted),
                Presence::Absent => Ok(Presence::Absent),
            }
        }
    }

    /// True if the row is there, for an operation that has announced a write of the part and does not read it.
    ///
    /// # Safety
    ///
    /// The item is of this segment.
    unsafe fn is_there(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<bool, Abort> {
        // SAFETY: the caller's promise; the snapshot is stable.
        unsafe {
            let seen = tx.peek(id, || self.cell.load())?;
            Ok(<Part<W> as crate::Value>::Cell::view(&seen, tx.pin()).is_present())
        }
    }

    /// Turns pending changes into a pending part, because an operation needs it.
    ///
    /// # Safety
    ///
    /// The item is of this segment and has a pending write.
    #[inline(always)]
    unsafe fn settle_part(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<(), Abort> {
        if tx.tag(id) == tag::VALUE {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.settle_changes_now(tx, id, Part::is_present) }
    }

    /// True if the row is there, on which an operation depends that has not read the part, and the conditions of pending changes
    /// hold: for the object's [`Object::predicate_holds`].
    ///
    /// # Safety
    ///
    /// The item is for a part of this type and has a predicate.
    pub unsafe fn part_predicate_holds(item: &Item<P>) -> bool {
        // SAFETY: the caller's promise; the tag says what the payload is.
        let (segment, changes) = unsafe {
            let is_changed = item.tag() == tag::CHANGES;
            let changes = is_changed.then(|| *item.payload::<CommitTimeChanges<Part<W>>>());
            (Self::from_address(item.segment()), changes)
        };
        let pin = Pin::new();
        let snapshot = segment.cell.load();
        // SAFETY: a part is words of any bits, of which each condition needs one; and the pin was pinned before.
        unsafe {
            let part = <Part<W> as crate::Value>::Cell::view(&snapshot, &pin);
            part.is_present() && changes.is_none_or(|changes| changes.hold_of(part))
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
            *<Part<W> as crate::Value>::Cell::pending_mut(pending) = Part::ABSENT;
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
        if P::OPAQUE || !P::TRACKS_READS || !self.keeps_reads() || self.is_at_turn() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let id = unsafe { self.item(object, segment) };
        if self.is_scout() {
            // It does not keep what it has seen.
            return Err(self.conflict(Reason::ReadChanged, id));
        }
        let item = self.attempt.items.get(id);
        if item.is(Flags::WRITE) && !item.is(Flags::READ) {
            // The value that was read is the attempt's own.
            return Ok(());
        }
        // A second read must find what the first one has found.
        match self.attempt.load(self.protocol, id, Look::Read, || ()) {
            Ok(()) => Ok(()),
            Err(lost) => Err(self.lose(lost)),
        }
    }
}
