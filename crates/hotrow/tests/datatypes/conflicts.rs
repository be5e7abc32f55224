//! Pairs of operations that conflict, and pairs that do not: two transactions on one thread, one within the other.

use crate::support::elsewhere;
use hotrow::{
    Abort, Any, Engine, Occ, Protocol, RetryPolicy, TBox, TCounter, TCounters, THashMap, TList, TListSet,
    TOrderedMap, TPriorityQueue, TQueue, TTreeMap, TVector, Transaction,
};

type Body<O, P> = fn(&O, &mut Transaction<'_, P>) -> Result<(), Abort>;

/// True if a transaction commits although another one has committed after its last operation.
fn commute<O, P: Protocol>(
    protocol: &str,
    make: fn(&Engine<P>) -> O,
    outer: Body<O, P>,
    inner: Body<O, P>,
) -> bool {
    let engine = Engine::<P>::named(protocol, RetryPolicy::default()).unwrap();
    let object = make(&engine);
    // A transaction that only reads may come before the other one, as far as `tl2` is concerned.
    let written = TBox::new(&engine, 0);
    let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
    let mut held_open = first.begin();
    outer(&object, &mut held_open).unwrap();
    written.set(&mut held_open, 1).unwrap();
    let mut within = second.begin();
    inner(&object, &mut within).unwrap();
    within.commit().unwrap();
    held_open.commit().is_ok()
}

/// Checks which of the pairs commute, under protocols that lock nothing before the commit.
macro_rules! check {
    ($make:expr, [$($commutes:literal: $outer:expr, $inner:expr;)*]) => {
        fn check<P: Protocol>(protocol: &str) {
            let mut number = 0;
            $(
                number += 1;
                let found = commute::<_, P>(protocol, $make, $outer, $inner);
                assert_eq!(found, $commutes, "{protocol} pair {number}");
            )*
            assert!(number > 0);
        }
        check::<Occ>("occ");
        ["tl2", "tictoc"].into_iter().for_each(check::<Any>);
    };
}

#[test]
fn pushes_to_a_vector_commute_and_so_do_tests_of_its_length_that_come_out_the_same() {
    check!(|engine: &Engine<P>| TVector::with_elements(engine, [1, 2, 3]), [
        true: |vector, tx| vector.push(tx, 4), |vector, tx| vector.push(tx, 5);
        true: |vector, tx| vector.is_longer_than(tx, 2).map(drop), |vector, tx| vector.push(tx, 5);
        true: |vector, tx| vector.is_longer_than(tx, 1).map(drop), |vector, tx| vector.pop(tx).map(drop);
        false: |vector, tx| vector.is_longer_than(tx, 2).map(drop), |vector, tx| vector.pop(tx).map(drop);
        false: |vector, tx| vector.len(tx).map(drop), |vector, tx| vector.push(tx, 5);
        true: |vector, tx| vector.discard_last(tx).map(drop), |vector, tx| vector.push(tx, 5);
        false: |vector, tx| vector.pop(tx).map(drop), |vector, tx| vector.push(tx, 5);
        true: |vector, tx| vector.get(tx, 0).map(drop), |vector, tx| vector.set(tx, 1, 7).map(drop);
        true: |vector, tx| vector.get(tx, 0).map(drop), |vector, tx| vector.pop(tx).map(drop);
        false: |vector, tx| vector.get(tx, 2).map(drop), |vector, tx| vector.pop(tx).map(drop);
        false: |vector, tx| vector.get(tx, 3).map(drop), |vector, tx| vector.push(tx, 5);
        false: |vector, tx| vector.get(tx, 2).map(drop), |vector, tx| {
            vector.discard_last(tx)?;
            vector.push(tx, 5)
        };
        true: |vector, tx| vector.position(tx, |one| *one == 2).map(drop), |vector, tx| vector.push(tx, 5);
        false: |vector, tx| vector.position(tx, |one| *one == 9).map(drop), |vector, tx| vector.push(tx, 5);
    ]);
}

#[test]
fn a_vector_without_predicates_conflicts_over_its_length() {
    check!(|engine: &Engine<P>| TVector::with_elements(engine, [1, 2, 3]).exact(), [
        false: |vector, tx| vector.push(tx, 4), |vector, tx| vector.push(tx, 5);
        false: |vector, tx| vector.is_longer_than(tx, 2).map(drop), |vector, tx| vector.push(tx, 5);
        false: |vector, tx| vector.get(tx, 0).map(drop), |vector, tx| vector.push(tx, 5);
    ]);
}

#[test]
fn pushes_to_a_queue_commute_and_pops_of_others_do_not_see_them() {
    check!(|engine: &Engine<P>| TQueue::with_elements(engine, [1]), [
        true: |queue, tx| queue.push(tx, 2), |queue, tx| queue.push(tx, 3);
        true: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.push(tx, 3);
        true: |queue, tx| queue.push(tx, 2), |queue, tx| queue.pop(tx).map(drop);
        true: |queue, tx| queue.is_empty(tx).map(drop), |queue, tx| queue.push(tx, 3);
        false: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.pop(tx).map(drop);
        false: |queue, tx| { queue.pop(tx)?; queue.pop(tx).map(drop) }, |queue, tx| queue.push(tx, 3);
    ]);
}

#[test]
fn a_push_to_a_priority_queue_conflicts_with_a_pop_only_if_it_comes_first() {
    check!(|engine: &Engine<P>| TPriorityQueue::with_elements(engine, [10, 20, 30]), [
        true: |queue, tx| queue.push(tx, 50), |queue, tx| queue.push(tx, 60);
        true: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.push(tx, 25);
        true: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.push(tx, 30);
        false: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.push(tx, 31);
        false: |queue, tx| queue.pop(tx).map(drop), |queue, tx| queue.pop(tx).map(drop);
        true: |queue, tx| { queue.pop(tx)?; queue.pop(tx).map(drop) }, |queue, tx| queue.push(tx, 15);
        false: |queue, tx| { queue.pop(tx)?; queue.pop(tx).map(drop) }, |queue, tx| queue.push(tx, 25);
        true: |queue, tx| queue.is_empty(tx).map(drop), |queue, tx| queue.push(tx, 5);
    ]);
}

#[test]
fn operations_on_different_keys_of_a_list_set_commute_and_insertions_into_a_list() {
    check!(|engine: &Engine<P>| TListSet::with_elements(engine, [10, 20]), [
        true: |set, tx| set.insert(tx, 11).map(drop), |set, tx| set.insert(tx, 12).map(drop);
        true: |set, tx| set.contains(tx, &11).map(drop), |set, tx| set.remove(tx, &10).map(drop);
        false: |set, tx| set.contains(tx, &11).map(drop), |set, tx| set.insert(tx, 11).map(drop);
        false: |set, tx| set.insert(tx, 11).map(drop), |set, tx| set.insert(tx, 11).map(drop);
        true: |set, tx| set.is_empty(tx).map(drop), |set, tx| set.remove(tx, &10).map(drop);
    ]);
    fn lists() {
        check!(|engine: &Engine<P>| TList::with_elements(engine, [10, 20]), [
            true: |list, tx| list.insert(tx, 1), |list, tx| list.insert(tx, 2);
            true: |list, tx| list.find(tx, |one| *one > 10).map(drop), |list, tx| list.insert(tx, 30);
            false: |list, tx| list.find(tx, |one| *one > 20).map(drop), |list, tx| list.insert(tx, 30);
            true: |list, tx| list.find(tx, |one| *one > 10).map(drop), |list, tx| list.remove(tx, |_| true).map(drop);
            false: |list, tx| list.find(tx, |one| *one > 5).map(drop), |list, tx| list.remove(tx, |_| true).map(drop);
        ]);
    }
    lists();
}

#[test]
fn operations_on_different_keys_of_a_tree_map_commute() {
    check!(|engine: &Engine<P>| TTreeMap::with_entries(engine, [(10, 1), (20, 2)]), [
        true: |map, tx| map.insert(tx, 11, 0).map(drop), |map, tx| map.insert(tx, 12, 0).map(drop);
        false: |map, tx| map.insert(tx, 11, 0).map(drop), |map, tx| map.insert(tx, 11, 0).map(drop);
        true: |map, tx| map.remove(tx, &10).map(drop), |map, tx| map.remove(tx, &20).map(drop);
        true: |map, tx| map.update(tx, &10, double).map(drop), |map, tx| map.insert(tx, 11, 0).map(drop);
        true: |map, tx| map.insert(tx, 11, 0).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
        true: |map, tx| map.update(tx, &10, double).map(drop), |map, tx| map.update(tx, &20, double).map(drop);
        false: |map, tx| map.update(tx, &10, double).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
        // Between the same neighbours.
        true: |map, tx| map.get(tx, &15).map(drop), |map, tx| map.insert(tx, 16, 0).map(drop);
        false: |map, tx| map.get(tx, &15).map(drop), |map, tx| map.insert(tx, 15, 0).map(drop);
        true: |map, tx| map.get(tx, &10).map(drop), |map, tx| map.remove(tx, &20).map(drop);
        false: |map, tx| map.get(tx, &10).map(drop), |map, tx| map.remove(tx, &10).map(drop);
        false: |map, tx| map.get(tx, &10).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
        false: |map, tx| map.remove(tx, &10).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
        true: |map, tx| map.contains_key(tx, &10).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
        false: |map, tx| map.contains_key(tx, &10).map(drop), |map, tx| map.remove(tx, &10).map(drop);
        // An entry of its own is nobody else's.
        true: |map, tx| { map.insert(tx, 11, 0)?; map.get(tx, &11).map(drop) }, |map, tx| map.insert(tx, 12, 0).map(drop);
    ]);
}

#[test]
fn an_entry_that_is_exchanged_is_another_one_but_its_key_is_there() {
    fn exchange<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        map.remove(tx, &10)?;
        map.insert(tx, 10, 7).map(drop)
    }
    check!(|engine: &Engine<P>| TTreeMap::with_entries(engine, [(10, 1), (20, 2)]), [
        true: |map, tx| map.contains_key(tx, &10).map(drop), exchange;
        true: |map, tx| map.len(tx).map(drop), exchange;
        false: |map, tx| map.get(tx, &10).map(drop), exchange;
        false: |map, tx| { map.contains_key(tx, &10)?; map.get(tx, &10).map(drop) }, exchange;
        false: |map, tx| map.update(tx, &10, double).map(drop), exchange;
        false: |map, tx| map.first(tx).map(drop), exchange;
        true: |map, tx| map.last(tx).map(drop), exchange;
    ]);
}

