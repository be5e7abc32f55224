//! The store over Hotrow's datatypes, which conflict by their own semantics (sto §4, §5.2, §5.4).
//!
//! A list of [`Lists`](store::Lists) is one entry of a hash map: the applications read lists as a whole, so one item stands
//! for all elements.

mod boosted;
mod list;

use crate::store::{self, Element, Key, Store};
use crate::tracked::{Tracked, TrackedWorker};
use boosted::{BoostedCounters, BoostedLists, BoostedMap};
use hotrow::{
    Abort, Protocol, TArray, TBox, TCounters, THashMap, TOrderedMap, TPriorityQueue, TQueue, Transaction,
};
use list::List;
use std::ops::Range;

/// The choices that a [`Typed`] store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypedOptions {
    /// Counters are added to and tested without being read: a test depends on its result only (sto §5.4). Otherwise each
    /// counter is a number that is read and written.
    pub predicates: bool,
    /// Changes whose result the transaction does not need are deferred to the commit, by protocols that defer.
    pub deferred: bool,
    /// Maps, lists and counters are concurrent maps of another crate, boosted (sto §5.3). Counters are then neither tested
    /// by predicates nor deferred.
    pub boosted: bool,
}

/// A store over Hotrow's datatypes.
pub struct Typed<P: Protocol> {
    tracked: Tracked<P>,
    options: TypedOptions,
}

impl<P: Protocol> Typed<P> {
    /// Makes a store whose collections belong to the engine of `tracked`.
    pub fn new(tracked: Tracked<P>, options: TypedOptions) -> Self {
        Self { tracked, options }
    }
}

/// A single value, and true if changes that are transactions of their own are deferred.
pub struct TypedCell<T: Element, P: Protocol> {
    value: TBox<T, P>,
    deferred: bool,
}

/// An array, and true if changes without a result are deferred.
pub struct TypedVector<T: Element, P: Protocol> {
    elements: TArray<T, P>,
    deferred: bool,
}

/// Counters, by the options of the store.
pub enum TypedCounters<P: Protocol> {
    /// Added to and tested without being read.
    Predicates {
        /// The counters.
        counters: TCounters<P>,
        /// True if additions are deferred.
        deferred: bool,
    },
    /// Read and written.
    Exact(TArray<i64, P>),
    /// Read and written under abstract locks.
    Boosted(BoostedCounters<P>),
}

/// A map, by the options of the store.
pub enum TypedMap<M, K: Key, V: Element, P: Protocol> {
    /// A map of Hotrow's.
    Own(M),
    /// A boosted one.
    Boosted(BoostedMap<K, V, P>),
}

/// Lists by their keys, by the options of the store.
pub enum TypedLists<K: Key, I: Key, V: Element, P: Protocol> {
    /// Entries of a map of Hotrow's.
    Own(THashMap<K, List<I, V>, P>),
    /// Entries of a boosted one.
    Boosted(BoostedLists<K, I, V, P>),
}

impl<P: Protocol> Store for Typed<P> {
    type Tx<'t> = Transaction<'t, P>;
    type Abort = Abort;
    type Worker<'s> = TrackedWorker<'s, P>;
    type Cell<T: Element> = TypedCell<T, P>;
    type Vector<T: Element> = TypedVector<T, P>;
    type Counters = TypedCounters<P>;
    type HashMap<K: Key, V: Element> = TypedMap<THashMap<K, V, P>, K, V, P>;
    type OrderedMap<K: Key, V: Element> = TypedMap<TOrderedMap<K, V, P>, K, V, P>;
    type Lists<K: Key, I: Key, V: Element> = TypedLists<K, I, V, P>;
    type Queue<T: Element> = TQueue<T, P>;
    type PriorityQueue<T: Element + Ord> = TPriorityQueue<T, P>;

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

    fn cell<T: Element>(&self, value: T) -> TypedCell<T, P> {
        TypedCell { value: TBox::new(self.tracked.engine(), value), deferred: self.options.deferred }
    }

    fn vector<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> TypedVector<T, P> {
        TypedVector {
            elements: TArray::with_elements(self.tracked.engine(), elements),
            deferred: self.options.deferred,
        }
    }

    fn counters(&self, values: impl IntoIterator<Item = i64>) -> TypedCounters<P> {
        let engine = self.tracked.engine();
        if self.options.boosted {
            return TypedCounters::Boosted(BoostedCounters::new(engine, values));
        }
        if self.options.predicates {
            let counters = TCounters::new(engine, values);
            return TypedCounters::Predicates { counters, deferred: self.options.deferred };
        }
        TypedCounters::Exact(TArray::with_elements(engine, values))
    }

