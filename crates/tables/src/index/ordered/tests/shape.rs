//! The invariants of the tree, its size, and its shape after typical uses.

use super::*;
use crate::index::ordered::node::{CHILDREN, LEAF_ENTRIES};

/// The counts of a walk over a tree at rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) leaves: usize,
    pub(super) inners: usize,
    pub(super) entries: usize,
}

/// Checks order, ranges and fill of all nodes of a tree at rest.
pub(super) fn check<K: Key>(index: &Index<K>, guard: &Guard) -> Shape {
    let mut shape = Shape::default();
    let root = index.root(guard);
    if let Kind::Inner(inner) = root.kind() {
        assert!(inner.node.count() > 1, "a root with one child");
    }
    check_below::<K>(root, (None, None), true, guard, &mut shape);
    assert_eq!(shape.leaves, index.leaves.load(Ordering::Relaxed));
    assert_eq!(shape.inners, index.inners.load(Ordering::Relaxed));
    shape
}

fn check_below<'k, K: Key>(
    node: Reached<'_, K::Image, CountedRecord<K>>,
    (low, high): (Option<&KeyImage<'k, K>>, Option<&KeyImage<'k, K>>),
    is_root: bool,
    guard: &Guard,
    shape: &mut Shape,
) -> usize {
    let version = node.node().version.stable();
    let version = version.expect("a retired node in the tree");
    let is_below = |a: &KeyImage<'_, K>, b: &KeyImage<'_, K>| K::Image::compare(a, b).is_lt();
    match node.kind() {
        Kind::Leaf(leaf) => {
            let count = leaf.node.count();
            assert!(count <= LEAF_ENTRIES && (count > 0 || is_root), "a leaf of {count}");
            let images: Vec<_> = (0..count).map(|at| leaf.image(at, version).unwrap()).collect();
            assert!(images.is_sorted_by(is_below));
            assert!(low.is_none_or(|low| images.iter().all(|image| !is_below(image, low))));
            assert!(high.is_none_or(|high| images.iter().all(|image| is_below(image, high))));
            for (at, image) in images.iter().enumerate() {
                let key = key_of(leaf.record(at).unwrap(), guard);
                assert!(K::Image::compare(&key.image(), image).is_eq());
                let (found, record) = leaf.search(image, version).unwrap();
                assert_eq!((found.position, record), (at, leaf.record(at)));
            }
            shape.leaves += 1;
            shape.entries += count;
            0
        }
        Kind::Inner(inner) => {
            let count = inner.node.count();
            assert!((1..=CHILDREN).contains(&count), "an inner node of {count}");
            shape.inners += 1;
            let heights: Vec<usize> = (0..count)
                .map(|at| {
                    let (left, right) = inner.borders(at);
                    // SAFETY: the tree is at rest.
                    let image = |separator| unsafe { K::Image::own(&K::Image::image_of(separator)) };
                    let (left, right) = (left.map(image), right.map(image));
                    if let Some(left) = &left {
                        assert_eq!(inner.child_of(left, version), Some(at));
                        assert_eq!(inner.child_before(left, version), Some(at - 1));
                    }
                    let (left, right) = (left.as_ref().or(low), right.as_ref().or(high));
                    assert!(left.zip(right).is_none_or(|(left, right)| is_below(left, right)));
                    let child = NonNull::new(inner.child(at)).unwrap();
                    // SAFETY: a child of a node of a tree at rest.
                    let child = unsafe { Reached::new(child, guard) };
                    check_below::<K>(child, (left, right), false, guard, shape)
                })
                .collect();
            assert!(heights.iter().all(|height| *height == heights[0]), "an unbalanced tree");
            heights[0] + 1
        }
    }
}

#[test]
fn a_queue_does_not_grow() {
    let census = Census::default();
    let index = Index::new();
    let mut queue = std::collections::VecDeque::new();
    let mut bytes_max = 0;
    for key in 0..20_000u64 {
        let guard = &epoch::pin();
        let record = CountedRecord::new(key, &census);
        assert!(insert(&index, record, guard, &mut ignore));
        queue.push_back(record);
        if queue.len() > 50 {
            remove(&index, queue.pop_front().unwrap(), guard);
        }
        bytes_max = bytes_max.max(index.memory_bytes());
        if key % 1_000 == 999 {
            let shape = check(&index, guard);
            assert_eq!(shape.entries, 50);
            assert!(shape.leaves <= 50 / LEAF_ENTRIES + 2, "{shape:?}");
            // Full inner nodes are left behind too, but those of the left edge are thin.
            assert!(shape.inners <= 16, "{shape:?}");
        }
    }
    assert!(bytes_max < 50 * 200, "{bytes_max}");
    empty(index, epoch::pin(), &census);
}

#[test]
fn a_queue_that_runs_down_does_not_grow() {
    let census = Census::default();
    let index = Index::new();
    let mut queue = std::collections::VecDeque::new();
    for key in (0..20_000u64).rev() {
        let guard = &epoch::pin();
        let record = CountedRecord::new(key, &census);
        assert!(insert(&index, record, guard, &mut ignore));
        queue.push_back(record);
        if queue.len() > 50 {
            remove(&index, queue.pop_front().unwrap(), guard);
        }
        if key % 1_000 == 0 {
            let shape = check(&index, guard);
            assert!(shape.leaves + shape.inners < 100, "{shape:?}");
        }
    }
    empty(index, epoch::pin(), &census);
}

