//! The entries of a map one by one, in both directions.

use super::TTreeMap;
use super::entries::{Entry, Limit, Span, Tree};
use crate::red_black::{Keyed, Order};
use hotrow_core::{Abort, Protocol, Seen, Transaction, Value};
use std::borrow::Borrow;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The entries of a [`TTreeMap`] in the order of their keys, one by one. Behind an error there are no more.
pub struct Iter<'t, 'w, K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> {
    map: &'t TTreeMap<K, V, P>,
    tx: &'t mut Transaction<'w, P>,
    /// The bounds of the entries to come; `None` after the last one, or after an error.
    ahead: Option<(Bound<Limit<K, V, P>>, Bound<Limit<K, V, P>>)>,
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> fmt::Debug for Iter<'_, '_, K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("is_done", &self.ahead.is_none()).finish_non_exhaustive()
    }
}

impl<'t, 'w, K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> Iter<'t, 'w, K, V, P> {
    pub(super) fn new<Q>(
        map: &'t TTreeMap<K, V, P>,
        tx: &'t mut Transaction<'w, P>,
        range: impl RangeBounds<Q>,
    ) -> Self
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let limit = |bound: Bound<&Q>| bound.map(|key| Limit::Key(Arc::new(key.to_owned())));
        Self { map, tx, ahead: Some((limit(range.start_bound()), limit(range.end_bound()))) }
    }

    /// Returns the next entry in an order.
    fn step(&mut self, order: Order) -> Result<Option<(K, V)>, Abort> {
        let Some((low, high)) = self.ahead.take() else { return Ok(None) };
        let (from, to) = if order == Order::Ascending { (&low, &high) } else { (&high, &low) };
        let look = |seen: Seen<'_, Tree<K, V, P>>| (next_entry(&seen, order, from, to), seen.value.version);
        let found = self.map.tree.enter(self.tx)?.test(look, |((found, span), version), facts| {
            facts.seen_at(version).spans(span);
            found
        })?;
        let Some(entry) = found else { return Ok(None) };
        let value = entry.value.enter(self.tx)?.read(V::clone)?;
        let key = entry.key.clone();
        let behind = Bound::Excluded(Limit::Entry(entry));
        self.ahead = Some(if order == Order::Ascending { (behind, high) } else { (low, behind) });
        Ok(Some((key, value)))
    }
}

/// An entry, or none.
type Found<K, V, P> = Option<Arc<Entry<K, V, P>>>;

/// Returns the first entry of a range, with the attempt's own change, and the range up to it, without that.
fn next_entry<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol>(
    seen: &Seen<'_, Tree<K, V, P>>,
    order: Order,
    from: &Bound<Limit<K, V, P>>,
    to: &Bound<Limit<K, V, P>>,
) -> (Found<K, V, P>, Span<K, V, P>) {
    let (begin, end) = (from.as_ref().map(Limit::key), to.as_ref().map(Limit::key));
    let own = seen.change.and_then(|change| {
        let mut effects = change.walk(order, begin).take_while(|effect| !order.is_behind(effect.key(), end));
        effects.find_map(|effect| effect.after.as_ref())
    });
    // Entries behind the first one of its own do not matter.
    let limit = own.map_or(end, |own| Bound::Included(&own.key));
    let mut entries = Vec::new();
    let mut found = own;
    for entry in seen.value.tree.walk(order, begin).take_while(|entry| !order.is_behind(&entry.key, limit)) {
        entries.push(entry.clone());
        if seen.change.is_none_or(|change| change.get(&entry.key).is_none()) {
            found = Some(entry);
            break;
        }
    }
    let found = found.cloned();
    let to = found.clone().map_or_else(|| to.clone(), |entry| Bound::Included(Limit::Entry(entry)));
    (found, Span { order, from: from.clone(), to, entries })
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> Iterator for Iter<'_, '_, K, V, P> {
    type Item = Result<(K, V), Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Order::Ascending).transpose()
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Value, P: Protocol> DoubleEndedIterator
    for Iter<'_, '_, K, V, P>
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Order::Descending).transpose()
    }
}
