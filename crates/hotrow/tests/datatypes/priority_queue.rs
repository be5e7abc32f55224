//! The priority queue beside a sorted vector.

use hotrow::{Abort, Engine, Protocol, TPriorityQueue, Transaction};
use hotrow_check::datatype::{Datatype, Effort, check_datatype};

struct PriorityQueue;

#[derive(Debug, Clone)]
enum Operation {
    Push(u64),
    Pop,
    Peek,
    IsEmpty,
    Len,
}

impl Datatype for PriorityQueue {
    /// Sorted, the greatest element last.
    type Model = Vec<u64>;
    type Operation = Operation;
    type Output = Option<u64>;
    type Object<P: Protocol> = TPriorityQueue<u64, P>;

    fn states() -> Vec<Vec<u64>> {
        vec![vec![], vec![5], vec![2, 5, 5, 8], (0..20).collect()]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{IsEmpty, Len, Peek, Pop, Push};
        vec![Push(1), Push(5), Push(7), Push(30), Pop, Pop, Pop, Peek, IsEmpty, Len]
    }

    fn apply(queue: &mut Vec<u64>, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Push(element) => {
                queue.push(element);
                queue.sort_unstable();
            }
            Operation::Pop => return queue.pop(),
            Operation::Peek => return queue.last().copied(),
            Operation::IsEmpty => return Some(queue.is_empty().into()),
            Operation::Len => return Some(queue.len() as u64),
        }
        None
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &Vec<u64>) -> TPriorityQueue<u64, P> {
        TPriorityQueue::with_elements(engine, state.iter().copied())
    }

    fn operate<P: Protocol>(
        queue: &TPriorityQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        match *operation {
            Operation::Push(element) => queue.push(tx, element)?,
            Operation::Pop => return queue.pop(tx),
            Operation::Peek => return queue.peek(tx),
            Operation::IsEmpty => return Ok(Some(queue.is_empty(tx)?.into())),
            Operation::Len => return Ok(Some(queue.len(tx)? as u64)),
        }
        Ok(None)
    }

    fn state<P: Protocol>(
        queue: &TPriorityQueue<u64, P>,
        tx: &mut Transaction<'_, P>,
    ) -> Result<Vec<u64>, Abort> {
        let mut elements = Vec::new();
        while let Some(element) = queue.pop(tx)? {
            elements.push(element);
        }
        elements.reverse();
        for element in &elements {
            queue.push(tx, *element)?;
        }
        Ok(elements)
    }
}

#[test]
fn a_priority_queue_is_a_sorted_vector() {
    check_datatype::<PriorityQueue>(Effort::SHORT);
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_priority_queue_is_a_sorted_vector_for_long() {
    check_datatype::<PriorityQueue>(Effort::LONG);
}
