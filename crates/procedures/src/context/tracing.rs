//! The tracing context: runs operations, and traces them with their dependencies.

use crate::context::Eager;
use crate::procedure::Context;
use crate::scan::{Scan, ScannedPlace};
use crate::trace::{MAIN_GROUP, OperationId, ProcedureTrace, TracedOperation};
use hotrow_core::column_groups::ColumnGroups;
use hotrow_core::{Abort, Cell, Protocol, Value};
use hotrow_tables::operations::{Local, OperationKind, Target, are_empty};
use hotrow_tables::{Data, Key, KeyRange, Operation, TableRef, inside};
use std::collections::BTreeSet;

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

    /// Runs an operation on a table, and traces it.
    fn run<K: Key, R: Value, I: Data, A: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Traced<O::Target>,
        input: Traced<I>,
        passed: A,
    ) -> Result<Traced<O::Output>, Abort>
    where
        O: Operation<K, R, I, A>,
    {
        let (database, tx) = self.eager.arrival();
        let made = database.table_of(table);
        let shared = inside::shared(made);
        let (kind, group) = (operation.kind(shared), operation.group());
        let groups = operation.groups(shared);
        let place = Place {
            table: made.name().to_owned(),
            index: None,
            part: inside::table_number(table),
            immutable: made.is_immutable(),
            decides: !kind.is_read() && shared.may_refuse_changes(),
        };
        let mut key = target.text(O::Target::text);
        let held = (operation, input.value);
        let output = O::run_in_piece(true, held, &mut Local::new(shared, tx), target.value, passed)?;
        if O::Target::IS_RANGE {
            // It looks for its row first.
            let scanned = Place { decides: false, ..place.clone() };
            let sources = self.push(scanned, OperationKind::Scan, names_of::<R>(groups), None, key, &NONE);
            match O::found(&output) {
                Some(found) => key = Traced { value: found.text(), sources },
                None => return Ok(Traced { value: output, sources }),
            }
        }
        let sources = self.push(place, kind, names_of::<R>(groups), group, key, &input.sources);
        Ok(Traced { value: output, sources })
    }

    /// Traces an operation and returns it as the source of its result.
    fn push(
        &mut self,
        place: Place,
        kind: OperationKind,
        (groups, group_names): (u32, Vec<&'static str>),
        group: Option<u64>,
        key: Traced<String>,
        input: &BTreeSet<OperationId>,
    ) -> BTreeSet<OperationId> {
        let id = OperationId(self.trace.operations.len() as u32);
        let Place { table, index, part, immutable, decides } = place;
        if decides {
            self.trace.decisions.push(id);
        }
        self.trace.operations.push(TracedOperation {
            table,
            index,
            part,
            key: key.value,
            kind,
            groups,
            group_names,
            immutable,
            group,
            data: union(&key.sources, input).into_iter().collect(),
            key_data: key.sources.into_iter().collect(),
            control: self.forced.iter().copied().collect(),
        });
        BTreeSet::from([id])
    }
}

/// The table or index of an operation.
#[derive(Clone)]
struct Place {
    table: String,
    index: Option<String>,
    part: u32,
    immutable: bool,
    /// True if the operation may roll back.
    decides: bool,
}

impl<T> From<T> for Traced<T> {
    fn from(value: T) -> Self {
        Self { value, sources: BTreeSet::new() }
    }
}

impl<T> Traced<T> {
    /// The value as text, with the sources of the value.
    fn text(&self, show: impl FnOnce(&T) -> String) -> Traced<String> {
        Traced { value: show(&self.value), sources: self.sources.clone() }
    }
}

/// No sources.
static NONE: BTreeSet<OperationId> = BTreeSet::new();

/// Column groups, with their names.
fn names_of<R: Value>(groups: u32) -> (u32, Vec<&'static str>) {
    let names = std::iter::once(&MAIN_GROUP).chain(<<R::Cell as Cell<R>>::Groups as ColumnGroups<R>>::NAMES);
    let is_among = |(at, _): &(usize, _)| groups & 1 << at != 0;
    (groups, names.enumerate().filter(is_among).map(|(_, name)| *name).collect())
}

fn union(first: &BTreeSet<OperationId>, second: &BTreeSet<OperationId>) -> BTreeSet<OperationId> {
    first.union(second).copied().collect()
}

impl<P: Protocol> Context for Tracing<'_, '_, P> {
    type Val<T: Data> = Traced<T>;
    type Stop = Abort;

    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Traced<O::Target>,
        input: Traced<I>,
    ) -> Result<Traced<O::Output>, Abort>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        self.run(table, operation, target, input, ())
    }

    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Traced<Keys>,
        input: Traced<I>,
        initial: A,
    ) -> Result<Traced<A>, Abort>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>,
    {
        let mut passed = Traced { value: initial, sources: union(&keys.sources, &input.sources) };
        for key in keys.value {
            let key = Traced { value: key, sources: keys.sources.clone() };
            let mut input = input.clone();
            if const { !are_empty::<A>() } {
                input.sources.extend(passed.sources);
            }
            passed = self.run(table, operation.clone(), key, input, passed.value)?;
        }
        Ok(passed)
    }

    fn visit<A: Data, S: Scan<A> + Send>(
        &mut self,
        scan: S,
        range: Traced<KeyRange<S::Key>>,
    ) -> Result<Traced<A>, Abort> {
        let database = self.eager.database();
        let (part, groups) = (scan.part(), names_of::<S::Row>(scan.groups(database)));
        let ScannedPlace { table, index, immutable } = scan.place(database);
        let key = range.text(KeyRange::to_string);
        let value = self.eager.visit(scan, range.value)?;
        let place = Place { table, index, part, immutable, decides: false };
        let sources = self.push(place, OperationKind::Scan, groups, None, key, &NONE);
        Ok(Traced { value, sources })
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
}
