//! The tracing context: runs operations, and traces them with their dependencies.

use crate::context::Eager;
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::reference::{IndexRef, TableRef};
use crate::trace::{Operation, OperationId, OperationKind, ProcedureTrace};
use hotrow_core::{Abort, Columns, Protocol, Value};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Runs each operation and traces it: table, key, kind, and the operations on whose results it depends. Chopping
/// (dbx-tc §3.1) and dependency graphs (stealdb §3.1) are made from such traces.
///
/// The operations really run, in a transaction that is then rolled back, so that forced values are real ones.
pub struct Tracing<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
    trace: ProcedureTrace,
    /// The operations whose results the procedure has forced so far.
    forced: BTreeSet<OperationId>,
}

/// A value with the operations from which it was computed.
#[derive(Debug, Clone)]
pub struct Traced<T> {
    value: T,
    sources: BTreeSet<OperationId>,
}

impl<'a, 'w, P: Protocol> Tracing<'a, 'w, P> {
    pub(crate) fn new(eager: Eager<'a, 'w, P>) -> Self {
        Self { eager, trace: ProcedureTrace::default(), forced: BTreeSet::new() }
    }

    pub(crate) fn finish<T>(self, output: Option<&Traced<T>>) -> ProcedureTrace {
        let mut trace = self.trace;
        trace.output = output.map_or_else(Vec::new, |output| output.sources.iter().copied().collect());
        trace
    }

    /// Traces an operation and returns its result as a traced value.
    fn note<T>(
        &mut self,
        table: String,
        key: String,
        kind: OperationKind,
        immutable: bool,
        data: BTreeSet<OperationId>,
        value: T,
    ) -> Traced<T> {
        let id = OperationId(self.trace.operations.len() as u32);
        self.trace.operations.push(Operation {
            table,
            key,
            kind,
            immutable,
            group: None,
            data: data.into_iter().collect(),
            control: self.forced.iter().copied().collect(),
        });
        Traced { value, sources: BTreeSet::from([id]) }
    }
}

fn union(first: &BTreeSet<OperationId>, second: &BTreeSet<OperationId>) -> BTreeSet<OperationId> {
    first.union(second).copied().collect()
}

impl<P: Protocol> Context for Tracing<'_, '_, P> {
    type Val<T: Data> = Traced<T>;
    type Stop = Abort;

