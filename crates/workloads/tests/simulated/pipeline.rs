//! Transactions in line under the protocols that defer operations, in many schedules on virtual cores (drp §4.1, §4.2).

use hotrow::operations::Constant;
use hotrow::protocols::{Any, PROTOCOLS, ProtocolInfo};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Engine, Profile, RetryPolicy, TArray, TBox, Transaction, Worker};
use hotrow_sim::{Config, Faults, Machine, Order, Simulation, SimulationReport};
use hotrow_workloads::explore::{Drawn, explore};
use std::cell::{Cell, RefCell};

pub(super) type Tx<'w> = Transaction<'w, Any>;
type Body<'a> = &'a (dyn Fn(&mut Tx<'_>) -> Result<(), Abort> + Sync);

pub(super) fn engine(protocol: &str) -> Engine<Any> {
    Engine::named(protocol, RetryPolicy::default()).expect("a name from the registry, or one made from it")
}

/// The protocols that defer operations.
pub(super) fn deferring() -> impl Iterator<Item = &'static ProtocolInfo> {
    PROTOCOLS.iter().filter(|protocol| protocol.defers)
}

/// Runs one transaction on each core in a schedule that a seed stands for, with stops in the midst of it. All must
/// commit; deadlocks and runs without an end fail. Returns how many attempts were aborted.
fn run(engine: &Engine<Any>, bodies: &[Body<'_>], seed: u64) -> u64 {
    run_with_readers(engine, bodies, &[], seed)
}

/// As [`run`], with transactions that only read, and say so.
fn run_with_readers(engine: &Engine<Any>, writers: &[Body<'_>], readers: &[Body<'_>], seed: u64) -> u64 {
    let bodies = [writers, readers].concat();
    simulate(engine, bodies.len(), seed, 100_000, |core, worker| {
        let profile = if core < writers.len() { Profile::UNKNOWN } else { Profile::READ_ONLY };
        assert_eq!(worker.try_transact_as(profile, |tx| bodies[core](tx)), Ok(()), "schedule {seed}");
    });
    engine.statistics().aborts
}

/// Runs something on each core in a schedule that a seed stands for, with stops in the midst of it. Deadlocks and runs
/// without an end fail.
pub(super) fn simulate(
    engine: &Engine<Any>,
    cores: usize,
    seed: u64,
    stop_ns_max: u64,
    work: impl Fn(usize, &mut Worker<Any>),
) {
    let mut random = Random::seeded(seed);
    let machine = Machine::named("server-128").expect("a machine that comes with the simulator");
    let mut config = Config::new(machine, cores);
    config.seed = seed;
    config.order = match random.below(2) {
        0 => Order::Priorities { depth: 3, steps_expected: 60 * cores as u64 },
        _ => Order::Random { probability: 0.3 },
    };
    config.caches = false;
    config.steps_max = Some(200_000);
    config.faults = Faults { stops: 2, stop_ns_max, kills: 0, within_steps: 100 };
    let workers: Vec<_> = (0..cores).map(|_| RefCell::new(Some(engine.worker().unwrap()))).collect();
    let SimulationReport { end, results, .. } =
        Simulation::new(config).expect("options that can be").try_run(|core| {
            let mut worker = workers[core].take().expect("each core has its own");
            work(core, &mut worker);
        });
    assert!(end.is_finished(), "schedule {seed}: {end}");
    assert!(results.iter().all(Option::is_some), "schedule {seed}");
}

pub(super) const SCHEDULES: u64 = 1_000;

/// Boxes in the order of their ranks, and something to look at their values with.
pub(super) fn boxes<const N: usize>(engine: &Engine<Any>) -> [TBox<u64, Any>; N] {
    std::array::from_fn(|number| {
        let mut made = TBox::new(engine, 0);
        made.set_rank(number as u16);
        made
    })
}

pub(super) fn add(to: &TBox<u64, Any>, tx: &mut Tx<'_>, amount: u64) -> Result<(), Abort> {
    to.defer_update(tx, (), move |value, ()| *value = value.wrapping_add(amount)).map(drop)
}

#[test]
fn three_transactions_each_behind_another_do_not_wait_in_a_circle() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let [x, y, z] = boxes(&engine);
            let first = |tx: &mut Tx<'_>| add(&x, tx, 1).and_then(|()| add(&z, tx, 1));
            let second = |tx: &mut Tx<'_>| add(&x, tx, 10).and_then(|()| add(&y, tx, 10));
            let third = |tx: &mut Tx<'_>| add(&y, tx, 100).and_then(|()| add(&z, tx, 100));
            let aborts = run(&engine, &[&first, &second, &third], seed);
            assert_eq!(aborts, 0, "tame transactions are never aborted");
            let values = engine.transact(|tx| Ok([x.get(tx)?, y.get(tx)?, z.get(tx)?]));
            assert_eq!(values, Ok([11, 110, 101]));
        }
    }
}

