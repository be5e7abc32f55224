use super::*;
use crate::index::testing::{Census, Observer, Record, free, key_of, meanwhile, retire};
use hotrow_sync::atomic::AtomicBool;
use hotrow_sync::random::Random;
use hotrow_sync::{Mutex, lock, thread};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

type Index<K> = HashIndex<Record<K>>;

fn insert<K: Hash + Eq + Send + Sync + 'static>(
    index: &Index<K>,
    record: NonNull<Record<K>>,
    guard: &Guard,
    changed: &mut dyn FnMut(StructureChange),
) -> bool {
    // SAFETY: the tests free records only after they have removed them.
    match unsafe { index.insert(record, guard, changed) } {
        Insertion::Inserted => true,
        Insertion::Exists(existing) => {
            assert_ne!(existing, record);
            // SAFETY: it did not get in.
            unsafe { free(record) };
            false
        }
    }
}

fn all<K: Hash + Eq + Clone + Send + Sync + 'static>(index: &Index<K>, guard: &Guard) -> Vec<K> {
    let mut keys = Vec::new();
    index.for_each_bucket(guard, &mut |records| keys.extend(records.iter().map(|&r| key_of(r, guard))));
    keys
}

/// Frees everything, and sees that it was everything. Takes the guard, which would keep garbage alive.
fn empty<K: Hash + Eq + Send + Sync + 'static>(mut index: Index<K>, guard: Guard, census: &Census) {
    // SAFETY: the index is the tests' own.
    index.drain(&mut |record| unsafe { free(record) });
    index.for_each_bucket(&guard, &mut |records| assert!(records.is_empty()));
    drop((guard, index));
    census.settle(0);
}

/// Random operations, compared with a `HashMap` after each.
fn compare<K: Hash + Eq + Clone + Send + Sync + std::fmt::Debug + 'static>(
    seed: u64,
    key: impl Fn(u64) -> K,
) {
    let census = Census::default();
    let index = Index::<K>::with_capacity(1);
    let mut model: HashMap<K, NonNull<Record<K>>> = HashMap::new();
    let mut random = Random::seeded(seed);
    for round in 0..6_000u64 {
        let guard = &epoch::pin();
        let key = key(random.below(if round < 3_000 { 2_000 } else { 300 }));
        match random.below(4) {
            0 | 1 if round % 3_000 < 2_000 => {
                let record = Record::new(key.clone(), &census);
                let inserted = insert(&index, record, guard, &mut |_| ());
                assert_eq!(inserted, !model.contains_key(&key));
                if inserted {
                    model.insert(key.clone(), record);
                }
            }
            0..3 => {
                if let Some(record) = model.remove(&key) {
                    assert!(index.remove(record, guard, &mut |_| ()));
                    assert!(!index.remove(record, guard, &mut |_| ()), "removed before");
                    retire(record, guard);
                }
            }
            _ => (),
        }
        match (index.get(&key, guard), model.get(&key)) {
            (Lookup::Found(found), Some(expected)) => assert_eq!(found, *expected),
            (Lookup::Absent(_), None) => (),
            (found, expected) => panic!("seed {seed}, round {round}, {key:?}: {found:?} {expected:?}"),
        }
        if round % 500 == 0 {
            let keys = all(&index, guard);
            assert_eq!(keys.len(), model.len());
            assert_eq!(keys.into_iter().collect::<HashSet<_>>(), model.keys().cloned().collect());
        }
    }
    empty(index, epoch::pin(), &census);
}

#[test]
fn random_operations_agree_with_a_hash_map() {
    for seed in 0..4 {
        compare(seed, |n| n);
        compare(seed, |n| (n as u16 % 7, n.to_string()));
    }
}

/// A key whose hash is always the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Same(u64);

impl Hash for Same {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(0);
    }
}

