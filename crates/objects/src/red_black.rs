//! A red-black tree that shares its nodes with earlier versions of itself (Guibas and Sedgewick, "A dichromatic framework for
//! balanced trees", FOCS 1978; the persistent insertion: Okasaki, "Red-black trees in a functional setting", JFP 1999; the
//! deletion: Kahrs, "Red-black trees with types", JFP 2001).
//!
//! A version is never changed. An insertion or deletion makes a new one, and copies the nodes on a path of logarithmic length.
//! So readers look at a version without a lock while the next one is made, and a comparison that panics leaves the version
//! as it was.
//!
//! # Invariants
//!
//! - The elements are in the order of their keys, each key once.
//! - A red node has no red child.
//! - All paths from the root to a leaf have the same number of black nodes.
//!
//! So no path is more than twice as long as another one. Comparisons that are no order break the invariants and nothing else:
//! no search fails to end, and no case is missing.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// An element of a [`RedBlackTree`]: has its key.
pub(crate) trait Keyed: Clone {
    type Key: Ord;

    fn key(&self) -> &Self::Key;
}

/// One version of a tree.
pub(crate) struct RedBlackTree<E>(Option<Arc<Node<E>>>);

struct Node<E> {
    is_red: bool,
    left: RedBlackTree<E>,
    element: E,
    right: RedBlackTree<E>,
}

impl<E> Clone for RedBlackTree<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E> Default for RedBlackTree<E> {
    fn default() -> Self {
        Self(None)
    }
}

/// The order in which elements are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

impl Order {
    /// True if a key comes before a bound in this order, so that a walk from the bound leaves it out.
    fn is_before<Q: Ord + ?Sized>(self, key: &Q, bound: Bound<&Q>) -> bool {
        let ascending =
            |ordering: Ordering| if self == Self::Ascending { ordering } else { ordering.reverse() };
        match bound {
            Bound::Included(bound) => ascending(key.cmp(bound)).is_lt(),
            Bound::Excluded(bound) => ascending(key.cmp(bound)).is_le(),
            Bound::Unbounded => false,
        }
    }

    /// True if a key comes behind a bound in this order, so that a walk to the bound ends before it.
    pub(crate) fn is_behind<Q: Ord + ?Sized>(self, key: &Q, bound: Bound<&Q>) -> bool {
        self.reversed().is_before(key, bound)
    }

    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

impl<E> Node<E> {
    /// The child whose elements come before this one's in an order.
    fn child_before(&self, order: Order) -> Option<&Self> {
        let child = if order == Order::Ascending { &self.left } else { &self.right };
        child.0.as_deref()
    }
}

impl<E: Keyed> RedBlackTree<E> {
    /// Returns the element of a key.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&E>
    where
        E::Key: Borrow<Q>,
    {
        let mut next = &self.0;
        while let Some(node) = next {
            next = match key.cmp(node.element.key().borrow()) {
                Ordering::Less => &node.left.0,
                Ordering::Greater => &node.right.0,
                Ordering::Equal => return Some(&node.element),
            };
        }
        None
    }

    /// Returns the tree with an element, which replaces the one of its key.
    pub(crate) fn with(&self, element: E) -> Self {
        self.inserted(element).blackened()
    }

    /// Returns the tree without the element of a key.
    pub(crate) fn without(&self, key: &E::Key) -> Self {
        // Rebalancing after a deletion expects that the subtree has become lower.
        if self.get(key).is_none() { self.clone() } else { self.deleted(key).blackened() }
    }

    /// Returns the elements in an order, beginning at a bound.
    pub(crate) fn walk(&self, order: Order, from: Bound<&E::Key>) -> Walk<'_, E> {
        let mut ahead = Vec::new();
        let mut next = self.0.as_deref();
        while let Some(node) = next {
            next = if order.is_before(node.element.key(), from) {
                node.child_before(order.reversed())
            } else {
                ahead.push(node);
                node.child_before(order)
            };
        }
        Walk { order, ahead }
    }

