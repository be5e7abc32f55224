//! Boxes, arrays and counters: what each does, one transaction at a time, and what makes them conflict.

use crate::support;
use crate::support::{attempts, for_each_concurrent_protocol, for_each_protocol, impatient};
use hotrow::{Abort, Engine, Error, Misuse, Overflow, Reason, TArray, TBox, TCounter, Transaction, Value};

#[test]
fn a_box_holds_what_the_last_committed_transaction_wrote() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1u64);
        let text = TBox::new(&engine, String::from("one"));
        let seen = engine.transact(|tx| {
            number.set(tx, 2)?;
            assert_eq!(number.get(tx)?, 2, "its own write");
            let length = text.update(tx, |text| {
                text.push_str(", two");
                text.len()
            })?;
            assert_eq!(text.read(tx, String::len)?, length);
            text.set(tx, String::from("two"))?;
            assert_eq!(text.get(tx)?, "two");
            number.update(tx, |number| *number += 40)?;
            number.get(tx)
        });
        assert_eq!(seen, Ok(42));
        assert_eq!(engine.transact(|tx| Ok((number.get(tx)?, text.get(tx)?))), Ok((42, "two".to_owned())));
        let rolled_back = engine.transact(|tx| {
            number.set(tx, 0)?;
            text.update(tx, String::clear)?;
            Err::<(), _>(Abort::rollback())
        });
        assert_eq!(rolled_back, Err(Error::Rollback(Abort::rollback())));
        assert_eq!(engine.transact(|tx| Ok((number.get(tx)?, text.get(tx)?))), Ok((42, "two".to_owned())));
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
struct Nothing {}

#[test]
fn boxes_and_arrays_of_nothing_disturb_nobody() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let boxes: Vec<_> =
            (0..10).map(|n| (TBox::new(&engine, Nothing {}), TBox::new(&engine, n))).collect();
        let units = TArray::new(&engine, 5, |_| ());
        let empty = TArray::<u64, P>::new(&engine, 0, |_| unreachable!("there is no element"));
        assert!(empty.is_empty() && !units.is_empty());
        engine
            .transact(|tx| {
                for (nothing, number) in &boxes {
                    nothing.set(tx, Nothing {})?;
                    number.update(tx, |number| *number += 100u64)?;
                    assert_eq!(nothing.get(tx)?, Nothing {});
                }
                (0..5).try_for_each(|at| units.update(tx, at, |_| ()))
            })
            .unwrap();
        for (n, (_, number)) in boxes.iter().enumerate() {
            assert_eq!(engine.transact(|tx| number.get(tx)), Ok(n as u64 + 100));
        }
    });
}

#[test]
fn values_of_every_shape_come_back_as_they_were_written() {
    fn check<P: hotrow::Protocol, T: Value + PartialEq + std::fmt::Debug>(engine: &Engine<P>, a: T, b: T) {
        let kept = TBox::new(engine, a.clone());
        assert_eq!(engine.transact(|tx| kept.get(tx)), Ok(a.clone()));
        engine.transact(|tx| kept.set(tx, b.clone())).unwrap();
        assert_eq!(engine.transact(|tx| kept.get(tx)), Ok(b.clone()));
        let copied = engine.transact(|tx| {
            kept.set(tx, a.clone())?;
            kept.update(tx, |value| *value = b.clone())?;
            kept.get(tx)
        });
        assert_eq!(copied, Ok(b));
    }
    for_each_protocol!(1, |P| {
        let engine = &support::engine::<P>();
        check(engine, true, false);
        check(engine, 'x', char::MAX);
        check(engine, i8::MIN, 3);
        check(engine, f64::INFINITY, -0.5);
        check(engine, [1u8; 3], [255; 3]);
        check(engine, [7u16; 21], [0xfffe; 21]);
        check(engine, [u64::MAX; 32], [3; 32]);
        check(engine, vec![1, 2], Vec::<u8>::new());
        check(engine, Some(String::from("text")), None);
        check(engine, (1u8, String::from("pair")), (2, String::new()));
        check(engine, hotrow::sync::Arc::<str>::from("shared"), hotrow::sync::Arc::from("other"));
    });
}

#[test]
fn elements_of_an_array_change_each_on_its_own() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let array = TArray::new(&engine, 100, |index| index as u64 * 10);
        assert_eq!((array.len(), array.is_empty()), (100, false));
        engine
            .transact(|tx| {
                for index in (0..100).step_by(2) {
                    array.update(tx, index, |element| *element += 1)?;
                }
                array.set(tx, 99, 7)?;
                array.read(tx, 99, |element| assert_eq!(*element, 7))
            })
            .unwrap();
        for index in 0..99 {
            let expected = index as u64 * 10 + u64::from(index % 2 == 0);
            assert_eq!(engine.transact(|tx| array.get(tx, index)), Ok(expected));
        }
    });
}

