//! The table as users see it.

use crate::database::Database;
use crate::index::Direction;
use crate::key::{AsKey, Key, KeyBounds};
use crate::record::last_byte_of;
use crate::reference::TableRef;
use crate::storage::Shared;
use hotrow_core::{Abort, Columns, Engine, EpochBox, Error, Protocol, Transaction, Value, Whole, Worker};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use std::fmt;
use std::ops::ControlFlow;

/// A table: rows of type `R` under keys of type `K`.
///
/// It is a handle: a clone refers to the same table. Every operation may fail with an [`Abort`]: pass it up with `?`.
///
/// An operation that finds no row where it needs one, or one where it would insert, rolls the transaction back:
/// [`MissingRow`](crate::MissingRow), [`KeyExists`](crate::KeyExists). The forms with `_if_` in their names tell it instead.
///
/// ```
/// use hotrow_tables::Database;
///
/// let db = Database::open()?;
/// let seats = db.table::<u32, u64>("seats").hash(100).create()?;
/// let sold = db.transact(|tx| {
///     seats.insert(tx, 7, 1_001)?;
///     let again = seats.insert_if_absent(tx, 7, 1_002)?;
///     Ok((again, seats.get(tx, &7)?, seats.get(tx, &8)?))
/// })?;
/// assert_eq!(sold, (false, Some(1_001), None));
///
/// let refused = db.transact(|tx| seats.insert(tx, 7, 1_002)).unwrap_err();
/// assert_eq!(refused.to_string(), "rolled back: seats has a row with key 7 already");
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct Table<K: Key, R: Value, P: Protocol = Occ> {
    pub(crate) shared: Arc<EpochBox<Shared<K, R, P>>>,
    pub(crate) engine: Engine<P>,
}

impl<K: Key, R: Value, P: Protocol> Clone for Table<K, R, P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), engine: self.engine.clone() }
    }
}

impl<K: Key, R: Value, P: Protocol> fmt::Debug for Table<K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The memory use of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// The number of rows.
    pub rows: u64,
    /// Bytes of keys and rows, as large as their types, and what keys own on the heap (without the memory that boxed rows
    /// own elsewhere).
    pub payload_bytes: u64,
    /// Bytes of the index and of secondary indexes, without their records.
    pub index_bytes: u64,
}

