//! Operations whose rows are found by earlier ones: ranks that do not go with the flow of data, failures, and keys with
//! code of their own.

use crate::support;
use crate::support::{Census, for_each_protocol};
use hotrow::operations::Constant;
use hotrow::{Abort, Counter, Database, Deferred, Engine, Error, Key, Protocol, Table, Transaction};
use std::cell::Cell;
use std::hash::{Hash, Hasher};

/// Tables in the order of their ranks; each row names a key of another table.
struct Chain<P: Protocol> {
    low: Table<u64, u64, P>,
    middle: Table<u64, u64, P>,
    high: Table<u64, u64, P>,
}

impl<P: Protocol> Chain<P> {
    fn new(engine: &Engine<P>) -> Self {
        let table = |name, rank| Database::on(engine).table(name).rank(rank).create().unwrap();
        let [low, middle, high] = [table("low", 1), table("middle", 2), table("high", 3)];
        for key in 0..4 {
            low.bulk_insert([(key, key + 1)]).unwrap();
            middle.bulk_insert([(key, key + 1)]).unwrap();
            high.bulk_insert([(key, key + 1)]).unwrap();
        }
        Self { low, middle, high }
    }

    /// Adds ten to the row of a key, if there is one, and gives what it was.
    fn visit(
        tx: &mut Transaction<'_, P>,
        table: &Table<u64, u64, P>,
        key: Deferred<Option<u64>>,
    ) -> Result<Deferred<Option<u64>>, Abort> {
        table.defer_update_each(tx, key, (), None, |was, row, ()| {
            *was = Some(*row);
            *row += 10;
        })
    }

    /// Visits tables, each at the key that was found in the one before.
    fn follow(
        tx: &mut Transaction<'_, P>,
        key: Option<u64>,
        path: &[&Table<u64, u64, P>],
    ) -> Result<Deferred<Option<u64>>, Abort> {
        let mut key = tx.compute((), move |()| key)?;
        for table in path {
            key = Self::visit(tx, table, key)?;
        }
        Ok(key)
    }

    fn sums(&self, engine: &Engine<P>) -> [u64; 3] {
        let sums = engine.transact(|tx| {
            let mut sums = [0; 3];
            for (sum, table) in sums.iter_mut().zip([&self.low, &self.middle, &self.high]) {
                for key in 0..4 {
                    *sum += table.get(tx, &key)?.unwrap_or(0);
                }
            }
            Ok(sums)
        });
        sums.unwrap()
    }
}

#[test]
fn keys_flow_up_the_ranks_without_a_conflict_and_down_in_another_attempt() {
    for_each_protocol!(1, |P| {
        // The tables on the path, by number, and what comes out; whether it takes another attempt, and is tame.
        let follow = |key: Option<u64>, path: &[usize]| {
            let engine = support::engine::<P>();
            let chain = Chain::new(&engine);
            let tables = [&chain.low, &chain.middle, &chain.high];
            let path: Vec<_> = path.iter().map(|number| tables[*number]).collect();
            let found = engine.transact_deferred(|tx| Chain::follow(tx, key, &path)).unwrap();
            let statistics = engine.statistics();
            let visited = (chain.sums(&engine).iter().sum::<u64>() - 30) / 10;
            (found, visited, statistics.aborts > 0, statistics.count(&Counter::TAME_COMMITS) > 0)
        };
        let defers = crate::support::defers();
        assert_eq!(follow(Some(0), &[0, 1, 2]), (Some(3), 3, false, defers));
        assert_eq!(follow(None, &[0, 1, 2]), (None, 0, false, defers));
        // The second row does not exist, and that is something that the attempt has seen.
        assert_eq!(follow(Some(3), &[0, 2, 2]), (None, 1, false, false));
        assert_eq!(follow(Some(1), &[0, 2, 1]), (Some(4), 3, defers, false));
        assert_eq!(follow(Some(1), &[2, 0]), (Some(3), 2, defers, false));
        assert_eq!(follow(Some(0), &[2, 1, 0]), (Some(3), 3, defers, false));
        // One key after the other in the same table.
        assert_eq!(follow(Some(2), &[2, 2]), (Some(4), 2, defers, false));
        // Nothing is found above, so nothing below comes too late.
        assert_eq!(follow(None, &[2, 1, 0]), (None, 0, false, defers));
    });
}

