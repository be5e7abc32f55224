//! The board: an attempt's stealable operations.

use super::enqueue::By;
use super::running::Ready;
use super::stolen_work::StolenWork;
use super::word::{State, Word};
use crate::features::history::recorder::Recorder;
use crate::features::operations::{Operation, Results};
use crate::kernel::capabilities::StealableOperations;
use crate::kernel::item::Item;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::WorkerSlot;
use crate::memory::identity::EngineId;
use crate::memory::identity::WorkerId;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::profile::waiting;
use hotrow_sync::spin::{spin_until, yield_until};
use hotrow_sync::{Arc, OnceLock};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// Maximum number of an attempt's operations on its board.
pub(super) const OPERATIONS_MAX: usize = if cfg!(test) { 8 } else { 256 };
/// Number of operations that are allocated together, when the first of them is needed.
const CHUNK: usize = if cfg!(test) { 4 } else { 16 };

/// Number of low bits of a batch's number by which [`StealableOperations::take`] knows it.
pub const BATCH_BITS: u32 = 26;
/// A mask of these bits.
pub const BATCH_LOW: u64 = (1 << BATCH_BITS) - 1;

/// Number of times that the owner looks at an operation before it yields, and again before it parks.
const CHECKS: u32 = if cfg!(loom) { 0 } else { 64 };

/// An operation that waits for another one's result; in the owner's arena.
pub(super) struct Edge {
    pub(super) to: u32,
    pub(super) next: *const Edge,
}

/// An operation as its owner describes it before any worker can take it.
pub(super) struct Plan<P: Protocol> {
    /// Its node is in the owner's arena.
    pub(super) operation: Operation<P>,
    /// The operations that wait for its result.
    pub(super) followers: *const Edge,
    /// True if it works on rows. Otherwise it is a computation for which one on rows waits.
    pub(super) on_rows: bool,
    /// The workers that may run it.
    pub(super) by: By,
}

/// One operation. The first 64 bytes hold the parts that its owner usually looks at afterwards.
#[repr(C)]
pub(super) struct StealableOperation<P: Protocol> {
    pub(super) word: Word,
    /// Number of inputs that are not known yet.
    inputs_left: AtomicU32,
    /// The only item of the stolen work, if nothing else is to be adopted.
    item: UnsafeCell<Option<Item<P>>>,
    /// Written by the owner while nobody can take the operation.
    plan: UnsafeCell<Option<Plan<P>>>,
    /// Written by the worker that has taken the operation, and by the owner when it is done.
    stolen_work: UnsafeCell<StolenWork<P>>,
}

/// The common part of a batch's operations: the owner, as far as thieves must know it.
pub(super) struct OwnerInfo<P: Protocol> {
    pub(super) protocol: NonNull<P>,
    pub(super) stealing: NonNull<P::Stealing>,
    pub(super) engine: EngineId,
    pub(super) slot: NonNull<WorkerSlot<P>>,
    pub(super) results: NonNull<Results>,
    /// The attempt's stamp, which no other attempt has.
    pub(super) stamp: u64,
    pub(super) profile: Profile,
    pub(super) worker: WorkerId,
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// A worker's board: its operations that others may steal.
pub(crate) struct Board<P: Protocol> {
    chunks: [OnceLock<Box<[CachePadded<StealableOperation<P>>]>>; OPERATIONS_MAX / CHUNK],
    /// Operations on rows of the current batch that could be run when it began, by their places in `chunks`.
    queue: [AtomicU32; OPERATIONS_MAX],
    /// The current batch. Only the owner changes it.
    batch: AtomicU64,
    owner: UnsafeCell<Option<OwnerInfo<P>>>,
    /// The owner waits here for thieves.
    done: Event,
}

// SAFETY: each cell has one writer at a time. Plan and owner info: the owner writes them before it makes the
// operation's word say that it may be taken (release), and the worker that has taken it reads them (acquire); the owner
// changes them only when no operation of the batch is taken. The stolen work: the worker that has taken the operation
// writes it until the word says that it is done (release), and then the owner does (acquire). The pointers lead to
// memory that the owner keeps until then. Any thread may use what a plan's node holds: `StealingAccess::enqueue` demands that
// of its caller.
unsafe impl<P: Protocol> Sync for Board<P> {}
// SAFETY: as above; the pointers are only followed while the owner waits.
unsafe impl<P: Protocol> Send for Board<P> {}

impl<P: Protocol> Default for Board<P> {
    fn default() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            queue: std::array::from_fn(|_| AtomicU32::new(0)),
            batch: AtomicU64::new(1),
            owner: UnsafeCell::new(None),
            done: Event::new(),
        }
    }
}

