//! Queues and priority queues in words.

use super::{Memory, Words, words_of};
use crate::store::{self, Element};
use hotrow::{Abort, Protocol, Transaction};
use std::marker::PhantomData;

type Tx<'t, P> = Transaction<'t, P>;

/// A linked queue. The first node is the one before the oldest element, so that pushes and pops write different words.
///
/// A node is the address of the next one, and an element.
pub struct WordQueue<T, P: Protocol> {
    memory: Memory<P>,
    /// The address of the word that has the address of the first node.
    first: u64,
    /// The address of the word that has the address of the last node.
    last: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, P: Protocol> WordQueue<T, P> {
    pub(super) fn new(store: &Words<P>, elements: impl IntoIterator<Item = T>) -> Self {
        let memory = store.memory.clone();
        let (first, last) = (memory.0.allocate(1), memory.0.allocate(1));
        let queue = Self { memory, first, last, elements: PhantomData };
        store.fill(|tx| {
            let node = queue.memory.store(tx, &[0])?;
            queue.memory.write(tx, first, node)?;
            queue.memory.write(tx, last, node)
        });
        store.fill_with(elements, |tx, element| store::Queue::push(&queue, tx, element));
        queue
    }
}

impl<T: Element, P: Protocol> store::Queue<Words<P>, T> for WordQueue<T, P> {
    fn push(&self, tx: &mut Tx<'_, P>, element: T) -> Result<(), Abort> {
        let mut words = vec![0];
        element.encode(&mut words);
        let node = self.memory.store(tx, &words)?;
        let last = self.memory.read(tx, self.last)?;
        self.memory.write(tx, last, node)?;
        self.memory.write(tx, self.last, node)
    }

    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Option<T>, Abort> {
        let first = self.memory.read(tx, self.first)?;
        let next = self.memory.read(tx, first)?;
        if next == 0 {
            return Ok(None);
        }
        let (element, _) = self.memory.load(tx, next + 1)?;
        self.memory.write(tx, self.first, next)?;
        Ok(Some(element))
    }
}

/// A binary heap of addresses of elements: three words (length, capacity, address of the array) and the array, which is
/// replaced by one of twice the size when it is full.
pub struct WordPriorityQueue<T, P: Protocol> {
    memory: Memory<P>,
    header: u64,
    elements: PhantomData<fn() -> T>,
}

/// The capacity of a new heap.
const CAPACITY: u64 = 64;

impl<T: Element + Ord, P: Protocol> WordPriorityQueue<T, P> {
    pub(super) fn new(store: &Words<P>, elements: impl IntoIterator<Item = T>) -> Self {
        let memory = store.memory.clone();
        let header = memory.0.allocate(3);
        let heap = Self { memory, header, elements: PhantomData };
        store.fill(|tx| {
            let array = heap.memory.0.allocate(CAPACITY);
            heap.memory.write_all(tx, header, &[0, CAPACITY, array])
        });
        store.fill_with(elements, |tx, element| store::Queue::push(&heap, tx, element));
        heap
    }

    /// Returns the address and the element at a position of the array.
    fn at(&self, tx: &mut Tx<'_, P>, array: u64, position: u64) -> Result<(u64, T), Abort> {
        let address = self.memory.read(tx, array + position)?;
        Ok((address, self.memory.load(tx, address)?.0))
    }

    /// Makes room for one more element and returns the array.
    fn with_room(&self, tx: &mut Tx<'_, P>, length: u64) -> Result<u64, Abort> {
        let capacity = self.memory.read(tx, self.header + 1)?;
        let array = self.memory.read(tx, self.header + 2)?;
        if length < capacity {
            return Ok(array);
        }
        let larger = self.memory.0.allocate(2 * length);
        for position in 0..length {
            let address = self.memory.read(tx, array + position)?;
            self.memory.write(tx, larger + position, address)?;
        }
        self.memory.write(tx, self.header + 1, 2 * length)?;
        self.memory.write(tx, self.header + 2, larger)?;
        Ok(larger)
    }
}

impl<T: Element + Ord, P: Protocol> store::Queue<Words<P>, T> for WordPriorityQueue<T, P> {
    fn push(&self, tx: &mut Tx<'_, P>, element: T) -> Result<(), Abort> {
        let new = self.memory.store(tx, &words_of(&element))?;
        let length = self.memory.read(tx, self.header)?;
        let array = self.with_room(tx, length)?;
        let mut position = length;
        while position > 0 {
            let parent = (position - 1) / 2;
            let (address, above) = self.at(tx, array, parent)?;
            if above >= element {
                break;
            }
            self.memory.write(tx, array + position, address)?;
            position = parent;
        }
        self.memory.write(tx, array + position, new)?;
        self.memory.write(tx, self.header, length + 1)
    }

    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Option<T>, Abort> {
        let Some(length) = self.memory.read(tx, self.header)?.checked_sub(1) else { return Ok(None) };
        let array = self.memory.read(tx, self.header + 2)?;
        let (_, top) = self.at(tx, array, 0)?;
        self.memory.write(tx, self.header, length)?;
        if length == 0 {
            return Ok(Some(top));
        }
        let (moved, element) = self.at(tx, array, length)?;
        let mut position = 0;
        loop {
            let left = 2 * position + 1;
            if left >= length {
                break;
            }
            let mut child = (left, self.at(tx, array, left)?);
            if left + 1 < length {
                let right = self.at(tx, array, left + 1)?;
                if right.1 > child.1.1 {
                    child = (left + 1, right);
                }
            }
            let (below, (address, greatest)) = child;
            if element >= greatest {
                break;
            }
            self.memory.write(tx, array + position, address)?;
            position = below;
        }
        self.memory.write(tx, array + position, moved)?;
        Ok(Some(top))
    }
}
