//! The recording context: values may be known later, and operations run later.

use super::Eager;
use crate::procedure::Context;
use crate::scan::Scan;
use hotrow_core::graph::By;
use hotrow_core::{Abort, ContextAccess, Deferred, Input, Protocol, Transaction, Value};
use hotrow_tables::operations::{Later, Local, ONCE, are_empty};
use hotrow_tables::{Data, Database, Key, KeyRange, Operation, TableRef, inside};

/// Records operations as a graph ([`hotrow_core::operations`]), which runs in one of two ways. A value known now stays a plain value, so
/// that computing with it records nothing.
///
/// # In order
///
/// Under a protocol that [defers](Protocol::Deferral), each operation whose row is known is deferred until the transaction commits (drp
/// §5.1). One whose key is not known yet waits for it, and lines up later than the others. A scan and [`force`](Context::force) first run
/// all operations recorded so far, which makes the transaction wild (drp §6.2).
///
/// # By whoever is free
///
/// Under a protocol that lets others [steal](Protocol::Stealing) operations, each runs at once until one meets a lock that is not free,
/// or another transaction waits for this one. From then on operations are enqueued (stealdb §3). So workers share a transaction exactly
/// where it conflicts; elsewhere it runs as in the [eager](Eager) context.
///
/// The dependencies are those of the procedure's own values. Some operations first run everything enqueued so far, and then run at once:
/// one that anybody may run and whose key is not known yet, one on a range, and [`force`](Context::force). Operations after them are
/// enqueued again.
pub struct Recording<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
    in_order: bool,
}

impl<'a, 'w, P: Protocol> Recording<'a, 'w, P> {
    /// A context for an attempt in progress, which runs operations in order.
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { eager: Eager::new(database, tx), in_order: true }
    }

    /// A context for an attempt in progress, of which it must be the only user: operations that others may run do so by the commit at the
    /// latest, and closures do not wait for them.
    pub(crate) fn sole_user(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        let in_order = !(P::ALLOWS_STEALING && database.allows_stealing());
        Self { eager: Eager::new(database, tx), in_order }
    }

    /// Converts a value into a deferred one, whether it is known now or not.
    pub(crate) fn defer<T: Data>(&mut self, value: Later<T>) -> Deferred<T> {
        value.into_deferred(self.eager.transaction())
    }

    /// Runs all operations that have been enqueued. (An operation that is not deferred runs the deferred ones that it could see, itself.)
    fn settle(&mut self) -> Result<(), Abort> {
        if self.in_order { Ok(()) } else { self.eager.transaction().run_graph() }
    }

    /// Applies an operation to a target that nobody changes, or to a range, as the eager context does.
    fn at_once<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Later<O::Target>,
        input: Later<I>,
    ) -> Result<Later<O::Output>, Abort>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        let target = self.force(target)?;
        let input = self.force(input)?;
        self.eager.apply(table, operation, target, input).map(Later::Known)
    }

    /// Runs an operation at once, or enqueues it.
    #[inline]
    fn run_or_enqueue<K: Key, R: Value, I: Data, A: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Later<O::Target>,
        passed: Later<A>,
        input: Later<I>,
    ) -> Result<Later<O::Output>, Abort>
    where
        O: Operation<K, R, I, A, Output: Data> + Send,
    {
        let is_shared = O::BY == Some(By::Anybody);
        let target = if is_shared { Later::Known(self.force(target)?) } else { target };
        let (database, tx) = self.eager.arrival();
        let shared = inside::shared(database.table_of(table));
        let (target, passed, input) = match (target, passed, input) {
            (Later::Known(target), Later::Known(passed), Later::Known(input)) if !tx.is_enqueuing() => {
                if !is_shared {
                    let rows = &mut Local::new(shared, tx);
                    return O::run((operation, input), rows, target, passed).map(Later::Known);
                }
                let mut held = Some((operation, input));
                let output = tx.try_at_once(|tx| {
                    let rows = &mut Local::new(shared, tx);
                    O::run_recorded(&mut held, rows, target.clone(), passed.clone())
                })?;
                if let Some(output) = output {
                    return Ok(Later::Known(output));
                }
                let (operation, input) = held.expect(ONCE);
                let inputs = (Later::Known(target), Later::Known(passed), Later::Known(input));
                return shared.enqueue(tx, operation, inputs).map(Later::Deferred);
            }
            inputs => inputs,
        };
        shared.enqueue(tx, operation, (target, passed, input)).map(Later::Deferred)
    }

    /// Records a computation, which may roll back.
    #[cold]
    #[inline(never)]
    fn compute<N: Input<Value: Data> + Send, O: Data>(
        &mut self,
        inputs: N,
        compute: impl FnOnce(N::Value) -> Result<O, Abort> + Send + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let enqueued = !self.in_order;
        // SAFETY: the captures of the computation and its inputs are `Send`, and its values are `Send` and `Sync`.
        unsafe { self.eager.transaction().record_computation(enqueued, inputs, compute) }
    }

    /// Computes a value that is not known now. If the attempt cannot go on, it never is, and the next operation fails.
    #[inline]
    fn compute_later<N: Input<Value: Data> + Send, O: Data>(
        &mut self,
        inputs: N,
        compute: impl FnOnce(N::Value) -> O + Send + 'static,
    ) -> Later<O> {
        Later::Deferred(match self.compute(inputs, move |values| Ok(compute(values))) {
            Ok(deferred) => deferred,
            Err(_) => self.eager.transaction().unknown(),
        })
    }
}