#[test]
fn keys_of_one_hash_are_told_apart_along_the_chain() {
    let census = Census::default();
    let index = Index::with_capacity(100);
    let pin = epoch::pin();
    let guard = &pin;
    let records: Vec<_> = (0..40).map(|n| Record::new(Same(n), &census)).collect();
    for &record in &records {
        assert!(insert(&index, record, guard, &mut |_| ()));
    }
    // From the middle, from the first bucket and from the end of the chain.
    for n in [20usize, 0, 39, 1, 38, 21] {
        assert!(index.remove(records[n], guard, &mut |_| ()));
        assert!(matches!(index.get(&Same(n as u64), guard), Lookup::Absent(_)));
        retire(records[n], guard);
    }
    for n in 0..40 {
        let removed = [20, 0, 39, 1, 38, 21].contains(&n);
        assert_eq!(matches!(index.get(&Same(n), guard), Lookup::Found(_)), !removed);
    }
    assert_eq!(all(&index, guard).len(), 34);
    empty(index, pin, &census);
}

/// A key whose first comparison does something to the index, as another thread might at that moment.
struct Meddling {
    number: u64,
    deed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Meddling {
    fn harmless(number: u64) -> Self {
        Self { number, deed: Mutex::new(None) }
    }

    fn with(number: u64, deed: impl FnOnce() + Send + 'static) -> Self {
        Self { number, deed: Mutex::new(Some(Box::new(deed))) }
    }
}

impl PartialEq for Meddling {
    fn eq(&self, other: &Self) -> bool {
        for key in [self, other] {
            let deed = lock(&key.deed).take();
            if let Some(deed) = deed {
                deed();
            }
        }
        self.number == other.number
    }
}

impl Eq for Meddling {}

impl Hash for Meddling {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(0);
    }
}

/// An index of `count` keys in one chain, which lives as long as the process: the deeds are not bounded.
fn meddling(count: u64) -> (&'static Index<Meddling>, Vec<NonNull<Record<Meddling>>>, Census) {
    let census = Census::default();
    let index = Box::leak(Box::new(Index::with_capacity(100)));
    let records: Vec<_> = (0..count).map(|n| Record::new(Meddling::harmless(n), &census)).collect();
    for &record in &records {
        assert!(insert(index, record, &epoch::pin(), &mut |_| ()));
    }
    (index, records, census)
}

#[test]
fn an_entry_that_is_moved_behind_a_readers_back_is_found() {
    let (index, records, _) = meddling(10);
    let first = records[0].addr();
    // The last entry takes the first one's place while the reader is comparing the first.
    let key = Meddling::with(9, move || {
        let first = NonNull::new(std::ptr::with_exposed_provenance_mut(first.get())).unwrap();
        assert!(index.remove(first, &epoch::pin(), &mut |_| ()));
    });
    records[0].as_ptr().expose_provenance();
    match index.get(&key, &epoch::pin()) {
        Lookup::Found(found) => assert_eq!(found, records[9]),
        Lookup::Absent(_) => panic!("missed"),
    }
}

#[test]
fn a_key_inserted_behind_a_lookups_back_does_not_leave_an_observation_that_holds() {
    let (index, _, census) = meddling(5);
    let key = Meddling::with(77, move || {
        assert!(insert(index, Record::new(Meddling::harmless(77), &census), &epoch::pin(), &mut |_| ()));
    });
    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)));
}

#[test]
fn a_key_inserted_behind_an_insertions_back_is_not_inserted_twice() {
    let (index, _, census) = meddling(5);
    let deeds = census.clone();
    let key = Meddling::with(77, move || {
        assert!(insert(index, Record::new(Meddling::harmless(77), &deeds), &epoch::pin(), &mut |_| ()));
    });
    assert!(!insert(index, Record::new(key, &census), &epoch::pin(), &mut |_| ()));
}

#[test]
fn an_observation_made_while_the_index_grew_behind_it_does_not_hold() {
    let (index, _, census) = meddling(5);
    let (at, deeds) = (Hash64::of(&Meddling::harmless(0)), census.clone());
    let key = Meddling::with(77, move || {
        let guard = &epoch::pin();
        let array = index.current(guard);
        index.grow(array);
        assert!(insert(index, Record::new(Meddling::harmless(77), &deeds), guard, &mut |_| ()));
        assert_eq!(array.buckets()[array.position(at)].version.stable(), None);
    });
    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)));
}

