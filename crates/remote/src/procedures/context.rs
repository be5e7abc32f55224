//! The context that records operations, and runs those whose rows were read.

use super::access::{AllRanges, Rows, table_of};
use super::values::Promised;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use hotrow_core::{Abort, Misuse, Value};
use hotrow_procedures::{Context, Scan};
use hotrow_tables::inside::table_number;
use hotrow_tables::key::Key;
use hotrow_tables::operations::Target;
use hotrow_tables::{Data, KeyRange, Operation, TableRef};
use std::collections::VecDeque;
use std::marker::PhantomData;

/// The most operations that wait. More are not recorded before these have run.
const WAITING_MAX: usize = 512;

/// The most computations of values, one in another, that wait for operations.
const DEPTH_MAX: usize = 256;

/// Records the operations of a procedure in an attempt at a transaction.
pub(crate) struct Remote<'a, 'c> {
    tx: &'a mut Transaction<'c>,
    waiting: Vec<Waiting>,
    /// The reason for which the procedure is over, until it can be told.
    stopped: Option<Abort>,
}

/// An operation that has not run.
struct Waiting {
    /// The number of its table; `None` if it touches none.
    table: Option<u32>,
    effect: Effect,
    /// The rows that it touches, once they are known.
    touched: Option<Touched>,
    step: Box<dyn Step>,
}

/// The effect of an operation on its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Writes,
    /// It writes, and the table has a unique index, so that other rows decide if it can.
    WritesUnique,
}

/// The leave that an operation has while an earlier one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leave {
    Nothing,
    /// It may say what it has to read.
    Ask,
    Run,
}

/// The rows of an operation.
enum Touched {
    /// Those with these names.
    Rows(Vec<Vec<u8>>),
    /// Perhaps all.
    Any,
}

/// An operation, with what it needs and those that wait for it.
trait Step {
    /// The rows that it touches; `None` while they are not known.
    fn touched(&self) -> Option<Touched>;

    /// Runs it, if it may. False if it may not, or something is not known that it needs; parts of rows among that are put into `missing`.
    fn run(
        &mut self,
        tx: &mut Transaction<'_>,
        leave: Leave,
        missing: &mut Vec<Vec<u8>>,
    ) -> Result<bool, Abort>;
}

impl Effect {
    fn of<K: Key, R: Value>(only_reads: bool, table: &RemoteTable<K, R>) -> Self {
        match table.has_unique_index() {
            _ if only_reads => Self::None,
            true => Self::WritesUnique,
            false => Self::Writes,
        }
    }
}

impl Waiting {
    fn new(table: Option<u32>, effect: Effect, step: impl Step + 'static) -> Self {
        Self { table, effect, touched: None, step: Box::new(step) }
    }

    /// The leave that an operation has that was called later, before this one has run.
    fn leaves(&self, later: &Self) -> Leave {
        let both = (self.effect, later.effect);
        if self.table.is_none() || self.table != later.table || both == (Effect::None, Effect::None) {
            return Leave::Run;
        }
        match (&self.touched, &later.touched) {
            (Some(Touched::Rows(own)), Some(Touched::Rows(others)))
                if !own.iter().any(|row| others.contains(row)) =>
            {
                // One of two writes may free a key of a unique index that the other one takes.
                if both == (Effect::WritesUnique, Effect::WritesUnique) { Leave::Ask } else { Leave::Run }
            }
            _ => Leave::Nothing,
        }
    }
}

impl<'a, 'c> Remote<'a, 'c> {
    pub(crate) fn new(tx: &'a mut Transaction<'c>) -> Self {
        Self { tx, waiting: Vec::new(), stopped: None }
    }

