//! Reading tables on a snapshot.
//!
//! A record's version is its row, and whether there is one. A record that was inserted by a commit which the snapshot does not see
//! has the epoch of that commit, or of a later one, and no version that is old enough; one that was deleted by such a commit is found in the index or in the [`Graveyard`], with its row
//! in place. The nodes of indexes have no versions: a snapshot's absence is that of a visible record.
//!
//! [`Graveyard`]: crate::companions::Graveyard

use crate::companions::{Graveyard, Name};
use crate::index::{Direction, Keyed, Lookup};
use crate::key::{AsKey, Image, ImageRange, Key};
use crate::record::{Record, State};
use crate::scan::prefetch_ahead;
use crate::split::MAIN;
use crate::storage::{Shared, tag};
use hotrow_core::{
    Abort, Cell, Fields, Item, Keeper, Misuse, ObjectAccess, OnSnapshot, Pin, Protocol, Redo, Value, Whole,
};
use std::mem::MaybeUninit;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

/// The content of a record before a commit, for snapshots.
pub(crate) enum Version<R: Value> {
    /// There was no row. Kept only if a history is recorded, for the version that the absence has there.
    Absent,
    /// There was the row that the record, which is dead, still holds.
    InPlace,
    /// There was a row that has been replaced.
    Replaced(R::Cell),
}

/// Room for a snapshot of a row.
type Room<R> = MaybeUninit<<<R as Value>::Cell as Cell<R>>::Snapshot>;

/// Loads what an operation needs of a record's row, to its place in the room, and returns the record's state.
type Load<'l, K, R, P> = &'l dyn Fn(&Record<K, R, P>, &mut Room<R>) -> State;

