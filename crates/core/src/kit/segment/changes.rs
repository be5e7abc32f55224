//! Changes at the commit of a value in a cell: what segments, and datatypes with segments of their own, do with a list of them.
//!
//! Everywhere the changes were made for values of the cell's type, by the attempt in progress.

use crate::kernel::item::{Item, ItemId};
use crate::kernel::object::OutOfRange;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kit::commit_time::{CommitTimeChanges, Needed};
use crate::memory::cell::{Cell, Value};
use crate::memory::pin::Pin;
use crate::memory::users_code::contained;
use crate::memory::versions::Redo;
use std::mem::MaybeUninit;

impl<T: Value> CommitTimeChanges<T> {
    /// Loads the bits of a column.
    ///
    /// # Safety
    ///
    /// It is a column of values of this type.
    unsafe fn bits_in(cell: &T::Cell, needed: &Needed) -> u64 {
        let mut value = MaybeUninit::uninit();
        // SAFETY: there is room for a snapshot, of which the column's bytes are loaded, in one word.
        unsafe {
            cell.load_bytes(needed.bytes(), value.as_mut_ptr());
            needed.bits(T::Cell::value_in(value.as_ptr()))
        }
    }

    /// As [`fit`](Self::fit), to the value in a cell.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn fit_in(self, cell: &T::Cell) -> bool {
        // SAFETY: the caller's promise.
        self.fit(|needed| unsafe { Self::bits_in(cell, &needed) })
    }

    /// As [`hold`](Self::hold), of the value in a cell.
    ///
    /// # Safety
    ///
    /// See above.
    pub unsafe fn hold_in(self, cell: &T::Cell) -> bool {
        // SAFETY: the caller's promise.
        self.hold(|needed| unsafe { Self::bits_in(cell, &needed) })
    }

    /// Makes what is to be made once of an item's changes, at the commit: see [`settled`](Self::settled).
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    ///
    /// # Safety
    ///
    /// See above. The item has such changes as its pending write, and the caller holds the lock of its segment, whose cell it is.
    pub unsafe fn settle_in<P: Protocol>(
        id: ItemId,
        cell: &T::Cell,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<(), OutOfRange> {
        // SAFETY: the caller's promise; nothing is installed meanwhile.
        unsafe {
            let changes = *tx.payload::<Self>(id);
            if changes.need_copy() {
                let snapshot = cell.load();
                let settled = changes.settled(|pin| T::Cell::view(&snapshot, pin).clone(), tx)?;
                *tx.payload(id) = settled;
                return Ok(());
            }
            if changes.fit_in(cell) { Ok(()) } else { Err(OutOfRange) }
        }
    }

    /// Installs the changed value. The changes are [settled](Self::settle_in).
    ///
    /// # Safety
    ///
    /// See above. The caller holds the lock of the item's segment, whose cell it is.
    pub unsafe fn install_in<P: Protocol>(self, item: &mut Item<P>, cell: &T::Cell, pin: &Pin) {
        // SAFETY: the result is taken here and nowhere else.
        if let Some(result) = unsafe { self.take_result() } {
            // SAFETY: the caller's promise.
            return unsafe { item.install_in(cell, T::Cell::pend(result), pin) };
        }
        assert!(const { T::Cell::COPIES }, "a change that needs a copy of the value has one");
        let mut pending = MaybeUninit::uninit();
        // SAFETY: such values can be copied so; nothing is installed meanwhile, so that the copy is whole.
        unsafe {
            cell.load_pending(pending.as_mut_ptr());
            let mut pending = pending.assume_init();
            self.add_all(T::Cell::pending_mut(&mut pending));
            item.install_in(cell, pending, pin);
        }
    }

    /// Looks at the value that [`install_in`](Self::install_in) will install.
    ///
    /// # Safety
    ///
    /// As for [`install_in`](Self::install_in). The pin was pinned before.
    pub unsafe fn look_in<O>(self, cell: &T::Cell, pin: &Pin, look: impl FnOnce(&T) -> O) -> O {
        // SAFETY: the caller's promise; nothing is installed meanwhile, so that the copy is whole.
        unsafe {
            if let Some(result) = self.result() {
                return look(result);
            }
            let mut value = T::Cell::view(&cell.load(), pin).clone();
            self.add_all(&mut value);
            look(&value)
        }
    }

    /// Makes the changes to a value that is kept for snapshots. `version` makes the version with the changed one.
    ///
    /// # Safety
    ///
    /// See above. Versions of the segment are of type `V`, and nothing is installed in a kept cell.
    pub unsafe fn redo_in<V: Send + 'static>(
        self,
        kept: &T::Cell,
        redo: Redo<'_>,
        version: impl FnOnce(T::Cell) -> V,
    ) {
        // Another value than the one that was installed. If users' code panics, it stays as it is.
        // SAFETY: the caller's promise.
        let changed = contained(|| unsafe { self.applied(|| kept.in_place().clone(), redo.pin()) });
        if let Some(Ok(changed)) = changed {
            let heap_bytes = contained(|| changed.heap_bytes()).unwrap_or_default();
            redo.keep(version(T::Cell::new(changed)), heap_bytes);
        }
    }
}