#[test]
fn a_scan_of_a_tree_map_conflicts_with_what_comes_into_the_part_that_it_has_seen() {
    fn second<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        map.remove(tx, &10)?;
        assert_eq!(map.first(tx)?, Some((20, 2)));
        Ok(())
    }
    fn own<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        map.insert(tx, 5, 0)?;
        assert_eq!(map.first(tx)?, Some((5, 0)));
        Ok(())
    }
    fn apart<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        let empty = map.range(tx, 14..17).count() + map.range(tx, 24..27).count();
        assert_eq!(empty, 0);
        Ok(())
    }
    fn again<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        map.iter(tx).take(2).try_for_each(|one| one.map(drop))?;
        map.first(tx).map(drop)
    }
    check!(|engine: &Engine<P>| TTreeMap::with_entries(engine, [(10, 1), (20, 2), (30, 3)]), [
        true: |map, tx| map.first(tx).map(drop), |map, tx| map.insert(tx, 11, 0).map(drop);
        false: |map, tx| map.first(tx).map(drop), |map, tx| map.insert(tx, 9, 0).map(drop);
        true: |map, tx| map.last(tx).map(drop), |map, tx| map.insert(tx, 29, 0).map(drop);
        false: |map, tx| map.last(tx).map(drop), |map, tx| map.insert(tx, 31, 0).map(drop);
        false: |map, tx| map.range(tx, 11..20).try_for_each(|one| one.map(drop)), |map, tx| map.insert(tx, 15, 0).map(drop);
        false: |map, tx| map.range(tx, 10..30).rev().try_for_each(|one| one.map(drop)), |map, tx| map.remove(tx, &20).map(drop);
        false: |map, tx| map.range(tx, 10..30).try_for_each(|one| one.map(drop)), |map, tx| map.update(tx, &20, double).map(drop);
        true: |map, tx| map.range(tx, 10..30).try_for_each(|one| one.map(drop)), |map, tx| map.remove(tx, &30).map(drop);
        true: |map, tx| map.iter(tx).take(2).try_for_each(|one| one.map(drop)), |map, tx| map.insert(tx, 25, 0).map(drop);
        false: |map, tx| map.iter(tx).take(2).try_for_each(|one| one.map(drop)), |map, tx| map.insert(tx, 15, 0).map(drop);
        false: second, |map, tx| map.insert(tx, 15, 0).map(drop);
        true: second, |map, tx| map.insert(tx, 25, 0).map(drop);
        false: own, |map, tx| map.insert(tx, 4, 0).map(drop);
        true: own, |map, tx| map.insert(tx, 6, 0).map(drop);
        true: |map, tx| map.is_empty(tx).map(drop), |map, tx| map.insert(tx, 15, 0).map(drop);
        true: |map, tx| map.is_empty(tx).map(drop), |map, tx| map.remove(tx, &10).map(drop);
        false: |map, tx| map.is_empty(tx).map(drop), |map, tx| [10, 20, 30].iter().try_for_each(|key| map.remove(tx, key).map(drop));
        false: apart, |map, tx| map.insert(tx, 15, 0).map(drop);
        false: apart, |map, tx| map.insert(tx, 25, 0).map(drop);
        true: apart, |map, tx| map.insert(tx, 18, 0).map(drop);
        false: again, |map, tx| map.insert(tx, 15, 0).map(drop);
        false: |map, tx| map.len(tx).map(drop), |map, tx| map.insert(tx, 15, 0).map(drop);
        true: |map, tx| map.len(tx).map(drop), |map, tx| map.update(tx, &10, double).map(drop);
    ]);
}

