//! The operations of stress.

use super::objects::{Boxed, GROUPS, Inline, Objects, Seen};
use hotrow::sync::random::Random;
use hotrow::sync::thread::label;
use hotrow::{Abort, Direction, Protocol, Transaction};
use std::ops::ControlFlow;

/// One operation on one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    what: What,
    name: &'static str,
    key: u32,
    /// What is written, and where scans end.
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
    DeleteHash,
    InsertOrdered,
    UpsertOrdered,
    ChangeOrdered,
    DeleteOrdered,
}

operations![LOOKS: ReadInline, ReadBoxed, ReadElement, TestCounter, GetCounter, TestGauge, GetGauge, GetHash, GetOrdered, ScanUp,
    ScanDown, ScanGroup, ScanGroupDown, ScanGroupsDown];
operations![WRITES: SetInline, ChangeInline, SetBoxed, ChangeBoxed, SetElement, ChangeElement, AddToCounter, SetGauge, AddToGauge,
    InsertHash, UpsertHash, ChangeHash, DeleteHash, InsertOrdered, UpsertOrdered, ChangeOrdered, DeleteOrdered];

impl Operation {
    pub(super) fn draw(random: &mut Random, keys: u32, writes: bool) -> Self {
        let list = if writes { WRITES } else { LOOKS };
        let (what, name) = list[random.below(list.len() as u64) as usize];
        let below = |random: &mut Random| random.below(keys.into()) as u32;
        Self { what, name, key: below(random), value: below(random) }
    }

    /// The counter that it adds to, and what.
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
        seen: &mut Seen,
    ) -> Result<(), Abort> {
        let Self { what, name, key, value } = *self;
        label(name);
        let place = key as usize;
        // What is written depends on all that was read, as in a transaction that means something.
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
            What::GetHash => drop(on.hash.read(tx, &key, |row| seen.inline(row))?),
            What::GetOrdered => drop(on.ordered.read(tx, &key, |row| seen.boxed(row))?),
            What::ScanUp | What::ScanDown => {
                let direction =
                    if what == What::ScanUp { Direction::Ascending } else { Direction::Descending };
                // A whole range, or the first rows of it.
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
                on.by_group.scan(tx, group..=group, Direction::Ascending, &on.ordered, |_, key, row| {
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
                on.by_group.scan(tx, .., Direction::Descending, &on.ordered, |group, key, row| {
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
            What::InsertHash => seen.number(on.hash.insert(tx, key, Inline::new(new))?.into()),
            What::UpsertHash => seen.number(on.hash.upsert(tx, key, Inline::new(new))?.into()),
            What::ChangeHash => drop(on.hash.update(tx, &key, |row| {
                seen.inline(row);
                *row = Inline::new(new);
            })?),
            What::DeleteHash => seen.number(on.hash.delete(tx, &key)?.into()),
            What::InsertOrdered => seen.number(on.ordered.insert(tx, key, Boxed::new(new))?.into()),
            What::UpsertOrdered => seen.number(on.ordered.upsert(tx, key, Boxed::new(new))?.into()),
            What::ChangeOrdered => drop(on.ordered.update(tx, &key, |row| {
                seen.boxed(row);
                *row = Boxed::new(new);
            })?),
            What::DeleteOrdered => seen.number(on.ordered.delete(tx, &key)?.into()),
        }
        Ok(())
    }
}