#[test]
fn three_transactions_that_read_what_another_writes_are_in_one_order() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let [x, y, z] = boxes(&engine);
            // Each writes one more than it has read.
            let follow = |from: &TBox<u64, Any>, to: &TBox<u64, Any>, tx: &mut Tx<'_>| {
                let seen = from.defer_read(tx, |value| *value)?;
                let more = tx.compute(seen, |seen| seen + 1)?;
                to.defer_set(tx, more)
            };
            let first = |tx: &mut Tx<'_>| follow(&x, &z, tx);
            let second = |tx: &mut Tx<'_>| follow(&y, &x, tx);
            let third = |tx: &mut Tx<'_>| follow(&z, &y, tx);
            assert_eq!(run(&engine, &[&first, &second, &third], seed), 0);
            let mut values = engine.transact(|tx| Ok([x.get(tx)?, y.get(tx)?, z.get(tx)?])).unwrap();
            values.sort_unstable();
            // In a circle, none of them would have read a zero, or all three.
            assert!([[1, 1, 2], [1, 2, 3]].contains(&values), "{protocol:?}, schedule {seed}: {values:?}");
        }
    }
}

#[test]
fn long_chains_of_tame_transactions_end_without_an_abort() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let cells = TArray::new(&engine, 5, |_| 0u64);
            let plans: Vec<Vec<(usize, bool)>> = (0..6)
                .map(|core| {
                    let mut random = Random::stream(seed, core);
                    (0..3).map(|_| (random.below(5) as usize, random.chance(0.5))).collect()
                })
                .collect();
            let body = |core: usize| {
                let (plan, cells) = (&plans[core], &cells);
                move |tx: &mut Tx<'_>| {
                    for (cell, writes) in plan {
                        if *writes {
                            cells.defer_update(tx, *cell, (), |value, ()| *value += 1)?;
                        } else {
                            cells.defer_read(tx, *cell, |_| ())?;
                        }
                    }
                    Ok(())
                }
            };
            let bodies: Vec<_> = (0..6).map(body).collect();
            let bodies: Vec<Body<'_>> = bodies.iter().map(|body| body as Body<'_>).collect();
            assert_eq!(run(&engine, &bodies, seed), 0);
            let writes = plans.iter().flatten().filter(|(_, writes)| *writes).count() as u64;
            let sum =
                engine.transact(|tx| (0..5).map(|cell| cells.get(tx, cell)).sum::<Result<u64, Abort>>());
            assert_eq!(sum, Ok(writes));
        }
    }
}

#[test]
fn a_wild_reader_never_sees_half_of_a_tame_transaction() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let [x, y, z] = boxes(&engine);
            let tame = |tx: &mut Tx<'_>| {
                let seen = x.defer_update(tx, (), |value, ()| {
                    *value += 1;
                    *value
                })?;
                y.defer_set(tx, seen)
            };
            let reader = |tx: &mut Tx<'_>| {
                let (one, other) = (x.get(tx)?, y.get(tx)?);
                z.set(tx, one.abs_diff(other))
            };
            let late_reader = |tx: &mut Tx<'_>| {
                let one = x.get(tx)?;
                let other = y.defer_read(tx, |value| *value)?;
                let apart = tx.compute(other, move |other| one.abs_diff(other))?;
                z.defer_update(tx, apart, |value, apart| *value += apart).map(drop)
            };
            run(&engine, &[&tame, &reader, &late_reader, &tame], seed);
            let values = engine.transact(|tx| Ok([x.get(tx)?, y.get(tx)?, z.get(tx)?]));
            assert_eq!(values, Ok([2, 2, 0]), "{protocol:?}, schedule {seed}");
        }
    }
}

/// A transaction behind an insertion must not let others in front of it before the key is there: the first inserts a key, the
/// second reads what the first writes and what the third overwrites, the third finds no key.
#[test]
fn a_transaction_that_finds_no_key_is_before_all_that_are_behind_its_insertion() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let [x, y, seen, absent] = boxes(&engine);
            let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
            let first = |tx: &mut Tx<'_>| {
                add(&x, tx, 1)?;
                rows.defer_insert(tx, 7u64, 7u64).map(drop)
            };
            let second = |tx: &mut Tx<'_>| {
                let overwritten = y.defer_read(tx, |value| *value)?;
                let written = x.defer_read(tx, |value| *value)?;
                seen.defer_set(tx, written * 10 + overwritten)
            };
            let third = |tx: &mut Tx<'_>| {
                let found = rows.get(tx, &7)?;
                y.set(tx, 1)?;
                absent.set(tx, u64::from(found.is_none()))
            };
            run(&engine, &[&first, &second, &third], seed);
            let values = engine.transact(|tx| Ok((seen.get(tx)?, absent.get(tx)?))).unwrap();
            assert_ne!(values, (10, 1), "{protocol:?}, schedule {seed}");
        }
    }
}

