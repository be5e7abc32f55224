//! Operations of stress.

use super::objects::Objects;
use super::rows::RowLater;
use super::twins::OnTwins;
use super::values::{Boxed, GROUPS, Inline, ReadDigest};
use hotrow::sync::random::Random;
use hotrow::sync::thread::label;
use hotrow::{Abort, Deferred, Direction, Protocol, Transaction, column_of};
use std::ops::ControlFlow;
use std::panic::resume_unwind;

/// One operation on one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    what: What,
    name: &'static str,
    key: u32,
    /// Number that decides the value written and the end of a scan.
    value: u32,
}

macro_rules! operations {
    ($list:ident: $($what:ident),* $(,)?) => {
        const $list: &[(What, &str)] = &[$((What::$what, stringify!($what))),*];
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    ReadInline,
    ReadBoxed,
    ReadElement,
    TestCounter,
    GetCounter,
    TestGauge,
    GetGauge,
    GetHash,
    GetCount,
    GetOrdered,
    ScanUp,
    ScanDown,
    ScanGroup,
    ScanGroupDown,
    ScanGroupsDown,
    SetInline,
    ChangeInline,
    SetBoxed,
    ChangeBoxed,
    SetElement,
    ChangeElement,
    AddToCounter,
    SetGauge,
    AddToGauge,
    InsertHash,
    UpsertHash,
    ChangeHash,
    ChangeCount,
    AddToCount,
    DeleteHash,
    InsertOrdered,
    UpsertOrdered,
    ChangeOrdered,
    DeleteOrdered,
    ScanQueue,
    Enqueue,
    TakeFirst,
    Unqueue,
    ReadInlineLater,
    ReadBoxedLater,
    ReadElementLater,
    RequireLater,
    PanicLater,
    Force,
    SetInlineLater,
    ChangeInlineLater,
    SetBoxedLater,
    ChangeBoxedLater,
    SetElementLater,
    ChangeElementLater,
    Later(RowLater),
    Twins(OnTwins),
    TwinsLater(OnTwins),
}

/// Choice of deferred and eager operations in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Temper {
    /// No operation is deferred.
    Eager,
    /// All operations are deferred, and none is forced.
    Tame,
    /// Some operations are deferred.
    Mixed,
}

impl Temper {
    pub(super) fn draw(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Tame,
            1 => Self::Mixed,
            _ => Self::Eager,
        }
    }
}

/// Message of a planned panic in an intention.
pub(super) const PLANNED: &str = "a planned panic in an intention";

operations![LOOKS: ReadInline, ReadBoxed, ReadElement, TestCounter, GetCounter, TestGauge, GetGauge, GetHash, GetCount, GetOrdered, ScanUp,
    ScanDown, ScanGroup, ScanGroupDown, ScanGroupsDown, ScanQueue];
operations![WRITES: SetInline, ChangeInline, SetBoxed, ChangeBoxed, SetElement, ChangeElement, AddToCounter, SetGauge, AddToGauge,
    InsertHash, UpsertHash, ChangeHash, ChangeCount, AddToCount, DeleteHash, InsertOrdered, UpsertOrdered, ChangeOrdered, DeleteOrdered, Enqueue, TakeFirst, Unqueue];
// `Force` is the last one, so that tame transactions can draw from those before it.
operations![LATER_LOOKS: ReadInlineLater, ReadBoxedLater, ReadElementLater, RequireLater, PanicLater, Force];
operations![LATER_WRITES: SetInlineLater, ChangeInlineLater, SetBoxedLater, ChangeBoxedLater, SetElementLater,
    ChangeElementLater];

impl Operation {
    pub(super) fn draw(random: &mut Random, keys: u32, writes: bool, temper: Temper) -> Self {
        let later = temper == Temper::Tame || temper == Temper::Mixed && random.chance(0.5);
        let list = match (later, writes) {
            (false, false) => LOOKS,
            (false, true) => WRITES,
            (true, false) if temper == Temper::Tame => &LATER_LOOKS[..LATER_LOOKS.len() - 1],
            (true, false) => LATER_LOOKS,
            (true, true) => LATER_WRITES,
        };
        let (mut what, mut name) = list[random.below(list.len() as u64) as usize];
        if later && random.chance(0.5) {
            let (row, its_name) = RowLater::draw(random, writes);
            (what, name) = (What::Later(row), its_name);
        }
        if random.chance(0.1) {
            let (twins, its_name) = OnTwins::draw(random, writes, later);
            (what, name) = (if later { What::TwinsLater(twins) } else { What::Twins(twins) }, its_name);
        }
        let below = |random: &mut Random| random.below(keys.into()) as u32;
        Self { what, name, key: below(random), value: below(random) }
    }

    /// Returns the counter that the operation adds to, and the amount.
    pub(super) fn added(&self) -> Option<(usize, i64)> {
        (self.what == What::AddToCounter).then(|| (self.key as usize, self.amount()))
    }

