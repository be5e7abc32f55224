//! The operations on rows.

use crate::errors::MissingRow;
use crate::index::{Direction, Keyed, Lookup};
use crate::key::{AsKey, Image, Key};
use crate::misuse::TableMisuse;
use crate::record::{Pending, Record, State};
use crate::split::MAIN;
use crate::storage::{Shared, tag};
use hotrow_core::{
    Abort, Cell, CommitTimeChanges, Fields, ItemId, ObjectAccess, Observed, Presence, Protocol, ReadValue,
    StructureChange, Transaction, Value, Whole,
};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::ptr::NonNull;

/// Message of a panic that cannot happen.
pub(crate) const ONCE: &str = "an operation that finds no row has not used its closure";

/// A record as an attempt sees it.
pub(crate) enum RecordView<R> {
    /// The attempt's own pending write, or a record that it made.
    Own(ItemId),
    /// A present row with the attempt's own pending changes, for a read that is not kept.
    Changed(R),
    /// A present row, of which was loaded what was to be.
    Present,
    /// A record that another attempt deleted, or that was inserted by an attempt that will not commit.
    Dead,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Reads whether there is a row in a record, and nothing of it.
    pub(crate) fn read_presence(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<RecordView<R>, Abort> {
        self.read_record(tx, record, Record::state)
    }

    /// Reads of a record what `load` loads, and its state.
    #[inline]
    fn read_record(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        mut load: impl FnMut(&Record<K, R, P>) -> State,
    ) -> Result<RecordView<R>, Abort> {
        let mut state = State::Dead;
        // SAFETY: found in the index under the attempt's pinned epoch, so it is in memory until the attempt
        // ends, and it is this table's; `tx` is of this table's operation.
        let found = unsafe { tx.read(self, Record::address(record), || state = load(record.as_ref())) }?;
        Ok(match found {
            ReadValue::Own(id) => self.own_row(tx, record, id)?,
            ReadValue::Shared(()) if state == State::Present => RecordView::Present,
            ReadValue::Shared(()) => {
                // The key may have a new record by now. The attempt depends only on the absence that its next lookup,
                // or its scan, observes.
                tx.history_mut().forget_read();
                RecordView::Dead
            }
        })
    }

    /// Reads fields of the row in a record, which are at their places behind the pointer that `look` gets.
    #[inline(always)]
    pub(crate) fn read_main<O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        fields: impl Fields<R>,
        look: impl FnOnce(*const R) -> O,
    ) -> Result<Presence<O>, Abort> {
        let mut room = MaybeUninit::uninit();
        Ok(match self.load_main(tx, record, fields, &mut room)? {
            // SAFETY: stable and present, loaded while the attempt was pinned.
            RecordView::Present => Presence::Present(look(unsafe { R::Cell::value_in(room.as_ptr()) })),
            RecordView::Changed(row) => Presence::Present(look(&row)),
            RecordView::Own(id) => match self.own(tx, record, id) {
                Some(row) => Presence::Present(look(row)),
                None => Presence::Deleted,
            },
            RecordView::Dead => Presence::Absent,
        })
    }

    /// Reads fields of the row in a record, to their places in a snapshot of it. Is compiled once for all that is done with them.
    #[inline]
    fn load_main(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        fields: impl Fields<R>,
        room: &mut MaybeUninit<<R::Cell as Cell<R>>::Snapshot>,
    ) -> Result<RecordView<R>, Abort> {
        // SAFETY: there is room for a snapshot.
        self.read_record(tx, record, |record| unsafe { record.load_fields(fields, room.as_mut_ptr()) })
    }

    /// Removes a dead or withdrawn record from the index, for the attempt that deleted or made it and has not removed it yet.
    #[cold]
    pub(crate) fn unlink_dead(&self, tx: &mut ObjectAccess<'_, P>, record: NonNull<Record<K, R, P>>) {
        let mut changes = Changes::default();
        self.remove_dead(record, tx.pin(), &mut |change| changes.add(change));
        // The removal changes nothing that a transaction can see, so an attempt that observed the node before may go
        // on.
        // SAFETY: the nodes are this table's; `tx` is of this table's operation.
        changes.visit(&mut |change| unsafe { tx.follow(self, change) });
    }

