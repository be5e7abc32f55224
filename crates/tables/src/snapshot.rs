//! Reading tables on a snapshot.
//!
//! A record's version is its row, and whether there is one. A record that was inserted by a commit which the snapshot does not see
//! has a version that says so; one that was deleted by such a commit is found in the index or in the [`Graveyard`], with its row
//! in place. The nodes of indexes have no versions: a snapshot's absence is that of a visible record.
//!
//! [`Graveyard`]: crate::graveyard::Graveyard

use crate::index::{Direction, Keyed, Lookup};
use crate::key::{AsKey, Image, ImageRange, Key, put_name};
use crate::record::{Record, Snapshot, State};
use crate::storage::{Shared, tag};
use hotrow_core::{Abort, Cell, Item, Keeper, Misuse, ObjectAccess, OnSnapshot, Pin, Protocol, Value};
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

/// The content of a record before a commit, for snapshots.
pub(crate) enum Version<R: Value> {
    /// There was no row.
    Absent,
    /// There was the row that the record, which is dead, still holds.
    InPlace,
    /// There was a row that has been replaced.
    Replaced(R::Cell),
}

/// A row that a snapshot sees.
enum Visible<'a, R: Value> {
    Loaded(Snapshot<R>),
    Kept(&'a R::Cell),
}

