//! The tracing context: runs operations, and traces them with their dependencies.

use crate::context::Eager;
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::record::{GroupsOf, all_groups};
use crate::reference::{IndexRef, TableRef};
use crate::trace::{MAIN_GROUP, Operation, OperationId, OperationKind, ProcedureTrace};
use hotrow_core::column_groups::ColumnGroups;
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
        trace.decisions.extend(self.forced);
        trace
    }

    /// Traces an operation on a table and returns its result as a traced value.
    fn note<K: Key, R: Value, T>(
        &mut self,
        table: TableRef<K, R>,
        kind: OperationKind,
        groups: u32,
        key: Traced<String>,
        input: &BTreeSet<OperationId>,
        value: T,
    ) -> Traced<T> {
        let place = Place {
            table: self.eager.table_name(table),
            index: None,
            part: table.part.number(),
            immutable: self.eager.is_immutable(table),
            decides: !matches!(kind, OperationKind::Read | OperationKind::Scan)
                && self.eager.may_refuse_changes(table),
        };
        self.push(place, kind, (groups, names::<R>(groups)), key, input, value)
    }

    fn push<T>(
        &mut self,
        place: Place,
        kind: OperationKind,
        (groups, group_names): (u32, Vec<&'static str>),
        key: Traced<String>,
        input: &BTreeSet<OperationId>,
        value: T,
    ) -> Traced<T> {
        let id = OperationId(self.trace.operations.len() as u32);
        let Place { table, index, part, immutable, decides } = place;
        if decides {
            self.trace.decisions.push(id);
        }
        self.trace.operations.push(Operation {
            table,
            index,
            part,
            key: key.value,
            kind,
            groups,
            group_names,
            immutable,
            group: None,
            data: union(&key.sources, input).into_iter().collect(),
            key_data: key.sources.into_iter().collect(),
            control: self.forced.iter().copied().collect(),
        });
        Traced { value, sources: BTreeSet::from([id]) }
    }
}

/// The table or index of an operation.
struct Place {
    table: String,
    index: Option<String>,
    part: u32,
    immutable: bool,
    /// True if the operation may roll back.
    decides: bool,
}

impl<T> Traced<T> {
    /// The value as text, with the sources of the value.
    fn text(&self, show: impl FnOnce(&T) -> String) -> Traced<String> {
        Traced { value: show(&self.value), sources: self.sources.clone() }
    }
}

/// No sources.
static NONE: BTreeSet<OperationId> = BTreeSet::new();

fn names<R: Value>(groups: u32) -> Vec<&'static str> {
    let names = std::iter::once(&MAIN_GROUP).chain(<GroupsOf<R> as ColumnGroups<R>>::NAMES);
    names.enumerate().filter(|(at, _)| groups & 1 << at != 0).map(|(_, name)| *name).collect()
}

fn debug<T: std::fmt::Debug>(value: &T) -> String {
    format!("{value:?}")
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
        let text = key.text(debug);
        let value = self.eager.read(table, key.value, look)?;
        Ok(self.note(table, OperationKind::Read, self.eager.groups(table), text, &NONE, value))
    }

    fn read_columns<K: Key, R: Value, C>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        columns: C,
    ) -> Result<Traced<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let text = key.text(debug);
        let value = self.eager.read_columns(table, key.value, columns)?;
        Ok(self.note(table, OperationKind::Read, self.eager.groups_of(table, columns), text, &NONE, value))
    }

    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        input: Traced<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Traced<Option<O>>, Abort> {
        let text = key.text(debug);
        let value = self.eager.update(table, key.value, input.value, change)?;
        Ok(self.note(table, OperationKind::Write, self.eager.groups(table), text, &input.sources, value))
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
        let text = key.text(debug);
        let value = self.eager.update_columns(table, key.value, columns, input.value, change)?;
        Ok(self.note(
            table,
            OperationKind::Write,
            self.eager.groups_of(table, columns),
            text,
            &input.sources,
            value,
        ))
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
        let text = key.text(debug);
        self.eager.commute_columns(table, key.value, columns, input.value, change)?;
        let kind = self.eager.kind_of_commuting_on(table, columns);
        self.note(table, kind, self.eager.groups_of(table, columns), text, &input.sources, ());
        Ok(())
    }

    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        row: Traced<R>,
    ) -> Result<Traced<bool>, Abort> {
        let text = key.text(debug);
        let value = self.eager.replace(table, key.value, row.value)?;
        Ok(self.note(table, OperationKind::Replace, self.eager.groups(table), text, &row.sources, value))
    }

    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        input: Traced<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        let text = key.text(debug);
        self.eager.commute(table, key.value, input.value, change)?;
        let kind = self.eager.kind_of_commuting(table);
        self.note(table, kind, self.eager.groups(table), text, &input.sources, ());
        Ok(())
    }

    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Traced<K>,
        row: Traced<R>,
    ) -> Result<Traced<bool>, Abort> {
        let text = key.text(debug);
        let value = self.eager.insert(table, key.value, row.value)?;
        Ok(self.note(table, OperationKind::Insert, self.eager.groups(table), text, &row.sources, value))
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
        let text = key.text(debug);
        let value = self.eager.delete(table, key.value)?;
        Ok(self.note(table, OperationKind::Delete, self.eager.groups(table), text, &NONE, value))
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Traced<KeyRange<K>>,
    ) -> Result<Traced<Option<K>>, Abort> {
        let text = range.text(KeyRange::to_string);
        let value = self.eager.take_first(table, group, range.value)?;
        let found = self.note(table, OperationKind::Scan, self.eager.groups(table), text, &NONE, ());
        let Some(key) = value else { return Ok(Traced { value: None, sources: found.sources }) };
        let text = Traced { value: debug(&key), sources: found.sources };
        let taken = self.note(table, OperationKind::Delete, self.eager.groups(table), text, &NONE, Some(key));
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
        let mut sum = Traced { value: initial, sources: union(&keys.sources, &input.sources) };
        for key in keys.value {
            let text = Traced { value: debug(&key), sources: keys.sources.clone() };
            let value =
                self.eager.update_each(table, Some(key), input.value.clone(), sum.value, change.clone())?;
            // Each update takes the accumulated value of the one before.
            let inputs = union(&input.sources, &sum.sources);
            sum = self.note(table, OperationKind::Write, self.eager.groups(table), text, &inputs, value);
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

    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Traced<Keys>,
        columns: C,
        input: Traced<I>,
        change: impl Fn(&mut C::Values, I) + Clone + Send + 'static,
    ) -> Result<(), Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
        C: Columns<R, Values: Data> + Send + 'static,
    {
        for key in keys.value {
            let key = Traced { value: key, sources: keys.sources.clone() };
            self.commute_columns(table, key, columns, input.clone(), change.clone())?;
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
        let text = range.text(KeyRange::to_string);
        let value = self.eager.scan(table, range.value, direction, initial, fold)?;
        Ok(self.note(table, OperationKind::Scan, self.eager.groups(table), text, &NONE, value))
    }

    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Traced<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Traced<A>, Abort> {
        let text = range.text(KeyRange::to_string);
        let value = self.eager.scan_index(index, range.value, direction, initial, fold)?;
        let (table, name, immutable) = self.eager.index_place(index);
        let place = Place { table, index: Some(name), part: index.part.number(), immutable, decides: false };
        let groups = all_groups::<R>();
        Ok(self.push(place, OperationKind::Scan, (groups, names::<R>(groups)), text, &NONE, value))
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