    /// Finds the record of a key in the index, which may be dead; `None` after the key's absence was observed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn find(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        loop {
            match self.index.get(key, tx.pin()) {
                Lookup::Found(record) => return Ok(Some(record)),
                Lookup::Absent(observed) if tx.history().is_recorded() => {
                    return self.find_recorded(tx, key, observed);
                }
                Lookup::Absent(observed) => {
                    // SAFETY: the node is this table's; `tx` is of this table's operation.
                    if unsafe { tx.observe(self, observed) }? {
                        self.keep_absence(tx, observed, key);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Makes the attempt's last observation, which was of a failed lookup, one of this key only.
    #[inline]
    fn keep_absence(&self, tx: &mut ObjectAccess<'_, P>, observed: Observed, key: &(impl AsKey<K> + ?Sized)) {
        if self.index.is_ordered() {
            let bounds = (Bound::Included(key.to_image()), Bound::Included(key.to_image()));
            self.index.keep_part(tx, observed, bounds, Direction::Ascending, &[]);
        }
    }

    /// Locks the bucket or leaf of a record that is to be removed, if the protocol locks ranges.
    #[inline]
    fn lock_to_remove(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        if tx.structure().locks_ranges() {
            loop {
                // SAFETY: found in the index under the attempt's pinned epoch.
                let node = self.index.node_of(unsafe { record.as_ref() }.key(), tx.pin());
                if tx.structure().may_change(self, node) {
                    break;
                }
                // SAFETY: the node is this table's; `tx` is of this table's operation.
                unsafe { tx.structure_mut().lock_to_change(self, node) }?;
            }
        }
        Ok(())
    }

    /// A failed lookup of an attempt that is recorded. It must know the version of the absence, so it looks again as
    /// long as the version changes.
    #[cold]
    fn find_recorded(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        mut observed: Observed,
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        loop {
            let name = |bytes: &mut Vec<u8>| K::Image::put_bytes(&key.to_image(), bytes);
            // SAFETY: the node is this table's; `tx` is of this table's operation.
            if unsafe { tx.history_mut().observe_absence(self, observed, &key, &name) }? {
                self.keep_absence(tx, observed, key);
                return Ok(None);
            }
            match self.index.get(key, tx.pin()) {
                Lookup::Found(record) => return Ok(Some(record)),
                Lookup::Absent(again) => observed = again,
            }
        }
    }

    /// The row of the attempt's own pending write; `None` if that is a delete.
    #[inline]
    pub(crate) fn own<'t>(
        &self,
        tx: &'t mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Option<&'t R> {
        // INVARIANT 9: An item's payload is used only as its flags and its tag say.
        debug_assert!(tx.tag(id) != tag::CHANGES, "settled before");
        match tx.tag(id) {
            // SAFETY: an update has a payload of this type.
            tag::UPDATE => Some(R::Cell::pending(unsafe { tx.payload::<Pending<R>>(id) })),
            // SAFETY: the attempt holds the lock of a record that it made, so nothing is installed but by the attempt, and the
            // record is in memory until that ends.
            tag::INSERTED => Some(unsafe { record.as_ref().row() }),
            _ => None,
        }
    }

    /// Reads fields of a row; `None` if there is none with this key.
    #[inline]
    pub(crate) fn read<F: Fields<R>, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        let tx = tx.enter(&self.meta)?;
        if self.immutable {
            return Ok(self.read_immutable(tx, key, fields, look));
        }
        if tx.is_on_snapshot() {
            return Ok(self.read_on_snapshot(tx, key, fields, look));
        }
        tx.deferral_mut().settle_object(&self.meta)?;
        let (segments, mut look) = (self.segments_of(fields), Some(look));
        self.on_row(tx, key, segments, |tx, record| {
            let look_once = |values: &F::Values| look.take().expect(ONCE)(values);
            self.read_at(tx, record, segments, fields, look_once)
        })
    }

    /// Does something to segments of the row of a key, of which it gets the record; `None` if there is no such row. Where they are found
    /// absent, the key may have another record.
    #[inline(always)]
    pub(crate) fn on_row<V>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        segments: u32,
        mut operate: impl FnMut(&mut ObjectAccess<'_, P>, NonNull<Record<K, R, P>>) -> Result<Presence<V>, Abort>,
    ) -> Result<Option<V>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            match operate(tx, record)? {
                Presence::Present(value) => return Ok(Some(value)),
                Presence::Deleted => return Ok(None),
                Presence::Absent => self.leave_dead(tx, record, segments)?,
            }
        }
    }

