//! Stores over the standard library's collections: the sequential baseline and the one with a global lock.

use crate::store::{Cell, Counters, Element, Key, Lists, Map, Queue, Store, Vector};
use foldhash::fast::RandomState;
use hotrow_sync::{Mutex, MutexGuard, lock};
use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque, btree_map, hash_map};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;

/// A wrapper that gives access to a collection through a shared reference.
pub trait Wrapper: 'static {
    /// The wrapped collection.
    type Of<C>;
    /// The lock that each transaction holds.
    type Lock: Default;
    /// A held lock.
    type Held<'l>;

    /// Wraps a collection.
    fn wrap<C>(collection: C) -> Self::Of<C>;

    /// Accesses a collection.
    fn with<C, R>(wrapped: &Self::Of<C>, access: impl FnOnce(&mut C) -> R) -> R;

    /// Takes the lock.
    fn hold(lock: &Self::Lock) -> Self::Held<'_>;
}

/// The wrapper for one thread. Its collections are not [`Sync`].
#[derive(Debug, Default)]
pub struct Unshared;

impl Wrapper for Unshared {
    type Of<C> = RefCell<C>;
    type Lock = ();
    type Held<'l> = ();

    fn wrap<C>(collection: C) -> RefCell<C> {
        RefCell::new(collection)
    }

    #[inline]
    fn with<C, R>(wrapped: &RefCell<C>, access: impl FnOnce(&mut C) -> R) -> R {
        access(&mut wrapped.borrow_mut())
    }

    #[inline]
    fn hold((): &()) {}
}

/// The wrapper for threads that hold one lock during each transaction. The collections' own locks are then always
/// free; they only make the collections [`Sync`].
#[derive(Debug, Default)]
pub struct Locked;

impl Wrapper for Locked {
    type Of<C> = Mutex<C>;
    type Lock = Mutex<()>;
    type Held<'l> = MutexGuard<'l, ()>;

    fn wrap<C>(collection: C) -> Mutex<C> {
        Mutex::new(collection)
    }

    #[inline]
    fn with<C, R>(wrapped: &Mutex<C>, access: impl FnOnce(&mut C) -> R) -> R {
        access(&mut lock(wrapped))
    }

    #[inline]
    fn hold(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
        hotrow_sync::lock(lock)
    }
}

/// A store over the standard library's collections. Bodies run once, and never abort.
#[derive(Debug, Default)]
pub struct Plain<W: Wrapper> {
    lock: W::Lock,
}

/// The store without synchronization, for one thread: the baseline of speedups.
///
/// Its collections are not [`Sync`], so the compiler refuses to run an application over it on several threads:
///
/// ```compile_fail,E0277
/// use hotrow_stamp::{Sequential, on_threads, registry::ApplicationOptions};
///
/// let options = ApplicationOptions::parse("vacation", None, &[])?;
/// options.execute(Sequential::default(), &on_threads(2));
/// # Ok::<(), hotrow_stamp::OptionError>(())
/// ```
pub type Sequential = Plain<Unshared>;

/// The store that runs one transaction at a time.
pub type GlobalLock = Plain<Locked>;

/// A hash map with a fast hash function.
type FastHashMap<K, V> = HashMap<K, V, RandomState>;

/// The wrapped collection `C` of a store with wrapper `W`.
pub struct PlainCollection<W: Wrapper, C> {
    content: W::Of<C>,
    wrapper: PhantomData<W>,
}

impl<W: Wrapper, C> PlainCollection<W, C> {
    fn new(content: C) -> Self {
        Self { content: W::wrap(content), wrapper: PhantomData }
    }

    #[inline]
    fn with<R>(&self, access: impl FnOnce(&mut C) -> R) -> Result<R, Infallible> {
        Ok(W::with(&self.content, access))
    }
}

