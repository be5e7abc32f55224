//! Every interleaving of an optimistic operation with a change by "another thread", stepped on one thread: the change
//! happens at the first point at which it can, then at the second, and so on.

use super::*;
use crate::index::testing::{Observer, meanwhile};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

struct World {
    index: Index,
    model: RefCell<BTreeMap<u64, Pointer>>,
    census: Census,
}

/// A change by another thread.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Insert(u64),
    Remove(u64),
    WriteBack(u64),
    /// Writes back, and removes.
    Pass(u64),
}

const DEEDS: [Deed; 10] = [
    Deed::Insert(3),
    Deed::Insert(5),
    Deed::Insert(7),
    Deed::Remove(2),
    Deed::Remove(4),
    Deed::WriteBack(2),
    Deed::WriteBack(4),
    Deed::Pass(2),
    Deed::Pass(4),
    Deed::Pass(6),
];

impl World {
    /// Keys 0, 2, 4, 6 and 8, some of which are in the main index.
    fn new(index: Index) -> Rc<Self> {
        let world = Self { index, model: RefCell::default(), census: Census::default() };
        for key in [0, 2, 4, 6, 8] {
            world.insert(key).unwrap();
        }
        Rc::new(world)
    }

    fn insert(&self, key: u64) -> Result<Pointer, Pointer> {
        let inserted = insert(&self.index, key, &self.census, &Pin::new(), &mut ignore);
        if let Ok(record) = inserted {
            assert!(self.model.borrow_mut().insert(key, record).is_none(), "{key} is there twice");
        }
        inserted
    }

    fn remove(&self, key: u64) {
        let record = self.model.borrow_mut().remove(&key);
        if let Some(record) = record {
            assert!(remove(&self.index, record, &Pin::new()), "{key} is lost");
        }
    }

    fn write_back(&self, key: u64) {
        let record = self.model.borrow().get(&key).copied();
        if let Some(record) = record {
            write_back(&self.index, record, &Pin::new());
        }
    }

    fn carry_out(&self, deed: Deed) {
        match deed {
            Deed::Insert(key) => _ = self.insert(key),
            Deed::Remove(key) => self.remove(key),
            Deed::WriteBack(key) => self.write_back(key),
            Deed::Pass(key) => {
                self.write_back(key);
                self.remove(key);
            }
        }
    }

    fn end(self: Rc<Self>) {
        let Self { index, model, census } = Rc::into_inner(self).expect("the action has run, or was dropped");
        end(index, model.into_inner().into_keys(), &census);
    }
}

/// Runs `operation` once for each kind of index, deed and point.
fn everywhere(indexes: &[fn(u32) -> Index], operation: impl Fn(&World, Deed)) {
    for make in indexes {
        for tail_bits in [0, 1, 64] {
            for deed in DEEDS {
                for at in 0.. {
                    let world = World::new(make(tail_bits));
                    let acting = world.clone();
                    let act = move || acting.carry_out(deed);
                    let ((), has_acted) = meanwhile(at, act, || operation(&world, deed));
                    world.end();
                    if !has_acted {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn an_insertion_succeeds_once() {
    everywhere(&[hash, ordered], |world, _| {
        for key in [3, 5, 4] {
            let was_there = world.model.borrow().contains_key(&key);
            let inserted = world.insert(key);
            assert!(!was_there || inserted.is_err() || world.model.borrow().contains_key(&key));
            let pin = Pin::new();
            assert_eq!(find(&world.index, key, &pin), world.model.borrow().get(&key).copied());
        }
    });
}

#[test]
fn a_removal_finds_its_record_wherever_it_is() {
    everywhere(&[hash, ordered], |world, deed| {
        for key in [2, 4, 6] {
            let record = world.model.borrow().get(&key).copied();
            let Some(record) = record else { continue };
            let pin = Pin::new();
            let is_removed = remove(&world.index, record, &pin);
            let by_other = world.model.borrow_mut().remove(&key).is_none();
            assert!(is_removed != by_other, "{key} is removed once, {deed:?}");
        }
    });
}

#[test]
fn a_lookup_misses_nothing_and_its_observation_tells_of_every_insertion() {
    everywhere(&[hash, ordered], |world, deed| {
        for key in [2, 3, 4, 5, 6, 7] {
            let before = world.model.borrow().get(&key).copied();
            let pin = Pin::new();
            let is_wanted = |other: &CountedRecord<u64>| *other.key() == key;
            let found = world.index.get(&key, &key, is_wanted, pin.guard());
            let after = world.model.borrow().get(&key).copied();
            match found {
                Lookup::Found(record) => assert!(before == Some(record) || after == Some(record)),
                Lookup::Absent(observed) => {
                    assert!(before.is_none() || after.is_none(), "{key} is missed, {deed:?}");
                    let mut observer = Observer::default();
                    observer.observe(observed);
                    assert!(!observer.unchanged(pin.guard()) || after.is_none());
                    let _ = world.insert(key);
                    assert!(!observer.unchanged(pin.guard()), "the insertion of {key} goes unnoticed");
                }
            }
        }
    });
}

#[test]
fn a_scan_whose_observations_hold_has_found_all() {
    for direction in [Direction::Ascending, Direction::Descending] {
        everywhere(&[ordered], |world, deed| {
            let pin = Pin::new();
            let (mut observer, mut found) = (Observer::default(), Vec::new());
            let mut cursor = world.index.cursor(Included(1), Included(7), direction).unwrap();
            while let Some(part) = cursor.next(pin.guard()) {
                part.buckets().observed().for_each(|observed| observer.observe(observed));
                found.extend(part.records.iter().map(|&record| key_of(record, pin.guard())));
            }
            if direction == Direction::Descending {
                found.reverse();
            }
            assert!(found.is_sorted_by(|one, other| one < other), "{found:?}, {deed:?}");
            if observer.unchanged(pin.guard()) {
                let expected: Vec<_> = world.model.borrow().range(1..=7).map(|(key, _)| *key).collect();
                assert_eq!(found, expected, "{deed:?}");
            }
            // A record that is there all the time is found even if something else has changed.
            if !matches!(deed, Deed::Remove(6) | Deed::Pass(6)) {
                assert!(found.contains(&6), "{deed:?}");
            }
        });
    }
}