    fn hash_map<K: Key, V: Element>(
        &self,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::HashMap<K, V> {
        if self.options.boosted {
            return TypedMap::Boosted(BoostedMap::new(self.tracked.engine(), capacity, entries));
        }
        let engine = self.tracked.engine();
        TypedMap::Own(THashMap::<K, V, P>::named_with_entries(engine, "map", capacity, entries))
    }

    fn ordered_map<K: Key, V: Element>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::OrderedMap<K, V> {
        if self.options.boosted {
            return TypedMap::Boosted(BoostedMap::new(self.tracked.engine(), 0, entries));
        }
        TypedMap::Own(TOrderedMap::<K, V, P>::with_entries(self.tracked.engine(), entries))
    }

    fn lists<K: Key, I: Key, V: Element>(
        &self,
        capacity: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> TypedLists<K, I, V, P> {
        if self.options.boosted {
            return TypedLists::Boosted(BoostedLists::new(self.tracked.engine(), capacity, keys));
        }
        let entries = keys.into_iter().map(|key| (key, List::new()));
        TypedLists::Own(THashMap::named_with_entries(self.tracked.engine(), "lists", capacity, entries))
    }

    fn queue<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> TQueue<T, P> {
        TQueue::with_elements(self.tracked.engine(), elements)
    }

    fn priority_queue<T: Element + Ord>(
        &self,
        elements: impl IntoIterator<Item = T>,
    ) -> TPriorityQueue<T, P> {
        TPriorityQueue::with_elements(self.tracked.engine(), elements)
    }
}

type Tx<'t, P> = Transaction<'t, P>;

impl<T: Element, P: Protocol> store::Cell<Typed<P>, T> for TypedCell<T, P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>) -> Result<T, Abort> {
        self.value.get(tx)
    }

    #[inline]
    fn set(&self, tx: &mut Tx<'_, P>, value: T) -> Result<(), Abort> {
        self.value.set(tx, value)
    }

    #[inline]
    fn update<R>(&self, tx: &mut Tx<'_, P>, change: impl FnOnce(&mut T) -> R) -> Result<R, Abort> {
        self.value.update(tx, change)
    }

    fn update_alone<R: Clone + 'static>(
        &self,
        worker: &mut TrackedWorker<'_, P>,
        change: impl Fn(&mut T) -> R + Clone + 'static,
    ) -> R {
        if !self.deferred {
            return worker.transact(|tx| self.value.update(tx, &change));
        }
        worker.transact_deferred(|tx| {
            let change = change.clone();
            self.value.defer_update(tx, (), move |value, ()| change(value))
        })
    }
}

impl<T: Element, P: Protocol> store::Vector<Typed<P>, T> for TypedVector<T, P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>, index: usize) -> Result<T, Abort> {
        self.elements.get(tx, index)
    }

    #[inline]
    fn read<R>(&self, tx: &mut Tx<'_, P>, index: usize, look: impl FnOnce(&T) -> R) -> Result<R, Abort> {
        self.elements.read(tx, index, look)
    }

    fn read_range(
        &self,
        tx: &mut Tx<'_, P>,
        range: Range<usize>,
        mut look: impl FnMut(&T),
    ) -> Result<(), Abort> {
        self.elements.read_each(tx, range, |_, element| look(element))
    }

    #[inline]
    fn set(&self, tx: &mut Tx<'_, P>, index: usize, value: T) -> Result<(), Abort> {
        self.elements.set(tx, index, value)
    }

    #[inline]
    fn update<R>(
        &self,
        tx: &mut Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        self.elements.update(tx, index, change)
    }

    #[inline]
    fn change_later(
        &self,
        tx: &mut Tx<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) + 'static,
    ) -> Result<(), Abort> {
        if self.deferred {
            self.elements.defer_update(tx, index, (), |element, ()| change(element)).map(drop)
        } else {
            self.elements.update(tx, index, change)
        }
    }

    fn peek_all(&self, tx: &mut Tx<'_, P>, copy: &mut Vec<T>) -> Result<(), Abort> {
        copy.clear();
        copy.reserve(self.elements.len());
        let push = |_, element: &T| copy.push(element.clone());
        tx.untracked(|tx| self.elements.read_each(tx, 0..self.elements.len(), push))
    }
}

impl<P: Protocol> store::Counters<Typed<P>> for TypedCounters<P> {
    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>, index: usize) -> Result<i64, Abort> {
        match self {
            Self::Predicates { counters, .. } => counters.get(tx, index),
            Self::Exact(numbers) => numbers.get(tx, index),
            Self::Boosted(numbers) => numbers.get(tx, index),
        }
    }

    #[inline]
    fn add(&self, tx: &mut Tx<'_, P>, index: usize, amount: i64) -> Result<(), Abort> {
        match self {
            Self::Predicates { counters, deferred: false } => counters.add(tx, index, amount),
            Self::Predicates { counters, deferred: true } => counters.defer_add(tx, index, amount),
            Self::Exact(numbers) => numbers.update(tx, index, |number| *number += amount),
            Self::Boosted(numbers) => numbers.add(tx, index, amount),
        }
    }

    #[inline]
    fn is_at_least(&self, tx: &mut Tx<'_, P>, index: usize, bound: i64) -> Result<bool, Abort> {
        match self {
            Self::Predicates { counters, .. } => counters.is_at_least(tx, index, bound),
            Self::Exact(numbers) => numbers.read(tx, index, |number| *number >= bound),
            Self::Boosted(numbers) => Ok(numbers.get(tx, index)? >= bound),
        }
    }

    #[inline]
    fn take_if_available(&self, tx: &mut Tx<'_, P>, index: usize, amount: i64) -> Result<bool, Abort> {
        match self {
            // Announces a write even if too little is available, which is rare, but finds the number once.
            Self::Exact(numbers) => numbers.update(tx, index, |number| {
                let available = *number >= amount;
                *number -= if available { amount } else { 0 };
                available
            }),
            _ => {
                let available = self.is_at_least(tx, index, amount)?;
                if available {
                    self.add(tx, index, -amount)?;
                }
                Ok(available)
            }
        }
    }
}

