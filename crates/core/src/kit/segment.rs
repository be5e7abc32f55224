//! Segments: the unit of conflict.

use crate::features::snapshot::OnSnapshot;
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::item::{Item, ItemId, TouchedSegment};
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object::WriteKind;
use crate::kernel::object::{SavedWrite, Saver};
use crate::kernel::object_access::{ObjectAccess, ReadValue};
use crate::kernel::protocol::Protocol;
use crate::kit::commit_time::{Addend, Addition, CommitTimeChange, CommitTimeChanges};
use crate::memory::cell::{Cell, Value};
use crate::memory::column::Column;
use crate::memory::pin::Pin;
use crate::memory::versions::{Keeper, Redo};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

mod changes;
mod part;

pub use part::Presence;

/// A value with its protocol's header. Two operations on different segments commute.
///
/// Simple datatypes (a box, an array) are made of segments: a [`SegmentObject`](crate::SegmentObject) holds them, and
/// needs no `unsafe` of the author's. Another object may hold some, too: it calls [`read`](Self::read),
/// [`write`](Self::write) and [`update`](Self::update) in its operations, and passes [`install`](Self::install),
/// [`save`](Self::save) and [`restore`](Self::restore) on.
#[repr(C)]
pub struct Segment<T: Value, P: Protocol> {
    header: P::Header,
    pub(crate) cell: T::Cell,
}

type Pending<T> = <<T as Value>::Cell as Cell<T>>::Pending;

/// The kind of a pending write of a segment; the item's tag.
mod tag {
    /// Replaces the value with the payload.
    pub(super) const VALUE: u16 = 0;
    /// Changes the value at the commit. The payload is a list of changes.
    pub(super) const CHANGES: u16 = 1;
}

impl<T: Value, P: Protocol> Segment<T, P> {
    /// Makes a segment that holds `value`, unlocked, never written.
    pub fn new(value: T) -> Self {
        Self { header: P::Header::default(), cell: T::Cell::new(value) }
    }

    /// Makes a segment with a header, which may be one that is [locked](ObjectAccess::new_locked_header).
    pub(crate) fn with_header(header: P::Header, value: T) -> Self {
        Self { header, cell: T::Cell::new(value) }
    }

