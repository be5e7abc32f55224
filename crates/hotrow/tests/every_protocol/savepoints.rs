//! Parts of a transaction that are undone alone.

use crate::support::steps::Interleaving;
use crate::support::{self, Refused, for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::thread;
use hotrow::{Abort, Database, Direction, Engine, Error, Protocol, Reason, TArray, TBox, TCounter};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

struct Objects<P: Protocol> {
    text: TBox<String, P>,
    numbers: TArray<u64, P>,
    counter: TCounter<P>,
}

impl<P: Protocol> Objects<P> {
    fn new(engine: &Engine<P>) -> Self {
        Self {
            text: TBox::new(engine, String::from("old")),
            numbers: TArray::new(engine, 3, |place| place as u64 + 1),
            counter: TCounter::new(engine, 5),
        }
    }

    fn change(&self, tx: &mut hotrow::Transaction<'_, P>, by: u64) -> Result<(), Abort> {
        self.text.set(tx, format!("by {by}"))?;
        self.numbers.update(tx, 0, |number| *number += by)?;
        self.counter.add(tx, by.cast_signed())
    }

    fn look(&self, tx: &mut hotrow::Transaction<'_, P>) -> Result<(String, u64, i64), Abort> {
        Ok((self.text.get(tx)?, self.numbers.get(tx, 0)?, self.counter.get(tx)?))
    }
}

fn state(text: &str, number: u64, counter: i64) -> (String, u64, i64) {
    (text.to_owned(), number, counter)
}

#[test]
fn a_part_that_fails_leaves_nothing_and_the_rest_commits() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let objects = Objects::<P>::new(&engine);
        let seen = engine.transact(|tx| {
            let failed = tx.savepoint(|tx| {
                objects.change(tx, 7)?;
                Err::<(), _>(Refused::SoldOut)
            })?;
            assert_eq!(failed, Err(Refused::SoldOut));
            let after = objects.look(tx)?;
            objects.numbers.set(tx, 1, 20)?;
            Ok(after)
        });
        assert_eq!(seen.unwrap(), state("old", 1, 5));
        assert_eq!(engine.transact(|tx| objects.look(tx)).unwrap(), state("old", 1, 5));
        assert_eq!(engine.transact(|tx| objects.numbers.get(tx, 1)).unwrap(), 20);
    });
}

#[test]
fn a_part_that_succeeds_stays_and_its_result_is_passed_on() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let objects = Objects::<P>::new(&engine);
        let seen = engine.transact(|tx| tx.savepoint(|tx| objects.change(tx, 7).map(|()| 3u8)));
        assert_eq!(seen.unwrap(), Ok(3));
        assert_eq!(engine.transact(|tx| objects.look(tx)).unwrap(), state("by 7", 8, 12));
    });
}

#[test]
fn what_was_written_before_the_part_comes_back() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let objects = Objects::<P>::new(&engine);
        let seen = engine.transact(|tx| {
            objects.change(tx, 1)?;
            for _ in 0..2 {
                let part = tx.savepoint(|tx| {
                    objects.change(tx, 100)?;
                    objects.change(tx, 1_000)?;
                    Err::<(), _>(Abort::rollback())
                })?;
                assert!(part.is_err());
            }
            objects.look(tx)
        });
        assert_eq!(seen.unwrap(), state("by 1", 2, 6));
        assert_eq!(engine.transact(|tx| objects.look(tx)).unwrap(), state("by 1", 2, 6));
    });
}

#[test]
fn parts_nest() {
    for_each_protocol!(1, |P| {
        for (inner_fails, outer_fails, expected) in [
            (false, false, state("by 100", 112, 116)),
            (true, false, state("by 10", 12, 16)),
            (false, true, state("by 1", 2, 6)),
            (true, true, state("by 1", 2, 6)),
        ] {
            let engine = support::engine::<P>();
            let objects = Objects::<P>::new(&engine);
            let ended = |fails| if fails { Err(Abort::rollback()) } else { Ok(()) };
            let seen = engine.transact(|tx| {
                objects.change(tx, 1)?;
                let _ = tx.savepoint(|tx| {
                    objects.change(tx, 10)?;
                    let _ = tx.savepoint(|tx| {
                        objects.change(tx, 100)?;
                        ended(inner_fails)
                    })?;
                    ended(outer_fails)
                })?;
                objects.look(tx)
            });
            assert_eq!(seen.unwrap(), expected);
            assert_eq!(engine.transact(|tx| objects.look(tx)).unwrap(), expected);
        }
    });
}

