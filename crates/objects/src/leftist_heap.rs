//! A heap that shares its nodes with earlier versions of itself: a leftist heap (Crane, "Linear Lists and Priority Queues as
//! Balanced Binary Trees", Stanford, 1972; the persistent form: Okasaki, "Purely Functional Data Structures", 1998, §3.1).
//!
//! A version is never changed. A push or pop makes a new one, and copies the nodes on a path of logarithmic length. So readers
//! look at a version without a lock while the next one is made.

use hotrow_sync::work::charge_cycles;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Processor cycles that a simulation charges for a new node, whose memory it does not see. So calibrated that the ratio of this
/// heap to one over a `TVector` on one core is that of real runs (docs/results/README.md, "Datatypes").
const WORK_NODE: u32 = 80;

/// One version of a heap. The least element comes first.
pub(crate) struct LeftistHeap<E>(Option<Arc<Node<E>>>);

struct Node<E> {
    element: E,
    /// The number of nodes on the path to the right; the left one's is at least as great.
    rank: u32,
    left: LeftistHeap<E>,
    right: LeftistHeap<E>,
}

impl<E> Clone for LeftistHeap<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> Default for LeftistHeap<E> {
    fn default() -> Self {
        Self(None)
    }
}

impl<E: Ord + Clone> LeftistHeap<E> {
    fn node(element: E, one: Self, other: Self) -> Self {
        charge_cycles(WORK_NODE);
        let (left, right) = if one.rank() >= other.rank() { (one, other) } else { (other, one) };
        Self(Some(Arc::new(Node { element, rank: right.rank() + 1, left, right })))
    }

    fn rank(&self) -> u32 {
        self.0.as_ref().map_or(0, |node| node.rank)
    }

    /// Returns the heap of the elements of both. The recursion is as deep as both paths to the right, which are logarithmic.
    fn merge(&self, other: &Self) -> Self {
        let (Some(one), Some(two)) = (&self.0, &other.0) else {
            return if self.0.is_some() { self.clone() } else { other.clone() };
        };
        let (first, rest) = if one.element <= two.element { (one, other) } else { (two, self) };
        Self::node(first.element.clone(), first.left.clone(), first.right.merge(rest))
    }

    /// Returns the heap with one element more.
    pub(crate) fn with(&self, element: E) -> Self {
        self.merge(&Self::node(element, Self::default(), Self::default()))
    }

    /// Returns the heap without its first element; an empty one, if it is empty.
    pub(crate) fn without_first(&self) -> Self {
        self.0.as_ref().map_or_else(Self::default, |node| node.left.merge(&node.right))
    }

    /// Returns the elements in order. The first few are cheap.
    pub(crate) fn iter(&self) -> InOrder<'_, E> {
        InOrder { next: self.0.as_deref(), behind: BinaryHeap::new() }
    }
}

impl<E> Drop for Node<E> {
    /// Drops what no other version has, without recursion: paths to the left may be of any length.
    fn drop(&mut self) {
        let mut last = [self.left.0.take(), self.right.0.take()].into_iter().flatten().collect::<Vec<_>>();
        while let Some(node) = last.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                last.extend([node.left.0.take(), node.right.0.take()].into_iter().flatten());
            }
        }
    }
}

/// The elements of a [`LeftistHeap`] in order.
pub(crate) struct InOrder<'h, E> {
    /// The node of the next element.
    next: Option<&'h Node<E>>,
    /// The nodes below those visited that come after `next`.
    behind: BinaryHeap<Behind<'h, E>>,
}

impl<'h, E: Ord> Iterator for InOrder<'h, E> {
    type Item = &'h E;

    fn next(&mut self) -> Option<&'h E> {
        let node = match self.next.take() {
            Some(first) => first,
            None => self.behind.pop()?.0,
        };
        self.behind
            .extend([&node.left, &node.right].into_iter().filter_map(|below| below.0.as_deref()).map(Behind));
        Some(&node.element)
    }
}

/// A node, in the reverse order of elements: the greatest of a `BinaryHeap` comes first.
struct Behind<'h, E>(&'h Node<E>);

impl<E: Ord> Ord for Behind<'_, E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.element.cmp(&self.0.element)
    }
}

impl<E: Ord> PartialOrd for Behind<'_, E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E: Ord> PartialEq for Behind<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E: Ord> Eq for Behind<'_, E> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order_whatever_came_and_went_and_stay_as_they_were() {
        let mut random = hotrow_sync::random::Random::seeded(3);
        let (mut heap, mut model) = (LeftistHeap::default(), Vec::new());
        let mut earlier = Vec::new();
        for _ in 0..2_000 {
            if random.chance(0.6) {
                let element = random.below(100);
                heap = heap.with(element);
                model.push(element);
                model.sort_unstable();
            } else if !model.is_empty() {
                heap = heap.without_first();
                model.remove(0);
            }
            if random.chance(0.02) {
                earlier.push((heap.clone(), model.clone()));
            }
        }
        earlier.push((heap, model));
        for (heap, model) in earlier {
            assert!(heap.iter().eq(&model));
        }
    }

    #[test]
    fn a_heap_of_one_long_path_is_dropped_without_recursion() {
        let heap = (0..200_000u64).rev().fold(LeftistHeap::default(), |heap, element| heap.with(element));
        assert_eq!(heap.iter().take(2).collect::<Vec<_>>(), [&0, &1]);
        drop(heap);
    }
}
