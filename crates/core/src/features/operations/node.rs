//! The node of a recorded operation: its work, the results that it needs, and its own result.

use super::{Deferred, DropAt, Input, Results, drop_of};
use crate::kernel::abort::{Abort, Misuse};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use hotrow_sync::work::{Work as Charged, charge};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr::NonNull;

/// A recorded operation, whatever the type of its node.
pub(crate) struct Operation<P: Protocol> {
    /// A [`Node`] in the attempt's arena, of the type that the functions know.
    node: *mut u8,
    functions: &'static Functions<P>,
    /// The number of its result.
    pub(crate) slot: u32,
}

impl<P: Protocol> Clone for Operation<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Operation<P> {}

/// The functions of one type of node.
struct Functions<P: Protocol> {
    run: unsafe fn(*mut u8, NonNull<Results>, &mut ObjectAccess<'_, P>) -> Result<(), Abort>,
    inputs: &'static InputFunctions,
    /// Bytes from the node to its result.
    result: usize,
    /// Drops the node; `None` if nothing in it needs that.
    drop: Option<DropAt>,
}

/// Those that depend on its inputs only. They are apart, so that nodes with the same inputs share them.
struct InputFunctions {
    is_ready: unsafe fn(*const u8, &Results) -> bool,
    key_hash: unsafe fn(*const u8, &Results) -> Option<u64>,
    each_input: unsafe fn(*const u8, &mut dyn FnMut(u32)),
}

/// The work of an operation.
pub(crate) trait Work<P: Protocol, V>: Sized {
    /// The type of the operation's result.
    type Output;
    /// True if it may be done again.
    const AGAIN: bool;

