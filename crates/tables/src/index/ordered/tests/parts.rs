//! Looking again at parts of leaves: every change within a part is found, and changes elsewhere are none.

use super::*;
use hotrow_sync::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

/// The parts of a scan, with the records that it visited there.
struct Parts<K: NumberKey> {
    parts: Vec<(LeafPart<K::Image, CountedRecord<K>>, Box<[Pointer<K>]>)>,
    /// The bytes of long bounds.
    _bytes: Vec<Box<[u8]>>,
    bounds: (Bound<u64>, Bound<u64>),
    found: Vec<u64>,
}

impl<K: NumberKey> Parts<K> {
    fn observe(
        index: &Index<K>,
        (mut low, mut high): (Bound<u64>, Bound<u64>),
        direction: Direction,
        limit: usize,
        guard: &Guard,
    ) -> Self {
        let (mut parts, mut bytes, mut found) = (Vec::new(), Vec::<Box<[u8]>>::new(), Vec::new());
        let image = |bound: Bound<u64>| bound.map(|number| K::Image::own(&K::of(number).image()));
        let mut cursor = index.cursor(image(low), image(high), direction);
        while found.len() < limit
            && let Some(leaf) = cursor.next(guard)
        {
            let mut bounds = leaf.bounds;
            let mut visited = leaf.records.to_vec();
            visited.truncate(limit - found.len());
            found.extend(visited.iter().map(|&record| key_of(record, guard).number()));
            if found.len() == limit
                && let Some(&last) = found.last()
            {
                let last = Bound::Included(last);
                match direction {
                    Direction::Ascending => (bounds.1, high) = (image(last), last),
                    Direction::Descending => (bounds.0, low) = (image(last), last),
                }
            }
            // SAFETY: the leaf is the index's, observed under the guard.
            let marks = unsafe { index.marks(leaf.observed, guard) }.expect("nobody else is there");
            let mut records = visited.into_boxed_slice();
            let place = NonNull::from(&mut *records);
            let mut keep = |bound: Bound<_>| {
                bound.map(|image| {
                    K::Image::keep(&image, &mut |copied| {
                        bytes.push(copied.into());
                        NonNull::from(&**bytes.last().unwrap())
                    })
                })
            };
            let (low, high) = (keep(bounds.0), keep(bounds.1));
            parts.push((LeafPart { low, high, direction, marks, records: place }, records));
        }
        Self { parts, _bytes: bytes, bounds: (low, high), found }
    }

    fn hold(&self, index: &Index<K>, void: &BTreeSet<Pointer<K>>, guard: &Guard) -> bool {
        // SAFETY: observed under the guard; the tests retire records through the epoch.
        self.parts
            .iter()
            .all(|(part, _)| unsafe { index.still_holds(part, &|record| void.contains(&record), guard) })
    }
}

fn filled(
    keys: impl Iterator<Item = u64>,
    census: &Census,
    guard: &Guard,
) -> (Index<u64>, BTreeMap<u64, Pointer<u64>>) {
    let index = Index::new();
    let records: BTreeMap<_, _> = keys.map(|key| (key, CountedRecord::new(key, census))).collect();
    records.values().for_each(|&record| assert!(insert(&index, record, guard, &mut ignore)));
    (index, records)
}

#[test]
fn changes_in_a_part_are_found_and_insertions_elsewhere_are_none() {
    check_random_changes::<u64>();
    check_random_changes::<String>();
    check_random_changes::<Vec<u8>>();
}

