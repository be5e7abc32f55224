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
    /// True if the procedure is executed as one piece.
    is_whole: bool,
    results: Results<'a>,
    /// The marks that the first of several pieces sets.
    marks: Option<&'a SetMarks<'a>>,
}

/// The results of the first piece that are needed later.
pub(crate) type KeptResults = Vec<Box<dyn Any + Send>>;

/// The kept results, as the current piece uses them.
enum Results<'a> {
    /// The first piece keeps them.
    Kept(&'a mut KeptResults),
    /// A later piece finds them, one after the other.
    Found(std::slice::Iter<'a, Box<dyn Any + Send>>),
}

/// A value, unless it comes from an operation of a later piece, or one whose result was not kept.
#[derive(Debug, Clone)]
pub(crate) struct Known<T> {
    value: Option<T>,
    /// True if it is known in the last piece.
    lasts: bool,
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
    fn now(value: T) -> Self {
        Self { value: Some(value), lasts: true }
    }

    /// The value, at the end of the last piece.
    pub(crate) fn value(self) -> Result<T, Stopped> {
        self.value.ok_or(Stopped::Strayed)
    }

    /// Checks that the value will be known at the end of the last piece.
    pub(crate) fn check_lasts(&self) -> Result<(), Stopped> {
        if self.lasts { Ok(()) } else { Err(Stopped::Strayed) }
    }
}

impl<'a, 'w, P: Protocol> InPieces<'a, 'w, P> {
    /// A context for an attempt at the first piece; `is_whole`: of which the procedure then consists.
    pub(crate) fn first(
        database: &'a Database<P>,
        tx: &'a mut Transaction<'w, P>,
        plan: &'a ProcedurePlan,
        is_whole: bool,
        results: &'a mut KeptResults,
    ) -> Self {
        results.clear();
        Self { eager: Eager::new(database, tx), plan, is_whole, results: Results::Kept(results), marks: None }
    }

    /// A context for an attempt at what follows.
    pub(crate) fn rest(
        database: &'a Database<P>,
        tx: &'a mut Transaction<'w, P>,
        plan: &'a ProcedurePlan,
        results: &'a KeptResults,
    ) -> Self {
        let results = Results::Found(results.iter());
        Self { eager: Eager::new(database, tx), plan, is_whole: false, results, marks: None }
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
        if !self.plan.has_marks || !matches!(self.results, Results::Kept(_)) {
            return Ok(());
        }
        let class = self.plan.class(part, kind, groups).ok_or(Stopped::Strayed)?;
        let sets = class.publishes && !self.is_whole;
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

    /// Executes an operation if it belongs to the current piece. `lasts`: its inputs are known in the last piece. `run` returns
    /// `None` if an input is not known now.
    #[inline]
    fn operation<O: Data>(
        &mut self,
        (part, kind, groups): (u32, OperationKind, u32),
        lasts: bool,
        run: impl FnOnce(&mut Eager<'a, 'w, P>) -> Option<Result<O, Abort>>,
    ) -> Result<Known<O>, Stopped> {
        let class = self.plan.class(part, kind, groups).ok_or(Stopped::Strayed)?;
        if self.is_whole {
            let output = run(&mut self.eager).ok_or(Stopped::Strayed)??;
            return Ok(Known::now(output));
        }
        let is_first = matches!(self.results, Results::Kept(_));
        if class.first == is_first {
            let output = run(&mut self.eager).ok_or(Stopped::Strayed)??;
            if let Results::Kept(results) = &mut self.results
                && class.kept
            {
                results.push(Box::new(output.clone()));
            }
            return Ok(Known { value: Some(output), lasts: class.kept || !class.first });
        }
        match &mut self.results {
            // The last piece would meet an input that it does not know, when the first has committed.
            Results::Kept(_) if !lasts => Err(Stopped::Strayed),
            Results::Kept(_) => Ok(Known { value: None, lasts: true }),
            Results::Found(results) if class.kept => {
                let kept = results.next().and_then(|kept| kept.downcast_ref::<O>());
                kept.cloned().map(Known::now).ok_or(Stopped::Strayed)
            }
            Results::Found(_) => Ok(Known { value: None, lasts: false }),
        }
    }
}

impl<P: Protocol> Context for InPieces<'_, '_, P> {
    type Val<T: Data> = Known<T>;
    type Stop = Stopped;

    #[inline(always)]
    fn value<T: Data>(&mut self, value: T) -> Known<T> {
        Known::now(value)
    }

    #[inline]
    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        if matches!(self.results, Results::Kept(_)) {
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
        if matches!(self.results, Results::Kept(_)) {
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
        self.operation(class, key.lasts, |eager| Some(eager.read(table, key.value?, look)))
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
        self.operation(class, key.lasts, |eager| Some(eager.read_columns(table, key.value?, columns)))
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
        self.operation(class, key.lasts && input.lasts, |eager| {
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
        self.operation(class, key.lasts && input.lasts, |eager| {
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
        let kind = self.eager.kind_of_commuting_on(table, columns);
        let class = (table.part.number(), kind, self.eager.groups_of(table, columns));
        self.mark(class, || key.value.clone().map(Some))?;
        let commutes = self.plan.commutes;
        self.operation(class, key.lasts && input.lasts, |eager| {
            let (key, input) = (key.value?, input.value?);
            if commutes {
                return Some(eager.commute_columns(table, key, columns, input, change));
            }
            Some(eager.update_columns(table, key, columns, input, change).map(|_| ()))
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
        self.operation(class, key.lasts && row.lasts, |eager| {
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
        let class = (table.part.number(), self.eager.kind_of_commuting(table), self.eager.groups(table));
        self.mark(class, || key.value.clone().map(Some))?;
        let commutes = self.plan.commutes;
        self.operation(class, key.lasts && input.lasts, |eager| {
            let (key, input) = (key.value?, input.value?);
            if commutes {
                return Some(eager.commute(table, key, input, change));
            }
            Some(eager.update(table, key, input, change).map(|_| ()))
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
        self.operation(class, key.lasts && row.lasts, |eager| {
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
        self.operation(class, key.lasts, |eager| Some(eager.delete(table, key.value?)))
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Known<KeyRange<K>>,
    ) -> Result<Known<Option<K>>, Stopped> {
        // The deletion and the scan before it are one operation, so the analysis has them in one piece.
        let class = (table.part.number(), OperationKind::Delete, self.eager.groups(table));
        let taken =
            self.operation(class, range.lasts, |eager| Some(eager.take_first(table, group, range.value?)))?;
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
        self.operation(class, keys.lasts && input.lasts, |eager| {
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
        let class = (table.part.number(), self.eager.kind_of_commuting(table), self.eager.groups(table));
        self.mark(class, || keys.value.clone())?;
        let commutes = self.plan.commutes;
        self.operation(class, keys.lasts && input.lasts, |eager| {
            let (keys, input) = (keys.value?, input.value?);
            Some(keys.into_iter().try_for_each(|key| {
                let (input, change) = (input.clone(), change.clone());
                if commutes {
                    return eager.commute(table, key, input, change);
                }
                eager.update(table, key, input, change).map(|_| ())
            }))
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
        let kind = self.eager.kind_of_commuting_on(table, columns);
        let class = (table.part.number(), kind, self.eager.groups_of(table, columns));
        self.mark(class, || keys.value.clone())?;
        let commutes = self.plan.commutes;
        self.operation(class, keys.lasts && input.lasts, |eager| {
            let (keys, input) = (keys.value?, input.value?);
            if commutes {
                return Some(eager.commute_columns_each(table, keys, columns, input, change));
            }
            Some(keys.into_iter().try_for_each(|key| {
                let updated = eager.update_columns(table, key, columns, input.clone(), change.clone());
                updated.map(|_| ())
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
        self.operation(class, range.lasts, |eager| {
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
        self.operation(class, range.lasts, |eager| {
            Some(eager.scan_index(index, range.value?, direction, initial, fold))
        })
    }

    #[inline]
    fn map<A: Data, B: Data>(
        &mut self,
        value: Known<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Known<B> {
        Known { value: value.value.map(compute), lasts: value.lasts }
    }

    #[inline]
    fn zip<A: Data, B: Data>(&mut self, first: Known<A>, second: Known<B>) -> Known<(A, B)> {
        Known { value: first.value.zip(second.value), lasts: first.lasts && second.lasts }
    }

    fn force<T: Data>(&mut self, value: Known<T>) -> Result<T, Stopped> {
        value.check_lasts()?;
        value.value()
    }

    fn require(&mut self, holds: Known<bool>) -> Result<(), Stopped> {
        let holds = self.force(holds)?;
        Ok(self.eager.require(holds)?)
    }

    fn rollback(&mut self) -> Stopped {
        Stopped::Aborted(self.eager.rollback())
    }
}
