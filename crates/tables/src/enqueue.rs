//! Operations on rows that are enqueued for waiting workers to steal ([`hotrow_core::graph`]).
//!
//! An operation looks its key up when it runs, so that the worker that runs it does this part of the work, too.
//!
//! All of this is out of line, so that a transaction without conflicts pays for one test only.

use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Columns, Deferred, Input, ObjectAccess, Protocol, Transaction, Value};
use hotrow_sync::hashing::KeyHashing;
use std::hash::BuildHasher;
use std::ptr::NonNull;

/// Message of a panic that cannot happen.
pub(crate) const ONCE: &str = "an operation that would block has not used its closure";

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// A hash that distinguishes operations on different keys of all tables.
    fn hash_of(&self, key: &K) -> u64 {
        KeyHashing::of_process().hash_one((self.meta.number(), key))
    }

    /// Enqueues work on rows of the table. `key` is that of the row, if it is known.
    ///
    /// # Safety
    ///
    /// `work` and its inputs may be used by any thread, as the result may.
    unsafe fn enqueue<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        by: By,
        key: Option<&K>,
        inputs: I,
        mut work: impl FnMut(&Self, &mut ObjectAccess<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let tx = tx.enter(&self.meta)?;
        let table = NonNull::from(self);
        let hash = key.map(|key| self.hash_of(key));
        // SAFETY: the table is freed through the epoch, and the attempt is pinned. The caller promises the rest.
        let enqueued = unsafe {
            tx.enqueue(&self.meta, by, hash, inputs, move |tx, inputs| work(table.as_ref(), tx, inputs))
        };
        if hash.is_none() {
            // Later operations may be on the same key.
            tx.keep_in_turn(&self.meta);
        }
        enqueued
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_read<O: Send + Sync + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let mut look = Some(look);
        // SAFETY: keys and rows are `Send` and `Sync`. The bounds say the same of the closure and its result.
        unsafe {
            self.enqueue(tx, By::Anybody, Some(&key.clone()), (), move |table, tx, ()| {
                table.read(tx, &key, |row| look.take().expect(ONCE)(row))
            })
        }
    }

    /// The workers that may run a change of a row. A change that moves entries of secondary indexes also changes
    /// their leaves, so only the owner runs it.
    fn changes_by(&self) -> By {
        if self.moving_secondaries().next().is_some() { By::Owner } else { By::Anybody }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_update<I, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I::Value) -> O + Send + 'static,
    ) -> Result<Deferred<Option<O>>, Abort>
    where
        I: Input<Value: Send> + Send,
        O: Send + Sync + 'static,
    {
        let mut change = Some(change);
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(tx, self.changes_by(), Some(&key.clone()), input, move |table, tx, input| {
                table.update(tx, &key, |row| change.take().expect(ONCE)(row, input))
            })
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_read_columns<C>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        columns: C,
    ) -> Result<Deferred<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Send + Sync + 'static> + Send + 'static,
    {
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(tx, By::Anybody, Some(&key.clone()), (), move |table, tx, ()| {
                table.read_columns(tx, &key, columns)
            })
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_update_columns<C, I, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        columns: C,
        input: I,
        change: impl FnOnce(&mut C::Values, I::Value) -> O + Send + 'static,
    ) -> Result<Deferred<Option<O>>, Abort>
    where
        C: Columns<R> + Send + 'static,
        I: Input<Value: Send> + Send,
        O: Send + Sync + 'static,
    {
        let mut change = Some(change);
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(tx, self.changes_by(), Some(&key.clone()), input, move |table, tx, input| {
                table.update_columns(tx, &key, columns, |values| change.take().expect(ONCE)(values, input))
            })
        }
    }

    /// Enqueues one of several changes that also update a value, which each passes on to the next.
    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_fold<A, B, I>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        inputs: I,
        change: impl Fn(&mut A, &mut R, B) + Send + 'static,
    ) -> Result<Deferred<A>, Abort>
    where
        A: Send + Sync + 'static,
        I: Input<Value = (A, B)> + Send,
    {
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(
                tx,
                self.changes_by(),
                Some(&key.clone()),
                inputs,
                move |table, tx, (mut sum, input)| {
                    table.update(tx, &key, |row| change(&mut sum, row, input))?;
                    Ok(sum)
                },
            )
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_insert<I: Input<Value = (K, R)> + Send>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: Option<&K>,
        inputs: I,
    ) -> Result<Deferred<bool>, Abort> {
        // The keys that one transaction inserts are mostly neighbours. If several workers inserted them, their leaf
        // would move from one worker's cache to the next.
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(tx, By::Owner, key, inputs, |table, tx, (key, row)| table.insert(tx, key, row))
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn enqueue_delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
    ) -> Result<Deferred<bool>, Abort> {
        // SAFETY: as in `enqueue_read`.
        unsafe {
            self.enqueue(tx, By::Owner, Some(&key.clone()), (), move |table, tx, ()| table.delete(tx, &key))
        }
    }
}
