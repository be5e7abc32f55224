//! Running what was drawn: the owner from the front, thieves from the back (stealdb, Algorithms 1 and 2).

use super::drawing::Own;
use super::stealable_operations::{OwnerInfo, StealableOperations};
use super::stolen_work::Outcome;
use super::word::State;
use crate::abort::{Abort, Reason};
use crate::graph::Stealing as _;
use crate::item::ItemId;
use crate::protocol::{ConflictCause, Protocol};
use crate::transaction::{Stop, Transaction};
use crate::users_code::panic_message;
use hotrow_sync::clock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// One operation in so many is timed.
const TIMED_ONE_IN: u64 = 8;

impl<P: Protocol> StealableOperations<P> {
    /// Runs an operation that the caller, a thief, has taken. What has waited for nothing but its result is in `ready` then,
    /// and taken.
    pub(super) fn run_taken(&self, at: usize, batch: u64, ready: &mut Ready) {
        let operation = self.operation(at);
        // SAFETY: the caller has taken the operation.
        let (plan, share, owner) = unsafe { (operation.plan(), operation.share_mut(), self.owner()) };
        let timed = (batch + at as u64).is_multiple_of(TIMED_ONE_IN) && plan.on_rows;
        let began_ns = if timed { clock::nanoseconds() } else { 0 };
        // SAFETY: as above.
        unsafe { share.run(plan, owner) };
        if timed {
            share.took_ns = Some(clock::nanoseconds().saturating_sub(began_ns));
        }
        // SAFETY: as above. The owner will read no more of the share, if it is there.
        *unsafe { operation.item_mut() } = if timed { None } else { share.take_only_item() };
        let state = match share.outcome {
            Outcome::WouldBlock => State::GivenBack,
            Outcome::Lost(_) | Outcome::Stopped(_) => State::Done,
            Outcome::Done => {
                // SAFETY: the owner keeps the results until the operation is done. The slot is this operation's.
                unsafe { owner.results.as_ref() }.learn(plan.slot);
                self.follow(at, batch, true, ready);
                State::Done
            }
        };
        // What it has taken is taken before this one is done: the owner, who waits for one after the other, misses none.
        operation.word.set(state, batch);
        self.tell_owner();
    }

    /// Lets those go on that have waited for nothing but the result of an operation. Computations are made next by who
    /// has made the result, and so is one operation on rows by a thief; other operations can be taken by anybody.
    fn follow(&self, at: usize, batch: u64, is_thief: bool, ready: &mut Ready) {
        // SAFETY: the caller has taken the operation, or nobody can.
        let mut edge = unsafe { self.operation(at).plan() }.followers;
        // SAFETY: in the owner's arena, made when the graph was drawn.
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

/// Operations that whoever has made their last input runs next.
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

    /// Computations first: others may wait for what they make.
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

/// When the owner runs an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// All that was drawn before it has run.
    Due,
    /// Not all. If it panics, that is not known before its turn comes: it may rely on a condition that does not hold, and
    /// then nobody hears of it.
    Early,
}

/// What the owner has taken to run it next. If something goes wrong before, nobody runs it, nor waits for it.
struct ClaimGuard<'b, P: Protocol> {
    board: &'b StealableOperations<P>,
    ready: Ready,
}

