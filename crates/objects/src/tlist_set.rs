//! A sorted list without duplicates (sto §4.2, `TListSet`).
//!
//! # Avoiding conflicts
//!
//! The list is one segment. An insertion or removal waits in its item, and the commit applies it. An operation on a key depends
//! on the key being there, or not: that is its condition. So
//!
//! - operations on different keys never conflict, nor do two that find the same key there;
//! - the length is a condition of its own: [`TListSet::is_empty`] conflicts only with what fills or empties the list.
//!
//! Reads take no lock: a commit installs a new array of pointers to the elements, and readers go on with the old one until it is
//! freed through the epoch.
//!
//! Deviations from the paper: the list is an array and not linked, so that it is searched by halves and a commit copies it.
//! Like the paper's, it is for lists of tens or hundreds of elements; for more, use
//! an ordered map (`TOrderedMap`). And absence is a condition on the key, not the version of a node.

use crate::range::Range;
use hotrow_core::{Abort, Boxed, Commuting, CommutingSegment, Engine, Protocol, Seen, Transaction, Value};
use hotrow_protocols::Occ;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A transactional sorted list without duplicates: a small set. Operations on different keys never conflict.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TListSet;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let members = TListSet::with_elements(&engine, [String::from("eve"), String::from("ada")]);
/// let all = engine.transact(|tx| {
///     assert!(members.insert(tx, "bob".into())?);
///     assert!(members.remove(tx, "eve")?);
///     assert!(!members.contains(tx, "eve")?);
///     members.to_vec(tx)
/// })?;
/// assert_eq!(all, ["ada", "bob"]);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TListSet<K: Ord + Clone + Send + Sync + 'static, P: Protocol = Occ> {
    segment: CommutingSegment<List<K>, P>,
}

/// The datatype.
struct List<K>(PhantomData<fn(K)>);

/// The elements in order.
struct Elements<K>(Vec<Arc<K>>);

impl<K> Clone for Elements<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Send + Sync + 'static> Value for Elements<K> {
    type Cell = Boxed<Self>;

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Arc<K>>()
    }
}

impl<K: Ord> Elements<K> {
    /// Returns the position of a key, or the one at which it belongs.
    fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|element| K::borrow(element).cmp(key))
    }
}

/// The pending change of an attempt: for each key, is it there afterwards? Only keys for which that is a change.
type Change<K> = BTreeMap<Arc<K>, bool>;

/// The facts on which an attempt depends.
struct Facts<K> {
    /// Keys that are in the list without the attempt's own change, or are not.
    keys: Vec<(Arc<K>, bool)>,
    length: Range,
}

impl<K> Clone for Facts<K> {
    fn clone(&self) -> Self {
        Self { keys: self.keys.clone(), length: self.length }
    }
}

impl<K> Default for Facts<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), length: Range::default() }
    }
}

impl<K: Ord + Clone + Send + Sync + 'static> Commuting for List<K> {
    type Value = Elements<K>;
    type Change = Change<K>;
    type Condition = Facts<K>;

    fn holds(&self, facts: &Facts<K>, _: Option<&Change<K>>, elements: &Elements<K>) -> bool {
        facts.length.contains(elements.0.len() as i64)
            && facts.keys.iter().all(|(key, is_there)| elements.position::<K>(key).is_ok() == *is_there)
    }

    fn apply(&self, change: Change<K>, elements: &mut Elements<K>) {
        for (key, is_there) in change {
            match elements.position::<K>(&key) {
                Err(position) if is_there => elements.0.insert(position, key),
                Ok(position) if !is_there => drop(elements.0.remove(position)),
                _ => {}
            }
        }
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, P: Protocol> fmt::Debug for TListSet<K, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TListSet").field("name", &self.segment.name()).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, P: Protocol> TListSet<K, P> {
    /// An empty list.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "list", [])
    }

    /// A list of these elements.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = K>) -> Self {
        Self::named(engine, "list", elements)
    }

    /// A list of these elements with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, elements: impl IntoIterator<Item = K>) -> Self {
        let mut elements: Vec<_> = elements.into_iter().map(Arc::new).collect();
        elements.sort();
        elements.dedup();
        Self { segment: CommutingSegment::of(engine, name, List(PhantomData), Elements(elements)) }
    }

    /// True if the list has the key.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn contains<Q>(&self, tx: &mut Transaction<'_, P>, key: &Q) -> Result<bool, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        self.has(tx, &Arc::new(key.to_owned()))
    }

    /// Inserts a key; false if the list has it.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K) -> Result<bool, Abort> {
        self.change(tx, Arc::new(key), true)
    }

    /// Removes a key; false if the list does not have it.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn remove<Q>(&self, tx: &mut Transaction<'_, P>, key: &Q) -> Result<bool, Abort>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        self.change(tx, Arc::new(key.to_owned()), false)
    }

    /// True if the list has no elements.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        self.segment.enter(tx)?.test(lengths, |(length, delta), facts| facts.length.test_empty(length, delta))
    }

    /// Returns the number of elements. Any insertion or removal of another transaction is then a conflict: prefer
    /// [`is_empty`](Self::is_empty).
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.segment.enter(tx)?.test(lengths, |(length, delta), facts| facts.length.exactly(length, delta))
    }

    /// Returns copies of all elements in order. Any change of the list by another transaction is then a conflict.
    ///
    /// # Errors
    ///
    /// As [`contains`](Self::contains).
    pub fn to_vec(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<K>, Abort> {
        let elements = self.segment.enter(tx)?.read(|seen| {
            let mut elements = seen.value.clone();
            if let Some(change) = seen.change {
                seen.datatype.apply(change.clone(), &mut elements);
            }
            elements
        })?;
        Ok(elements.0.iter().map(|element| K::clone(element)).collect())
    }

    /// True if the key is in the list, with the attempt's own changes.
    fn has(&self, tx: &mut Transaction<'_, P>, key: &Arc<K>) -> Result<bool, Abort> {
        let own = self.segment.enter(tx)?.own_change(|change| change?.get(key).copied())?;
        if let Some(is_there) = own {
            return Ok(is_there);
        }
        let look = |seen: Seen<'_, List<K>>| seen.value.position::<K>(key).is_ok();
        self.segment.enter(tx)?.test(look, |is_there, facts| {
            facts.keys.push((key.clone(), is_there));
            is_there
        })
    }

    /// Makes the key be in the list, or not; false if it is so already.
    fn change(&self, tx: &mut Transaction<'_, P>, key: Arc<K>, wanted: bool) -> Result<bool, Abort> {
        if self.has(tx, &key)? == wanted {
            return Ok(false);
        }
        self.segment.enter(tx)?.change(|change| {
            // Its own change, taken back.
            if change.remove(&key).is_none() {
                change.insert(key, wanted);
            }
        })?;
        Ok(true)
    }
}

/// The length without the attempt's own changes, and what they add to it.
fn lengths<K: Ord + Clone + Send + Sync + 'static>(seen: Seen<'_, List<K>>) -> (i64, i64) {
    let of_one = |is_there: &bool| if *is_there { 1 } else { -1 };
    (seen.value.0.len() as i64, seen.change.map_or(0, |change| change.values().map(of_one).sum()))
}
