//! Operations on rows that are enqueued for waiting workers to steal ([`hotrow_core::graph`]).
//!
//! An operation looks its key up when it runs, so that the worker that runs it does this part of the work, too.
//!
//! All of this is out of line, so that a transaction without conflicts pays for one test only.

use crate::data::Data;
use crate::key::Key;
use crate::operations::{Later, Local, Operation, Target};
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, ObjectAccess, Protocol, Transaction, Value};
use hotrow_sync::hashing::KeyHashing;
use std::hash::BuildHasher;
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Enqueues an operation, with its target, the value passed on to it, and its input.
    #[cold]
    #[inline(never)]
    pub fn enqueue<I: Data, A: Data, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        operation: O,
        inputs: (Later<O::Target>, Later<A>, Later<I>),
    ) -> Result<Deferred<O::Output>, Abort>
    where
        O: Operation<K, R, I, A, Output: Data> + Send,
    {
        let tx = tx.enter(&self.meta)?;
        let hash = match &inputs.0 {
            Later::Known(target) => target.key().map(|key| self.hash_of(key)),
            Later::Deferred(_) => None,
        };
        let by = self.may_be_run_by(&operation);
        let (table, mut operation) = (NonNull::from(self), Some(operation));
        let work = move |tx: &mut ObjectAccess<'_, P>, (target, passed, input)| {
            // SAFETY: the table is freed through the epoch, and the attempt is pinned.
            let table = unsafe { table.as_ref() };
            let mut held = operation.take().map(|operation| (operation, input));
            let output = O::run_recorded(&mut held, &mut Local::new(table, tx), target, passed);
            operation = held.map(|(operation, _)| operation);
            output
        };
        // SAFETY: the table is `Sync`, the operation is `Send`, and the values that it takes and returns are `Send` and `Sync`: the bounds
        // say so. The table stays as said above.
        let enqueued = unsafe { tx.stealing_mut().enqueue(&self.meta, by, hash, inputs, work) };
        if hash.is_none() {
            // Later operations may be on the same key.
            tx.stealing_mut().keep_in_turn(&self.meta);
        }
        enqueued
    }

    /// A hash that distinguishes operations on different keys of all tables.
    fn hash_of(&self, key: &K) -> u64 {
        KeyHashing::of_process().hash_one((self.meta.number(), key))
    }

    /// The workers that may run an operation. A change that moves entries of secondary indexes also changes their leaves, so only the
    /// owner runs it.
    fn may_be_run_by<I: 'static, A: 'static, O>(&self, operation: &O) -> By
    where
        O: Operation<K, R, I, A>,
    {
        let moves_entries = || self.companions.indexes.any_moves();
        match O::BY {
            Some(By::Anybody) if operation.kind(self).is_read() || !moves_entries() => By::Anybody,
            _ => By::Owner,
        }
    }
}