impl<P: Protocol> Context for Recording<'_, '_, P> {
    type Val<T: Data> = Later<T>;
    type Stop = Abort;

    #[inline]
    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Later<O::Target>,
        input: Later<I>,
    ) -> Result<Later<O::Output>, Abort>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        let made = self.eager.database().table_of(table);
        let shared = inside::shared(made);
        if made.is_immutable() && operation.kind(shared).is_read() {
            return self.at_once(table, operation, target, input);
        }
        let target = if const { O::BY.is_none() } { Later::Known(self.force(target)?) } else { target };
        if self.in_order {
            let (_, tx) = self.eager.arrival();
            return operation.defer(shared, tx, target, Later::Known(()), input).map(Later::Deferred);
        }
        if const { O::BY.is_none() } {
            self.settle()?;
            return self.at_once(table, operation, target, input);
        }
        self.run_or_enqueue(table, operation, target, Later::Known(()), input)
    }

    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Later<Keys>,
        input: Later<I>,
        initial: A,
    ) -> Result<Later<A>, Abort>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>,
    {
        if self.in_order {
            let (database, tx) = self.eager.arrival();
            let shared = inside::shared(database.table_of(table));
            return shared.defer_each(tx, operation, keys, input, initial).map(Later::Deferred);
        }
        let mut passed = Later::Known(initial);
        for key in self.force(keys)? {
            let next =
                self.run_or_enqueue(table, operation.clone(), key.into(), passed.clone(), input.clone())?;
            if const { !are_empty::<A>() } {
                passed = next;
            }
        }
        Ok(passed)
    }

    fn visit<A: Data, S: Scan<A> + Send>(
        &mut self,
        scan: S,
        range: Later<KeyRange<S::Key>>,
    ) -> Result<Later<A>, Abort> {
        let range = self.force(range)?;
        self.settle()?;
        self.eager.visit(scan, range).map(Later::Known)
    }

    #[inline]
    fn fetch_ahead<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        bytes: usize,
    ) {
        self.eager.fetch_ahead(table, keys, bytes);
    }

    #[inline(always)]
    fn map<A: Data, B: Data>(
        &mut self,
        value: Later<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Later<B> {
        match value {
            Later::Known(value) => Later::Known(compute(value)),
            Later::Deferred(deferred) => self.compute_later(deferred, compute),
        }
    }

    #[inline(always)]
    fn zip<A: Data, B: Data>(&mut self, first: Later<A>, second: Later<B>) -> Later<(A, B)> {
        // Match one after the other: making a pair of both before the match cost fifteen instructions an operation.
        let both = match first {
            Later::Known(first) => match second {
                Later::Known(second) => return Later::Known((first, second)),
                second => (Later::Known(first), second),
            },
            first => (first, second),
        };
        self.compute_later(both, |both| both)
    }

    #[inline(always)]
    fn force<T: Data>(&mut self, value: Later<T>) -> Result<T, Abort> {
        value.force(self.eager.transaction())
    }

    #[inline]
    fn require(&mut self, holds: Later<bool>) -> Result<(), Abort> {
        match holds {
            Later::Known(holds) => self.eager.require(holds),
            Later::Deferred(holds) => {
                let check = |holds| if holds { Ok(()) } else { Err(Abort::rollback()) };
                self.compute(holds, check).map(drop)
            }
        }
    }
}
