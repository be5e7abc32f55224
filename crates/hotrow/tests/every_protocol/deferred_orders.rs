//! Orders and their lines, inserted into groups under numbers that come from a deferred value, by several threads.

use crate::support;
use crate::support::{for_each_protocol, steps};
use hotrow::operations::Constant;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, Any, Counter, Database, Deferred, Direction, Engine, Protocol, RetryPolicy, TBox, Table,
    Transaction,
};
use std::ops::ControlFlow;

/// Enough for every run here.
const HISTORY_BYTES_MAX: usize = 1 << 27;
const THREADS: u64 = 4;

struct Shop<P: Protocol> {
    /// The number of the next order of each district.
    next: Table<u64, u64, P>,
    /// By district and number: how many lines.
    orders: Table<(u64, u64), u64, P>,
    /// By district, number of the order, and number: the sum of the latter two.
    lines: Table<(u64, u64, u64), u64, P>,
}

/// An order as a reader finds it: its number, how many lines it says it has, and how many there are.
type OrderLines = Vec<(u64, u64, u64)>;

impl<P: Protocol> Shop<P> {
    fn new(engine: &Engine<P>, districts: u64) -> Self {
        let next = Database::on(engine).table("next").hash(4).rank(10);
        let next = support::loaded(next, (0..districts).map(|district| (district, 0)));
        let orders = Database::on(engine).table("orders").rank(30).create().unwrap();
        Self { next, orders, lines: Database::on(engine).table("lines").rank(20).create().unwrap() }
    }

    /// Places an order and returns its number, and whether everything was new. (No condition: an attempt that is lost
    /// may see two states, unless it is opaque, and what it wishes is believed.)
    fn place(
        &self,
        tx: &mut Transaction<'_, P>,
        district: u64,
        count: u64,
        grouped: bool,
    ) -> Result<Deferred<(u64, bool)>, Abort> {
        let number = self.next.defer_update(tx, &district, (), |next, ()| {
            *next += 1;
            *next - 1
        })?;
        let number = tx.compute(number, |number| number.expect("districts stay"))?;
        let key = number.map(move |number| (district, number));
        let mut all = if grouped {
            self.orders.defer_insert_grouped(tx, district, key, Constant(count))?
        } else {
            self.orders.defer_insert(tx, key, Constant(count))?
        };
        for line in 0..count {
            let key = number.map(move |number| (district, number, line));
            let inserted = if grouped {
                self.lines.defer_insert_grouped(tx, district, key, number + line)?
            } else {
                self.lines.defer_insert(tx, key, number + line)?
            };
            all = tx.compute(all & inserted, |all| all)?;
        }
        tx.compute((number, all), |both| both)
    }

    /// All orders of a district and all its lines, in either order.
    fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        district: u64,
        lines_first: bool,
    ) -> Result<OrderLines, Abort> {
        let mut orders = Vec::new();
        let mut lines = Vec::new();
        for lines_now in [lines_first, !lines_first] {
            if lines_now {
                let range = (district, 0, 0)..(district + 1, 0, 0);
                self.lines.scan(tx, range, Direction::Ascending, |&(_, order, line), sum| {
                    lines.push((order, *sum == order + line));
                    ControlFlow::Continue(())
                })?;
            } else {
                let range = (district, 0)..(district + 1, 0);
                self.orders.scan(tx, range, Direction::Descending, |&(_, order), count| {
                    orders.push((order, *count));
                    ControlFlow::Continue(())
                })?;
            }
        }
        let found = orders.iter().map(|&(order, count)| {
            let there = lines.iter().filter(|line| **line == (order, true)).count() as u64;
            (order, count, there)
        });
        let found: OrderLines = found.collect();
        let counted: u64 = found.iter().map(|(_, _, there)| there).sum();
        // A line without its order makes a number that no order has.
        Ok(if counted == lines.len() as u64 { found } else { vec![(u64::MAX, 0, 1)] })
    }

    /// Takes the oldest order of a district and its lines away, and returns whether all were there. It is wild: which
    /// order it is, a scan says.
    fn deliver(&self, tx: &mut Transaction<'_, P>, district: u64) -> Result<Deferred<bool>, Abort> {
        let range = (district, 0)..(district + 1, 0);
        let Some((key, count)) = self.orders.collect(tx, range, Direction::Ascending, 1)?.pop() else {
            return Ok(tx.known(true));
        };
        let mut all = self.orders.defer_delete(tx, &key)?;
        for line in 0..count {
            let deleted = self.lines.defer_delete(tx, &(key.0, key.1, line))?;
            all = tx.compute(all & deleted, |all| all)?;
        }
        Ok(all)
    }
}

