//! Queues beside those of the standard library: first in, first out, and the greatest first.

use hotrow::{Abort, Engine, Protocol, TPriorityQueue, TQueue, Transaction};
use hotrow_check::datatype::Datatype;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// A queue of one kind.
pub(crate) trait Queue: 'static {
    type Of<P: Protocol>: Send + Sync;

    /// The elements, in the order in which they are popped, in which tests find it.
    fn states() -> Vec<VecDeque<u64>>;

    /// The elements that tests push.
    const PUSHED: &'static [u64];

    /// Inserts an element into those that are in the order in which they are popped.
    fn insert(elements: &mut VecDeque<u64>, element: u64);

    fn make<P: Protocol>(engine: &Engine<P>, elements: impl Iterator<Item = u64>) -> Self::Of<P>;

    fn operate<P: Protocol>(
        queue: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort>;
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Push(u64),
    Pop,
    /// Looks at the element that comes next.
    First,
    IsEmpty,
    Len,
}

pub(crate) struct As<Q>(PhantomData<Q>);

impl<Q: Queue> Datatype for As<Q> {
    type Model = VecDeque<u64>;
    type Operation = Operation;
    type Output = Option<u64>;
    type Object<P: Protocol> = Q::Of<P>;

    /// The state is found by popping.
    const HAS_SNAPSHOTS: bool = false;

    fn states() -> Vec<VecDeque<u64>> {
        Q::states()
    }

    fn operations() -> Vec<Operation> {
        use Operation::{First, IsEmpty, Len, Pop, Push};
        let pushes = Q::PUSHED.iter().map(|element| Push(*element));
        pushes.chain([Pop, Pop, Pop, First, IsEmpty, Len]).collect()
    }

    fn apply(queue: &mut VecDeque<u64>, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Push(element) => Q::insert(queue, element),
            Operation::Pop => return queue.pop_front(),
            Operation::First => return queue.front().copied(),
            Operation::IsEmpty => return Some(queue.is_empty().into()),
            Operation::Len => return Some(queue.len() as u64),
        }
        None
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &VecDeque<u64>) -> Q::Of<P> {
        Q::make(engine, state.iter().copied())
    }

    fn operate<P: Protocol>(
        queue: &Q::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        Q::operate(queue, tx, operation)
    }

    fn state<P: Protocol>(queue: &Q::Of<P>, tx: &mut Transaction<'_, P>) -> Result<VecDeque<u64>, Abort> {
        let mut elements = VecDeque::new();
        while let Some(element) = Q::operate(queue, tx, &Operation::Pop)? {
            elements.push_back(element);
        }
        for element in &elements {
            Q::operate(queue, tx, &Operation::Push(*element))?;
        }
        Ok(elements)
    }
}

/// The operations, of which the look at the next element has a name of its own in each queue.
macro_rules! operate {
    ($queue:ident, $tx:ident, $operation:ident, $first:ident) => {
        match *$operation {
            Operation::Push(element) => $queue.push($tx, element).map(|()| None),
            Operation::Pop => $queue.pop($tx),
            Operation::First => $queue.$first($tx),
            Operation::IsEmpty => Ok(Some($queue.is_empty($tx)?.into())),
            Operation::Len => Ok(Some($queue.len($tx)? as u64)),
        }
    };
}

pub(crate) struct FirstIn;

impl Queue for FirstIn {
    type Of<P: Protocol> = TQueue<u64, P>;

    const PUSHED: &'static [u64] = &[4, 5, 6];

    fn states() -> Vec<VecDeque<u64>> {
        vec![[].into(), [1].into(), [1, 2, 3].into()]
    }

    fn insert(elements: &mut VecDeque<u64>, element: u64) {
        elements.push_back(element);
    }

    fn make<P: Protocol>(engine: &Engine<P>, elements: impl Iterator<Item = u64>) -> TQueue<u64, P> {
        TQueue::with_elements(engine, elements)
    }

    fn operate<P: Protocol>(
        queue: &TQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        operate!(queue, tx, operation, front)
    }
}

pub(crate) struct GreatestFirst;

impl Queue for GreatestFirst {
    type Of<P: Protocol> = TPriorityQueue<u64, P>;

    const PUSHED: &'static [u64] = &[1, 5, 7, 30];

    fn states() -> Vec<VecDeque<u64>> {
        vec![[].into(), [5].into(), [8, 5, 5, 2].into(), (0..20).rev().collect()]
    }

    fn insert(elements: &mut VecDeque<u64>, element: u64) {
        let position = elements.partition_point(|other| *other >= element);
        elements.insert(position, element);
    }

    fn make<P: Protocol>(engine: &Engine<P>, elements: impl Iterator<Item = u64>) -> TPriorityQueue<u64, P> {
        TPriorityQueue::with_elements(engine, elements)
    }

    fn operate<P: Protocol>(
        queue: &TPriorityQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        operate!(queue, tx, operation, peek)
    }
}
