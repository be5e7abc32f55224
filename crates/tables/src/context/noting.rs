//! Operations that note what was there before, so that pieces that have committed can be taken back.

use super::Eager;
use crate::database::Database;
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::reference::TableRef;
use hotrow_core::{Abort, Columns, Protocol, Transaction, Value};
use std::ops::ControlFlow;

/// An operation that writes what was there before another one.
type Step<P> = Box<dyn Fn(&mut Eager<'_, '_, P>) -> Result<(), Abort>>;

/// The state before a transaction's pieces, as operations that bring it back.
pub(crate) struct Former<P: Protocol> {
    steps: Vec<Step<P>>,
    /// The number of steps for pieces that have committed.
    committed: usize,
}

impl<P: Protocol> Former<P> {
    pub(crate) fn new() -> Self {
        Self { steps: Vec::new(), committed: 0 }
    }

    /// Begins an attempt at a piece: forgets what the last one has noted, if it has not committed.
    pub(crate) fn begin_attempt(&mut self) -> &mut Self {
        self.steps.truncate(self.committed);
        self
    }

    /// The piece has committed.
    pub(crate) fn commit_piece(&mut self) {
        self.committed = self.steps.len();
    }

    fn note(&mut self, step: impl Fn(&mut Eager<'_, '_, P>) -> Result<(), Abort> + 'static) {
        self.steps.push(Box::new(step));
    }

    /// Writes all that was there before, what was changed last first.
    pub(crate) fn write(&self, database: &Database<P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        let mut eager = Eager::new(database, tx);
        self.steps[..self.committed].iter().rev().try_for_each(|step| step(&mut eager))
    }
}

/// An eager context whose changes are noted, if they may have to be taken back. An operation that changes without reading reads then.
pub(crate) struct Noting<'a, 'w, P: Protocol> {
    pub(crate) eager: Eager<'a, 'w, P>,
    pub(crate) former: Option<&'a mut Former<P>>,
    /// True if commutative changes are executed as such, unless they are noted, and not as updates.
    pub(crate) commutes: bool,
}

impl<P: Protocol> Noting<'_, '_, P> {
    pub(crate) fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort> {
        let Some(former) = &mut self.former else { return self.eager.update(table, key, input, change) };
        let updated = self.eager.update(table, key.clone(), input, |row, input| {
            let before = row.clone();
            (change(row, input), before)
        })?;
        Ok(updated.map(|(output, before)| {
            former.note(move |eager| {
                let restore = |row: &mut R, before| *row = before;
                eager.update(table, key.clone(), before.clone(), restore).map(drop)
            });
            output
        }))
    }

    pub(crate) fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        columns: C,
        input: I,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let Some(former) = &mut self.former else {
            return self.eager.update_columns(table, key, columns, input, change);
        };
        let updated = self.eager.update_columns(table, key.clone(), columns, input, |values, input| {
            let before = values.clone();
            (change(values, input), before)
        })?;
        Ok(updated.map(|(output, before)| {
            former.note(move |eager| {
                let restore = |values: &mut C::Values, before| *values = before;
                eager.update_columns(table, key.clone(), columns, before.clone(), restore).map(drop)
            });
            output
        }))
    }

    pub(crate) fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Keys,
        input: I,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<A, Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        if self.former.is_none() {
            return self.eager.update_each(table, keys, input, initial, change);
        }
        keys.into_iter().try_fold(initial, |sum, key| {
            let (mut next, change) = (sum.clone(), change.clone());
            let updated = self.update(table, key, input.clone(), move |row, input| {
                change(&mut next, row, input);
                next
            })?;
            Ok(updated.unwrap_or(sum))
        })
    }

    pub(crate) fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        if self.commutes && self.former.is_none() {
            return self.eager.commute(table, key, input, change);
        }
        self.update(table, key, input, change).map(drop)
    }

    pub(crate) fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        columns: C,
        input: I,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        if self.commutes && self.former.is_none() {
            return self.eager.commute_columns(table, key, columns, input, change);
        }
        self.update_columns(table, key, columns, input, change).map(drop)
    }

    pub(crate) fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        row: R,
    ) -> Result<bool, Abort> {
        if self.former.is_none() {
            return self.eager.replace(table, key, row);
        }
        Ok(self.update(table, key, row, |old: &mut R, row| *old = row)?.is_some())
    }

    pub(crate) fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        row: R,
    ) -> Result<bool, Abort> {
        let Some(former) = &mut self.former else { return self.eager.insert(table, key, row) };
        let inserted = self.eager.insert(table, key.clone(), row)?;
        if inserted {
            former.note(move |eager| eager.delete(table, key.clone()).map(drop));
        }
        Ok(inserted)
    }

    pub(crate) fn delete<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K) -> Result<bool, Abort> {
        let Some(former) = &mut self.former else { return self.eager.delete(table, key) };
        let row = self.eager.read(table, key.clone(), R::clone)?;
        let deleted = self.eager.delete(table, key.clone())?;
        if let (Some(row), true) = (row, deleted) {
            former.note(move |eager| eager.insert(table, key.clone(), row.clone()).map(drop));
        }
        Ok(deleted)
    }

    pub(crate) fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: KeyRange<K>,
    ) -> Result<Option<K>, Abort> {
        if self.former.is_none() {
            return self.eager.take_first(table, group, range);
        }
        let first = self.eager.scan(table, range, Direction::Ascending, None, |first, key: &K, _: &R| {
            *first = Some(key.clone());
            ControlFlow::Break(())
        })?;
        if let Some(key) = &first {
            self.delete(table, key.clone())?;
        }
        Ok(first)
    }
}
