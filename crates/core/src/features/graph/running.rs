//! Running enqueued operations: the owner from the front, thieves from the back (stealdb, Algorithms 1 and 2).

use super::enqueue::Own;
use super::stealable_operations::{Board, OwnerInfo};
use super::stolen_work::StolenEnd;
use super::word::State;
use crate::features::graph::StealingAccess;
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::capabilities::Stealing as _;
use crate::kernel::item::ItemId;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::memory::users_code::panic_message;
use hotrow_sync::clock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// One operation in this many is timed.
const TIMED_ONE_IN: u64 = 8;

impl<P: Protocol> Board<P> {
    /// Runs an operation that the caller, a thief, has taken. Puts into `ready`, and takes, the operations that have
    /// waited only for its result.
    pub(super) fn run_taken(&self, at: usize, batch: u64, ready: &mut Ready) {
        let operation = self.operation(at);
        // SAFETY: the caller has taken the operation.
        let (plan, stolen, owner) = unsafe { (operation.plan(), operation.stolen_work_mut(), self.owner()) };
        let timed = (batch + at as u64).is_multiple_of(TIMED_ONE_IN) && plan.on_rows;
        let began_ns = if timed { clock::nanoseconds() } else { 0 };
        // SAFETY: as above.
        unsafe { stolen.run(plan, owner) };
        if timed {
            stolen.took_ns = Some(clock::nanoseconds().saturating_sub(began_ns));
        }
        // SAFETY: as above. The owner reads no more of the stolen work if the item is there.
        *unsafe { operation.item_mut() } = if timed { None } else { stolen.take_only_item() };
        let state = match stolen.end {
            StolenEnd::WouldBlock => State::GivenBack,
            StolenEnd::Lost(_) | StolenEnd::Stopped(_) => State::Done,
            StolenEnd::Done => {
                // SAFETY: the owner keeps the results until the operation is done. The slot is this operation's.
                unsafe { owner.results.as_ref() }.learn(plan.operation.slot);
                self.follow(at, batch, true, ready);
                State::Done
            }
        };
        // Its followers are taken before this one is done, so that the owner, which waits for one after the other,
        // misses none.
        operation.word.set(state, batch);
        self.tell_owner();
    }

    /// Releases the operations that have waited only for this result. The worker that made the result makes the
    /// computations among them next; a thief also runs one on rows. Any worker can take the others.
    fn follow(&self, at: usize, batch: u64, is_thief: bool, ready: &mut Ready) {
        // SAFETY: the caller has taken the operation, or nobody can.
        let mut edge = unsafe { self.operation(at).plan() }.followers;
        // SAFETY: in the owner's arena, made when the graph was enqueued.
        while let Some(after) = unsafe { edge.as_ref() } {
            edge = after.next;
            let follower = self.operation(after.to as usize);
            if !follower.has_last_input() {
                continue;
            }
            // SAFETY: nobody changes a plan while operations of its batch may be taken.
            let on_rows = unsafe { follower.plan() }.on_rows;
            // Before the batch is published, nobody else can take it, and it is in no state.
            let is_published = is_thief || follower.word.state_in(batch).is_some();
            let may_take = if on_rows { is_thief && ready.row.is_none() } else { ready.has_room() };
            if may_take && (!is_published || follower.word.take(State::Waiting, batch)) {
                ready.add(after.to, on_rows);
            } else if on_rows && is_published {
                follower.word.change(State::Waiting, State::Runnable, batch);
            }
        }
    }
}

/// Operations that the worker that made their last input runs next.
#[derive(Default)]
pub(super) struct Ready {
    computations: [u32; 16],
    count: usize,
    row: Option<u32>,
}

impl Ready {
    fn has_room(&self) -> bool {
        self.count < self.computations.len()
    }

    fn add(&mut self, at: u32, on_rows: bool) {
        if on_rows {
            self.row = Some(at);
        } else {
            self.computations[self.count] = at;
            self.count += 1;
        }
    }

