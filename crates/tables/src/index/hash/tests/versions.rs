//! The changes that versions show to transactions.

use super::*;

#[test]
fn an_observed_bucket_is_described_by_a_record_of_its() {
    let census = Census::default();
    let index = Index::with_capacity(1_000);
    let pin = epoch::pin();
    let record = CountedRecord::new(Same(1), &census);
    let Lookup::Absent(observed) = index.get(&Same(2), &pin) else { panic!("never inserted") };
    // SAFETY: observed under the pin.
    let described = || unsafe { index.record_at(observed.node, &pin) };
    assert_eq!(described(), None);
    assert!(insert(&index, record, &pin, &mut |_| ()));
    assert_eq!(described(), Some(record));
    index.prefetch_bucket(&Same(1), &pin);
    index.prefetch_record(&Same(1), 200, &pin);
    index.grow(index.current(&pin));
    assert!(matches!(index.get(&Same(1), &pin), Lookup::Found(_)));
    assert_eq!(described(), None, "the bucket has been replaced");
    empty(index, pin, &census);
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
    let record = CountedRecord::new(77, &census);
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
        assert!(
            insert(&index, CountedRecord::new(key, &census), guard, &mut |change| observer.follow(change))
        );
        assert!(observer.unchanged(guard));
        assert!(!others.unchanged(guard));
    }
    // This insertion is not followed, as if another thread made it.
    let Lookup::Absent(observed) = index.get(&500, guard) else { panic!("never inserted") };
    observer.observe(observed);
    assert!(insert(&index, CountedRecord::new(500, &census), guard, &mut |_| ()));
    assert!(!observer.unchanged(guard));
    empty(index, pin, &census);
}

#[test]
fn a_bucket_that_must_not_be_changed_is_named_and_stays_as_it_is() {
    let census = Census::default();
    let index = Index::with_capacity(10);
    let pin = epoch::pin();
    let mut numbers = std::collections::BTreeMap::new();
    // The index grows on the way.
    for key in 0..500u64 {
        let named = index.node_of(&key, &pin);
        let Lookup::Absent(absent) = index.get(&key, &pin) else { panic!("never inserted") };
        assert_eq!(absent, named);
        let record = CountedRecord::new(key, &census);
        // SAFETY: the tests free records only after they have removed them.
        let try_insert =
            |may: &dyn Fn(Observed) -> bool| unsafe { index.insert(record, &pin, &mut |_| (), Some(may)) };
        let Insertion::Refused(refused) = try_insert(&|_| false) else { panic!("inserted") };
        // The refused insertion may have helped the index to grow.
        let named = index.node_of(&key, &pin);
        assert!(refused == named, "{refused:?}, {named:?}");
        assert!(matches!(index.get(&key, &pin), Lookup::Absent(_)));
        let asked = std::cell::Cell::new(named);
        let inserted = try_insert(&|observed| {
            asked.set(observed);
            true
        });
        let asked = asked.get();
        assert!(matches!(inserted, Insertion::Inserted));
        // SAFETY: observed under the pinned epoch.
        assert!(!unsafe { asked.node.as_ref() }.unchanged(asked.version));
        numbers.insert(asked.node, StructureVersion::number(asked.version));
    }
    let distinct: std::collections::BTreeSet<u32> = numbers.values().copied().collect();
    assert!(
        numbers.len() > 100 && distinct.len() > 50,
        "{} buckets, {} numbers",
        numbers.len(),
        distinct.len()
    );
    empty(index, pin, &census);
}
