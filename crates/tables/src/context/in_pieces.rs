//! The context of chopped procedures: in each of its runs, the procedure executes the operations of one piece.
//!
//! The closures of a procedure can be called once only, and a piece may have to be executed again. So the procedure runs from its
//! beginning for each attempt at each piece. Operations of earlier pieces are not executed again: their results were kept. Those of
//! later pieces are passed over, and what is computed from them is not known yet.
//!
//! The first run goes through the whole procedure, so whatever it executes that its traces do not have is met before anything has
//! committed: the procedure has *strayed*, and runs whole. So has one that asks for the value of an operation of a later piece
//! ([`Context::force`]): the analysis puts what a procedure decides upon into the first piece.

use super::Eager;
use crate::chopping::ProcedurePlan;
use crate::chopping::publishing::{Marks, SetMarks};
use crate::database::Database;
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::record::all_groups;
use crate::reference::{IndexRef, TableRef};
use crate::storage::key_hash;
use crate::trace::OperationKind;
use hotrow_core::{Abort, Columns, Protocol, Transaction, Value};
use std::any::Any;
use std::ops::ControlFlow;

/// Executes the operations of one piece of a chopped procedure (dbx-tc §3).
pub(crate) struct InPieces<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
    plan: &'a ProcedurePlan,
    /// The number of the piece; `None` if the procedure is executed as one.
    piece: Option<u8>,
    /// The number of operations so far, passed over ones included.
    operations: usize,
    results: &'a mut KeptResults,
    /// The marks that the first of several pieces sets.
    marks: Option<&'a SetMarks<'a>>,
}

/// The results that are needed by later pieces, by the places of their operations in the program.
pub(crate) type KeptResults = Vec<Option<Box<dyn Any + Send>>>;

/// A set of pieces, one bit for each number.
type PieceSet = u64;

/// A value, unless it comes from an operation of a later piece, or one whose result was not kept.
#[derive(Debug, Clone)]
pub(crate) struct Known<T> {
    value: Option<T>,
    /// The pieces in which it is known.
    known_in: PieceSet,
}

/// The reason why a run of the procedure stops.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The attempt cannot go on, or the procedure rolls back.
    Aborted(Abort),
    /// The procedure has strayed from its traces.
    Strayed,
    /// A transaction is in progress beside which none may be in pieces.
    Barred,
}

impl From<Abort> for Stopped {
    fn from(abort: Abort) -> Self {
        Self::Aborted(abort)
    }
}

impl<T> Known<T> {
    /// A value that is known in all pieces.
    fn always(value: T) -> Self {
        Self { value: Some(value), known_in: PieceSet::MAX }
    }

    /// The value, at the end of the last piece.
    pub(crate) fn value(self) -> Result<T, Stopped> {
        self.value.ok_or(Stopped::Strayed)
    }

    /// Returns the value if a piece is the last one of so many. Checks in others that it will be known then.
    pub(crate) fn at_end_of(self, piece: usize, count: usize) -> Result<Option<T>, Stopped> {
        match () {
            () if piece + 1 == count => self.value().map(Some),
            () if self.known_in >> (count - 1) & 1 == 1 => Ok(None),
            () => Err(Stopped::Strayed),
        }
    }
}

impl<'a, 'w, P: Protocol> InPieces<'a, 'w, P> {
    /// A context for an attempt at a piece; `None`: at the whole procedure as one.
    pub(crate) fn new(
        database: &'a Database<P>,
        tx: &'a mut Transaction<'w, P>,
        plan: &'a ProcedurePlan,
        piece: Option<usize>,
        results: &'a mut KeptResults,
    ) -> Self {
        let piece = piece.map(|piece| piece as u8);
        if piece == Some(0) {
            results.clear();
        }
        let eager = Eager::new(database, tx);
        Self { eager, plan, piece, operations: 0, results, marks: None }
    }

    /// Has the piece set marks for the changes that a later one will publish.
    pub(crate) fn setting(mut self, marks: Option<&'a SetMarks<'a>>) -> Self {
        self.marks = marks;
        self
    }

