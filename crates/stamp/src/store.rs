//! The store trait: the collections and transactions that applications use.
//!
//! An application is written once, generic over a [`Store`]. A store chooses the types of its collections and the way
//! to run a transaction. Every operation is a method of a collection, takes the transaction, and returns a result
//! whose error the body passes up with `?`.
//!
//! # Rules for applications
//!
//! - A body may run several times. It leaves no trace outside the store: it returns its results, and what it keeps in
//!   outer variables is scratch memory that each attempt fills anew.
//! - A body may see an inconsistent state in an attempt that cannot commit, because not every store is opaque. It then
//!   ends nevertheless, and does not panic.
//! - Collections are made while no worker runs. An element is plain data and holds no collection, so that a store may
//!   keep elements in any form. An application refers from one element to another by an index or a key.
//! - The application knows no store. A variant that avoids more conflicts is another store, not another application:
//!   [`Counters::take_if_available`] may lock, read and write, or check a predicate at commit (sto §5.4).
//!
//! # Rules for stores
//!
//! A transaction sees its own changes. Committed transactions are serializable; [`Vector::peek_all`] is the only
//! operation without a promise. Collections need not be [`Sync`]: the [`Runner`](crate::Runner) asks for
//! that where it needs it.

use crate::encode::Encode;
use std::hash::Hash;
use std::ops::Range;

/// A value that collections hold: plain data.
///
/// Types implement it one by one, so that a store can ask for more of them. [`hotrow::Value`] chooses the place of the
/// value: inline or boxed. [`Encode`] turns it into words.
pub trait Element: hotrow::Value + Encode {}

/// A key of a map or of a sorted list's item.
pub trait Key: Element + Copy + Ord + Hash + hotrow::Key {}

macro_rules! elements {
    ($($element:ty),* $(,)?) => {
        $(
            impl Element for $element {}
            impl Key for $element {}
        )*
    };
}

elements! { u32, u64, (u32, u32), (u64, u64) }

impl Element for () {}
impl Element for usize {}
impl Element for f64 {}

