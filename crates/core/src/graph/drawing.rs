//! Drawing the graph: what a transaction says that it is going to do, while it runs its body.
//!
//! Operations that others may run go on the board. Computations stay with the owner, unless one of those waits for them, and
//! so do operations that nobody else is to run: the owner runs them in their turns.

use super::stealable_operations::{Edge, OPERATIONS_MAX, Plan, Run};
use crate::abort::{Abort, Misuse};
use crate::deferred::{Deferred, Input, Results};
use crate::graph::Stealing as _;
use crate::object::ObjectMeta;
use crate::protocol::Protocol;
use crate::transaction::Transaction;

/// What is not on the board.
pub(super) struct Own<P: Protocol> {
    pub(super) node: *mut u8,
    pub(super) run: Run<P>,
    pub(super) slot: u32,
    visit_inputs: VisitInputs,
    pub(super) on_rows: bool,
    /// How many operations were on the board before it.
    pub(super) after: usize,
    /// It is on the board now.
    pub(super) was_moved: bool,
}

/// Where what makes a result is drawn.
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

/// Who may run an operation on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Anybody.
    Anybody,
    /// Its owner, in its turn.
    Owner,
}

/// What an attempt has drawn and not run yet.
pub(crate) struct Graph<P: Protocol> {
    /// Operations on the board.
    pub(super) count: usize,
    /// What is the owner's, in the order in which it was drawn.
    pub(super) own: Vec<Own<P>>,
    /// How much of that has been run.
    pub(super) own_run: usize,
    /// All before this one that work on rows are on the board now.
    own_moved: usize,
    /// Whether operations are drawn from now on instead of being run at once.
    pub(super) draws: bool,
    /// Results below this number have come from what was drawn and run before.
    pub(super) first_slot: u32,
    /// True if an operation that meets a lock which is not free must give up instead of waiting.
    pub(crate) nonblocking: bool,
    /// True in a thief's attempt, which runs an operation for its owner.
    pub(crate) is_thief: bool,
    /// True if the last operation did.
    pub(crate) has_blocked: bool,
    /// Whether others may run some of them.
    pub(crate) is_published: bool,
    /// Whether the first one could not be run at once, as a lock was not free.
    pub(super) first_was_put_off: bool,
    /// The keys that operations drawn so far work on: hashes, and one bit for each that says whether it may be among them.
    keys: Vec<u64>,
    bits: [u64; 4],
    /// The objects, by number, of which an operation is drawn whose key is not known.
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

    /// Whether nothing waits to be run.
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

    /// Forgets what was drawn.
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

    /// Whether an own part waits for nothing on the board from `at` on: something that it waits for may have been moved there
    /// after it was drawn. One on rows that was moved itself keeps those behind it waiting, which may be on the same key.
    pub(super) fn is_its_turn(&self, own: &Own<P>, results: &Results, at: usize) -> bool {
        let is_before = |slot| match results.place_of(slot).map(Place::numbered) {
            Some(Place::Published(before)) if slot >= self.first_slot => (before as usize) < at,
            _ => true,
        };
        if own.was_moved {
            return !own.on_rows || is_before(own.slot);
        }
        let mut is_its_turn = true;
        // SAFETY: drawn with this function.
        unsafe { (own.visit_inputs)(own.node, &mut |slot| is_its_turn &= is_before(slot)) };
        is_its_turn
    }

    /// How many of the operations that are to be on the board are run before others may take any: the one that was put off,
    /// if it is there.
    pub(super) fn run_first(&self) -> usize {
        let is_own = self.own.first().is_some_and(|own| own.after == 0 && !own.was_moved);
        usize::from(self.first_was_put_off && !is_own).min(self.count)
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
        let Some(stealing) = P::Stealing::of(self.protocol) else { return false };
        if self.attempt.runs_at_once {
            return false;
        }
        if !self.attempt.graph.draws && stealing.has_waiters(self.attempt) {
            self.attempt.graph.draws = true;
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
        self.attempt.graph.nonblocking = P::ALLOWS_STEALING && !self.attempt.runs_at_once;
        let result = operation(self);
        self.attempt.graph.nonblocking = false;
        match result {
            Ok(output) => {
                // An operation that swallows the error of a part of it has not been put off.
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

    /// Draws an operation on rows of an object. `key` is a hash of what it works on, if that is known.
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
        meta: &ObjectMeta,
        by: By,
        key: Option<u64>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnMut(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        // Of two on one key the later one is the owner's, in its turn.
        let again = key.is_some_and(|key| self.attempt.graph.note(key));
        let in_turn = self.attempt.graph.in_turn.contains(&meta.number());
        let is_shared = by == By::Anybody && !again && !in_turn;
        self.draw_node(true, is_shared, inputs, work)
    }

    /// Says that an operation on a key of this object that is not known has been drawn: those that come later are run in
    /// their turns.
    pub fn keep_in_turn(&mut self, meta: &ObjectMeta) {
        self.attempt.graph.in_turn.push(meta.number());
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
            // All that is the owner's may have to be on the board with it.
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

    /// Moves what a node waits for to the board, and what that waits for.
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
                // Those before it may be on the same key: they keep their order on the board.
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

    /// Moves what is the owner's to the board, unless it is there, behind what it waits for.
    fn move_own(&mut self, at: usize) {
        let own = &mut self.attempt.graph.own[at];
        if std::mem::replace(&mut own.was_moved, true) {
            return;
        }
        let Own { node, run, slot, visit_inputs, on_rows, .. } = *own;
        // SAFETY: drawn with this function. All comes after what it waits for, so this ends.
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
        // SAFETY: the owner draws between batches: nobody can take an operation.
        *unsafe { operation.plan_mut() } = Some(plan);
        let results = &self.attempt.intentions.results;
        let mut inputs_left = 0;
        let mut each = |slot| {
            let number = results.operation_of(slot);
            let Some(Place::Published(before)) = number.map(Place::numbered) else { return };
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