    /// Before an operation: checks that nobody is about to publish changes to its keys, or marks them because a later piece will.
    #[inline]
    fn mark<K: Key, Keys: IntoIterator<Item = K>>(
        &mut self,
        (part, kind, groups): (u32, OperationKind, u32),
        keys: impl FnOnce() -> Option<Keys>,
    ) -> Result<(), Stopped> {
        if !self.plan.has_marks || !self.is_first() {
            return Ok(());
        }
        let class = self.plan.class(part, kind, groups).ok_or(Stopped::Strayed)?;
        let sets = class.publishes && self.piece.is_some();
        if !sets && !class.subscribes {
            return Ok(());
        }
        for key in keys().ok_or(Stopped::Strayed)? {
            let place = Marks::place(part, key_hash(&key));
            match self.marks {
                Some(marks) if sets => marks.set(place),
                _ if class.subscribes => self.eager.check_mark(place)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// True in the first run of the procedure, which goes through all of it.
    fn is_first(&self) -> bool {
        self.piece.unwrap_or(0) == 0
    }

    /// Executes an operation if it belongs to the current piece. `known_in`: the pieces in which its inputs are known. `run` returns
    /// `None` if an input is not known now.
    #[inline]
    fn operation<O: Data>(
        &mut self,
        (part, kind, groups): (u32, OperationKind, u32),
        known_in: PieceSet,
        run: impl FnOnce(&mut Eager<'a, 'w, P>) -> Option<Result<O, Abort>>,
    ) -> Result<Known<O>, Stopped> {
        let class = self.plan.class(part, kind, groups).ok_or(Stopped::Strayed)?;
        let place = self.operations;
        self.operations += 1;
        let Some(piece) = self.piece else {
            let output = run(&mut self.eager).ok_or(Stopped::Strayed)??;
            return Ok(Known::always(output));
        };
        let own = 1 << class.piece;
        let known_after: PieceSet = if class.kept { !(own - 1) } else { own };
        if class.piece == piece {
            let output = run(&mut self.eager).ok_or(Stopped::Strayed)??;
            if class.kept {
                self.keep(place, output.clone());
            }
            return Ok(Known { value: Some(output), known_in: known_after });
        }
        // The later piece would meet an input that it does not know, when the first has committed.
        if class.piece > piece && known_in & own == 0 {
            return Err(Stopped::Strayed);
        }
        if class.piece > piece || !class.kept {
            return Ok(Known { value: None, known_in: known_after });
        }
        let kept = self.results.get(place).and_then(Option::as_ref);
        let kept = kept.and_then(|kept| kept.downcast_ref::<O>()).cloned().ok_or(Stopped::Strayed)?;
        Ok(Known { value: Some(kept), known_in: known_after })
    }

    /// Keeps the result of an operation for later pieces.
    fn keep<O: Data>(&mut self, place: usize, output: O) {
        if self.results.len() <= place {
            self.results.resize_with(place + 1, || None);
        }
        self.results[place] = Some(Box::new(output));
    }
}

/// A commutative change, which is executed as such if the plan says so, and as an update otherwise.
fn commute<P: Protocol, K: Key, R: Value, I: Data>(
    eager: &mut Eager<'_, '_, P>,
    commutes: bool,
    table: TableRef<K, R>,
    key: K,
    input: I,
    change: impl Fn(&mut R, I) + Send + 'static,
) -> Result<(), Abort> {
    if commutes {
        eager.commute(table, key, input, change)
    } else {
        eager.update(table, key, input, change).map(drop)
    }
}

/// As [`commute`], for columns.
fn commute_columns<P: Protocol, K: Key, R: Value, C, I: Data>(
    eager: &mut Eager<'_, '_, P>,
    commutes: bool,
    table: TableRef<K, R>,
    key: K,
    columns: C,
    input: I,
    change: impl Fn(&mut C::Values, I) + Send + 'static,
) -> Result<(), Abort>
where
    C: Columns<R, Values: Data> + Send + 'static,
{
    if commutes {
        eager.commute_columns(table, key, columns, input, change)
    } else {
        eager.update_columns(table, key, columns, input, change).map(drop)
    }
}

impl<P: Protocol> Context for InPieces<'_, '_, P> {
    type Val<T: Data> = Known<T>;
    type Stop = Stopped;

    #[inline(always)]
    fn value<T: Data>(&mut self, value: T) -> Known<T> {
        Known::always(value)
    }

    #[inline]
    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        if self.is_first() {
            self.eager.prefetch(table, keys);
        }
    }

    #[inline]
    fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        if self.is_first() {
            self.eager.prefetch_columns(table, keys, columns);
        }
    }

    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Known<Option<O>>, Stopped> {
        let class = (table.part.number(), OperationKind::Read, self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in, |eager| Some(eager.read(table, key.value?, look)))
    }

    fn read_columns<K: Key, R: Value, C>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        columns: C,
    ) -> Result<Known<Option<C::Values>>, Stopped>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let class = (table.part.number(), OperationKind::Read, self.eager.groups_of(table, columns));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in, |eager| Some(eager.read_columns(table, key.value?, columns)))
    }

    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        input: Known<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Known<Option<O>>, Stopped> {
        let class = (table.part.number(), OperationKind::Write, self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & input.known_in, |eager| {
            Some(eager.update(table, key.value?, input.value?, change))
        })
    }

    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        columns: C,
        input: Known<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Known<Option<O>>, Stopped>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let class = (table.part.number(), OperationKind::Write, self.eager.groups_of(table, columns));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & input.known_in, |eager| {
            Some(eager.update_columns(table, key.value?, columns, input.value?, change))
        })
    }

    fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        columns: C,
        input: Known<I>,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Stopped>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let commutes = self.plan.commutes;
        let kind = self.eager.kind_of_commuting_on(table, columns);
        let class = (table.part.number(), kind, self.eager.groups_of(table, columns));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & input.known_in, |eager| {
            Some(commute_columns(eager, commutes, table, key.value?, columns, input.value?, change))
        })?;
        Ok(())
    }

    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        row: Known<R>,
    ) -> Result<Known<bool>, Stopped> {
        let class = (table.part.number(), OperationKind::Replace, self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & row.known_in, |eager| {
            Some(eager.replace(table, key.value?, row.value?))
        })
    }

    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        input: Known<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Stopped> {
        let commutes = self.plan.commutes;
        let class = (table.part.number(), self.eager.kind_of_commuting(table), self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & input.known_in, |eager| {
            Some(commute(eager, commutes, table, key.value?, input.value?, change))
        })?;
        Ok(())
    }

    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
        row: Known<R>,
    ) -> Result<Known<bool>, Stopped> {
        let class = (table.part.number(), OperationKind::Insert, self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in & row.known_in, |eager| {
            Some(eager.insert(table, key.value?, row.value?))
        })
    }

    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        _group: u64,
        key: Known<K>,
        row: Known<R>,
    ) -> Result<Known<bool>, Stopped> {
        self.insert(table, key, row)
    }

    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Known<K>,
    ) -> Result<Known<bool>, Stopped> {
        let class = (table.part.number(), OperationKind::Delete, self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        self.operation(class, key.known_in, |eager| Some(eager.delete(table, key.value?)))
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Known<KeyRange<K>>,
    ) -> Result<Known<Option<K>>, Stopped> {
        // The deletion and the scan before it are one operation, so the analysis has them in one piece.
        let class = (table.part.number(), OperationKind::Delete, self.eager.groups(table));
        let taken = self
            .operation(class, range.known_in, |eager| Some(eager.take_first(table, group, range.value?)))?;
        if let Some(taken) = &taken.value {
            self.mark(class, || Some(taken.clone()))?;
        }
        Ok(taken)
    }

    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Known<Keys>,
        input: Known<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Known<A>, Stopped>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let class = (table.part.number(), OperationKind::Write, self.eager.groups(table));
        self.mark(class, || keys.value.clone())?;
        self.operation(class, keys.known_in & input.known_in, |eager| {
            Some(eager.update_each(table, keys.value?, input.value?, initial, change))
        })
    }

    fn commute_each<Keys, K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Known<Keys>,
        input: Known<I>,
        change: impl Fn(&mut R, I) + Clone + Send + 'static,
    ) -> Result<(), Stopped>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let commutes = self.plan.commutes;
        let class = (table.part.number(), self.eager.kind_of_commuting(table), self.eager.groups(table));
        self.mark(class, || keys.value.clone())?;
        self.operation(class, keys.known_in & input.known_in, |eager| {
            let (keys, input) = (keys.value?, input.value?);
            let mut each = keys.into_iter();
            Some(each.try_for_each(|key| commute(eager, commutes, table, key, input.clone(), change.clone())))
        })?;
        Ok(())
    }

    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Known<Keys>,
        columns: C,
        input: Known<I>,
        change: impl Fn(&mut C::Values, I) + Clone + Send + 'static,
    ) -> Result<(), Stopped>
    where
        Keys: Data + IntoIterator<Item = K>,
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let commutes = self.plan.commutes;
        let kind = self.eager.kind_of_commuting_on(table, columns);
        let class = (table.part.number(), kind, self.eager.groups_of(table, columns));
        self.mark(class, || keys.value.clone())?;
        self.operation(class, keys.known_in & input.known_in, |eager| {
            let (keys, input) = (keys.value?, input.value?);
            let mut each = keys.into_iter();
            Some(each.try_for_each(|key| {
                commute_columns(eager, commutes, table, key, columns, input.clone(), change.clone())
            }))
        })?;
        Ok(())
    }

    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Known<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Known<A>, Stopped> {
        let class = (table.part.number(), OperationKind::Scan, self.eager.groups(table));
        self.operation(class, range.known_in, |eager| {
            Some(eager.scan(table, range.value?, direction, initial, fold))
        })
    }

    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Known<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Known<A>, Stopped> {
        let class = (index.part.number(), OperationKind::Scan, all_groups::<R>());
        self.operation(class, range.known_in, |eager| {
            Some(eager.scan_index(index, range.value?, direction, initial, fold))
        })
    }

    #[inline]
    fn map<A: Data, B: Data>(
        &mut self,
        value: Known<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Known<B> {
        Known { value: value.value.map(compute), known_in: value.known_in }
    }

    #[inline]
    fn zip<A: Data, B: Data>(&mut self, first: Known<A>, second: Known<B>) -> Known<(A, B)> {
        Known { value: first.value.zip(second.value), known_in: first.known_in & second.known_in }
    }

    fn force<T: Data>(&mut self, value: Known<T>) -> Result<T, Stopped> {
        // All later runs must come by here with the same value.
        let first = value.known_in.trailing_zeros() as u8;
        match self.piece {
            Some(_) if value.known_in == 0 || value.known_in != PieceSet::MAX << first => {
                Err(Stopped::Strayed)
            }
            _ => value.value(),
        }
    }

    fn require(&mut self, holds: Known<bool>) -> Result<(), Stopped> {
        let holds = self.force(holds)?;
        Ok(self.eager.require(holds)?)
    }

    fn rollback(&mut self) -> Stopped {
        Stopped::Aborted(self.eager.rollback())
    }
}