#[test]
fn ascending_runs_leave_full_leaves_behind() {
    let census = Census::default();
    let index = Index::<(u8, u32)>::new();
    let guard = epoch::pin();
    // Ten districts whose orders ascend side by side.
    for order in 0..400 {
        for district in 0..10 {
            assert!(insert(&index, CountedRecord::new((district, order), &census), &guard, &mut ignore));
        }
    }
    let shape = check(&index, &guard);
    assert_eq!(shape.entries, 4_000);
    assert!(shape.leaves <= 4_000 / LEAF_ENTRIES + 20, "{shape:?}");
    empty(index, guard, &census);
}

#[test]
fn ascending_keys_leave_full_nodes_behind_on_every_level() {
    let census = Census::default();
    let index = Index::new();
    let guard = epoch::pin();
    (0..4_000u64)
        .for_each(|key| assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore)));
    let shape = check(&index, &guard);
    assert!(shape.leaves <= 4_000 / LEAF_ENTRIES + 1, "{shape:?}");
    // An inner node keeps one child fewer than its capacity, as it is split before its last child is.
    let mut inners_max = 0;
    let mut below = shape.leaves;
    while below > 1 {
        below = below.div_ceil(CHILDREN - 1);
        inners_max += below + 1;
    }
    assert!(shape.inners <= inners_max, "{shape:?} {inners_max}");
    empty(index, guard, &census);
}

#[test]
fn emptying_in_any_order_leaves_one_empty_leaf() {
    let census = Census::default();
    for seed in 0..20 {
        let mut random = hotrow_sync::random::Random::seeded(seed);
        let index = Index::new();
        let mut records: Vec<_> = (0..300u64).map(|key| CountedRecord::new(key, &census)).collect();
        random.shuffle(&mut records);
        let guard = &epoch::pin();
        records.iter().for_each(|&record| assert!(insert(&index, record, guard, &mut ignore)));
        check(&index, guard);
        match seed % 4 {
            0 => records.sort_unstable_by_key(|&record| key_of(record, guard)),
            1 => records.sort_unstable_by_key(|&record| std::cmp::Reverse(key_of(record, guard))),
            _ => random.shuffle(&mut records),
        }
        for record in records {
            remove(&index, record, guard);
            check(&index, guard);
        }
        assert_eq!(check(&index, guard), Shape { leaves: 1, inners: 0, entries: 0 });
    }
    census.settle(0);
}

#[test]
fn a_tree_is_small_again_after_a_mass_deletion_in_whatever_order() {
    after_a_mass_deletion::<u64>();
    after_a_mass_deletion::<String>();
    after_a_mass_deletion::<Vec<u8>>();
}

fn after_a_mass_deletion<K: NumberKey>() {
    const KEPT_EVERY: u64 = 20;
    const KEYS: u64 = if cfg!(miri) { 400 } else { 2_000 };
    let census = Census::default();
    for order in 0..3 {
        let index = Index::new();
        let guard = epoch::pin();
        let mut records: Vec<_> = (0..KEYS).map(|key| CountedRecord::new(K::of(key), &census)).collect();
        records.iter().for_each(|&record| assert!(insert(&index, record, &guard, &mut ignore)));
        records.retain(|&record| key_of(record, &guard).number() % KEPT_EVERY != 7);
        match order {
            0 => {}
            1 => records.reverse(),
            _ => hotrow_sync::random::Random::seeded(3).shuffle(&mut records),
        }
        for (at, record) in records.into_iter().enumerate() {
            remove(&index, record, &guard);
            if at % 100 == 0 {
                check(&index, &guard);
            }
        }
        let shape = check(&index, &guard);
        assert_eq!(shape.entries as u64, KEYS / KEPT_EVERY);
        let kept = all(&index, &guard).into_iter().map(|key| key.number());
        assert!(kept.eq((0..KEYS).filter(|key| key % KEPT_EVERY == 7)));
        // Without merges there is a leaf for each, and most nodes above them have one child.
        assert!(4 * shape.leaves <= 3 * shape.entries, "order {order}: {shape:?}");
        assert!(5 * shape.inners <= 3 * shape.entries, "order {order}: {shape:?}");
        empty(index, guard, &census);
    }
}

#[test]
fn a_drop_frees_the_nodes_and_leaves_the_records() {
    let census = Census::default();
    let index = Index::new();
    let records: Vec<_> = (0..100u64).map(|key| CountedRecord::new(key, &census)).collect();
    records.iter().for_each(|&record| assert!(insert(&index, record, &epoch::pin(), &mut ignore)));
    drop(index);
    assert_eq!(census.alive(), 100);
    // SAFETY: the index is gone.
    records.into_iter().for_each(|record| unsafe { free(record) });
    census.settle(0);
}
