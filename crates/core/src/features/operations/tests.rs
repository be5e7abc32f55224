//! Tests of operators on deferred values, and of handles. Crate `hotrow` tests deferred operations on objects over
//! every protocol.

use super::{Constant, Input};
use crate::testing::Unprotected;
use crate::{Abort, Deferred, Engine, Error, Misuse, Transaction};

type Tx<'w> = Transaction<'w, Unprotected>;

/// Computes an input that is made in a transaction.
fn value<I: Input>(make: impl Fn(&mut Tx<'_>) -> I) -> I::Value
where
    I::Value: Clone,
{
    let engine = Engine::<Unprotected>::new();
    engine
        .transact_deferred(|tx| {
            let input = make(tx);
            tx.compute(input, |value| value)
        })
        .unwrap()
}

fn number(tx: &mut Tx<'_>) -> Deferred<i64> {
    tx.known(7)
}

fn flag(tx: &mut Tx<'_>, holds: bool) -> Deferred<bool> {
    tx.known(holds)
}

#[test]
fn arithmetic_takes_numbers_and_deferred_values_on_both_sides() {
    assert_eq!(value(|tx| number(tx) + 1), 8);
    assert_eq!(value(|tx| number(tx) - number(tx)), 0);
    assert_eq!(value(|tx| 1 - number(tx)), -6);
    assert_eq!(value(|tx| 2 * (number(tx) - 1)), 12);
    assert_eq!(value(|tx| (number(tx) + 1) * (number(tx) + 1)), 64);
    assert_eq!(value(|tx| -(number(tx) + 1)), -8);
    assert_eq!(value(|tx| -number(tx)), -7);
    assert_eq!(value(|tx| (number(tx) / 2, number(tx) % 4)), (3, 3));
    assert_eq!(value(|tx| 1.0 - tx.known(0.5)), 0.5);
}

#[test]
fn comparisons_give_what_the_operators_give() {
    for other in [6, 7, 8] {
        let all = value(|tx| {
            let seven = number(tx);
            ((seven.equals(other), seven.differs(other)), (seven.less_than(other), seven.at_most(other)))
        });
        assert_eq!(all, ((7 == other, 7 != other), (7 < other, 7 <= other)));
        let both = value(|tx| (number(tx).greater_than(other), (number(tx) + 0).at_least(other)));
        assert_eq!(both, (7 > other, 7 >= other));
    }
    assert!(value(|tx| (number(tx) + 1).greater_than(number(tx))));
    assert!(value(|tx| tx.known("seven").equals(Constant("seven"))));
}

#[test]
fn truth_values_combine() {
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(value(|tx| flag(tx, first) & flag(tx, second)), first && second);
        assert_eq!(value(|tx| flag(tx, first) | second), first || second);
        assert_eq!(value(|tx| !(flag(tx, first) & second)), !(first && second));
        assert_eq!(value(|tx| !flag(tx, first)), !first);
    }
    assert!(value(|tx| number(tx).at_least(7) & !number(tx).at_least(8)));
}

#[test]
fn values_of_any_type_are_mapped_and_zipped() {
    let words = value(|tx| {
        let (name, count) = (tx.known(String::from("seat")), number(tx));
        name.zip(count + 1).map(|(name, count)| format!("{count} {name}s"))
    });
    assert_eq!(words, "8 seats");
    assert_eq!(value(|tx| (number(tx) + 1).zip(2u8)), (8, 2));
    assert_eq!(value(|tx| (number(tx) + 1).map(|n| n as u8 as char)), '\u{8}');
    assert_eq!(value(|tx| (number(tx), 1u8, Constant("x"), tx.known(()))), (7, 1, "x", ()));
}

#[test]
fn an_expression_is_computed_wherever_it_is_used() {
    let engine = Engine::<Unprotected>::new();
    let both = engine.transact_deferred(|tx| {
        let next = number(tx) + 1;
        let twice = tx.compute(next, |n| n * 2)?;
        tx.compute((next, twice), |both| both)
    });
    assert_eq!(both, Ok((8, 16)));
}

#[test]
fn a_handle_of_an_earlier_attempt_is_refused_wherever_it_stands() {
    let engine = Engine::<Unprotected>::new();
    let old = engine.transact(|tx| Ok(number(tx))).unwrap();
    type Use = fn(&mut Tx<'_>, Deferred<i64>) -> Result<(), Abort>;
    let uses: [Use; 8] = [
        |tx, old| tx.force(old).map(|_| ()),
        |tx, old| tx.compute(old, |_| ()).map(|_| ()),
        |tx, old| tx.compute(old + 1, |_| ()).map(|_| ()),
        |tx, old| tx.compute(1 + old, |_| ()).map(|_| ()),
        |tx, old| tx.compute(-old, |_| ()).map(|_| ()),
        |tx, old| {
            let pair = number(tx).zip(old);
            tx.compute((1, pair), |_| ()).map(|_| ())
        },
        |tx, old| tx.compute(old.map(|n| n), |_| ()).map(|_| ()),
        |tx, old| {
            let condition = number(tx).at_least(old);
            tx.require(condition)
        },
    ];
    for misuse in uses {
        let refused = engine.transact(|tx| {
            number(tx);
            misuse(tx, old)
        });
        assert_eq!(refused, Err(Error::Misuse(Misuse::ForeignDeferred)));
        // Also if the body ignores the error.
        let refused = engine.transact(|tx| {
            let _ = misuse(tx, old);
            Ok(())
        });
        assert_eq!(refused, Err(Error::Misuse(Misuse::ForeignDeferred)));
    }
    assert_eq!(engine.transact_deferred(|_| Ok(old)), Err(Error::Misuse(Misuse::ForeignDeferred)));
}

#[test]
fn a_division_by_zero_ends_its_transaction_only() {
    // Writing a backtrace takes long, and the pinned transaction makes others wait meanwhile.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let engine = Engine::<Unprotected>::new();
    let divided = engine.transact_deferred(|tx| {
        let quotient = number(tx) / (number(tx) - 7);
        tx.compute(quotient, |quotient| quotient)
    });
    let Err(Error::Panicked { message }) = divided else { panic!("{divided:?}") };
    assert!(message.contains("divide by zero"), "{message}");
    assert_eq!(engine.transact(|_| Ok(1)), Ok(1));
}
