//! The scenarios, each under every protocol, with transactions that block their core and with tasks.

use crate::crew;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::event::Event;
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Direction, Engine, Error, Protocol, RetryPolicy, TBox, TCounter, TQueue, Table,
    Transaction, Value, Worker, column_of,
};
use std::future::Future;
use std::ops::ControlFlow;
use std::task::{Context, Poll, Wake, Waker};

/// The number of schedules, over all protocols together.
fn schedules() -> u64 {
    let number = std::env::var("HOTROW_WAITING_SCHEDULES");
    number.map_or(1_200, |number| number.parse().expect("HOTROW_WAITING_SCHEDULES is a number"))
}

/// A run of a few transactions on an engine, in the schedule of a seed.
trait Scenario: Copy {
    fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64);
}

#[derive(Clone, Copy)]
struct InAllSchedules<S>(S, u64);

impl<S: Scenario> Visitor for InAllSchedules<S> {
    type Output = ();
    fn visit<P: Protocol>(self, name: &str) {
        eprintln!("protocol {name}");
        for seed in 0..self.1 {
            let engine = Engine::<P>::named(name, RetryPolicy::default()).expect("a registered name");
            self.0.run(&engine, seed);
        }
    }
}

/// Runs a scenario in all schedules under each protocol. The history of some of them is judged.
fn explore(scenario: impl Scenario) {
    let protocols = hotrow::protocols::PROTOCOLS.len() as u64;
    for_each_protocol(4, InAllSchedules(scenario, schedules().div_ceil(protocols)));
}

/// Runs a transaction on a core: as a call, or as a future in a run whose seed is odd by its fourth bit.
fn transact<P: Protocol, R>(
    engine: &Engine<P>,
    worker: &mut Worker<P>,
    seed: u64,
    body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
) -> Result<R, Error> {
    if seed & 16 == 0 { worker.transact(body) } else { block_on(engine.transact_async(body)) }
}

/// Polls a future on a core, which parks until the future's task is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    #[derive(Default)]
    struct Woken {
        is_woken: AtomicU64,
        event: Event,
    }
    impl Wake for Woken {
        fn wake(self: std::sync::Arc<Self>) {
            self.is_woken.store(1, Ordering::Release);
            self.event.notify_all();
        }
    }
    let woken = std::sync::Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // A task that wants to be polled again at once lets others run before, as it would on an executor with other tasks.
        thread::yield_now();
        woken.event.park_until(None, || woken.is_woken.swap(0, Ordering::AcqRel) == 1);
    }
}

/// Runs work on each core, and judges the history of each eighth run.
fn judged<P: Protocol>(engine: &Engine<P>, cores: usize, seed: u64, work: impl Fn(usize, &mut Worker<P>)) {
    let recording = seed.is_multiple_of(8).then(|| engine.record_history(1 << 20).unwrap());
    crew::run(engine, cores, seed, work);
    if let Some(recording) = recording {
        let report = hotrow_check::check(&recording.finish()).unwrap();
        assert!(report.is(report.claimed()), "seed {seed}: {report}");
    }
}

#[test]
fn producers_and_consumers_of_a_bounded_buffer_all_end() {
    #[derive(Clone, Copy)]
    struct Buffer;
    impl Scenario for Buffer {
        fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64) {
            let (buffer, free) = (TQueue::new(engine), TCounter::new(engine, 1 + (seed % 2) as i64));
            judged(engine, 4, seed, |core, worker| {
                for number in 0..3u64 {
                    let ended = if core < 2 {
                        transact(engine, worker, seed, |tx| {
                            if !free.is_at_least(tx, 1)? {
                                return tx.retry();
                            }
                            free.add(tx, -1)?;
                            buffer.push(tx, number)
                        })
                    } else {
                        transact(engine, worker, seed, |tx| match buffer.pop(tx)? {
                            None => tx.retry(),
                            Some(_) => free.add(tx, 1),
                        })
                    };
                    assert_eq!(ended, Ok(()), "seed {seed}");
                }
            });
            assert_eq!(engine.transact(|tx| buffer.is_empty(tx)), Ok(true), "seed {seed}");
        }
    }
    explore(Buffer);
}

#[test]
fn rows_that_come_and_go_wake_those_that_wait_for_them() {
    /// Each core waits for its key, deletes it, and inserts the next one's, with others that make nodes split and vanish.
    #[derive(Clone, Copy)]
    struct Relay;
    impl Scenario for Relay {
        fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64) {
            let database = Database::on(engine);
            let rows = match seed % 2 {
                0 => database.table::<u64, u64>("rows").hash(1).create().unwrap(),
                _ => database.table::<u64, u64>("rows").ordered().create().unwrap(),
            };
            // A full leaf, or nearly so.
            rows.bulk_insert((0..seed / 2 % 16).map(|key| (1_000 * key + 999, 0))).unwrap();
            rows.bulk_insert([(0, 0)]).unwrap();
            let is_scanned = seed % 4 == 3;
            judged(engine, 3, seed, |core, worker| {
                for round in 0..2 {
                    let key = (3 * round + core as u64) * 1_000;
                    let passed = transact(engine, worker, seed, |tx| pass_on(&rows, tx, key, is_scanned));
                    assert_eq!(passed, Ok(()), "seed {seed}");
                }
            });
        }
    }

    fn pass_on<P: Protocol>(
        rows: &Table<u64, u64, P>,
        tx: &mut Transaction<'_, P>,
        key: u64,
        is_scanned: bool,
    ) -> Result<(), Abort> {
        let mut is_there = false;
        if is_scanned {
            rows.scan(tx, key..key + 999, Direction::Ascending, |_, _| {
                is_there = true;
                ControlFlow::Break(())
            })?;
        } else {
            is_there = rows.get(tx, &key)?.is_some();
        }
        if !is_there {
            return tx.retry();
        }
        rows.delete(tx, &key)?;
        // Into the neighbourhood of what others wait for.
        for near in 1..4 {
            rows.insert(tx, 1_000_000 + key + near, 0)?;
        }
        rows.insert(tx, key + 1_000, 0)
    }
    explore(Relay);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
