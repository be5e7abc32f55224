//! Random programs under random options: they end, lose nothing, and end the same way twice.

use std::cell::Cell;

use hotrow_sim::{
    Config, CoreLocal, End, Ending, Fate, Faults, Machine, Order, Random, Simulation, fence, htm, label, now,
    park_on, pause, should_stop, sleep, unpark_all, unpark_one, work, yield_now,
};

use crate::word::{Mutex, Word, words};

/// Counts its live instances.
struct Counted<'a>(&'a Cell<i64>, &'a Word);

impl<'a> Counted<'a> {
    fn new(living: &'a Cell<i64>, word: &'a Word) -> Self {
        living.set(living.get() + 1);
        Self(living, word)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
        // A step in a destructor: it may switch in the middle of unwinding, and may itself unwind.
        self.1.touch();
    }
}

static LOCAL: CoreLocal<Cell<u64>> = CoreLocal::new(|| Cell::new(0));

fn options(random: &mut Random) -> Config {
    let order = match random.below(3) {
        0 => Order::LeastClock,
        1 => Order::Random { probability: random.unit() },
        _ => Order::Priorities { depth: 1 + random.below(4) as u32, steps_expected: 500 },
    };
    let faults = Faults {
        stops: random.below(3) as u32,
        stop_ns_max: random.below(100_000),
        kills: random.below(2) as u32,
        within_steps: 1 + random.below(800),
    };
    Config {
        seed: random.next_u64(),
        order,
        faults,
        caches: random.chance(0.7),
        until_ns: random.chance(0.3).then(|| random.below(50_000)),
        until_ns_hard: random.chance(0.2).then(|| random.below(1_000_000)),
        steps_max: Some(200 + random.below(2000)),
        grace_steps: random.below(500),
        ending: if random.chance(0.5) { Ending::Unwind } else { Ending::Abandon },
        ..Config::new(Machine::named("dbx-tc").unwrap(), 1 + random.below(8) as usize)
    }
}

/// Runs a random program. Returns the hash of the run, and its end, results and last steps as text.
fn run(seed: u64) -> (u64, String) {
    let mut random = Random::stream(seed, 100);
    let config = options(&mut random);
    let turns = 20 + random.below(60);
    // A core that is ended by unwinding while it unwinds from a panic aborts the process.
    let panics = config.ending == Ending::Abandon && random.chance(0.2);
    let (lock, shared, accounts, living) = (Mutex::default(), words(4), words(3), Cell::new(0));
    accounts.iter().for_each(|account| account.0.set(100));
    let outcome = Simulation::new(config.clone()).unwrap().try_run(|core| {
        let mut random = Random::stream(seed, core as u64);
        let _counted = Counted::new(&living, &shared[3]);
        for _ in 0..turns {
            if should_stop() {
                break;
            }
            LOCAL.with(|local| local.set(local.get() + 1));
            let word = &shared[random.below(3) as usize];
            let key = random.below(2) as usize;
            match random.below(14) {
                0 => drop(word.add(1)),
                1 => word.touch(),
                2 => word.store(core as u64),
                3 => fence(),
                4 => pause(),
                5 => yield_now(),
                6 => sleep(random.below(2000)),
                7 => work(random.below(300)),
                8 => drop(park_on(key, Some(now() + random.below(20_000)))),
                9 => drop(unpark_one(key)),
                10 => drop(unpark_all(key)),
                11 => {
                    label("locked");
                    lock.lock();
                    word.touch();
                    lock.unlock();
                    label("");
                }
                12 if panics && random.chance(0.05) => std::panic::resume_unwind(Box::new("chaos")),
                _ => {
                    let (from, to) = (random.below(3) as usize, random.below(3) as usize);
                    let code = random.below(10);
                    let _ = htm::run(|| {
                        let _counted = Counted::new(&living, &shared[3]);
                        let amount = accounts[from].load() / 10;
                        accounts[from].store(accounts[from].load() - amount);
                        if code == 0 {
                            htm::abort(1);
                        }
                        accounts[to].store(accounts[to].load() + amount);
                    });
                }
            }
        }
        LOCAL.with(Cell::get)
    });
    let total: u64 = accounts.iter().map(|account| account.0.get()).sum();
    assert_eq!(total, 300, "seed {seed}: a region is all or nothing\n{}", outcome.trace);
    let left = outcome.fates.iter().filter(|fate| matches!(fate, Fate::Killed | Fate::Ended)).count();
    // Each core has at most two instances.
    assert!(
        (0..=2 * left as i64).contains(&living.get()),
        "seed {seed}: {} live, {} {:?} {:?}\n{}",
        living.get(),
        outcome.end,
        outcome.fates,
        config,
        outcome.trace
    );
    if outcome.fates.iter().all(|fate| *fate == Fate::Finished) {
        assert!(outcome.end.is_finished() && outcome.results.iter().all(Option::is_some), "seed {seed}");
    }
    let end = match &outcome.end {
        // Keys are addresses, which differ.
        End::Deadlock { waiting } => format!("deadlock of {}", waiting.len()),
        end => end.to_string(),
    };
    let (fates, results) = (&outcome.fates, &outcome.results);
    (outcome.hash(), format!("{end}: {} steps, {fates:?}, {results:?}\n{}", outcome.steps, outcome.trace))
}

#[test]
fn random_programs_end_and_end_the_same_way_twice() {
    let mut ends = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..300 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first.1, second.1, "seed {seed}");
        assert_eq!(first.0, second.0, "seed {seed}");
        let (end, _) = first.1.split_once(':').unwrap();
        let kinds = ["finished", "deadlock", "limit", "panicked"];
        let end = kinds.into_iter().find(|kind| end.contains(kind)).unwrap();
        *ends.entry(end).or_default() += 1;
        // SAFETY: everything that the cores of these runs shared was dropped at the end of `run`, and the thread holds no pin.
        unsafe { hotrow_sim::forget_abandoned_cores() };
    }
    assert_eq!(ends.len(), 4, "programs end in many ways: {ends:?}");
}