/// A store: its collections, and a way to run transactions on them.
pub trait Store: Sized + 'static {
    /// A running transaction.
    type Tx<'t>;

    /// The reason why an attempt cannot go on. Bodies pass it up.
    type Abort;

    /// The state of one thread that runs transactions.
    type Worker<'s>
    where
        Self: 's;

    /// A single value.
    type Cell<T: Element>: Cell<Self, T>;

    /// An array of fixed length.
    type Vector<T: Element>: Vector<Self, T>;

    /// An array of numbers that are mostly added to and tested.
    type Counters: Counters<Self>;

    /// A map without an order.
    type HashMap<K: Key, V: Element>: Map<Self, K, V>;

    /// A map in the order of its keys.
    type OrderedMap<K: Key, V: Element>: Map<Self, K, V>;

    /// A map from keys to sorted lists.
    type Lists<K: Key, I: Key, V: Element>: Lists<Self, K, I, V>;

    /// A queue.
    type Queue<T: Element>: Queue<Self, T>;

    /// A priority queue.
    type PriorityQueue<T: Element + Ord>: Queue<Self, T>;

    /// Makes the state of the calling thread.
    fn worker(&self) -> Self::Worker<'_>;

    /// Runs `body` as a transaction, again if an attempt aborts, and returns the result of the attempt that
    /// committed.
    fn transact<R>(
        worker: &mut Self::Worker<'_>,
        body: impl FnMut(&mut Self::Tx<'_>) -> Result<R, Self::Abort>,
    ) -> R;

    /// Makes a cell that holds `value`.
    fn cell<T: Element>(&self, value: T) -> Self::Cell<T>;

    /// Makes an array of `elements`.
    fn vector<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> Self::Vector<T>;

    /// Makes an array of counters that start at `values`.
    fn counters(&self, values: impl IntoIterator<Item = i64>) -> Self::Counters;

    /// Makes a hash map of `entries`, with distinct keys, that will hold about `capacity` entries.
    fn hash_map<K: Key, V: Element>(
        &self,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::HashMap<K, V>;

    /// Makes an ordered map of `entries`, with distinct keys.
    fn ordered_map<K: Key, V: Element>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self::OrderedMap<K, V>;

    /// Makes empty lists for `keys`, which are distinct. More lists come and go later; there will be about `capacity`.
    fn lists<K: Key, I: Key, V: Element>(
        &self,
        capacity: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Self::Lists<K, I, V>;

    /// Makes a queue of `elements`, the first one to be taken first.
    fn queue<T: Element>(&self, elements: impl IntoIterator<Item = T>) -> Self::Queue<T>;

    /// Makes a priority queue of `elements`.
    fn priority_queue<T: Element + Ord>(
        &self,
        elements: impl IntoIterator<Item = T>,
    ) -> Self::PriorityQueue<T>;
}

/// A single value.
pub trait Cell<S: Store, T> {
    /// Returns a copy of the value.
    fn get(&self, tx: &mut S::Tx<'_>) -> Result<T, S::Abort>;

    /// Replaces the value without reading it.
    fn set(&self, tx: &mut S::Tx<'_>, value: T) -> Result<(), S::Abort>;

    /// Changes the value.
    fn update<R>(&self, tx: &mut S::Tx<'_>, change: impl FnOnce(&mut T) -> R) -> Result<R, S::Abort>;

    /// Changes the value in a transaction of its own, and returns the result of the change. No operation of the transaction
    /// needs the result, so a store may defer the change and hand the result out after the commit (drp §6.2).
    fn update_alone<R: Clone + 'static>(
        &self,
        worker: &mut S::Worker<'_>,
        change: impl Fn(&mut T) -> R + Clone + 'static,
    ) -> R {
        S::transact(worker, |tx| self.update(tx, &change))
    }
}

/// An array of fixed length. An index out of bounds is a defect of the application; a store may panic.
pub trait Vector<S: Store, T> {
    /// Returns a copy of an element.
    fn get(&self, tx: &mut S::Tx<'_>, index: usize) -> Result<T, S::Abort>;

    /// Reads an element without copying it.
    fn read<R>(&self, tx: &mut S::Tx<'_>, index: usize, look: impl FnOnce(&T) -> R) -> Result<R, S::Abort>;

    /// Reads the elements of a range in their order, without copying them.
    fn read_range(
        &self,
        tx: &mut S::Tx<'_>,
        mut range: Range<usize>,
        mut look: impl FnMut(&T),
    ) -> Result<(), S::Abort> {
        range.try_for_each(|index| self.read(tx, index, &mut look))
    }

    /// Replaces an element without reading it.
    fn set(&self, tx: &mut S::Tx<'_>, index: usize, value: T) -> Result<(), S::Abort>;

    /// Changes an element.
    fn update<R>(
        &self,
        tx: &mut S::Tx<'_>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, S::Abort>;

    /// Changes an element at a time of the store's choice, at the latest when the transaction commits or next accesses
    /// the element. No result is returned, so a store may defer the change (drp).
    fn change_later(
        &self,
        tx: &mut S::Tx<'_>,
        index: usize,
        change: impl FnOnce(&mut T) + 'static,
    ) -> Result<(), S::Abort> {
        self.update(tx, index, change)
    }

    /// Copies all elements into `copy`, without detecting conflicts: each element is one that has been committed, but
    /// they need not be of one time. An application uses the copy as a hint and checks with [`get`](Self::get) the
    /// elements on which its result depends.
    fn peek_all(&self, tx: &mut S::Tx<'_>, copy: &mut Vec<T>) -> Result<(), S::Abort>;
}

/// An array of 64-bit numbers that are mostly added to and tested.
pub trait Counters<S: Store> {
    /// Returns a number.
    fn get(&self, tx: &mut S::Tx<'_>, index: usize) -> Result<i64, S::Abort>;

    /// Adds `amount`, which may be negative, to a number.
    fn add(&self, tx: &mut S::Tx<'_>, index: usize, amount: i64) -> Result<(), S::Abort>;

    /// Returns true if a number is at least `bound`.
    fn is_at_least(&self, tx: &mut S::Tx<'_>, index: usize, bound: i64) -> Result<bool, S::Abort>;

    /// Subtracts `amount` from a number and returns true if that leaves it at 0 or above; otherwise leaves it unchanged
    /// and returns false.
    fn take_if_available(&self, tx: &mut S::Tx<'_>, index: usize, amount: i64) -> Result<bool, S::Abort> {
        let available = self.is_at_least(tx, index, amount)?;
        if available {
            self.add(tx, index, -amount)?;
        }
        Ok(available)
    }
}

/// A map.
pub trait Map<S: Store, K, V> {
    /// Returns a copy of the value of a key.
    fn get(&self, tx: &mut S::Tx<'_>, key: K) -> Result<Option<V>, S::Abort>;

    /// Adds an entry and returns true, or returns false if the key has a value already.
    fn insert_if_absent(&self, tx: &mut S::Tx<'_>, key: K, value: V) -> Result<bool, S::Abort>;

    /// Replaces the value of a key, or adds an entry.
    fn put(&self, tx: &mut S::Tx<'_>, key: K, value: V) -> Result<(), S::Abort>;

    /// Removes an entry. Returns false if there is none.
    fn remove(&self, tx: &mut S::Tx<'_>, key: K) -> Result<bool, S::Abort>;
}

/// A map from keys to lists. The items of a list are distinct, sorted, and have a value each. A list may be present and
/// empty.
pub trait Lists<S: Store, K, I, V> {
    /// Adds an empty list and returns true, or returns false if the key has a list already.
    fn open(&self, tx: &mut S::Tx<'_>, key: K) -> Result<bool, S::Abort>;

    /// Adds an item to the list of a key, which is made if there is none. Returns false if the list has the item
    /// already.
    fn insert(&self, tx: &mut S::Tx<'_>, key: K, item: I, value: V) -> Result<bool, S::Abort>;

    /// Returns the number of items in the list of a key; `None` if there is no list.
    fn len(&self, tx: &mut S::Tx<'_>, key: K) -> Result<Option<usize>, S::Abort>;

    /// Returns a copy of the list of a key, in order; `None` if there is no list.
    fn get(&self, tx: &mut S::Tx<'_>, key: K) -> Result<Option<Vec<(I, V)>>, S::Abort>;

    /// Removes the list of a key and returns it, in order; `None` if there is no list.
    fn take(&self, tx: &mut S::Tx<'_>, key: K) -> Result<Option<Vec<(I, V)>>, S::Abort>;
}

/// A queue or a priority queue.
pub trait Queue<S: Store, T> {
    /// Adds an element.
    fn push(&self, tx: &mut S::Tx<'_>, element: T) -> Result<(), S::Abort>;

    /// Takes the oldest element of a queue, or a greatest element of a priority queue; `None` if there is no element.
    fn pop(&self, tx: &mut S::Tx<'_>) -> Result<Option<T>, S::Abort>;
}
