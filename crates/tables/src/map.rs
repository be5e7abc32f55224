//! Maps: the indexes of tables as collections, with the conventions of the standard library.
//!
//! A map has all that a table's rows have: each entry is a segment, and each bucket or leaf stands for the keys that are
//! absent from it (sto §4.2 `THashtable`, `TMasstree`). It has no name in a database, no indexes and no constraints.
//! Deviations from STO are those of [tables](crate::storage); and a version of a bucket or leaf that has changed is no
//! conflict yet: the commit looks again if the key is absent still.

use crate::index::Direction;
use crate::key::{AsKey, Key, KeyBounds};
use crate::operations::{Change, Delete, Insert, Later, Operation, Read, Update};
use crate::record_index::Index;
use crate::storage::Shared;
use crate::updating::UpdateIfFound;
use hotrow_core::{Abort, Deferred, Engine, EpochBox, Input, Pin, Protocol, Transaction, Value, Whole};
use hotrow_protocols::Occ;
use hotrow_sync::hashing::KeyHashing;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// The entries of a map are in no order.
#[derive(Debug)]
pub struct Hashed(());

/// The entries of a map are in the order of their keys.
#[derive(Debug)]
pub struct Sorted(());

/// A transactional hash map.
///
/// Transactions conflict only over entries of the same key, and over keys that one of them inserts while the other has found
/// them absent. It grows by itself.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_protocols::Occ;
/// use hotrow_tables::THashMap;
///
/// let engine = Engine::<Occ>::new();
/// let stock = THashMap::<String, u64>::new(&engine);
/// let counts = engine.transact(|tx| {
///     let before = stock.insert(tx, "apples".into(), 3)?;
///     let apples = stock.update(tx, "apples", |count| { *count += 1; *count })?;
///     let pears = stock.update_or_insert(tx, "pears".into(), || 0, |count| { *count += 2; *count })?;
///     Ok((before, apples, pears, stock.remove(tx, "plums")?))
/// })?;
/// assert_eq!(counts, (None, Some(4), 2, None));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub type THashMap<K, V, P = Occ> = TMap<K, V, Hashed, P>;

/// A transactional map in the order of its keys, which can be scanned. Scans conflict with what comes into their range, or
/// leaves it, and with nothing else.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_protocols::Occ;
/// use hotrow_tables::{Direction, TOrderedMap};
///
/// let engine = Engine::<Occ>::new();
/// let bids = TOrderedMap::with_entries(&engine, [(10u64, "ada".to_owned()), (12, "bob".into()), (9, "eve".into())]);
/// let (best, two) = engine.transact(|tx| Ok((bids.last(tx)?, bids.collect(tx, ..11, Direction::Ascending, 2)?)))?;
/// assert_eq!(best, Some((12, "bob".into())));
/// assert_eq!(two, [(9, "eve".into()), (10, "ada".into())]);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub type TOrderedMap<K, V, P = Occ> = TMap<K, V, Sorted, P>;

/// A transactional map: [`THashMap`] or [`TOrderedMap`], by its kind of order.
///
/// Values are of any type that is [`Value`]. For a type of somebody else, which is none, take a `Box` or an `Arc` of it.
pub struct TMap<K: Key, V: Value, O, P: Protocol = Occ> {
    entries: EpochBox<Shared<K, V, P>>,
    order: PhantomData<O>,
}

impl<K: Key, V: Value, O, P: Protocol> fmt::Debug for TMap<K, V, O, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TMap").field("name", &self.entries.meta.name()).finish_non_exhaustive()
    }
}

impl<K: Key, V: Value, P: Protocol> TMap<K, V, Hashed, P> {
    /// An empty map.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "map", 0)
    }

    /// An empty map with a name, for errors and conflict reports, and with room for so many entries.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, capacity: usize) -> Self {
        Self::with_index(engine, name.into(), Index::hash(capacity))
    }

    /// A map of these entries. Of several with the same key, the last one counts.
    pub fn with_entries(engine: &Engine<P>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let entries = last_of_each(entries);
        Self::named(engine, "map", entries.len()).filled(entries)
    }

    /// A map of these entries with a name, for errors and conflict reports, and with room for so many entries. Of several with the same
    /// key, the last one counts.
    pub fn named_with_entries(
        engine: &Engine<P>,
        name: impl Into<String>,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self::named(engine, name, capacity).filled(last_of_each(entries))
    }
}