impl<R: Value> Visible<'_, R> {
    fn row<'p>(&'p self, pin: &'p Pin) -> &'p R {
        match self {
            // SAFETY: present and stable, because no version was kept before the record was loaded; loaded under the pin.
            Self::Loaded(snapshot) => unsafe { snapshot.row(pin) },
            // SAFETY: nothing is installed in a cell that is kept.
            Self::Kept(cell) => unsafe { cell.in_place() },
        }
    }
}

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
            tag::INSERTED => keeper.keep_birth(Version::<R>::Absent),
            tag::DELETE => keeper.keep(Version::<R>::InPlace, 0),
            _ => {}
        }
    }

    /// The row of a record that the transaction's snapshot sees.
    fn see<'p>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        pin: &'p Pin,
    ) -> Option<Visible<'p, R>> {
        let _ = pin;
        let load = || {
            // SAFETY: found in the index or the graveyard under the attempt's pin.
            unsafe { record.as_ref() }.load()
        };
        // The record as it is, for a version in place: it is dead, and nothing is installed in it any more.
        let now = load();
        // SAFETY: the record is this table's, and in memory until the attempt ends or pins anew; its versions are of this type.
        let seen = unsafe { tx.read_on_snapshot::<_, Version<R>, _>(self, Record::address(record), load) };
        match seen {
            OnSnapshot::Present(snapshot) if snapshot.state == State::Present => {
                Some(Visible::Loaded(snapshot))
            }
            OnSnapshot::Kept(Version::InPlace) => Some(Visible::Loaded(now)),
            OnSnapshot::Kept(Version::Replaced(cell)) => {
                // SAFETY: entries are freed through the epoch, so as long as the pin lives.
                Some(Visible::Kept(unsafe { NonNull::from(cell).as_ref() }))
            }
            OnSnapshot::Present(_) | OnSnapshot::Kept(Version::Absent) => None,
        }
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

    /// The result of `look` on a key's row.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_on_snapshot<O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O,
    ) -> Option<O> {
        let mut look = Some(look);
        let mut output = None;
        self.find_on_snapshot(tx, key, &mut |row| output = look.take().map(|look| look(row)));
        output
    }

    fn find_on_snapshot(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: &mut dyn FnMut(&R),
    ) {
        let name = |bytes: &mut Vec<u8>| K::Image::put_bytes(&key.to_image(), bytes);
        // Before the key is searched for: a commit that the snapshot does not see changes the version later than the index.
        let mut absence = tx.begin_absence(&self.meta, &key, &name);
        // SAFETY: used in this operation only, which does not pin anew.
        let pin = unsafe { Self::pin_of(tx) };
        if let Lookup::Found(record) = self.index.get(key, pin)
            && self.look_if_seen(tx, record, pin, &mut absence, look)
        {
            return;
        }
        // The index first: a record that it does not have any more is here.
        if !self.graveyard.is_empty() {
            let mut bytes = Vec::new();
            name(&mut bytes);
            for record in self.graveyard.find((Bound::Included(&bytes), Bound::Included(&bytes))) {
                // SAFETY: a record of this table, in memory as long as the pin.
                if unsafe { record.cast::<Record<K, R, P>>().as_ref() }.is_of(key)
                    && self.look_if_seen(tx, record.cast(), pin, &mut absence, look)
                {
                    return;
                }
            }
        }
        tx.end_absence(absence);
    }

    fn look_if_seen(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        absence: &mut Option<hotrow_core::AbsenceOnSnapshot>,
        look: &mut dyn FnMut(&R),
    ) -> bool {
        match self.see(tx, record, pin) {
            Some(seen) => {
                if const { Self::HAS_GROUPS }
                    && let Some(split) = self.split()
                {
                    look(&self.row_on_snapshot(tx, split, record, seen.row(pin)));
                } else {
                    look(seen.row(pin));
                }
                true
            }
            None => {
                tx.note_absent_version(absence);
                false
            }
        }
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
        loop {
            // SAFETY: not used after `repin` below.
            let pin = unsafe { Self::pin_of(tx) };
            let Some(mut cursor) = self.index.cursor((low.clone(), high.clone()), direction) else {
                return Err(self.no_order(tx));
            };
            // Keys of the index up to the end of a leaf, so that the graveyard is searched up to the same key.
            let mut records = Vec::new();
            let is_last = loop {
                let Some(leaf) = cursor.next(pin.guard()) else { break true };
                // SAFETY: the table's index holds keys of its records.
                records.extend(leaf.records.iter().map(|&key| unsafe { Record::<K, R, P>::of_key(key) }));
                if records.len() >= CHUNK {
                    break false;
                }
            };
            let last = records.last().filter(|_| !is_last).map(|record| {
                // SAFETY: found in the index under the pin.
                K::Image::own(&unsafe { record.as_ref() }.key().image())
            });
            let (mut from, mut to) = (low.clone(), high.clone());
            if let Some(last) = &last {
                match direction {
                    Direction::Ascending => to = Bound::Included(last.clone()),
                    Direction::Descending => from = Bound::Included(last.clone()),
                }
            }
            self.add_buried(&mut records, (from, to), direction);
            for record in records {
                let Some(seen) = self.see(tx, record, pin) else {
                    // The range covers the absence.
                    tx.forget_read();
                    continue;
                };
                // SAFETY: found under the pin.
                let key = unsafe { record.as_ref() }.key();
                let flow = if const { Self::HAS_GROUPS }
                    && let Some(split) = self.split()
                {
                    visit(key, &self.row_on_snapshot(tx, split, record, seen.row(pin)))
                } else {
                    visit(key, seen.row(pin))
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
            let Some(last) = last else { return Ok(()) };
            match direction {
                Direction::Ascending => low = Bound::Excluded(last),
                Direction::Descending => high = Bound::Excluded(last),
            }
            // SAFETY: nothing found under the pin is used any more.
            unsafe { tx.repin() };
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
        records: &mut Vec<NonNull<Record<K, R, P>>>,
        (low, high): ImageRange<'_, K>,
        direction: Direction,
    ) {
        if self.graveyard.is_empty() {
            return;
        }
        let bytes = |bound: Bound<_>| {
            bound.map(|image| {
                let mut bytes = Vec::new();
                K::Image::put_bytes(&image, &mut bytes);
                bytes
            })
        };
        let (low, high) = (bytes(low), bytes(high));
        let range = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        let buried = self.graveyard.find(range);
        if buried.is_empty() {
            return;
        }
        let all = records.drain(..).chain(buried.into_iter().map(NonNull::cast));
        let mut named: Vec<(Vec<u8>, NonNull<Record<K, R, P>>)> = all
            .map(|record| {
                let mut name = Vec::new();
                // SAFETY: found in the index or the graveyard under the pin.
                put_name(unsafe { record.as_ref() }.key(), &mut name);
                (name, record)
            })
            .collect();
        // By name alone, because addresses differ from run to run.
        named.sort_by(|one, other| one.0.cmp(&other.0));
        for at in 0..named.len() {
            let (name, record) = &named[at];
            let same = named[..at].iter().rev().take_while(|(other, _)| other == name);
            if !same.into_iter().any(|(_, other)| other == record) {
                records.push(*record);
            }
        }
        if direction == Direction::Descending {
            records.reverse();
        }
    }
}