#[test]
fn an_index_out_of_bounds_is_a_misuse_that_says_where() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let array = TArray::named(&engine, "slots", 3, |_| 0u64);
        let expected =
            |index| Err(Error::Misuse(Misuse::OutOfBounds { object: "slots".to_owned(), index, length: 3 }));
        assert_eq!(engine.transact(|tx| array.get(tx, 3)), expected(3));
        assert_eq!(
            engine.transact(|tx| {
                array.set(tx, 0, 9)?;
                array.set(tx, usize::MAX, 9)
            }),
            expected(usize::MAX).map(|_| ())
        );
        // A body that goes on all the same cannot commit.
        let swallowed = engine.transact(|tx| {
            array.set(tx, 1, 9)?;
            let _ = array.update(tx, 4, |_| ());
            Ok(0)
        });
        assert_eq!(swallowed, expected(4));
        assert_eq!(
            engine.transact(|tx| (0..3).map(|index| array.get(tx, index)).sum::<Result<u64, _>>()),
            Ok(0)
        );
    });
}

#[test]
fn a_counter_adds_sets_and_tests_as_arithmetic_says() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let counter = TCounter::new(&engine, 5);
        engine
            .transact(|tx| {
                counter.add(tx, 10)?;
                assert_eq!(counter.get(tx)?, 15);
                assert!(counter.is_at_least(tx, 15)? && !counter.is_at_least(tx, 16)?);
                assert!(counter.is_at_most(tx, 15)? && !counter.is_at_most(tx, 14)?);
                assert!(counter.is_between(tx, 15, 15)? && !counter.is_between(tx, 20, 10)?);
                counter.add(tx, -20)?;
                assert_eq!(counter.get(tx)?, -5);
                counter.set(tx, 100)?;
                counter.add(tx, 1)?;
                assert!(counter.is_between(tx, 101, 101)?);
                assert_eq!(counter.get(tx)?, 101);
                Ok(())
            })
            .unwrap();
        engine.transact(|tx| counter.add(tx, 7).and(Err::<(), _>(Abort::rollback()))).unwrap_err();
        assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(101));
        // At the ends of the range.
        let beyond = engine.transact(|tx| {
            counter.set(tx, i64::MAX)?;
            counter.add(tx, 1)
        });
        assert!(beyond.unwrap_err().downcast_ref::<Overflow>().is_some());
        assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(101));
        engine.transact(|tx| counter.set(tx, i64::MAX)).unwrap();
        engine
            .transact(|tx| {
                counter.add(tx, -1)?;
                assert!(counter.is_at_least(tx, i64::MAX - 1)? && counter.is_at_most(tx, i64::MAX - 1)?);
                assert_eq!(counter.get(tx)?, i64::MAX - 1);
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn a_test_of_a_counter_fails_only_if_its_answer_changes() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let counter = TCounter::new(&engine, 0);
        // The example of sto §3.5: a test, ten increments, the same test; the counter may be in [-9, 0].
        let body = |tx: &mut Transaction<'_, P>| {
            if tx.attempt_number() == 0 {
                assert!(!counter.is_at_least(tx, 1)?);
                (0..10).try_for_each(|_| counter.add(tx, 1))?;
                assert!(counter.is_at_least(tx, 1)?);
            }
            Ok(())
        };
        let mut overtaken = 0;
        for (value, expected) in [(0, 1), (-9, 1), (-5, 1), (1, 2), (-10, 2), (i64::MIN, 2), (i64::MAX, 2)] {
            engine.transact(|tx| counter.set(tx, 0)).unwrap();
            let Some(attempts) = attempts(&engine, body, |tx| counter.set(tx, value)) else { continue };
            assert_eq!(attempts, expected, "{value}");
            let kept = engine.transact(|tx| counter.get(tx)).unwrap();
            assert_eq!(kept, if expected == 1 { value + 10 } else { value });
            overtaken += u64::from(expected == 2);
        }
        assert_eq!(engine.statistics().aborts_for(Reason::PredicateFailed), overtaken);
    });
}

