//! The eager context: each operation runs at once.

use crate::procedure::Context;
use crate::scan::{LocalRanges, Scan};
use crate::state::{self, OperationHook};
use hotrow_core::{Abort, Protocol, Transaction, Value};
use hotrow_tables::operations::Local;
use hotrow_tables::{Data, Database, Key, KeyRange, Operation, TableRef, inside};

/// Runs each operation at once, in one attempt at a transaction. Values are plain values, so a procedure compiles to
/// the same code as one written by hand.
pub struct Eager<'a, 'w, P: Protocol> {
    database: &'a Database<P>,
    tx: &'a mut Transaction<'w, P>,
    hook: Option<&'a OperationHook>,
}

impl<'a, 'w, P: Protocol> Eager<'a, 'w, P> {
    /// A context for an attempt in progress, so that procedures and closures can be mixed.
    #[inline]
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { database, tx, hook: state::hook_of(database) }
    }

    pub(super) fn database(&self) -> &'a Database<P> {
        self.database
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction<'w, P> {
        self.tx
    }

    /// Calls the database's [hook](crate::Procedures::before_operations), and returns the database and the transaction. Operations reach their
    /// tables in no other way, so the hook hears of every operation.
    #[inline(always)]
    pub(super) fn arrival(&mut self) -> (&'a Database<P>, &mut Transaction<'w, P>) {
        if let Some(hook) = self.hook {
            call(hook);
        }
        (self.database, self.tx)
    }
}

/// Kept out of line, so that a database without a hook pays for one comparison.
#[cold]
#[inline(never)]
fn call(hook: &OperationHook) {
    hook();
}

impl<P: Protocol> Context for Eager<'_, '_, P> {
    type Val<T: Data> = T;
    type Stop = Abort;

    #[inline(always)]
    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: O::Target,
        input: I,
    ) -> Result<O::Output, Abort>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        let (database, tx) = self.arrival();
        let rows = &mut Local::new(inside::shared(database.table_of(table)), tx);
        O::run((operation, input), rows, target, ())
    }

    #[inline(always)]
    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Keys,
        input: I,
        initial: A,
    ) -> Result<A, Abort>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>,
    {
        keys.into_iter().try_fold(initial, |passed, key| {
            let (database, tx) = self.arrival();
            let rows = &mut Local::new(inside::shared(database.table_of(table)), tx);
            O::run((operation.clone(), input.clone()), rows, key, passed)
        })
    }

    #[inline(always)]
    fn visit<A: Data, S: Scan<A> + Send>(&mut self, scan: S, range: KeyRange<S::Key>) -> Result<A, Abort> {
        let (database, tx) = self.arrival();
        scan.run(&mut LocalRanges { database, tx }, range)
    }

    #[inline(always)]
    fn fetch_ahead<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        bytes: usize,
    ) {
        inside::shared(self.database.table_of(table)).fetch_ahead(self.tx, keys, bytes);
    }

    #[inline(always)]
    fn map<A: Data, B: Data>(&mut self, value: A, compute: impl FnOnce(A) -> B + Send + 'static) -> B {
        compute(value)
    }

    #[inline(always)]
    fn zip<A: Data, B: Data>(&mut self, first: A, second: B) -> (A, B) {
        (first, second)
    }

    #[inline(always)]
    fn force<T: Data>(&mut self, value: T) -> Result<T, Abort> {
        Ok(value)
    }

    #[inline(always)]
    fn require(&mut self, holds: bool) -> Result<(), Abort> {
        if holds { Ok(()) } else { Err(Abort::rollback()) }
    }
}
