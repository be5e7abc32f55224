//! Growth, and its leftovers.

use super::*;

#[test]
fn insertions_finish_a_migration() {
    let census = Census::default();
    let index = Index::with_capacity(4_000);
    let pin = epoch::pin();
    let before = index.current(&pin).buckets().len();
    index.grow(index.current(&pin));
    let array = index.current(&pin);
    assert_eq!(array.buckets().len(), 2 * before);
    // The same key again and again touches one bucket only.
    let mut insertions = 0;
    while !array.parent.load(Ordering::Relaxed).is_null() {
        let record = CountedRecord::new(1u64, &census);
        assert!(insert(&index, record, &pin, &mut |_| ()));
        assert!(index.remove(record, &pin, &mut |_| ()));
        retire(record, &pin);
        insertions += 1;
        assert!(insertions <= before);
    }
    assert!(array.buckets().iter().all(Bucket::is_ready));
    empty(index, pin, &census);
}

#[test]
fn an_estimate_that_is_far_too_large_costs_a_bounded_reservation() {
    for expected in [1 << 40, usize::MAX] {
        let census = Census::default();
        let index = Index::with_capacity(expected);
        let pin = epoch::pin();
        assert_eq!(index.current(&pin).buckets().len(), RESERVED_MAX / AIM);
        assert!(insert(&index, CountedRecord::new(1u64, &census), &pin, &mut |_| ()));
        empty(index, pin, &census);
    }
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
        assert!(insert(&index, CountedRecord::new(key, &census), guard, &mut |_| ()));
    }
    assert!(index.memory_bytes() - bytes > 5_000 / 6 * 64);
    assert!(index.memory_bytes() < 5_000 * 50, "{} bytes", index.memory_bytes());
    let mut keys = all(&index, guard);
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..5_000));
    for (key, observed) in absent {
        // SAFETY: observed under the pinned epoch.
        let unchanged = unsafe { observed.node.as_ref() }.unchanged(observed.version);
        // An observation that is still valid is of the bucket into which the key would go.
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
        (0..count)
            .for_each(|key| assert!(insert(&index, CountedRecord::new(key, &census), guard, &mut |_| ())));
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