/// Implements [`store::Map`] for a map of Hotrow, whose methods have the same names.
macro_rules! typed_map {
    ($map:ident) => {
        impl<K: Key, V: Element, P: Protocol> store::Map<Typed<P>, K, V>
            for TypedMap<$map<K, V, P>, K, V, P>
        {
            #[inline]
            fn get(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<V>, Abort> {
                match self {
                    Self::Own(map) => map.get(tx, &key),
                    Self::Boosted(map) => map.get(tx, key),
                }
            }

            #[inline]
            fn insert_if_absent(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<bool, Abort> {
                match self {
                    Self::Own(map) => map.insert_if_absent(tx, key, value),
                    Self::Boosted(map) => map.insert_if_absent(tx, key, value),
                }
            }

            #[inline]
            fn put(&self, tx: &mut Tx<'_, P>, key: K, value: V) -> Result<(), Abort> {
                match self {
                    Self::Own(map) => map.insert(tx, key, value).map(drop),
                    Self::Boosted(map) => map.put(tx, key, value),
                }
            }

            #[inline]
            fn remove(&self, tx: &mut Tx<'_, P>, key: K) -> Result<bool, Abort> {
                match self {
                    Self::Own(map) => Ok(map.remove(tx, &key)?.is_some()),
                    Self::Boosted(map) => map.remove(tx, key),
                }
            }
        }
    };
}

typed_map!(THashMap);
typed_map!(TOrderedMap);

impl<K: Key, I: Key, V: Element, P: Protocol> store::Lists<Typed<P>, K, I, V> for TypedLists<K, I, V, P> {
    #[inline]
    fn open(&self, tx: &mut Tx<'_, P>, key: K) -> Result<bool, Abort> {
        match self {
            Self::Own(lists) => lists.insert_if_absent(tx, key, List::new()),
            Self::Boosted(lists) => lists.open(tx, key),
        }
    }

    #[inline]
    fn insert(&self, tx: &mut Tx<'_, P>, key: K, item: I, value: V) -> Result<bool, Abort> {
        match self {
            Self::Own(lists) => lists.update_or_insert(tx, key, List::new, |list| list.insert(item, value)),
            Self::Boosted(lists) => lists.insert(tx, key, item, value),
        }
    }

    #[inline]
    fn len(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<usize>, Abort> {
        match self {
            Self::Own(lists) => lists.read(tx, &key, List::len),
            Self::Boosted(lists) => Ok(lists.get(tx, key)?.map(|list| list.len())),
        }
    }

    #[inline]
    fn get(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<Vec<(I, V)>>, Abort> {
        match self {
            Self::Own(lists) => lists.read(tx, &key, List::to_vec),
            Self::Boosted(lists) => Ok(lists.get(tx, key)?.map(|list| list.to_vec())),
        }
    }

    #[inline]
    fn take(&self, tx: &mut Tx<'_, P>, key: K) -> Result<Option<Vec<(I, V)>>, Abort> {
        let list = match self {
            Self::Own(lists) => lists.remove(tx, &key)?,
            Self::Boosted(lists) => lists.take(tx, key)?,
        };
        Ok(list.map(List::into_vec))
    }
}

impl<T: Element, P: Protocol> store::Queue<Typed<P>, T> for TQueue<T, P> {
    #[inline]
    fn push(&self, tx: &mut Tx<'_, P>, element: T) -> Result<(), Abort> {
        TQueue::push(self, tx, element)
    }

    #[inline]
    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Option<T>, Abort> {
        TQueue::pop(self, tx)
    }
}

impl<T: Element + Ord, P: Protocol> store::Queue<Typed<P>, T> for TPriorityQueue<T, P> {
    #[inline]
    fn push(&self, tx: &mut Tx<'_, P>, element: T) -> Result<(), Abort> {
        TPriorityQueue::push(self, tx, element)
    }

    #[inline]
    fn pop(&self, tx: &mut Tx<'_, P>) -> Result<Option<T>, Abort> {
        TPriorityQueue::pop(self, tx)
    }
}