/// As `hotrow explore`; `HOTROW_SCHEDULES` says how many.
#[test]
#[ignore = "long: run with -- --ignored"]
fn very_many_schedules_of_stress_are_what_each_variant_claims() {
    let schedules = std::env::var("HOTROW_SCHEDULES").ok();
    let schedules = schedules.map_or(20_000, |number| number.parse().expect("a number"));
    for protocol in deferring() {
        let (mut commits, mut aborts) = (0, 0);
        for seed in 0..schedules {
            match explore::<Any>(&Drawn::new(seed, 100), protocol.name, 60, |_| ()) {
                Ok(explored) => {
                    commits += explored.commits;
                    aborts += explored.aborts;
                }
                Err(violation) => panic!("{}: {violation}\n{}", protocol.name, violation.trace),
            }
        }
        println!("{}: {schedules} schedules, {commits} commits, {aborts} aborts", protocol.name);
    }
}

#[test]
fn a_read_only_transaction_sees_one_state_among_writers_that_are_always_in_line() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES / 6 {
            let engine = engine(protocol.name);
            let boxes: [TBox<u64, Any>; 4] = boxes(&engine);
            let plans: Vec<[u64; 4]> = (0..6)
                .map(|core| {
                    let mut random = Random::stream(seed, core);
                    std::array::from_fn(|_| random.below(4))
                })
                .collect();
            let body = |core: usize| {
                let (plan, boxes) = (&plans[core], &boxes);
                move |tx: &mut Tx<'_>| {
                    for pair in plan.chunks(2) {
                        add(&boxes[pair[0] as usize], tx, 1)?;
                        boxes[pair[1] as usize]
                            .defer_update(tx, (), |value, ()| *value = value.wrapping_sub(1))?;
                    }
                    Ok(())
                }
            };
            let seen: [AtomicU64; 2] = Default::default();
            let reader = |core: usize| {
                let (plan, boxes, seen) = (&plans[core], &boxes, &seen);
                move |tx: &mut Tx<'_>| {
                    // From any of them on, in both directions of ranks.
                    let mut sum = 0u64;
                    for at in 0..4 {
                        let at = if plan[1] < 2 { plan[0] + at } else { plan[0] + 4 - at };
                        sum = sum.wrapping_add(boxes[at as usize % 4].get(tx)?);
                    }
                    // Relaxed: looked at when all is over. The last attempt's is the one that counts.
                    seen[core - 4].store(sum, Ordering::Relaxed);
                    Ok(())
                }
            };
            let writers = [body(0), body(1), body(2), body(3)];
            let readers = [reader(4), reader(5)];
            let writers: Vec<Body<'_>> = writers.iter().map(|body| body as Body<'_>).collect();
            let readers: Vec<Body<'_>> = readers.iter().map(|body| body as Body<'_>).collect();
            run_with_readers(&engine, &writers, &readers, seed);
            let seen = seen.map(AtomicU64::into_inner);
            assert_eq!(seen, [0, 0], "{protocol:?}, schedule {seed}: half of a transaction");
        }
    }
}

#[test]
fn a_transaction_that_queues_for_a_new_row_before_its_maker_has_left_it_is_woken() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES {
            let engine = engine(protocol.name);
            let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
            let updates = Cell::new(0);
            // Stops long enough for others to park.
            simulate(&engine, 3, seed, 1_000_000, |core, worker| {
                if core == 0 {
                    let inserted =
                        worker.transact_deferred(|tx| table.defer_insert(tx, Constant(1), Constant(0)));
                    assert_eq!(inserted, Ok(true));
                } else {
                    // Comes as soon as the row is there, unless the other core does not come at all.
                    let update = |tx: &mut Tx<'_>| table.defer_update(tx, &1, (), |row, ()| *row += 1);
                    let updated = (0..50).find_map(|_| worker.transact_deferred(update).unwrap());
                    updates.set(updates.get() + u64::from(updated.is_some()));
                }
            });
            let updated = engine.transact(|tx| table.get(tx, &1));
            assert_eq!(updated, Ok(Some(updates.get())), "{protocol:?}, schedule {seed}");
        }
    }
}
