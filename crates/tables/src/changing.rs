//! Changes of rows at the commit, as users see them.

use crate::commit_time::Apply;
use crate::key::{AsKey, Key};
use crate::table::Table;
use hotrow_core::{
    Abort, Addend, Addition, Column, Columns, OutOfRange, Plain, Protocol, Transaction, Value, Whole, always,
};

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Adds an amount (which may be negative) to a column of a row without reading it: `column_of!(Account, balance)`, or
    /// [`Column::whole`] for a row that is a number.
    ///
    /// Transactions that only add to a row never abort each other: the amounts are added at the commit. A transaction
    /// that reads the row, before or afterwards, depends on its value like any reader. Rows that are boxed, and rows of a
    /// table with indexes or constraints, are [updated](Self::update) instead.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update). If the sum is not in the column's range, the transaction rolls back with
    /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
    #[inline]
    pub fn add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        self.changed(key, self.shared.change_at_commit(tx, key, Addition::new(column, amount))?)
    }

    /// As [`add`](Self::add), but the sum wraps around at the ends of the column's range.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn wrapping_add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        self.changed(key, self.shared.change_at_commit(tx, key, Addition::new(column, amount).wrapping())?)
    }

    /// As [`add`](Self::add), but a missing row is no error: false, and nothing changed, if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn add_if_present<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        self.shared.change_at_commit(tx, key, Addition::new(column, amount))
    }

    /// Subtracts an amount from a column of a row if that is at least the amount, and tells whether it was.
    ///
    /// If it is enough, the transaction depends on that alone: others may add and subtract meanwhile, as long as enough is
    /// left for this one. The commit judges it, and subtracts. If it is not, the transaction depends on the column's row, as a
    /// reader does. So it does within a part of a body that may be undone alone (a
    /// [savepoint](Transaction::savepoint), a statement of a session), and where [`add`](Self::add) is an update.
    ///
    /// ```
    /// use hotrow_core::{Column, Engine};
    /// # use hotrow_protocols::Occ;
    /// use hotrow_tables::Database;
    ///
    /// # let engine = Engine::<Occ>::new();
    /// let seats = Database::on(&engine).table::<String, u32>("seats").create()?;
    /// seats.bulk_insert([("stalls".into(), 1)])?;
    /// let reserve = || engine.transact(|tx| seats.subtract_if_enough(tx, "stalls", Column::whole(), 1));
    /// assert_eq!((reserve()?, reserve()?), (true, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn subtract_if_enough<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        let enough = self.shared.subtract_if_enough(tx, key, column, amount)?;
        enough.ok_or_else(|| self.shared.missing(key))
    }

    /// Changes a row at the commit, without reading it: what `change` does to the row that the commit finds. It gives nothing
    /// back, and two transactions that only make such changes never abort each other, so the result depends on the order of
    /// their commits.
    ///
    /// `change` runs once at the commit, while the row is locked: it should be short, and use nothing but what it has captured. It
    /// also runs, on another copy of the row, if an operation of the same transaction needs the row before. If it panics, the transaction
    /// rolls back with [`Error::Panicked`](hotrow_core::Error::Panicked). Rows of a table with indexes or constraints are
    /// [updated](Self::update) instead.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn apply(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl Fn(&mut R) + Send + 'static,
    ) -> Result<(), Abort> {
        self.changed(key, self.apply_if_present(tx, key, change)?)
    }

    /// As [`apply`](Self::apply), but a missing row is no error: false, and nothing changed, if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply_if_present(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl Fn(&mut R) + Send + 'static,
    ) -> Result<bool, Abort> {
        self.shared.change_at_commit(tx, key, Apply(Whole, always(change)))
    }

    /// As [`apply_if_present`](Self::apply_if_present), for a change that can fail: for a sum that leaves its range, say. `None` then, and the
    /// row is as it was; the transaction rolls back with [`Overflow`](hotrow_core::Overflow), here or at its commit.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and see above.
    #[inline]
    pub fn change_if_present(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl Fn(&mut R) -> Option<()> + Send + 'static,
    ) -> Result<bool, Abort> {
        let change = move |row: &mut R| change(row).ok_or(OutOfRange);
        self.shared.change_at_commit(tx, key, Apply(Whole, change))
    }

    /// As [`apply`](Self::apply), for some columns of a row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn apply_columns<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<(), Abort> {
        self.changed(key, self.apply_columns_if_present(tx, key, columns, change)?)
    }

    /// As [`apply_columns`](Self::apply_columns), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply_columns_if_present<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<bool, Abort> {
        self.shared.change_at_commit(tx, key, Apply(columns, always(change)))
    }

    /// Sets a column of a row [at the commit](Self::apply), without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn set<F: Plain>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value)
    }

    /// Raises a column of a row to a value [at the commit](Self::apply), if it is less than that, without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn max<F: Plain + Ord>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value.max(*column))
    }

    /// Lowers a column of a row to a value [at the commit](Self::apply), if it is greater than that, without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn min<F: Plain + Ord>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value.min(*column))
    }

    /// The result of a change that needs a row.
    fn changed(&self, key: &(impl AsKey<K> + ?Sized), is_there: bool) -> Result<(), Abort> {
        if is_there { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// Appends elements to a row that is a collection or a text [at the commit](Self::apply), without reading it.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn append<E, I>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        elements: I,
    ) -> Result<(), Abort>
    where
        R: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.apply(tx, key, move |row| row.extend(elements.clone()))
    }
}