#[test]
fn late_operations_keep_their_place_among_others_on_the_same_row() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let Chain { low, middle, .. } = &Chain::new(&engine);
        let times =
            |tx: &mut Transaction<'_, P>, key: u64| middle.defer_update(tx, &key, (), |row, ()| *row *= 2);
        let bodies: [(&dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>, u64); 5] = [
            // 1 is found at key 0 of the lowest table.
            (
                &|tx| {
                    Chain::follow(tx, Some(0), &[low, middle])?;
                    times(tx, 1).map(|_| ())
                },
                24,
            ),
            (
                &|tx| {
                    times(tx, 11)?;
                    times(tx, 1)?;
                    Chain::follow(tx, Some(0), &[low, middle]).map(|_| ())
                },
                14,
            ),
            // A pending write of the body's.
            (
                &|tx| {
                    middle.update_if_present(tx, &1, |row| *row += 1)?;
                    Chain::follow(tx, Some(0), &[low, middle])?;
                    times(tx, 1).map(|_| ())
                },
                26,
            ),
            // A row that the attempt has made.
            (
                &|tx| {
                    middle.delete(tx, &1)?;
                    middle.insert_if_absent(tx, 1, 5)?;
                    Chain::follow(tx, Some(0), &[low, middle])?;
                    times(tx, 1).map(|_| ())
                },
                30,
            ),
            // Seen at once.
            (
                &|tx| {
                    Chain::follow(tx, Some(0), &[low, middle])?;
                    assert_eq!(middle.get(tx, &1)?, Some(12));
                    times(tx, 1).map(|_| ())
                },
                24,
            ),
        ];
        for (at, (body, expected)) in bodies.into_iter().enumerate() {
            let result = engine.transact(|tx| {
                low.upsert(tx, 0, 1)?;
                middle.upsert(tx, 1, 2)?;
                Ok(())
            });
            result.unwrap();
            engine.transact(body).unwrap();
            assert_eq!(engine.transact(|tx| middle.get(tx, &1)), Ok(Some(expected)), "{at}");
        }
    });
}

#[test]
fn failures_of_late_operations_leave_nothing_and_hold_nobody_up() {
    const THREADS: u64 = 4;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let chain = Chain::new(&engine);
        let Chain { low, middle, high } = &chain;
        let done = support::on_threads(&engine, THREADS, |thread, worker| {
            let mut done = 0;
            for round in 0..60u64 {
                let kind = (thread + round) % 6;
                let key = round % 4;
                let result = worker.transact(|tx| {
                    let keys = low.defer_update(tx, &key, (), |row, ()| {
                        *row += 10;
                        *row % 10
                    })?;
                    let panics = move |now: u64| {
                        if now == kind {
                            // No message is printed for a panic that is resumed.
                            std::panic::resume_unwind(Box::new("as planned"));
                        }
                    };
                    let late = keys.map(move |key| {
                        panics(0);
                        [key.unwrap_or(0), 0].into_iter().inspect(move |_| panics(1))
                    });
                    middle.defer_update_each(tx, late, (), (), move |(), row, ()| {
                        panics(2);
                        *row += 5;
                    })?;
                    let known = tx.known(Some(key));
                    let seen = Chain::visit(tx, high, known)?;
                    let last = seen.map(move |_| Some(key));
                    high.defer_update_each(tx, last, (), (), |(), row, ()| *row += 10)?;
                    tx.require(seen.map(move |_| kind != 3))
                });
                match result {
                    Ok(()) => {
                        assert!(kind > 3);
                        done += 1;
                    }
                    Err(Error::Panicked { message }) => assert!(kind < 3 && message == "as planned"),
                    Err(error) => assert!(kind == 3 && matches!(error, Error::Rollback(_)), "{error}"),
                }
            }
            done
        });
        let done: u64 = done.iter().sum();
        let sums = engine.transact(|tx| {
            let mut sums = [0; 2];
            for key in 0..4 {
                sums[0] += low.get(tx, &key)?.unwrap_or(0);
                sums[1] += high.get(tx, &key)?.unwrap_or(0);
            }
            Ok(sums)
        });
        assert_eq!(sums, Ok([10 + 10 * done, 10 + 20 * done]));
        assert_eq!(chain.sums(&engine)[1] % 5, 0);
    });
}

/// A key whose code can be told to panic.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touchy(u64);

hotrow::sync::local! {
    /// How many more calls of a key's code go well before one does not, if any.
    static PATIENCE: Cell<Option<u32>> = const { Cell::new(None) };
}

fn have(patience: Option<u32>) {
    PATIENCE.with(|place| place.set(patience));
}

/// Counts a call.
fn touch() {
    PATIENCE.with(|patience| match patience.get() {
        Some(0) => {
            patience.set(None);
            std::panic::resume_unwind(Box::new("touched"));
        }
        Some(more) => patience.set(Some(more - 1)),
        None => {}
    });
}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        touch();
        Self(self.0)
    }
}

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        touch();
        self.0.hash(state);
    }
}

