//! Inputs of deferred operations that say of themselves what is not so, and operations deferred by others.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::object::ObjectMeta;
use hotrow::operations::Results;
use hotrow::{Abort, Database, Deferred, Error, Input, Misuse, Protocol, TBox, Table, Transaction};
use std::cell::Cell;

/// An input that claims to be known or not, whatever is so.
#[derive(Debug, Clone, Copy)]
struct Says {
    known: bool,
    value: Option<u64>,
}

impl Input for Says {
    type Value = u64;
    fn get(&self, _: &Results) -> Option<u64> {
        self.value
    }
    fn is_known(&self, _: &Results) -> bool {
        self.known
    }
    fn belongs_to(&self, _: &Results) -> bool {
        true
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        (0..5).for_each(visit);
    }
}

type Use<P> = (&'static str, fn(&World<P>, &mut Transaction<'_, P>, Says) -> Result<(), Abort>);

struct World<P: Protocol> {
    number: TBox<u64, P>,
    table: Table<u64, u64, P>,
}

fn uses<P: Protocol>() -> Vec<Use<P>> {
    vec![
        ("compute", |_, tx, says| tx.compute(says, |_| ()).map(|_| ())),
        ("update", |world, tx, says| {
            world.number.defer_update(tx, says, |number, value| *number = value).map(|_| ())
        }),
        ("insert", |world, tx, says| world.table.defer_insert(tx, says, says).map(|_| ())),
        ("insert grouped", |world, tx, says| world.table.defer_insert_grouped(tx, 3, says, says).map(|_| ())),
        ("replace", |world, tx, says| world.table.defer_replace(tx, &1, says).map(|_| ())),
        ("keys", |world, tx, says| {
            let keys = tx.compute(says, |key| [key])?;
            world.table.defer_update_each(tx, keys, (), (), |_, row, ()| *row += 1).map(|_| ())
        }),
        ("late", |world, tx, says| {
            let keys = Keys(says);
            world.table.defer_update_each(tx, keys, (), (), |_, row, ()| *row += 1).map(|_| ())
        }),
        ("force", |_, tx, says| {
            let value = tx.compute(says, |value| value)?;
            tx.force(value).map(|_| ())
        }),
    ]
}

/// Keys that come of such an input.
struct Keys(Says);
impl Input for Keys {
    type Value = [u64; 1];
    fn get(&self, results: &Results) -> Option<[u64; 1]> {
        self.0.get(results).map(|key| [key])
    }
    fn is_known(&self, results: &Results) -> bool {
        self.0.is_known(results)
    }
    fn belongs_to(&self, _: &Results) -> bool {
        true
    }
    fn each_slot(&self, _: &mut dyn FnMut(u32)) {}
}

#[test]
fn an_input_without_a_value_is_misuse_and_no_panic() {
    for_each_protocol!(1, |P| {
        for (name, misuse) in uses::<P>() {
            for known in [false, true] {
                let engine = support::engine::<P>();
                let world = World {
                    number: TBox::new(&engine, 1),
                    table: Database::on(&engine).table("rows").create().unwrap(),
                };
                world.table.bulk_insert([(1, 1)]).unwrap();
                let says = Says { known, value: None };
                let refused = engine.transact(|tx| misuse(&world, tx, says));
                assert_eq!(refused, Err(Error::Misuse(Misuse::UnknownInput)), "{name}, known: {known}");
                let seen = engine.transact(|tx| Ok((world.number.get(tx)?, world.table.get(tx, &1)?)));
                assert_eq!(seen, Ok((1, Some(1))), "{name}");
                // One that has a value and says that it has not may be used when everything else has run.
                let says = Says { known, value: Some(5) };
                let used = engine.transact(|tx| misuse(&world, tx, says));
                let may_be_refused = !known && used == Err(Error::Misuse(Misuse::UnknownInput));
                assert!(used == Ok(()) || may_be_refused, "{name}: {used:?}");
            }
        }
    });
}

#[test]
fn a_late_operation_that_gives_a_handle_of_another_attempt_is_misuse() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        table.bulk_insert([(1, 1)]).unwrap();
        let old: Deferred<u64> = engine.transact(|tx| Ok(tx.known(7))).unwrap();
        let label = ObjectMeta::new(engine.id(), "late");
        let refused = engine.transact(|tx| {
            let key = table.defer_read(tx, &1, |row| *row)?;
            tx.enter(&label)?
                .deferral_mut()
                .defer_late(&label, u64::MAX, key, move |_, _| Ok(old))
                .map(|_| ())
        });
        assert_eq!(refused, Err(Error::Misuse(Misuse::ForeignDeferred)));
    });
}

/// Operations that an intention defers are done by the time of the commit, whatever the protocol.
#[test]
fn operations_that_a_deferred_operation_defers_are_done() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (first, second) = (TBox::new(&engine, 1u64), TBox::new(&engine, 1u64));
        let meta = ObjectMeta::new(engine.id(), "nested");
        let second = std::rc::Rc::new(second);
        let computed = std::rc::Rc::new(Cell::new(0));
        let result = engine.transact_deferred(|tx| {
            let (second, computed) = (second.clone(), computed.clone());
            let now = first.defer_update(tx, (), |number, ()| {
                *number += 1;
                *number
            })?;
            tx.enter(&meta)?.deferral_mut().intend(now, move |tx, now| {
                tx.compute((), move |()| computed.set(now))?;
                second.defer_update(tx, (), move |number, ()| *number += now)?;
                Ok(now)
            })
        });
        assert_eq!((result, computed.get()), (Ok(2), 2));
        assert_eq!(engine.transact(|tx| Ok((first.get(tx)?, second.get(tx)?))), Ok((2, 3)));
    });
}