#[test]
fn or_else_runs_the_second_part_as_if_there_had_been_no_first() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let objects = Objects::<P>::new(&engine);
        let chosen = engine.try_transact(|tx| {
            tx.or_else(
                |tx| {
                    objects.change(tx, 7)?;
                    Err(Refused::SoldOut)
                },
                |tx| {
                    objects.counter.add(tx, 1)?;
                    Ok("second")
                },
            )
        });
        assert_eq!(chosen.unwrap(), "second");
        assert_eq!(engine.transact(|tx| objects.look(tx)).unwrap(), state("old", 1, 6));
        let both = engine
            .try_transact(|tx| tx.or_else(|_| Err::<(), _>(Refused::Aborted), |_| Err(Refused::SoldOut)));
        assert!(matches!(both, Err(Error::Rollback(Refused::SoldOut))), "{both:?}");
    });
}

#[test]
fn a_panic_that_the_body_catches_undoes_the_part() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let objects = Objects::<P>::new(&engine);
        let seen = engine.transact(|tx| {
            objects.change(tx, 1)?;
            let part = catch_unwind(AssertUnwindSafe(|| {
                tx.savepoint(|tx| {
                    objects.change(tx, 10)?;
                    resume_unwind(Box::new("planned"));
                    #[allow(unreachable_code)]
                    Ok::<(), Abort>(())
                })
            }));
            assert!(part.is_err());
            objects.look(tx)
        });
        assert_eq!(seen.unwrap(), state("by 1", 2, 6));
    });
}

#[test]
fn rows_and_their_index_entries_come_and_go_with_their_part() {
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let engine = support::engine::<P>();
            let mut builder = Database::on(&engine).table::<u64, u64>("rows");
            let by_value = builder.secondary("by_value", |_, row| *row);
            let table = if hash { builder.hash(10).create().unwrap() } else { builder.create().unwrap() };
            table.bulk_insert((0..4).map(|key| (key, 10 * key))).unwrap();
            let look = |tx: &mut hotrow::Transaction<'_, P>| {
                let mut rows = Vec::new();
                for key in 0..8 {
                    rows.extend(table.get(tx, &key)?.map(|row| (key, row)));
                }
                let mut entries = Vec::new();
                by_value.scan_keys(tx, .., Direction::Ascending, |row, key| {
                    entries.push((*key, *row));
                    ControlFlow::Continue(())
                })?;
                entries.sort_unstable();
                assert_eq!(entries, rows);
                Ok::<_, Abort>(rows)
            };
            let work = |tx: &mut hotrow::Transaction<'_, P>| {
                table.delete(tx, &0)?;
                table.update_if_present(tx, &1, |row| *row = 11)?;
                assert!(table.insert_if_absent(tx, 5, 50)?);
                let before = look(tx)?;
                let part = tx.savepoint(|tx| {
                    assert!(table.insert_if_absent(tx, 0, 1)?, "inserts what was deleted before");
                    assert!(table.delete(tx, &1)?, "deletes what was changed before");
                    table.update_if_present(tx, &5, |row| *row = 51)?;
                    assert!(table.delete(tx, &5)?, "deletes what was inserted before");
                    assert!(table.insert_if_absent(tx, 5, 52)?);
                    assert!(table.replace_if_present(tx, &2, 22)?);
                    assert!(table.delete(tx, &3)?);
                    assert!(table.insert_if_absent(tx, 6, 60)?);
                    look(tx)?;
                    Err::<(), _>(Abort::rollback())
                })?;
                assert!(part.is_err());
                assert_eq!(look(tx)?, before);
                assert!(table.insert_if_absent(tx, 6, 61)?, "the part's row is gone");
                look(tx)
            };
            let expected = vec![(1, 11), (2, 20), (3, 30), (5, 50), (6, 61)];
            assert_eq!(engine.transact(work).unwrap(), expected);
            assert_eq!(engine.transact(look).unwrap(), expected);
        }
    });
}

#[test]
fn a_test_of_a_counter_in_a_part_that_was_undone_still_counts() {
    for_each_concurrent_protocol!(2, |P| {
        Interleaving::<P>::new().run(|engine, [mut first, mut second]| {
            let (seats, turned_away) = (TCounter::new(engine, 0), TBox::new(engine, 0u64));
            let sold_out = first.step(|tx| {
                let part = tx.savepoint(|tx| {
                    seats.add(tx, -1)?;
                    if seats.is_at_least(tx, 0)? { Ok(()) } else { Err(Abort::rollback()) }
                })?;
                turned_away.update(tx, |number| *number += 1)?;
                Ok(part.is_err())
            });
            assert_ne!(sold_out, Some(false));
            // A seat comes back before the commit, if nobody has been turned away yet.
            second.step(|tx| {
                assert_eq!(turned_away.get(tx)?, 0);
                seats.add(tx, 1)
            });
            let second = second.commit();
            let first = first.commit();
            let total = engine.transact(|tx| Ok((seats.get(tx)?, turned_away.get(tx)?))).unwrap();
            assert_eq!(total, (i64::from(second), u64::from(first)));
            assert!(!(first && second), "neither saw the other");
        });
    });
}