impl<W: Wrapper> Store for Plain<W> {
    type Tx<'t> = ();
    type Abort = Infallible;
    type Worker<'s> = &'s Self;
    type Cell<T: Element> = PlainCollection<W, T>;
    type Vector<T: Element> = PlainCollection<W, Box<[T]>>;
    type Counters = PlainCollection<W, Box<[i64]>>;
    type HashMap<K: Key, V: Element> = PlainCollection<W, FastHashMap<K, V>>;
    type OrderedMap<K: Key, V: Element> = PlainCollection<W, BTreeMap<K, V>>;
    type Lists<K: Key, I: Key, V: Element> = PlainCollection<W, FastHashMap<K, Vec<(I, V)>>>;
    type Queue<T: Element> = PlainCollection<W, VecDeque<T>>;
    type PriorityQueue<T: Element + Ord> = PlainCollection<W, BinaryHeap<T>>;

    fn worker(&self) -> &Self {
        self
    }

    #[inline]
    fn transact<R>(worker: &mut &Self, mut body: impl FnMut(&mut ()) -> Result<R, Infallible>) -> R {
        let _held = W::hold(&worker.lock);
        match body(&mut ()) {
            Ok(result) => result,
        }
    }

    fn cell<T: Element>(&self, value: T) -> Self::Cell<T> {
        PlainCollection::new(value)
    }

    fn vector<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> Self::Vector<T> {
        PlainCollection::new(elements.into_iter().collect())
    }

    fn counters(&self, values: impl IntoIterator<Item = i64>) -> Self::Counters {
        PlainCollection::new(values.into_iter().collect())
    }