    /// Does the work, which is there. Takes it unless it may be done again.
    fn run(
        held: &mut Option<Self>,
        tx: &mut ObjectAccess<'_, P>,
        inputs: V,
    ) -> Option<Result<Self::Output, Abort>>;
}

/// Work that is done once.
pub(crate) struct Once<W>(pub(crate) W);

impl<P: Protocol, V, O, W> Work<P, V> for Once<W>
where
    W: FnOnce(&mut ObjectAccess<'_, P>, V) -> Result<O, Abort>,
{
    type Output = O;
    const AGAIN: bool = false;

    #[inline(always)]
    fn run(held: &mut Option<Self>, tx: &mut ObjectAccess<'_, P>, inputs: V) -> Option<Result<O, Abort>> {
        Some((held.take()?.0)(tx, inputs))
    }
}

/// Work that is done again if it would have blocked.
pub(crate) struct Again<W>(pub(crate) W);

impl<P: Protocol, V, O, W> Work<P, V> for Again<W>
where
    W: FnMut(&mut ObjectAccess<'_, P>, V) -> Result<O, Abort>,
{
    type Output = O;
    const AGAIN: bool = true;

    #[inline(always)]
    fn run(held: &mut Option<Self>, tx: &mut ObjectAccess<'_, P>, inputs: V) -> Option<Result<O, Abort>> {
        Some((held.as_mut()?.0)(tx, inputs))
    }
}

/// The node of an operation, in the arena.
#[repr(C)]
struct Node<W, I, O> {
    /// First, so that it is found whatever the work is.
    todo: Inputs<I>,
    work: Option<W>,
    result: Option<O>,
}

/// The inputs of work that is to be done: `None` while the operation runs, and afterwards if it runs only once.
struct Inputs<I>(Option<I>);

/// The functions of one type of node.
struct FunctionsOf<W, I, P>(PhantomData<(W, I, P)>);

impl<W: Work<P, I::Value>, I: Input, P: Protocol> FunctionsOf<W, I, P> {
    const FUNCTIONS: &'static Functions<P> = &Functions {
        run: Node::<W, I, W::Output>::run::<P>,
        inputs: Inputs::<I>::FUNCTIONS,
        result: offset_of!(Node<W, I, W::Output>, result),
        drop: drop_of::<Node<W, I, W::Output>>(),
    };
}

impl<W, I: Input, O> Node<W, I, O> {
    fn new(work: W, inputs: I) -> Self {
        charge(Charged::RecordedOperation);
        Self { todo: Inputs(Some(inputs)), work: Some(work), result: None }
    }

    /// # Safety
    ///
    /// As for [`Operation::run`]; `node` points to a node of this type.
    unsafe fn run<P: Protocol>(
        node: *mut u8,
        results: NonNull<Results>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<(), Abort>
    where
        W: Work<P, I::Value, Output = O>,
    {
        let node = node.cast::<Self>();
        // SAFETY: the caller's promise. The reference ends before the work runs. The work may look at other results,
        // and add some, but it does not look at this node's, which is not known yet.
        let (inputs, mut work, results) =
            unsafe { ((*node).todo.0.take(), (*node).work.take(), results.as_ref()) };
        // INVARIANT 30: Exactly one worker runs a stealable operation, once.
        debug_assert!(inputs.is_some() && work.is_some(), "an operation that may run has its work");
        let Some(value) = inputs.as_ref().and_then(|inputs| inputs.get(results)) else {
            return Err(tx.misuse(Misuse::UnknownInput));
        };
        let attempt = &raw const *tx.attempt;
        let output = W::run(&mut work, tx, value).expect("an operation that may run has its work");
        if attempt != &raw const *tx.attempt {
            // `tx` is another transaction now, because the work has swapped the two (`std::mem::swap`). The attempt
            // that the node belongs to may be over, and the node gone.
            return Err(tx.misuse(Misuse::Nested));
        }
        // SAFETY: as above; the attempt goes on. Nothing was dropped that is written over: what was taken is put back, and no
        // earlier run has left a result.
        unsafe {
            if W::AGAIN {
                (&raw mut (*node).todo).write(Inputs(inputs));
                (&raw mut (*node).work).write(work);
            }
            (&raw mut (*node).result).write(Some(output?));
        }
        Ok(())
    }
}

impl<I: Input> Inputs<I> {
    const FUNCTIONS: &'static InputFunctions =
        &InputFunctions { is_ready: Self::is_ready, key_hash: Self::key_hash, each_input: Self::each_input };

    /// Returns the inputs of the node at an address.
    ///
    /// # Safety
    ///
    /// `node` points to a node with inputs of this type, which nobody changes while the reference is used.
    unsafe fn of<'a>(node: *const u8) -> Option<&'a I> {
        // SAFETY: they are the first field of a `repr(C)` struct; the rest is the caller's promise.
        unsafe { (*node.cast::<Self>()).0.as_ref() }
    }

    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn is_ready(node: *const u8, results: &Results) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::of(node) }.is_some_and(|inputs| inputs.is_known(results))
    }

    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn key_hash(node: *const u8, results: &Results) -> Option<u64> {
        // SAFETY: the caller's promise.
        unsafe { Self::of(node) }.and_then(|inputs| inputs.key_hash(results))
    }

    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn each_input(node: *const u8, visit: &mut dyn FnMut(u32)) {
        // SAFETY: the caller's promise.
        if let Some(inputs) = unsafe { Self::of(node) } {
            inputs.each_slot(visit);
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Makes the node of an operation; an executor records it, or runs it.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; [`Misuse::ForeignDeferred`] if an input is another attempt's.
    #[inline]
    pub(crate) fn operation<I: Input, W>(
        &mut self,
        inputs: I,
        work: W,
    ) -> Result<(Operation<P>, Deferred<W::Output>), Abort>
    where
        W: Work<P, I::Value>,
    {
        self.may_record(inputs.belongs_to(&self.attempt.features.operations.results))?;
        let node = self.attempt.allocate(Node::<W, I, W::Output>::new(work, inputs));
        // SAFETY: allocated just now, of the type that the functions know, and nobody else uses it.
        let operation = unsafe { self.record(node, FunctionsOf::<W, I, P>::FUNCTIONS) };
        // SAFETY: the result of such a node is of this type.
        Ok((operation, unsafe { self.attempt.features.operations.results.handle(operation.slot) }))
    }

    /// Checks that the attempt may record an operation whose inputs are its own, or are not.
    fn may_record(&mut self, owns_inputs: bool) -> Result<(), Abort> {
        match () {
            () if self.is_stopped() => Err(Abort::INTERNAL),
            () if !owns_inputs => Err(self.misuse(Misuse::ForeignDeferred)),
            () => Ok(()),
        }
    }

    /// Adds the result of an operation to the attempt's. Knows nothing of its work, so that it is compiled once.
    ///
    /// # Safety
    ///
    /// `node` points to a node, in the attempt's arena, of the type that the functions know, which nobody else uses or drops.
    unsafe fn record(&mut self, node: *mut u8, functions: &'static Functions<P>) -> Operation<P> {
        // Its result is forgotten, too.
        self.attempt.hears.add(Moments::FORGETTING);
        // SAFETY: the caller's promise.
        unsafe { self.attempt.features.operations.drop_by(node, functions.drop) };
        // SAFETY: the node has its result there. It stays in place until the arena is reset, after the results have been
        // cleared, and is `Some` once the operation has run.
        let slot = unsafe {
            let result = node.add(functions.result);
            self.attempt.features.operations.results.add(result, false)
        };
        Operation { node, functions, slot }
    }
}

impl<P: Protocol> Operation<P> {
    /// Runs the operation in a transaction, that of its attempt or a thief's. Whoever calls it notes afterwards that the
    /// result is known ([`Results::learn`]).
    ///
    /// # Safety
    ///
    /// The attempt that has recorded the operation is in progress. Nobody else uses the operation meanwhile. `results`
    /// are that attempt's.
    #[inline(always)]
    pub(crate) unsafe fn run(
        &self,
        results: NonNull<Results>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise; `record` brought node and functions together.
        unsafe { (self.functions.run)(self.node, results, tx) }
    }

    /// True if all inputs are known.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    pub(crate) unsafe fn is_ready(&self, results: &Results) -> bool {
        // SAFETY: as in `run`.
        unsafe { (self.functions.inputs.is_ready)(self.node, results) }
    }

    /// Returns [`Input::key_hash`] of its inputs.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    pub(crate) unsafe fn key_hash(&self, results: &Results) -> Option<u64> {
        // SAFETY: as in `run`.
        unsafe { (self.functions.inputs.key_hash)(self.node, results) }
    }

    /// Visits the results that it needs, by number.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run).
    pub(crate) unsafe fn each_input(&self, visit: &mut dyn FnMut(u32)) {
        // SAFETY: as in `run`.
        unsafe { (self.functions.inputs.each_input)(self.node, visit) };
    }
}
