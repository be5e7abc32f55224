//! Words of memory beside an array.

use hotrow::{Abort, Engine, Protocol, TWords, Transaction};
use hotrow_check::datatype::Datatype;

pub(crate) struct Words;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Read(usize),
    Write(usize, u64),
    Swap,
}

impl Datatype for Words {
    type Model = [u64; 2];
    type Operation = Operation;
    type Output = Option<u64>;
    type Object<P: Protocol> = (TWords<P>, u64);

    fn states() -> Vec<[u64; 2]> {
        vec![[0, 0]]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{Read, Swap, Write};
        vec![Read(0), Read(1), Write(0, 3), Write(1, 4), Swap]
    }

    fn apply(words: &mut [u64; 2], operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Read(at) => return Some(words[at]),
            Operation::Write(at, word) => words[at] = word,
            Operation::Swap => words.swap(0, 1),
        }
        None
    }

    /// Fresh words are 0, as the only state has them.
    fn make<P: Protocol>(engine: &Engine<P>, _: &[u64; 2]) -> (TWords<P>, u64) {
        let memory = TWords::new(engine);
        let first = memory.allocate(2);
        (memory, first)
    }

    fn operate<P: Protocol>(
        (memory, first): &(TWords<P>, u64),
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        match *operation {
            Operation::Read(at) => return memory.read(tx, first + at as u64).map(Some),
            Operation::Write(at, word) => memory.write(tx, first + at as u64, word)?,
            Operation::Swap => {
                let (one, other) = (memory.read(tx, *first)?, memory.read(tx, first + 1)?);
                memory.write(tx, *first, other)?;
                memory.write(tx, first + 1, one)?;
            }
        }
        Ok(None)
    }

    fn state<P: Protocol>(
        (memory, first): &(TWords<P>, u64),
        tx: &mut Transaction<'_, P>,
    ) -> Result<[u64; 2], Abort> {
        Ok([memory.read(tx, *first)?, memory.read(tx, first + 1)?])
    }
}
