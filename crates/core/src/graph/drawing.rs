//! Enqueueing operations: while its body runs, a transaction records what it is going to do.
//!
//! Stealable operations go on the board. Computations stay with the owner, unless a stealable operation waits for them.
//! Operations that nobody else may run stay with the owner too, which runs them in their turns.

use super::stealable_operations::{Edge, OPERATIONS_MAX, Plan, Run};
use crate::abort::{Abort, Misuse};
use crate::deferred::{Deferred, Input, Results};
use crate::graph::Stealing as _;
use crate::object::ObjectMeta;
use crate::protocol::Protocol;
use crate::transaction::Transaction;

/// An operation or a computation that is not on the board.
pub(super) struct Own<P: Protocol> {
    pub(super) node: *mut u8,
    pub(super) run: Run<P>,
    pub(super) slot: u32,
    visit_inputs: VisitInputs,
    pub(super) on_rows: bool,
    /// Number of operations on the board when it was enqueued.
    pub(super) after: usize,
    /// It is on the board now.
    pub(super) was_moved: bool,
}

/// The place of the operation or computation that makes a result.
#[derive(Clone, Copy)]
enum Place {
    /// On the board.
    Published(u32),
    /// With the owner.
    Own(u32),
}

const OWN: u32 = 1 << 31;

impl Place {
    fn number(self) -> u32 {
        match self {
            Place::Published(at) => at,
            Place::Own(at) => at | OWN,
        }
    }

    fn numbered(number: u32) -> Self {
        if number & OWN == 0 { Place::Published(number) } else { Place::Own(number & !OWN) }
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
pub(crate) struct Graph<P: Protocol> {
    /// Number of operations on the board.
    pub(super) count: usize,
    /// The owner's own operations and computations, in the order in which they were enqueued.
    pub(super) own: Vec<Own<P>>,
    /// Number of those that have been run.
    pub(super) own_run: usize,
    /// Those on rows before this one are all on the board.
    own_moved: usize,
    /// True if operations are enqueued from now on instead of being run at once.
    pub(super) draws: bool,
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
    pub(super) first_was_put_off: bool,
    /// Hashes of the keys of all enqueued operations. `bits` is a filter over them: if a key's bit is clear, the key is
    /// not among them.
    keys: Vec<u64>,
    bits: [u64; 4],
    /// Objects, by number, with an enqueued operation whose key is not known.
    in_turn: Vec<u32>,
}

impl<P: Protocol> Graph<P> {
    pub(crate) fn new() -> Self {
        Self {
            count: 0,
            own: Vec::new(),
            own_run: 0,
            own_moved: 0,
            draws: false,
            first_slot: 0,
            nonblocking: false,
            is_thief: false,
            has_blocked: false,
            is_published: false,
            first_was_put_off: false,
            keys: Vec::new(),
            bits: [0; 4],
            in_turn: Vec::new(),
        }
    }

    /// True if nothing waits to be run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.own.is_empty()
    }

    /// Begins another attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn open(&mut self) {
        // A panic may have cut a nonblocking operation short.
        (self.nonblocking, self.has_blocked) = (false, false);
        self.draws = false;
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
        self.first_was_put_off = false;
        self.keys.clear();
        self.bits = [0; 4];
        self.in_turn.clear();
    }

    /// True if an own operation waits for nothing on the board from `at` on; one of its inputs may have been moved
    /// there after it was enqueued. One on rows that was moved itself makes those behind it wait, because they may be
    /// on the same key.
    pub(super) fn is_its_turn(&self, own: &Own<P>, results: &Results, at: usize) -> bool {
        let is_before = |slot| match results.place_of(slot).map(Place::numbered) {
            Some(Place::Published(before)) if slot >= self.first_slot => (before as usize) < at,
            _ => true,
        };
        if own.was_moved {
            return !own.on_rows || is_before(own.slot);
        }
        let mut is_its_turn = true;
        // SAFETY: enqueued with this function.
        unsafe { (own.visit_inputs)(own.node, &mut |slot| is_its_turn &= is_before(slot)) };
        is_its_turn
    }