#[test]
fn scans_of_a_tree_map_from_both_ends_to_the_same_entry_see_all_around_it() {
    fn both<P: Protocol>(map: &TTreeMap<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        assert_eq!(map.last(tx)?, map.first(tx)?);
        Ok(())
    }
    check!(|engine: &Engine<P>| TTreeMap::with_entries(engine, [(10, 1)]), [
        false: both, |map, tx| map.insert(tx, 9, 0).map(drop);
        false: both, |map, tx| map.insert(tx, 11, 0).map(drop);
    ]);
}

#[test]
fn counters_side_by_side_conflict_each_on_its_own() {
    check!(|engine: &Engine<P>| TCounters::new(engine, [5, 5, 5]), [
        true: |all, tx| all.add(tx, 1, 1), |all, tx| all.add(tx, 1, 1);
        true: |all, tx| all.get(tx, 0).map(drop), |all, tx| all.add(tx, 1, 1);
        false: |all, tx| all.get(tx, 1).map(drop), |all, tx| all.add(tx, 1, 1);
        true: |all, tx| all.is_at_least(tx, 1, 5).map(drop), |all, tx| all.add(tx, 1, 1);
        false: |all, tx| all.is_at_least(tx, 1, 5).map(drop), |all, tx| all.add(tx, 1, -1);
        true: |all, tx| all.is_at_least(tx, 1, 5).map(drop), |all, tx| all.set(tx, 2, 0);
        // It does not read the value that it has set itself.
        true: |all, tx| { all.set(tx, 1, 7)?; assert_eq!(all.get(tx, 1)?, 7); Ok(()) }, |all, tx| all.add(tx, 1, 1);
        true: |all, tx| { all.set(tx, 1, 7)?; assert!(!all.is_between(tx, 1, 0, 6)?); Ok(()) }, |all, tx| all.add(tx, 1, 1);
    ]);
}

