//! The same seed and options give the same run, in the same process and in another.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write;
use std::process::Command;

use crate::orders;
use crate::word::words;
use hotrow_sim::{
    AccessKind, Config, CoreLocal, Faults, Machine, Order, Random, Simulation, access, park_on, work,
};

static SUM: CoreLocal<Cell<u64>> = CoreLocal::new(|| Cell::new(0));

/// Runs a contended program. Returns the hash of the run, and a report as text.
fn report(seed: u64, order: Order, machine: &str) -> (u64, String) {
    let machine = Machine::named(machine).unwrap();
    let faults = Faults { stops: 2, stop_ns_max: 50_000, kills: 1, within_steps: 1000 };
    let simulation =
        Simulation::new(Config { seed, order, faults, trace_steps: 4, ..Config::new(machine, 8) }).unwrap();
    let words = words(64);
    let outcome = simulation.run(|core| {
        let mut random = Random::stream(7, core as u64);
        for turn in 0..100 {
            // The product of two uniform numbers: low words are hot.
            let word = &words[(random.unit() * random.unit() * 64.0) as usize];
            access(word.0.as_ptr() as usize, 8, AccessKind::ReadModifyWrite);
            word.0.set(word.0.get() + 1);
            SUM.with(|sum| sum.set(sum.get().wrapping_mul(31) + word.0.get()));
            work(random.below(100));
            if turn % 30 == core {
                park_on(core % 2, Some(hotrow_sim::now() + 3000));
                hotrow_sim::unpark_all(1 - core % 2);
            }
        }
        SUM.with(Cell::get)
    });
    let mut text = String::new();
    write!(
        text,
        "{:016x} {} steps, {} switches, {} ns\n{:?}\n{:?}\n{:?}\n{}",
        outcome.hash(),
        outcome.steps,
        outcome.switches,
        outcome.virtual_ns(),
        outcome.accesses,
        outcome.results,
        outcome.fates,
        outcome.trace
    )
    .unwrap();
    (outcome.hash(), text)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for order in orders() {
        for seed in 0..5 {
            let first = report(seed, order.clone(), "drp");
            assert_eq!(first, report(seed, order.clone(), "drp"));
        }
    }
}

#[test]
fn other_seeds_give_other_runs() {
    for order in orders() {
        let hashes: HashSet<u64> = (0..20).map(|seed| report(seed, order.clone(), "drp").0).collect();
        assert_eq!(hashes.len(), 20, "the faults differ at least");
    }
}

#[test]
fn other_machines_give_other_runs() {
    let hashes: HashSet<u64> =
        ["drp", "plor", "stealdb", "sto"].map(|machine| report(1, Order::LeastClock, machine).0).into();
    assert_eq!(hashes.len(), 4);
}

const CHILD: &str = "HOTROW_SIM_TEST_CHILD";

#[test]
fn the_same_options_print_the_same_bytes_in_every_process() {
    if std::env::var_os(CHILD).is_some() {
        for order in orders() {
            println!("{}", report(42, order, "drp").1);
        }
        return;
    }
    let child = |environment: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "determinism::the_same_options_print_the_same_bytes_in_every_process",
                "--nocapture",
            ])
            .args(["--test-threads", "1"])
            .env(CHILD, environment)
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        // The line of the test runner differs: it has the time.
        let (printed, _) = text.rsplit_once("test result").unwrap();
        printed.to_owned()
    };
    let first = child("1");
    assert!(first.len() > 1000);
    assert_eq!(first, child(&"a longer environment moves the stack".repeat(10)));
}