#[test]
fn a_test_holds_also_at_the_ends_of_the_range() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let (counter, verdict) = (TCounter::new(&engine, 0), TBox::new(&engine, false));
        for (amount, overtaking) in [(10, i64::MAX - 10), (-10, i64::MIN + 10)] {
            engine.transact(|tx| counter.set(tx, 0)).unwrap();
            let body = |tx: &mut Transaction<'_, P>| {
                counter.add(tx, amount)?;
                let holds = if amount > 0 { counter.is_at_least(tx, 0) } else { counter.is_at_most(tx, 0) }?;
                verdict.set(tx, holds)
            };
            attempts(&engine, body, |tx| counter.set(tx, overtaking));
            let (value, holds) = engine.transact(|tx| Ok((counter.get(tx)?, verdict.get(tx)?))).unwrap();
            assert_eq!(holds, if amount > 0 { value >= 0 } else { value <= 0 }, "{value}");
        }
    });
}

#[test]
fn an_exact_look_at_a_counter_conflicts_with_every_change_of_it() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let counter = TCounter::new(&engine, 0);
        let other = TBox::new(&engine, 0);
        let look = |tx: &mut Transaction<'_, P>| {
            let seen = counter.get(tx)?;
            other.set(tx, seen)
        };
        if let Some(attempts) = attempts(&engine, look, |tx| counter.add(tx, 1)) {
            assert_eq!((attempts, engine.transact(|tx| other.get(tx))), (2, Ok(1)));
        }
    });
}

#[test]
fn changes_of_a_counter_that_do_not_look_at_it_never_conflict() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        for (mine, others, expected) in [(5, 10, 15), (5, -10, -5), (i64::MAX, -10, i64::MAX - 10)] {
            let counter = TCounter::new(&engine, 0);
            match attempts(&engine, |tx| counter.add(tx, mine), |tx| counter.add(tx, others)) {
                Some(attempts) => {
                    assert_eq!((attempts, engine.transact(|tx| counter.get(tx))), (1, Ok(expected)))
                }
                None => assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(mine)),
            }
        }
        let counter = TCounter::new(&engine, 0);
        if let Some(attempts) = attempts(&engine, |tx| counter.add(tx, 5), |tx| counter.set(tx, 100)) {
            assert_eq!((attempts, engine.transact(|tx| counter.get(tx))), (1, Ok(105)));
        }
        if let Some(attempts) = attempts(&engine, |tx| counter.set(tx, 1), |tx| counter.add(tx, 10)) {
            assert_eq!((attempts, engine.transact(|tx| counter.get(tx))), (1, Ok(1)));
        }
    });
}

#[test]
fn transactions_conflict_over_elements_and_not_over_arrays() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = impatient::<P>();
        let array = TArray::new(&engine, 2, |_| 0u64);
        let first = |tx: &mut Transaction<'_, P>| array.update(tx, 0, |element| *element += 1);
        let elsewhere = attempts(&engine, first, |tx| array.update(tx, 1, |element| *element += 1));
        assert_eq!(elsewhere, Some(1));
        let same = attempts(&engine, first, |tx| array.update(tx, 0, |element| *element += 1));
        assert!(same.is_none_or(|attempts| attempts == 2));
        let sum = engine.transact(|tx| Ok(array.get(tx, 0)? + array.get(tx, 1)?)).unwrap();
        assert_eq!(sum, if same.is_none() { 3 } else { 4 });
        // A write that does not look depends on nothing.
        let blind = attempts(&engine, |tx| array.set(tx, 0, 9), |tx| array.set(tx, 0, 8));
        assert!(blind.is_none_or(|attempts| attempts == 1));
        assert_eq!(engine.transact(|tx| array.get(tx, 0)), Ok(9));
    });
}

#[test]
fn a_transaction_that_nobody_meets_commits_at_its_first_attempt_whatever_it_reads_and_whatever_the_time() {
    for_each_protocol!(1, |P| {
        for snapshots in [false, true] {
            let engine = support::engine::<P>();
            let hot = TBox::new(&engine, 0u64);
            let old = TArray::new(&engine, 8, |at| at as u64);
            let _snapshot = snapshots.then(|| engine.snapshot_strict().unwrap());
            for round in 1..=200 {
                let seen = engine.transact(|tx| {
                    // A segment of its own making, those of long ago, read once and twice, and a predicate of one.
                    let own = TBox::new(&engine, 3u64);
                    let sum = own.get(tx)? + old.get(tx, round % 8)? + old.get(tx, round % 3)?;
                    hot.update(tx, |hot| *hot += 1)?;
                    own.update(tx, |own| *own += 1)?;
                    Ok(sum + own.get(tx)?)
                });
                assert_eq!(seen, Ok(3 + round as u64 % 8 + round as u64 % 3 + 4));
            }
            assert_eq!(engine.statistics().aborts, 0, "snapshots: {snapshots}");
        }
    });
}
