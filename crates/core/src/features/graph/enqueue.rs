//! Enqueueing operations: while its body runs, a transaction records what it is going to do.
//!
//! Stealable operations go on the board. Computations stay with the owner, unless a stealable operation waits for them.
//! Operations that nobody else may run stay with the owner too, which runs them in their turns.

use super::stealable_operations::{Edge, OPERATIONS_MAX, Plan};
use crate::features::graph::StealingAccess;
use crate::features::operations::{Again, Deferred, Input, Once, Operation, Results};
use crate::kernel::abort::Abort;
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::Stealing as _;
use crate::kernel::engine::Engine;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;

/// An operation or a computation that is not on the board.
pub(super) struct Own<P: Protocol> {
    pub(super) operation: Operation<P>,
    pub(super) on_rows: bool,
    /// Number of operations on the board when it was enqueued.
    pub(super) after: usize,
    /// It is on the board now.
    pub(super) was_moved: bool,
}

/// The place of the operation or computation that makes a result.
#[derive(Clone, Copy)]
enum Maker {
    /// On the board.
    Published(u32),
    /// With the owner.
    Own(u32),
}

const OWN: u32 = 1 << 31;

impl Maker {
    fn number(self) -> u32 {
        match self {
            Maker::Published(at) => at,
            Maker::Own(at) => at | OWN,
        }
    }

    fn numbered(number: u32) -> Self {
        if number & OWN == 0 { Maker::Published(number) } else { Maker::Own(number & !OWN) }
    }
}

/// The workers that may run an operation on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Any worker.
    Anybody,
    /// Its owner, in its turn.
    Owner,
}

/// Operations that an attempt has enqueued and not yet run.
pub(crate) struct EnqueuedOperations<P: Protocol> {
    /// Number of operations on the board.
    pub(super) count: usize,
    /// The owner's own operations and computations, in the order in which they were enqueued.
    pub(super) own: Vec<Own<P>>,
    /// Number of those that have been run.
    pub(super) own_run: usize,
    /// Those on rows before this one are all on the board.
    own_moved: usize,
    /// True if operations are enqueued from now on instead of being run at once.
    pub(super) is_enqueuing: bool,
    /// Results below this number come from earlier batches.
    pub(super) first_slot: u32,
    /// True if an operation that finds a lock taken must give up instead of waiting.
    pub(crate) nonblocking: bool,
    /// True in a thief's attempt, which runs an operation for its owner.
    pub(crate) is_thief: bool,
    /// True if the last operation would have blocked.
    pub(crate) has_blocked: bool,
    /// True if others may run some of the operations.
    pub(crate) is_published: bool,
    /// True if the first operation could not run at once because a lock was not free.
    pub(super) first_would_block: bool,
    /// Hashes of the keys of all enqueued operations. `bits` is a filter over them: if a key's bit is clear, the key is
    /// not among them.
    keys: Vec<u64>,
    bits: [u64; 4],
    /// Objects, by number, with an enqueued operation whose key is not known.
    in_turn: Vec<u32>,
}

impl<P: Protocol> EnqueuedOperations<P> {
    pub(crate) fn new() -> Self {
        Self {
            count: 0,
            own: Vec::new(),
            own_run: 0,
            own_moved: 0,
            is_enqueuing: false,
            first_slot: 0,
            nonblocking: false,
            is_thief: false,
            has_blocked: false,
            is_published: false,
            first_would_block: false,
            keys: Vec::new(),
            bits: [0; 4],
            in_turn: Vec::new(),
        }
    }

