//! Operations on rows that are drawn for others to run ([`hotrow_core::graph`]).
//!
//! An operation looks its key up when it runs, and so whoever runs it does: that is a good part of its work.
//!
//! All of it is out of line, so that a transaction which is in nobody's way pays for a test and nothing more.

use crate::key::Key;
use crate::storage::Shared;
use foldhash::fast::FixedState;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction, Value};
use std::hash::BuildHasher;
use std::ptr::NonNull;

type Tx<'w, P> = Transaction<'w, P>;

const ONCE: &str = "an operation that has been put off has done nothing";

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// What tells operations on one key from those on others.
    fn hash_of(&self, key: &K) -> u64 {
        FixedState::default().hash_one((self.label.number(), key))
    }

    /// Draws work on rows of the table.
    ///
    /// # Safety
    ///
    /// `work` and its inputs may be used by any thread, as the result may.
    unsafe fn draw<I: Input, O: 'static>(
        &self,
        tx: &mut Tx<'_, P>,
        by: By,
        key: Option<&K>,
        inputs: I,
        mut work: impl FnMut(&Self, &mut Tx<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        tx.enter(&self.label)?;
        let table = NonNull::from(self);
        let hash = key.map(|key| self.hash_of(key));
        // SAFETY: the table is freed through the epoch, and the attempt is pinned; the rest is the caller's promise.
        unsafe { tx.draw(&self.label, by, hash, inputs, move |tx, inputs| work(table.as_ref(), tx, inputs)) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn draw_read<O: Send + Sync + 'static>(
        &self,
        tx: &mut Tx<'_, P>,
        key: K,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let mut look = Some(look);
        // SAFETY: keys and rows are `Send` and `Sync`, and so are the others, as the bounds say.
        unsafe {
            self.draw(tx, By::Anybody, Some(&key.clone()), (), move |table, tx, ()| {
                table.read(tx, &key, |row| look.take().expect(ONCE)(row))
            })
        }
    }

    /// Who may run changes of rows. Where entries of secondary indexes move with them, leaves are changed, too.
    fn changes_by(&self) -> By {
        if self.moving_secondaries().next().is_some() { By::Owner } else { By::Anybody }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn draw_update<I, O>(
        &self,
        tx: &mut Tx<'_, P>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I::Value) -> O + Send + 'static,
    ) -> Result<Deferred<Option<O>>, Abort>
    where
        I: Input<Value: Send> + Send,
        O: Send + Sync + 'static,
    {
        let mut change = Some(change);
        // SAFETY: as in `draw_read`.
        unsafe {
            self.draw(tx, self.changes_by(), Some(&key.clone()), input, move |table, tx, input| {
                table.update(tx, &key, |row| change.take().expect(ONCE)(row, input))
            })
        }
    }

    /// Draws one of several changes that also change a value, which goes from one to the next.
    #[cold]
    #[inline(never)]
    pub(crate) fn draw_update_and<A, B, I>(
        &self,
        tx: &mut Tx<'_, P>,
        key: K,
        inputs: I,
        change: impl Fn(&mut A, &mut R, B) + Send + 'static,
    ) -> Result<Deferred<A>, Abort>
    where
        A: Send + Sync + 'static,
        I: Input<Value = (A, B)> + Send,
    {
        // SAFETY: as in `draw_read`.
        unsafe {
            self.draw(
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
    pub(crate) fn draw_insert<I: Input<Value = (K, R)> + Send>(
        &self,
        tx: &mut Tx<'_, P>,
        key: Option<&K>,
        inputs: I,
    ) -> Result<Deferred<bool>, Abort> {
        // Keys that one transaction inserts lie beside each other, mostly: their leaf would go from one worker to the next.
        // SAFETY: as in `draw_read`.
        let drawn = unsafe {
            self.draw(tx, By::Owner, key, inputs, |table, tx, (key, row)| table.insert(tx, key, row))
        };
        if key.is_none() {
            // What comes later may be on that key.
            tx.keep_in_turn(&self.label);
        }
        drawn
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn draw_delete(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Deferred<bool>, Abort> {
        // SAFETY: as in `draw_read`.
        unsafe {
            self.draw(tx, By::Owner, Some(&key.clone()), (), move |table, tx, ()| table.delete(tx, &key))
        }
    }
}