#[test]
fn insertions_finish_a_migration() {
    let census = Census::default();
    let index = Index::with_capacity(4_000);
    let pin = epoch::pin();
    let before = index.current(&pin).buckets().len();
    index.grow(index.current(&pin));
    let array = index.current(&pin);
    assert_eq!(array.buckets().len(), 2 * before);
    // One key over and over: it touches one bucket.
    let mut insertions = 0;
    while !array.parent.load(Ordering::Relaxed).is_null() {
        let record = Record::new(1u64, &census);
        assert!(insert(&index, record, &pin, &mut |_| ()));
        assert!(index.remove(record, &pin, &mut |_| ()));
        retire(record, &pin);
        insertions += 1;
        assert!(insertions <= before);
    }
    assert!(array.buckets().iter().all(Bucket::is_ready));
    empty(index, pin, &census);
}

/// Keys of which thirteen share a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grouped(u64);

impl Hash for Grouped {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 / 13);
    }
}

/// An overflow bucket makes a bucket look ready; the latch must keep readers out until it is.
#[test]
fn a_bucket_is_latched_while_it_is_being_filled() {
    let census = Census::default();
    for at in 0..41 {
        let index = Rc::new(Index::with_capacity(1));
        let pin = epoch::pin();
        for n in 0..41 {
            assert!(insert(&index, Record::new(Same(n), &census), &pin, &mut |_| ()));
        }
        index.grow(index.current(&pin));
        let array = index.current(&pin);
        let position = array.position(Hash64::of(&Same(0)));
        assert!(!array.buckets()[position].is_ready());
        let other = Rc::clone(&index);
        let deed = move || {
            let guard = epoch::pin();
            let bucket = &other.current(&guard).buckets()[position];
            assert!(!bucket.is_ready() || !bucket.version.try_lock_at(0));
        };
        let ((), did) = meanwhile(at, deed, || Index::make_ready(array, position, &pin));
        assert!(did);
        assert!(matches!(index.get(&Same(40), &pin), Lookup::Found(_)));
        empty(Rc::into_inner(index).unwrap(), pin, &census);
    }
}

