//! The transaction as a procedure: every protocol can run it, also those that defer operations or let others steal
//! them.

use hotrow::{Context, Operations, Procedure, Profile, TableRef};

/// A table of integers under integer keys.
pub(crate) type Integers = TableRef<u64, u64>;

/// A transaction that increments one record of each table.
#[derive(Debug, Clone, Copy)]
pub struct IncrementProcedure<'a> {
    /// The tables, in the order in which they are touched.
    pub tables: &'a [Integers],
    /// Key of the record in each table.
    pub keys: &'a [u64],
}

impl Procedure for IncrementProcedure<'_> {
    /// Number of records that were not found.
    type Output = u32;

    fn profile(&self) -> Profile {
        Profile { read_only: false, records: self.keys.len() as u32, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u32>, C::Stop> {
        let mut missing = cx.value(0u32);
        for (table, key) in self.tables.iter().zip(self.keys) {
            let (key, one) = (cx.value(*key), cx.value(1u64));
            let found = cx.update(*table, key, one, |row, by| *row = row.wrapping_add(by))?;
            let both = cx.zip(missing, found);
            missing = cx.map(both, |(missing, found)| missing + u32::from(found.is_none()));
        }
        Ok(missing)
    }
}
