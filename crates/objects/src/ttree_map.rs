//! A map in the order of its keys: a red-black tree (sto §4.2, `TRBTree`).
//!
//! # Avoiding conflicts
//!
//! Each entry's value is a segment, and the tree that leads to the entries is one more.
//!
//! - Insertions and removals wait in the tree's item, and the commit applies them. An operation on a key depends on its entry
//!   being there, or not: that is its condition. So operations on different keys never conflict.
//! - A change of a value that is there writes the entry's segment only. It conflicts with no insertion or removal of another
//!   key, and with no operation that only asks for the key.
//! - An operation that visits entries in order depends on it that no others come between them, as far as it has come:
//!   [`TTreeMap::first`] does not see what comes behind the first entry.
//! - The length is a condition of its own: [`TTreeMap::is_empty`] conflicts only with what fills or empties the map.
//!
//! A transaction reads and changes the entries that it has inserted itself like any others. Nobody else finds them before
//! it commits.
//!
//! Reads take no lock: a commit installs a new version of a [persistent tree](crate::red_black), which shares most of its nodes
//! with the one before, and readers go on with the old one until it is freed through the epoch.
//!
//! # Conditions that are judged again
//!
//! Each version of the tree has a number. As long as the tree is of the version of which a transaction's condition was judged
//! last, it holds. Otherwise a look at the tree, and the commit, judge it anew: one search for each key, one walk for each range.
//!
//! # Deviations from the paper
//!
//! - Its nodes have a version for the element and one for the structure, and absence is read as the structure versions of the
//!   two neighbours, which also change if another key comes between them. Here absence is a condition on the key, and a scan's on
//!   its range: finer, but judged by searches and not by a comparison of numbers.
//! - It inserts at once. Here an insertion is installed by the commit, so that insertions by others need not be looked past.
//! - Each commit that inserts or removes copies a path of the tree, and locks the tree for it. So such commits come one after
//!   the other, and under a protocol that locks what it reads they wait for lookups, too.

mod entries;
mod iter;

use crate::red_black::RedBlackTree;
use entries::{Change, Effect, Entries, Entry, Tree, lengths};
use hotrow_core::{
    Abort, Commuting, CommutingSegment, Deferred, Engine, Input, Protocol, Seen, SingleSegment, Transaction,
    Value,
};
use hotrow_protocols::Occ;
pub use iter::Iter;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