impl<P: Protocol> std::fmt::Debug for Board<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StealableOperations").finish_non_exhaustive()
    }
}

/// The result of trying to take an operation.
#[derive(Debug)]
pub enum TakeResult<'b, P: Protocol> {
    /// The caller has taken it.
    Taken(TakenOperation<'b, P>),
    /// Another worker has taken it, or its inputs are not known.
    Busy,
    /// Its batch is over.
    Ended,
}

/// An operation that the caller has taken and must run.
#[must_use = "its owner waits until it has been run"]
#[derive(Debug)]
pub struct TakenOperation<'b, P: Protocol> {
    board: &'b Board<P>,
    at: usize,
    batch: u64,
}

impl<P: Protocol> StealableOperation<P> {
    fn new() -> Self {
        Self {
            word: Word::default(),
            inputs_left: AtomicU32::new(0),
            item: UnsafeCell::new(None),
            plan: UnsafeCell::new(None),
            stolen_work: UnsafeCell::new(StolenWork::new()),
        }
    }

    pub(super) fn set_inputs_left(&self, inputs_left: u32) {
        // Relaxed: the word's release store, which lets others take it, comes later.
        self.inputs_left.store(inputs_left, Ordering::Relaxed);
    }

    pub(super) fn has_inputs(&self) -> bool {
        // Acquire: pairs with the update that brings it to zero.
        self.inputs_left.load(Ordering::Acquire) == 0
    }

    /// Notes that an input is known. True if that was the last one.
    pub(super) fn has_last_input(&self) -> bool {
        // Acquire and release: pairs with itself; the worker that brings it to zero has seen all the results.
        self.inputs_left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// # Safety
    ///
    /// The operation is of the current batch, and the caller has taken one of that batch or is the owner.
    pub(super) unsafe fn plan(&self) -> &Plan<P> {
        // SAFETY: the caller's promise: nobody writes it.
        unsafe { &*self.plan.get() }.as_ref().expect("the operation was enqueued")
    }

    /// # Safety
    ///
    /// The caller is the owner, nobody can take the operation, and no other reference to the plan is in use.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn plan_mut(&self) -> &mut Option<Plan<P>> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.plan.get() }
    }

    /// # Safety
    ///
    /// As for [`stolen_work_mut`](Self::stolen_work_mut).
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn item_mut(&self) -> &mut Option<Item<P>> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.item.get() }
    }

    /// # Safety
    ///
    /// Either the caller has taken the operation and has not given it up, or it is the owner and the operation is done,
    /// given back or finished. No other reference to the stolen work is in use.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn stolen_work_mut(&self) -> &mut StolenWork<P> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.stolen_work.get() }
    }
}

impl<P: Protocol> StealableOperations<P> {
    /// Returns the current batch.
    pub fn batch(&self) -> u64 {
        self.board.batch()
    }

    /// Takes an operation, by its place among those that were runnable when the batch began, if it is still runnable
    /// and the low bits of its batch are [these](BATCH_LOW).
    pub fn take(&self, place: u32, batch_low: u64) -> TakeResult<'_, P> {
        self.board.take(place, batch_low)
    }
}

