//! The calls of the typed tables: the operations of one table, whatever its type of keys.

use super::keys::{BorrowedKey, BytesKey, WordKey};
use super::row::Row;
use crate::errors::{KeyExists, MissingRow};
use crate::index::Direction;
use crate::key::{AsKey, Key, KeyBounds};
use crate::table::Table;
use hotrow_core::{Abort, ContextAccess, Misuse, Protocol, Transaction};
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};

/// A type of keys of erased tables.
pub(super) trait ErasedKey: Key {
    /// The form by which rows are looked up.
    type Form: AsKey<Self> + Debug + ?Sized;

    /// Calls a function with the form of a key, which is this type's if it has the right length.
    fn with<R>(key: &[u8], use_form: impl FnOnce(&Self::Form) -> R) -> Option<R>;

    /// Makes a key; `None` if its length is wrong.
    fn make(key: &[u8]) -> Option<Self>;

    /// Scans a range.
    fn scan<P: Protocol>(
        table: &Table<Self, Row, P>,
        tx: &mut Transaction<'_, P>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort>;
}

impl ErasedKey for WordKey {
    type Form = Self;

    #[inline(always)]
    fn with<R>(key: &[u8], use_form: impl FnOnce(&Self) -> R) -> Option<R> {
        Some(use_form(&Self::new(key)?))
    }

    #[inline(always)]
    fn make(key: &[u8]) -> Option<Self> {
        Self::new(key)
    }

    fn scan<P: Protocol>(
        table: &Table<Self, Row, P>,
        tx: &mut Transaction<'_, P>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        scan_by(table, tx, Self::range(low, high), direction, &mut |key, row| visit(&key.bytes(), row))
    }
}

impl ErasedKey for BytesKey {
    type Form = BorrowedKey;

    #[inline(always)]
    fn with<R>(key: &[u8], use_form: impl FnOnce(&BorrowedKey) -> R) -> Option<R> {
        Some(use_form(BorrowedKey::new(key)))
    }

    #[inline(always)]
    fn make(key: &[u8]) -> Option<Self> {
        Some(Self::new(key))
    }

    fn scan<P: Protocol>(
        table: &Table<Self, Row, P>,
        tx: &mut Transaction<'_, P>,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let range = (low.map(BorrowedKey::new), high.map(BorrowedKey::new));
        scan_by(table, tx, range, direction, &mut |key, row| visit(key.as_ref(), row))
    }
}

/// As [`Table::scan`], through the function that is compiled once for all visitors.
fn scan_by<K: Key, P: Protocol>(
    table: &Table<K, Row, P>,
    tx: &mut Transaction<'_, P>,
    range: impl KeyBounds<K>,
    direction: Direction,
    visit: &mut dyn FnMut(&K, &Row) -> ControlFlow<()>,
) -> Result<(), Abort> {
    table.shared.scan_by(tx.enter(&table.shared.meta)?, range.images(), direction, visit)
}

/// A table in a transaction.
pub(super) struct Calls<'t, 'w, K: ErasedKey, P: Protocol> {
    pub(super) table: &'t Table<K, Row, P>,
    pub(super) tx: &'t mut Transaction<'w, P>,
}

impl<K: ErasedKey, P: Protocol> Calls<'_, '_, K, P> {
    /// Reads a row. False if there is none with this key.
    #[inline(always)]
    pub(super) fn read(self, key: &[u8], look: &mut dyn FnMut(&Row)) -> Result<bool, Abort> {
        let Self { table, tx } = self;
        match K::with(key, |key| table.read(tx, key, look)) {
            Some(found) => Ok(found?.is_some()),
            None => Err(wrong_length(table, tx, key)),
        }
    }

    /// Changes a row. False if there is none with this key.
    #[inline(always)]
    pub(super) fn update(self, key: &[u8], change: &mut dyn FnMut(&mut Row)) -> Result<bool, Abort> {
        let Self { table, tx } = self;
        match K::with(key, |key| table.update_if_present(tx, key, change)) {
            Some(found) => Ok(found?.is_some()),
            None => Err(wrong_length(table, tx, key)),
        }
    }

    /// Inserts a row. False, and nothing changed, if the key exists.
    #[inline(always)]
    pub(super) fn insert(self, key: &[u8], row: Row) -> Result<bool, Abort> {
        let Self { table, tx } = self;
        match K::make(key) {
            Some(key) => table.insert_if_absent(tx, key, row),
            None => Err(wrong_length(table, tx, key)),
        }
    }

    /// Replaces a row without reading it. False, and nothing changed, if there is none with this key.
    #[inline(always)]
    pub(super) fn replace(self, key: &[u8], row: Row) -> Result<bool, Abort> {
        let Self { table, tx } = self;
        match K::with(key, |key| table.replace_if_present(tx, key, row)) {
            Some(found) => found,
            None => Err(wrong_length(table, tx, key)),
        }
    }

    /// Inserts a row, or replaces the one with this key. True if it was inserted.
    #[inline(always)]
    pub(super) fn upsert(self, key: &[u8], row: Row) -> Result<bool, Abort> {
        // Not `Table::upsert`, which replaces by the key itself: one more copy of the code for each protocol.
        let Self { table, tx } = self;
        loop {
            if (Calls { table, tx: &mut *tx }).replace(key, row.clone())? {
                return Ok(false);
            }
            if (Calls { table, tx: &mut *tx }).insert(key, row.clone())? {
                return Ok(true);
            }
        }
    }

    /// Deletes a row. False if there is none with this key.
    #[inline(always)]
    pub(super) fn delete(self, key: &[u8]) -> Result<bool, Abort> {
        let Self { table, tx } = self;
        match K::with(key, |key| table.delete(tx, key)) {
            Some(found) => found,
            None => Err(wrong_length(table, tx, key)),
        }
    }

    /// Visits the rows of a range.
    #[inline(always)]
    pub(super) fn scan(
        self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        K::scan(self.table, self.tx, range, direction, visit)
    }

    /// The error of an operation that needs the row of a key.
    pub(super) fn missing(self, key: &[u8]) -> Abort {
        MissingRow { table: self.table.name().to_owned(), key: shown(key) }.into()
    }

    /// The error of an insertion under a key that exists.
    pub(super) fn exists(self, key: &[u8]) -> Abort {
        KeyExists { table: self.table.name().to_owned(), key: shown(key) }.into()
    }
}

/// A key in messages.
fn shown(key: &[u8]) -> String {
    format!("{:?}", BorrowedKey::new(key))
}

/// Ends the attempt because a key has a length that the table does not have.
#[cold]
#[inline(never)]
fn wrong_length<K: ErasedKey, P: Protocol>(
    table: &Table<K, Row, P>,
    tx: &mut Transaction<'_, P>,
    key: &[u8],
) -> Abort {
    tx.misuse(length_misuse(table.name(), key))
}

fn length_misuse(table: &str, key: &[u8]) -> Misuse {
    let (bytes, length) = (WordKey::BYTES, key.len());
    Misuse::Unsupported(format!("keys of table {table} have {bytes} bytes, and {} has {length}", shown(key)))
}