    fn value<T: Data>(&mut self, value: T) -> Traced<T> {
        Traced { value, sources: BTreeSet::new() }
    }

    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Traced<Option<O>>, Abort> {
        let (name, immutable, text) =
            (self.eager.table_name(table), self.eager.is_immutable(table), format!("{:?}", key.value));
        let value = self.eager.read(table, key.value, look)?;
        Ok(self.note(name, text, OperationKind::Read, immutable, key.sources, value))
    }

    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        input: Traced<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Traced<Option<O>>, Abort> {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &input.sources);
        let value = self.eager.update(table, key.value, input.value, change)?;
        Ok(self.note(name, text, OperationKind::Write, false, data, value))
    }

    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        columns: C,
        input: Traced<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Traced<Option<O>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &input.sources);
        let value = self.eager.update_columns(table, key.value, columns, input.value, change)?;
        Ok(self.note(name, text, OperationKind::Write, false, data, value))
    }

    fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        columns: C,
        input: Traced<I>,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &input.sources);
        self.eager.commute_columns(table, key.value, columns, input.value, change)?;
        self.note(name, text, OperationKind::Commutative, false, data, ());
        Ok(())
    }

    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        row: Traced<R>,
    ) -> Result<Traced<bool>, Abort> {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &row.sources);
        let value = self.eager.replace(table, key.value, row.value)?;
        Ok(self.note(name, text, OperationKind::Replace, false, data, value))
    }

    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        input: Traced<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &input.sources);
        self.eager.commute(table, key.value, input.value, change)?;
        self.note(name, text, OperationKind::Commutative, false, data, ());
        Ok(())
    }

    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        row: Traced<R>,
    ) -> Result<Traced<bool>, Abort> {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let data = union(&key.sources, &row.sources);
        let value = self.eager.insert(table, key.value, row.value)?;
        Ok(self.note(name, text, OperationKind::Insert, false, data, value))
    }

    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        key: Traced<K>,
        row: Traced<R>,
    ) -> Result<Traced<bool>, Abort> {
        let value = self.insert(table, key, row)?;
        if let Some(operation) = self.trace.operations.last_mut() {
            operation.group = Some(group);
        }
        Ok(value)
    }

    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
    ) -> Result<Traced<bool>, Abort> {
        let (name, text) = (self.eager.table_name(table), format!("{:?}", key.value));
        let value = self.eager.delete(table, key.value)?;
        Ok(self.note(name, text, OperationKind::Delete, false, key.sources, value))
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Traced<KeyRange<K>>,
    ) -> Result<Traced<Option<K>>, Abort> {
        let (name, text) = (self.eager.table_name(table), range.value.to_string());
        let value = self.eager.take_first(table, group, range.value)?;
        let found = self.note(name.clone(), text, OperationKind::Scan, false, range.sources, ());
        let Some(key) = value else { return Ok(Traced { value: None, sources: found.sources }) };
        let taken =
            self.note(name, format!("{key:?}"), OperationKind::Delete, false, found.sources, Some(key));
        if let Some(operation) = self.trace.operations.last_mut() {
            operation.group = Some(group);
        }
        Ok(taken)
    }

    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Traced<Keys>,
        input: Traced<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Traced<A>, Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let data = union(&keys.sources, &input.sources);
        let mut sum = Traced { value: initial, sources: data.clone() };
        for key in keys.value {
            let (name, text) = (self.eager.table_name(table), format!("{key:?}"));
            let value =
                self.eager.update_each(table, Some(key), input.value.clone(), sum.value, change.clone())?;
            // Each update takes the accumulated value of the one before.
            sum = self.note(name, text, OperationKind::Write, false, union(&data, &sum.sources), value);
        }
        Ok(sum)
    }

    fn commute_each<Keys, K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Traced<Keys>,
        input: Traced<I>,
        change: impl Fn(&mut R, I) + Clone + Send + 'static,
    ) -> Result<(), Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        for key in keys.value {
            let key = Traced { value: key, sources: keys.sources.clone() };
            self.commute(table, key, input.clone(), change.clone())?;
        }
        Ok(())
    }

    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Traced<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Traced<A>, Abort> {
        let (name, immutable, text) =
            (self.eager.table_name(table), self.eager.is_immutable(table), range.value.to_string());
        let value = self.eager.scan(table, range.value, direction, initial, fold)?;
        Ok(self.note(name, text, OperationKind::Scan, immutable, range.sources, value))
    }

    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Traced<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Traced<A>, Abort> {
        let (name, text) = (self.eager.index_name(index), range.value.to_string());
        let value = self.eager.scan_index(index, range.value, direction, initial, fold)?;
        Ok(self.note(name, text, OperationKind::Scan, false, range.sources, value))
    }

    fn map<A: Data, B: Data>(
        &mut self,
        value: Traced<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Traced<B> {
        Traced { value: compute(value.value), sources: value.sources }
    }

    fn zip<A: Data, B: Data>(&mut self, first: Traced<A>, second: Traced<B>) -> Traced<(A, B)> {
        let sources = union(&first.sources, &second.sources);
        Traced { value: (first.value, second.value), sources }
    }

    fn force<T: Data>(&mut self, value: Traced<T>) -> Result<T, Abort> {
        self.forced.extend(value.sources);
        Ok(value.value)
    }

    fn require(&mut self, holds: Traced<bool>) -> Result<(), Abort> {
        let holds = self.force(holds)?;
        self.eager.require(holds)
    }

    fn rollback(&mut self) -> Abort {
        self.eager.rollback()
    }
}