    /// Number of operations on the board that run before others may take any: 1 for the operation that would have
    /// blocked, if it is there.
    pub(super) fn run_first(&self) -> usize {
        let is_own = self.own.first().is_some_and(|own| own.after == 0 && !own.was_moved);
        usize::from(self.first_was_put_off && !is_own).min(self.count)
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

/// Visits the results that a node needs, by number.
type VisitInputs = unsafe fn(*const u8, &mut dyn FnMut(u32));

/// An operation: its function, the results that it needs, and its own result.
struct Node<W, I, O> {
    work: W,
    inputs: I,
    result: Option<O>,
}

impl<W, I: Input, O> Node<W, I, O> {
    /// # Safety
    ///
    /// `node` points to a node of this type, which nobody else uses, and its inputs are known.
    unsafe fn run<P: Protocol>(
        node: *mut u8,
        results: &Results,
        tx: &mut Transaction<'_, P>,
    ) -> Result<(), Abort>
    where
        W: FnMut(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort>,
    {
        // SAFETY: the caller's promise.
        let node = unsafe { &mut *node.cast::<Self>() };
        let inputs = node.inputs.get(results).expect("its inputs are known");
        node.result = Some((node.work)(tx, inputs)?);
        Ok(())
    }

    /// # Safety
    ///
    /// `node` points to a node of this type, whose inputs nobody changes.
    unsafe fn visit_inputs(node: *const u8, visit: &mut dyn FnMut(u32)) {
        // SAFETY: the caller's promise.
        unsafe { &(*node.cast::<Self>()).inputs }.each_slot(visit);
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// True if operations are enqueued for waiting workers to steal, instead of being run at once. That begins when an
    /// operation would have blocked, or when a worker waits for the transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn draws(&mut self) -> bool {
        let Some(stealing) = P::Stealing::of(self.protocol) else { return false };
        if self.attempt.runs_at_once {
            return false;
        }
        if !self.attempt.graph.draws && stealing.has_waiters(self.attempt) {
            self.attempt.graph.draws = true;
        }
        self.attempt.graph.draws
    }

    /// Runs an operation now, unless the transaction would block and its operations could be stolen instead. Returns
    /// `None` in that case: the operation has had no effect, and operations are enqueued from now on.
    ///
    /// # Errors
    ///
    /// Returns the operation's own error.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn try_at_once<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<Option<R>, Abort> {
        self.attempt.graph.nonblocking = P::ALLOWS_STEALING && !self.attempt.runs_at_once;
        let result = operation(self);
        self.attempt.graph.nonblocking = false;
        match result {
            Ok(output) => {
                // An operation that swallows the error of a part of it has not blocked.
                self.attempt.graph.has_blocked = false;
                Ok(Some(output))
            }
            Err(_) if P::ALLOWS_STEALING && std::mem::take(&mut self.attempt.graph.has_blocked) => {
                self.attempt.graph.draws = true;
                self.attempt.graph.first_was_put_off = self.attempt.graph.is_empty();
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
    pub unsafe fn draw<I: Input, O: 'static, W>(
        &mut self,
        meta: &ObjectMeta,
        by: By,
        key: Option<u64>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnMut(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        // Of two operations on one key, the later one is the owner's, in its turn.
        let again = key.is_some_and(|key| self.attempt.graph.note(key));
        let in_turn = self.attempt.graph.in_turn.contains(&meta.number());
        let is_shared = by == By::Anybody && !again && !in_turn;
        self.draw_node(true, is_shared, inputs, work)
    }

    /// Notes that an operation of this object is enqueued whose key is not known, so that later ones run in their
    /// turns.
    pub fn keep_in_turn(&mut self, meta: &ObjectMeta) {
        self.attempt.graph.in_turn.push(meta.number());
    }

    /// Enqueues a computation.
    ///
    /// # Errors
    ///
    /// As [`draw`](Self::draw).
    ///
    /// # Safety
    ///
    /// As for [`draw`](Self::draw).
    #[inline]
    pub unsafe fn draw_computation<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let mut compute = Some(compute);
        self.draw_node(false, false, inputs, move |_, value| {
            let compute = compute.take().expect("a computation is not put off");
            compute(value)
        })
    }

    /// As [`draw_computation`](Self::draw_computation). If the attempt cannot go on, the value is never known, and the
    /// attempt's next operation fails.
    ///
    /// # Safety
    ///
    /// As for [`draw`](Self::draw).
    #[cold]
    #[inline(never)]
    pub unsafe fn draw_computation_later<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        compute: impl FnOnce(I::Value) -> O + 'static,
    ) -> Deferred<O> {
        // SAFETY: the caller's promise.
        match unsafe { self.draw_computation(inputs, move |value| Ok(compute(value))) } {
            Ok(deferred) => deferred,
            Err(_) => self.attempt.intentions.results.unknown(),
        }
    }

    #[inline]
    fn draw_node<I: Input, O: 'static, W>(
        &mut self,
        on_rows: bool,
        is_shared: bool,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnMut(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        if !inputs.belongs_to(&self.attempt.intentions.results) {
            return Err(self.misuse(Misuse::ForeignDeferred));
        }
        if is_shared && self.attempt.graph.count + self.attempt.graph.own.len() >= OPERATIONS_MAX {
            // The owner's own operations may all have to go on the board with it.
            self.run_graph()?;
        }
        let node = self.attempt.allocate(Node { work, inputs, result: None::<O> });
        let typed = node.cast::<Node<W, I, O>>();
        let (run, visit_inputs): (Run<P>, VisitInputs) =
            (Node::<W, I, O>::run::<P>, Node::<W, I, O>::visit_inputs);
        if is_shared {
            // SAFETY: the node was made just now, with this function.
            unsafe { self.move_inputs(node, visit_inputs) };
        }
        let graph = &self.attempt.graph;
        let place = match is_shared {
            true => Place::Published(graph.count as u32),
            false => Place::Own(graph.own.len() as u32),
        };
        // SAFETY: as in `Transaction::known`; the result is `Some` once the operation has run.
        let deferred = unsafe {
            self.attempt.intentions.drop_later(typed);
            self.attempt.intentions.results.add_of(&raw const (*typed).result, place.number())
        };
        let slot = deferred.slot();
        if is_shared {
            let followers = std::ptr::null();
            self.enter_plan(Plan { node, run, slot, followers, on_rows, by: By::Anybody }, visit_inputs);
        } else {
            let after = self.attempt.graph.count;
            let own = Own { node, run, slot, visit_inputs, on_rows, after, was_moved: false };
            self.attempt.graph.own.push(own);
        }
        Ok(deferred)
    }

    /// Moves the inputs of a node to the board, and their inputs before them.
    ///
    /// # Safety
    ///
    /// `visit_inputs` knows the node.
    unsafe fn move_inputs(&mut self, node: *const u8, visit_inputs: VisitInputs) {
        let mut each = |slot| {
            let number = self.attempt.intentions.results.operation_of(slot);
            let Some(Place::Own(at)) = number.map(Place::numbered) else { return };
            let at = at as usize;
            if self.attempt.graph.own[at].on_rows {
                // Earlier ones may be on the same key: they keep their order on the board.
                while self.attempt.graph.own_moved < at {
                    let before = self.attempt.graph.own_moved;
                    self.attempt.graph.own_moved += 1;
                    if self.attempt.graph.own[before].on_rows {
                        self.move_own(before);
                    }
                }
            }
            self.move_own(at);
        };
        // SAFETY: the caller's promise.
        unsafe { visit_inputs(node, &mut each) };
    }

    /// Moves an own operation to the board, behind its inputs, unless it is there.
    fn move_own(&mut self, at: usize) {
        let own = &mut self.attempt.graph.own[at];
        if std::mem::replace(&mut own.was_moved, true) {
            return;
        }
        let Own { node, run, slot, visit_inputs, on_rows, .. } = *own;
        // SAFETY: enqueued with this function. Each comes after its inputs, so this ends.
        unsafe { self.move_inputs(node, visit_inputs) };
        let place = Place::Published(self.attempt.graph.count as u32);
        self.attempt.intentions.results.move_operation(slot, place.number());
        let by = if on_rows { By::Owner } else { By::Anybody };
        let followers = std::ptr::null();
        self.enter_plan(Plan { node, run, slot, followers, on_rows, by }, visit_inputs);
    }

    /// Puts an operation on the board, behind those whose results it needs, which are there.
    fn enter_plan(&mut self, plan: Plan<P>, visit_inputs: VisitInputs) {
        let stealing = P::Stealing::of(self.protocol).expect("operations are drawn only to be stolen");
        let board = stealing.board(self.attempt.worker());
        let at = self.attempt.graph.count;
        self.attempt.graph.count += 1;
        let (node, operation) = (plan.node, board.operation(at));
        // SAFETY: the owner enqueues between batches: nobody can take an operation.
        *unsafe { operation.plan_mut() } = Some(plan);
        let results = &self.attempt.intentions.results;
        let mut inputs_left = 0;
        let mut each = |slot| {
            let number = results.operation_of(slot);
            let Some(Place::Published(before)) = number.map(Place::numbered) else { return };
            // SAFETY: as above; it was enqueued before.
            let Some(plan) = (unsafe { board.operation(before as usize).plan_mut() }) else { return };
            let edge = self.attempt.allocate(Edge { to: at as u32, next: plan.followers });
            plan.followers = edge.cast::<Edge>();
            inputs_left += 1;
        };
        // SAFETY: the node was enqueued with this function.
        unsafe { visit_inputs(node, &mut each) };
        operation.set_inputs_left(inputs_left);
    }
}