/// A transactional map in the order of its keys. Operations on different keys never conflict.
///
/// Keys are of any type with an order. A map whose keys have images (`Key`) can be a `TOrderedMap` as well: insertions into
/// different parts of that are not made one after the other.
///
/// An operation on a key, or a step of a scan, takes time in proportion to the logarithm of the length; so does each key that a
/// commit inserts or removes. A comparison that panics in a commit loses what that transaction has inserted and removed.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TTreeMap;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let ages = TTreeMap::with_entries(&engine, [(String::from("ada"), 36), (String::from("eve"), 21)]);
/// let (first, rest) = engine.transact(|tx| {
///     assert_eq!(ages.insert(tx, "bob".into(), 50)?, None);
///     ages.update(tx, "eve", |age| *age += 1)?;
///     let first = ages.first(tx)?;
///     let rest = ages.range(tx, "b".to_owned()..).collect::<Result<Vec<_>, _>>()?;
///     Ok((first, rest))
/// })?;
/// assert_eq!(first, Some(("ada".into(), 36)));
/// assert_eq!(rest, [("bob".into(), 50), ("eve".into(), 22)]);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TTreeMap<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol = Occ> {
    tree: CommutingSegment<Tree<K, V, P>, P>,
    engine: Engine<P>,
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> fmt::Debug for TTreeMap<K, V, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TTreeMap").field("name", &self.tree.name()).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> TTreeMap<K, V, P> {
    /// An empty map.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "map", [])
    }

    /// A map of these entries. Of several with the same key, the last one counts.
    pub fn with_entries(engine: &Engine<P>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::named(engine, "map", entries)
    }

    /// A map of these entries with a name, for errors and conflict reports.
    pub fn named(
        engine: &Engine<P>,
        name: impl Into<String>,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let (name, datatype) = (name.into(), Tree(PhantomData));
        let entry = |(key, value)| {
            let entry = Entry { key, value: SingleSegment::new(engine, &*name, value) };
            Effect { before: None, after: Some(Arc::new(entry)) }
        };
        let all = entries.into_iter().map(entry).fold(Change::default(), |all, effect| all.with(effect));
        let mut content = Entries { tree: RedBlackTree::default(), length: 0, version: 0 };
        datatype.apply(all, &mut content);
        Self { tree: CommutingSegment::of(engine, name, datatype, content), engine: engine.clone() }
    }

    /// Returns a copy of the value of a key; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn get<Q>(&self, tx: &mut Transaction<'_, P>, key: &Q) -> Result<Option<V>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        self.read(tx, key, V::clone)
    }

    /// Reads the value of a key without copying it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn read<Q, R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &Q,
        look: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(entry) = self.find(tx, key, true)? else { return Ok(None) };
        entry.value.enter(tx)?.read(look).map(Some)
    }

    /// True if the map has the key. The transaction does not depend on the value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn contains_key<Q>(&self, tx: &mut Transaction<'_, P>, key: &Q) -> Result<bool, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        Ok(self.find(tx, key, false)?.is_some())
    }

    /// Inserts a value, or replaces the one of this key, and returns what was replaced.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<Option<V>, Abort> {
        if let Some(entry) = self.find(tx, &key, true)? {
            return entry.value.enter(tx)?.update(|old| std::mem::replace(old, value)).map(Some);
        }
        self.insert_absent(tx, key, value)?;
        Ok(None)
    }

    /// Inserts a value unless the map has the key; false then, and nothing changed.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert_if_absent(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<bool, Abort> {
        let is_absent = self.find(tx, &key, false)?.is_none();
        if is_absent {
            self.insert_absent(tx, key, value)?;
        }
        Ok(is_absent)
    }

    /// Changes the value of a key, and returns what the change returns; `None` if the map has no such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn update<Q, R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &Q,
        change: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(entry) = self.find(tx, key, true)? else { return Ok(None) };
        entry.value.enter(tx)?.update(change).map(Some)
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
        if let Some(entry) = self.find(tx, &key, true)? {
            return entry.value.enter(tx)?.update(change);
        }
        let mut value = default();
        let result = change(&mut value);
        self.insert_absent(tx, key, value)?;
        Ok(result)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove<Q>(&self, tx: &mut Transaction<'_, P>, key: &Q) -> Result<Option<V>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(entry) = self.find(tx, key, true)? else { return Ok(None) };
        // Copied first: if that panics, the entry stays.
        let value = entry.value.enter(tx)?.read(V::clone)?;
        self.tree.enter(tx)?.change(|change| {
            let before = change.get::<K>(&entry.key).map_or(Some(&entry), |own| own.before.as_ref()).cloned();
            *change = if before.is_some() {
                change.with(Effect { before, after: None })
            } else {
                // Its own insertion, taken back.
                change.without(&entry.key)
            };
        })?;
        Ok(Some(value))
    }

    /// Returns the entry of the least key. The transaction does not depend on what comes behind it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn first(&self, tx: &mut Transaction<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.iter(tx).next().transpose()
    }

    /// Returns the entry of the greatest key. The transaction does not depend on what comes before it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn last(&self, tx: &mut Transaction<'_, P>) -> Result<Option<(K, V)>, Abort> {
        self.iter(tx).next_back().transpose()
    }

    /// Returns copies of all entries in the order of their keys, one by one. A transaction that stops before the end depends
    /// only on what it has come by.
    pub fn iter<'t, 'w>(&'t self, tx: &'t mut Transaction<'w, P>) -> Iter<'t, 'w, K, V, P> {
        self.range::<K, _>(tx, ..)
    }

    /// Returns copies of the entries of a range, as [`iter`](Self::iter) does. None, if the range ends before it begins.
    pub fn range<'t, 'w, Q, R>(&'t self, tx: &'t mut Transaction<'w, P>, range: R) -> Iter<'t, 'w, K, V, P>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
        R: RangeBounds<Q>,
    {
        Iter::new(self, tx, range)
    }

    /// True if the map has no entries.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        self.tree.enter(tx)?.test(
            |seen| (lengths(&seen), seen.value.version),
            |((length, delta), version), facts| facts.seen_at(version).length.test_empty(length, delta),
        )
    }

    /// Returns the number of entries. Any insertion or removal of another transaction is then a conflict: prefer
    /// [`is_empty`](Self::is_empty).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.tree.enter(tx)?.test(
            |seen| (lengths(&seen), seen.value.version),
            |((length, delta), version), facts| facts.seen_at(version).length.exactly(length, delta),
        )
    }

    /// Reads the value of a key when the transaction commits. The key is searched at once. The result may be an input of
    /// operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_read<Q, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &Q,
        look: impl FnOnce(&V) -> R + 'static,
    ) -> Result<Option<Deferred<R>>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(entry) = self.find(tx, key, true)? else { return Ok(None) };
        entry.value.enter(tx)?.defer_read(look).map(Some)
    }

    /// Changes the value of a key when the transaction commits. The key is searched at once. The inputs may become known
    /// only at the commit.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_update<Q, I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &Q,
        inputs: I,
        change: impl FnOnce(&mut V, I::Value) -> R + 'static,
    ) -> Result<Option<Deferred<R>>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let Some(entry) = self.find(tx, key, true)? else { return Ok(None) };
        entry.value.enter(tx)?.defer_update(inputs, change).map(Some)
    }

    /// Sets the rank of the tree: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)). The values have the highest one,
    /// so that they come behind it.
    pub fn set_rank(&mut self, rank: u16) {
        self.tree.set_rank(rank);
    }

    /// Finds the entry of a key, with the attempt's own changes. The attempt depends on it that it is this entry, or, if that
    /// is not to be exact, that there is one.
    fn find<Q>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &Q,
        is_exact: bool,
    ) -> Result<Option<Arc<Entry<K, V, P>>>, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let look = |seen: Seen<'_, Tree<K, V, P>>| {
            let own = seen.change.and_then(|change| change.get(key));
            let entry = own.map_or_else(|| seen.value.tree.get(key), |own| own.after.as_ref());
            (entry.cloned(), own.is_some(), seen.value.version)
        };
        self.tree.enter(tx)?.test(look, |(entry, is_own, version), facts| {
            let facts = facts.seen_at(version);
            match &entry {
                // The attempt has learned before it changed the key what it depends on.
                _ if is_own => {}
                Some(entry) => facts.is_there(entry, is_exact),
                None => facts.is_absent(key.to_owned()),
            }
            entry
        })
    }

    /// Inserts a key whose absence the attempt has observed.
    fn insert_absent(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<(), Abort> {
        let entry = self.entry(key, value);
        self.tree.enter(tx)?.change(|change| {
            let before = change.get(&entry.key).and_then(|own| own.before.clone());
            *change = change.with(Effect { before, after: Some(entry) });
        })
    }

    fn entry(&self, key: K, value: V) -> Arc<Entry<K, V, P>> {
        Arc::new(Entry { key, value: SingleSegment::new(&self.engine, self.tree.name(), value) })
    }
}
