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
use crate::procedure::Context;
use crate::scan::Scan;
use hotrow_core::{Abort, Protocol, Transaction, Value};
use hotrow_sync::hashing::KeyHashing;
use hotrow_tables::operations::{Local, OperationKind, Target};
use hotrow_tables::{Data, Database, Key, KeyRange, Operation, TableRef, inside};
use std::any::Any;
use std::hash::BuildHasher;

/// Executes the operations of one piece of a chopped procedure (dbx-tc §3).
pub(crate) struct InPieces<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
    plan: &'a ProcedurePlan,
    /// The number of the piece; `None` if the procedure is executed as one.
    piece: Option<u8>,
    /// The number of operations so far, passed over ones included.
    operations: usize,
    results: &'a mut KeptResults,
    /// The marks of the database, if procedures publish changes.
    all_marks: Option<&'a Marks>,
    /// Those that the first of several pieces sets.
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

impl<T> From<T> for Known<T> {
    /// A value that is known in all pieces.
    fn from(value: T) -> Self {
        Self { value: Some(value), known_in: PieceSet::MAX }
    }
}

impl<T> Known<T> {
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
        all_marks: Option<&'a Marks>,
    ) -> Self {
        let piece = piece.map(|piece| piece as u8);
        if piece == Some(0) {
            results.clear();
        }
        let eager = Eager::new(database, tx);
        Self { eager, plan, piece, operations: 0, results, all_marks, marks: None }
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
            let place = Marks::place(part, KeyHashing::of_process().hash_one(&key));
            match self.marks {
                Some(marks) if sets => marks.set(place),
                _ if class.subscribes => self.check_mark(place)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that nobody is about to publish changes to the keys of a mark.
    fn check_mark(&mut self, place: usize) -> Result<(), Abort> {
        self.all_marks.map_or(Ok(()), |marks| marks.check(self.eager.transaction(), place))
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
            return Ok(output.into());
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

impl<P: Protocol> Context for InPieces<'_, '_, P> {
    type Val<T: Data> = Known<T>;
    type Stop = Stopped;

    #[inline]
    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Known<O::Target>,
        input: Known<I>,
    ) -> Result<Known<O::Output>, Stopped>
    where
        O: Operation<K, R, I, Output: Data> + Send,
    {
        let shared = inside::shared(self.eager.database().table_of(table));
        let class = (inside::table_number(table), operation.kind(shared), operation.groups(shared));
        if const { !O::Target::IS_RANGE } {
            self.mark(class, || target.value.as_ref().map(|target| target.key().cloned()))?;
        }
        let commutes = self.plan.commutes;
        // One that looks for its row first is one operation all the same, so the analysis has both in one piece.
        let output = self.operation(class, target.known_in & input.known_in, |eager| {
            let (target, input) = (target.value?, input.value?);
            let (_, tx) = eager.arrival();
            let rows = &mut Local::new(shared, tx);
            Some(O::run_in_piece(commutes, (operation, input), rows, target, ()))
        })?;
        if const { O::Target::IS_RANGE }
            && let Some(output) = &output.value
        {
            self.mark(class, || Some(O::found(output).cloned()))?;
        }
        Ok(output)
    }

    #[inline]
    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Known<Keys>,
        input: Known<I>,
        initial: A,
    ) -> Result<Known<A>, Stopped>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>,
    {
        let shared = inside::shared(self.eager.database().table_of(table));
        let class = (inside::table_number(table), operation.kind(shared), operation.groups(shared));
        self.mark(class, || keys.value.clone())?;
        let commutes = self.plan.commutes;
        self.operation(class, keys.known_in & input.known_in, |eager| {
            let (keys, input) = (keys.value?, input.value?);
            Some(keys.into_iter().try_fold(initial, |passed, key| {
                let (_, tx) = eager.arrival();
                let (held, rows) = ((operation.clone(), input.clone()), &mut Local::new(shared, tx));
                O::run_in_piece(commutes, held, rows, key, passed)
            }))
        })
    }

    fn visit<A: Data, S: Scan<A> + Send>(
        &mut self,
        scan: S,
        range: Known<KeyRange<S::Key>>,
    ) -> Result<Known<A>, Stopped> {
        let class = (scan.part(), OperationKind::Scan, scan.groups(self.eager.database()));
        self.operation(class, range.known_in, |eager| Some(eager.visit(scan, range.value?)))
    }

    #[inline]
    fn fetch_ahead<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        bytes: usize,
    ) {
        if self.is_first() {
            self.eager.fetch_ahead(table, keys, bytes);
        }
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
}
