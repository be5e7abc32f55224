//! Operations on one key in one body: which of them wait for each other, and which lose nothing by it. All pairs and triples
//! are in `deferred_program_order.rs`.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::operations::Constant;
use hotrow::{Abort, Counter, Database, Deferred, Engine, Input, Protocol, Table, Transaction};

/// Tables in the order of their ranks. Operations are on a key of `rows`; the others give and take what is late.
struct Stock<P: Protocol> {
    engine: Engine<P>,
    low: Table<u64, u64, P>,
    queue: Table<u64, u64, P>,
    middle: Table<u64, u64, P>,
    rows: Table<u64, u64, P>,
    high: Table<u64, u64, P>,
    highest: Table<u64, u64, P>,
}

impl<P: Protocol> Stock<P> {
    fn new(is_hash: bool) -> Self {
        let engine = support::engine::<P>();
        let table = |name, rank| {
            let table = Database::on(&engine).table(name).rank(rank).create().unwrap();
            table.bulk_insert([(1, 1)]).unwrap();
            table
        };
        let [low, middle, high, highest] =
            [("low", 1), ("middle", 3), ("high", 7), ("highest", 9)].map(|(name, rank)| table(name, rank));
        let queue = Database::on(&engine).table("queue").rank(2).queues(|_| 0).create().unwrap();
        queue.bulk_insert([(7, 7)]).unwrap();
        let rows = Database::on(&engine).table("rows").rank(5);
        let rows = if is_hash { rows.hash(4) } else { rows }.create().unwrap();
        Self { rows, low, queue, middle, high, highest, engine }
    }

    fn each(test: impl Fn(Self)) {
        [false, true].into_iter().for_each(|is_hash| test(Self::new(is_hash)));
    }

    fn insert(
        &self,
        tx: &mut Transaction<'_, P>,
        grouped: bool,
        key: impl Input<Value = u64>,
        row: impl Input<Value = u64>,
    ) -> Result<Deferred<bool>, Abort> {
        if grouped {
            self.rows.defer_insert_grouped(tx, 0, key, row)
        } else {
            self.rows.defer_insert(tx, key, row)
        }
    }

    /// True if the one transaction so far was tame and lost nothing, and where nothing is deferred.
    fn is_tame(&self) -> bool {
        let statistics = self.engine.statistics();
        statistics.aborts == 0
            && statistics.count(&Counter::TAME_COMMITS) == u64::from(crate::support::defers())
    }
}

#[test]
fn of_two_insertions_of_a_key_the_first_one_recorded_succeeds_though_it_waits() {
    for_each_protocol!(1, |P| {
        for way in 0..8 {
            let (key_is_late, grouped) = (way & 1 != 0, [way & 2 != 0, way & 4 != 0]);
            Stock::<P>::each(|stock| {
                let both = stock.engine.transact_deferred(|tx| {
                    let taken = stock.queue.defer_take_first(tx, 0, ..)?;
                    let taken = taken.map(|number| number.expect("it was loaded"));
                    let first = if key_is_late {
                        stock.insert(tx, grouped[0], taken, Constant(100))?
                    } else {
                        stock.insert(tx, grouped[0], Constant(7), taken + 93)?
                    };
                    let second = stock.insert(tx, grouped[1], Constant(7), Constant(200))?;
                    tx.compute((first, second), |both| both)
                });
                assert_eq!(both, Ok((true, false)), "{way}");
                assert!(stock.is_tame(), "{way}");
                assert_eq!(stock.engine.transact(|tx| stock.rows.get(tx, &7)), Ok(Some(100)), "{way}");
            });
        }
    });
}

#[test]
fn an_insertion_waits_for_an_earlier_one_only_if_the_keys_are_or_may_be_the_same() {
    for_each_protocol!(1, |P| {
        // The other one's key, if it is known before its row is.
        for (other, waits) in [(Some(7), true), (Some(8), false), (None, true)] {
            for grouped in [false, true] {
                Stock::<P>::each(|stock| {
                    let both = stock.engine.transact_deferred(|tx| {
                        // Nothing of this rank runs before the key of the update is known.
                        let number = stock.highest.defer_read(tx, &1, |row| *row)?;
                        let number = number.map(|row| row.expect("it was loaded"));
                        let first = match other {
                            Some(key) => stock.insert(tx, grouped, Constant(key), number)?,
                            None => stock.insert(tx, grouped, number + 7, number)?,
                        };
                        let second = stock.insert(tx, false, Constant(7), Constant(2))?;
                        let key = second.map(|done| Some(u64::from(done)));
                        stock.high.defer_update_each(tx, key, (), (), |(), row, ()| *row += 1)?;
                        tx.compute((first, second), |both| both)
                    });
                    assert_eq!(both, Ok((true, other != Some(7))), "{other:?} {grouped}");
                    assert_eq!(stock.is_tame(), !(waits && crate::support::defers()), "{other:?} {grouped}");
                    let changed = stock.engine.transact(|tx| stock.high.get(tx, &1));
                    assert_eq!(changed, Ok(Some(1 + u64::from(other != Some(7)))));
                });
            }
        }
    });
}

#[test]
fn an_insertion_waits_for_an_earlier_deletion_and_loses_nothing() {
    for_each_protocol!(1, |P| {
        Stock::<P>::each(|stock| {
            stock.rows.bulk_insert([(7, 1)]).unwrap();
            let both = stock.engine.transact_deferred(|tx| {
                let deleted = stock.rows.defer_delete(tx, &7)?;
                let inserted = stock.insert(tx, false, Constant(7), Constant(2))?;
                // The attempt lines up for the row only when this one has found its own.
                let key = stock.low.defer_read(tx, &1, |row| *row)?;
                stock.middle.defer_update_each(tx, key, (), (), |(), row, ()| *row += 1)?;
                tx.compute((deleted, inserted), |both| both)
            });
            assert_eq!(both, Ok((true, true)));
            assert!(stock.is_tame());
            assert_eq!(stock.engine.transact(|tx| stock.rows.get(tx, &7)), Ok(Some(2)));
        });
    });
}

#[test]
fn operations_on_an_own_row_keep_their_order_in_a_stage() {
    for_each_protocol!(1, |P| {
        Stock::<P>::each(|stock| {
            let seen = stock.engine.transact_deferred(|tx| {
                stock.rows.insert_if_absent(tx, 1, 5)?;
                let key = stock.low.defer_read(tx, &1, |row| *row)?;
                let change = |seen: &mut u64, row: &mut u64, ()| {
                    *row = *row * 2 + 1;
                    *seen = *row;
                };
                let first = stock.rows.defer_update_each(tx, key, (), 0, change)?;
                let second = stock.rows.defer_update(tx, &1, (), |row, ()| {
                    *row += 100;
                    *row
                })?;
                // Its key comes from the first one, so the stage goes on when that one has run.
                let third = stock.rows.defer_update_each(tx, first.map(|_| [1]), (), 0, change)?;
                tx.compute((first, second, third), |all| all)
            });
            assert_eq!(seen, Ok((11, Some(111), 223)));
            assert_eq!(stock.engine.statistics().aborts, 0);
        });
    });
}
