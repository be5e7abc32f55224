//! The store in words of one memory, as a conventional software transactional memory has it: what typed datatypes are
//! compared with (sto §4.2 `TGeneric`, §5.2).
//!
//! Every structure is made of words of one [`TWords`], links and lengths included, and each word that a transaction reads or
//! writes is an item. Addresses take the place of pointers; 0 is no address. The hash tables have chains, the ordered map is a
//! skip list, the queue is linked, the priority queue is a binary heap of addresses.
//!
//! # Attempts that see inconsistent words
//!
//! Not every protocol is opaque, so an attempt may follow links of different moments. It ends nevertheless: no word of a
//! structure is ever used for another one, and links never form a cycle, at whatever moments they are read. A link
//! of a chain leads to an entry that was inserted earlier, one of a sorted list or of the skip list to a greater key,
//! one of a queue to an element that was pushed later.
//!
//! # Deviations from STAMP
//!
//! - STAMP's ordered map is a red-black tree. The skip list's search reads about as many words, and its changes write fewer.
//! - The words of a new node are written by the transaction, where STAMP writes them before anybody else knows the node.
//! - Words that are removed are not used again. A run needs memory for all words that it ever inserts.

mod lists;
mod maps;
mod queues;
mod values;

pub use lists::WordLists;
pub use maps::{WordHashMap, WordOrderedMap};
pub use queues::{WordPriorityQueue, WordQueue};
pub use values::{WordCell, WordCounters, WordVector};

use crate::encode::Encode;
use crate::store::{Element, Key, Store};
use crate::tracked::{Tracked, TrackedWorker};
use hotrow::{Abort, Protocol, TWords, Transaction};
use hotrow_sync::Arc;

/// A store in words of one memory.
pub struct Words<P: Protocol> {
    tracked: Tracked<P>,
    memory: Memory<P>,
}

impl<P: Protocol> Words<P> {
    /// Makes a store with a memory of its own, which belongs to the engine of `tracked`.
    pub fn new(tracked: Tracked<P>) -> Self {
        let memory = Memory(Arc::new(TWords::new(tracked.engine())));
        Self { tracked, memory }
    }

    /// Runs `fill` as a transaction, to fill a new structure. Structures are made while no other transaction runs.
    fn fill(&self, mut fill: impl FnMut(&mut Transaction<'_, P>) -> Result<(), Abort>) {
        self.tracked.engine().transact(|tx| fill(tx)).expect("nothing else runs while a structure is filled");
    }

    /// Fills a new structure with `elements`, some in each transaction.
    fn fill_with<E: Clone>(
        &self,
        elements: impl IntoIterator<Item = E>,
        mut put: impl FnMut(&mut Transaction<'_, P>, E) -> Result<(), Abort>,
    ) {
        let mut elements = elements.into_iter();
        loop {
            let some: Vec<E> = elements.by_ref().take(ELEMENTS_PER_TRANSACTION).collect();
            if some.is_empty() {
                return;
            }
            self.fill(|tx| some.iter().try_for_each(|element| put(tx, element.clone())));
        }
    }
}

/// The number of elements that one transaction puts into a new structure.
const ELEMENTS_PER_TRANSACTION: usize = 256;

/// The memory of a store.
struct Memory<P: Protocol>(Arc<TWords<P>>);

impl<P: Protocol> Clone for Memory<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Protocol> Memory<P> {
    #[inline]
    fn read(&self, tx: &mut Transaction<'_, P>, address: u64) -> Result<u64, Abort> {
        self.0.read(tx, address)
    }

    #[inline]
    fn write(&self, tx: &mut Transaction<'_, P>, address: u64, word: u64) -> Result<(), Abort> {
        self.0.write(tx, address, word)
    }

    /// Allocates words and writes them.
    fn store(&self, tx: &mut Transaction<'_, P>, words: &[u64]) -> Result<u64, Abort> {
        let address = self.0.allocate(words.len() as u64);
        self.write_all(tx, address, words)?;
        Ok(address)
    }

    fn write_all(&self, tx: &mut Transaction<'_, P>, address: u64, words: &[u64]) -> Result<(), Abort> {
        (address..).zip(words).try_for_each(|(address, word)| self.write(tx, address, *word))
    }

    /// Reads an element that begins at `address`, and returns it with the address behind it.
    #[inline]
    fn load<T: Encode>(&self, tx: &mut Transaction<'_, P>, address: u64) -> Result<(T, u64), Abort> {
        let mut next = address;
        let element = T::decode(&mut || {
            next += 1;
            self.read(tx, next - 1)
        })?;
        Ok((element, next))
    }
}

/// Returns the words of an element.
fn words_of(element: &impl Encode) -> Vec<u64> {
    let mut words = Vec::new();
    element.encode(&mut words);
    words
}

impl<P: Protocol> Store for Words<P> {
    type Tx<'t> = Transaction<'t, P>;
    type Abort = Abort;
    type Worker<'s> = TrackedWorker<'s, P>;
    type Cell<T: Element> = WordCell<T, P>;
    type Vector<T: Element> = WordVector<T, P>;
    type Counters = WordCounters<P>;
    type HashMap<K: Key, V: Element> = WordHashMap<K, V, P>;
    type OrderedMap<K: Key, V: Element> = WordOrderedMap<K, V, P>;
    type Lists<K: Key, I: Key, V: Element> = WordLists<K, I, V, P>;
    type Queue<T: Element> = WordQueue<T, P>;
    type PriorityQueue<T: Element + Ord> = WordPriorityQueue<T, P>;

    fn worker(&self) -> TrackedWorker<'_, P> {
        self.tracked.worker()
    }

    #[inline]
    fn transact<R>(
        worker: &mut TrackedWorker<'_, P>,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> R {
        worker.transact(body)
    }

    fn cell<T: Element>(&self, value: T) -> WordCell<T, P> {
        WordCell::new(self, value)
    }

    fn vector<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> WordVector<T, P> {
        WordVector::new(self, elements.into_iter().collect())
    }

    fn counters(&self, values: impl IntoIterator<Item = i64>) -> WordCounters<P> {
        WordCounters::new(self, values.into_iter().collect())
    }

    fn hash_map<K: Key, V: Element>(
        &self,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> WordHashMap<K, V, P> {
        WordHashMap::new(self, capacity, entries)
    }

    fn ordered_map<K: Key, V: Element>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> WordOrderedMap<K, V, P> {
        WordOrderedMap::new(self, entries)
    }

    fn lists<K: Key, I: Key, V: Element>(
        &self,
        capacity: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> WordLists<K, I, V, P> {
        WordLists::new(self, capacity, keys)
    }

    fn queue<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> WordQueue<T, P> {
        WordQueue::new(self, elements)
    }

    fn priority_queue<T: Element + Ord>(
        &self,
        elements: impl IntoIterator<Item = T>,
    ) -> WordPriorityQueue<T, P> {
        WordPriorityQueue::new(self, elements)
    }
}