    /// Returns all elements, the one of the least key first.
    pub(crate) fn iter(&self) -> Walk<'_, E> {
        self.walk(Order::Ascending, Bound::Unbounded)
    }

    fn node(is_red: bool, left: Self, element: E, right: Self) -> Self {
        Self(Some(Arc::new(Node { is_red, left, element, right })))
    }

    fn red(left: Self, element: E, right: Self) -> Self {
        Self::node(true, left, element, right)
    }

    fn black(left: Self, element: E, right: Self) -> Self {
        Self::node(false, left, element, right)
    }

    /// Returns the root, if it is red.
    fn as_red(&self) -> Option<&Node<E>> {
        self.0.as_deref().filter(|node| node.is_red)
    }

    /// Returns the root, if it is black. A tree without elements has no root.
    fn as_black(&self) -> Option<&Node<E>> {
        self.0.as_deref().filter(|node| !node.is_red)
    }

    fn blackened(&self) -> Self {
        self.as_red().map_or_else(|| self.clone(), Node::blackened)
    }

    /// Returns the tree with one black node less on each path, if its root is black.
    fn reddened(&self) -> Self {
        self.as_black().map_or_else(|| self.clone(), Node::reddened)
    }

    /// Inserts below, where a red root may have a red child.
    fn inserted(&self, element: E) -> Self {
        let Some(node) = &self.0 else { return Self::red(Self(None), element, Self(None)) };
        let Node { is_red, left, right, .. } = &**node;
        let (left, right) = match element.key().cmp(node.element.key()) {
            Ordering::Equal => return Self::node(*is_red, left.clone(), element, right.clone()),
            Ordering::Less => (left.inserted(element), right.clone()),
            Ordering::Greater => (left.clone(), right.inserted(element)),
        };
        if *is_red {
            Self::red(left, node.element.clone(), right)
        } else {
            Self::balanced(left, node.element.clone(), right)
        }
    }

    /// Makes a tree in place of one with a black root, of parts of which one may have a red root with a red child.
    fn balanced(left: Self, element: E, right: Self) -> Self {
        if let (Some(one), Some(other)) = (left.as_red(), right.as_red()) {
            return Self::red(one.blackened(), element, other.blackened());
        }
        if let Some(one) = left.as_red() {
            if let Some(inner) = one.left.as_red() {
                let right = Self::black(one.right.clone(), element, right);
                return Self::red(inner.blackened(), one.element.clone(), right);
            }
            if let Some(inner) = one.right.as_red() {
                let left = Self::black(one.left.clone(), one.element.clone(), inner.left.clone());
                return Self::red(
                    left,
                    inner.element.clone(),
                    Self::black(inner.right.clone(), element, right),
                );
            }
        } else if let Some(other) = right.as_red() {
            if let Some(inner) = other.right.as_red() {
                let left = Self::black(left, element, other.left.clone());
                return Self::red(left, other.element.clone(), inner.blackened());
            }
            if let Some(inner) = other.left.as_red() {
                let right = Self::black(inner.right.clone(), other.element.clone(), other.right.clone());
                return Self::red(
                    Self::black(left, element, inner.left.clone()),
                    inner.element.clone(),
                    right,
                );
            }
        }
        Self::black(left, element, right)
    }

    /// Deletes a key that is there. Each path has one black node less then, if the root is black.
    fn deleted(&self, key: &E::Key) -> Self {
        let Some(node) = &self.0 else { return Self(None) };
        let Node { left, right, .. } = &**node;
        match key.cmp(node.element.key()) {
            Ordering::Equal => left.joined(right),
            Ordering::Less if left.as_black().is_some() => {
                Self::balanced_lower_left(left.deleted(key), node.element.clone(), right)
            }
            Ordering::Less => Self::red(left.deleted(key), node.element.clone(), right.clone()),
            Ordering::Greater if right.as_black().is_some() => {
                Self::balanced_lower_right(left, node.element.clone(), right.deleted(key))
            }
            Ordering::Greater => Self::red(left.clone(), node.element.clone(), right.deleted(key)),
        }
    }

    /// Makes a tree of parts of which the left one has one black node less on each path.
    fn balanced_lower_left(left: Self, element: E, right: &Self) -> Self {
        if let Some(one) = left.as_red() {
            return Self::red(one.blackened(), element, right.clone());
        }
        if right.as_black().is_some() {
            return Self::balanced(left, element, right.reddened());
        }
        if let Some((other, inner)) = right.as_red().and_then(|other| Some((other, other.left.as_black()?))) {
            let right = Self::balanced(inner.right.clone(), other.element.clone(), other.right.reddened());
            return Self::red(Self::black(left, element, inner.left.clone()), inner.element.clone(), right);
        }
        Self::black(left, element, right.clone())
    }

    /// Makes a tree of parts of which the right one has one black node less on each path.
    fn balanced_lower_right(left: &Self, element: E, right: Self) -> Self {
        if let Some(other) = right.as_red() {
            return Self::red(left.clone(), element, other.blackened());
        }
        if left.as_black().is_some() {
            return Self::balanced(left.reddened(), element, right);
        }
        if let Some((one, inner)) = left.as_red().and_then(|one| Some((one, one.right.as_black()?))) {
            let left = Self::balanced(one.left.reddened(), one.element.clone(), inner.left.clone());
            return Self::red(left, inner.element.clone(), Self::black(inner.right.clone(), element, right));
        }
        Self::black(left.clone(), element, right)
    }

    /// Joins two trees of the same number of black nodes on each path, the elements of this one first.
    fn joined(&self, behind: &Self) -> Self {
        let (Some(one), Some(other)) = (&self.0, &behind.0) else {
            return if self.0.is_some() { self.clone() } else { behind.clone() };
        };
        let part = |is_red, left: &Self, element: &E, right: &Self| {
            Self::node(is_red, left.clone(), element.clone(), right.clone())
        };
        if one.is_red != other.is_red {
            return if other.is_red {
                Self::red(self.joined(&other.left), other.element.clone(), other.right.clone())
            } else {
                Self::red(one.left.clone(), one.element.clone(), one.right.joined(behind))
            };
        }
        let is_red = one.is_red;
        let middle = one.right.joined(&other.left);
        if let Some(inner) = middle.as_red() {
            let left = part(is_red, &one.left, &one.element, &inner.left);
            let right = part(is_red, &inner.right, &other.element, &other.right);
            return Self::red(left, inner.element.clone(), right);
        }
        let right = part(is_red, &middle, &other.element, &other.right);
        if is_red {
            Self::red(one.left.clone(), one.element.clone(), right)
        } else {
            Self::balanced_lower_left(one.left.clone(), one.element.clone(), &right)
        }
    }
}

