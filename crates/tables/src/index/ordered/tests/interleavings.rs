//! Every interleaving of an optimistic operation with a change by "another thread", stepped on one thread: the
//! change happens at the first point at which it can, then at the second, and so on.

use super::*;
use crate::index::testing::{Observer, meanwhile, undisturbed};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds as _;
use std::rc::Rc;

/// A tree and its expected content.
struct World<K: NumberKey> {
    index: Index<K>,
    model: RefCell<BTreeMap<u64, Pointer<K>>>,
    census: Census,
}

impl<K: NumberKey> World<K> {
    /// Makes a tree of even keys. Upward insertions fill leaves completely; downward insertions fill them by halves.
    fn new(count: u64, upwards: bool, census: &Census) -> Rc<Self> {
        let world = Self { index: Index::new(), model: RefCell::default(), census: census.clone() };
        for n in 0..count {
            world.insert(2 * if upwards { n } else { count - 1 - n });
        }
        Rc::new(world)
    }

    fn insert(&self, key: u64) -> bool {
        let record = CountedRecord::new(K::of(key), &self.census);
        let inserted = insert(&self.index, record, &epoch::pin(), &mut ignore);
        if inserted {
            assert!(self.model.borrow_mut().insert(key, record).is_none(), "{key} is in the tree twice");
        }
        inserted
    }

    fn remove(&self, key: u64) {
        let record = self.model.borrow_mut().remove(&key);
        if let Some(record) = record {
            remove(&self.index, record, &epoch::pin());
        }
    }

    fn keys(&self) -> Vec<u64> {
        self.model.borrow().keys().copied().collect()
    }

    /// Compares all of the tree with the model, and frees everything.
    fn end(self: Rc<Self>) {
        let world = Rc::into_inner(self).expect("the action has run");
        let guard = epoch::pin();
        shape::check(&world.index, &guard);
        assert!(all(&world.index, &guard).iter().map(K::number).eq(world.keys()));
        let mut index = world.index;
        // SAFETY: the index is the test's own.
        index.drain(&mut |record| unsafe { free(record) });
    }
}

/// An action of the other thread.
type Deed<K> = fn(&World<K>);

fn insertions<K: NumberKey>() -> Vec<Deed<K>> {
    vec![
        |world| assert!(world.insert(5)),
        |world| [1, 3, 5, 7, 9, 11].into_iter().for_each(|key| assert!(world.insert(key))),
        |world| (0..20).rev().for_each(|n| assert!(world.insert(2 * n + 1))),
    ]
}

fn removals<K: NumberKey>() -> Vec<Deed<K>> {
    vec![
        |world| world.remove(4),
        |world| [4, 6, 8, 10].into_iter().for_each(|key| world.remove(key)),
        |world| world.keys().into_iter().for_each(|key| world.remove(key)),
        |world| {
            world.keys().into_iter().for_each(|key| world.remove(key));
            (0..20).for_each(|key| assert!(world.insert(key)));
        },
        |world| {
            (0..20).for_each(|key| _ = world.insert(key));
            (3..18).for_each(|key| world.remove(key));
        },
        // In a tree of three levels a leaf takes over the range of all leaves beside its parent, and then gets a key
        // there.
        |world| {
            (18..40).for_each(|key| world.remove(key));
            world.insert(25);
        },
        |world| {
            (0..24).chain(26..32).for_each(|key| world.remove(key));
            world.insert(5);
        },
    ]
}

/// Tries `operation` on small trees, with each action at each of the operation's interleaving points. The operation gets the
/// tree, the keys before the action, and a function that runs a closure together with the action.
fn for_each_interleaving<K: NumberKey>(
    deeds: &[Deed<K>],
    operation: impl Fn(&Rc<World<K>>, &[u64], &dyn Fn(&mut dyn FnMut()) -> bool),
) {
    let census = Census::default();
    for (count, upwards) in [(2, true), (4, true), (5, true), (9, false), (16, true), (17, true), (17, false)]
    {
        for &deed in deeds {
            for at in 0.. {
                let world = World::new(count, upwards, &census);
                let before = world.keys();
                let done = Rc::new(RefCell::new(false));
                operation(&world, &before, &|something| {
                    let other = Rc::clone(&world);
                    let ((), did) = meanwhile(at, move || deed(&other), something);
                    done.replace(did);
                    did
                });
                world.end();
                if !*done.borrow() {
                    break;
                }
            }
        }
    }
    census.settle(0);
}