fn assert_whole(found: &OrderLines) {
    for (order, count, there) in found {
        assert_eq!(count, there, "lines of order {order}");
    }
    assert!(found.windows(2).all(|pair| pair[0].0 > pair[1].0), "each order once");
}

#[test]
fn concurrent_orders_have_consecutive_numbers() {
    const ROUNDS: u64 = 60;
    for_each_protocol!(THREADS as u32, |P| {
        for grouped in [true, false] {
            let engine = support::engine::<P>();
            let shop = Shop::new(&engine, 2);
            let numbers = support::on_threads(&engine, THREADS, |thread, worker| {
                let mut place = |round: u64| {
                    let district = (thread + round) % 2;
                    let placed = worker.transact_deferred(|tx| shop.place(tx, district, round % 4, grouped));
                    let (number, all) = placed.unwrap();
                    assert!(all);
                    (district, number)
                };
                (0..ROUNDS).map(&mut place).collect::<Vec<_>>()
            });
            let mut numbers = numbers.concat();
            numbers.sort_unstable();
            let each = THREADS * ROUNDS / 2;
            let expected: Vec<_> = (0..2 * each).map(|at| (at / each, at % each)).collect();
            assert_eq!(numbers, expected);
            for district in 0..2 {
                let found = engine.transact(|tx| shop.scan(tx, district, false)).unwrap();
                assert_eq!(found.len() as u64, each);
                assert_whole(&found);
            }
        }
    });
}

#[test]
fn orders_into_groups_never_abort() {
    const ROUNDS: u64 = 300;
    for name in
        ["drp+tame", "drp+opaque+tame", "drp+exclusive+tame", "deferred-2pl", "deferred-2pl+exclusive"]
    {
        let engine = Engine::<Any>::named(name, RetryPolicy::default()).unwrap();
        let shop = Shop::new(&engine, 2);
        support::on_threads(&engine, THREADS, |thread, worker| {
            for round in 0..ROUNDS {
                let placed =
                    worker.transact_deferred(|tx| shop.place(tx, (thread ^ round) % 2, round % 5, true));
                assert!(placed.unwrap().1);
            }
        });
        let statistics = engine.statistics();
        assert_eq!((statistics.aborts, statistics.count(&Counter::TAME_ABORTS)), (0, 0), "{name}");
        assert_eq!(
            (statistics.commits, statistics.count(&Counter::TAME_COMMITS)),
            (THREADS * ROUNDS, THREADS * ROUNDS)
        );
        let orders =
            engine.transact(|tx| Ok(shop.scan(tx, 0, false)?.len() + shop.scan(tx, 1, false)?.len()));
        assert_eq!(orders, Ok((THREADS * ROUNDS) as usize));
    }
}

#[test]
fn readers_never_see_an_order_without_its_lines() {
    const ROUNDS: u64 = 100;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let shop = Shop::new(&engine, 2);
        support::on_threads(&engine, THREADS, |thread, worker| {
            for round in 0..ROUNDS {
                let district = round % 2;
                match (thread + round) % 4 {
                    0 => assert_eq!(worker.transact_deferred(|tx| shop.deliver(tx, district)), Ok(true)),
                    1 => {
                        let found = worker.transact(|tx| {
                            let found = shop.scan(tx, district, round % 3 == 0)?;
                            if engine.is_opaque() {
                                assert_whole(&found);
                            }
                            Ok(found)
                        });
                        assert_whole(&found.unwrap());
                    }
                    // The number that is next, and whether the last one's order is there or has been delivered.
                    2 if thread % 2 == 0 => {
                        let (next, found) = worker
                            .transact(|tx| {
                                let next = shop.next.get(tx, &district)?.expect("districts stay");
                                Ok((next, shop.scan(tx, district, true)?))
                            })
                            .unwrap();
                        assert_whole(&found);
                        assert!(found.first().is_none_or(|(newest, ..)| newest + 1 == next));
                    }
                    _ => {
                        let grouped = round % 5 != 0;
                        let placed =
                            worker.transact_deferred(|tx| shop.place(tx, district, round % 6, grouped));
                        assert!(placed.unwrap().1);
                    }
                }
            }
        });
        for district in 0..2 {
            assert_whole(&engine.transact(|tx| shop.scan(tx, district, true)).unwrap());
        }
    });
}