    /// Reads fields of the row of a record, which are in these segments.
    #[inline(always)]
    pub(crate) fn read_at<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Result<Presence<O>, Abort> {
        if const { Self::HAS_GROUPS } && segments != MAIN {
            return self.read_segments(tx, record, segments, fields, look);
        }
        // SAFETY: the fields were loaded, or all of the row.
        self.read_main(tx, record, fields, |row| unsafe { fields.look(row, look) })
    }

    #[inline]
    fn read_immutable<F: Fields<R>, O>(
        &self,
        tx: &ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Option<O> {
        match self.index.get(key, tx.pin()) {
            // SAFETY: rows of an immutable table are never installed again; the record lives as long as the table.
            Lookup::Found(record) => Some(unsafe { fields.look(record.as_ref().row(), look) }),
            Lookup::Absent(_) => None,
        }
    }

    /// Begins to change a row and its entries in indexes or its group, if the table has such.
    #[inline]
    pub(crate) fn begin_joint_changes(&self, tx: &mut ObjectAccess<'_, P>) -> Option<bool> {
        (!self.companions.indexes.is_empty() || self.companions.queues.is_some())
            .then(|| tx.begin_joint_changes())
    }

    #[inline]
    pub(crate) fn enter_to_write<'t, 'w>(
        &self,
        tx: &'t mut Transaction<'w, P>,
    ) -> Result<&'t mut ObjectAccess<'w, P>, Abort> {
        let tx = self.enter_to_change(tx)?;
        tx.deferral_mut().settle_object(&self.meta)?;
        Ok(tx)
    }

    /// Enters for a change that runs now or is deferred.
    #[inline]
    pub(crate) fn enter_to_change<'t, 'w>(
        &self,
        tx: &'t mut Transaction<'w, P>,
    ) -> Result<&'t mut ObjectAccess<'w, P>, Abort> {
        let tx = tx.enter(&self.meta)?;
        tx.may_write(&self.meta)?;
        if self.guards_changes {
            self.enter_guarded(tx)?;
        }
        Ok(tx)
    }

    #[inline(never)]
    fn enter_guarded(&self, tx: &mut ObjectAccess<'_, P>) -> Result<(), Abort> {
        if self.immutable {
            return Err(tx.misuse(TableMisuse::ImmutableTable { table: self.meta.name().to_owned() }.into()));
        }
        tx.want_check();
        Ok(())
    }

    /// The error of an operation that needs the row of a key.
    #[cold]
    #[inline(never)]
    pub(crate) fn missing(&self, key: &(impl AsKey<K> + ?Sized)) -> Abort {
        MissingRow { table: self.meta.name().to_owned(), key: format!("{key:?}") }.into()
    }

    /// Replaces a row without reading it. True if there was one with this key.
    ///
    /// The transaction depends only on the predicate that the row exists, which holds for every value of a present
    /// record. So other writers of the row are no conflict, but its deletion is one.
    ///
    /// It is compiled into its callers in optimized builds, so that a large row is moved less.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        if !self.companions.indexes.is_empty() {
            // Only the old row tells which entries must move.
            return self.replace_read(tx, key, row);
        }
        let tx = self.enter_to_write(tx)?;
        let Some((record, id, is_own)) = self.find_to_replace(tx, key)? else { return Ok(false) };
        let whole = self.split().is_some().then(|| row.clone());
        if !is_own {
            // SAFETY: announced just now, and the tag says what the payload is; the predicate of a record needs none of its own.
            unsafe {
                tx.set_tag(id, tag::UPDATE);
                tx.set_write(id, R::Cell::pend(row));
                tx.set_predicate::<()>(id, None);
            }
            if tx.history().is_recorded() && self.index.is_ordered() {
                tx.history_mut().record_intent(id);
            }
        } else if !self.replace_own(tx, record, id, row)? {
            return Ok(false);
        }
        if let Some(row) = whole {
            self.each_part(tx, record, |tx, split, part, group| {
                // SAFETY: as `each_part` says.
                unsafe { part.write_part(tx, split, Record::<K, R, P>::part_of(&row, group)) }
            })?;
        }
        Ok(true)
    }

    /// Replaces a row, which it reads.
    #[cold]
    fn replace_read(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        Ok(self.update(tx, key, Whole, |old| *old = row)?.is_some())
    }

    /// Finds a row that is going to be replaced, and announces the write; `None` if there is none with this key. The flag is true if the
    /// attempt has a pending write of it.
    #[inline(never)]
    fn find_to_replace(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<(NonNull<Record<K, R, P>>, ItemId, bool)>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            // SAFETY: as in `read_record`.
            let (id, is_own) = unsafe { tx.write(self, Record::address(record)) }?;
            if is_own || self.is_present(tx, record, id)? {
                return Ok(Some((record, id, is_own)));
            }
            self.unlink_dead(tx, record);
        }
    }

    /// True if a record is present at this moment, for an operation that has its presence checked at the commit. A look
    /// that waits for nobody: where many change a row, it is mostly locked. Never under a protocol whose attempts see one
    /// consistent state.
    #[inline(always)]
    pub(crate) fn seems_present(&self, tx: &ObjectAccess<'_, P>, record: NonNull<Record<K, R, P>>) -> bool {
        // SAFETY: found in the index under the attempt's pinned epoch.
        !self.is_opaque && !tx.is_watching() && unsafe { record.as_ref() }.state() == State::Present
    }

    /// True if a record, a write of which was announced, is present.
    ///
    /// Called after the announcement: a protocol that locks writes then holds the lock already.
    pub(crate) fn is_present(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<bool, Abort> {
        // SAFETY: the state looked at is the item's record's.
        Ok(unsafe { tx.peek(id, || record.as_ref().state()) }? == State::Present)
    }

    /// Replaces a row that has a pending write of this attempt. False if that is a delete.
    fn replace_own(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
        row: R,
    ) -> Result<bool, Abort> {
        if tx.tag(id) == tag::CHANGES
            // SAFETY: the tag says what the payload is.
            && unsafe { tx.payload::<CommitTimeChanges<R>>(id) }.has_conditions()
        {
            // The body goes on as it does because of them.
            self.settle_changes(tx, record, id)?;
        }
        match tx.tag(id) {
            // SAFETY: an update has a payload of this type.
            tag::UPDATE => *R::Cell::pending_mut(unsafe { tx.payload::<Pending<R>>(id) }) = row,
            // SAFETY: this attempt made the record, which is in memory until it ends. It holds the lock.
            tag::INSERTED => unsafe { record.as_ref().install(R::Cell::pend(row), tx.pin()) },
            // The row that they would change is replaced.
            // SAFETY: the tag says what the payload is.
            tag::CHANGES => unsafe {
                tx.set_tag(id, tag::UPDATE);
                tx.exchange_payload(id, R::Cell::pend(row));
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Deletes a row. True if there was one with this key.
    pub(crate) fn delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<bool, Abort> {
        let tx = self.enter_to_write(tx)?;
        let deleted = self.on_row(tx, key, MAIN, |tx, record| {
            self.delete_at(tx, record)?.try_map(|()| {
                // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends.
                self.leave_queue(tx, unsafe { record.as_ref() }.key())
            })
        })?;
        Ok(deleted.is_some())
    }

    /// Deletes the row of a record.
    pub(crate) fn delete_at(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<Presence<()>, Abort> {
        self.delete_main_at(tx, record)?.try_map(|()| {
            // At a turn, the deletions of the parts are operations of their own.
            if tx.deferral().is_at_turn() {
                return Ok(());
            }
            // SAFETY: as `each_part` says.
            self.each_part(tx, record, |tx, split, part, _| unsafe { part.delete_part(tx, split) })
        })
    }

    /// As [`delete_at`](Self::delete_at), without the row's parts.
    fn delete_main_at(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<Presence<()>, Abort> {
        // Lock the range before the row. A scanner of the range may be waiting for the row, and must not wait for
        // this attempt.
        self.lock_to_remove(tx, record)?;
        // SAFETY: as in `read_record`.
        let (id, snapshot) = unsafe {
            let load = || record.as_ref().load();
            tx.read_for_update(self, Record::address(record), load)?
        };
        let keep = !self.companions.indexes.is_empty();
        let around = self.begin_joint_changes(tx);
        let row = match snapshot {
            None => {
                if tx.tag(id) == tag::CHANGES {
                    self.settle_changes(tx, record, id)?;
                }
                let Some(row) = self.own(tx, record, id).map(|row| keep.then(|| row.clone())) else {
                    end_joint_changes(tx, around);
                    return Ok(Presence::Deleted);
                };
                let inserted = tx.tag(id) == tag::INSERTED;
                // SAFETY: the item is this table's. A deletion has a payload or none, of the rows' type.
                unsafe {
                    tx.set_tag(id, if inserted { tag::INSERTED_DELETED } else { tag::DELETE });
                    tx.want_cleanup(id);
                }
                row
            }
            Some(snapshot) if snapshot.state != State::Present => {
                // As in `read_record`.
                tx.history_mut().forget_read();
                end_joint_changes(tx, around);
                return Ok(Presence::Absent);
            }
            Some(snapshot) => {
                // SAFETY: stable and present.
                let row = keep.then(|| unsafe { snapshot.row(tx.pin()) }.clone());
                // SAFETY: announced just now; a delete needs no payload.
                unsafe {
                    tx.set_tag(id, tag::DELETE);
                    tx.want_cleanup(id);
                    tx.set_write_without_payload(id);
                }
                row
            }
        };
        if let Some(row) = row {
            // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends.
            self.companions.indexes.remove(tx, unsafe { record.as_ref() }.key(), &row)?;
        }
        end_joint_changes(tx, around);
        Ok(Presence::Present(()))
    }
}

/// Ends what [`Shared::begin_joint_changes`] has begun.
#[inline]
pub(crate) fn end_joint_changes<P: Protocol>(tx: &mut ObjectAccess<'_, P>, around: Option<bool>) {
    if let Some(around) = around {
        tx.end_joint_changes(around);
    }
}

/// The few structure changes of one insertion or removal, kept without allocation if there are at most two.
#[derive(Default)]
pub(crate) struct Changes {
    first: [Option<StructureChange>; 2],
    more: Vec<StructureChange>,
}

impl Changes {
    pub(crate) fn add(&mut self, change: StructureChange) {
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) if self.more.is_empty() => *place = Some(change),
            _ => self.more.push(change),
        }
    }

    pub(crate) fn visit(self, visit: &mut dyn FnMut(StructureChange)) {
        for change in self.first {
            match change {
                Some(change) => visit(change),
                None => return,
            }
        }
        for change in self.more {
            visit(change);
        }
    }
}