fn double(value: &mut u64) {
    *value *= 2;
}

#[test]
fn a_test_of_a_counter_after_increments_keeps_what_is_necessary_and_sufficient() {
    /// The example of sto §3.5: false, ten increments, true. The values for which it is so: -9 to 0.
    fn outer<P: Protocol>(counter: &TCounter<P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        assert!(!counter.is_at_least(tx, 1)?);
        counter.add(tx, 10)?;
        assert!(counter.is_at_least(tx, 1)?);
        Ok(())
    }
    check!(|engine: &Engine<P>| TCounter::new(engine, -3), [
        true: outer, |counter, tx| counter.add(tx, 3);
        false: outer, |counter, tx| counter.add(tx, 4);
        true: outer, |counter, tx| counter.add(tx, -6);
        false: outer, |counter, tx| counter.add(tx, -7);
    ]);
}

/// Inserts a key into a map while a transaction makes the value that it is going to insert there.
macro_rules! check_overtaken_insertion {
    ($map:ident) => {
        let engine = Engine::<Occ>::new();
        let map = $map::<u64, u64>::new(&engine);
        let mut attempts = 0;
        let result = engine.transact(|tx| {
            attempts += 1;
            let default = || {
                if attempts == 1 {
                    elsewhere(|| engine.transact(|tx| map.insert(tx, 7, 100)).unwrap());
                }
                1
            };
            map.update_or_insert(tx, 7, default, |value| {
                *value += 1;
                *value
            })
        });
        assert_eq!((result, attempts), (Ok(101), 2), stringify!($map));
        assert_eq!(engine.transact(|tx| map.get(tx, &7)), Ok(Some(101)), stringify!($map));
    };
}

#[test]
fn a_key_that_comes_between_the_look_and_the_insertion_is_changed_by_the_next_attempt() {
    check_overtaken_insertion!(THashMap);
    check_overtaken_insertion!(TOrderedMap);
}

#[test]
fn an_insertion_that_meets_a_value_depends_on_it() {
    let engine = Engine::<Occ>::new();
    let (map, inserted) = (THashMap::<u64, u64>::new(&engine), TBox::new(&engine, false));
    engine.transact(|tx| map.insert(tx, 7, 1)).unwrap();
    let mut attempts = 0;
    engine
        .transact(|tx| {
            attempts += 1;
            let is_new = map.insert_if_absent(tx, 7, 2)?;
            if attempts == 1 {
                elsewhere(|| engine.transact(|tx| map.remove(tx, &7)).unwrap());
            }
            inserted.set(tx, is_new)
        })
        .unwrap();
    let after = engine.transact(|tx| Ok::<_, Abort>((inserted.get(tx)?, map.get(tx, &7)?)));
    assert_eq!((attempts, after), (2, Ok((true, Some(2)))));
}