    /// Returns the next one, computations first, because others may wait for their results.
    pub(super) fn next(&mut self) -> Option<usize> {
        match self.count.checked_sub(1) {
            Some(left) => {
                self.count = left;
                Some(self.computations[left] as usize)
            }
            None => self.row.take().map(|at| at as usize),
        }
    }
}

/// The moment at which the owner runs an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// All operations enqueued before it have run.
    Due,
    /// Some have not. A panic is then kept until its turn comes: the operation may rely on a condition that does not
    /// hold, and in that case the panic is never reported.
    Early,
}

/// The operations that the owner has taken to run next. If an error comes first, nobody runs them or waits for them.
struct ClaimGuard<'b, P: Protocol> {
    board: &'b Board<P>,
    ready: Ready,
}

impl<P: Protocol> Drop for ClaimGuard<'_, P> {
    fn drop(&mut self) {
        while let Some(at) = self.ready.next() {
            self.board.operation(at).word.set(State::Finished, self.board.batch());
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    #[inline(never)]
    fn run_enqueued(&mut self, stealing: &P::Stealing) -> Result<(), Abort> {
        let board = &stealing.stealable_operations(self.attempt.worker()).board;
        let result = if self.is_stopped() {
            Err(Abort::INTERNAL)
        } else {
            self.catching(|tx| tx.run_batch(stealing, board))
        };
        if result.is_err() {
            self.withdraw(board);
        }
        board.end_batch();
        self.attempt.features.graph.clear();
        self.attempt.features.graph.first_slot = self.attempt.features.operations.results.count();
        result
    }

    fn run_batch(&mut self, stealing: &P::Stealing, board: &Board<P>) -> Result<(), Abort> {
        let owner = OwnerInfo {
            protocol: NonNull::from(self.protocol),
            stealing: NonNull::from(stealing),
            engine: self.engine(),
            slot: self.slot(),
            results: self.attempt.features.operations.results.shared(),
            stamp: self.attempt.features.operations.results.stamp(),
            profile: *self.attempt.profile(),
            worker: self.attempt.worker(),
            recorder: self.attempt.recorder(),
        };
        // SAFETY: the batch before has ended: no operation is taken.
        unsafe { board.begin(owner) };
        // Others may take operations only once the first one has its locks, so that they do not steal from a worker
        // that waits itself.
        let first = self.attempt.features.graph.run_first();
        let count = self.attempt.features.graph.count;
        let mut ahead_of = None;
        if first != 0 {
            if stealing.runs_ahead(self.attempt) {
                let stealable = board.publish(first..count);
                stealing.published_ahead(self.attempt, board.batch(), stealable);
                ahead_of = Some(stealable);
            }
            self.run_own(board, 0, Turn::Due)?;
        } else if self.attempt.features.graph.first_would_block {
            self.run_own_parts(0)?;
        }
        self.attempt.features.graph.is_published = true;
        let stealable = match ahead_of {
            Some(stealable) => stealable,
            None => {
                self.compute_first(board, first..count)?;
                board.publish(first..count)
            }
        };
        stealing.published(self.attempt, board.batch(), stealable);
        let mut ahead = first;
        for at in first..count {
            self.run_own_parts(at)?;
            self.finish_one(board, at, &mut ahead)?;
        }
        self.run_own_parts(count)
    }

    /// Makes the computations whose inputs are known, so that the operations that wait for them can be stolen, too.
    fn compute_first(&mut self, board: &Board<P>, range: std::ops::Range<usize>) -> Result<(), Abort> {
        for at in range {
            let operation = board.operation(at);
            let is_made = operation.word.state_in(board.batch()).is_some();
            // SAFETY: nothing is published yet.
            if !is_made && operation.has_inputs() && !unsafe { operation.plan() }.on_rows {
                self.run_own(board, at, Turn::Early)?;
            }
        }
        Ok(())
    }

    /// Runs the owner's own operations that were enqueued before operation `at` of the board; all before `at` are
    /// finished.
    fn run_own_parts(&mut self, at: usize) -> Result<(), Abort> {
        let results = self.attempt.features.operations.results.shared();
        while let Some(own) = self.attempt.features.graph.own.get(self.attempt.features.graph.own_run)
            && own.after <= at
            // SAFETY: the results are the attempt's.
            && self.attempt.features.graph.is_its_turn(own, unsafe { results.as_ref() }, at)
        {
            let Own { operation, on_rows, was_moved, .. } = *own;
            self.attempt.features.graph.own_run += 1;
            if was_moved {
                continue;
            }
            // SAFETY: the attempt is in progress, and the operation and the results are its own.
            unsafe {
                operation.run(results, self)?;
                results.as_ref().learn(operation.slot);
            }
            if on_rows {
                self.count_operation(false, None);
            }
        }
        Ok(())
    }

    /// Makes sure that an operation is finished; all before it are. While another worker runs it, the owner runs later
    /// ones: those below `ahead` can no longer be claimed.
    fn finish_one(&mut self, board: &Board<P>, at: usize, ahead: &mut usize) -> Result<(), Abort> {
        let (batch, operation) = (board.batch(), board.operation(at));
        loop {
            match operation.word.state() {
                State::Finished => return Ok(()),
                State::Taken => {
                    *ahead = (*ahead).max(at + 1);
                    if !self.run_ahead(board, ahead)? {
                        board.await_done(operation);
                    }
                }
                state @ (State::Runnable | State::Waiting) => {
                    // All its inputs are done, and nobody claims a follower after that.
                    debug_assert!(operation.has_inputs());
                    if operation.word.take(state, batch) {
                        return self.run_own(board, at, Turn::Due);
                    }
                }
                State::GivenBack => {
                    // Adopts the locks that a thief got before it found one that was not free.
                    self.adopt(board, at, false)?;
                    return self.run_own(board, at, Turn::Due);
                }
                State::Done => {
                    self.adopt(board, at, true)?;
                    operation.word.set(State::Finished, batch);
                    return Ok(());
                }
            }
        }
    }

    /// Runs the next runnable operation from `ahead` on. False if there is none.
    fn run_ahead(&mut self, board: &Board<P>, ahead: &mut usize) -> Result<bool, Abort> {
        let batch = board.batch();
        while *ahead < self.attempt.features.graph.count {
            let at = *ahead;
            *ahead += 1;
            let operation = board.operation(at);
            let taken = match operation.word.state() {
                State::Runnable => operation.word.take(State::Runnable, batch),
                State::Waiting if operation.has_inputs() => operation.word.take(State::Waiting, batch),
                _ => false,
            };
            if taken {
                self.run_own(board, at, Turn::Early)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs an operation of its own that the attempt has taken, and then the computations that have waited only for its
    /// result.
    fn run_own(&mut self, board: &Board<P>, at: usize, turn: Turn) -> Result<(), Abort> {
        let mut begun = ClaimGuard { board, ready: Ready::default() };
        self.run_one_own(board, at, turn, &mut begun.ready)?;
        while let Some(at) = begun.ready.next() {
            self.run_one_own(board, at, Turn::Early, &mut begun.ready)?;
        }
        Ok(())
    }

    fn run_one_own(
        &mut self,
        board: &Board<P>,
        at: usize,
        turn: Turn,
        ready: &mut Ready,
    ) -> Result<(), Abort> {
        let (batch, operation) = (board.batch(), board.operation(at));
        let results = self.attempt.features.operations.results.shared();
        // SAFETY: taken, or nobody else can take it.
        let plan = unsafe { operation.plan() };
        let timed = (batch + at as u64).is_multiple_of(TIMED_ONE_IN) && plan.on_rows && at != 0;
        let began_ns = if timed { clock::nanoseconds() } else { 0 };
        // Set before it runs, because it may panic. Nobody but the owner waits for it.
        operation.word.set(State::Finished, batch);
        // SAFETY: the attempt is in progress, nobody else uses the operation, and the results are the attempt's.
        let run = || unsafe { plan.operation.run(results, self) };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result?,
            Err(panic) if turn == Turn::Early => {
                // SAFETY: the owner has taken it, and has never given it up.
                unsafe { operation.stolen_work_mut() }.end =
                    StolenEnd::Stopped(Stop::Panicked(panic_message(panic)));
                operation.word.set(State::Done, batch);
                return Ok(());
            }
            Err(panic) => return Err(self.panicked(panic_message(panic))),
        }
        // SAFETY: as above. The slot is this operation's.
        unsafe { results.as_ref() }.learn(plan.operation.slot);
        if plan.on_rows {
            let took_ns = timed.then(|| clock::nanoseconds().saturating_sub(began_ns));
            self.count_operation(false, took_ns);
        }
        board.follow(at, batch, false, ready);
        Ok(())
    }

    /// Adopts the stolen work of an operation.
    fn adopt(&mut self, board: &Board<P>, at: usize, is_done: bool) -> Result<(), Abort> {
        let operation = board.operation(at);
        let Some(stealing) = P::Stealing::of(self.protocol) else { return Ok(()) };
        // SAFETY: done, or given back: the thief no longer uses it.
        if let Some(item) = unsafe { operation.item_mut() }.take() {
            self.attempt.adopt_only(stealing, &item);
            self.count_operation(true, None);
            return Ok(());
        }
        // SAFETY: as above.
        let (plan, stolen) = unsafe { (operation.plan(), operation.stolen_work_mut()) };
        let end = std::mem::replace(&mut stolen.end, StolenEnd::Done);
        let took_ns = stolen.took_ns.take();
        let (mut last, mut adopted) = (None, Ok(()));
        if let Some(attempt) = stolen.attempt_mut() {
            (last, adopted) = self.attempt.adopt(stealing, attempt);
        }
        match end {
            _ if !is_done => {}
            StolenEnd::WouldBlock => {}
            StolenEnd::Done if plan.on_rows => self.count_operation(true, took_ns),
            StolenEnd::Done => {}
            StolenEnd::Lost(reason) => {
                let target = last.unwrap_or(ItemId::FIRST);
                return Err(self.lose(ConflictCause::item(reason, target)));
            }
            StolenEnd::Stopped(stop) => return Err(self.stop(stop)),
        }
        adopted.map_err(|lost| {
            // The next attempt meets no changes but its own.
            self.attempt.features.operations.has_lost |= lost.reason() == Reason::StructureChanged;
            self.lose(lost)
        })
    }

    /// Takes back all operations that nobody has begun, waits for the others, and adopts their locks. In ascending
    /// order: the worker that runs one may take another one that comes after it.
    #[cold]
    fn withdraw(&mut self, board: &Board<P>) {
        let batch = board.batch();
        for at in 0..self.attempt.features.graph.count {
            let operation = board.operation(at);
            loop {
                match operation.word.state() {
                    State::Runnable if !operation.word.take(State::Runnable, batch) => continue,
                    // A thief's: the owner marks its own as finished before it runs them.
                    State::Taken => {
                        board.await_done(operation);
                        continue;
                    }
                    state @ (State::Done | State::GivenBack) => {
                        // The outcome of the attempt is already decided.
                        let _ = self.adopt(board, at, state == State::Done);
                    }
                    State::Runnable | State::Waiting | State::Finished => {}
                }
                break;
            }
            operation.word.set(State::Finished, batch);
        }
    }
}

impl<P: Protocol> StealingAccess<'_, P> {
    /// Runs all enqueued operations, with the help of workers that wait for the transaction.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[inline]
    pub fn run_graph(&mut self) -> Result<(), Abort> {
        match P::Stealing::of(self.protocol) {
            Some(stealing) if !self.attempt.features.graph.is_empty() => self.run_enqueued(stealing),
            _ => Ok(()),
        }
    }
}
