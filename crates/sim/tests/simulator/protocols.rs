//! Small protocols built on the operations, under several schedules.

use std::cell::{Cell, RefCell};

use hotrow_sim::*;

use crate::word::*;
use crate::{config, orders, simulation};

#[test]
fn a_lock_and_a_counter_work_on_any_number_of_cores_in_any_order() {
    for cores in [1, 2, 3, 64, 1024] {
        for order in orders() {
            let (lock, count) = (Mutex::default(), Cell::new(0_u64));
            let steps_max = Some(10_000_000);
            let simulation = simulation(Config { order, steps_max, ..config(cores) });
            let outcome = simulation.run(|_| {
                for _ in 0..3 {
                    lock.lock();
                    let seen = count.get();
                    access(count.as_ptr() as usize, 8, AccessKind::Load);
                    work(10);
                    access(count.as_ptr() as usize, 8, AccessKind::Store);
                    count.set(seen + 1);
                    lock.unlock();
                }
            });
            assert!(outcome.end.is_finished(), "{cores} cores: {}", outcome.end);
            assert_eq!(count.get(), 3 * cores as u64);
        }
    }
}

#[test]
fn a_queue_lock_serves_in_the_order_of_arrival_and_works_in_any_order() {
    for (cores, order) in [(2, 0), (100, 0), (16, 1), (16, 2)] {
        let order = orders()[order].clone();
        let waiters: Vec<Waiter> = (0..cores).map(|_| Waiter::default()).collect();
        let (lock, inside, served) = (QueueLock::default(), Cell::new(false), RefCell::new(Vec::new()));
        let simulation = simulation(Config { order, steps_max: Some(10_000_000), ..config(cores) });
        let outcome = simulation.run(|core| {
            work(core as u64 * 10);
            for _ in 0..2 {
                lock.lock(&waiters, core);
                assert!(!inside.replace(true));
                served.borrow_mut().push(core);
                work(50);
                yield_now();
                inside.set(false);
                lock.unlock(&waiters, core);
            }
        });
        assert!(outcome.end.is_finished(), "{}", outcome.end);
        assert_eq!(served.borrow().len(), 2 * cores);
        assert_eq!(served, lock.arrived);
    }
}

#[test]
fn a_custom_schedule_steps_an_interleaving_by_hand() {
    struct Script(Vec<usize>);
    impl Schedule for Script {
        fn choose(&mut self, choice: &Choice<'_>) -> usize {
            if self.0.is_empty() { choice.runnable[0] as usize } else { self.0.remove(0) }
        }
    }
    let words: [Word; 2] = Default::default();
    // The schedule chooses at the start, before each step of the current core, and when a core has returned.
    let script = Script(vec![0, 0, 1, 1, 0, 1, 0, 1]);
    let order = RefCell::new(Vec::new());
    simulation(config(2)).try_run_with(Box::new(script), |core| {
        for step in 0..3 {
            words[core].load();
            order.borrow_mut().push((core, step));
        }
    });
    assert_eq!(order.into_inner(), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
}

/// Returns true if a lost update happened: both cores read before either wrote.
fn lost_update(order: Order, seed: u64) -> bool {
    let word = Word::default();
    let _: SimulationReport<()> =
        simulation(Config { order, seed, caches: false, ..config(2) }).run(|core| {
            if core == 1 {
                // Far apart in time, so that by the clocks the two cores never overlap.
                work(100_000);
            }
            let seen = word.load();
            word.store(seen + 1);
        });
    word.0.get() != 2
}

#[test]
fn priorities_find_a_bug_of_depth_two_that_the_clocks_never_show() {
    let found = |order: &Order| (0..200).filter(|seed| lost_update(order.clone(), *seed)).count();
    assert_eq!(found(&Order::LeastClock), 0);
    assert_eq!(found(&Order::Priorities { depth: 1, steps_expected: 4 }), 0);
    let expected = found(&Order::Priorities { depth: 2, steps_expected: 4 });
    // At least 1 / (n k) = 1 / 8 of the runs, by the paper's theorem.
    assert!(expected >= 200 / 8, "{expected} of 200");
    assert!(found(&Order::Random { probability: 0.5 }) > 10);
}