impl Key for Touchy {
    type Image = u64;

    fn image(&self) -> u64 {
        touch();
        self.0
    }
}

#[test]
fn a_panic_in_the_code_of_a_key_undoes_everything() {
    for_each_protocol!(1, |P| {
        let (mut panics, mut ended) = (0, false);
        for patience in 0..200 {
            let engine = support::engine::<P>();
            let number = Database::on(&engine).table::<u64, u64>("number").rank(1).create().unwrap();
            let group = |key: &Touchy| {
                touch();
                key.0 / 10
            };
            let queue =
                Database::on(&engine).table::<Touchy, u64>("queue").rank(2).queues(group).create().unwrap();
            let hash = Database::on(&engine).table::<Touchy, u64>("hash").hash(4).rank(3).create().unwrap();
            number.bulk_insert([(0, 7)]).unwrap();
            hash.bulk_insert([(Touchy(7), 1)]).unwrap();
            hash.bulk_insert([(Touchy(3), 1)]).unwrap();
            queue.bulk_insert([(Touchy(3), 1)]).unwrap();
            queue.bulk_insert([(Touchy(12), 1)]).unwrap();
            let run = || {
                engine.transact(|tx| {
                    have(Some(patience));
                    let key = number.defer_update(tx, &0, (), |row, ()| std::mem::replace(row, 8))?;
                    let taken = queue.defer_take_first(tx, 0, Touchy(0)..Touchy(10))?;
                    queue.defer_insert_grouped(tx, 1, key.map(|_| Touchy(15)), Constant(1))?;
                    let found = key.map(|key| key.map(Touchy));
                    hash.defer_update_each(tx, found, (), (), |(), row, ()| *row += 1)?;
                    hash.defer_update_each(tx, taken, (), (), |(), row, ()| *row += 1)
                })
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            have(None);
            let state = engine.transact(|tx| {
                let taken =
                    [hash.get(tx, &Touchy(7))?, hash.get(tx, &Touchy(3))?, queue.get(tx, &Touchy(3))?];
                Ok((number.get(tx, &0)?, taken, queue.get(tx, &Touchy(15))?))
            });
            let nothing = Ok((Some(7), [Some(1); 3], None));
            let everything = Ok((Some(8), [Some(2), Some(2), None], Some(1)));
            match result {
                Ok(Ok(_)) => {
                    assert_eq!(state, everything);
                    ended = true;
                    break;
                }
                // In an intention it is the transaction's error.
                Ok(Err(error)) => {
                    assert!(matches!(error, Error::Panicked { .. }), "{error}");
                    assert_eq!(state, nothing, "after {patience} calls");
                }
                // In the body, or in what is cleaned up after the commit.
                Err(_) => {
                    assert!(state == nothing || state == everything, "after {patience} calls: {state:?}")
                }
            }
            panics += 1;
        }
        assert!(ended && panics > 5, "{panics}");
    });
}

#[test]
fn a_table_whose_last_handle_is_dropped_in_the_body_serves_what_was_deferred() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = Database::on(&engine).table::<u64, u64>("number").rank(1).create().unwrap();
        number.bulk_insert([(0, 7)]).unwrap();
        let census = Census::default();
        let rows = Database::on(&engine).table::<u64, support::Counted>("rows").rank(3).create().unwrap();
        let queue = Database::on(&engine).table::<u64, u64>("queue").rank(2).queues(|_| 0).create().unwrap();
        for key in 7..9 {
            rows.bulk_insert([(key, census.value(key))]).unwrap();
            queue.bulk_insert([(key, key)]).unwrap();
        }
        let mut handles = Some((rows, queue));
        let found = engine.transact_deferred(|tx| {
            let (rows, queue) = handles.take().expect("alone, one attempt is enough");
            let key = number.defer_read(tx, &0, |row| *row)?;
            let taken = queue.defer_take_first(tx, 0, ..)?;
            queue.defer_insert_grouped(tx, 0, key.map(|_| 9u64), key.map(|key| key.unwrap_or(0)))?;
            let sum = |sum: &mut u64, row: &mut support::Counted, ()| *sum += row.number;
            let one = rows.defer_update_each(tx, key, (), 0, sum)?;
            let other = rows.defer_update_each(tx, taken.map(|key| key.map(|key| key + 1)), (), 0, sum)?;
            tx.compute((one, other), |both| both)
        });
        assert_eq!(found, Ok((7, 8)));
        census.settle(&engine, 0);
    });
}
