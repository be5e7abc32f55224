//! Split rows: groups of columns that conflict apart.
//!
//! A row whose type has [column groups](hotrow_core::column_groups) is several segments behind one key: its *record*, as every row has
//! one, with the main columns, and a *part* for each group. One lookup leads to all of them. The index, the record's state, and
//! everything that depends on a key's presence or absence are the record's, as for rows that are not split.
//!
//! - An operation on columns of one group (`columns.rs`) touches that part alone; one on main columns touches the record alone.
//! - An operation on a whole row (`rows.rs`), or on columns of several groups, touches all its segments: the record first, so that two
//!   of them wait for each other in one order. An update writes the segments whose columns it has changed.
//!
//! # Existence
//!
//! Whoever touches a part alone must notice that the row is deleted, or inserted anew. So each part says if its row is there, under its
//! own header, and insertions and deletions write all segments of a row:
//!
//! - The parts of a record that an attempt inserts are born locked, as the record is, and absent; the commit makes them present.
//!   Until then nobody reads them.
//! - A deletion makes each part absent. So it conflicts with everybody who reads or changes the part, by the part's header, under every
//!   protocol: for the protocol it is a change of the part like any other. An attempt that finds the part absent does not use what it
//!   has read, and looks for the key again, as if it had found the record dead.
//! - An attempt that changes a part without reading it (commit-time changes, replacements) has the predicate that the part is
//!   present, as a replacement has it of the record.
//! - A part does not come back: a key that is inserted again has a new record with new parts. (In the attempt that has deleted the row it
//!   does, as the record.)
//!
//! Deferred operations line up for the part, and find out at their turn, as for a record.
//!
//! An absent part may be seen shortly before its record is dead, because a commit releases one after the other. Then one waits for the
//! record, and takes it out of the index if it is dead ([`Shared::leave_dead`]).
//!
//! # The main columns' record
//!
//! The record's cell has room for the whole row. The columns of groups there are those of the moment of insertion, and nobody looks at them.
//! (A cell without them would have to make rows out of parts of different ages.) In a table where a group does not conflict apart,
//! they are the current ones: so it is for all groups if the table has constraints, is immutable or belongs to a map, and for groups
//! of which a secondary index uses a column. Such indexes need every row that a column changes in.
//!
//! # Snapshots
//!
//! Parts keep versions as all segments of the core do. On a snapshot a part is read after its record, even if only its columns are wanted:
//! the record, which may be in the graveyard, says if the snapshot sees the row. The parts are of the same commit then, as all
//! segments of a row are written by its insertion and its deletion.
//!
//! # Histories
//!
//! A part is a key of its own in a history: a register that is written when the row is inserted, changed, or deleted. Its name includes
//! the record's incarnation, because a record's segments are released one after the other: the deletion of an old part may be
//! installed after the insertion of the new one, which orders nothing, as they are different segments. No dependency is lost by that:
//! what reads or writes a part of the old record comes before the deletion (by the part), that before the absence of the key (by
//! the record), and that before what is found in the new one.

mod columns;
mod deferred;
mod rows;

use crate::companions::{PartOf, Place, SplitRows};
use crate::key::Key;
use crate::record::{GroupsOf, Record};
use crate::storage::Shared;
use hotrow_core::column_groups::{ColumnGroups, groups_of};
use hotrow_core::{Abort, Columns, ObjectAccess, Presence, Protocol, Reason, Value};
use std::convert::Infallible;
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// True if the row's type has column groups. Asked in `const` blocks, so that nothing of groups is compiled for other types.
    pub(crate) const HAS_GROUPS: bool = !GroupsOf::<R>::COLUMNS.is_empty();

    /// The groups that conflict apart, if there are any. For other types of rows the compiler knows that it is `None`.
    #[inline(always)]
    pub(crate) fn split(&self) -> Option<&SplitRows<K, R, P>> {
        if Self::HAS_GROUPS { self.companions.split.as_deref() } else { None }
    }

    /// The number of the next record, if rows are split.
    pub(crate) fn next_incarnation(&self) -> u32 {
        self.split().map_or(0, SplitRows::next_incarnation)
    }

    /// The groups of a row that conflict apart, one bit each as [`groups_of`] numbers them. The lowest one stands for all other columns.
    pub fn groups_apart(&self) -> u32 {
        1 | self.split().map_or(0, SplitRows::apart)
    }

    /// Those of them to which these columns belong.
    #[inline]
    pub(crate) fn groups_apart_of(&self, columns: impl Columns<R>) -> u32 {
        let Some(split) = self.split() else { return 1 };
        let groups = groups_of::<R, GroupsOf<R>>(columns);
        let apart = groups & split.apart();
        apart | u32::from(groups != apart)
    }

    /// Returns the segment of columns.
    #[inline(always)]
    pub(crate) fn place_of<C: Columns<R>>(&self, columns: C) -> Place<'_, K, R, P, C> {
        self.split().map_or(Place::Main, |split| split.place_of(columns))
    }

    /// Returns the segment of a whole row.
    #[inline(always)]
    pub(crate) fn place_of_row(&self) -> Place<'_, K, R, P, Infallible> {
        self.split().map_or(Place::Main, Place::Several)
    }

    /// Ends an attempt that has found a row's segments in states of different moments.
    #[cold]
    fn vanished(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        part: &PartOf<R, P>,
    ) -> Abort {
        // SAFETY: the part is this table's, found under the attempt's pinned epoch; `tx` is of the table's operation.
        let id = unsafe { tx.item(split, part.address()) };
        tx.conflict(Reason::ReadChanged, id)
    }

    /// Does something to the part of a key's row, of which it gets the record, too; `None` if there is no such row.
    #[inline]
    pub(crate) fn on_part<V>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl crate::key::AsKey<K> + ?Sized),
        group: usize,
        mut operate: impl FnMut(
            &mut ObjectAccess<'_, P>,
            &PartOf<R, P>,
            NonNull<Record<K, R, P>>,
        ) -> Result<Presence<V>, Abort>,
    ) -> Result<Option<V>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            // SAFETY: found in the index under the attempt's pinned epoch.
            let part = unsafe { record.as_ref() }.part(group).segment();
            match operate(tx, part, record)? {
                Presence::Present(value) => return Ok(Some(value)),
                Presence::Deleted => return Ok(None),
                Presence::Absent => self.leave_dead(tx, record, part)?,
            }
        }
    }

    /// Removes a record from the index of which a part was found absent, after waiting for its death.
    #[cold]
    fn leave_dead(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        part: &PartOf<R, P>,
    ) -> Result<(), Abort> {
        match self.read_record(tx, record)? {
            crate::rows::RowView::Dead => {
                self.unlink_dead(tx, record);
                Ok(())
            }
            _ if !tx.keeps_reads() => Ok(()),
            // The attempt has seen the row before its deletion.
            _ => {
                let split = self.split().expect("it has parts");
                Err(self.vanished(tx, split, part))
            }
        }
    }
}