/// Looks at a record's row, of which there is what was loaded.
type Look<'l, K, R, P> = &'l mut dyn FnMut(&mut ObjectAccess<'_, P>, NonNull<Record<K, R, P>>, *const R);

/// The number of records that a scan looks at under one pin.
const CHUNK: usize = if cfg!(test) { 3 } else { 256 };

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Hands the content of an item's record over to snapshots.
    ///
    /// # Safety
    ///
    /// As for [`Object::keep`](hotrow_core::Object::keep).
    pub(crate) unsafe fn keep_version(item: &Item<P>, keeper: &mut Keeper<'_>) {
        match item.tag() {
            tag::UPDATE | tag::CHANGES => {
                // SAFETY: items of this object are for its records, which live until the attempt ends.
                let record = unsafe { Record::<K, R, P>::at(item.segment()) };
                // SAFETY: the caller's promise; rows are installed by `Item::install_in`.
                unsafe { keeper.keep_cell::<R, _>(record.cell(), Version::<R>::Replaced) };
            }
            tag::INSERTED => keeper.keep(Version::<R>::Absent, 0),
            tag::DELETE => keeper.keep(Version::<R>::InPlace, 0),
            _ => {}
        }
    }

    /// Makes the pending changes of a row to a version that snapshots have of it.
    ///
    /// # Safety
    ///
    /// As for [`Object::redo`](hotrow_core::Object::redo).
    pub(crate) unsafe fn redo_version(item: &Item<P>, redo: Redo<'_>) {
        // SAFETY: the table keeps versions of this type.
        let version = unsafe { redo.version::<Version<R>>() };
        if let (tag::CHANGES, Version::Replaced(kept)) = (item.tag(), version) {
            // SAFETY: the tag says what the payload is.
            unsafe { Self::changes_of(item).redo_in(kept, redo, Version::<R>::Replaced) };
        }
    }

    /// The row of a record that the transaction's snapshot sees: what was loaded of it, in the room, or the version that was kept. It
    /// is there as long as the room, and the attempt's pin.
    fn see(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        load: Load<'_, K, R, P>,
        room: &mut Room<R>,
    ) -> Option<*const R> {
        // SAFETY: found in the index or the graveyard under the attempt's pin.
        let found = unsafe { record.as_ref() };
        let load_now = || load(found, room);
        // SAFETY: the record is this table's, and in memory until the attempt ends or pins anew; its versions are of this type.
        let seen = unsafe {
            tx.snapshot_mut().read_on_snapshot::<_, Version<R>, _>(self, Record::address(record), load_now)
        };
        match seen {
            OnSnapshot::Present(State::Present) => {}
            OnSnapshot::Present(_) | OnSnapshot::Kept(Version::Absent) | OnSnapshot::MadeLater => {
                return None;
            }
            // The record is dead, or is going to be: nothing is installed in it any more.
            OnSnapshot::Kept(Version::InPlace) => _ = load(found, room),
            // SAFETY: nothing is installed in a cell that is kept, and it is freed through the epoch.
            OnSnapshot::Kept(Version::Replaced(cell)) => return Some(unsafe { cell.in_place() }),
        }
        // SAFETY: loaded, and stable, because no version was kept of what was loaded.
        Some(unsafe { R::Cell::value_in(room.as_ptr()) })
    }

    /// The attempt's pin, for longer than the borrow of the access.
    ///
    /// # Safety
    ///
    /// The result is not used any more when the attempt pins anew or ends.
    unsafe fn pin_of<'p>(tx: &ObjectAccess<'_, P>) -> &'p Pin {
        // SAFETY: the pin stays in its attempt; the rest is the caller's promise.
        unsafe { NonNull::from(tx.pin()).as_ref() }
    }

    /// The result of `look` on fields of a key's row.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_on_snapshot<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Option<O> {
        let (mut look, mut output) = (Some(look), None);
        let segments = self.segments_of(fields);
        // The record says if the snapshot sees the row, even if its main columns are not needed.
        let load = |record: &Record<K, R, P>, room: &mut Room<R>| match segments & MAIN {
            0 => record.state(),
            // SAFETY: there is room for a snapshot.
            _ => unsafe { record.load_fields(fields, room.as_mut_ptr()) },
        };
        self.find_on_snapshot(tx, key, &load, &mut |tx, record, row| {
            let look = |values: &F::Values| look.take().map(|look| look(values));
            output = self.look_on_snapshot(tx, record, row, segments, fields, look);
        });
        output
    }

    fn find_on_snapshot(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        load: Load<'_, K, R, P>,
        look: Look<'_, K, R, P>,
    ) {
        let name = |bytes: &mut Vec<u8>| K::Image::put_bytes(&key.to_image(), bytes);
        // Before the key is searched for: a commit that the snapshot does not see changes the version later than the index.
        let mut absence = tx.snapshot_mut().begin_absence(&self.meta, &key, &name);
        let mut room = Room::<R>::uninit();
        let mut look_if_seen =
            |tx: &mut ObjectAccess<'_, P>, record| match self.see(tx, record, load, &mut room) {
                Some(row) => {
                    look(tx, record, row);
                    true
                }
                None => {
                    tx.snapshot_mut().note_absent_version(&mut absence);
                    false
                }
            };
        // SAFETY: used in this operation only, which does not pin anew.
        let pin = unsafe { Self::pin_of(tx) };
        if let Lookup::Found(record) = self.index.get(key, pin)
            && look_if_seen(tx, record)
        {
            return;
        }
        // The index first: a record that it does not have any more is here.
        if !self.companions.graveyard.is_empty() {
            for (_, record) in self.companions.graveyard.find_one(Name::of(&name), tx.snapshot().sight()) {
                // SAFETY: a record of this table, in memory as long as the pin.
                if unsafe { record.cast::<Record<K, R, P>>().as_ref() }.is_of(key)
                    && look_if_seen(tx, record.cast())
                {
                    return;
                }
            }
        }
        tx.snapshot_mut().end_absence(absence);
    }

    /// Visits the rows of a range until the visitor breaks. Pins anew from time to time.
    #[cold]
    #[inline(never)]
    pub(crate) fn scan_on_snapshot(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        (mut low, mut high): ImageRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let segments = self.segments_of(Whole);
        loop {
            // SAFETY: not used after `repin` below.
            let pin = unsafe { Self::pin_of(tx) };
            let Some(mut cursor) = self.index.keys().record_cursor((low.clone(), high.clone()), direction)
            else {
                return Err(self.no_order(tx));
            };
            // Keys of the index up to the end of a leaf, so that the graveyard is searched up to the same key.
            let mut records = Vec::new();
            let is_last = loop {
                let Some(found) = cursor.next(pin.guard()) else { break true };
                // SAFETY: the table's index holds keys of its records.
                records.extend(found.iter().map(|&key| unsafe { Record::<K, R, P>::of_key(key) }.cast()));
                if records.len() >= CHUNK {
                    break false;
                }
            };
            let last = records.last().filter(|_| !is_last).map(|record| {
                // SAFETY: found in the index under the pin.
                K::Image::own(&unsafe { record.cast::<Record<K, R, P>>().as_ref() }.key().image())
            });
            let (mut from, mut to) = (low.clone(), high.clone());
            if let Some(last) = &last {
                match direction {
                    Direction::Ascending => to = Bound::Included(last.clone()),
                    Direction::Descending => from = Bound::Included(last.clone()),
                }
            }
            self.add_buried(tx, &mut records, (from, to), direction);
            for (at, record) in records.iter().enumerate() {
                prefetch_ahead(&records, at, 0, size_of::<Record<K, R, P>>());
                let record = record.cast::<Record<K, R, P>>();
                let mut room = Room::<R>::uninit();
                // SAFETY: there is room for a snapshot.
                let load = |record: &Record<K, R, P>, room: &mut Room<R>| unsafe {
                    record.load_fields(Whole, room.as_mut_ptr())
                };
                let Some(row) = self.see(tx, record, &load, &mut room) else {
                    // The range covers the absence.
                    tx.history_mut().forget_read();
                    continue;
                };
                // SAFETY: found under the pin.
                let key = unsafe { record.as_ref() }.key();
                let visit = |row: &R| visit(key, row);
                if self.look_on_snapshot(tx, record, row, segments, Whole, visit).is_break() {
                    return Ok(());
                }
            }
            let Some(last) = last else { return Ok(()) };
            match direction {
                Direction::Ascending => low = Bound::Excluded(last),
                Direction::Descending => high = Bound::Excluded(last),
            }
            // SAFETY: nothing found under the pin is used any more.
            unsafe { tx.snapshot_mut().repin() };
        }
    }

    #[cold]
    pub(crate) fn no_order(&self, tx: &mut ObjectAccess<'_, P>) -> Abort {
        let table = self.meta.name();
        tx.misuse(Misuse::Unsupported(format!(
            "table {table} has a hash index, which cannot be scanned: make it without `hash`"
        )))
    }

    /// Adds the buried records of a range to those of the index, in the order of keys. Of records that are in both, one stays.
    fn add_buried(
        &self,
        tx: &ObjectAccess<'_, P>,
        records: &mut Vec<NonNull<()>>,
        (low, high): ImageRange<'_, K>,
        direction: Direction,
    ) {
        if self.companions.graveyard.is_empty() {
            return;
        }
        let name = |bound: Bound<_>| bound.map(|image| Name::of(&|bytes| K::Image::put_bytes(&image, bytes)));
        let found = self.companions.graveyard.find((name(low), name(high)), tx.snapshot().sight());
        // SAFETY: found in the index under the pin.
        let name_of = |record: NonNull<()>| Self::name_of(unsafe { record.cast().as_ref() });
        Graveyard::add_to(records, found, direction, &name_of);
    }
}