#[test]
fn an_attempt_that_has_lost_cannot_go_on_behind_a_savepoint() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let other = support::engine::<P>();
        let (own, foreign) = (TBox::new(&engine, 0), TBox::new(&other, 0));
        let ended = engine.transact(|tx| {
            own.set(tx, 1)?;
            let part = tx.savepoint(|tx| foreign.set(tx, 1));
            assert!(part.is_err(), "not the part's own error");
            assert!(tx.savepoint(|_| Ok::<_, Abort>(())).is_err());
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Misuse(_))), "{ended:?}");
        assert_eq!(engine.transact(|tx| own.get(tx)), Ok(0));
        // The thread's next attempt is no part of that one's part.
        let after = engine.transact(|tx| {
            own.set(tx, 1)?;
            let part = tx.savepoint(|tx| {
                own.set(tx, 2)?;
                Err::<(), _>(Abort::rollback())
            })?;
            assert!(part.is_err());
            own.get(tx)
        });
        assert_eq!(after, Ok(1));
        assert_eq!(engine.transact(|tx| own.get(tx)), Ok(1));
    });
}

#[test]
fn operations_that_were_deferred_run_before_the_part_and_later_ones_at_once() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1u64);
        let seen = engine.transact(|tx| {
            number.defer_update(tx, (), |number, ()| *number += 1)?;
            let part = tx.savepoint(|tx| {
                number.defer_update(tx, (), |number, ()| *number += 100)?;
                Err::<(), _>(Abort::rollback())
            })?;
            assert!(part.is_err());
            number.defer_update(tx, (), |number, ()| *number *= 10)?;
            number.get(tx)
        });
        assert_eq!(seen, Ok(20));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(20));
        assert_eq!(engine.statistics().aborts_for(Reason::Undeclared), 0);
        // Computations only.
        let seen = engine.transact(|tx| {
            let three = tx.known(3u64);
            let four = tx.compute(three, |three| three + 1)?;
            let part = tx.savepoint(|tx| number.defer_set(tx, four))?;
            assert!(part.is_ok());
            number.get(tx)
        });
        assert_eq!(seen, Ok(4));
    });
}

#[test]
fn a_replacement_that_was_undone_is_not_expected_to_be_read() {
    for_each_protocol!(1, |P| {
        Interleaving::<P>::new().run(|engine, [mut only]| {
            let table = support::loaded(Database::on(engine).table::<u64, u64>("rows"), [(1, 10)]);
            only.step(|tx| {
                let part = tx.savepoint(|tx| {
                    assert!(table.replace_if_present(tx, &1, 11)?);
                    Err::<(), _>(Abort::rollback())
                })?;
                assert!(part.is_err());
                assert_eq!(table.get(tx, &1)?, Some(10));
                table.update_if_present(tx, &1, |row| *row += 1)
            });
            assert!(only.commit());
        });
    });
}

#[test]
fn a_row_that_is_queued_again_behind_an_undone_part_is_found_by_those_behind_it() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let queue =
            Database::on(&engine).table::<(u64, u64), u64>("queue").queues(|key| key.0).create().unwrap();
        let taken = TBox::new(&engine, 0u64);
        let marker = TBox::new(&engine, false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..200 {
                    let queued = engine.transact(|tx| {
                        let part = tx.savepoint(|tx| {
                            assert!(queue.insert_if_absent(tx, (1, number), number)?);
                            Err::<(), _>(Abort::rollback())
                        })?;
                        assert!(part.is_err());
                        assert!(queue.insert_if_absent(tx, (1, number), number)?);
                        marker.set(tx, true)
                    });
                    queued.unwrap();
                }
            });
            let mut found = 0;
            while found < 200 {
                let (was_marked, first) = engine
                    .transact_deferred(|tx| {
                        let was_marked = marker.defer_update(tx, (), |marker, ()| std::mem::take(marker))?;
                        let first = queue.defer_take_first(tx, 1, (1, 0)..(2, 0))?;
                        tx.compute((was_marked, first), |pair| pair)
                    })
                    .unwrap();
                assert!(!was_marked || first.is_some(), "the mark comes with a row");
                if first.is_some() {
                    found += 1;
                    engine.transact(|tx| taken.update(tx, |taken| *taken += 1)).unwrap();
                    // The mark of rows that are left.
                    engine
                        .transact(|tx| {
                            let left = queue.collect(tx, .., Direction::Ascending, 1)?;
                            if left.is_empty() { Ok(()) } else { marker.set(tx, true) }
                        })
                        .unwrap();
                }
            }
        });
        assert_eq!(engine.transact(|tx| taken.get(tx)), Ok(200));
    });
}
