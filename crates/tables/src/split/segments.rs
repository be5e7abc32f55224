//! Operations on segments of a row that are not its record alone: on one part, or a loop over several segments.

use crate::companions::{PartOf, SplitRows};
use crate::key::Key;
use crate::record::{GroupsOf, Record, State, WordsOf};
use crate::split::{MAIN, each};
use crate::storage::{Shared, tag};
use crate::updating::RowToChange;
use hotrow_core::column_groups::{ColumnGroups, Each, Part};
use hotrow_core::{Abort, Cell, Fields, ItemId, ObjectAccess, Presence, Protocol, Value, Whole};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The record of a row that is going to be changed, as it was read.
struct MainToChange<R> {
    row: R,
    id: ItemId,
}

/// A part that is going to be changed, as it was read, and its item.
type PartToChange<R> = Option<(ItemId, Part<WordsOf<R>>)>;

/// Segments of a row that are going to be changed. All of them were read, and waited for, before any is written.
pub(crate) struct SegmentsToChange<K: Key, R: Value, P: Protocol> {
    record: NonNull<Record<K, R, P>>,
    main: Option<MainToChange<R>>,
    parts: <GroupsOf<R> as ColumnGroups<R>>::Each<PartToChange<R>>,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Reads fields of the row of a record, which are not in the record alone.
    #[inline(always)]
    pub(crate) fn read_segments<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Result<Presence<O>, Abort> {
        let mut row = MaybeUninit::uninit();
        let loaded = if segments.is_power_of_two() {
            // The part has all fields.
            self.load_part(tx, record, (segments.trailing_zeros(), false), fields, row.as_mut_ptr())
        } else {
            self.load_segments(tx, record, segments, fields, row.as_mut_ptr())
        }?;
        // SAFETY: the fields of all segments were loaded.
        Ok(loaded.map(|()| unsafe { fields.look(row.as_ptr(), look) }))
    }

    /// Reads fields to their places in a row, for which there is room.
    #[inline(never)]
    fn load_segments(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: impl Fields<R>,
        row: *mut R,
    ) -> Result<Presence<()>, Abort> {
        for segment in each(segments) {
            match self.load_segment(tx, record, segment, fields, row)? {
                Presence::Present(()) => {}
                absent => return self.without_segment(tx, record, (segments, segment), &absent),
            }
        }
        self.check_unchanged(tx, record, segments)?;
        Ok(Presence::Present(()))
    }

    /// Reads those of some fields that are a segment's, to their places in a row, for which there is room.
    #[inline(always)]
    pub(super) fn load_segment(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segment: u32,
        fields: impl Fields<R>,
        row: *mut R,
    ) -> Result<Presence<()>, Abort> {
        if segment == 0 {
            // What are columns of parts is replaced by theirs.
            return self.read_main(tx, record, fields, |main| copy(fields, main, row));
        }
        self.load_part(tx, record, (segment, true), fields, row)
    }

