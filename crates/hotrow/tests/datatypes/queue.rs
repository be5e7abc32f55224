//! The queue beside the standard library's.

use hotrow::{Abort, Engine, Protocol, TQueue, Transaction};
use hotrow_check::datatype::{Datatype, Effort, check_datatype};
use std::collections::VecDeque;

struct Queue;

#[derive(Debug, Clone)]
enum Operation {
    Push(u64),
    Pop,
    Front,
    IsEmpty,
    Len,
}

impl Datatype for Queue {
    type Model = VecDeque<u64>;
    type Operation = Operation;
    type Output = Option<u64>;
    type Object<P: Protocol> = TQueue<u64, P>;

    fn states() -> Vec<VecDeque<u64>> {
        vec![[].into(), [1].into(), [1, 2, 3].into()]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{Front, IsEmpty, Len, Pop, Push};
        vec![Push(4), Push(5), Push(6), Pop, Pop, Pop, Front, IsEmpty, Len]
    }

    fn apply(queue: &mut VecDeque<u64>, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Push(element) => queue.push_back(element),
            Operation::Pop => return queue.pop_front(),
            Operation::Front => return queue.front().copied(),
            Operation::IsEmpty => return Some(queue.is_empty().into()),
            Operation::Len => return Some(queue.len() as u64),
        }
        None
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &VecDeque<u64>) -> TQueue<u64, P> {
        TQueue::with_elements(engine, state.iter().copied())
    }

    fn operate<P: Protocol>(
        queue: &TQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        match *operation {
            Operation::Push(element) => queue.push(tx, element)?,
            Operation::Pop => return queue.pop(tx),
            Operation::Front => return queue.front(tx),
            Operation::IsEmpty => return Ok(Some(queue.is_empty(tx)?.into())),
            Operation::Len => return Ok(Some(queue.len(tx)? as u64)),
        }
        Ok(None)
    }

    fn state<P: Protocol>(
        queue: &TQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
    ) -> Result<VecDeque<u64>, Abort> {
        let mut elements = VecDeque::new();
        while let Some(element) = queue.pop(tx)? {
            elements.push_back(element);
        }
        for element in &elements {
            queue.push(tx, *element)?;
        }
        Ok(elements)
    }
}

#[test]
fn a_queue_is_a_queue() {
    check_datatype::<Queue>(Effort::SHORT);
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_queue_is_a_queue_for_long() {
    check_datatype::<Queue>(Effort::LONG);
}
