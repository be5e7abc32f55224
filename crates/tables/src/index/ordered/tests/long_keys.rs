//! Long keys at their limits: of any length, with any bytes, and with beginnings in common that come and go.

use super::*;
use crate::key::{Bytes, Encoded};
use hotrow_sync::random::Random;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Inserts all keys, in this order, and looks each up; compares scans with a `BTreeMap`; removes all in another order.
fn check<K: Key>(keys: &[K], seed: u64) {
    let census = Census::default();
    let index = Index::<K>::new();
    let mut model = BTreeMap::new();
    for key in keys {
        let record = CountedRecord::new(key.clone(), &census);
        let inserted = insert(&index, record, &epoch::pin(), &mut ignore);
        assert_eq!(inserted, !model.contains_key(key));
        if inserted {
            model.insert(key.clone(), record);
        }
    }
    assert_eq!(shape::check(&index, &epoch::pin()).entries, model.len());
    let mut random = Random::seeded(seed);
    for low in model.keys() {
        let guard = &epoch::pin();
        assert!(matches!(index.get(&low.image(), guard), Lookup::Found(found) if found == model[low]));
        let high = &keys[random.below(keys.len() as u64) as usize];
        let expected: Vec<K> = match low <= high {
            true => model.range(low..=high).map(|(key, _)| key.clone()).collect(),
            false => Vec::new(),
        };
        let bounds = || (Bound::Included(low.image()), Bound::Included(high.image()));
        assert_eq!(scan(&index, bounds().0, bounds().1, Direction::Ascending, guard), expected);
        let mut downwards = scan(&index, bounds().0, bounds().1, Direction::Descending, guard);
        downwards.reverse();
        assert_eq!(downwards, expected);
    }
    let mut records: Vec<_> = model.into_values().collect();
    random.shuffle(&mut records);
    while let Some(record) = records.pop() {
        let guard = &epoch::pin();
        let key = key_of(record, guard);
        remove(&index, record, guard);
        assert!(matches!(index.get(&key.image(), guard), Lookup::Absent(_)));
        if records.len() % 8 == 0 {
            assert_eq!(shape::check(&index, guard).entries, records.len());
        }
    }
    empty(index, epoch::pin(), &census);
}

#[test]
fn keys_of_few_different_bytes_are_told_apart() {
    for seed in 0..20 {
        let mut random = Random::seeded(seed);
        let keys: Vec<Vec<u8>> = (0..120)
            .map(|_| (0..random.below(12)).map(|_| [0, 1, 0xff][random.below(3) as usize]).collect())
            .collect();
        check(&keys, seed);
    }
}

#[test]
fn a_beginning_that_all_keys_have_in_common_may_end() {
    let urls = |host: &str| -> Vec<String> {
        (0..60).map(|n| format!("https://{host}.example.com/a/rather/long/path/{:03}", n * 7 % 60)).collect()
    };
    let others = ["", "\0", "a", "https", "https://", "https://shop.example.com", "zebra", "\u{10ffff}"];
    for seed in 0..5 {
        let mut keys = urls("shop");
        keys.extend(others.map(String::from));
        keys.extend(urls("shopping"));
        check(&keys, seed);
        // The tree shrinks to few keys, and grows again with others.
        keys.reverse();
        check(&keys, seed);
        Random::seeded(seed).shuffle(&mut keys);
        check(&keys, seed);
    }
}

#[test]
fn keys_may_share_more_bytes_than_a_node_leaves_out() {
    for length in [247, 248, 254, 255, 256, 257, 1_000] {
        let keys: Vec<String> = (0..40).map(|n| format!("{}{:02}", "x".repeat(length), n * 7 % 40)).collect();
        check(&keys, length as u64);
    }
}

#[test]
fn a_key_may_have_a_mebibyte() {
    let long = "k".repeat(1 << 20);
    let keys: Vec<String> = (0..4)
        .flat_map(|n| [format!("{long}{n}"), format!("{n}{long}"), long[..long.len() - n].to_owned()])
        .collect();
    check(&keys, 1);
}

#[test]
fn composite_keys_have_the_order_of_their_parts() {
    let mut keys = Vec::new();
    for name in ["", "a", "a\0", "ab", "b"] {
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            for note in [None, Some(Vec::new()), Some(vec![0]), Some(vec![1, 0xff])] {
                keys.push((name.to_owned(), number, note));
            }
        }
    }
    for seed in 0..5 {
        Random::seeded(seed).shuffle(&mut keys);
        check(&keys, seed);
    }
}

/// A key whose image is another one at each call, and whose code panics at times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fickle(u64);

thread_local! {
    static MOOD: RefCell<Random> = RefCell::new(Random::seeded(1));
}

