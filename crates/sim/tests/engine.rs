//! Turns, waiting, endings and faults.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hotrow_sim::{
    Config, End, Ending, Fate, Faults, Kind, Machine, Order, Outcome, Simulation, Woken, access, label, now,
    park_if, park_on, pause, should_stop, sleep, unpark_all, unpark_one, work, yield_now,
};

fn config(cores: usize) -> Config {
    Config::new(Machine::named("mesh-1024").unwrap(), cores)
}

fn simulation(config: Config) -> Simulation {
    Simulation::new(config).unwrap()
}

/// A word on a line of its own, so that lines do not depend on the allocator.
#[repr(align(64))]
#[derive(Default)]
struct Word(Cell<u64>);

impl Word {
    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    fn load(&self) -> u64 {
        access(self.address(), 8, Kind::Load);
        self.0.get()
    }

    fn store(&self, value: u64) {
        access(self.address(), 8, Kind::Store);
        self.0.set(value);
    }

    fn add(&self, value: u64) -> u64 {
        access(self.address(), 8, Kind::ReadModifyWrite);
        self.0.replace(self.0.get() + value)
    }

    fn swap(&self, value: u64) -> u64 {
        access(self.address(), 8, Kind::ReadModifyWrite);
        self.0.replace(value)
    }
}

/// A mutex that parks: 0 free, 1 held, 2 held and wanted.
#[derive(Default)]
struct Mutex(Word);

impl Mutex {
    fn lock(&self) {
        if self.0.swap(1) == 0 {
            return;
        }
        while self.0.swap(2) != 0 {
            park_if(self.0.address(), None, || self.0.0.get() == 2);
        }
    }

    fn unlock(&self) {
        if self.0.swap(0) == 2 {
            unpark_one(self.0.address());
        }
    }
}

fn orders() -> [Order; 3] {
    [
        Order::LeastClock,
        Order::Random { probability: 0.2 },
        Order::Priorities { depth: 3, steps_expected: 1000 },
    ]
}

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
fn equal_clocks_go_by_number() {
    let order = RefCell::new(Vec::new());
    let words: [Word; 4] = Default::default();
    simulation(config(4)).run(|core| {
        words[core].load();
        order.borrow_mut().push(core);
    });
    assert_eq!(order.into_inner(), [0, 1, 2, 3]);
}

#[test]
fn outside_of_a_simulation_everything_does_nothing() {
    assert!(!hotrow_sim::is_active());
    access(8, 8, Kind::Store);
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
fn cores_may_borrow_and_return_values() {
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
fn a_parked_core_is_woken_and_pays_for_it() {
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
fn a_deadlock_ends_the_run_and_names_who_waits_on_what() {
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
        assert!(text.contains("core 0 waits on 0x") && text.contains("(second lock)"), "{text}");
        assert_eq!(outcome.fates, [Fate::Ended, Fate::Ended, Fate::Finished]);
    }
}

#[test]
fn limits_ask_first_and_end_then() {
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
fn unwinding_runs_destructors_even_those_that_wait_for_each_other() {
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
fn a_panic_comes_out_after_the_others_have_ended() {
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
fn a_panic_can_be_looked_at() {
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
                    access(count.as_ptr() as usize, 8, Kind::Load);
                    work(10);
                    access(count.as_ptr() as usize, 8, Kind::Store);
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
        assert!((1..30).contains(&deadlocks), "{deadlocks} of 30 died with the lock, or on the way to it");
    }
    // SAFETY: the locks that the cores of these runs shared are gone.
    let freed = unsafe { hotrow_sim::free_abandoned_stacks() };
    assert!(freed >= 45);
}

#[test]
fn a_trace_tells_the_last_steps() {
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

/// Lost update: two cores read, and then both write.
fn lost_update(order: Order, seed: u64) -> bool {
    let word = Word::default();
    let _: Outcome<()> = simulation(Config { order, seed, caches: false, ..config(2) }).run(|core| {
        if core == 1 {
            // Far apart in time, so that the clocks never let them meet.
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