    /// As [`load_segment`](Self::load_segment), for a part. `is_one`: there are other segments, which have others of the fields.
    #[inline]
    fn load_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        (segment, is_one): (u32, bool),
        fields: impl Fields<R>,
        row: *mut R,
    ) -> Result<Presence<()>, Abort> {
        let (split, part, group) = self.part_at(record, segment);
        let group = is_one.then_some(group);
        // SAFETY: the part is `split`'s, found under the attempt's pinned epoch; `tx` is of the table's operation; there is room.
        unsafe { part.read_if_present(tx, split, |part| part.put::<R, GroupsOf<R>, _>(fields, row, group)) }
    }

    /// The result of an operation that finds no row in a segment, though it may have found one in those before.
    #[cold]
    fn without_segment<V, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        (segments, segment): (u32, u32),
        found: &Presence<V>,
    ) -> Result<Presence<O>, Abort> {
        let is_first = segment == segments.trailing_zeros();
        match found {
            Presence::Absent if is_first => Ok(Presence::Absent),
            // A deletion has been committed since.
            _ if is_first || !tx.keeps_reads() => Ok(Presence::Deleted),
            _ => Err(self.vanished(tx, record, segment)),
        }
    }

    /// Makes sure that a row which was put together from its segments is one that was there at some moment.
    pub(super) fn check_unchanged(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
    ) -> Result<(), Abort> {
        for segment in each(segments) {
            let part = (segment != 0).then(|| self.part_at(record, segment));
            let address = part.map_or(Record::address(record), |(_, part, _)| part.address());
            // One that was read last is as it was, but not the attempt's own write, which it made of what it had read before.
            if segments >> segment == 1 && tx.own_write(address).is_none() {
                continue;
            }
            // SAFETY: as in `load_segment`.
            unsafe {
                match part {
                    None => tx.check_unchanged(self, address)?,
                    Some((split, ..)) => tx.check_unchanged(split, address)?,
                }
            }
        }
        Ok(())
    }

    /// Looks at fields of a row that the transaction's snapshot sees. `main`: what its record had, of the fields if they are there.
    pub(crate) fn look_on_snapshot<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        main: *const R,
        segments: u32,
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> O {
        if const { !Self::HAS_GROUPS } || segments == MAIN {
            // SAFETY: the fields are there.
            return unsafe { fields.look(main, look) };
        }
        let mut row = MaybeUninit::<R>::uninit();
        self.load_on_snapshot(tx, record, main, segments, fields, row.as_mut_ptr());
        // SAFETY: as in `read_segments`.
        unsafe { fields.look(row.as_ptr(), look) }
    }

    /// Puts fields of such a row together, in a row for which there is room.
    #[inline(never)]
    fn load_on_snapshot(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        main: *const R,
        segments: u32,
        fields: impl Fields<R>,
        row: *mut R,
    ) {
        if segments & MAIN != 0 {
            copy(fields, main, row);
        }
        for segment in each(segments & !MAIN) {
            match self.load_segment(tx, record, segment, fields, row) {
                Ok(Presence::Present(())) => {}
                _ => unreachable!("the commits that make and delete a row write its record and its parts"),
            }
        }
    }

    /// Changes fields of the row of a record, which are not in the record alone.
    #[inline(always)]
    pub(crate) fn update_segments<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<Presence<O>, Abort> {
        if !segments.is_power_of_two() {
            let found = self.segments_to_change(tx, record, segments)?;
            return found.try_map(|found| self.change_segments(tx, found, fields, change));
        }
        let (split, part, _) = self.part_at(record, segments.trailing_zeros());
        // SAFETY: as in `load_segment`; read for update just now.
        unsafe {
            Ok(part.read_part_for_update(tx, split)?.map(|(id, mut part)| {
                let output = change_part(&mut part, fields, change);
                PartOf::<R, P>::store_part(tx, id, part);
                output
            }))
        }
    }

    /// Announces the writes of a record's segments, which are to be changed, and reads them.
    pub(crate) fn segments_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
    ) -> Result<Presence<SegmentsToChange<K, R, P>>, Abort> {
        let parts = Each::<PartToChange<R>>::from_fn(|_| None);
        let mut found = SegmentsToChange { record, main: None, parts };
        for segment in each(segments) {
            let read = if segment == 0 {
                self.main_to_change(tx, record)?.map(|main| found.main = Some(main))
            } else {
                let (split, part, group) = self.part_at(record, segment);
                // SAFETY: as in `load_segment`.
                let read = unsafe { part.read_part_for_update(tx, split)? };
                read.map(|read| found.parts.values_mut()[group] = Some(read))
            };
            if !matches!(read, Presence::Present(())) {
                return self.without_segment(tx, record, (segments, segment), &read);
            }
        }
        self.check_unchanged(tx, record, segments)?;
        Ok(Presence::Present(found))
    }

    /// Changes fields of a row, and returns what the change returns. Of several segments those are written that have changed.
    #[inline(never)]
    pub(crate) fn change_segments<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        found: SegmentsToChange<K, R, P>,
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<O, Abort> {
        let mut row = MaybeUninit::uninit();
        if let Some(main) = &found.main {
            copy(fields, &main.row, row.as_mut_ptr());
        }
        for (group, part) in found.parts.values().iter().enumerate() {
            // SAFETY: there is room for a row.
            part.iter().for_each(|(_, part)| unsafe {
                part.put::<R, GroupsOf<R>, _>(fields, row.as_mut_ptr(), Some(group));
            });
        }
        // SAFETY: the fields of all segments are there.
        let output = unsafe { fields.change(row.as_mut_ptr(), change) };
        self.write_segments(tx, found, fields, row.as_ptr())?;
        Ok(output)
    }

    /// Writes the fields behind `row` to a row's segments, unless those have them already.
    pub(super) fn write_segments(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        found: SegmentsToChange<K, R, P>,
        fields: impl Fields<R>,
        row: *const R,
    ) -> Result<(), Abort> {
        for (group, part) in found.parts.values().iter().enumerate() {
            let Some((id, before)) = part else { continue };
            let mut after = *before;
            // SAFETY: the caller has the fields there; the part was read for update just now.
            unsafe {
                after.take::<R, GroupsOf<R>, _>(fields, row, Some(group));
                if !after.is_same(before) {
                    PartOf::<R, P>::store_part(tx, *id, after);
                }
            }
        }
        let Some(MainToChange { row: before, id }) = found.main else { return Ok(()) };
        let mut after = before.clone();
        copy(fields, row, &mut after);
        // The record's other columns do not matter.
        for group in each(self.segments_of(Whole) & !MAIN).map(|segment| segment as usize - 1) {
            let part = Record::<K, R, P>::part_of(&before, group);
            // SAFETY: it is a row.
            unsafe { part.put::<R, GroupsOf<R>, _>(Whole, &mut after, Some(group)) };
        }
        if bytes_of::<K, R, P>(&after) == bytes_of::<K, R, P>(&before) {
            return Ok(());
        }
        if !tx.has_write(id) {
            // SAFETY: announced when it was read; the tag says what the payload is.
            unsafe {
                tx.set_tag(id, tag::UPDATE);
                tx.set_write(id, R::Cell::pend(before));
            }
        }
        self.change_row(tx, RowToChange::new(found.record, id), |own| *own = after)
    }

    /// Announces the write of a record, and reads it.
    fn main_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<Presence<MainToChange<R>>, Abort> {
        // SAFETY: as in `read_record`.
        let (id, snapshot) =
            unsafe { tx.read_for_update(self, Record::address(record), || record.as_ref().load())? };
        let row = match snapshot {
            // SAFETY: stable and present.
            Some(snapshot) if snapshot.state == State::Present => unsafe { snapshot.row(tx.pin()) }.clone(),
            Some(_) => {
                tx.history_mut().forget_read();
                return Ok(Presence::Absent);
            }
            None => {
                if tx.tag(id) == tag::CHANGES {
                    self.settle_changes(tx, record, id)?;
                }
                let Some(row) = self.own(tx, record, id) else { return Ok(Presence::Deleted) };
                row.clone()
            }
        };
        Ok(Presence::Present(MainToChange { row, id }))
    }

    /// Does something to each part of a record, with the number of its group, if its rows are split. The record was found under the
    /// attempt's pinned epoch, or made by the attempt; the part is the split rows'; the access is of the table's operation.
    #[inline(always)]
    pub(crate) fn each_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        mut operate: impl FnMut(
            &mut ObjectAccess<'_, P>,
            &SplitRows<K, R, P>,
            &PartOf<R, P>,
            usize,
        ) -> Result<Presence<()>, Abort>,
    ) -> Result<(), Abort> {
        if const { Self::HAS_GROUPS } {
            for segment in each(self.segments_of(Whole) & !MAIN) {
                let (split, part, group) = self.part_at(record, segment);
                match operate(tx, split, part, group)? {
                    Presence::Present(()) => {}
                    _ => return Err(self.vanished(tx, record, segment)),
                }
            }
        }
        Ok(())
    }
}