impl<P: Protocol> Drop for ClaimGuard<'_, P> {
    fn drop(&mut self) {
        while let Some(at) = self.ready.next() {
            self.board.operation(at).word.set(State::Finished, self.board.batch());
        }
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Runs all that has been drawn, with the help of those that wait for the transaction.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn run_graph(&mut self) -> Result<(), Abort> {
        match P::Stealing::of(self.protocol) {
            Some(stealing) if !self.attempt.graph.is_empty() => self.run_drawn(stealing),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn run_drawn(&mut self, stealing: &P::Stealing) -> Result<(), Abort> {
        let board = stealing.board(self.attempt.worker());
        let result = if self.is_stopped() {
            Err(Abort::INTERNAL)
        } else {
            self.catching(|tx| tx.run_batch(stealing, board))
        };
        if result.is_err() {
            self.withdraw(board);
        }
        board.end_batch();
        self.attempt.graph.clear();
        self.attempt.graph.first_slot = self.attempt.intentions.results.count();
        result
    }

    fn run_batch(&mut self, stealing: &P::Stealing, board: &StealableOperations<P>) -> Result<(), Abort> {
        let owner = OwnerInfo {
            protocol: NonNull::from(self.protocol),
            stealing: NonNull::from(stealing),
            engine: self.engine(),
            slot: self.slot(),
            results: self.attempt.intentions.results.shared(),
            stamp: self.attempt.intentions.results.stamp(),
            profile: *self.attempt.profile(),
            worker: self.attempt.worker(),
            recorder: self.attempt.recorder(),
        };
        // SAFETY: the batch before has ended: no operation is taken.
        unsafe { board.begin(owner) };
        // Others get the operations of one that has what they wait for, not of one that waits itself.
        let first = self.attempt.graph.run_first();
        let count = self.attempt.graph.count;
        let mut ahead_of = None;
        if first != 0 {
            if stealing.runs_ahead(self.attempt) {
                let stealable = board.publish(first..count);
                stealing.published_ahead(self.attempt, board.batch(), stealable);
                ahead_of = Some(stealable);
            }
            self.run_own(board, 0, Turn::Due)?;
        } else if self.attempt.graph.first_was_put_off {
            self.run_own_parts(0)?;
        }
        self.attempt.graph.is_published = true;
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

    /// Makes the computations whose inputs are known, so that the operations which wait for them can be stolen, too.
    fn compute_first(
        &mut self,
        board: &StealableOperations<P>,
        range: std::ops::Range<usize>,
    ) -> Result<(), Abort> {
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

    /// Runs what is the owner's and was drawn before an operation on the board was, all of those before that being finished.
    fn run_own_parts(&mut self, at: usize) -> Result<(), Abort> {
        let results = self.attempt.intentions.results.shared();
        while let Some(own) = self.attempt.graph.own.get(self.attempt.graph.own_run)
            && own.after <= at
            // SAFETY: the results are the attempt's.
            && self.attempt.graph.is_its_turn(own, unsafe { results.as_ref() }, at)
        {
            let Own { node, run, slot, on_rows, was_moved, .. } = *own;
            self.attempt.graph.own_run += 1;
            if was_moved {
                continue;
            }
            // SAFETY: drawn with this function; all that it needs has run. The slot is its own.
            unsafe {
                run(node, results.as_ref(), self)?;
                results.as_ref().learn(slot);
            }
            if on_rows {
                self.count_operation(false, None);
            }
        }
        Ok(())
    }

    /// Sees to it that an operation is finished, when all before it are. While somebody else runs it, others are run that
    /// come later: those up to `ahead` are no more to be had.
    fn finish_one(
        &mut self,
        board: &StealableOperations<P>,
        at: usize,
        ahead: &mut usize,
    ) -> Result<(), Abort> {
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
                    // All that it has waited for are done, and nobody claims a follower after that.
                    debug_assert!(operation.has_inputs());
                    if operation.word.take(state, batch) {
                        return self.run_own(board, at, Turn::Due);
                    }
                }
                State::GivenBack => {
                    // Locks that a thief has got before it met one that was not free.
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

    /// Runs the next operation from `ahead` on that can be run. False if there is none.
    fn run_ahead(&mut self, board: &StealableOperations<P>, ahead: &mut usize) -> Result<bool, Abort> {
        let batch = board.batch();
        while *ahead < self.attempt.graph.count {
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

    /// Runs an operation that the attempt has taken of its own, and the computations that have waited for nothing but its
    /// result.
    fn run_own(&mut self, board: &StealableOperations<P>, at: usize, turn: Turn) -> Result<(), Abort> {
        let mut begun = ClaimGuard { board, ready: Ready::default() };
        self.run_one_own(board, at, turn, &mut begun.ready)?;
        while let Some(at) = begun.ready.next() {
            self.run_one_own(board, at, Turn::Early, &mut begun.ready)?;
        }
        Ok(())
    }

    fn run_one_own(
        &mut self,
        board: &StealableOperations<P>,
        at: usize,
        turn: Turn,
        ready: &mut Ready,
    ) -> Result<(), Abort> {
        let (batch, operation) = (board.batch(), board.operation(at));
        let results = self.attempt.intentions.results.shared();
        // SAFETY: taken, or nobody else can take it.
        let plan = unsafe { operation.plan() };
        let timed = (batch + at as u64).is_multiple_of(TIMED_ONE_IN) && plan.on_rows && at != 0;
        let began_ns = if timed { clock::nanoseconds() } else { 0 };
        // Before it runs, as it may panic. Nobody but the owner wants to know.
        operation.word.set(State::Finished, batch);
        // SAFETY: the plan's function knows its node, which nobody else uses; its inputs are known. The results are the
        // attempt's.
        let run = || unsafe { (plan.run)(plan.node, results.as_ref(), self) };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result?,
            Err(panic) if turn == Turn::Early => {
                // SAFETY: the owner has taken it, and has never given it up.
                unsafe { operation.share_mut() }.outcome =
                    Outcome::Stopped(Stop::Panicked(panic_message(panic)));
                operation.word.set(State::Done, batch);
                return Ok(());
            }
            Err(panic) => return Err(self.panicked(panic_message(panic))),
        }
        // SAFETY: as above. The slot is this operation's.
        unsafe { results.as_ref() }.learn(plan.slot);
        if plan.on_rows {
            let took_ns = timed.then(|| clock::nanoseconds().saturating_sub(began_ns));
            self.count_operation(false, took_ns);
        }
        board.follow(at, batch, false, ready);
        Ok(())
    }

    /// Makes what a thief has done the attempt's.
    fn adopt(&mut self, board: &StealableOperations<P>, at: usize, is_done: bool) -> Result<(), Abort> {
        let operation = board.operation(at);
        let Some(stealing) = P::Stealing::of(self.protocol) else { return Ok(()) };
        // SAFETY: done, or given back: whoever had taken it has done with it.
        if let Some(item) = unsafe { operation.item_mut() }.take() {
            self.attempt.adopt_only(stealing, &item);
            self.count_operation(true, None);
            return Ok(());
        }
        // SAFETY: as above.
        let (plan, share) = unsafe { (operation.plan(), operation.share_mut()) };
        let outcome = std::mem::replace(&mut share.outcome, Outcome::Done);
        let took_ns = share.took_ns.take();
        let (mut last, mut adopted) = (None, Ok(()));
        if let Some(attempt) = share.attempt_mut() {
            (last, adopted) = self.attempt.adopt(stealing, attempt);
        }
        match outcome {
            _ if !is_done => {}
            Outcome::WouldBlock => {}
            Outcome::Done if plan.on_rows => self.count_operation(true, took_ns),
            Outcome::Done => {}
            Outcome::Lost(reason) => {
                let target = last.unwrap_or(ItemId::FIRST);
                return Err(self.lose(ConflictCause::item(reason, target)));
            }
            Outcome::Stopped(stop) => return Err(self.stop(stop)),
        }
        adopted.map_err(|lost| {
            // The next attempt meets nobody's changes but those that it makes itself.
            self.attempt.runs_at_once |= lost.reason == Reason::StructureChanged;
            self.lose(lost)
        })
    }

    /// Takes all operations back that nobody has begun, waits for the others, and adopts what they hold. In ascending
    /// order: who runs one may take another one that comes after it.
    #[cold]
    fn withdraw(&mut self, board: &StealableOperations<P>) {
        let batch = board.batch();
        for at in 0..self.attempt.graph.count {
            let operation = board.operation(at);
            loop {
                match operation.word.state() {
                    State::Runnable if !operation.word.take(State::Runnable, batch) => continue,
                    // A thief's: the owner's are finished as soon as it begins them.
                    State::Taken => {
                        board.await_done(operation);
                        continue;
                    }
                    state @ (State::Done | State::GivenBack) => {
                        // What has become of the attempt is decided.
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