impl<E: Keyed> Node<E> {
    fn blackened(&self) -> RedBlackTree<E> {
        RedBlackTree::black(self.left.clone(), self.element.clone(), self.right.clone())
    }

    fn reddened(&self) -> RedBlackTree<E> {
        RedBlackTree::red(self.left.clone(), self.element.clone(), self.right.clone())
    }
}

/// The elements of a [`RedBlackTree`] from a bound on.
pub(crate) struct Walk<'t, E> {
    order: Order,
    /// The nodes whose elements are still to come, of which each is above the next, with all that comes behind them.
    ahead: Vec<&'t Node<E>>,
}

impl<'t, E> Iterator for Walk<'t, E> {
    type Item = &'t E;

    fn next(&mut self) -> Option<&'t E> {
        let node = self.ahead.pop()?;
        let mut next = node.child_before(self.order.reversed());
        while let Some(node) = next {
            self.ahead.push(node);
            next = node.child_before(self.order);
        }
        Some(&node.element)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Keyed for (u8, u32) {
        type Key = u8;

        fn key(&self) -> &u8 {
            &self.0
        }
    }

    type Tree = RedBlackTree<(u8, u32)>;

    impl Tree {
        /// Checks the invariants, and returns the number of black nodes on each path.
        fn check(&self) -> u32 {
            let Some(node) = &self.0 else { return 0 };
            let red_below = [&node.left, &node.right].iter().any(|child| child.as_red().is_some());
            assert!(!(node.is_red && red_below), "a red node has a red child");
            let below = node.left.check();
            assert_eq!(below, node.right.check(), "black nodes on different paths");
            below + u32::from(!node.is_red)
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u8, u32),
        Delete(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let insert = (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value));
        proptest::collection::vec(prop_oneof![3 => insert, 2 => any::<u8>().prop_map(Step::Delete)], 0..400)
    }

    fn bounds() -> impl Strategy<Value = Bound<u8>> {
        let key = any::<u8>();
        prop_oneof![
            key.prop_map(Bound::Included),
            any::<u8>().prop_map(Bound::Excluded),
            Just(Bound::Unbounded)
        ]
    }

    proptest! {
        #[test]
        fn versions_are_maps_with_balanced_paths_and_stay_as_they_were(steps in steps(), from in bounds()) {
            let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
            let mut earlier = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key, value) => {
                        tree = tree.with((key, value));
                        model.insert(key, value);
                    }
                    Step::Delete(key) => {
                        tree = tree.without(&key);
                        model.remove(&key);
                    }
                }
                tree.check();
                if number % 37 == 0 {
                    earlier.push((tree.clone(), model.clone()));
                }
            }
            earlier.push((tree, model));
            for (tree, model) in earlier {
                prop_assert!(tree.iter().copied().eq(model.clone()));
                for key in 0..=u8::MAX {
                    prop_assert_eq!(tree.get(&key).map(|(_, value)| value), model.get(&key));
                }
                let ascending = tree.walk(Order::Ascending, from.as_ref()).copied();
                prop_assert!(ascending.eq(model.range((from, Bound::Unbounded)).map(|(key, value)| (*key, *value))));
                let descending = tree.walk(Order::Descending, from.as_ref()).copied();
                let reversed = model.range((Bound::Unbounded, from)).rev();
                prop_assert!(descending.eq(reversed.map(|(key, value)| (*key, *value))));
            }
        }
    }

    #[test]
    fn keys_in_order_make_no_long_path() {
        for backwards in [false, true] {
            let key = |number: u8| if backwards { u8::MAX - number } else { number };
            let tree = (0..=u8::MAX).fold(Tree::default(), |tree, number| tree.with((key(number), 0)));
            assert!(tree.check() <= 8);
            let emptied = (0..=u8::MAX).fold(tree, |tree, number| {
                let tree = tree.without(&key(number));
                tree.check();
                tree
            });
            assert!(emptied.iter().next().is_none());
        }
    }
}