fn all_deeds<K: NumberKey>() -> Vec<Deed<K>> {
    [insertions(), removals()].concat()
}

#[test]
fn a_lookup_is_right_whatever_happens_meanwhile() {
    check_lookups::<u64>();
    check_lookups::<String>();
}

fn check_lookups<K: NumberKey>() {
    for key in 0..20 {
        for_each_interleaving::<K>(&all_deeds(), |world, _, with_deed| {
            let guard = &epoch::pin();
            let mut result = None;
            with_deed(&mut || result = Some(world.index.get(&K::of(key).image(), guard)));
            // The action ran before the last check of the lookup.
            match (result, world.model.borrow().get(&key)) {
                (Some(Lookup::Found(found)), Some(expected)) => assert_eq!(found, *expected),
                (Some(Lookup::Absent(_)), None) => (),
                (result, expected) => panic!("{key}: {result:?} {expected:?}"),
            }
        });
    }
}

#[test]
fn a_scan_is_right_or_its_observations_do_not_hold_whatever_happens_meanwhile() {
    check_scans::<u64>();
    check_scans::<String>();
}

fn check_scans<K: NumberKey>() {
    for direction in [Direction::Ascending, Direction::Descending] {
        for (low, high) in [
            (Unbounded, Unbounded),
            (Included(4), Excluded(10)),
            (Excluded(4), Included(12)),
            (Included(3), Included(6)),
            (Excluded(8), Unbounded),
        ] {
            for_each_interleaving::<K>(&all_deeds(), |world, before, with_deed| {
                let guard = &epoch::pin();
                let mut observer = Observer::default();
                let mut found = Vec::new();
                let (from, to) = (low.map(K::of), high.map(K::of));
                let image = |bound: &'_ Bound<K>| bound.as_ref().map(|key| K::Image::own(&key.image()));
                with_deed(&mut || {
                    let mut cursor = world.index.cursor(image(&from), image(&to), direction);
                    while let Some(leaf) = cursor.next(guard) {
                        observer.observe(leaf.observed);
                        found.extend(leaf.records.iter().map(|&record| key_of(record, guard).number()));
                    }
                });
                if direction == Direction::Descending {
                    found.reverse();
                }
                assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
                let mut after = world.keys();
                after.retain(|key| (low, high).contains(key));
                if observer.unchanged(guard) {
                    assert_eq!(found, after);
                }
                for key in after {
                    assert!(found.contains(&key) || !before.contains(&key), "{key} was present all the time");
                }
            });
        }
    }
}

#[test]
fn an_insertion_is_right_whatever_happens_meanwhile() {
    check_insertions_meanwhile::<u64>();
    check_insertions_meanwhile::<String>();
}

fn check_insertions_meanwhile<K: NumberKey>() {
    for key in 0..20 {
        for_each_interleaving::<K>(&all_deeds(), |world, _, with_deed| {
            let guard = &epoch::pin();
            let record = CountedRecord::new(K::of(key), &world.census);
            let mut inserted = false;
            with_deed(&mut || inserted = insert(&world.index, record, guard, &mut ignore));
            let mut model = world.model.borrow_mut();
            assert_eq!(inserted, !model.contains_key(&key));
            if inserted {
                model.insert(key, record);
            }
        });
    }
}

