//! Deferred operations on several segments of a row.
//!
//! An operation on fields of one segment lines up for that. One on several is several operations, each on one of the segments: first all
//! are read, in a chain that puts the fields together; then they are changed; and then what has changed is written. As operations on one
//! segment take effect in the order in which they were recorded, so do operations on rows.

use crate::key::Key;
use crate::operations::{Later, RowChange};
use crate::record::{GroupsOf, Record, WordsOf};
use crate::split::each;
use crate::storage::Shared;
use hotrow_core::column_groups::Part;
use hotrow_core::{Abort, Access, Deferred, Fields, Input, ObjectAccess, Protocol, Value};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::rc::Rc;

/// Fields of a row, at their places in it.
struct Loaded<R>(MaybeUninit<R>);

impl<R: Value> Clone for Loaded<R> {
    fn clone(&self) -> Self {
        assert!(!std::mem::needs_drop::<R>(), "called for split rows only");
        // SAFETY: the type of a row with column groups is plain data.
        Self(unsafe { std::ptr::from_ref(&self.0).read() })
    }
}

/// Fields before and after a change, if the row is there, and the operation's output.
type Changed<R, O> = (Option<(Loaded<R>, Loaded<R>)>, Rc<Cell<Option<O>>>);

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Defers a look at fields of a row.
    pub(crate) fn defer_read_of_several<F: Fields<R> + 'static, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        look: impl FnOnce(&F::Values) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let row = self.defer_reads(tx, record, segments, fields, Access::Read)?;
        tx.compute(row, move |row: Option<Loaded<R>>| {
            // SAFETY: the fields were loaded.
            row.map(|row| unsafe { fields.look(row.0.as_ptr(), look) })
        })
    }

    /// Defers the reads of segments, of which the fields are put together; `None` if the attempt has deleted the row.
    fn defer_reads<F: Fields<R> + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        access: Access,
    ) -> Result<Later<Option<Loaded<R>>>, Abort> {
        let mut row = Later::Known(Some(Loaded(MaybeUninit::uninit())));
        for segment in each(segments) {
            let load = move |table: &Self, tx: &mut ObjectAccess<'_, P>, record, row: Option<Loaded<R>>| {
                let Some(mut row) = row else { return Ok(Some(None)) };
                let loaded = table.load_segment(tx, record, segment, fields, row.0.as_mut_ptr())?;
                if segment == segments.ilog2() {
                    table.check_unchanged(tx, record, segments)?;
                }
                Ok(loaded.map(|()| row).unless_absent())
            };
            row = Later::Deferred(self.defer_at(tx, record, segment, access, row, load)?);
        }
        Ok(row)
    }

    /// Defers a change of fields of a row.
    pub(crate) fn defer_change_of_several<I: 'static, A: Clone + 'static, C: RowChange<R, I, A>>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        change: C,
        inputs: impl Input<Value = (A, I)>,
    ) -> Result<Deferred<C::Output>, Abort> {
        let fields = change.fields();
        let row = self.defer_reads(tx, record, segments, fields, Access::Write)?;
        let changed = tx.compute((row, inputs), move |(before, (mut passed, input))| {
            let mut changed = None;
            let rows = before.map(|before: Loaded<R>| {
                let mut after = before.clone();
                // SAFETY: the fields were loaded.
                changed = Some(unsafe {
                    fields.change(after.0.as_mut_ptr(), |values| change.change(values, &mut passed, input))
                });
                (before, after)
            });
            (rows, Rc::new(Cell::new(Some(C::output(passed, changed)))))
        })?;
        for segment in each(segments) {
            let write = move |table: &Self, tx: &mut ObjectAccess<'_, P>, record, changed| {
                let (Some((before, after)), _): Changed<R, C::Output> = changed else { return Ok(Some(())) };
                table.write_segment_at_turn(tx, record, segment, fields, (&before.0, &after.0))
            };
            self.defer_at(tx, record, segment, Access::Write, changed, write)?;
        }
        tx.compute(changed, |(_, output)| output.take().expect("taken once"))
    }

    /// Writes fields to a segment if they have changed. `None` if the row is not there.
    fn write_segment_at_turn(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segment: u32,
        fields: impl Fields<R>,
        (before, after): (&MaybeUninit<R>, &MaybeUninit<R>),
    ) -> Result<Option<()>, Abort> {
        let part_of = |row: &MaybeUninit<R>| {
            let mut part = Part::<WordsOf<R>>::ABSENT;
            // SAFETY: the fields are there.
            unsafe { part.take::<R, GroupsOf<R>, _>(fields, row.as_ptr(), Some(segment as usize - 1)) };
            part
        };
        if segment != 0 && part_of(before).is_same(&part_of(after)) {
            return Ok(Some(()));
        }
        let found = self.segments_to_change(tx, record, 1 << segment)?;
        let written = found.try_map(|found| self.write_segments(tx, found, fields, after.as_ptr()))?;
        Ok(written.unless_absent().flatten())
    }
}
