//! Operations on columns: on the part of their group, or on the record.

use crate::companions::{PartOf, Place, SplitRows, change_columns, change_part};
use crate::key::{AsKey, Key};
use crate::record::{GroupsOf, WordsOf};
use crate::storage::Shared;
use crate::table::Table;
use hotrow_core::column_groups::Part;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Columns, CommitTimeChange, ObjectAccess, Plain, Presence,
    Protocol, Transaction, Value,
};

/// Message of a panic that cannot happen.
const ONCE: &str = "an operation that finds no row has not used its closure";

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Reads some columns of a row; `None` if there is none with this key.
    #[inline]
    pub(crate) fn read_columns<C: Columns<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Option<C::Values>, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.read_main_columns(tx, key, columns);
        }
        match self.place_of(columns) {
            Place::Main => self.read_main_columns(tx, key, columns),
            Place::Several(_) => self.read(tx, key, |row| columns.of(row)),
            Place::Part(split, group, _) => {
                let tx = tx.enter(&self.meta)?;
                if tx.is_on_snapshot() {
                    return Ok(self.read_part_on_snapshot(tx, key, (split, group), columns));
                }
                tx.settle_object(&self.meta)?;
                self.on_part(tx, key, group, |tx, part, _| {
                    // SAFETY: the part is `split`'s, found under the attempt's pinned epoch; `tx` is of the table's operation.
                    unsafe { part.read_part(tx, split, |part| Self::values_in(part, columns)) }
                })
            }
        }
    }

    /// Changes some columns of a row, and returns what the change returns; `None` if there is no row with this key.
    #[inline]
    pub(crate) fn update_columns<C: Columns<R>, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.update_main(tx, key, |row| change_columns(row, columns, change));
        }
        match self.place_of(columns) {
            Place::Main => self.update_main(tx, key, |row| change_columns(row, columns, change)),
            Place::Several(_) => self.update(tx, key, |row| change_columns(row, columns, change)),
            Place::Part(split, group, _) => {
                let tx = self.enter_to_write(tx)?;
                let mut change = Some(change);
                self.on_part(tx, key, group, |tx, segment, _| {
                    Self::update_part(tx, split, segment, |part| {
                        change_part::<R, C, O>(part, columns, change.take().expect(ONCE))
                    })
                })
            }
        }
    }

    /// Changes a row in a part.
    #[inline]
    pub(crate) fn update_part<O>(
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        segment: &PartOf<R, P>,
        change: impl FnOnce(&mut Part<WordsOf<R>>) -> O,
    ) -> Result<Presence<O>, Abort> {
        // SAFETY: as in `read_columns`; read for update just now.
        unsafe {
            Ok(match segment.read_part_for_update(tx, split)? {
                Presence::Present((id, mut part)) => {
                    let output = change(&mut part);
                    PartOf::<R, P>::store_part(tx, id, part);
                    Presence::Present(output)
                }
                Presence::Deleted => Presence::Deleted,
                Presence::Absent => Presence::Absent,
            })
        }
    }

    /// True if changes of these columns that commute are changes at the commit.
    pub(crate) fn commutes_on(&self, columns: impl Columns<R>) -> bool {
        if const { !Self::HAS_GROUPS } {
            return !self.changes_at_once();
        }
        match self.place_of(columns) {
            Place::Main => !self.changes_at_once(),
            Place::Part(..) => true,
            Place::Several(_) => false,
        }
    }

    /// The values of some columns in their group's part.
    #[inline(always)]
    pub(crate) fn values_in<C: Columns<R>>(part: &Part<WordsOf<R>>, columns: C) -> C::Values {
        part.values::<R, GroupsOf<R>, C>(columns)
    }

    /// Changes some columns of a row at the commit. False if there is no row with this key.
    pub(crate) fn change_columns_at_commit<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<bool, Abort> {
        if const { !Self::HAS_GROUPS } {
            let change = move |row: &mut R| change_columns(row, columns, &change);
            return self.change_main_at_commit(tx, key, Applied(change));
        }
        match self.place_of(columns) {
            Place::Main => {
                let change = move |row: &mut R| change_columns(row, columns, &change);
                self.change_main_at_commit(tx, key, Applied(change))
            }
            Place::Several(_) => {
                Ok(self.update(tx, key, |row| change_columns(row, columns, &change))?.is_some())
            }
            Place::Part(split, group, _) => {
                let change = move |part: &mut Part<_>| change_part::<R, C, ()>(part, columns, &change);
                self.change_part_at_commit(tx, key, (split, group), Applied(change))
            }
        }
    }

    /// Changes the part of a row at the commit. False if there is no row with this key.
    #[inline]
    fn change_part_at_commit(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        (split, group): (&SplitRows<K, R, P>, usize),
        change: impl CommitTimeChange<Part<WordsOf<R>>>,
    ) -> Result<bool, Abort> {
        let tx = self.enter_to_write(tx)?;
        let mut change = Some(change);
        let changed = self.on_part(tx, key, group, |tx, part, record| {
            // A record's state says whether its row is there, and is not in the part's cache line.
            let seems_present = self.seems_present(tx, record);
            // SAFETY: as in `read_columns`.
            unsafe { part.change_part_at_commit(tx, split, seems_present, &mut change) }
        })?;
        Ok(changed.is_some())
    }

    /// Changes a column of a row at the commit.
    pub(crate) fn change_column<F: Plain>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        change: impl Fn(&mut F) + Send + 'static,
    ) -> Result<bool, Abort> {
        if const { Self::HAS_GROUPS } && !matches!(self.place_of(column), Place::Main) {
            return self.change_columns_at_commit(tx, key, column, change);
        }
        let change = move |row: &mut R| change(column.of_mut(row));
        self.change_main_at_commit(tx, key, Applied(change))
    }

    /// Adds an amount to a column of a row at the commit. False if there is no row with this key.
    #[inline]
    pub(crate) fn add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        addition: Addition<R, F>,
    ) -> Result<bool, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.add_to_main(tx, key, addition);
        }
        let column = addition.column();
        match self.place_of(column) {
            Place::Main => self.add_to_main(tx, key, addition),
            Place::Several(_) => self.change_at_commit(tx, key, addition),
            Place::Part(split, group, _) => {
                let addition = addition.to(column.in_part::<GroupsOf<R>>());
                self.change_part_at_commit(tx, key, (split, group), addition)
            }
        }
    }

    /// Subtracts an amount from a column at the commit if there is enough. `None` if there is no row with this key.
    pub(crate) fn subtract_if_enough<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<Option<bool>, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.subtract_main_if_enough(tx, key, column, amount);
        }
        match self.place_of(column) {
            Place::Main => self.subtract_main_if_enough(tx, key, column, amount),
            Place::Several(_) => {
                let Some(seen) = self.read(tx, key, |row| column.of(row))? else { return Ok(None) };
                if seen >= amount {
                    self.change_at_commit(tx, key, Addition::negative(column, amount))?;
                }
                Ok(Some(seen >= amount))
            }
            Place::Part(split, group, _) => {
                let tx = self.enter_to_write(tx)?;
                let column = column.in_part::<GroupsOf<R>>();
                self.on_part(tx, key, group, |tx, part, _| {
                    // SAFETY: as in `read_columns`.
                    unsafe { part.subtract_from_part(tx, split, column, amount) }
                })
            }
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Changes some columns of a row, and returns what the change returns. If the columns are of one
    /// [group](trait@hotrow_core::Value), the transaction does not conflict with others that touch other groups only.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn update_columns<C: Columns<R>, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<O, Abort> {
        match self.shared.update_columns(tx, key, columns, change)? {
            Some(output) => Ok(output),
            None => Err(self.shared.missing(key)),
        }
    }

    /// As [`update_columns`](Self::update_columns), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update_columns_if_present<C: Columns<R>, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.update_columns(tx, key, columns, change)
    }

    /// As [`apply`](Self::apply), for some columns of a row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn apply_columns<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<(), Abort> {
        let changed = self.shared.change_columns_at_commit(tx, key, columns, change)?;
        if changed { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// As [`apply_columns`](Self::apply_columns), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn apply_columns_if_present<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<bool, Abort> {
        self.shared.change_columns_at_commit(tx, key, columns, change)
    }
}