#[test]
fn an_insertion_near_an_earlier_one_is_right_whatever_happens_meanwhile() {
    fn deeds<K: NumberKey>() -> Vec<Deed<K>> {
        vec![
            |world| _ = world.insert(5),
            |world| _ = world.insert(6),
            |world| [1, 3, 5, 7, 9, 11].into_iter().for_each(|key| _ = world.insert(key)),
            |world| (0..20).rev().for_each(|n| _ = world.insert(2 * n + 1)),
            // Leaves before that of the first insertion are unlinked, so that the leaves behind them move up in the node
            // above.
            |world| [0, 2].into_iter().for_each(|key| world.remove(key)),
            |world| [4, 6].into_iter().for_each(|key| world.remove(key)),
            |world| [0, 2, 4, 6].into_iter().for_each(|key| world.remove(key)),
        ]
    }
    let deeds = [deeds(), removals()].concat();
    for first in 0..12u64 {
        for second in
            [first + 1, first + 2, first + 4, first + 6, first + 12, 100, first / 2, first.saturating_sub(1)]
        {
            for_each_interleaving::<u64>(&deeds, |world, _, with_deed| {
                // Make room behind the first insertion in a leaf that is not the last.
                [12, 14].into_iter().for_each(|key| world.remove(key));
                let guard = &epoch::pin();
                let insert = |key, near| {
                    let record = CountedRecord::new(key, &world.census);
                    // SAFETY: the tests free records only after they have removed them. The finger is this tree's.
                    let (insertion, finger) =
                        unsafe { world.index.insert(record, guard, near, &mut ignore, None) };
                    let inserted = matches!(insertion, Insertion::Inserted);
                    if !inserted {
                        // SAFETY: it did not get in.
                        unsafe { free(record) };
                    }
                    (inserted.then_some(record), finger)
                };
                let (record, finger) = insert(first, None);
                world.model.borrow_mut().extend(record.map(|record| (first, record)));
                let mut inserted = None;
                with_deed(&mut || inserted = insert(second, finger).0);
                let mut model = world.model.borrow_mut();
                assert_eq!(inserted.is_some(), !model.contains_key(&second), "{first} {second}");
                model.extend(inserted.map(|record| (second, record)));
            });
        }
    }
}

/// To ask is to lock the leaf, under some protocols.
#[test]
fn a_leaf_is_asked_for_only_if_the_key_may_go_into_it() {
    for_each_interleaving::<u64>(&all_deeds(), |world, _, with_deed| {
        let guard = &epoch::pin();
        let record = CountedRecord::new(5, &world.census);
        let may_change = |observed: Observed| {
            undisturbed(|| {
                // SAFETY: observed under the pin.
                let is_as_observed = unsafe { observed.node.as_ref() }.unchanged(observed.version);
                let is_absent = matches!(world.index.get(&5u64.image(), guard), Lookup::Absent(_));
                assert!(is_absent || !is_as_observed, "the key is there");
                true
            })
        };
        with_deed(&mut || {
            // SAFETY: the tests free records only after they have removed them.
            match unsafe { world.index.insert(record, guard, None, &mut ignore, Some(&may_change)) }.0 {
                Insertion::Inserted => _ = world.model.borrow_mut().insert(5, record),
                // SAFETY: it did not get in.
                _ => unsafe { free(record) },
            }
        });
    });
}

#[test]
fn an_insertion_right_behind_an_earlier_one_does_not_go_down_the_tree() {
    let census = Census::default();
    let world = World::<u64>::new(16, true, &census);
    [12, 14].into_iter().for_each(|key| world.remove(key));
    {
        let guard = &epoch::pin();
        let record = CountedRecord::new(9, &census);
        world.model.borrow_mut().insert(9, record);
        // SAFETY: the tests free records only after they have removed them.
        let (_, finger) = unsafe { world.index.insert(record, guard, None, &mut ignore, None) };
        let finger = finger.expect("no split");
        // The next keys in the leaf are 10 and, if that were gone, 16, where the leaf beside it begins.
        // SAFETY: the finger is this tree's, and was returned under this guard.
        let is_behind = |key: u64| unsafe { world.index.behind(finger, &key.image(), guard) }.is_some();
        assert_eq!([8, 9, 10, 15, 16].map(is_behind), [false; 5]);
        world.remove(10);
        assert_eq!([9, 10, 15, 16].map(is_behind), [false, true, true, false]);
    }
    world.end();
    census.settle(0);
}