    /// True if nothing waits to be run.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.own.is_empty()
    }

    /// Begins another attempt.
    #[inline]
    pub(crate) fn open(&mut self) {
        // A panic may have cut a nonblocking operation short.
        (self.nonblocking, self.has_blocked) = (false, false);
        self.is_enqueuing = false;
        self.first_slot = 0;
        if !self.is_empty() {
            self.clear();
        }
    }

    /// Forgets all enqueued operations.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.is_published = false;
        self.own.clear();
        self.own_run = 0;
        self.own_moved = 0;
        self.first_would_block = false;
        self.keys.clear();
        self.bits = [0; 4];
        self.in_turn.clear();
    }

    /// True if an own operation waits for nothing on the board from `at` on; one of its inputs may have been moved
    /// there after it was enqueued. One on rows that was moved itself makes those behind it wait, because they may be
    /// on the same key.
    pub(super) fn is_its_turn(&self, own: &Own<P>, results: &Results, at: usize) -> bool {
        let is_before = |slot| match results.maker(slot).map(Maker::numbered) {
            Some(Maker::Published(before)) if slot >= self.first_slot => (before as usize) < at,
            _ => true,
        };
        if own.was_moved {
            return !own.on_rows || is_before(own.operation.slot);
        }
        let mut is_its_turn = true;
        // SAFETY: the attempt is in progress, and the operation is the owner's.
        unsafe { own.operation.each_input(&mut |slot| is_its_turn &= is_before(slot)) };
        is_its_turn
    }

    /// Number of operations on the board that run before others may take any: 1 for the operation that would have
    /// blocked, if it is there.
    pub(super) fn run_first(&self) -> usize {
        let is_own = self.own.first().is_some_and(|own| own.after == 0 && !own.was_moved);
        usize::from(self.first_would_block && !is_own).min(self.count)
    }

    /// Notes that an operation works on a key. True if an earlier one may work on the same key.
    fn note(&mut self, key: u64) -> bool {
        let (word, bit) = (key as usize >> 6 & 3, 1 << (key & 63));
        let again = self.bits[word] & bit != 0 && self.keys.contains(&key);
        self.bits[word] |= bit;
        self.keys.push(key);
        again
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Records a computation: among the operations that others may run if it is `enqueued`, or as an intention.
    ///
    /// # Errors
    ///
    /// As [`enqueue`](Self::enqueue).
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](Self::enqueue), if it is `enqueued`.
    #[inline]
    pub(crate) unsafe fn record_computation<I: Input, O: 'static>(
        &mut self,
        enqueued: bool,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        // A computation does not block.
        let work = Once(move |_: &mut ObjectAccess<'_, P>, value| compute(value));
        let (operation, deferred) = self.operation(inputs, work)?;
        if enqueued {
            self.enter(operation, false, false);
        } else {
            self.add(self.intention(None, operation))?;
        }
        Ok(deferred)
    }

    /// Puts an operation on the board, or among the owner's. Knows nothing of its work, so that it is compiled once.
    fn enter(&mut self, operation: Operation<P>, on_rows: bool, is_shared: bool) {
        if is_shared {
            self.move_inputs(&operation);
        }
        let graph = &self.attempt.features.graph;
        let maker = match is_shared {
            true => Maker::Published(graph.count as u32),
            false => Maker::Own(graph.own.len() as u32),
        };
        self.attempt.features.operations.results.set_maker(operation.slot, maker.number());
        if is_shared {
            self.enter_plan(Plan { operation, followers: std::ptr::null(), on_rows, by: By::Anybody });
        } else {
            let after = self.attempt.features.graph.count;
            self.attempt.features.graph.own.push(Own { operation, on_rows, after, was_moved: false });
        }
    }

    /// Moves the inputs of an operation to the board, and their inputs before them.
    fn move_inputs(&mut self, operation: &Operation<P>) {
        let mut each = |slot| {
            let Some(Maker::Own(at)) = self.attempt.graph_maker_of(slot) else { return };
            let at = at as usize;
            if self.attempt.features.graph.own[at].on_rows {
                // Earlier ones may be on the same key: they keep their order on the board.
                while self.attempt.features.graph.own_moved < at {
                    let before = self.attempt.features.graph.own_moved;
                    self.attempt.features.graph.own_moved += 1;
                    if self.attempt.features.graph.own[before].on_rows {
                        self.move_own(before);
                    }
                }
            }
            self.move_own(at);
        };
        // SAFETY: the attempt is in progress, and nobody else has the operation yet.
        unsafe { operation.each_input(&mut each) };
    }

    /// Moves an own operation to the board, behind its inputs, unless it is there.
    fn move_own(&mut self, at: usize) {
        let own = &mut self.attempt.features.graph.own[at];
        if std::mem::replace(&mut own.was_moved, true) {
            return;
        }
        let Own { operation, on_rows, .. } = *own;
        // Each comes after its inputs, so this ends.
        self.move_inputs(&operation);
        let maker = Maker::Published(self.attempt.features.graph.count as u32);
        self.attempt.features.operations.results.set_maker(operation.slot, maker.number());
        let by = if on_rows { By::Owner } else { By::Anybody };
        self.enter_plan(Plan { operation, followers: std::ptr::null(), on_rows, by });
    }

    /// Puts an operation on the board, behind those whose results it needs, which are there.
    fn enter_plan(&mut self, plan: Plan<P>) {
        let stealing = P::Stealing::of(self.protocol).expect("operations are enqueued only to be stolen");
        let board = &stealing.stealable_operations(self.attempt.worker()).board;
        let at = self.attempt.features.graph.count;
        self.attempt.features.graph.count += 1;
        let (recorded, operation) = (plan.operation, board.operation(at));
        // SAFETY: the owner enqueues between batches: nobody can take an operation.
        *unsafe { operation.plan_mut() } = Some(plan);
        let mut inputs_left = 0;
        let mut each = |slot| {
            let Some(Maker::Published(before)) = self.attempt.graph_maker_of(slot) else { return };
            // SAFETY: as above; it was enqueued before.
            let Some(plan) = (unsafe { board.operation(before as usize).plan_mut() }) else { return };
            let edge = self.attempt.allocate(Edge { to: at as u32, next: plan.followers });
            plan.followers = edge.cast::<Edge>();
            inputs_left += 1;
        };
        // SAFETY: the attempt is in progress, and nobody can take the operation yet.
        unsafe { recorded.each_input(&mut each) };
        operation.set_inputs_left(inputs_left);
    }
}

