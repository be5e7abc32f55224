//! The ends of runs and of cores: deadlock, limits, panics, faults.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hotrow_sim::*;

use crate::word::*;
use crate::{config, orders, simulation};

#[test]
fn a_deadlock_ends_the_run_and_names_the_parked_cores_with_their_keys() {
    for (order, ending) in orders().into_iter().zip([Ending::Abandon, Ending::Unwind, Ending::Abandon]) {
        let locks: [Mutex; 2] = Default::default();
        let outcome = simulation(Config { order, ending, grace_steps: 1000, ..config(3) }).try_run(|core| {
            if core == 2 {
                return;
            }
            label("first lock");
            locks[core].lock();
            sleep(100_000);
            label("second lock");
            locks[1 - core].lock();
        });
        let End::Deadlock { waiting } = &outcome.end else { panic!("{}", outcome.end) };
        let keys: Vec<usize> = waiting.iter().map(|waiting| waiting.key).collect();
        assert_eq!(keys, [locks[1].0.address(), locks[0].0.address()]);
        let text = outcome.end.to_string();
        assert!(text.contains("core 0 has waited on 0x") && text.contains("(second lock)"), "{text}");
        assert_eq!(outcome.fates, [Fate::Ended, Fate::Ended, Fate::Finished]);
    }
}

#[test]
fn limits_first_ask_cores_to_stop_and_then_end_the_run() {
    let word = Word::default();
    let polite = simulation(Config { until_ns: Some(10_000), ..config(4) }).run(|_| {
        while !should_stop() {
            word.add(1);
        }
    });
    assert!(polite.end.is_finished());
    assert!((10_000..12_000).contains(&polite.virtual_ns()), "{}", polite.virtual_ns());
    for (order, ending) in orders().into_iter().zip([Ending::Abandon, Ending::Unwind, Ending::Unwind]) {
        let endless = Config { order, ending, steps_max: Some(500), grace_steps: 500, ..config(4) };
        let outcome = simulation(endless).run(|_| {
            loop {
                word.add(1);
            }
        });
        assert!(matches!(outcome.end, End::StepLimit), "{}", outcome.end);
        assert_eq!(outcome.steps, 1000);
    }
    let late = simulation(Config { until_ns_hard: Some(10_000), ..config(4) }).run(|_| {
        loop {
            word.add(1);
        }
    });
    assert!(matches!(late.end, End::TimeLimit), "{}", late.end);
}

#[test]
fn unwinding_runs_destructors_even_if_they_wait_for_each_other() {
    struct Leaves<'a>(&'a Word, u64);
    impl Drop for Leaves<'_> {
        fn drop(&mut self) {
            self.0.0.set(self.0.0.get() + 1);
            while self.0.load() < self.1 {
                pause();
            }
        }
    }
    let left = Word::default();
    let ending = Ending::Unwind;
    let outcome =
        simulation(Config { ending, steps_max: Some(100), grace_steps: 100, ..config(4) }).run(|_| {
            let _leaves = Leaves(&left, 4);
            loop {
                yield_now();
            }
        });
    assert!(matches!(outcome.end, End::StepLimit));
    assert_eq!(left.0.get(), 4);
}

#[test]
fn a_panic_propagates_after_the_other_cores_have_ended() {
    for order in orders() {
        let stopped = Cell::new(0);
        let simulation = simulation(Config { order, ..config(4) });
        let run = || {
            simulation.run(|core| match core {
                0 => {
                    work(1000);
                    yield_now();
                    panic!("core 0 has had enough");
                }
                1 => drop(park_on(1, None)),
                _ => {
                    while !should_stop() {
                        pause();
                    }
                    stopped.set(stopped.get() + 1);
                }
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(run)).map(|_| ()).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"core 0 has had enough"));
        assert_eq!(stopped.get(), 2);
        assert!(!hotrow_sim::is_active());
    }
}

#[test]
fn try_run_returns_a_panic() {
    let outcome = simulation(config(2)).try_run(|core| {
        yield_now();
        if core == 1 {
            std::panic::resume_unwind(Box::new("quietly"));
        }
    });
    assert_eq!(outcome.end.to_string(), "core 1 panicked: quietly");
    assert_eq!(outcome.fates, [Fate::Finished, Fate::Panicked]);
}

#[test]
fn a_stopped_core_is_late_and_the_others_go_on() {
    let run = |stops| {
        let faults = Faults { stops, stop_ns_max: 1_000_000, kills: 0, within_steps: 100 };
        let words: Vec<Word> = (0..4).map(|_| Word::default()).collect();
        simulation(Config { faults, seed: 5, ..config(4) }).run(|core| {
            (0..100).for_each(|_| words[core].store(1));
        })
    };
    let (calm, struck) = (run(0), run(1));
    let late = struck.clocks_ns.iter().filter(|clock| **clock > calm.virtual_ns() + 90_000).count();
    assert_eq!(late, 1, "{:?}", struck.clocks_ns);
    assert!(struck.trace.to_string().contains("stopped (fault)") || struck.end.is_finished());
}

#[test]
fn a_killed_core_never_goes_on_and_its_lock_stays_locked() {
    for order in orders() {
        let faults = Faults { stops: 0, stop_ns_max: 0, kills: 1, within_steps: 40 };
        let (mut deadlocks, mut all_killed) = (0, 0);
        for seed in 0..30 {
            let dropped = Cell::new(0);
            struct Counts<'a>(&'a Cell<u32>);
            impl Drop for Counts<'_> {
                fn drop(&mut self) {
                    self.0.set(self.0.get() + 1);
                }
            }
            let (lock, faults, order) = (Mutex::default(), faults.clone(), order.clone());
            let outcome = simulation(Config { faults, seed, order, ..config(4) }).run(|_| {
                let _counts = Counts(&dropped);
                let _pin = crossbeam_epoch::pin();
                for _ in 0..5 {
                    lock.lock();
                    work(10);
                    lock.unlock();
                }
            });
            let killed = outcome.fates.iter().filter(|fate| **fate == Fate::Killed).count();
            all_killed += killed;
            let ended = outcome.fates.iter().filter(|fate| **fate == Fate::Ended).count();
            assert_eq!(dropped.get() as usize + killed + ended, 4, "the dead run no destructors");
            deadlocks += usize::from(matches!(outcome.end, End::Deadlock { .. }));
        }
        assert!((15..=30).contains(&all_killed), "{all_killed}: the last core alive is spared");
        assert!((1..30).contains(&deadlocks), "{deadlocks} of 30 died with the lock, or while taking it");
    }
    // SAFETY: the locks that the cores of these runs shared are gone, and the thread holds no pin.
    let freed = unsafe { hotrow_sim::forget_abandoned_cores() };
    assert!(freed >= 45);
    assert!(!crossbeam_epoch::is_pinned(), "no pin is left, so what is retired gets freed");
}