    fn hash_map<K: Key, V: Element>(
        &self,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::HashMap<K, V> {
        let mut map = FastHashMap::with_capacity_and_hasher(capacity, RandomState::default());
        map.extend(entries);
        PlainCollection::new(map)
    }

    fn ordered_map<K: Key, V: Element>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::OrderedMap<K, V> {
        PlainCollection::new(entries.into_iter().collect())
    }

    fn lists<K: Key, I: Key, V: Element>(
        &self,
        capacity: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Self::Lists<K, I, V> {
        let mut lists = FastHashMap::with_capacity_and_hasher(capacity, RandomState::default());
        lists.extend(keys.into_iter().map(|key| (key, Vec::new())));
        PlainCollection::new(lists)
    }

    fn queue<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> Self::Queue<T> {
        PlainCollection::new(elements.into_iter().collect())
    }

    fn priority_queue<T: Element + Ord>(
        &self,
        elements: impl IntoIterator<Item = T>,
    ) -> Self::PriorityQueue<T> {
        PlainCollection::new(elements.into_iter().collect())
    }
}

impl<W: Wrapper, T: Element> Cell<Plain<W>, T> for PlainCollection<W, T> {
    #[inline]
    fn get(&self, _: &mut ()) -> Result<T, Infallible> {
        self.with(|value| value.clone())
    }

    #[inline]
    fn set(&self, _: &mut (), value: T) -> Result<(), Infallible> {
        self.with(|old| *old = value)
    }

    #[inline]
    fn update<R>(&self, _: &mut (), change: impl FnOnce(&mut T) -> R) -> Result<R, Infallible> {
        self.with(change)
    }
}

impl<W: Wrapper, T: Element> Vector<Plain<W>, T> for PlainCollection<W, Box<[T]>> {
    #[inline]
    fn get(&self, _: &mut (), index: usize) -> Result<T, Infallible> {
        self.with(|elements| elements[index].clone())
    }

    #[inline]
    fn read<R>(&self, _: &mut (), index: usize, look: impl FnOnce(&T) -> R) -> Result<R, Infallible> {
        self.with(|elements| look(&elements[index]))
    }

    #[inline]
    fn read_range(&self, _: &mut (), range: Range<usize>, look: impl FnMut(&T)) -> Result<(), Infallible> {
        self.with(|elements| elements[range].iter().for_each(look))
    }

    #[inline]
    fn set(&self, _: &mut (), index: usize, value: T) -> Result<(), Infallible> {
        self.with(|elements| elements[index] = value)
    }

    #[inline]
    fn update<R>(&self, _: &mut (), index: usize, change: impl FnOnce(&mut T) -> R) -> Result<R, Infallible> {
        self.with(|elements| change(&mut elements[index]))
    }

    fn peek_all(&self, _: &mut (), copy: &mut Vec<T>) -> Result<(), Infallible> {
        self.with(|elements| {
            copy.clear();
            copy.extend_from_slice(elements);
        })
    }
}

impl<W: Wrapper> Counters<Plain<W>> for PlainCollection<W, Box<[i64]>> {
    #[inline]
    fn get(&self, _: &mut (), index: usize) -> Result<i64, Infallible> {
        self.with(|numbers| numbers[index])
    }

    #[inline]
    fn add(&self, _: &mut (), index: usize, amount: i64) -> Result<(), Infallible> {
        self.with(|numbers| numbers[index] += amount)
    }

    #[inline]
    fn is_at_least(&self, _: &mut (), index: usize, bound: i64) -> Result<bool, Infallible> {
        self.with(|numbers| numbers[index] >= bound)
    }
}

/// Implements [`Map`] for maps of the standard library, whose methods have the same names.
macro_rules! plain_map {
    ($map:ident, $module:ident) => {
        impl<W: Wrapper, K: Key, V: Element> Map<Plain<W>, K, V> for PlainCollection<W, $map<K, V>> {
            #[inline]
            fn get(&self, _: &mut (), key: K) -> Result<Option<V>, Infallible> {
                self.with(|map| map.get(&key).cloned())
            }

            #[inline]
            fn insert_if_absent(&self, _: &mut (), key: K, value: V) -> Result<bool, Infallible> {
                self.with(|map| match map.entry(key) {
                    $module::Entry::Vacant(entry) => {
                        entry.insert(value);
                        true
                    }
                    $module::Entry::Occupied(_) => false,
                })
            }

            #[inline]
            fn put(&self, _: &mut (), key: K, value: V) -> Result<(), Infallible> {
                self.with(|map| map.insert(key, value))?;
                Ok(())
            }

            #[inline]
            fn remove(&self, _: &mut (), key: K) -> Result<bool, Infallible> {
                self.with(|map| map.remove(&key).is_some())
            }
        }
    };
}

plain_map!(FastHashMap, hash_map);
plain_map!(BTreeMap, btree_map);

impl<W: Wrapper, K: Key, I: Key, V: Element> Lists<Plain<W>, K, I, V>
    for PlainCollection<W, FastHashMap<K, Vec<(I, V)>>>
{
    #[inline]
    fn open(&self, _: &mut (), key: K) -> Result<bool, Infallible> {
        self.with(|lists| {
            let lists_before = lists.len();
            lists.entry(key).or_default();
            lists.len() > lists_before
        })
    }

    #[inline]
    fn insert(&self, _: &mut (), key: K, item: I, value: V) -> Result<bool, Infallible> {
        self.with(|lists| {
            let list = lists.entry(key).or_default();
            match list.binary_search_by_key(&item, |(item, _)| *item) {
                Ok(_) => false,
                Err(position) => {
                    list.insert(position, (item, value));
                    true
                }
            }
        })
    }

    #[inline]
    fn len(&self, _: &mut (), key: K) -> Result<Option<usize>, Infallible> {
        self.with(|lists| lists.get(&key).map(Vec::len))
    }

    #[inline]
    fn get(&self, _: &mut (), key: K) -> Result<Option<Vec<(I, V)>>, Infallible> {
        self.with(|lists| lists.get(&key).cloned())
    }

    #[inline]
    fn take(&self, _: &mut (), key: K) -> Result<Option<Vec<(I, V)>>, Infallible> {
        self.with(|lists| lists.remove(&key))
    }
}

impl<W: Wrapper, T: Element> Queue<Plain<W>, T> for PlainCollection<W, VecDeque<T>> {
    #[inline]
    fn push(&self, _: &mut (), element: T) -> Result<(), Infallible> {
        self.with(|queue| queue.push_back(element))
    }

    #[inline]
    fn pop(&self, _: &mut ()) -> Result<Option<T>, Infallible> {
        self.with(VecDeque::pop_front)
    }
}

impl<W: Wrapper, T: Element + Ord> Queue<Plain<W>, T> for PlainCollection<W, BinaryHeap<T>> {
    #[inline]
    fn push(&self, _: &mut (), element: T) -> Result<(), Infallible> {
        self.with(|queue| queue.push(element))
    }

    #[inline]
    fn pop(&self, _: &mut ()) -> Result<Option<T>, Infallible> {
        self.with(BinaryHeap::pop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_tell_if_they_have_changed() {
        let store = Sequential::default();
        let mut worker = store.worker();
        let hashed = store.hash_map(4, [(1_u32, 10_u32)]);
        let ordered = store.ordered_map([(1_u32, 10_u32)]);
        Sequential::transact(&mut worker, |tx| {
            assert!(!hashed.insert_if_absent(tx, 1, 11)? && !ordered.insert_if_absent(tx, 1, 11)?);
            assert!(hashed.insert_if_absent(tx, 2, 20)? && ordered.insert_if_absent(tx, 2, 20)?);
            hashed.put(tx, 2, 21)?;
            ordered.put(tx, 2, 21)?;
            assert_eq!((hashed.get(tx, 2)?, ordered.get(tx, 2)?), (Some(21), Some(21)));
            assert!(hashed.remove(tx, 1)? && ordered.remove(tx, 1)?);
            assert!(!hashed.remove(tx, 1)? && !ordered.remove(tx, 1)?);
            Ok(())
        });
    }

    #[test]
    fn lists_are_sorted_and_have_no_duplicates() {
        let store = Sequential::default();
        let mut worker = store.worker();
        let lists = store.lists::<u32, u32, u32>(4, [7]);
        Sequential::transact(&mut worker, |tx| {
            assert!(!lists.open(tx, 7)? && lists.open(tx, 8)?);
            assert!(
                lists.insert(tx, 7, 3, 30)? && lists.insert(tx, 7, 1, 10)? && !lists.insert(tx, 7, 3, 30)?
            );
            assert_eq!((lists.len(tx, 7)?, lists.len(tx, 8)?, lists.len(tx, 9)?), (Some(2), Some(0), None));
            let items = Some(vec![(1, 10), (3, 30)]);
            assert_eq!((lists.get(tx, 7)?, lists.take(tx, 7)?), (items.clone(), items));
            assert_eq!(lists.take(tx, 7)?, None);
            Ok(())
        });
    }

    #[test]
    fn queues_keep_their_orders_and_counters_their_bound() {
        let store = GlobalLock::default();
        let mut worker = store.worker();
        let queue = store.queue([2_u32, 3]);
        let priorities = store.priority_queue([2_u32, 3]);
        let counters = store.counters([1]);
        GlobalLock::transact(&mut worker, |tx| {
            queue.push(tx, 1)?;
            priorities.push(tx, 1)?;
            assert_eq!(
                [queue.pop(tx)?, queue.pop(tx)?, queue.pop(tx)?, queue.pop(tx)?],
                [Some(2), Some(3), Some(1), None]
            );
            assert_eq!([priorities.pop(tx)?, priorities.pop(tx)?], [Some(3), Some(2)]);
            assert!(counters.take_if_available(tx, 0, 1)? && !counters.take_if_available(tx, 0, 1)?);
            assert_eq!(Counters::get(&counters, tx, 0), Ok(0));
            Ok(())
        });
    }
}
