//! Explored schedules: the protocols pass, mutants are found, and a seed stands for one schedule.
//!
//! Needs feature `sim`: `cargo test -p hotrow-workloads --features sim --test schedules`.
#![cfg(feature = "sim")]

#[path = "histories/mutants.rs"]
mod mutants;
#[path = "histories/timestamp_mutants.rs"]
mod timestamp_mutants;

use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Occ, Protocol};
use hotrow_workloads::explore::{Drawn, Explored, explore};
use mutants::{Mutant, fault};
use timestamp_mutants::{TimestampMutant, timestamp_fault};

/// One schedule in so many has a core that dies.
const KILLS_ONE_IN: u64 = 100;

#[derive(Clone, Copy)]
struct Passes {
    schedules: u64,
}

impl Visitor for Passes {
    type Output = Explored;

    fn visit<P: Protocol>(self, name: &str) -> Explored {
        let mut sum = Explored::default();
        for seed in 0..self.schedules {
            match explore::<P>(&Drawn::new(seed, KILLS_ONE_IN), name, 100, |_| ()) {
                Ok(explored) => sum.add(&explored),
                Err(violation) => panic!("{}: {violation}\n{:#?}", name, violation.drawn),
            }
        }
        sum
    }
}

#[test]
fn no_schedule_makes_a_protocol_break_its_promise() {
    for (name, sum) in for_each_protocol(4, Passes { schedules: 500 }) {
        // Where all wait until they have a lock, few lose it.
        assert!(sum.aborts > 40, "{name}: schedules without conflicts show nothing: {sum:?}");
        assert!(sum.commits > 1_200, "{name}: {sum:?}");
    }
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn no_schedule_of_a_hundred_thousand_makes_a_protocol_break_its_promise() {
    for_each_protocol(4, Passes { schedules: 100_000 });
}

#[test]
fn a_seed_stands_for_one_schedule_whatever_ran_before() {
    let seeds: Vec<u64> = (0..300).collect();
    let run = |seed: &u64| explore::<Occ>(&Drawn::new(*seed, 10), "occ", 10, |_| ()).unwrap();
    let forwards: Vec<Explored> = seeds.iter().map(run).collect();
    let mut backwards: Vec<Explored> = seeds.iter().rev().map(run).collect();
    backwards.reverse();
    for (seed, (first, second)) in forwards.iter().zip(&backwards).enumerate() {
        assert_eq!(first, second, "seed {seed}");
    }
    assert!(forwards.windows(2).any(|pair| pair[0].hash != pair[1].hash));
}

/// The first seed under which a mutant violates what it promises.
fn found<P: Protocol>() -> u64 {
    (0..10_000)
        .find(|seed| explore::<P>(&Drawn::new(*seed, 0), "mutant", 10, |_| ()).is_err())
        .expect("a mutant was not found within ten thousand schedules")
}

macro_rules! found {
    ($($name:ident: $mutant:ident, $fault:path;)*) => {$(
        #[test]
        fn $name() {
            println!("after {} schedules", found::<$mutant<{ $fault }>>() + 1);
        }
    )*};
}

found! {
    unchecked_reads_are_found: Mutant, fault::READS_UNCHECKED;
    versions_published_before_their_values_are_found: Mutant, fault::PUBLISHED_EARLY;
    unchecked_phantoms_are_found: Mutant, fault::PHANTOMS_UNCHECKED;
    a_stale_snapshot_is_found: Mutant, fault::STALE_SNAPSHOT;
    snapshot_isolation_is_found: Mutant, fault::READS_OF_OTHERS_UNCHECKED;
    checks_before_locks_are_found: Mutant, fault::CHECKED_BEFORE_LOCKED;
    unchecked_predicates_are_found: Mutant, fault::PREDICATES_UNCHECKED;
    unchecked_readers_are_found: Mutant, fault::READERS_UNCHECKED;
    predicates_looked_at_before_locks_are_found: Mutant, fault::PREDICATES_BEFORE_LOCKS;
    only_the_last_read_checked_is_found: Mutant, fault::LAST_READ_CHECKED;
    locks_taken_one_by_one_are_found: Mutant, fault::LOCKED_ONE_BY_ONE;
    only_the_first_write_locked_is_found: Mutant, fault::FEW_LOCKED;
    reused_versions_are_found: Mutant, fault::VERSIONS_REUSED;
    unheeded_locks_are_found: Mutant, fault::LOCKS_UNHEEDED;
    unchecked_rollbacks_are_found: Mutant, fault::ROLLBACKS_UNCHECKED;
    logical_time_without_a_place_for_absence_is_found: TimestampMutant, timestamp_fault::NO_FLOOR;
    insertions_at_any_logical_time_are_found: TimestampMutant, timestamp_fault::FLOOR_FOR_READERS_ONLY;
    reads_that_are_not_extended_are_found: TimestampMutant, timestamp_fault::NOT_EXTENDED;
    extensions_under_locks_are_found: TimestampMutant, timestamp_fault::EXTENDED_UNDER_LOCKS;
    writes_in_the_midst_of_a_version_are_found: TimestampMutant, timestamp_fault::READERS_UNHEEDED;
    two_versions_of_one_segment_are_found: TimestampMutant, timestamp_fault::LAST_READ_COUNTS;
}

#[test]
fn the_mutants_without_a_fault_are_not_found() {
    for seed in 0..2_000 {
        let drawn = Drawn::new(seed, 0);
        let explored = explore::<Mutant<{ fault::NONE }>>(&drawn, "mutant", 10, |_| ());
        assert!(explored.is_ok(), "{}", explored.unwrap_err());
        let explored = explore::<TimestampMutant<{ timestamp_fault::NONE }>>(&drawn, "mutant", 10, |_| ());
        assert!(explored.is_ok(), "{}", explored.unwrap_err());
    }
}