impl Key for Fickle {
    type Image = Bytes;
    fn image(&self) -> Encoded<'_> {
        let below = |bound| MOOD.with_borrow_mut(|random| random.below(bound));
        if below(200) == 0 {
            // As a panic does, but without a message.
            resume_unwind(Box::new("the user's code"));
        }
        Encoded::from(Cow::Owned((0..below(6)).map(|_| below(3) as u8).collect::<Vec<u8>>()))
    }
}

/// Whatever such keys do, operations end, no latch stays behind, and no record is lost to the table that drains the index.
#[test]
fn keys_whose_images_change_break_nothing_but_their_order() {
    let census = Census::default();
    let mut index = Index::<Fickle>::new();
    let mut kept = std::collections::BTreeSet::new();
    let quietly = |work: &mut dyn FnMut()| _ = catch_unwind(AssertUnwindSafe(work));
    for number in 0..3_000 {
        let guard = &epoch::pin();
        let record = CountedRecord::new(Fickle(number), &census);
        let mut inserted = None;
        quietly(&mut || {
            // SAFETY: records are freed after their removal only.
            let (insertion, _) = unsafe { index.insert(record, guard, None, &mut ignore, None) };
            inserted = Some(insertion);
        });
        match inserted {
            Some(Insertion::Inserted) => _ = kept.insert(record),
            // SAFETY: it did not get in: images are made before anything is changed.
            _ => unsafe { free(record) },
        }
        quietly(&mut || _ = index.get(&Fickle(number).image(), guard));
        if number % 16 == 0 {
            quietly(&mut || _ = all(&index, guard));
            let (low, high) = (Bound::Included(Encoded::new(&[1])), Bound::Unbounded);
            quietly(&mut || _ = scan(&index, low.clone(), high.clone(), Direction::Descending, guard));
        }
        let next = kept.iter().nth(number as usize * 7 % kept.len().max(1)).copied();
        if let Some(record) = next
            && number % 3 > 0
        {
            let mut removed = false;
            quietly(&mut || removed = index.remove(record, true, guard, &mut |_| removed = true));
            if removed {
                kept.remove(&record);
                retire(record, guard);
            }
        }
    }
    index.drain(&mut |record| {
        assert!(kept.remove(&record));
        // SAFETY: the index is the test's own.
        unsafe { free(record) };
    });
    assert!(kept.is_empty(), "{} records are lost", kept.len());
    drop(index);
    census.settle(0);
}

/// Separators leave with the nodes that they separate, and move from node to node; none is freed twice or kept, as an
/// address sanitizer shows.
#[test]
fn trees_of_long_keys_come_and_go() {
    let census = Census::default();
    let index = Index::<String>::new();
    for round in 0..20u64 {
        let mut random = Random::seeded(round);
        let mut records: Vec<_> =
            (0..100).map(|n| CountedRecord::new(String::of((n * 37 + round) % 1_000), &census)).collect();
        let guard = &epoch::pin();
        records.iter().for_each(|&record| assert!(insert(&index, record, guard, &mut ignore)));
        random.shuffle(&mut records);
        for record in records {
            remove(&index, record, guard);
        }
        assert_eq!(shape::check(&index, guard).entries, 0);
    }
    // Dropped while it is full.
    let records: Vec<_> = (0..100).map(|n| CountedRecord::new(String::of(n), &census)).collect();
    records.iter().for_each(|&record| assert!(insert(&index, record, &epoch::pin(), &mut ignore)));
    drop(index);
    // SAFETY: the index is gone.
    records.into_iter().for_each(|record| unsafe { free(record) });
    census.settle(0);
}

#[test]
fn a_lookup_finds_keys_without_the_bytes_that_the_separators_above_them_share() {
    // The separators behind the first child share "m-shared", which the keys in it lack; the eight bytes behind these places
    // are the same as those of other keys.
    let low = (0..3).map(|at| format!("a-lonely{at:08}"));
    let middle = (0..40).map(|at| format!("m-shared{at:08}"));
    let high = (0..3).map(|at| format!("z-lonely{at:08}"));
    let keys: Vec<Vec<u8>> = low.chain(middle).chain(high).map(String::into_bytes).collect();
    check(&keys, 1);

    let census = Census::default();
    let index = Index::<Vec<u8>>::new();
    for key in &keys {
        insert(&index, CountedRecord::new(key.clone(), &census), &epoch::pin(), &mut ignore);
    }
    let guard = epoch::pin();
    for absent in
        ["b-shared00000007", "n-shared00000007", "m-shared0000000", "m-shared000000070", "zz-lonely00000000"]
    {
        let absent = absent.as_bytes().to_vec();
        assert!(matches!(index.get(&absent.image(), &guard), Lookup::Absent(_)), "{}", absent.escape_ascii());
    }
    for key in &keys {
        let Lookup::Found(record) = index.get(&key.image(), &guard) else { panic!("{key:?} is lost") };
        assert_eq!(key_of(record, &guard), *key);
    }
    empty(index, guard, &census);
}
