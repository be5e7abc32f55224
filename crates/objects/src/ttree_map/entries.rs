//! The tree of entries as a datatype: its value, the change that a transaction makes, the facts on which one depends.

use crate::range::Range;
use crate::red_black::{Keyed, Order, RedBlackTree};
use hotrow_core::{Boxed, Commuting, Protocol, Seen, SingleSegment, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

/// A key with its value, which is a segment of its own.
pub(super) struct Entry<K, V: Value, P: Protocol> {
    pub(super) key: K,
    pub(super) value: SingleSegment<V, P>,
}

impl<K: Ord, V: Value, P: Protocol> Keyed for Arc<Entry<K, V, P>> {
    type Key = K;

    fn key(&self) -> &K {
        &self.key
    }
}

/// The datatype.
pub(super) struct Tree<K, V, P>(pub(super) PhantomData<fn(K, V, P)>);

/// One version of the tree.
pub(super) struct Entries<K, V: Value, P: Protocol> {
    pub(super) tree: RedBlackTree<Arc<Entry<K, V, P>>>,
    pub(super) length: usize,
    /// The number of this version.
    pub(super) version: u64,
}

impl<K, V: Value, P: Protocol> Clone for Entries<K, V, P> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone(), ..*self }
    }
}

impl<K: Send + Sync + 'static, V: Value, P: Protocol> Value for Entries<K, V, P> {
    type Cell = Boxed<Self>;
}

/// The effect of an attempt on one key: its entries before and after. It has one of them at least.
pub(super) struct Effect<K, V: Value, P: Protocol> {
    /// The entry without the attempt, on which it depends.
    pub(super) before: Option<Arc<Entry<K, V, P>>>,
    pub(super) after: Option<Arc<Entry<K, V, P>>>,
}

impl<K, V: Value, P: Protocol> Clone for Effect<K, V, P> {
    fn clone(&self) -> Self {
        Self { before: self.before.clone(), after: self.after.clone() }
    }
}

impl<K: Ord, V: Value, P: Protocol> Keyed for Effect<K, V, P> {
    type Key = K;

    fn key(&self) -> &K {
        let entry = self.after.as_ref().or(self.before.as_ref());
        &entry.expect("an effect has an entry").key
    }
}

/// The pending change of an attempt: its effects in the order of their keys. A savepoint shares it.
pub(super) type Change<K, V, P> = RedBlackTree<Effect<K, V, P>>;

/// A bound of a range: a key of the user's, or that of an entry.
pub(super) enum Limit<K, V: Value, P: Protocol> {
    Key(Arc<K>),
    Entry(Arc<Entry<K, V, P>>),
}

impl<K, V: Value, P: Protocol> Clone for Limit<K, V, P> {
    fn clone(&self) -> Self {
        match self {
            Self::Key(key) => Self::Key(key.clone()),
            Self::Entry(entry) => Self::Entry(entry.clone()),
        }
    }
}

impl<K, V: Value, P: Protocol> Limit<K, V, P> {
    pub(super) fn key(&self) -> &K {
        match self {
            Self::Key(key) => key,
            Self::Entry(entry) => &entry.key,
        }
    }
}

/// A range in which an attempt has seen all entries, without its own effects.
pub(super) struct Span<K, V: Value, P: Protocol> {
    pub(super) order: Order,
    pub(super) from: Bound<Limit<K, V, P>>,
    pub(super) to: Bound<Limit<K, V, P>>,
    /// The entries in this order.
    pub(super) entries: Vec<Arc<Entry<K, V, P>>>,
}

impl<K, V: Value, P: Protocol> Clone for Span<K, V, P> {
    fn clone(&self) -> Self {
        let Self { order, from, to, entries } = self;
        Self { order: *order, from: from.clone(), to: to.clone(), entries: entries.clone() }
    }
}

impl<K: Ord, V: Value, P: Protocol> Span<K, V, P> {
    /// True if these are the entries of the range.
    fn holds(&self, entries: &Entries<K, V, P>) -> bool {
        let from = self.from.as_ref().map(Limit::key);
        let to = self.to.as_ref().map(Limit::key);
        let mut found =
            entries.tree.walk(self.order, from).take_while(|entry| !self.order.is_behind(&entry.key, to));
        self.entries.iter().all(|seen| found.next().is_some_and(|entry| Arc::ptr_eq(seen, entry)))
            && found.next().is_none()
    }

    /// Joins a span that begins where this one ends, or becomes one that covers it; otherwise gives it back.
    fn extend(&mut self, next: Self) -> Result<(), Self> {
        if self.order != next.order {
            return Err(next);
        }
        let is_same_end = end_of(&self.to).is_some_and(|end| end_of(&next.to) == Some(end));
        match (&self.from, &self.to, &next.from) {
            (_, Bound::Included(Limit::Entry(end)), Bound::Excluded(Limit::Entry(begin)))
                if Arc::ptr_eq(end, begin) =>
            {
                self.to = next.to;
                self.entries.extend(next.entries);
            }
            // Both are of one version, so that the one with more entries goes farther.
            (Bound::Unbounded, _, Bound::Unbounded)
                if is_same_end || next.entries.len() > self.entries.len() =>
            {
                *self = next;
            }
            _ => return Err(next),
        }
        Ok(())
    }
}