impl<P: Protocol> StealingAccess<'_, P> {
    /// True if operations are enqueued for waiting workers to steal, instead of being run at once. That begins when an
    /// operation would have blocked, or when a worker waits for the transaction.
    #[inline]
    pub fn is_enqueuing(&mut self) -> bool {
        let Some(stealing) = P::Stealing::of(self.protocol) else { return false };
        if self.attempt.features.operations.run_at_once {
            return false;
        }
        if !self.attempt.features.graph.is_enqueuing && stealing.has_waiters(self.attempt) {
            self.attempt.features.graph.is_enqueuing = true;
        }
        self.attempt.features.graph.is_enqueuing
    }

    /// Runs an operation now, unless the transaction would block and its operations could be stolen instead. Returns
    /// `None` in that case: the operation has had no effect, and operations are enqueued from now on.
    ///
    /// # Errors
    ///
    /// Returns the operation's own error.
    #[inline]
    pub fn try_at_once<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<Option<R>, Abort> {
        self.attempt.features.graph.nonblocking =
            self.attempt.allows_stealing() && !self.attempt.features.operations.run_at_once;
        let result = operation(self);
        self.attempt.features.graph.nonblocking = false;
        match result {
            Ok(output) => {
                // An operation that swallows the error of a part of it has not blocked.
                self.attempt.features.graph.has_blocked = false;
                Ok(Some(output))
            }
            Err(_)
                if self.attempt.allows_stealing()
                    && std::mem::take(&mut self.attempt.features.graph.has_blocked) =>
            {
                self.attempt.features.graph.is_enqueuing = true;
                self.attempt.features.graph.first_would_block = self.attempt.features.graph.is_empty();
                Ok(None)
            }
            Err(abort) => Err(abort),
        }
    }

    /// Enqueues an operation on rows of an object. `key` is a hash of its key, if that is known.
    ///
    /// `work` may be called again if it would have blocked before its first write.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    ///
    /// # Safety
    ///
    /// Any thread may use and drop `work` and its inputs, one thread at a time, and any may receive and look at the
    /// result. The memory that they rely on stays valid until the attempt ends.
    #[inline]
    pub unsafe fn enqueue<I: Input, O: 'static, W>(
        &mut self,
        meta: &ObjectMeta,
        by: By,
        key: Option<u64>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnMut(&mut ObjectAccess<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        if by == By::Anybody
            && self.attempt.features.graph.count + self.attempt.features.graph.own.len() >= OPERATIONS_MAX
        {
            // The owner's own operations may all have to go on the board with it. Not after the key has been noted: the
            // graph forgets all keys.
            self.run_graph()?;
        }
        // Of two operations on one key, the later one is the owner's, in its turn.
        let again = key.is_some_and(|key| self.attempt.features.graph.note(key));
        let in_turn = self.attempt.features.graph.in_turn.contains(&meta.number());
        let is_shared = by == By::Anybody && !again && !in_turn;
        let (operation, deferred) = self.operation(inputs, Again(work))?;
        self.enter(operation, true, is_shared);
        Ok(deferred)
    }

    /// Notes that an operation of this object is enqueued whose key is not known, so that later ones run in their
    /// turns.
    pub fn keep_in_turn(&mut self, meta: &ObjectMeta) {
        self.attempt.features.graph.in_turn.push(meta.number());
    }
}

impl<P: Protocol> Attempt<P> {
    /// Returns the place of the operation that makes a result, if the result is not known yet.
    fn graph_maker_of(&self, slot: u32) -> Option<Maker> {
        self.features.operations.results.unknown_maker(slot).map(Maker::numbered)
    }
}

impl<P: Protocol> Engine<P> {
    /// True if its variant of the protocol lets waiting workers [steal](Protocol::Stealing) operations.
    #[inline]
    pub fn allows_stealing(&self) -> bool {
        P::Stealing::of(&self.shared.protocol).is_some()
    }
}
