//! The costs of small programs under the machine model.

use std::cell::Cell;

use hotrow_sim::{AccessKind, Config, Machine, Simulation, access, should_stop, work};

use crate::word::{Word, words};

/// Additions per virtual microsecond; `pick` chooses the word that a core adds to.
fn throughput(machine: &Machine, cores: usize, work_units: u64, pick: impl Fn(usize) -> usize) -> f64 {
    let words = words(cores);
    let config = Config { until_ns: Some(100_000), trace_steps: 0, ..Config::new(machine.clone(), cores) };
    Simulation::new(config).unwrap().run(|core| {
        while !should_stop() {
            words[pick(core)].add(1);
            work(work_units);
        }
    });
    words.iter().map(|word| word.0.get()).sum::<u64>() as f64 / 100.0
}

#[test]
fn private_counters_scale_and_a_shared_one_does_not() {
    for name in ["drp", "plor", "stealdb", "sto", "server-128", "mesh-1024"] {
        let machine = Machine::named(name).unwrap();
        let most = machine.physical_cores();
        let private = |cores| throughput(&machine, cores, 50, |core| core);
        let shared = |cores| throughput(&machine, cores, 1, |_| 0);
        let scaling = private(most) / private(1) / most as f64;
        assert!((0.95..=1.01).contains(&scaling), "{name}: {scaling}");
        let (one, two, all) = (shared(1), shared(2), shared(most));
        assert!(all < one, "{name}: {one} {two} {all}");
        assert!(all < two * 1.5, "{name}: {one} {two} {all}");
    }
}

#[test]
fn a_shared_counter_has_a_throughput_of_one_addition_per_transfer() {
    let machine = Machine::named("drp").unwrap();
    let transfer = machine.nanoseconds.same_socket + machine.nanoseconds.atomic;
    for cores in [4, 8, 15] {
        let expected = 1000.0 / transfer;
        let measured = throughput(&machine, cores, 1, |_| 0);
        assert!((measured / expected - 1.0).abs() < 0.05, "{cores} cores: {measured}, expected {expected}");
    }
}

#[test]
fn two_cores_of_one_socket_share_a_word_faster_than_two_of_different_sockets() {
    for name in ["drp", "plor", "stealdb", "sto", "server-128"] {
        let machine = Machine::named(name).unwrap();
        let per_socket = machine.topology.cores_per_socket;
        let pair = |partner: usize| {
            let (word, others) = (Word::default(), Cell::new(0));
            let config = Config { until_ns: Some(50_000), ..Config::new(machine.clone(), per_socket + 1) };
            let outcome = Simulation::new(config).unwrap().run(|core| {
                if core != 0 && core != partner {
                    return others.set(others.get() + 1);
                }
                while !should_stop() {
                    word.add(1);
                    work(10);
                }
            });
            assert_eq!(others.get(), per_socket - 1);
            (word.0.get(), outcome.accesses)
        };
        let (near, near_accesses) = pair(1);
        let (far, far_accesses) = pair(per_socket);
        assert!(near > far, "{name}: {near} {far}");
        assert_eq!(near_accesses.cross_socket, 0);
        assert!(far_accesses.cross_socket > 100);
    }
}

#[test]
fn a_second_thread_on_a_core_slows_the_first_down() {
    let machine = Machine::named("sto").unwrap();
    let alone = throughput(&machine, 12, 1000, |core| core);
    let all = throughput(&machine, 24, 1000, |core| core);
    assert!((1.1..1.5).contains(&(all / alone)), "{alone} {all}");
}

#[test]
fn false_sharing_costs_as_much_as_sharing() {
    #[repr(align(64))]
    #[derive(Default)]
    struct Pair([Cell<u64>; 2]);
    let machine = Machine::named("drp").unwrap();
    let run = |same_line: bool| {
        let pairs: [Pair; 2] = Default::default();
        let config = Config { until_ns: Some(20_000), ..Config::new(machine.clone(), 2) };
        Simulation::new(config).unwrap().run(|core| {
            let cell = if same_line { &pairs[0].0[core] } else { &pairs[core].0[0] };
            while !should_stop() {
                access(cell.as_ptr() as usize, 8, AccessKind::ReadModifyWrite);
                cell.set(cell.get() + 1);
            }
        });
        pairs.iter().flat_map(|pair| &pair.0).map(Cell::get).sum::<u64>()
    };
    assert!(run(true) * 4 < run(false));
}

#[test]
fn an_access_across_a_line_boundary_touches_two_lines() {
    let words: [Word; 2] = Default::default();
    let outcome = Simulation::new(Config::new(Machine::named("this").unwrap(), 1)).unwrap().run(|_| {
        access(words[0].0.as_ptr() as usize + 60, 8, AccessKind::Load);
    });
    assert_eq!((outcome.steps, outcome.lines), (2, 2));
}