#[test]
fn histories_of_deferred_insertions_are_what_the_protocol_claims() {
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let shop = Shop::new(&engine, 1);
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(17, thread);
            for _ in 0..60 {
                let (kind, count) = (random.below(6), random.below(3));
                let done = worker.transact(|tx| match kind {
                    0..=2 => shop.place(tx, 0, count, kind > 0).map(|_| ()),
                    3 => shop.deliver(tx, 0).map(|_| ()),
                    // A look at an order that is not there yet, or no more.
                    4 => {
                        let next = shop.next.get(tx, &0)?.unwrap_or(0) + count;
                        let missing = shop.orders.defer_read(tx, &(0, next.saturating_sub(1)), |row| *row)?;
                        shop.next.defer_update(tx, &0, missing, |_, _| ())?;
                        Ok(())
                    }
                    _ => shop.scan(tx, 0, count == 0).map(|_| ()),
                });
                done.unwrap();
            }
        });
        steps::judge(&recording.finish());
    });
}

/// A row that was there when it was read, and not when its key was inserted, was deleted in the midst of the transaction.
#[test]
fn nobody_deletes_a_row_between_a_deferred_look_at_it_and_a_deferred_insertion_of_its_key() {
    for name in
        ["drp+tame", "drp+opaque+tame", "drp+exclusive+tame", "deferred-2pl", "deferred-2pl+exclusive"]
    {
        let engine = Engine::<Any>::named(name, RetryPolicy::default()).unwrap();
        let rows = Database::on(&engine).table("rows").hash(4).rank(1).create().unwrap();
        let last = Database::on(&engine).table("last").hash(4).rank(2).create().unwrap();
        rows.bulk_insert([(0u64, 1u64)]).unwrap();
        last.bulk_insert([(0u64, 1u64)]).unwrap();
        // How far it has come: the last row is held, the look at it waits, the deletion is over.
        let stage = hotrow::sync::Arc::new(AtomicU64::new(0));
        let wait = |until: u64, turns: u64| {
            let stage = stage.clone();
            move || {
                for _ in 0..turns {
                    if stage.load(Ordering::SeqCst) >= until {
                        break;
                    }
                    thread::yield_now();
                }
            }
        };
        let (looked, deleted) = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                // Gives up: who keeps the order keeps the deletion waiting.
                let (hold, held) = (wait(2, 50_000), stage.clone());
                engine.transact_deferred(|tx| {
                    let (hold, held) = (hold.clone(), held.clone());
                    last.defer_update(tx, &0, (), move |_, ()| {
                        held.store(1, Ordering::SeqCst);
                        hold();
                    })
                })
            });
            let looker = scope.spawn(|| {
                wait(1, u64::MAX)();
                engine.transact_deferred(|tx| {
                    let seen = rows.defer_read(tx, &0, |row| *row)?;
                    let row = last.defer_read(tx, &0, |row| *row)?;
                    let inserted = rows.defer_insert(tx, 0u64, row.map(|row| row.unwrap_or(0)))?;
                    tx.compute((seen, inserted), |both| both)
                })
            });
            let deleter = scope.spawn(|| {
                wait(1, u64::MAX)();
                // Time for the other one to line up first; either order is right.
                (0..1_000).for_each(|_| thread::yield_now());
                let deleted = engine.transact_deferred(|tx| rows.defer_delete(tx, &0));
                stage.store(2, Ordering::SeqCst);
                deleted
            });
            assert!(holder.join().unwrap().is_ok());
            (looker.join().unwrap(), deleter.join().unwrap())
        });
        let before = (Some(1), false);
        let after = (None, true);
        assert!(looked == Ok(before) || looked == Ok(after), "{name}: {looked:?}");
        assert_eq!(deleted, Ok(true), "{name}");
    }
}

/// One that is not tame inserts rows before it knows whether it can commit. If that made tame ones give up deferring, they would
/// do the same to others.
#[test]
fn a_tame_transaction_that_meets_the_new_row_of_a_wild_one_stays_tame() {
    for name in ["drp", "drp+tame", "drp+opaque", "deferred-2pl"] {
        let engine = Engine::<Any>::named(name, RetryPolicy::default()).unwrap();
        let numbers = TBox::new(&engine, 7u64);
        let orders = Database::on(&engine).table("orders").create().unwrap();
        let mut other = engine.worker().unwrap();
        let mut wild = Some(other.begin());
        assert!(orders.insert(wild.as_mut().unwrap(), 7u64, 1u64).is_ok());
        let inserted = engine.transact_deferred(|tx| {
            if tx.attempt_number() > 0
                && let Some(wild) = wild.take()
            {
                assert_eq!(wild.roll_back(), Ok(()));
            }
            let number = numbers.defer_read(tx, |number| *number)?;
            orders.defer_insert(tx, number, Constant(2))
        });
        assert_eq!(inserted, Ok(true), "{name}");
        let statistics = engine.statistics();
        let tame = (statistics.count(&Counter::TAME_COMMITS), statistics.count(&Counter::TAME_ABORTS));
        assert_eq!((statistics.aborts, tame), (1, (1, 1)), "{name}");
    }
}
