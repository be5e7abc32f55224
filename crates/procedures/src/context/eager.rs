//! The eager context: each operation runs at once.

use crate::procedure::Context;
use crate::scan::Scan;
use crate::state::{self, OperationHook};
use hotrow_core::{Abort, Protocol, Transaction, Value};
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
        O::run((operation, input), inside::shared(database.table_of(table)), tx, target, ())
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
            O::run(
                (operation.clone(), input.clone()),
                inside::shared(database.table_of(table)),
                tx,
                key,
                passed,
            )
        })
    }

    #[inline(always)]
    fn visit<A: Data, S: Scan<A> + Send>(&mut self, scan: S, range: KeyRange<S::Key>) -> Result<A, Abort> {
        let (database, tx) = self.arrival();
        scan.run(database, tx, range)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Operations, Procedures};
    use hotrow_core::Engine;
    use hotrow_protocols::Occ;
    use hotrow_tables::Direction;
    use std::cell::Cell;
    use std::ops::ControlFlow;

    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
    }

    /// Returns the result of an operation, and asserts that the hook was called once before it.
    fn hooked<O>(operation: Result<O, Abort>) -> O {
        assert_eq!(CALLS.take(), 1);
        operation.expect("no other transaction conflicts")
    }

    #[test]
    fn the_hook_is_called_once_before_every_operation() {
        let engine = Engine::<Occ>::new();
        let database = Database::on(&engine);
        let mut builder = database.table::<u64, u64>("numbers");
        let index = builder.secondary("halves", |_, row| row / 2);
        let table = builder.create().unwrap();
        let (table, index) = (table.reference(), index.reference());
        database.before_operations(|| CALLS.set(CALLS.get() + 1));
        let mut worker = engine.worker().unwrap();
        let committed = worker.transact(|tx| {
            let cx = &mut Eager::new(&database, tx);
            cx.prefetch(table, [1, 2].into_iter());
            assert!(CALLS.take() == 0, "a prefetch is only a hint");
            assert!(hooked(cx.insert(table, 1, 10)));
            assert!(hooked(cx.insert_grouped(table, 0, 2, 20)));
            assert!(hooked(cx.replace(table, 1, 11)));
            assert_eq!(hooked(cx.read(table, 1, |row| *row)), Some(11));
            assert_eq!(hooked(cx.update(table, 1, 5, |row, more| *row += more)), Some(()));
            hooked(cx.commute(table, 1, 4, |row, more| *row += more));
            let all = KeyRange::from(0..=9);
            let sum = |sum: &mut u64, _: &u64, row: &u64| {
                *sum += row;
                ControlFlow::Continue(())
            };
            assert_eq!(hooked(cx.scan(table, all, Direction::Ascending, 0, sum)), 40);
            let tens = KeyRange::from(10..=10);
            assert_eq!(hooked(cx.scan_index(index, tens, Direction::Ascending, 0, sum)), 3);
            assert!(hooked(cx.delete(table, 2)));
            let add = |sum: &mut u64, row: &mut u64, more: u64| *sum += *row + more;
            assert_eq!(hooked(cx.update_each(table, Some(1), 5, 0, add)), 25);
            assert_eq!(hooked(cx.take_first(table, 0, KeyRange::from(0..=9))), Some(1));
            Ok(())
        });
        committed.expect("no other transaction conflicts");
        assert!(CALLS.take() == 0, "no call before the commit");
    }
}