struct Stock {
    left: u64,
}

#[test]
fn alternatives_and_conditions_are_woken_by_whatever_makes_them_hold() {
    /// One core waits for either of two things, one for enough of a stock, and the others provide.
    #[derive(Clone, Copy)]
    struct Either;
    impl Scenario for Either {
        fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64) {
            let stocks = Database::on(engine).table::<u64, Stock>("stocks").hash(1).create().unwrap();
            stocks.bulk_insert([(0, Stock { left: 0 })]).unwrap();
            let flags = [TBox::new(engine, 0u64), TBox::new(engine, 0u64)];
            judged(engine, 4, seed, |core, worker| {
                let take = |tx: &mut Transaction<'_, P>, which: usize| match flags[which].get(tx)? {
                    0 => tx.retry(),
                    flag => flags[which].set(tx, flag - 1),
                };
                let ended = match core {
                    0 => (0..4).try_for_each(|_| {
                        transact(engine, worker, seed, |tx| tx.or_else(|tx| take(tx, 0), |tx| take(tx, 1)))
                    }),
                    1 => transact(engine, worker, seed, |tx| {
                        let is_enough = stocks.subtract_if_enough(tx, &0, column_of!(Stock, left), 4)?;
                        if is_enough { Ok(()) } else { tx.retry() }
                    }),
                    _ => (0..2).try_for_each(|_| {
                        transact(engine, worker, seed, |tx| {
                            flags[core - 2].update(tx, |flag| *flag += 1)?;
                            stocks.add(tx, &0, column_of!(Stock, left), 1)
                        })
                    }),
                };
                assert_eq!(ended, Ok(()), "seed {seed}");
            });
            let left = engine.transact(|tx| Ok([flags[0].get(tx)?, flags[1].get(tx)?]));
            assert_eq!(left, Ok([0, 0]), "seed {seed}");
        }
    }
    explore(Either);
}

#[test]
fn elements_that_come_at_once_reach_all_that_wait_although_some_take_none() {
    /// Three cores wait for an element of a queue, or a permit, and one provides; another one of three gives its first one back.
    #[derive(Clone, Copy)]
    struct Takers;
    impl Scenario for Takers {
        fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64) {
            let (queue, permits) = (TQueue::new(engine), TCounter::new(engine, 0));
            let is_queue = seed.is_multiple_of(2);
            let give = |tx: &mut Transaction<'_, P>| match is_queue {
                true => queue.push(tx, ()),
                false => permits.add(tx, 1),
            };
            let take = |tx: &mut Transaction<'_, P>, returns: bool| {
                let is_there = match is_queue {
                    true => queue.pop(tx)?.is_some(),
                    false => permits.is_at_least(tx, 1)? && permits.add(tx, -1).map(|()| true)?,
                };
                match (is_there, returns) {
                    (false, _) => tx.retry(),
                    (true, true) => Err(Abort::rollback()),
                    (true, false) => Ok(()),
                }
            };
            judged(engine, 4, seed, |core, worker| match core {
                0 => {
                    for count in if seed & 2 == 0 { [3, 0] } else { [1, 2] } {
                        let given = worker.transact(|tx| (0..count).try_for_each(|_| give(tx)));
                        assert_eq!(given, Ok(()), "seed {seed}");
                    }
                }
                _ => {
                    if core as u64 == 1 + seed % 3 {
                        let refused = transact(engine, worker, seed, |tx| take(tx, true));
                        assert!(matches!(refused, Err(Error::Rollback(_))), "seed {seed}: {refused:?}");
                    }
                    let taken = transact(engine, worker, seed, |tx| take(tx, false));
                    assert_eq!(taken, Ok(()), "seed {seed}");
                }
            });
        }
    }
    explore(Takers);
}

#[test]
fn keys_that_are_inserted_and_taken_out_again_hide_no_change() {
    /// Cores insert into the same leaf or bucket, and wait until another one has committed their key, or has deleted it.
    #[derive(Clone, Copy)]
    struct Keys;
    impl Scenario for Keys {
        fn run<P: Protocol>(self, engine: &Engine<P>, seed: u64) {
            let database = Database::on(engine);
            let builder = match seed % 2 {
                0 => database.table::<u64, u64>("rows").hash(1),
                _ => database.table::<u64, u64>("rows").ordered(),
            };
            let loading = builder.load().unwrap();
            (0..seed / 2 % 16).for_each(|key| loading.insert(1_000 * key + 999, 0).unwrap());
            let rows = loading.finish().unwrap();
            judged(engine, 3, seed, |core, worker| {
                let key = core as u64;
                let ended = match core {
                    2 => (0..2u64).try_for_each(|key| {
                        transact(engine, worker, seed, |tx| rows.insert(tx, key, 0))?;
                        transact(engine, worker, seed, |tx| rows.delete(tx, &(2 + key)).map(drop))?;
                        transact(engine, worker, seed, |tx| rows.insert(tx, 10 + key, 0))
                    }),
                    _ => transact(engine, worker, seed, |tx| match rows.insert_if_absent(tx, key, 1)? {
                        true => tx.retry(),
                        false => Ok(()),
                    }),
                };
                assert_eq!(ended, Ok(()), "seed {seed}");
            });
        }
    }
    explore(Keys);
}
