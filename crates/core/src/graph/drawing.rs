//! Drawing the graph: what a transaction says that it is going to do, while it runs its body.
//!
//! Operations on rows go on the board. A computation goes there only if an operation on rows waits for it; else the owner
//! makes it when all operations have run.

use super::board::{Edge, OPERATIONS_MAX, Plan, Run};
use crate::abort::{Abort, Misuse};
use crate::deferred::{Deferred, Input, Results};
use crate::protocol::Protocol;
use crate::transaction::Transaction;

/// A computation that is not on the board.
pub(super) struct Computation<P: Protocol> {
    pub(super) node: *mut u8,
    pub(super) run: Run<P>,
    pub(super) slot: u32,
    visit_inputs: VisitInputs,
    /// It is on the board now.
    pub(super) was_moved: bool,
}

/// Where what makes a result is drawn.
#[derive(Clone, Copy)]
enum Drawn {
    /// On the board.
    Operation(u32),
    /// Among the computations.
    Computation(u32),
}

const COMPUTATION: u32 = 1 << 31;

impl Drawn {
    fn number(self) -> u32 {
        match self {
            Drawn::Operation(at) => at,
            Drawn::Computation(at) => at | COMPUTATION,
        }
    }

    fn numbered(number: u32) -> Self {
        if number & COMPUTATION == 0 { Drawn::Operation(number) } else { Drawn::Computation(number & !COMPUTATION) }
    }
}

/// What an attempt has drawn and not run yet.
pub(crate) struct Graph<P: Protocol> {
    /// Operations on the board.
    pub(super) count: usize,
    /// Computations that no operation on rows waits for, so far, in their order.
    pub(super) computations: Vec<Computation<P>>,
    /// Whether operations are drawn from now on instead of being run at once.
    pub(super) draws: bool,
    /// Whether the first one could not be run at once, as a lock was not free.
    pub(super) first_was_put_off: bool,
    /// The keys that operations drawn so far work on: hashes, and one bit for each that says whether it may be among them.
    keys: Vec<u64>,
    bits: [u64; 4],
}

impl<P: Protocol> Graph<P> {
    pub(crate) fn new() -> Self {
        let (computations, keys) = (Vec::new(), Vec::new());
        Self { count: 0, computations, draws: false, first_was_put_off: false, keys, bits: [0; 4] }
    }

    /// Whether nothing waits to be run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.computations.is_empty()
    }

    /// Begins another attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn open(&mut self) {
        self.draws = false;
        if !self.is_empty() {
            self.clear();
        }
    }

    /// Forgets what was drawn.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.computations.clear();
        self.first_was_put_off = false;
        self.keys.clear();
        self.bits = [0; 4];
    }

    /// Notes that an operation works on a key. Whether one before it may work on the same.
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