/// Copies fields from one row to their places in another.
#[inline(always)]
fn copy<R>(fields: impl Fields<R>, from: *const R, to: *mut R) {
    fields.each_place(|bytes| {
        let (from, to) = (from.cast::<u8>(), to.cast::<u8>());
        // SAFETY: fields lie within the row; callers have them in the one, and room in the other, which is another.
        unsafe {
            to.add(bytes.start).copy_from_nonoverlapping(from.add(bytes.start), bytes.end - bytes.start)
        };
    });
}

/// Changes fields in the part that has them all.
#[inline(always)]
pub(crate) fn change_part<R: Value, F: Fields<R>, O>(
    part: &mut Part<WordsOf<R>>,
    fields: F,
    change: impl FnOnce(&mut F::Values) -> O,
) -> O {
    let mut row = MaybeUninit::uninit();
    // SAFETY: there is room for the fields, which are all in the part.
    unsafe {
        part.put::<R, GroupsOf<R>, F>(fields, row.as_mut_ptr(), None);
        let output = fields.change(row.as_mut_ptr(), change);
        part.take::<R, GroupsOf<R>, F>(fields, row.as_ptr(), None);
        output
    }
}

/// The bytes of a row.
fn bytes_of<K: Key, R: Value, P: Protocol>(row: &R) -> &[u8] {
    assert!(Shared::<K, R, P>::HAS_GROUPS, "called for split rows only");
    // SAFETY: a row whose type has groups of columns is plain data, which has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(row).cast(), size_of::<R>()) }
}