impl<P: Protocol> Board<P> {
    pub(super) fn operation(&self, at: usize) -> &StealableOperation<P> {
        let make = || (0..CHUNK).map(|_| CachePadded::new(StealableOperation::new())).collect();
        &self.chunks[at / CHUNK].get_or_init(make)[at % CHUNK]
    }

    pub(super) fn batch(&self) -> u64 {
        // Relaxed: only the owner changes it; others check it when they take an operation.
        self.batch.load(Ordering::Relaxed)
    }

    /// Begins another batch.
    ///
    /// # Safety
    ///
    /// The caller is the owner, and no operation is taken.
    pub(super) unsafe fn begin(&self, owner: OwnerInfo<P>) {
        // SAFETY: the caller's promise; thieves look at the owner info only after they have taken an operation.
        unsafe { *self.owner.get() = Some(owner) };
    }

    /// Lets others take operations. Returns the number of runnable ones on rows.
    pub(super) fn publish(&self, range: std::ops::Range<usize>) -> u32 {
        let (batch, mut stealable) = (self.batch(), 0);
        for at in range {
            let operation = self.operation(at);
            // SAFETY: only the owner calls this. Nobody can take an operation on rows yet, except one of those before,
            // which leaves plans as they are.
            let plan = unsafe { operation.plan() };
            let state = match () {
                // Already made, or it has panicked.
                () if matches!(operation.word.state_in(batch), Some(State::Finished | State::Done)) => {
                    continue;
                }
                () if plan.by == By::Owner => State::GivenBack,
                () if plan.on_rows && operation.has_inputs() => State::Runnable,
                () => State::Waiting,
            };
            if state == State::Runnable {
                // Relaxed: pairs with the access that makes the number of operations known.
                self.queue[stealable as usize].store(at as u32, Ordering::Relaxed);
                stealable += 1;
            }
            operation.word.set(state, batch);
        }
        stealable
    }

    /// Ends a batch, so that no operation of it can be taken any more.
    pub(super) fn end_batch(&self) {
        self.batch.store(self.batch() + 1, Ordering::Relaxed);
    }

    /// # Safety
    ///
    /// The caller has taken an operation, or is the owner.
    pub(super) unsafe fn owner(&self) -> &OwnerInfo<P> {
        // SAFETY: the caller's promise: the owner changes it only when no operation is taken.
        unsafe { &*self.owner.get() }.as_ref().expect("a batch has begun")
    }

    fn take(&self, place: u32, batch_low: u64) -> TakeResult<'_, P> {
        // Relaxed: if it is of another batch, so is the operation's word.
        let Some(at) = self.queue.get(place as usize) else { return TakeResult::Ended };
        let at = at.load(Ordering::Relaxed) as usize;
        let Some(chunk) = self.chunks[at / CHUNK].get() else { return TakeResult::Ended };
        let operation = &chunk[at % CHUNK];
        let batch = operation.word.batch();
        match () {
            () if batch & BATCH_LOW != batch_low => TakeResult::Ended,
            () if operation.word.take(State::Runnable, batch) => {
                TakeResult::Taken(TakenOperation { board: self, at, batch })
            }
            () => TakeResult::Busy,
        }
    }

    /// Waits until an operation is no longer taken.
    pub(super) fn await_done(&self, operation: &StealableOperation<P>) {
        let _waiting = waiting("an operation that another worker runs", 0);
        let is_done = || operation.word.state() != State::Taken;
        // Operations are short, so spinning comes first.
        if !spin_until(CHECKS, is_done) && !yield_until(CHECKS, is_done) {
            self.done.wait_until(is_done);
        }
    }

    pub(super) fn tell_owner(&self) {
        self.done.notify_all();
    }
}

impl<P: Protocol> TakenOperation<'_, P> {
    /// Runs the operation in its owner's name, and then those that have waited only for its result.
    pub fn run(self) {
        let TakenOperation { board, at, batch } = self;
        let mut ready = Ready::default();
        board.run_taken(at, batch, &mut ready);
        while let Some(at) = ready.next() {
            board.run_taken(at, batch, &mut ready);
        }
    }
}