#[test]
fn long_chains_are_found_while_they_migrate() {
    let census = Census::default();
    let stop = AtomicBool::new(false);
    let pin = epoch::pin();
    let index = Index::with_capacity(1);
    for n in 0..13 * 64 {
        assert!(insert(&index, Record::new(Grouped(n), &census), &pin, &mut |_| ()));
    }
    thread::scope(|scope| {
        for thread in 0..2 {
            let (index, stop) = (&index, &stop);
            scope.spawn(move || {
                let mut random = Random::stream(7, thread);
                while !stop.load(Ordering::Relaxed) {
                    let key = Grouped(13 * random.below(64) + 12);
                    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)), "{key:?} is lost");
                }
            });
        }
        for _ in 0..6 {
            index.grow(index.current(&pin));
            while !index.current(&pin).parent.load(Ordering::Relaxed).is_null() {
                index.help_to_grow(&pin);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    empty(index, pin, &census);
}

#[test]
fn keys_at_any_distance_spread_over_the_buckets() {
    let census = Census::default();
    for shift in 0..50 {
        let index = Index::with_capacity(4_096);
        let pin = epoch::pin();
        for n in 0..4_096u64 {
            assert!(insert(&index, Record::new(n << shift, &census), &pin, &mut |_| ()));
        }
        let per_entry = index.memory_bytes() as f64 / 4_096.0;
        assert!(per_entry < 22.0, "{per_entry} bytes for keys {} apart", 1u64 << shift);
        empty(index, pin, &census);
    }
}

#[test]
fn an_observed_bucket_is_described_by_a_record_of_its() {
    let census = Census::default();
    let index = Index::with_capacity(1_000);
    let pin = epoch::pin();
    let record = Record::new(Same(1), &census);
    let Lookup::Absent(observed) = index.get(&Same(2), &pin) else { panic!("never inserted") };
    // SAFETY: observed under the pin.
    let described = || unsafe { index.record_at(observed.node, &pin) };
    assert_eq!(described(), None);
    assert!(insert(&index, record, &pin, &mut |_| ()));
    assert_eq!(described(), Some(record));
    index.prefetch_bucket(&Same(1), &pin);
    index.prefetch_record(&Same(1), &pin);
    index.grow(index.current(&pin));
    assert!(matches!(index.get(&Same(1), &pin), Lookup::Found(_)));
    assert_eq!(described(), None, "the bucket has been replaced");
    empty(index, pin, &census);
}

#[test]
fn emptied_overflow_buckets_are_given_back() {
    let census = Census::default();
    let index = Index::with_capacity(10_000);
    let before = index.memory_bytes();
    for _ in 0..20 {
        let guard = &epoch::pin();
        let records: Vec<_> = (0..20).map(|n| Record::new(Same(n), &census)).collect();
        records.iter().for_each(|&record| assert!(insert(&index, record, guard, &mut |_| ())));
        assert_eq!(index.memory_bytes(), before + 3 * 64);
        for record in records {
            assert!(index.remove(record, guard, &mut |_| ()));
            retire(record, guard);
        }
        assert_eq!(index.memory_bytes(), before);
    }
    empty(index, epoch::pin(), &census);
}

#[test]
fn an_insertion_changes_the_absence_that_was_observed_of_its_key_only() {
    let census = Census::default();
    let index = Index::with_capacity(100_000);
    let pin = epoch::pin();
    let guard = &pin;
    let mut observers = Vec::new();
    for key in 0..200u64 {
        let Lookup::Absent(observed) = index.get(&key, guard) else { panic!("found in an empty index") };
        observers.push(observed);
    }
    let unchanged = |observed: &Observed| {
        // SAFETY: observed under the pinned epoch.
        unsafe { observed.node.as_ref() }.unchanged(observed.version)
    };
    assert!(observers.iter().all(unchanged));
    let record = Record::new(77, &census);
    assert!(insert(&index, record, guard, &mut |_| ()));
    let changed = observers[77].node;
    assert!(!unchanged(&observers[77]));
    assert!(observers.iter().filter(|observed| observed.node != changed).all(unchanged));
    let Lookup::Absent(observed) = index.get(&1_000_000, guard) else { panic!("never inserted") };
    assert!(index.remove(record, guard, &mut |_| ()));
    assert_eq!(unchanged(&observed), observed.node != changed);
    let Lookup::Absent(again) = index.get(&77, guard) else { panic!("removed") };
    assert_eq!(again.node, changed);
    retire(record, guard);
    empty(index, pin, &census);
}

#[test]
fn an_observer_follows_its_own_changes_and_notices_those_of_others() {
    let census = Census::default();
    let index = Index::with_capacity(1_000);
    let pin = epoch::pin();
    let guard = &pin;
    let mut observer = Observer::default();
    let mut others = Observer::default();
    for key in 0..200u64 {
        let Lookup::Absent(observed) = index.get(&key, guard) else { panic!("not inserted yet") };
        observer.observe(observed);
        others.observe(observed);
        assert!(insert(&index, Record::new(key, &census), guard, &mut |change| observer.follow(change)));
        assert!(observer.unchanged(guard));
        assert!(!others.unchanged(guard));
    }
    // As if by another thread: not followed.
    let Lookup::Absent(observed) = index.get(&500, guard) else { panic!("never inserted") };
    observer.observe(observed);
    assert!(insert(&index, Record::new(500, &census), guard, &mut |_| ()));
    assert!(!observer.unchanged(guard));
    empty(index, pin, &census);
}

#[test]
fn growth_retires_what_was_observed_before_and_loses_nothing() {
    let census = Census::default();
    let index = Index::with_capacity(1);
    let pin = epoch::pin();
    let guard = &pin;
    let bytes = index.memory_bytes();
    let mut absent = Vec::new();
    for key in 0..5_000u64 {
        let Lookup::Absent(observed) = index.get(&(1_000_000 + key), guard) else { panic!("never inserted") };
        absent.push((1_000_000 + key, observed));
        assert!(insert(&index, Record::new(key, &census), guard, &mut |_| ()));
    }
    assert!(index.memory_bytes() - bytes > 5_000 / 6 * 64);
    assert!(index.memory_bytes() < 5_000 * 50, "{} bytes", index.memory_bytes());
    let mut keys = all(&index, guard);
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..5_000));
    for (key, observed) in absent {
        // SAFETY: observed under the pinned epoch.
        let unchanged = unsafe { observed.node.as_ref() }.unchanged(observed.version);
        // An observation that still holds is of the very bucket that the key would go to.
        let Lookup::Absent(now) = index.get(&key, guard) else { panic!("never inserted") };
        assert!(!unchanged || now == observed);
    }
    empty(index, pin, &census);
}

