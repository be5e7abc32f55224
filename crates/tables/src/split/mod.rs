//! Split rows: groups of columns that conflict apart.
//!
//! A row whose type has [column groups](hotrow_core::column_groups) is several segments behind one key: its *record*, as every row has
//! one, with the main columns, and a *part* for each group. One lookup leads to all of them. The index, the record's state, and
//! everything that depends on a key's presence or absence are the record's, as for rows that are not split.
//!
//! An operation names what it uses of a row: [all of it](hotrow_core::Whole), or some columns ([`Fields`]). That gives the segments that it
//! touches, a set of bits ([`Shared::segments_of`]): the lowest stands for the record, the next for the part of the first group. Mostly it is
//! the record alone, always for types without groups: then the operation is one on the record (`rows.rs`, `updating.rs`). If it is
//! a part alone, it is one on that. Otherwise it is one loop over the segments (`segments.rs`, `deferred.rs`):
//!
//! - The segments are read, the record first, so that two operations wait for each other in one order, and the fields of each are put
//!   to their places in a row, of which nothing else is initialised. If there are several segments, they must be of one moment.
//! - The operation looks at the fields there, or changes them.
//! - A change is written to those segments whose fields it has changed.
//!
//! Changes at the commit are made to the record or to a part, without such a row; if they need several segments, they are made at once
//! (`commit_time.rs`).
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

mod deferred;
mod segments;

pub(crate) use segments::change_part;

use crate::companions::{PartOf, SplitRows};
use crate::key::Key;
use crate::record::{GroupsOf, Record};
use crate::rows::RecordView;
use crate::storage::Shared;
use hotrow_core::column_groups::{ColumnGroups, groups_of};
use hotrow_core::{Abort, Fields, ObjectAccess, Protocol, Reason, Value};
use std::ptr::NonNull;

/// The record, as a set of segments: one bit each, of which the lowest is the record's, and the next that of the first group's part.
pub(crate) const MAIN: u32 = 1;

/// The numbers of the segments of a set: 0 is the record, 1 the part of the first group.
#[inline(always)]
pub(crate) fn each(segments: u32) -> impl Iterator<Item = u32> {
    let mut left = segments;
    std::iter::from_fn(move || {
        let first = (left != 0).then(|| left.trailing_zeros());
        left &= left.wrapping_sub(1);
        first
    })
}

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

    /// The segments that have these fields.
    #[inline(always)]
    pub fn segments_of(&self, fields: impl Fields<R>) -> u32 {
        let Some(split) = self.split() else { return MAIN };
        let groups = groups_of::<R, GroupsOf<R>>(fields);
        let apart = groups & split.apart();
        if groups == apart { apart } else { apart | MAIN }
    }

    /// The segment of a part, its object, and the number of its group. The record was found under the attempt's pinned epoch.
    #[inline(always)]
    pub(crate) fn part_at(
        &self,
        record: NonNull<Record<K, R, P>>,
        segment: u32,
    ) -> (&SplitRows<K, R, P>, &PartOf<R, P>, usize) {
        let (split, group) = (self.split().expect("it has parts"), segment as usize - 1);
        // SAFETY: in memory until the attempt ends.
        (split, unsafe { record.as_ref() }.part(group).segment(), group)
    }

    /// Ends an attempt that has found a row's segments in states of different moments, or that a row is dead for which it has lined up.
    #[cold]
    pub(crate) fn vanished(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segment: u32,
    ) -> Abort {
        // SAFETY: the segment is this table's, found under the attempt's pinned epoch; `tx` is of the table's operation.
        let id = unsafe {
            if segment == 0 {
                tx.item(self, Record::address(record))
            } else {
                let (split, part, _) = self.part_at(record, segment);
                tx.item(split, part.address())
            }
        };
        tx.conflict(Reason::ReadChanged, id)
    }

    /// Removes a record from the index of which the first of these segments was found absent: if that is a part, after waiting for the
    /// record's death.
    #[cold]
    pub(crate) fn leave_dead(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
    ) -> Result<(), Abort> {
        if segments & MAIN == 0 && !matches!(self.read_presence(tx, record)?, RecordView::Dead) {
            // Otherwise the attempt has seen the row before its deletion.
            let is_awaited = !tx.keeps_reads();
            return if is_awaited {
                Ok(())
            } else {
                Err(self.vanished(tx, record, segments.trailing_zeros()))
            };
        }
        self.unlink_dead(tx, record);
        Ok(())
    }
}