    fn amount(&self) -> i64 {
        i64::from(self.value % 5) - 2
    }

    pub(super) fn run<P: Protocol>(
        &self,
        on: &Objects<P>,
        tx: &mut Transaction<'_, P>,
        seen: &mut ReadDigest,
    ) -> Result<(), Abort> {
        let Self { what, name, key, value } = *self;
        label(name);
        let place = key as usize;
        // Writes depend on everything read before, as in a transaction with a meaning.
        let new = seen.sum.wrapping_add(value.into());
        match what {
            What::ReadInline => on.inline[place].read(tx, |value| seen.inline(value))?,
            What::ReadBoxed => on.boxed[place].read(tx, |value| seen.boxed(value))?,
            What::ReadElement => seen.number(on.array.get(tx, place)?),
            What::TestCounter => {
                let bound = self.amount();
                seen.number(on.counters[place].is_at_least(tx, bound)?.into());
            }
            What::GetCounter => seen.number(on.counters[place].get(tx)?.cast_unsigned()),
            What::TestGauge => {
                let (low, high) = (self.amount(), i64::from(value % 3));
                seen.number(on.gauges[place].is_between(tx, low, high)?.into());
            }
            What::GetGauge => seen.number(on.gauges[place].get(tx)?.cast_unsigned()),
            What::GetHash if value % 2 == 0 => {
                let columns = (column_of!(Inline, value), column_of!(Inline, complement));
                if let Some((value, complement)) = on.hash.read_columns(tx, &key, columns)? {
                    seen.inline(&Inline { value, complement, count: 0 });
                }
            }
            What::GetCount => {
                let count = on.hash.read_columns(tx, &key, column_of!(Inline, count))?;
                seen.number(count.unwrap_or(u64::MAX));
            }
            What::GetHash => drop(on.hash.read(tx, &key, |row| seen.inline(row))?),
            What::GetOrdered => drop(on.ordered.read(tx, &key, |row| seen.boxed(row))?),
            What::ScanUp | What::ScanDown => {
                let direction =
                    if what == What::ScanUp { Direction::Ascending } else { Direction::Descending };
                // The whole range, or its first rows only.
                let mut left = if value % 3 == 0 { 2 } else { u32::MAX };
                on.ordered.scan(tx, key.min(value)..=key.max(value), direction, |key, row| {
                    seen.number((*key).into());
                    seen.boxed(row);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
            }
            What::ScanGroup => {
                let group = value % GROUPS;
                on.by_group.scan(tx, group..=group, Direction::Ascending, |_, key, row| {
                    seen.number((*key).into());
                    seen.boxed(row);
                    ControlFlow::Continue(())
                })?;
            }
            What::ScanGroupDown => {
                let mut first = None;
                on.by_group.scan_keys(tx, ..=(value % GROUPS), Direction::Descending, |_, key| {
                    first = Some(*key);
                    ControlFlow::Break(())
                })?;
                seen.number(first.map_or(0, u64::from));
            }
            What::ScanGroupsDown => {
                let mut left = 1 + value % 4;
                on.by_group.scan(tx, .., Direction::Descending, |group, key, row| {
                    seen.number(u64::from(group ^ key));
                    seen.boxed(row);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
            }
            What::SetInline => on.inline[place].set(tx, Inline::new(new))?,
            What::ChangeInline => on.inline[place].update(tx, |value| {
                seen.inline(value);
                *value = Inline::new(new);
            })?,
            What::SetBoxed => on.boxed[place].set(tx, Boxed::new(new))?,
            What::ChangeBoxed => on.boxed[place].update(tx, |value| {
                seen.boxed(value);
                *value = Boxed::new(new);
            })?,
            What::SetElement => on.array.set(tx, place, new)?,
            What::ChangeElement => on.array.update(tx, place, |value| {
                seen.number(*value);
                *value = new;
            })?,
            What::AddToCounter => on.counters[place].add(tx, self.amount())?,
            What::SetGauge => on.gauges[place].set(tx, (new % 7).cast_signed())?,
            What::AddToGauge => on.gauges[place].add(tx, self.amount())?,
            What::InsertHash => seen.number(on.hash.insert_if_absent(tx, key, Inline::new(new))?.into()),
            What::UpsertHash => seen.number(on.hash.upsert(tx, key, Inline::new(new))?.into()),
            What::ChangeCount => {
                let count = column_of!(Inline, count);
                let old = on
                    .hash
                    .update_columns_if_present(tx, &key, count, |count| std::mem::replace(count, new))?;
                seen.number(old.unwrap_or(u64::MAX));
            }
            What::AddToCount => {
                // Now and then more than there is room for, so that the transaction rolls back at its commit.
                let amount = if value % 4 == 0 { new } else { new % 1_000 };
                seen.number(on.hash.add_if_present(tx, &key, column_of!(Inline, count), amount)?.into());
            }
            What::ChangeHash => drop(on.hash.update_if_present(tx, &key, |row| {
                seen.inline(row);
                *row = Inline::new(new);
            })?),
            What::DeleteHash => seen.number(on.hash.delete(tx, &key)?.into()),
            What::InsertOrdered => seen.number(on.ordered.insert_if_absent(tx, key, Boxed::new(new))?.into()),
            What::UpsertOrdered => seen.number(on.ordered.upsert(tx, key, Boxed::new(new))?.into()),
            What::ChangeOrdered => drop(on.ordered.update_if_present(tx, &key, |row| {
                seen.boxed(row);
                *row = Boxed::new(new);
            })?),
            What::DeleteOrdered => seen.number(on.ordered.delete(tx, &key)?.into()),
            What::ScanQueue => {
                let group = super::rows::group(key);
                on.queue.scan(tx, (group, 0)..(group + 1, 0), Direction::Ascending, |(_, number), row| {
                    seen.number((*number).into());
                    seen.inline(row);
                    ControlFlow::Continue(())
                })?;
            }
            What::Enqueue => {
                let key = (super::rows::group(key), value);
                seen.number(on.queue.insert_if_absent(tx, key, Inline::new(new))?.into());
            }
            What::TakeFirst => {
                let group = super::rows::group(key);
                let taken = on.queue.take_first(tx, (group, 0)..(group + 1, 0))?;
                seen.number(taken.map_or(0, |(_, number)| number.into()));
            }
            What::Unqueue => {
                seen.number(on.queue.delete(tx, &(super::rows::group(key), value))?.into());
            }
            What::Twins(what) => what.run(&on.twins[place], tx, seen, (new, value))?,
            _ => self.run_later(on, tx, seen)?,
        }
        Ok(())
    }

    /// Runs an operation with deferred values. Its writes depend on everything read or deferred before.
    fn run_later<P: Protocol>(
        &self,
        on: &Objects<P>,
        tx: &mut Transaction<'_, P>,
        seen: &mut ReadDigest,
    ) -> Result<(), Abort> {
        let place = self.key as usize;
        let before = match seen.later {
            Some(later) => later,
            None => tx.known(seen.sum),
        };
        let new = seen.sum.wrapping_add(self.value.into());
        // About one transaction in eight fails.
        let fails = move |sum: u64| sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 == new % 8;
        let read: Option<Deferred<u64>> = match self.what {
            What::Later(what) => Some(what.run(on, tx, seen, (self.key, self.value), before)?),
            What::TwinsLater(what) => {
                what.run_later(&on.twins[place], tx, seen, (new, self.value), before)?
            }
            What::ReadInlineLater => Some(on.inline[place].defer_read(tx, Inline::whole)?),
            What::ReadBoxedLater => Some(on.boxed[place].defer_read(tx, Boxed::whole)?),
            What::ReadElementLater => Some(on.array.defer_read(tx, place, |value| *value)?),
            What::RequireLater => {
                let holds = tx.compute(before, move |sum| !fails(sum))?;
                tx.require(holds)?;
                None
            }
            What::PanicLater => Some(on.array.defer_update(tx, place, before, move |value, sum| {
                *value = sum.wrapping_add(new);
                if fails(sum) {
                    // A resumed panic prints no message.
                    resume_unwind(Box::new(PLANNED));
                }
                *value
            })?),
            What::Force => {
                seen.number(tx.force(before)?);
                None
            }
            What::SetInlineLater => {
                let value = tx.compute(before, move |sum| Inline::new(sum.wrapping_add(new)))?;
                on.inline[place].defer_set(tx, value)?;
                None
            }
            What::ChangeInlineLater => {
                Some(on.inline[place].defer_update(tx, before, move |value, sum| {
                    let old = value.whole();
                    *value = Inline::new(sum.wrapping_add(new));
                    old
                })?)
            }
            What::SetBoxedLater => {
                let value = tx.compute(before, move |sum| Boxed::new(sum.wrapping_add(new)))?;
                on.boxed[place].defer_set(tx, value)?;
                None
            }
            What::ChangeBoxedLater => Some(on.boxed[place].defer_update(tx, before, move |value, sum| {
                let old = value.whole();
                *value = Boxed::new(sum.wrapping_add(new));
                old
            })?),
            What::SetElementLater => {
                let value = tx.compute(before, move |sum| sum.wrapping_add(new))?;
                on.array.defer_set(tx, place, value)?;
                None
            }
            What::ChangeElementLater => {
                Some(on.array.defer_update(tx, place, before, move |value, sum| {
                    std::mem::replace(value, sum.wrapping_add(new))
                })?)
            }
            _ => unreachable!("run by `run`"),
        };
        if let Some(read) = read
            && !matches!(self.what, What::Later(what) if !what.is_source())
        {
            seen.source = Some(read);
        }
        seen.later = Some(match read {
            Some(read) => {
                tx.compute((before, read), |(sum, value)| sum.wrapping_mul(31).wrapping_add(value))?
            }
            None => before,
        });
        Ok(())
    }
}