/// What an operation consists of.
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
    /// Whether operations are drawn, for others to run, instead of being run at once: since one was put off, or because
    /// somebody waits for the transaction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn draws(&mut self) -> bool {
        if !P::SHARES || self.attempt.runs_at_once {
            return false;
        }
        if !self.attempt.graph.draws {
            self.attempt.graph.draws = self.protocol.is_awaited(self.attempt);
        }
        self.attempt.graph.draws
    }

    /// Runs an operation now, unless the transaction would have to wait for a lock and could share its operations instead.
    /// `None` then: nothing has happened, and operations are drawn from now on.
    ///
    /// # Errors
    ///
    /// What the operation returns.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn try_at_once<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<Option<R>, Abort> {
        self.attempt.may_put_off = P::SHARES && !self.attempt.runs_at_once;
        let result = operation(self);
        self.attempt.may_put_off = false;
        match result {
            Ok(output) => Ok(Some(output)),
            Err(_) if P::SHARES && std::mem::take(&mut self.attempt.was_put_off) => {
                self.attempt.graph.draws = true;
                self.attempt.graph.first_was_put_off = self.attempt.graph.count == 0;
                Ok(None)
            }
            Err(abort) => Err(abort),
        }
    }

    /// Draws an operation on rows. `key` is a hash of what it works on, if that is known.
    ///
    /// `work` may be called again if it was put off before it had written anything.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    ///
    /// # Safety
    ///
    /// `work` and its inputs may be used and dropped by any thread, one at a time, and the result sent to and looked at by
    /// any. What they rely on stays in memory until the attempt ends.
    #[inline]
    pub unsafe fn draw<I: Input, O: 'static, W>(
        &mut self,
        key: Option<u64>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnMut(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        let is_in_order = key.is_some_and(|key| self.attempt.graph.note(key));
        self.draw_node(true, is_in_order, inputs, work)
    }

    /// Draws a computation.
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

    /// As [`draw_computation`](Self::draw_computation). If the attempt cannot go on, the value will never be known, and its
    /// next operation says so.
    ///
    /// # Safety
    ///
    /// As for [`draw`](Self::draw).
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

    /// A value that was drawn, now: all that has been drawn so far is run.
    ///
    /// # Errors
    ///
    /// As [`draw`](Self::draw); [`Misuse::ForeignDeferred`] for a value of another attempt.
    pub fn force_drawn<T: Clone + 'static>(&mut self, deferred: Deferred<T>) -> Result<T, Abort> {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        self.own(deferred)?;
        if self.attempt.intentions.results.get(&deferred).is_none() {
            self.run_graph()?;
        }
        Ok(self.attempt.intentions.results.get(&deferred).expect("everything has run").clone())
    }

    #[inline]
    fn draw_node<I: Input, O: 'static, W>(
        &mut self,
        on_rows: bool,
        is_in_order: bool,
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
        if on_rows && self.attempt.graph.count + self.attempt.graph.computations.len() >= OPERATIONS_MAX {
            // All computations may have to be on the board with it.
            self.run_graph()?;
        }
        let node = self.attempt.allocate(Node { work, inputs, result: None::<O> });
        let typed = node.cast::<Node<W, I, O>>();
        let (run, visit_inputs): (Run<P>, VisitInputs) =
            (Node::<W, I, O>::run::<P>, Node::<W, I, O>::visit_inputs);
        if on_rows {
            // SAFETY: the node was made just now, with this function.
            unsafe { self.move_inputs(node, visit_inputs) };
        }
        let graph = &self.attempt.graph;
        let drawn = match on_rows {
            true => Drawn::Operation(graph.count as u32),
            false => Drawn::Computation(graph.computations.len() as u32),
        };
        // SAFETY: as in `Transaction::known`; the result is `Some` once the operation has run.
        let deferred = unsafe {
            self.attempt.intentions.drop_later(typed);
            self.attempt.intentions.results.add_of(&raw const (*typed).result, drawn.number())
        };
        let slot = deferred.slot();
        if on_rows {
            self.enter_plan(Plan { node, run, slot, followers: std::ptr::null(), on_rows, is_in_order }, visit_inputs);
        } else {
            let computation = Computation { node, run, slot, visit_inputs, was_moved: false };
            self.attempt.graph.computations.push(computation);
        }
        Ok(deferred)
    }

    /// Moves the computations that a node waits for to the board, and those that they wait for.
    ///
    /// # Safety
    ///
    /// `visit_inputs` knows the node.
    unsafe fn move_inputs(&mut self, node: *const u8, visit_inputs: VisitInputs) {
        let mut each = |slot| {
            let number = self.attempt.intentions.results.operation_of(slot);
            let Some(Drawn::Computation(at)) = number.map(Drawn::numbered) else { return };
            let computation = &mut self.attempt.graph.computations[at as usize];
            computation.was_moved = true;
            let Computation { node, run, slot, visit_inputs, .. } = *computation;
            // SAFETY: drawn with this function. A computation comes after those that it waits for, so this ends.
            unsafe { self.move_inputs(node, visit_inputs) };
            let drawn = Drawn::Operation(self.attempt.graph.count as u32);
            self.attempt.intentions.results.move_operation(slot, drawn.number());
            let followers = std::ptr::null();
            self.enter_plan(Plan { node, run, slot, followers, on_rows: false, is_in_order: false }, visit_inputs);
        };
        // SAFETY: the caller's promise.
        unsafe { visit_inputs(node, &mut each) };
    }

    /// Puts an operation on the board, behind those whose results it needs, which are there.
    fn enter_plan(&mut self, plan: Plan<P>, visit_inputs: VisitInputs) {
        let protocol = self.protocol;
        let board = protocol.board(self.attempt.worker()).expect("a protocol that shares has boards");
        let at = self.attempt.graph.count;
        self.attempt.graph.count += 1;
        let (node, operation) = (plan.node, board.operation(at));
        // SAFETY: the owner draws between batches: nobody can take an operation.
        *unsafe { operation.plan_mut() } = Some(plan);
        let results = &self.attempt.intentions.results;
        let mut inputs_left = 0;
        let mut each = |slot| {
            let number = results.operation_of(slot);
            let Some(Drawn::Operation(before)) = number.map(Drawn::numbered) else { return };
            // SAFETY: as above; it was drawn before.
            let Some(plan) = (unsafe { board.operation(before as usize).plan_mut() }) else { return };
            let edge = self.attempt.allocate(Edge { to: at as u32, next: plan.followers });
            plan.followers = edge.cast::<Edge>();
            inputs_left += 1;
        };
        // SAFETY: the node was drawn with this function.
        unsafe { visit_inputs(node, &mut each) };
        operation.set_inputs_left(inputs_left);
    }
}