/// Returns the address of the entry that is the last one of a range.
fn end_of<K, V: Value, P: Protocol>(to: &Bound<Limit<K, V, P>>) -> Option<usize> {
    match to {
        Bound::Included(Limit::Entry(entry)) => Some(Arc::as_ptr(entry).addr()),
        _ => None,
    }
}

/// An entry that an attempt has found.
struct Found<K, V: Value, P: Protocol> {
    entry: Arc<Entry<K, V, P>>,
    /// True if it must be this entry, and not another one of its key.
    is_exact: bool,
}

impl<K, V: Value, P: Protocol> Clone for Found<K, V, P> {
    fn clone(&self) -> Self {
        Self { entry: self.entry.clone(), is_exact: self.is_exact }
    }
}

/// The facts on which an attempt depends, of the tree without its own change.
pub(super) struct Facts<K, V: Value, P: Protocol> {
    /// The last version of which they are known to hold.
    version: Option<u64>,
    /// The entries found by their keys, by address: they are in memory as long as they are here.
    found: BTreeMap<usize, Found<K, V, P>>,
    absent: BTreeSet<K>,
    spans: Vec<Span<K, V, P>>,
    pub(super) length: Range,
}

impl<K: Clone, V: Value, P: Protocol> Clone for Facts<K, V, P> {
    fn clone(&self) -> Self {
        let Self { version, found, absent, spans, length } = self;
        let (found, absent, spans) = (found.clone(), absent.clone(), spans.clone());
        Self { version: *version, found, absent, spans, length: *length }
    }
}

impl<K, V: Value, P: Protocol> Default for Facts<K, V, P> {
    fn default() -> Self {
        let (found, absent, spans) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { version: None, found, absent, spans, length: Range::default() }
    }
}

impl<K: Ord, V: Value, P: Protocol> Facts<K, V, P> {
    /// Notes of which version the last test was: all facts so far hold of it, and so will those that are added now.
    pub(super) fn seen_at(&mut self, version: u64) -> &mut Self {
        self.version = Some(version);
        self
    }

    pub(super) fn is_there(&mut self, entry: &Arc<Entry<K, V, P>>, is_exact: bool) {
        let new = || Found { entry: entry.clone(), is_exact: false };
        self.found.entry(Arc::as_ptr(entry).addr()).or_insert_with(new).is_exact |= is_exact;
    }

    pub(super) fn is_absent(&mut self, key: K) {
        self.absent.insert(key);
    }

    pub(super) fn spans(&mut self, span: Span<K, V, P>) {
        let added = match self.spans.last_mut() {
            Some(last) => last.extend(span),
            None => Err(span),
        };
        if let Err(span) = added {
            self.spans.push(span);
        }
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> Commuting for Tree<K, V, P> {
    type Value = Entries<K, V, P>;
    type Change = Change<K, V, P>;
    type Condition = Facts<K, V, P>;

    fn holds(&self, facts: &Self::Condition, _: Option<&Self::Change>, entries: &Self::Value) -> bool {
        let is_there = |found: &Found<K, V, P>| {
            let now = entries.tree.get(&found.entry.key);
            now.is_some_and(|now| !found.is_exact || Arc::ptr_eq(now, &found.entry))
        };
        facts.version == Some(entries.version)
            || facts.length.contains(entries.length as i64)
                && facts.found.values().all(is_there)
                && facts.absent.iter().all(|key| entries.tree.get(key).is_none())
                && facts.spans.iter().all(|span| span.holds(entries))
    }

    fn apply(&self, change: Self::Change, entries: &mut Self::Value) {
        entries.version += 1;
        for effect in change.iter() {
            let is_there = entries.tree.get(effect.key()).is_some();
            entries.length -= usize::from(is_there);
            if let Some(entry) = &effect.after {
                entries.tree = entries.tree.with(entry.clone());
                entries.length += 1;
            } else if is_there {
                entries.tree = entries.tree.without(effect.key());
            }
        }
    }
}

/// The length without the attempt's own change, and what that adds to it.
pub(super) fn lengths<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol>(
    seen: &Seen<'_, Tree<K, V, P>>,
) -> (i64, i64) {
    let of_one =
        |effect: &Effect<K, V, P>| i64::from(effect.after.is_some()) - i64::from(effect.before.is_some());
    (seen.value.length as i64, seen.change.map_or(0, |change| change.iter().map(of_one).sum()))
}