    /// Runs all operations that were recorded, and returns a value that they have said.
    pub(crate) fn settle<T: Clone + 'static>(mut self, value: &Promised<T>) -> Result<T, Abort> {
        self.run_all()?;
        self.known(value)
    }

    /// A value of which everything has run that it may come from.
    fn known<T: Clone + 'static>(&mut self, value: &Promised<T>) -> Result<T, Abort> {
        value.get().ok_or_else(|| self.tx.fail(Misuse::ForeignDeferred))
    }

    fn record(&mut self, table: Option<u32>, effect: Effect, step: impl Step + 'static) -> Result<(), Abort> {
        if self.waiting.len() >= WAITING_MAX || self.stopped.is_some() {
            self.run_all()?;
        }
        self.waiting.push(Waiting::new(table, effect, step));
        Ok(())
    }

    /// Runs all operations that were recorded, if a value that comes from them in so many steps would take too much of the stack.
    fn bound(&mut self, depth: usize) {
        if depth >= DEPTH_MAX && self.stopped.is_none() {
            self.stopped = self.run_all().err();
        }
    }

    fn run_all(&mut self) -> Result<(), Abort> {
        if let Some(abort) = self.stopped.take() {
            return Err(abort);
        }
        while !self.waiting.is_empty() {
            let before = self.waiting.len();
            let mut missing = Vec::new();
            self.run_some(&mut missing)?;
            if self.waiting.len() == before && missing.is_empty() {
                // The first of them has no other before it, so it needs a value that nobody here will say.
                return Err(self.tx.fail(Misuse::ForeignDeferred));
            }
            self.tx.read(missing)?;
        }
        Ok(())
    }

    /// Runs the operations that can run, in their order, and says what others have to read.
    fn run_some(&mut self, missing: &mut Vec<Vec<u8>>) -> Result<(), Abort> {
        let mut still: Vec<Waiting> = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            if waiting.touched.is_none() {
                waiting.touched = waiting.step.touched();
            }
            let leave = still.iter().map(|earlier| earlier.leaves(&waiting)).min().unwrap_or(Leave::Run);
            if leave == Leave::Nothing || !waiting.step.run(self.tx, leave, missing)? {
                still.push(waiting);
            }
        }
        self.waiting = still;
        Ok(())
    }
}

/// An operation on a table.
struct Apply<K, R, I, O: Operation<K, R, I>, T>
where
    K: Key,
    R: Value,
    I: 'static,
{
    table: RemoteTable<K, R>,
    operation: Option<O>,
    held: Option<(O, I)>,
    target: Promised<O::Target>,
    input: Promised<I>,
    tell: Option<T>,
}

impl<K: Key, R: Value, I: Data, O, T> Step for Apply<K, R, I, O, T>
where
    O: Operation<K, R, I, Output: Data>,
    T: FnOnce(O::Output),
{
    fn touched(&self) -> Option<Touched> {
        let target = self.target.get()?;
        Some(target.key().map_or(Touched::Any, |key| Touched::Rows(vec![self.table.row(key)])))
    }

    fn run(
        &mut self,
        tx: &mut Transaction<'_>,
        leave: Leave,
        missing: &mut Vec<Vec<u8>>,
    ) -> Result<bool, Abort> {
        let Some(target) = self.target.get() else { return Ok(false) };
        if self.held.is_none() {
            let Some(input) = self.input.get() else { return Ok(false) };
            self.held = self.operation.take().map(|operation| (operation, input));
        }
        let found_missing = missing.len();
        let mut rows = Rows { table: &self.table, tx, missing, only_asks: leave == Leave::Ask };
        match O::run(&mut self.held, &mut rows, target, ()) {
            Ok(output) => {
                if let Some(tell) = self.tell.take() {
                    tell(output);
                }
                Ok(true)
            }
            Err(_) if leave == Leave::Ask || missing.len() > found_missing => Ok(false),
            Err(abort) => Err(abort),
        }
    }
}

/// The same operation on several rows.
struct Each<K: Key, R: Value, I, A, O, Keys, T> {
    table: RemoteTable<K, R>,
    operation: O,
    keys: Promised<Keys>,
    input: Promised<I>,
    /// The value that the last row has passed on, and the keys of rows that are still to come.
    passed: Option<A>,
    rest: Option<VecDeque<K>>,
    tell: Option<T>,
}

impl<K: Key, R: Value, I: Data, A: Data, O, Keys, T> Step for Each<K, R, I, A, O, Keys, T>
where
    O: Operation<K, R, I, A, Target = K, Output = A> + Clone,
    Keys: Data + IntoIterator<Item = K>,
    T: FnOnce(A),
{
    fn touched(&self) -> Option<Touched> {
        Some(Touched::Rows(self.keys.get()?.into_iter().map(|key| self.table.row(&key)).collect()))
    }

    fn run(
        &mut self,
        tx: &mut Transaction<'_>,
        leave: Leave,
        missing: &mut Vec<Vec<u8>>,
    ) -> Result<bool, Abort> {
        let (Some(keys), Some(input)) = (self.keys.get(), self.input.get()) else { return Ok(false) };
        let rest = self.rest.get_or_insert_with(|| keys.into_iter().collect());
        let found_missing = missing.len();
        while let (Some(key), Some(passed)) = (rest.front().cloned(), self.passed.clone()) {
            let mut rows = Rows { table: &self.table, tx, missing, only_asks: leave == Leave::Ask };
            match O::run((self.operation.clone(), input.clone()), &mut rows, key, passed) {
                Ok(next) => {
                    self.passed = Some(next);
                    rest.pop_front();
                }
                Err(_) if leave == Leave::Ask || missing.len() > found_missing => {
                    // The rows behind it are read with it, in the same parts.
                    let first = rest.front().map(|key| self.table.row(key)).unwrap_or_default();
                    let parts: Vec<Vec<u8>> =
                        missing[found_missing..].iter().map(|part| part[first.len()..].to_vec()).collect();
                    for key in rest.iter().skip(1) {
                        let name = self.table.row(key);
                        missing.extend(parts.iter().map(|part| [&*name, part].concat()));
                    }
                    return Ok(false);
                }
                Err(abort) => return Err(abort),
            }
        }
        if let (Some(tell), Some(passed)) = (self.tell.take(), self.passed.take()) {
            tell(passed);
        }
        Ok(true)
    }
}

