//! The transaction of an erased database, as its body gets it.

use super::array::Array;
use super::backend::{Body, Operations};
use super::row::Row;
use super::table::Table;
use crate::index::Direction;
use crate::key::KeyBounds;
use hotrow_core::{Abort, BoxedError, Error, WorkerId};
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// A transaction in progress. See [`Database::transact`](super::Database::transact).
///
/// Keys and rows are bytes: `&[u8]`, `&str`, arrays of bytes, vectors. An [`Abort`] means that the attempt cannot go on:
/// pass it up with `?`. A table of another database ends the transaction with
/// [`Misuse::ForeignObject`](hotrow_core::Misuse::ForeignObject).
pub struct Transaction<'t> {
    operations: &'t mut (dyn Operations + 't),
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, attempt) = (self.worker().number(), self.attempt_number());
        f.debug_struct("Transaction")
            .field("worker", &worker)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

impl<'t> Transaction<'t> {
    #[inline(always)]
    pub(super) fn new(operations: &'t mut (dyn Operations + 't)) -> Self {
        Self { operations }
    }

    /// The number of the worker that runs the transaction.
    pub fn worker(&self) -> WorkerId {
        self.operations.worker()
    }

    /// The number of aborted attempts of this transaction before this one.
    pub fn attempt_number(&self) -> u32 {
        self.operations.attempt_number()
    }

    /// Returns a copy of a row; `None` if there is none with this key (the transaction has then read its absence).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[inline]
    pub fn get(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Row>, Abort> {
        self.read_row(table, key.as_ref(), Row::clone)
    }

    /// Reads a row without copying it, unless it is short.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<O>(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        look: impl FnOnce(&[u8]) -> O,
    ) -> Result<Option<O>, Abort> {
        self.read_row(table, key.as_ref(), |row| look(row))
    }

    #[inline]
    fn read_row<O>(
        &mut self,
        table: &Table,
        key: &[u8],
        look: impl FnOnce(&Row) -> O,
    ) -> Result<Option<O>, Abort> {
        let (mut look, mut output) = (Some(look), None);
        self.operations.read(table, key, &mut |row| output = look.take().map(|look| look(row)))?;
        Ok(output)
    }

    /// Changes a row, and returns what the change returns.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`MissingRow`](super::MissingRow) if there is no row with this key.
    #[inline]
    pub fn update<O>(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut Row) -> O,
    ) -> Result<O, Abort> {
        let key = key.as_ref();
        match self.update_if_present(table, key, change)? {
            Some(output) => Ok(output),
            None => Err(self.operations.missing(table, key)),
        }
    }

    /// As [`update`](Self::update), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update_if_present<O>(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut Row) -> O,
    ) -> Result<Option<O>, Abort> {
        let (mut change, mut output) = (Some(change), None);
        let change = &mut |row: &mut Row| output = change.take().map(|change| change(row));
        self.operations.update(table, key.as_ref(), change)?;
        Ok(output)
    }

    /// Inserts a row.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`KeyExists`](super::KeyExists) if there is a row with this key.
    pub fn insert(&mut self, table: &Table, key: impl AsRef<[u8]>, row: impl Into<Row>) -> Result<(), Abort> {
        let key = key.as_ref();
        if self.operations.insert(table, key, row.into())? {
            Ok(())
        } else {
            Err(self.operations.exists(table, key))
        }
    }

    /// As [`insert`](Self::insert), but an existing row is no error: false, and nothing changed, if the key exists.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert_if_absent(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        row: impl Into<Row>,
    ) -> Result<bool, Abort> {
        self.operations.insert(table, key.as_ref(), row.into())
    }

    /// Replaces a row without reading it: a blind write. See [`Table::replace`](crate::Table::replace).
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn replace(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        row: impl Into<Row>,
    ) -> Result<(), Abort> {
        let key = key.as_ref();
        if self.operations.replace(table, key, row.into())? {
            Ok(())
        } else {
            Err(self.operations.missing(table, key))
        }
    }

    /// As [`replace`](Self::replace), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn replace_if_present(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        row: impl Into<Row>,
    ) -> Result<bool, Abort> {
        self.operations.replace(table, key.as_ref(), row.into())
    }

    /// Inserts a row, or [replaces](Self::replace) the one with this key. True if it was inserted.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn upsert(
        &mut self,
        table: &Table,
        key: impl AsRef<[u8]>,
        row: impl Into<Row>,
    ) -> Result<bool, Abort> {
        self.operations.upsert(table, key.as_ref(), row.into())
    }

    /// Deletes a row. False if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn delete(&mut self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool, Abort> {
        self.operations.delete(table, key.as_ref())
    }

    /// Visits the rows whose keys are in `range`, in the order of `direction`, until the visitor breaks. Keys have the order
    /// of their bytes. The bounds may be of any length, also for a table whose keys have eight bytes. See
    /// [`Table::scan`](crate::Table::scan).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A table with a hash index ends the transaction with
    /// [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported).
    pub fn scan(
        &mut self,
        table: &Table,
        range: impl KeyBounds<Vec<u8>>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let (low, high) = range.images();
        let bytes = |bound| Bound::map(bound, |image: &crate::key::Encoded<'_>| image.bytes());
        let range = (bytes(low.as_ref()), bytes(high.as_ref()));
        self.operations.scan(table, range, direction, &mut |key, row| visit(key, row))
    }

    /// Returns copies of the first `limit` rows of a range, with their keys.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn collect(
        &mut self,
        table: &Table,
        range: impl KeyBounds<Vec<u8>>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, Abort> {
        let mut rows = Vec::new();
        if limit > 0 {
            self.scan(table, range, direction, |key, row| {
                rows.push((key.to_vec(), Row::new(row)));
                if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(rows)
    }

    /// Returns an element of an array.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on. An index out of bounds ends the transaction with
    /// [`Misuse::OutOfBounds`](hotrow_core::Misuse::OutOfBounds).
    #[inline]
    pub fn get_word(&mut self, array: &Array, index: usize) -> Result<u64, Abort> {
        self.operations.get_word(array, index)
    }

    /// Replaces an element of an array without reading it.
    ///
    /// # Errors
    ///
    /// As [`get_word`](Self::get_word).
    #[inline]
    pub fn set_word(&mut self, array: &Array, index: usize, word: u64) -> Result<(), Abort> {
        self.operations.set_word(array, index, word)
    }

    /// Changes an element of an array, and returns what the change returns.
    ///
    /// # Errors
    ///
    /// As [`get_word`](Self::get_word).
    #[inline]
    pub fn update_word<O>(
        &mut self,
        array: &Array,
        index: usize,
        change: impl FnOnce(&mut u64) -> O,
    ) -> Result<O, Abort> {
        let (mut change, mut output) = (Some(change), None);
        let change = &mut |word: &mut u64| output = change.take().map(|change| change(word));
        self.operations.update_word(array, index, change)?;
        Ok(output.expect("every element can be changed"))
    }

    /// Rolls back with this reason unless `holds`. See [`Transaction::ensure`](hotrow_core::Transaction::ensure).
    ///
    /// # Errors
    ///
    /// [`Abort`] with the reason, if `holds` is false: pass it up with `?`.
    #[inline]
    pub fn ensure(&self, holds: bool, reason: impl Into<BoxedError>) -> Result<(), Abort> {
        if holds { Ok(()) } else { Err(Abort::because(reason)) }
    }

    /// Runs a part of the body that can fail alone: if it returns an error, all that it has written is undone, and the body
    /// may go on. See [`Transaction::savepoint`](hotrow_core::Transaction::savepoint).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on: pass it up with `?`. The part's own error is inside.
    pub fn savepoint<R, E>(
        &mut self,
        part: impl FnOnce(&mut Transaction<'_>) -> Result<R, E>,
    ) -> Result<Result<R, E>, Abort> {
        let (mut part, mut result) = (Some(part), None);
        self.operations.savepoint(&mut |operations| {
            let ended = result.insert(part.take().map(|part| part(&mut Transaction::new(operations))));
            matches!(ended, Some(Ok(_)))
        })?;
        Ok(result.flatten().expect("the part has run, once"))
    }

    /// Runs the second part if the first one fails, which is then undone.
    ///
    /// # Errors
    ///
    /// The error of the second part; or [`Abort`] when the attempt cannot go on.
    pub fn or_else<R, E: From<Abort>>(
        &mut self,
        first: impl FnOnce(&mut Transaction<'_>) -> Result<R, E>,
        second: impl FnOnce(&mut Transaction<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        match self.savepoint(first)? {
            Ok(result) => Ok(result),
            Err(_) => second(self),
        }
    }
}

/// Runs a transaction whose body returns nothing, and returns what the body of the caller has returned last.
#[inline]
pub(super) fn keep_result<R>(
    mut body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    run: impl FnOnce(&mut Body<'_>) -> Result<(), Error>,
) -> Result<R, Error> {
    let mut result = None;
    run(&mut |operations| {
        result = Some(body(&mut Transaction::new(operations))?);
        Ok(())
    })?;
    Ok(result.expect("the body of the attempt that has committed has returned a result"))
}
