//! Cells, arrays and counters in words.

use super::{Memory, Words, words_of};
use crate::store::{self, Element};
use hotrow::{Abort, Protocol, Transaction};
use std::marker::PhantomData;

type Tx<'t, P> = Transaction<'t, P>;

/// An array of elements of the same length, one behind the other.
pub struct WordVector<T, P: Protocol> {
    memory: Memory<P>,
    first: u64,
    length: usize,
    /// The words of the longest element.
    stride: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element, P: Protocol> WordVector<T, P> {
    pub(super) fn new(store: &Words<P>, elements: Vec<T>) -> Self {
        let words: Vec<Vec<u64>> = elements.iter().map(words_of).collect();
        let stride = words.iter().map(Vec::len).max().unwrap_or_default() as u64;
        let memory = store.memory.clone();
        let first = memory.0.allocate(stride * words.len() as u64);
        let addresses = (0..).map(|index| first + index * stride);
        store.fill_with(addresses.zip(&words), |tx, (address, words)| memory.write_all(tx, address, words));
        Self { memory, first, length: words.len(), stride, elements: PhantomData }
    }

    fn address(&self, index: usize) -> u64 {
        assert!(index < self.length, "index {index} of {}", self.length);
        self.first + index as u64 * self.stride
    }
}

impl<T: Element, P: Protocol> store::Vector<Words<P>, T> for WordVector<T, P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>, index: usize) -> Result<T, Abort> {
        Ok(self.memory.load(tx, self.address(index))?.0)
    }

    #[inline]
    fn read<R>(&self, tx: &mut Tx<'_, P>, index: usize, look: impl FnOnce(&T) -> R) -> Result<R, Abort> {
        Ok(look(&self.get(tx, index)?))
    }

    #[inline]
    fn set(&self, tx: &mut Tx<'_, P>, index: usize, value: T) -> Result<(), Abort> {
        self.memory.write_all(tx, self.address(index), &words_of(&value))
    }

    /// Writes the words that have changed.
    #[inline]
    fn update<R>(
        &self,
        tx: &mut Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        let mut element = self.get(tx, index)?;
        let before = words_of(&element);
        let result = change(&mut element);
        for ((address, word), old) in (self.address(index)..).zip(words_of(&element)).zip(before) {
            if word != old {
                self.memory.write(tx, address, word)?;
            }
        }
        Ok(result)
    }

    /// Elements of several words are read so that the transaction depends on them, because their words may be of two times otherwise.
    fn peek_all(&self, tx: &mut Tx<'_, P>, copy: &mut Vec<T>) -> Result<(), Abort> {
        copy.clear();
        let mut copy_all = |tx: &mut Tx<'_, P>| {
            for index in 0..self.length {
                copy.push(self.get(tx, index)?);
            }
            Ok(())
        };
        if self.stride <= 1 { tx.untracked(copy_all) } else { copy_all(tx) }
    }
}

/// A value.
pub struct WordCell<T, P: Protocol>(WordVector<T, P>);

impl<T: Element, P: Protocol> WordCell<T, P> {
    pub(super) fn new(store: &Words<P>, value: T) -> Self {
        Self(WordVector::new(store, vec![value]))
    }
}

impl<T: Element, P: Protocol> store::Cell<Words<P>, T> for WordCell<T, P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>) -> Result<T, Abort> {
        store::Vector::get(&self.0, tx, 0)
    }

    #[inline]
    fn set(&self, tx: &mut Tx<'_, P>, value: T) -> Result<(), Abort> {
        store::Vector::set(&self.0, tx, 0, value)
    }

    #[inline]
    fn update<R>(&self, tx: &mut Tx<'_, P>, change: impl FnOnce(&mut T) -> R) -> Result<R, Abort> {
        store::Vector::update(&self.0, tx, 0, change)
    }
}

/// Numbers, a word each.
pub struct WordCounters<P: Protocol>(WordVector<u64, P>);

impl<P: Protocol> WordCounters<P> {
    pub(super) fn new(store: &Words<P>, values: Vec<i64>) -> Self {
        Self(WordVector::new(store, values.into_iter().map(|value| value as u64).collect()))
    }
}

impl<P: Protocol> store::Counters<Words<P>> for WordCounters<P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>, index: usize) -> Result<i64, Abort> {
        Ok(self.0.memory.read(tx, self.0.address(index))? as i64)
    }

    #[inline]
    fn add(&self, tx: &mut Tx<'_, P>, index: usize, amount: i64) -> Result<(), Abort> {
        let address = self.0.address(index);
        let number = self.0.memory.read(tx, address)? as i64;
        self.0.memory.write(tx, address, number.wrapping_add(amount) as u64)
    }

    #[inline]
    fn is_at_least(&self, tx: &mut Tx<'_, P>, index: usize, bound: i64) -> Result<bool, Abort> {
        Ok(self.get(tx, index)? >= bound)
    }
}