    /// The segment's address, as items know it.
    #[inline]
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
    #[inline]
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
    #[inline]
    pub unsafe fn read<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        // SAFETY: the caller's promise.
        match unsafe { self.read_if_present(tx, object, look) }? {
            Presence::Present(output) => Ok(output),
            Presence::Deleted | Presence::Absent => unreachable!("such a segment has a value"),
        }
    }

    /// Loads the value. Is compiled once for all that is done with it.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn load<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
    ) -> Result<ReadValue<<T::Cell as Cell<T>>::Snapshot>, Abort> {
        // SAFETY: the caller's promise.
        unsafe { tx.read(object, self.address(), || self.cell.load()) }
    }

    /// Loads the value for an attempt that [may](ObjectAccess::may_glance) glance at it. `None` if a writer was in the way.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(always)]
    pub(super) unsafe fn glance<O: Object<P> + 'static>(
        &self,
        tx: &ObjectAccess<'_, P>,
        object: &O,
    ) -> Option<<T::Cell as Cell<T>>::Snapshot> {
        // SAFETY: the caller's promise.
        let touched = unsafe { TouchedSegment::new(self.address(), NonNull::from(object)) };
        tx.glance(touched, || self.cell.load())
    }

    /// As [`read`](Self::read), of a value that may be absent.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(always)]
    pub unsafe fn read_if_present<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        look: impl FnOnce(&T) -> R,
    ) -> Result<Presence<R>, Abort> {
        if tx.is_on_snapshot() {
            // SAFETY: the caller's promise.
            return Ok(unsafe { self.read_on_snapshot(tx, object, look) });
        }
        // SAFETY: the caller's promise.
        match unsafe { self.load(tx, object) }? {
            ReadValue::Own(id) => {
                // SAFETY: the caller's promise; a pending value of a segment has a payload of this type (`write`, `update`).
                unsafe {
                    if tx.tag(id) == tag::CHANGES && !tx.keeps_reads() {
                        return Ok(Presence::Present(look(&self.read_changed(tx, id)?)));
                    }
                    self.settle_changes(tx, id)?;
                    let value = T::Cell::pending(tx.payload::<Pending<T>>(id));
                    Ok(if value.says_present() { Presence::Present(look(value)) } else { Presence::Deleted })
                }
            }
            ReadValue::Shared(snapshot) => {
                // SAFETY: the protocol found the snapshot stable, and the attempt has been pinned since before the load.
                let value = unsafe { T::Cell::view(&snapshot, tx.pin()) };
                if value.says_present() {
                    return Ok(Presence::Present(look(value)));
                }
                tx.history_mut().forget_read();
                Ok(Presence::Absent)
            }
        }
    }

    /// Reads the value that the segment had for the transaction's snapshot.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read). The transaction is on a snapshot.
    #[cold]
    pub(super) unsafe fn read_on_snapshot<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        look: impl FnOnce(&T) -> R,
    ) -> Presence<R> {
        let pin = NonNull::from(tx.pin());
        let look = |value: &T| {
            if value.says_present() { Presence::Present(look(value)) } else { Presence::Absent }
        };
        // SAFETY: the caller's promise; cells are kept of this segment (`keep`). The attempt's pin stays where it is. A kept cell
        // is not changed any more, and a segment that has been replaced by nobody was loaded whole.
        unsafe {
            match tx
                .snapshot_mut()
                .read_on_snapshot::<_, T::Cell, _>(object, self.address(), || self.cell.load())
            {
                OnSnapshot::Present(snapshot) => look(T::Cell::view(&snapshot, pin.as_ref())),
                OnSnapshot::Kept(cell) => look(cell.in_place()),
                OnSnapshot::MadeLater => unreachable!("what holds the segment was made with it"),
            }
        }
    }

    /// Looks at the present value, which may be replaced meanwhile.
    #[inline]
    pub(super) fn look_at<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        const {
            // INVARIANT 21: Nobody looks into a value that may be torn.
            assert!(
                T::Cell::NEVER_TORN,
                "an inline value of more than one word may be torn: leave `#[value(inline)]` out"
            );
        }
        if T::Cell::COPIES {
            let mut copy = MaybeUninit::uninit();
            // SAFETY: there is room for the copy, which is whole because the cell is never torn. It is plain data, which needs neither
            // a pin nor a drop.
            return look(T::Cell::pending(unsafe {
                self.cell.load_pending(copy.as_mut_ptr());
                copy.assume_init_ref()
            }));
        }
        let pin = Pin::new();
        let snapshot = self.cell.load();
        // SAFETY: the cell is never torn, and the pin was pinned before the load.
        look(unsafe { T::Cell::view(&snapshot, &pin) })
    }

    /// Writes a value without looking at the old one.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn write<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        value: T,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise; payloads of segments are of this type.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            if pending && tx.tag(id) == tag::CHANGES {
                if tx.payload::<CommitTimeChanges<T>>(id).has_conditions() {
                    self.settle_changes(tx, id)?;
                }
                tx.set_tag(id, tag::VALUE);
                tx.exchange_payload(id, T::Cell::pend(value));
            } else if pending {
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
    #[inline]
    pub unsafe fn update<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        // SAFETY: the caller's promise.
        match unsafe { self.update_if_present(tx, object, change) }? {
            Presence::Present(output) => Ok(output),
            Presence::Deleted | Presence::Absent => unreachable!("such a segment has a value"),
        }
    }

    /// As [`update`](Self::update), of a value that may be absent.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(always)]
    unsafe fn update_if_present<R, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Presence<R>, Abort> {
        // SAFETY: the caller's promise; payloads of segments are of this type; the snapshot is stable.
        unsafe {
            let (id, snapshot) = tx.read_for_update(object, self.address(), || self.cell.load())?;
            let pending = match snapshot {
                None => {
                    self.settle_changes(tx, id)?;
                    tx.payload::<Pending<T>>(id)
                }
                Some(snapshot) => {
                    let value = T::Cell::view(&snapshot, tx.pin());
                    if !value.says_present() {
                        tx.history_mut().forget_read();
                        return Ok(Presence::Absent);
                    }
                    let value = value.clone();
                    tx.set_write(id, T::Cell::pend(value))
                }
            };
            let value = T::Cell::pending_mut(pending);
            Ok(if value.says_present() { Presence::Present(change(value)) } else { Presence::Deleted })
        }
    }

    /// Changes the value at the commit, without reading it.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub unsafe fn change_at_commit<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        change: impl CommitTimeChange<T>,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise.
        unsafe { self.change_at_commit_if_present(tx, object, true, &mut Some(change)).map(drop) }
    }

    /// As [`change_at_commit`](Self::change_at_commit), of a value that may be absent. The change is taken, unless the value is absent.
    /// With `seems_present` it does not look whether it is: the commit will.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn change_at_commit_if_present<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        seems_present: bool,
        change: &mut Option<impl CommitTimeChange<T>>,
    ) -> Result<Presence<()>, Abort> {
        const ONCE: &str = "a change is made once";
        // SAFETY: the caller's promise; payloads of segments are as their tags say.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            if pending && tx.tag(id) == tag::VALUE {
                let own = T::Cell::pending_mut(tx.payload::<Pending<T>>(id));
                if !own.says_present() {
                    return Ok(Presence::Deleted);
                }
                let changed = change.take().expect(ONCE).change(own);
                changed.map_err(|OutOfRange| ObjectAccess::overflow(object, self.address()))?;
                return Ok(Presence::Present(()));
            }
            if T::MAY_BE_ABSENT && !pending && !seems_present && !self.is_present(tx, id)? {
                return Ok(Presence::Absent);
            }
            let before = if pending { *tx.payload(id) } else { CommitTimeChanges::NONE };
            match change.take().expect(ONCE).append(before, tx) {
                Ok(changes) => {
                    Self::set_changes(tx, id, pending, changes);
                    Ok(Presence::Present(()))
                }
                Err(change) => {
                    let changed = self.update_if_present(tx, object, |value| change.change(value))?;
                    changed.try_map(|changed| {
                        changed.map_err(|OutOfRange| ObjectAccess::overflow(object, self.address()))
                    })
                }
            }
        }
    }

    /// True if the value is there, for an operation that has announced a write of it and does not read it.
    ///
    /// # Safety
    ///
    /// The item is of this segment.
    unsafe fn is_present(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<bool, Abort> {
        // SAFETY: the caller's promise; the snapshot is stable.
        unsafe {
            let seen = tx.peek(id, || self.cell.load())?;
            Ok(T::Cell::view(&seen, tx.pin()).says_present())
        }
    }

    /// Gives an item pending changes.
    ///
    /// # Safety
    ///
    /// The item is of this segment, and its write was announced. `pending`: it has pending changes.
    unsafe fn set_changes(
        tx: &mut ObjectAccess<'_, P>,
        id: ItemId,
        pending: bool,
        changes: CommitTimeChanges<T>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if pending {
                *tx.payload(id) = changes;
            } else {
                tx.set_tag(id, tag::CHANGES);
                tx.set_write(id, changes);
            }
            if T::MAY_BE_ABSENT || changes.has_conditions() {
                tx.set_predicate::<()>(id, None);
            }
        }
    }

    /// Subtracts an amount at the commit, if there is enough, and depends on that alone. False if there is not: then the
    /// attempt depends on the value.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub unsafe fn subtract_if_enough<O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        amount: T,
    ) -> Result<bool, Abort>
    where
        T: Addend,
    {
        // SAFETY: the caller's promise; a snapshot of one word is never torn.
        unsafe {
            if let Presence::Present(true) = self.subtract_at_commit(tx, object, Column::whole(), amount)? {
                return Ok(true);
            }
            let is_enough = self.read(tx, object, |value| *value >= amount)?;
            if is_enough {
                self.change_at_commit(tx, object, Addition::negative(Column::whole(), amount))?;
            }
            Ok(is_enough)
        }
    }

    /// Subtracts an amount from a column at the commit, if there is enough, and depends on that alone. False if there is not, or the
    /// attempt cannot know it so: then the caller looks at the value, so that the attempt depends on that.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub unsafe fn subtract_at_commit<F: Addend, O: Object<P> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        object: &O,
        column: Column<T, F>,
        amount: F,
    ) -> Result<Presence<bool>, Abort> {
        // SAFETY: the caller's promise; payloads of segments are as their tags say.
        unsafe {
            let (id, pending) = tx.write(object, self.address())?;
            let before = match (pending, tx.tag(id)) {
                (true, tag::VALUE) => None,
                (true, _) => {
                    Some(*tx.payload::<CommitTimeChanges<T>>(id)).filter(|changes| !changes.runs_code())
                }
                (false, _) => Some(CommitTimeChanges::NONE),
            };
            let Some(before) = before.filter(|_| !tx.is_in_part()) else {
                return Ok(Presence::Present(false));
            };
            let load = || self.cell.load();
            let seen = if tx.has_read(id) { tx.read_beside_write(id, load) } else { tx.peek(id, load) }?;
            let mut seen = T::Cell::view(&seen, tx.pin()).clone();
            if !seen.says_present() {
                return if pending {
                    Err(tx.conflict(Reason::PredicateFailed, id))
                } else {
                    Ok(Presence::Absent)
                };
            }
            let base = *column.of_mut(&mut seen);
            let changes = before.subtract_if_enough(tx, column, amount, base);
            if let Some(changes) = changes {
                Self::set_changes(tx, id, pending, changes);
            }
            Ok(Presence::Present(changes.is_some()))
        }
    }

    /// Turns pending changes into a pending value, because an operation needs it. Nothing happens if the item has a pending
    /// value.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read). The item is of this segment and has a pending write.
    #[inline(always)]
    unsafe fn settle_changes(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<(), Abort> {
        if tx.tag(id) == tag::VALUE {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.settle_changes_now(tx, id) }
    }

    /// # Safety
    ///
    /// As for [`settle_changes`](Self::settle_changes). The item has pending changes.
    #[cold]
    #[inline(never)]
    unsafe fn settle_changes_now(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<(), Abort> {
        // INVARIANT 17: No write follows from a read that is not kept.
        debug_assert!(tx.keeps_reads(), "a write must not follow from a read that is not kept");
        // SAFETY: the caller's promise; the tag says what the payload is, then and now.
        unsafe {
            let value = self.read_changed(tx, id)?;
            tx.save(id);
            tx.set_tag(id, tag::VALUE);
            tx.exchange_payload(id, T::Cell::pend(value));
        }
        Ok(())
    }

    /// Reads the value, and makes the item's pending changes to a copy of it.
    ///
    /// # Safety
    ///
    /// As for [`settle_changes_now`](Self::settle_changes_now).
    #[cold]
    unsafe fn read_changed(&self, tx: &mut ObjectAccess<'_, P>, id: ItemId) -> Result<T, Abort> {
        // SAFETY: the caller's promise; the snapshot is stable; the tag says what the payload is.
        unsafe {
            let snapshot = tx.read_beside_write(id, || self.cell.load())?;
            let changes = *tx.payload::<CommitTimeChanges<T>>(id);
            let mut value = T::Cell::view(&snapshot, tx.pin()).clone();
            if !(value.says_present() && changes.hold_of(&value)) {
                return Err(tx.conflict(Reason::PredicateFailed, id));
            }
            changes.apply(&mut value).map_err(|OutOfRange| tx.overflow_of(id))?;
            Ok(value)
        }
    }

    /// Installs the pending write of a segment, for the object's [`Object::install`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write, and the caller holds the lock.
    #[inline]
    pub unsafe fn install(item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise; the payload is consumed here and nowhere else.
        unsafe {
            let segment = Self::from_address(item.segment());
            if item.tag() == tag::VALUE {
                let pending = item.payload::<Pending<T>>().read();
                item.install_in(&segment.cell, pending, pin);
            } else {
                let changes = *item.payload::<CommitTimeChanges<T>>();
                changes.install_in(item, &segment.cell, pin);
            }
        }
    }

    /// Makes what is to be made once of the pending changes, for the object's [`Object::settle`].
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write, and the caller holds the lock.
    pub unsafe fn settle(id: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        if tx.tag(id) == tag::VALUE {
            return Ok(());
        }
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            let segment = Self::from_address(tx.segment_of(id));
            CommitTimeChanges::<T>::settle_in(id, &segment.cell, tx)
        }
    }

    /// True if the pending changes can be made to the present value, for the object's [`Object::changes_fit`].
    ///
    /// # Safety
    ///
    /// As for [`Object::changes_fit`].
    pub unsafe fn changes_fit(item: &Item<P>) -> bool {
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            item.tag() == tag::VALUE
                || (*item.payload::<CommitTimeChanges<T>>()).fit_in(&Self::from_address(item.segment()).cell)
        }
    }

    /// The value that the pending write will replace, for the object's [`Object::log`].
    ///
    /// # Safety
    ///
    /// Nothing is installed while the reference lives: the caller holds the segment's lock.
    pub unsafe fn in_place(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { self.cell.in_place() }
    }

    /// The value that the pending write will install, for the object's [`Object::log`].
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install). Changes are [settled](Self::settle).
    pub unsafe fn pending_value(item: &Item<P>, pin: &Pin) -> T {
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            if item.tag() == tag::VALUE {
                return T::Cell::pending(&*item.payload::<Pending<T>>()).clone();
            }
            let cell = &Self::from_address(item.segment()).cell;
            (*item.payload::<CommitTimeChanges<T>>()).look_in(cell, pin, T::clone)
        }
    }

    /// True if the pending write may be installed in a [region](crate::features::region), for the object's [`Object::installs_in_regions`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write.
    pub unsafe fn installs_in_regions(item: &Item<P>) -> bool {
        // SAFETY: the caller's promise; the tag says what the payload is.
        item.tag() == tag::VALUE || !unsafe { *item.payload::<CommitTimeChanges<T>>() }.need_copy()
    }

    /// Keeps the value for snapshots, for the object's [`Object::keep`].
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install).
    pub unsafe fn keep(item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: the caller's promise; `install` installs by `install_in`.
        unsafe { keeper.keep_cell::<T, _>(&Self::from_address(item.segment()).cell, |cell| cell) };
    }

    /// The effect of a pending write, for the object's [`Object::effect`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write.
    pub unsafe fn effect(item: &Item<P>) -> WriteKind {
        if item.tag() == tag::VALUE {
            return WriteKind::Update;
        }
        // SAFETY: the caller's promise; the tag says what the payload is.
        let changes = unsafe { *item.payload::<CommitTimeChanges<T>>() };
        if changes.has_conditions() { WriteKind::Update } else { WriteKind::Commute }
    }

    /// Makes the pending changes to a kept value, for the object's [`Object::redo`].
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install); the item has pending changes.
    pub unsafe fn redo(item: &Item<P>, redo: Redo<'_>) {
        if item.tag() == tag::VALUE {
            return;
        }
        // SAFETY: the caller's promise; `keep` keeps cells, in which nothing is installed any more.
        unsafe {
            let kept = redo.version::<T::Cell>();
            (*item.payload::<CommitTimeChanges<T>>()).redo_in(kept, redo, |cell| cell);
        }
    }

    /// True if the value is there, and the conditions of an item's pending changes hold of it, for the object's
    /// [`Object::predicate_holds`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a predicate.
    pub unsafe fn predicate_holds(item: &Item<P>) -> bool {
        let is_changed = item.tag() == tag::CHANGES;
        // Conditions of changes that have become a value, or were undone, hold: their segment was read.
        if !T::MAY_BE_ABSENT && !is_changed {
            return true;
        }
        // SAFETY: the caller's promise; the tag says what the payload is. The value of a segment with conditions is one number,
        // which is never torn, or a part, of whose words each condition needs one; and the pin was pinned before.
        unsafe {
            let pin = Pin::new();
            let snapshot = Self::from_address(item.segment()).cell.load();
            let value = T::Cell::view(&snapshot, &pin);
            value.says_present() && (!is_changed || (*item.payload::<CommitTimeChanges<T>>()).hold_of(value))
        }
    }

    /// Saves the pending write of a segment, for the object's [`Object::save`].
    ///
    /// # Safety
    ///
    /// The item is for a segment of this type and has a pending write.
    pub unsafe fn save(item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the caller's promise; the tag says what the payload is.
        unsafe {
            match item.tag() {
                tag::VALUE => saver.value(T::Cell::pending(&*item.payload::<Pending<T>>())),
                _ => saver.plain(&*item.payload::<CommitTimeChanges<T>>()),
            }
        }
    }

    /// Gives an item a saved write again, or none, for the object's [`Object::restore`].
    ///
    /// # Safety
    ///
    /// As for [`save`](Self::save).
    pub unsafe fn restore(item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: as for `save`.
        unsafe {
            if item.tag() == tag::CHANGES {
                let _ = item.take_payload::<CommitTimeChanges<T>>();
            } else if let Some(pending) = item.take_payload::<Pending<T>>() {
                T::Cell::discard(pending, pin);
            }
        }
        if let Some(saved) = saved {
            // SAFETY: the caller's promise; the payload has been taken out.
            unsafe { item.put_back(saved) };
        }
    }
}
