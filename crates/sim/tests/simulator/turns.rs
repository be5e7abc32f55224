//! Turns, waiting, traces and options.

use std::cell::RefCell;

use hotrow_sim::*;

use crate::word::*;
use crate::{config, orders, simulation};

#[test]
fn operations_happen_in_the_order_of_the_clocks() {
    let order = RefCell::new(Vec::new());
    let words: [Word; 3] = Default::default();
    simulation(config(3)).run(|core| {
        for turn in 0..3 {
            work([100_u64, 250, 10][core]);
            let at = now();
            words[core].load();
            order.borrow_mut().push((at, core, turn));
        }
    });
    let order = order.into_inner();
    assert_eq!(order.len(), 9);
    assert!(order.is_sorted_by_key(|(at, ..)| *at), "{order:?}");
    assert_eq!(order[0].1, 2, "the core with the least work goes first");
}

#[test]
fn of_cores_with_equal_clocks_the_lower_number_goes_first() {
    let order = RefCell::new(Vec::new());
    let words: [Word; 4] = Default::default();
    simulation(config(4)).run(|core| {
        words[core].load();
        order.borrow_mut().push(core);
    });
    assert_eq!(order.into_inner(), [0, 1, 2, 3]);
}

#[test]
fn outside_a_simulation_operations_do_nothing() {
    assert!(!hotrow_sim::is_active());
    access(8, 8, AccessKind::Store);
    pause();
    sleep(1 << 60);
    work(1 << 60);
    assert_eq!(now(), 0);
    assert_eq!(park_on(1, None), Woken::Refused);
    assert_eq!(unpark_all(1), 0);
    assert!(!should_stop());
    assert_eq!(hotrow_sim::current_core(), None);
}

#[test]
fn bodies_may_borrow_from_the_caller_and_return_values() {
    let text = String::from("shared");
    let outcome = simulation(config(3)).run(|core| {
        yield_now();
        format!("{text} {core} {:?}", hotrow_sim::current_core())
    });
    assert!(outcome.end.is_finished());
    assert_eq!(outcome.results[2].as_deref(), Some("shared 2 Some(2)"));
    assert_eq!(outcome.fates, [Fate::Finished; 3]);
}

#[test]
fn a_sleeper_sleeps_in_virtual_time() {
    for order in orders() {
        let outcome = simulation(Config { order, ..config(2) }).run(|core| {
            sleep(if core == 0 { 3_000_000_000 } else { 5 });
            now()
        });
        assert!(outcome.results[0].unwrap() >= 3_000_000_000);
    }
}

#[test]
fn a_woken_core_pays_for_its_wake_up() {
    let machine = Machine::named("drp").unwrap();
    let wake_ns = machine.nanoseconds.wake as u64;
    let word = Word::default();
    let outcome = simulation(Config::new(machine, 2)).run(|core| {
        if core == 0 {
            let woken = park_if(word.address(), None, || word.0.get() == 0);
            (woken, now())
        } else {
            work(1_000_000);
            word.store(1);
            let at = now();
            assert!(unpark_one(word.address()));
            assert!(!unpark_one(word.address()), "nobody is parked any more");
            (Woken::Notified, at)
        }
    });
    let (woken, at) = outcome.results[0].unwrap();
    assert_eq!(woken, Woken::Notified);
    assert!(at >= outcome.results[1].unwrap().1 + wake_ns);
}

#[test]
fn parking_ends_at_its_deadline_or_when_its_condition_fails() {
    for order in orders() {
        let outcome = simulation(Config { order, ..config(3) }).run(|core| match core {
            0 => (park_on(1, Some(50_000)), now()),
            1 => (park_if(1, None, || false), now()),
            _ => (park_on(1, Some(0)), now()),
        });
        let (woken, at) = outcome.results[0].unwrap();
        assert_eq!(woken, Woken::TimedOut);
        assert!((50_000..100_000).contains(&at), "{at}");
        assert_eq!(outcome.results[1].unwrap().0, Woken::Refused);
        assert_eq!(outcome.results[2].unwrap().0, Woken::TimedOut);
    }
}

#[test]
fn waiters_are_woken_in_the_order_in_which_they_parked() {
    let order = RefCell::new(Vec::new());
    simulation(config(5)).run(|core| {
        if core == 0 {
            work(100_000);
            while unpark_one(7) {
                work(100_000);
            }
        } else {
            work(10 * (5 - core as u64));
            park_on(7, None);
            order.borrow_mut().push(core);
        }
    });
    assert_eq!(order.into_inner(), [4, 3, 2, 1]);
}

#[test]
fn a_trace_has_the_last_steps_of_each_core() {
    let word = Word::default();
    let outcome = simulation(Config { trace_steps: 3, ..config(2) }).run(|core| {
        label(if core == 0 { "adding" } else { "looking" });
        for _ in 0..5 {
            if core == 0 {
                word.add(1);
            } else {
                word.load();
            }
        }
    });
    let trace = outcome.trace.to_string();
    assert_eq!(trace.lines().count(), 7, "{trace}");
    assert!(trace.contains("core 0     read-modify-write  line 0"), "{trace}");
    assert!(trace.contains("looking"), "{trace}");
}

#[test]
fn options_that_contradict_the_machine_are_refused() {
    let error = |config: Config| Simulation::new(config).unwrap_err().to_string();
    let this = || Machine::named("this").unwrap();
    assert_eq!(error(Config::new(this(), 3)), "3 cores were asked for; machine \"this\" runs 1 to 2");
    assert!(error(Config::new(this(), 0)).contains("0 cores"));
    let order = Order::Random { probability: 1.5 };
    assert!(error(Config { order, ..Config::new(this(), 2) }).contains("between 0 and 1"));
    let order = Order::Priorities { depth: 0, steps_expected: 1 };
    assert!(error(Config { order, ..Config::new(this(), 2) }).contains("at least 1"));
    assert!(error(Config { stack_bytes: 1, ..Config::new(this(), 2) }).contains("1 bytes"));
}
