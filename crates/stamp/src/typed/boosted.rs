//! Maps, lists and counters over a concurrent map of another crate, which knows nothing of transactions (sto §5.3). STAMP's
//! vacation is measured with them.
//!
//! A counter is an entry by its index, as the paper boosts vacation's reservation structure, too: each change of it locks
//! it until the transaction ends. An ordered map is no different from a hash map, because the applications ask for no order.

use super::list::List;
use crate::store::{Element, Key};
use foldhash::fast::FixedState;
use hotrow::{Abort, ConcurrentMap, Engine, Protocol, TBoostedMap, Transaction};
use std::hash::Hash;

/// The map that is boosted.
struct Inner<K, V>(papaya::HashMap<K, V, FixedState>);

impl<K, V> ConcurrentMap<K, V> for Inner<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    #[inline]
    fn get(&self, key: &K) -> Option<V> {
        self.0.pin().get(key).cloned()
    }

    #[inline]
    fn insert(&self, key: K, value: V) -> Option<V> {
        self.0.pin().insert(key, value).cloned()
    }

    #[inline]
    fn remove(&self, key: &K) -> Option<V> {
        self.0.pin().remove(key).cloned()
    }
}

type Boosted<K, V, P> = TBoostedMap<K, V, Inner<K, V>, P>;

/// The smallest number of abstract locks, many times as many as all workers hold.
const LOCKS_MIN: usize = 1 << 12;

/// Boosts a map of `entries` that will hold about `capacity` entries. There are as many locks as entries, so that few
/// different keys share one.
fn boosted<K, V, P>(
    engine: &Engine<P>,
    name: &str,
    capacity: usize,
    entries: impl IntoIterator<Item = (K, V)>,
) -> Boosted<K, V, P>
where
    K: Hash + Eq + Clone + std::fmt::Debug + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    P: Protocol,
{
    let map = papaya::HashMap::builder().capacity(capacity).hasher(FixedState::default()).build();
    {
        let map = map.pin();
        for (key, value) in entries {
            map.insert(key, value);
        }
    }
    let locks = capacity.max(map.len()).max(LOCKS_MIN);
    TBoostedMap::named(engine, name, Inner(map), locks)
}

/// A boosted map.
pub struct BoostedMap<K: Key, V: Element, P: Protocol>(Boosted<K, V, P>);

impl<K: Key, V: Element, P: Protocol> BoostedMap<K, V, P> {
    /// A map of `entries` that will hold about `capacity` entries.
    pub(super) fn new(
        engine: &Engine<P>,
        capacity: usize,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        Self(boosted(engine, "boosted map", capacity, entries))
    }

    #[inline]
    pub(super) fn get(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<Option<V>, Abort> {
        self.0.get(tx, &key)
    }

    pub(super) fn insert_if_absent(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        value: V,
    ) -> Result<bool, Abort> {
        Ok(self.0.get(tx, &key)?.is_none() && self.0.insert(tx, key, value)?.is_none())
    }

    pub(super) fn put(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<(), Abort> {
        self.0.insert(tx, key, value).map(drop)
    }

    pub(super) fn remove(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<bool, Abort> {
        Ok(self.0.remove(tx, &key)?.is_some())
    }
}

/// Boosted lists: one abstract lock stands for all items of a list.
pub struct BoostedLists<K: Key, I: Key, V: Element, P: Protocol>(Boosted<K, List<I, V>, P>);

impl<K: Key, I: Key, V: Element, P: Protocol> BoostedLists<K, I, V, P> {
    /// Empty lists for `keys`. There will be about `capacity` lists.
    pub(super) fn new(engine: &Engine<P>, capacity: usize, keys: impl IntoIterator<Item = K>) -> Self {
        let entries = keys.into_iter().map(|key| (key, List::new()));
        Self(boosted(engine, "boosted lists", capacity, entries))
    }

    pub(super) fn open(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<bool, Abort> {
        Ok(self.0.get(tx, &key)?.is_none() && self.0.insert(tx, key, List::new())?.is_none())
    }

    pub(super) fn insert(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        item: I,
        value: V,
    ) -> Result<bool, Abort> {
        let mut list = self.0.get(tx, &key)?.unwrap_or_else(List::new);
        let is_new = list.insert(item, value);
        if is_new {
            self.0.insert(tx, key, list)?;
        }
        Ok(is_new)
    }

    pub(super) fn get(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<Option<List<I, V>>, Abort> {
        self.0.get(tx, &key)
    }

    pub(super) fn take(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<Option<List<I, V>>, Abort> {
        self.0.remove(tx, &key)
    }
}

/// Boosted counters.
pub struct BoostedCounters<P: Protocol>(Boosted<usize, i64, P>);

impl<P: Protocol> BoostedCounters<P> {
    /// Counters that start at `values`.
    pub(super) fn new(engine: &Engine<P>, values: impl IntoIterator<Item = i64>) -> Self {
        Self(boosted(engine, "boosted counters", 0, values.into_iter().enumerate()))
    }

    /// Returns a number; 0 if there is no counter of this index.
    #[inline]
    pub(super) fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<i64, Abort> {
        Ok(self.0.get(tx, &index)?.unwrap_or_default())
    }

    #[inline]
    pub(super) fn add(&self, tx: &mut Transaction<'_, P>, index: usize, amount: i64) -> Result<(), Abort> {
        self.0.update(tx, &index, |number| *number += amount).map(drop)
    }
}
