//! The transaction as a procedure: every protocol can run it, also those that defer or reorder operations.

use super::rows::Row;
use hotrow::{Context, Operations, Procedure, Profile, TableRef};

/// Effect of an operation on its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reads the value.
    Read,
    /// Replaces the value without reading it (a blind write).
    BlindWrite,
    /// Changes a part of the value, depending on its old value.
    ReadModifyWrite,
}

/// One operation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Key of the record.
    pub key: u64,
    /// Effect on the record.
    pub action: Action,
}

/// A transaction: operations on different records, in the order in which they were drawn.
#[derive(Debug, Clone, Copy)]
pub struct YcsbProcedure<'a, R> {
    /// Table of the records.
    pub table: TableRef<u64, R>,
    /// Operations to run.
    pub operations: &'a [Operation],
    /// Size of a value, in bytes.
    pub value_bytes: u32,
    /// Stamp of the values that the transaction writes.
    pub stamp: u64,
}

/// Result of a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadSum {
    /// Number that depends on every record that was read.
    pub sum: u64,
    /// Number of records that were not found.
    pub missing: u32,
}

impl ReadSum {
    fn and(self, found: Option<u64>) -> Self {
        match found {
            Some(number) => Self { sum: self.sum.wrapping_add(number), ..self },
            None => Self { missing: self.missing + 1, ..self },
        }
    }
}

impl<R: Row> Procedure for YcsbProcedure<'_, R> {
    type Output = ReadSum;

    fn profile(&self) -> Profile {
        let read_only = self.operations.iter().all(|operation| operation.action == Action::Read);
        Profile { read_only, records: self.operations.len() as u32, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<ReadSum>, C::Stop> {
        let Self { table, operations, value_bytes, stamp } = *self;
        let mut seen = cx.value(ReadSum::default());
        for Operation { key, action } in operations {
            let key = cx.value(*key);
            let found = match action {
                Action::Read => R::read(cx, table, key)?,
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
