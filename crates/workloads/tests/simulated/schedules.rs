//! Explored schedules: the protocols pass, mutants are found, and a seed stands for one schedule.
use crate::mutants::{STAMPED_WRONG, for_each_faultless_mutant, for_each_mutant, has_snapshots};
use hotrow::protocols::{Visitor, find, for_each_protocol, with_protocol};
use hotrow::{Isolation, Occ, Protocol};
use hotrow_workloads::explore::{Drawn, DrawnWorkload, Explored, explore};

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
    for (name, sum) in for_each_protocol(4, Passes { schedules: 250 }) {
        // Where all wait until they have a lock, few lose it; where there is one lock for all, nobody does.
        assert!(
            !find(name).is_ok_and(|protocol| protocol.concurrent) || sum.aborts > 20,
            "{name}: schedules without conflicts show nothing: {sum:?}"
        );
        assert!(sum.commits > 600, "{name}: {sum:?}");
    }
}

#[test]
fn no_schedule_makes_drp_break_its_promise_where_it_seldom_defers() {
    for name in ["drp+calm=0", "drp+calm=1", "drp+opaque+calm=1"] {
        let sum = with_protocol(name, Passes { schedules: 200 }).expect("a name that drp parses");
        assert!(sum.aborts > 20 && sum.commits > 400, "{name}: {sum:?}");
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

/// As [`Drawn::new`], without dead cores, and without snapshots if the mutant has none.
fn drawn_for<P: Protocol>(name: &str, seed: u64) -> Drawn {
    let mut drawn = Drawn::new(seed, 0);
    match &mut drawn.workload {
        _ if has_snapshots::<P>(name) => (),
        DrawnWorkload::Stress(options) => options.snapshot_share = 0.0,
        DrawnWorkload::Tpcc(options) => options.readers = Isolation::Serializable,
        DrawnWorkload::Ycsb(options) => options.readers = Isolation::Serializable,
        _ => (),
    }
    drawn
}

/// The number of schedules after which a mutant has violated what it promises, or none if it has not in fifty thousand.
/// `explore` defers nothing, so what only deferred operations do wrong is left to recorded stress, and wrong stamps are left to `stamps`.
#[derive(Clone, Copy)]
struct Found;

impl Visitor for Found {
    type Output = Option<u64>;

    fn visit<P: Protocol>(self, name: &str) -> Option<u64> {
        if P::DEFERS || STAMPED_WRONG.contains(&name) {
            return Some(0);
        }
        let violates = |seed: &u64| explore::<P>(&drawn_for::<P>(name, *seed), name, 10, |_| ()).is_err();
        (0..50_000).find(violates).map(|seed| seed + 1)
    }
}

#[test]
fn every_mutant_is_found() {
    let found = for_each_mutant(Found);
    println!("schedules until a mutant was found: {found:?}");
    let missed: Vec<_> = found.iter().filter(|(_, schedules)| schedules.is_none()).collect();
    assert!(missed.is_empty(), "these were not found within fifty thousand schedules: {missed:?}");
}

#[derive(Clone, Copy)]
struct NotFound;

impl Visitor for NotFound {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        for seed in 0..if P::DEFERS { 0 } else { 2_000 } {
            let explored = explore::<P>(&drawn_for::<P>(name, seed), name, 10, |_| ());
            assert!(explored.is_ok(), "{}", explored.unwrap_err());
        }
    }
}

#[test]
fn the_mutants_without_a_fault_are_not_found() {
    for_each_faultless_mutant(NotFound);
}
