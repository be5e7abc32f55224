//! Additions and subtractions that read nothing.
//!
//! Of a [counter](crate::counters) the commit alone judges an addition: the row must be there, and the sum in the range. An attempt that
//! has assumed so and has lost is followed by one that reads the row, and tells. So is one whose body fails or waits, because it may do so
//! for what it has assumed.

use crate::counters::Addition;
use crate::layout::part;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use crate::writes::Write;
use hotrow_core::{Abort, Addend, Column, CommitTimeChange, OutOfRange, Overflow, Value};
use hotrow_tables::MissingRow;
use hotrow_tables::key::{AsKey, Key};

impl Transaction<'_> {
    /// Adds an amount (which may be negative) to a column of a row: `column_of!(Account, balance)`, or [`Column::whole`] for a row
    /// that is a number.
    ///
    /// If the column is a [group](hotrow_core::Value) of its own, that reads nothing: two transactions that add to it do not conflict, and
    /// those that wait in one process are sent together. Unless the transaction reads the column otherwise, only the commit is repeated
    /// if others are faster. Other columns, and those of tables with a constraint or an index of them, are
    /// [updated](Self::update_columns).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`MissingRow`], or with [`Overflow`] if the sum is not in the column's range.
    pub fn add<K: Key, R: Value, F: Addend>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        let counter = table.counter(column);
        let addition = counter.and_then(|(place, form)| Some((place, form.addition(amount.number())?)));
        if let Some((place, addition)) = addition
            && self.change_unread(table, key, place, &addition)?
        {
            return Ok(());
        }
        self.add_to_read(table, key, column, &hotrow_core::Addition::new(Column::whole(), amount))
    }

    /// Subtracts an amount from a column of a row if that is at least the amount, and tells whether it was.
    ///
    /// As [`add`](Self::add), it reads nothing if it can. Then the transaction depends only on there being enough: others may add
    /// and subtract meanwhile. Each one for which there is not enough is told so, by an attempt that has read the column.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn subtract_if_enough<K: Key, R: Value, F: Addend>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        let counter = table.counter(column);
        let subtraction = counter.and_then(|(place, form)| Some((place, form.subtraction(amount.number())?)));
        if let Some((place, subtraction)) = subtraction
            && self.change_unread(table, key, place, &subtraction)?
        {
            return Ok(true);
        }
        let enough = self.read_fields(table, key, column, |value| value.number() >= amount.number())?;
        match enough {
            None => Err(self.raise(MissingRow::of(table.name(), key))),
            Some(false) => Ok(false),
            Some(true) => {
                let subtraction = hotrow_core::Addition::negative(Column::whole(), amount);
                self.add_to_read(table, key, column, &subtraction).map(|()| true)
            }
        }
    }

    /// Adds to a counter of a row that was not read. False if it must be read.
    fn change_unread<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        place: usize,
        addition: &Addition,
    ) -> Result<bool, Abort> {
        self.check_write(table)?;
        let place = part(&table.row(key), place);
        if self.reads_counters || self.writes.is_in_part() || self.is_known(&place) {
            return Ok(false);
        }
        let both = match self.writes.get(&place) {
            Some(Write::Add(earlier)) => earlier.then(addition),
            _ => Some(addition.clone()),
        };
        let Some(both) = both else { return Ok(false) };
        self.has_assumed = true;
        self.writes.insert(place, Write::Add(both));
        Ok(true)
    }

    /// Reads what the transaction has added to in a row without reading it, and makes the sums. So they can be replaced: what was assumed of
    /// them still holds at the commit.
    pub(crate) fn make_additions<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        row: &[u8],
    ) -> Result<(), Abort> {
        let parts = (0..table.form().parts()).map(|number| part(row, number));
        let added: Vec<_> =
            parts.filter(|part| matches!(self.writes.get(part), Some(Write::Add(_)))).collect();
        self.read(added.clone())?;
        for part in added {
            if let Some(sum) = self.value(&part)? {
                self.writes.insert(part, Write::Put(sum));
            }
        }
        Ok(())
    }

    /// Adds to a column of a row that is read.
    fn add_to_read<K: Key, R: Value, F: Addend>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        addition: &hotrow_core::Addition<F, F>,
    ) -> Result<(), Abort> {
        match self.update_columns(table, key, column, |value| addition.change(value))? {
            Ok(()) => Ok(()),
            Err(OutOfRange) => Err(self.raise(Overflow::new(table.name(), format!("{key:?}")))),
        }
    }
}