impl<K: Key, V: Value, P: Protocol> TMap<K, V, Sorted, P> {
    /// An empty map.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "map")
    }

    /// An empty map with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>) -> Self {
        Self::with_index(engine, name.into(), Index::ordered())
    }

    /// A map of these entries. Of several with the same key, the last one counts.
    pub fn with_entries(engine: &Engine<P>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::new(engine).filled(last_of_each(entries))
    }

    /// Returns the entry of the smallest key.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn first(&self, tx: &mut Transaction<'_, P>) -> Result<Option<(K, V)>, Abort> {
        Ok(self.collect(tx, .., Direction::Ascending, 1)?.pop())
    }

    /// Returns the entry of the largest key.
    ///
    /// # Errors
    ///
    /// As [`first`](Self::first).
    pub fn last(&self, tx: &mut Transaction<'_, P>) -> Result<Option<(K, V)>, Abort> {
        Ok(self.collect(tx, .., Direction::Descending, 1)?.pop())
    }

    /// Visits the entries whose keys are in `range`, in the order of `direction`, until the visitor breaks. The scan includes
    /// the transaction's own changes.
    ///
    /// # Errors
    ///
    /// As [`first`](Self::first).
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        visit: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.entries.scan_images(tx, range.images(), direction, visit)
    }

    /// Returns copies of the first `limit` entries of a range.
    ///
    /// # Errors
    ///
    /// As [`first`](Self::first).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, V)>, Abort> {
        self.entries.collect(tx, range.images(), direction, limit)
    }

    /// Returns the number of entries in a range.
    ///
    /// # Errors
    ///
    /// As [`first`](Self::first).
    pub fn count(&self, tx: &mut Transaction<'_, P>, range: impl KeyBounds<K>) -> Result<usize, Abort> {
        self.entries.count(tx, range.images())
    }
}

impl<K: Key, V: Value, O, P: Protocol> TMap<K, V, O, P> {
    fn with_index(engine: &Engine<P>, name: String, index: Index<K, V, P>) -> Self {
        let entries = EpochBox::bulky(Shared::new(engine, name, index, false));
        Self { entries, order: PhantomData }
    }

    /// Fills a map that is being made.
    fn filled(self, entries: HashMap<K, V, KeyHashing>) -> Self {
        let pin = Pin::new();
        for (key, value) in entries {
            // A key is there already only if its order or hash is inconsistent.
            let _ = self.entries.load_row(key, value, &pin);
        }
        self
    }

    /// Returns a copy of the value of a key; `None` if there is none (the transaction has then read its absence).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn get(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<V>, Abort> {
        self.read(tx, key, V::clone)
    }

    /// Reads the value of a key without copying it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, Abort> {
        self.entries.read(tx, key, Whole, look)
    }

    /// True if the map has the key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn contains_key(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<bool, Abort> {
        Ok(self.read(tx, key, |_| ())?.is_some())
    }

    /// Inserts a value, or replaces the one of this key, and returns what was replaced.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<Option<V>, Abort> {
        let mut value = Some(value);
        let replace = |old: &mut V| value.take().map(|value| std::mem::replace(old, value));
        match self.entries.update_unless_absent(tx, &key, replace)? {
            UpdateIfFound::Updated(replaced) => Ok(replaced),
            UpdateIfFound::Absent(absence) => {
                let value = value.expect("no value was there to be replaced");
                self.entries.insert_absent(tx, key, value, absence).map(|()| None)
            }
        }
    }

    /// Inserts a value unless the map has the key; false then, and nothing changed.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert_if_absent(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<bool, Abort> {
        Ok(!self.entries.has_row(tx, &key)? && self.entries.insert(tx, key, value)?)
    }

    /// Changes the value of a key, and returns what the change returns; `None` if the map has no such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Abort> {
        self.entries.update(tx, key, Whole, change)
    }

    /// Changes the value of a key, which is `default()` if the map has no such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn update_or_insert<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        default: impl FnOnce() -> V,
        change: impl FnOnce(&mut V) -> R,
    ) -> Result<R, Abort> {
        let mut change = Some(change);
        let mut changed = |value: &mut V| change.take().map(|change| change(value));
        const ONCE: &str = "a value is changed once";
        match self.entries.update_unless_absent(tx, &key, &mut changed)? {
            UpdateIfFound::Updated(result) => Ok(result.expect(ONCE)),
            UpdateIfFound::Absent(absence) => {
                let mut value = default();
                let result = changed(&mut value).expect(ONCE);
                self.entries.insert_absent(tx, key, value, absence).map(|()| result)
            }
        }
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<V>, Abort> {
        let value = self.get(tx, key)?;
        if value.is_some() {
            self.entries.delete(tx, key)?;
        }
        Ok(value)
    }

    /// Reads the value of a key when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_read<R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&V) -> R + 'static,
    ) -> Result<Deferred<Option<R>>, Abort> {
        self.entries.defer_to_key(tx, Read(Whole, look), key, ())
    }

    /// Changes the value of a key when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_update<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        inputs: I,
        change: impl FnOnce(&mut V, I::Value) -> R + 'static,
    ) -> Result<Deferred<Option<R>>, Abort> {
        self.entries.defer_to_key(tx, Change(Update(Whole, change)), key, inputs)
    }

    /// Inserts a value when the transaction commits; false if the map has the key. Both may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_insert(
        &self,
        tx: &mut Transaction<'_, P>,
        key: impl Input<Value = K>,
        value: impl Input<Value = V>,
    ) -> Result<Deferred<bool>, Abort> {
        Insert { group: None }.defer(&self.entries, tx, key, Later::Known(()), value)
    }

    /// Removes a key when the transaction commits; false if the map has no such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_remove(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Deferred<bool>, Abort> {
        self.entries.defer_to_key(tx, Delete, key, ())
    }
}

/// Returns the last entry of each key, in no order.
fn last_of_each<K: Key, V>(entries: impl IntoIterator<Item = (K, V)>) -> HashMap<K, V, KeyHashing> {
    entries.into_iter().collect()
}