impl std::ops::Add for TableMemory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// The table's reference, by which procedures name it.
    pub fn reference(&self) -> TableRef<K, R> {
        TableRef::new(*self.shared.part.get().expect("a table that is made is in its database"))
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.shared.meta.name()
    }

    /// True if the table was declared [immutable](crate::TableBuilder::immutable).
    pub fn is_immutable(&self) -> bool {
        self.shared.immutable
    }

    /// Returns a copy of a row; `None` if there is none with this key (the transaction has then read its absence).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[inline]
    pub fn get(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<R>, Abort> {
        self.shared.read(tx, key, Whole, R::clone)
    }

    /// Reads a row. A boxed row is not copied. An inline row is, under protocols whose readers hold no lock.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.read(tx, key, Whole, look)
    }

    /// Reads some columns of a row: `column_of!(Stock, quantity)`, or a tuple of columns. Of an inline row only their words
    /// are copied, and only their cache lines fetched.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read_columns<C: Columns<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Option<C::Values>, Abort> {
        self.shared.read(tx, key, columns, |values| *values)
    }

    /// Asks the processor to fetch rows that will be read or changed soon. It is a hint: it changes no result, and
    /// the transaction does not depend on it. It pays off from about three keys on, if the table is larger than the
    /// processor's cache. Tables with an ordered index ignore it.
    #[inline]
    pub fn prefetch(&self, tx: &Transaction<'_, P>, keys: impl Iterator<Item = K> + Clone) {
        self.shared.fetch_ahead(tx, keys, usize::MAX);
    }

    /// As [`prefetch`](Self::prefetch), for rows of which only these columns will be read.
    #[inline]
    pub fn prefetch_columns(
        &self,
        tx: &Transaction<'_, P>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        self.shared.fetch_ahead(tx, keys, last_byte_of(columns));
    }

    /// Changes a row, and returns what the change returns.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`MissingRow`](crate::MissingRow) if there is no row with this key.
    #[inline]
    pub fn update<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<O, Abort> {
        self.update_if_present(tx, key, change)?.ok_or_else(|| self.shared.missing(key))
    }

    /// As [`update`](Self::update), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update_if_present<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.update(tx, key, Whole, change)
    }

    /// Changes some columns of a row, and returns what the change returns. The transaction does not conflict with others that touch
    /// other [groups](trait@hotrow_core::Value) of columns only.
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
        self.update_columns_if_present(tx, key, columns, change)?.ok_or_else(|| self.shared.missing(key))
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
        self.shared.update(tx, key, columns, change)
    }

    /// Inserts a row.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`KeyExists`](crate::KeyExists) if there is a row with this key.
    #[inline]
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<(), Abort> {
        match self.shared.insert_unless_found(tx, key, row)? {
            None => Ok(()),
            // SAFETY: found under the attempt's pinned epoch.
            Some(existing) => Err(self.shared.exists(unsafe { existing.as_ref() }).into()),
        }
    }

    /// As [`insert`](Self::insert), but an existing row is no error: false, and nothing changed, if the key exists. (Another
    /// row's key of a [unique index](crate::UniqueIndex) is an error nevertheless.)
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn insert_if_absent(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        self.shared.insert(tx, key, row)
    }

    /// Replaces a row without reading it: a blind write.
    ///
    /// The transaction then depends on the existence of the row and not on its value. So two transactions that
    /// replace the same row need not abort each other, and a boxed row is not copied. (A table with secondary indexes
    /// still reads the row, because it must find the old entries.)
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<(), Abort> {
        if self.shared.replace(tx, key, row)? { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// As [`replace`](Self::replace), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn replace_if_present(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        self.shared.replace(tx, key, row)
    }

    /// Inserts a row, or [replaces](Self::replace) the one with this key. True if it was inserted.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn upsert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        loop {
            if self.shared.replace(tx, &key, row.clone())? {
                return Ok(false);
            }
            if self.shared.insert(tx, key.clone(), row.clone())? {
                return Ok(true);
            }
        }
    }

    /// Deletes a row. False if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn delete(&self, tx: &mut Transaction<'_, P>, key: &(impl AsKey<K> + ?Sized)) -> Result<bool, Abort> {
        self.shared.delete(tx, key)
    }

    /// Visits the rows whose keys are in `range`, in the order of `direction`, until the visitor breaks. The scan
    /// includes the transaction's own changes. The transaction has then read the visited rows, and the absence of all
    /// other keys up to the point where the scan ended.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A table with a hash index ends the transaction with
    /// [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported).
    #[inline]
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.shared.scan_images(tx, range.images(), direction, visit)
    }

    /// Returns copies of the first `limit` rows of a range.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        self.shared.collect(tx, range.images(), direction, limit)
    }

    /// Returns the number of rows in a range.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn count(&self, tx: &mut Transaction<'_, P>, range: impl KeyBounds<K>) -> Result<usize, Abort> {
        self.shared.count(tx, range.images())
    }

    /// Returns the table's memory use. It counts all rows, so it takes time.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn memory(&self, worker: &mut Worker<P>) -> Result<TableMemory, Error> {
        let mut key_bytes: usize = 0;
        let rows = self.for_each(worker, |key, _| key_bytes = key_bytes.wrapping_add(key.heap_bytes()))?;
        Ok(TableMemory {
            rows,
            payload_bytes: rows * (size_of::<K>() + size_of::<R>()) as u64 + key_bytes as u64,
            index_bytes: self.shared.memory_bytes() as u64,
        })
    }
}

impl<P: Protocol> Database<P> {
    /// Returns the table to which a reference refers.
    ///
    /// # Panics
    ///
    /// If the reference is another database's.
    #[inline(always)]
    pub fn table_of<K: Key, R: Value>(&self, table: TableRef<K, R>) -> &Table<K, R, P> {
        // SAFETY: only tables make such references, with their own types, and only once they are in a catalog.
        unsafe { self.catalog().part(table.part) }
    }
}
