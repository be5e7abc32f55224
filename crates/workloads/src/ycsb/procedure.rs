//! The transaction, as a procedure: every protocol can run it, those that defer or reorder operations included.

use super::rows::Row;
use hotrow::{Context, Procedure, Profile, TableRef};

/// What a transaction does to one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Looks at it.
    Read,
    /// Replaces its value without looking at it.
    BlindWrite,
    /// Changes a part of its value, depending on what it was.
    ReadModifyWrite,
}

/// One operation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The record.
    pub key: u64,
    /// What is done to it.
    pub action: Action,
}

/// A transaction: operations on different records, in the order in which they were drawn.
#[derive(Debug, Clone, Copy)]
pub struct YcsbProcedure<'a, R> {
    /// The records.
    pub table: TableRef<u64, R>,
    /// What to do.
    pub operations: &'a [Operation],
    /// The size of a value, in bytes.
    pub value_bytes: u32,
    /// What marks the values that the transaction writes.
    pub stamp: u64,
}

/// What a transaction has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// A number that depends on every record that was looked at.
    pub sum: u64,
    /// Records that were not there.
    pub missing: u32,
}

impl Seen {
    fn and(self, found: Option<u64>) -> Self {
        match found {
            Some(number) => Self { sum: self.sum.wrapping_add(number), ..self },
            None => Self { missing: self.missing + 1, ..self },
        }
    }
}

impl<R: Row> Procedure for YcsbProcedure<'_, R> {
    type Output = Seen;

    fn profile(&self) -> Profile {
        let read_only = self.operations.iter().all(|operation| operation.action == Action::Read);
        Profile { read_only, records: self.operations.len() as u32, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Seen>, C::Stop> {
        let Self { table, operations, value_bytes, stamp } = *self;
        let mut seen = cx.value(Seen::default());
        for Operation { key, action } in operations {
            let key = cx.value(*key);
            let found = match action {
                Action::Read => cx.read(table, key, R::look)?,
                Action::BlindWrite => {
                    let row = cx.value(R::filled(value_bytes, stamp));
                    let replaced = cx.replace(table, key, row)?;
                    cx.map(replaced, |replaced| replaced.then_some(0))
                }
                Action::ReadModifyWrite => {
                    let stamp = cx.value(stamp);
                    cx.update(table, key, stamp, |row, stamp| {
                        let before = row.look();
                        row.change(stamp);
                        before
                    })?
                }
            };
            let both = cx.zip(seen, found);
            seen = cx.map(both, |(seen, found)| seen.and(found));
        }
        Ok(seen)
    }
}