#[test]
fn a_drain_during_growth_finds_the_records_of_both_arrays() {
    let census = Census::default();
    for count in 0..200u64 {
        let index = Index::with_capacity(1);
        let guard = &epoch::pin();
        (0..count).for_each(|key| assert!(insert(&index, Record::new(key, &census), guard, &mut |_| ())));
        assert!(census.alive() >= count as usize);
        let mut index = index;
        let mut drained = 0;
        index.drain(&mut |record| {
            drained += 1;
            // SAFETY: the index is the test's own.
            unsafe { free(record) };
        });
        assert_eq!(drained, count);
    }
    census.settle(0);
}

#[test]
fn growth_while_four_threads_insert_remove_and_look_up() {
    let census = Census::default();
    let index = Index::with_capacity(1);
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let (index, census) = (&index, &census);
            scope.spawn(move || {
                let mut random = Random::stream(5, thread);
                let mut mine = HashMap::new();
                for round in 0..15_000u64 {
                    let guard = &epoch::pin();
                    let key = 4 * random.below(round / 3 + 10) + thread;
                    match (random.below(3), mine.get(&key).copied()) {
                        (0 | 1, None) => {
                            let Lookup::Absent(observed) = index.get(&key, guard) else { panic!("mine") };
                            let mut observer = Observer::default();
                            observer.observe(observed);
                            let record = Record::new(key, census);
                            assert!(insert(index, record, guard, &mut |_| ()));
                            assert!(!observer.unchanged(guard), "the insertion of {key} went unnoticed");
                            mine.insert(key, record);
                        }
                        (0, Some(record)) => {
                            assert!(index.remove(record, guard, &mut |_| ()));
                            mine.remove(&key);
                            retire(record, guard);
                        }
                        (_, Some(record)) => match index.get(&key, guard) {
                            Lookup::Found(found) => assert_eq!(found, record),
                            Lookup::Absent(_) => panic!("{key} is lost"),
                        },
                        (_, None) => assert!(matches!(index.get(&key, guard), Lookup::Absent(_))),
                    }
                    if let Lookup::Found(found) = index.get(&random.below(4 * round + 1), guard) {
                        key_of(found, guard);
                    }
                    if round % 4_000 == 0 {
                        let seen: Vec<u64> = all(index, guard);
                        assert_eq!(seen.iter().filter(|key| *key % 4 == thread).count(), mine.len());
                    }
                }
            });
        }
    });
    empty(index, epoch::pin(), &census);
}

#[test]
fn two_threads_that_insert_the_same_key_do_not_both_succeed() {
    let census = Census::default();
    let index = Index::with_capacity(1);
    let counts: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (index, census) = (&index, &census);
                scope.spawn(move || {
                    (0..3_000u64)
                        .filter(|&key| insert(index, Record::new(key, census), &epoch::pin(), &mut |_| ()))
                        .count() as u64
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), 3_000);
    empty(index, epoch::pin(), &census);
}