/// A scan.
struct Visit<A, S: Scan<A>, T> {
    range: Promised<KeyRange<S::Key>>,
    /// The scan, and the function that says its result, until it has run.
    scan: Option<(S, T)>,
    result: PhantomData<A>,
}

impl<A: Data, S: Scan<A>, T: FnOnce(A)> Step for Visit<A, S, T> {
    fn touched(&self) -> Option<Touched> {
        Some(Touched::Any)
    }

    fn run(&mut self, tx: &mut Transaction<'_>, _: Leave, _: &mut Vec<Vec<u8>>) -> Result<bool, Abort> {
        let Some(range) = self.range.get() else { return Ok(false) };
        if let Some((scan, tell)) = self.scan.take() {
            tell(scan.run(&mut AllRanges(tx), range)?);
        }
        Ok(true)
    }
}

/// A condition.
struct Require(Promised<bool>);

impl Step for Require {
    fn touched(&self) -> Option<Touched> {
        None
    }

    fn run(&mut self, tx: &mut Transaction<'_>, _: Leave, _: &mut Vec<Vec<u8>>) -> Result<bool, Abort> {
        match self.0.get() {
            None => Ok(false),
            Some(true) => Ok(true),
            Some(false) => Err(tx.roll_back()),
        }
    }
}

impl Context for Remote<'_, '_> {
    type Val<T: Data> = Promised<T>;
    type Stop = Abort;

    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Promised<O::Target>,
        input: Promised<I>,
    ) -> Result<Promised<O::Output>, Abort>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        let (output, tell) = Promised::awaited();
        let (number, table) = (table_number(table), table_of(self.tx, table)?);
        let effect = Effect::of(O::ONLY_READS, &table);
        let step = Apply { table, operation: Some(operation), held: None, target, input, tell: Some(tell) };
        self.record(Some(number), effect, step)?;
        Ok(output)
    }

    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Promised<Keys>,
        input: Promised<I>,
        initial: A,
    ) -> Result<Promised<A>, Abort>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>,
    {
        let (output, tell) = Promised::awaited();
        let (number, table) = (table_number(table), table_of(self.tx, table)?);
        let effect = Effect::of(O::ONLY_READS, &table);
        let (passed, rest) = (Some(initial), None);
        let step = Each { table, operation, keys, input, passed, rest, tell: Some(tell) };
        self.record(Some(number), effect, step)?;
        Ok(output)
    }

    fn visit<A: Data, S: Scan<A> + Send>(
        &mut self,
        scan: S,
        range: Promised<KeyRange<S::Key>>,
    ) -> Result<Promised<A>, Abort> {
        let (output, tell) = Promised::awaited();
        let number = self.tx.shared.table_behind(scan.part()).unwrap_or(scan.part());
        let visit = Visit { range, scan: Some((scan, tell)), result: PhantomData };
        self.record(Some(number), Effect::None, visit)?;
        Ok(output)
    }

    fn map<A: Data, B: Data>(
        &mut self,
        value: Promised<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Promised<B> {
        self.bound(value.depth());
        value.map(compute)
    }

    fn zip<A: Data, B: Data>(&mut self, first: Promised<A>, second: Promised<B>) -> Promised<(A, B)> {
        self.bound(first.depth().max(second.depth()));
        first.zip(second)
    }

    fn force<T: Data>(&mut self, value: Promised<T>) -> Result<T, Abort> {
        if self.stopped.is_none()
            && let Some(value) = value.get()
        {
            return Ok(value);
        }
        self.run_all()?;
        self.known(&value)
    }

    fn require(&mut self, holds: Promised<bool>) -> Result<(), Abort> {
        if self.stopped.is_none() && holds.get() == Some(false) {
            // The procedure goes on by itself only if this holds.
            return Err(self.tx.roll_back());
        }
        self.record(None, Effect::None, Require(holds))
    }
}