/// Random scans, each followed by random changes.
fn check_random_changes<K: NumberKey>() {
    let census = Census::default();
    let (mut found_out, mut accepted) = (0, 0);
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let index = Index::<K>::new();
        let mut model = BTreeMap::new();
        for round in 0..300 {
            let guard = &epoch::pin();
            let keys = 60;
            let bound = |random: &mut Random| match random.below(3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(random.below(keys)),
                _ => Bound::Excluded(random.below(keys)),
            };
            let bounds = (bound(&mut random), bound(&mut random));
            let direction = if random.chance(0.5) { Direction::Ascending } else { Direction::Descending };
            let limit = if random.chance(0.5) { 1 + random.below(10) as usize } else { usize::MAX };
            let parts = Parts::observe(&index, bounds, direction, limit, guard);
            let mut void = BTreeSet::new();
            assert!(parts.hold(&index, &void, guard));
            let (mut matters, mut removes) = (false, false);
            for _ in 0..1 + random.below(4) {
                let key = random.below(keys);
                let inside = parts.bounds.contains(&key);
                let shrinks = round % 100 > 60;
                match model.remove(&key) {
                    Some(record) => {
                        remove(&index, record, guard);
                        (matters, removes) = (matters | inside, true);
                    }
                    None if shrinks => {}
                    None => {
                        let record = CountedRecord::new(K::of(key), &census);
                        assert!(insert(&index, record, guard, &mut ignore));
                        match random.below(4) {
                            // Committed, deleted and removed.
                            0 => {
                                remove(&index, record, guard);
                                (matters, removes) = (matters | inside, true);
                            }
                            // Rolled back, and not yet removed: it will be in the model all the same.
                            1 => {
                                void.insert(record);
                                model.insert(key, record);
                            }
                            // Rolled back and removed. The leaf may have become empty.
                            2 => {
                                let leaves = index.leaves.load(Ordering::Relaxed);
                                assert!(index.remove(record, false, guard, &mut ignore));
                                retire(record, guard);
                                removes |= index.leaves.load(Ordering::Relaxed) < leaves;
                            }
                            _ => {
                                model.insert(key, record);
                                matters |= inside;
                            }
                        }
                    }
                }
            }
            let hold = parts.hold(&index, &void, guard);
            let case =
                format!("seed {seed} round {round} {:?} {direction:?} {:?}", parts.bounds, parts.found);
            assert!(!(matters && hold), "a change is overlooked: {case}");
            assert!(matters || removes || hold, "nothing has changed: {case}");
            found_out += u32::from(matters);
            accepted += u32::from(hold && !removes);
        }
        empty(index, epoch::pin(), &census);
    }
    assert!(found_out > 1_000 && accepted > 1_000, "{found_out} {accepted}");
}

#[test]
fn a_part_is_followed_through_splits() {
    let census = Census::default();
    for direction in [Direction::Ascending, Direction::Descending] {
        let guard = epoch::pin();
        let (index, _) = filled([100, 200].into_iter(), &census, &guard);
        let parts =
            Parts::observe(&index, (Bound::Included(100), Bound::Included(200)), direction, 9, &guard);
        assert_eq!(parts.parts.len(), 1);
        // The leaf is split many times, left and right of the part and between nothing.
        for key in (0..100).chain(201..300) {
            assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore));
            assert!(parts.hold(&index, &BTreeSet::new(), &guard), "{key}");
        }
        assert!(insert(&index, CountedRecord::new(150, &census), &guard, &mut ignore));
        assert!(!parts.hold(&index, &BTreeSet::new(), &guard));
        empty(index, guard, &census);
    }
}

#[test]
fn a_key_that_came_and_went_is_found_out_even_if_its_leaf_is_gone() {
    let census = Census::default();
    for others in 1..12 {
        let guard = epoch::pin();
        let (index, _) = filled([10].into_iter(), &census, &guard);
        let parts =
            Parts::observe(&index, (Bound::Included(500), Bound::Unbounded), Direction::Ascending, 9, &guard);
        let keys = 500..500 + others;
        let records: Vec<_> = keys.map(|key| CountedRecord::new(key, &census)).collect();
        records.iter().for_each(|&record| assert!(insert(&index, record, &guard, &mut ignore)));
        records.iter().rev().for_each(|&record| remove(&index, record, &guard));
        assert_eq!(all(&index, &guard), [10]);
        assert!(!parts.hold(&index, &BTreeSet::new(), &guard), "{others}");
        empty(index, guard, &census);
    }
}

#[test]
fn the_number_of_removals_may_come_back_to_zero() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, _) = filled([10, 20].into_iter(), &census, &guard);
    let Lookup::Absent(observed) = index.get(&15, &guard) else { panic!("15 is absent") };
    // SAFETY: a leaf of this index, under the guard.
    let leaf = unsafe { observed.node.cast::<Leaf<u64, CountedRecord<u64>>>().as_ref() };
    leaf.node.set_removals(u32::MAX);
    let parts =
        Parts::observe(&index, (Bound::Included(15), Bound::Included(15)), Direction::Ascending, 9, &guard);
    let record = CountedRecord::new(15, &census);
    assert!(insert(&index, record, &guard, &mut ignore));
    remove(&index, record, &guard);
    assert_eq!(leaf.node.removals(), 0);
    leaf.node.set_removals(u32::MAX);
    assert!(!parts.hold(&index, &BTreeSet::new(), &guard), "as if 2^32 removals had followed");
    empty(index, guard, &census);
}
