//! Deferred operations on rows. Some of their keys come from earlier operations.

use super::objects::Objects;
use super::values::{Boxed, Inline, ReadDigest};
use hotrow::sync::random::Random;
use hotrow::{Abort, Deferred, Protocol, Transaction, column_of};

/// A deferred operation on one row or on several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowLater {
    ReadHash,
    ReadCount,
    ReadOrdered,
    ChangeHash,
    ChangeCount,
    DeleteHash,
    InsertHash,
    ChangeOrdered,
    DeleteOrdered,
    InsertOrdered,
    ChangeEachOfHash,
    ChangeEachOfOrdered,
    Enqueue,
    EnqueueUngrouped,
    TakeFirst,
    Unqueue,
}

const LOOKS: &[(RowLater, &str)] = &[
    (RowLater::ReadHash, "ReadHashLater"),
    (RowLater::ReadCount, "ReadCountLater"),
    (RowLater::ReadOrdered, "ReadOrderedLater"),
];
const WRITES: &[(RowLater, &str)] = &[
    (RowLater::ChangeHash, "ChangeHashLater"),
    (RowLater::ChangeCount, "ChangeCountLater"),
    (RowLater::DeleteHash, "DeleteHashLater"),
    (RowLater::InsertHash, "InsertHashLater"),
    (RowLater::ChangeOrdered, "ChangeOrderedLater"),
    (RowLater::DeleteOrdered, "DeleteOrderedLater"),
    (RowLater::InsertOrdered, "InsertOrderedLater"),
    (RowLater::ChangeEachOfHash, "ChangeEachOfHashLater"),
    (RowLater::ChangeEachOfOrdered, "ChangeEachOfOrderedLater"),
    (RowLater::Enqueue, "EnqueueLater"),
    (RowLater::Enqueue, "EnqueueLater"),
    (RowLater::EnqueueUngrouped, "EnqueueUngroupedLater"),
    (RowLater::TakeFirst, "TakeFirstLater"),
    (RowLater::TakeFirst, "TakeFirstLater"),
    (RowLater::Unqueue, "UnqueueLater"),
];

/// Returns the group (the queue) of a key.
pub(super) fn group(key: u32) -> u32 {
    key % 2
}

impl RowLater {
    pub(super) fn draw(random: &mut Random, writes: bool) -> (Self, &'static str) {
        let list = if writes { WRITES } else { LOOKS };
        list[random.below(list.len() as u64) as usize]
    }

    /// True if keys of later operations may come from its result.
    pub(super) fn is_source(self) -> bool {
        self == RowLater::TakeFirst
    }

    /// Defers the operation and returns its result as a number. Its writes depend on everything deferred before.
    pub(super) fn run<P: Protocol>(
        self,
        on: &Objects<P>,
        tx: &mut Transaction<'_, P>,
        seen: &ReadDigest,
        (key, value): (u32, u32),
        before: Deferred<u64>,
    ) -> Result<Deferred<u64>, Abort> {
        let new = seen.sum.wrapping_add(value.into());
        let keys = on.inline.len() as u64;
        let source = match seen.source {
            Some(source) => source,
            None => tx.known(u64::from(key)),
        };
        let inline = move |sum: u64| Inline::new(sum.wrapping_add(new));
        let boxed = move |sum: u64| Boxed::new(sum.wrapping_add(new));
        let each = source.map(move |source| [(source % keys) as u32, key]);
        let number = source.map(move |source| (group(key), (source % keys) as u32));
        let flag = |tx: &mut Transaction<'_, P>, done: Deferred<bool>| tx.compute(done, u64::from);
        let found = match self {
            RowLater::ReadHash => on.hash.defer_read(tx, &key, Inline::whole)?,
            RowLater::ReadCount => on.hash.defer_read_columns(tx, &key, column_of!(Inline, count))?,
            RowLater::ChangeCount => on.hash.defer_update_columns(
                tx,
                &key,
                column_of!(Inline, count),
                before,
                move |count, sum| std::mem::replace(count, sum.wrapping_add(new)),
            )?,
            RowLater::ReadOrdered => on.ordered.defer_read(tx, &key, Boxed::whole)?,
            RowLater::ChangeHash => on.hash.defer_update(tx, &key, before, move |row, sum| {
                let old = row.whole();
                *row = inline(sum);
                old
            })?,
            RowLater::ChangeOrdered => on.ordered.defer_update(tx, &key, before, move |row, sum| {
                let old = row.whole();
                *row = boxed(sum);
                old
            })?,
            RowLater::DeleteHash => return on.hash.defer_delete(tx, &key).and_then(|done| flag(tx, done)),
            RowLater::DeleteOrdered => {
                return on.ordered.defer_delete(tx, &key).and_then(|done| flag(tx, done));
            }
            RowLater::InsertHash => {
                return on.hash.defer_insert(tx, key, before.map(inline)).and_then(|done| flag(tx, done));
            }
            RowLater::InsertOrdered => {
                let inserted =
                    on.ordered.defer_insert_grouped(tx, group(key).into(), key, before.map(boxed))?;
                return flag(tx, inserted);
            }
            RowLater::ChangeEachOfHash => {
                return on.hash.defer_update_each(tx, each, before, 0, move |old: &mut u64, row, sum| {
                    *old = old.wrapping_add(row.whole());
                    *row = inline(sum);
                });
            }
            RowLater::ChangeEachOfOrdered => {
                return on.ordered.defer_update_each(tx, each, before, 0, move |old: &mut u64, row, sum| {
                    *old = old.wrapping_add(row.whole());
                    *row = boxed(sum);
                });
            }
            RowLater::Enqueue => {
                let group = u64::from(group(key));
                let inserted = on.queue.defer_insert_grouped(tx, group, number, before.map(inline))?;
                return flag(tx, inserted);
            }
            RowLater::EnqueueUngrouped => {
                return on.queue.defer_insert(tx, number, before.map(inline)).and_then(|done| flag(tx, done));
            }
            RowLater::TakeFirst => {
                let group = group(key);
                let taken = on.queue.defer_take_first(tx, group.into(), (group, 0)..(group + 1, 0))?;
                tx.compute(taken, |taken| taken.map(|(_, number)| u64::from(number)))?
            }
            RowLater::Unqueue => {
                let deleted = on.queue.defer_delete(tx, &(group(key), value))?;
                return flag(tx, deleted);
            }
        };
        tx.compute(found, |found| found.unwrap_or(u64::MAX))
    }
}