#[test]
fn a_removal_is_right_whatever_is_inserted_meanwhile() {
    check_removals_meanwhile::<u64>();
    check_removals_meanwhile::<String>();
}

fn check_removals_meanwhile<K: NumberKey>() {
    for key in 0..12 {
        for_each_interleaving::<K>(&insertions(), |world, _, with_deed| {
            let Some(record) = world.model.borrow_mut().remove(&(2 * key)) else { return };
            let guard = &epoch::pin();
            with_deed(&mut || assert!(world.index.remove(record, true, guard, &mut ignore)));
            retire(record, guard);
        });
    }
}

#[test]
fn an_absence_observed_in_a_leaf_about_to_go_does_not_hold_for_ever() {
    let census = Census::default();
    for absent in 0..40 {
        for at in 0.. {
            let world = World::<u64>::new(17, true, &census);
            let guard = epoch::pin();
            // Leaves are full at four keys: 8, 10, 12 and 14 share one.
            [8, 10, 14].into_iter().for_each(|key| world.remove(key));
            let record = world.model.borrow_mut().remove(&12).unwrap();
            let observed = Rc::new(RefCell::new(Observer::default()));
            let (other, observer) = (Rc::clone(&world), Rc::clone(&observed));
            let deed = move || {
                if let Lookup::Absent(observed) = other.index.get(&absent, &epoch::pin()) {
                    observer.borrow_mut().observe(observed);
                }
            };
            let (removed, did) =
                meanwhile(at, deed, || world.index.remove(record, true, &guard, &mut ignore));
            assert!(removed);
            retire(record, &guard);
            let observed = observed.take();
            if world.insert(absent) && did && absent != 12 {
                assert!(!observed.unchanged(&guard), "the insertion of {absent} goes unnoticed");
            }
            drop(guard);
            world.end();
            if !did {
                break;
            }
        }
    }
    census.settle(0);
}

/// The insertion runs between a removal and the unlinking of the leaf that the removal has emptied.
#[test]
fn an_insertion_into_a_leaf_about_to_go_is_not_lost() {
    let census = Census::default();
    for key in 8..15 {
        for at in 0.. {
            let world = World::<u64>::new(17, true, &census);
            let guard = epoch::pin();
            for n in [8, 10, 12, 14u64] {
                let record = world.model.borrow_mut().remove(&n).unwrap();
                let Landing { leaf, version, .. } = world.index.leaf_of(&n, &guard).unwrap();
                let found = leaf.search(&n, version).unwrap().0;
                leaf.node.version.lock().unwrap();
                leaf.remove_at(found.position);
                leaf.node.version.unlock_changed();
                retire(record, &guard);
            }
            let other = Rc::clone(&world);
            let deed = move || other.index.unlink_empty(&10, &epoch::pin());
            let (inserted, did) = meanwhile(at, deed, || world.insert(key));
            assert!(inserted);
            drop(guard);
            world.end();
            if !did {
                break;
            }
        }
    }
    census.settle(0);
}

/// The split runs between the unlinking of the root's second child and the replacement of the root by the first.
#[test]
fn a_split_below_a_root_about_to_go_is_not_lost() {
    let census = Census::default();
    for (count, key) in [(4, 3), (4, 9), (13, 9), (13, 31)] {
        for at in 0.. {
            let world = World::<u64>::new(count, true, &census);
            let guard = epoch::pin();
            let root = Inner::<u64>::allocate(world.index.root(&guard).pointer());
            world.index.top.root.store(root.cast().as_ptr(), Ordering::Relaxed);
            world.index.inners.fetch_add(1, Ordering::Relaxed);
            let other = Rc::clone(&world);
            let deed = move || other.index.shrink_root(&epoch::pin());
            let (inserted, did) = meanwhile(at, deed, || world.insert(key));
            assert!(inserted);
            world.index.shrink_root(&guard);
            drop(guard);
            world.end();
            if !did {
                break;
            }
        }
    }
    census.settle(0);
}
