//! Observations of parts of a leaf, stepped by hand: a change of the same leaf outside of the part is no conflict, every
//! change within it is one.

use crate::support::steps::{Interleaving, Stepped};
use crate::support::{self, TableKind, for_each_concurrent_protocol, for_each_protocol};
use hotrow::{Abort, Database, Direction, Engine, Protocol, SecondaryIndex, TBox, Table, Transaction};
use std::ops::{ControlFlow, RangeInclusive};

type Tx<'w, P> = Transaction<'w, P>;
type Orders<P> = Table<(u64, u64), u64, P>;

/// An observation of district 2 that ends before its order 20, and what it saw.
type Look<P> = fn(&Orders<P>, &mut Tx<'_, P>) -> Result<Vec<u64>, Abort>;

/// Orders of three districts, in one leaf.
fn orders<P: Protocol>(engine: &Engine<P>, kind: TableKind) -> Orders<P> {
    let orders = kind.of(Database::on(engine).table("orders")).create().unwrap();
    for (district, order) in [(1, 1), (1, 2), (2, 10), (2, 20), (3, 1)] {
        orders.bulk_insert([((district, order), 0)]).unwrap();
    }
    orders
}

fn scan<P: Protocol>(
    orders: &Orders<P>,
    tx: &mut Tx<'_, P>,
    range: RangeInclusive<(u64, u64)>,
    direction: Direction,
    limit: usize,
) -> Result<Vec<u64>, Abort> {
    let mut seen = Vec::new();
    orders.scan(tx, range, direction, |key, _| {
        seen.push(key.1);
        if seen.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(seen)
}

fn looks<P: Protocol>() -> [Look<P>; 5] {
    [
        |orders, tx| scan(orders, tx, (2, 0)..=(2, u64::MAX), Direction::Ascending, 1),
        |orders, tx| scan(orders, tx, (2, 0)..=(2, 19), Direction::Ascending, 9),
        |orders, tx| scan(orders, tx, (2, 0)..=(2, 19), Direction::Descending, 9),
        |orders, tx| scan(orders, tx, (2, 1)..=(2, 15), Direction::Descending, 9),
        |orders, tx| {
            let keys = [5, 10, 7];
            let found = keys.map(|key| Ok(orders.get(tx, &(2, key))?.map(|_| key)));
            found.into_iter().filter_map(Result::transpose).collect()
        },
    ]
}

/// Runs interleavings of three transactions on fresh orders, and a box in which a transaction leaves a note. The first one
/// begins with a look.
fn each_look<P: Protocol>(
    work: impl Fn(&Engine<P>, &Orders<P>, &TBox<u64, P>, [Stepped<'_, P>; 3], Look<P>, usize),
) {
    let kinds = [TableKind::Ordered, TableKind::Cached, TableKind::CachedTogether];
    let all = kinds.into_iter().flat_map(|kind| looks::<P>().map(|look| (kind, look)));
    for (number, (kind, look)) in all.enumerate() {
        Interleaving::<P>::new().run(|engine, transactions| {
            let orders = orders(engine, kind);
            work(engine, &orders, &TBox::new(engine, 0), transactions, look, number);
        });
    }
}

#[test]
fn an_insertion_of_another_district_is_no_conflict() {
    for_each_protocol!(4, |P| {
        each_look::<P>(|engine, orders, note, [mut t1, mut t2, mut t3], look, number| {
            assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
            // Enough to split the leaf, on either side of the part.
            for (other, district) in [(&mut t2, 1), (&mut t3, 2)] {
                for order in 0..40 {
                    other.step(|tx| orders.insert_if_absent(tx, (district, 100 + order), 0));
                }
                other.commit();
            }
            t1.step(|tx| note.set(tx, 1));
            assert!(t1.commit(), "{number}: none of the keys that it has seen or missed was changed");
            let others = u64::from(t2.committed()) + u64::from(t3.committed());
            let count =
                engine.transact(|tx| scan(orders, tx, (0, 0)..=(9, 0), Direction::Ascending, 999)).unwrap();
            assert_eq!(count.len() as u64, 5 + 40 * others);
        });
    });
}

#[test]
fn an_insertion_that_is_rolled_back_is_no_conflict() {
    for_each_protocol!(4, |P| {
        each_look::<P>(|_, orders, note, [mut t1, mut t2, _], look, number| {
            t2.step(|tx| orders.insert_if_absent(tx, (2, 5), 0));
            t2.roll_back();
            assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
            t1.step(|tx| note.set(tx, 1));
            assert!(t1.commit(), "{number}");
        });
        each_look::<P>(|_, orders, note, [mut t1, mut t2, _], look, number| {
            assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
            t2.step(|tx| orders.insert_if_absent(tx, (2, 5), 0));
            t2.roll_back();
            t1.step(|tx| note.set(tx, 1));
            assert!(t1.commit(), "{number}");
        });
    });
}

#[test]
fn two_looks_at_different_states_of_a_leaf_do_not_contradict_each_other() {
    for_each_protocol!(4, |P| {
        each_look::<P>(|_, orders, note, [mut t1, mut t2, _], look, number| {
            assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
            t2.step(|tx| orders.insert_if_absent(tx, (1, 3), 0));
            t2.commit();
            let third = t1.step(|tx| scan(orders, tx, (3, 0)..=(3, u64::MAX), Direction::Ascending, 1));
            assert_eq!(third.unwrap(), [1], "{number}");
            t1.step(|tx| note.set(tx, 1));
            assert!(t1.commit(), "{number}");
        });
    });
}

#[test]
fn own_insertions_are_no_conflict_whatever_others_insert_elsewhere() {
    for_each_protocol!(4, |P| {
        each_look::<P>(|engine, orders, _, [mut t1, mut t2, _], look, number| {
            assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
            t2.step(|tx| orders.insert_if_absent(tx, (1, 3), 0));
            t2.commit();
            if t1.step(|tx| orders.insert_if_absent(tx, (2, 7), 0)).is_some() {
                for order in 0..40 {
                    t1.step(|tx| orders.insert_if_absent(tx, (2, 100 + order), 0));
                }
                t1.step(|tx| orders.delete(tx, &(2, 110)));
                assert!(t1.commit(), "{number}");
                assert!(engine.transact(|tx| orders.get(tx, &(2, 7))).unwrap().is_some());
            } else {
                // The other one holds the leaf.
                assert!(!t2.committed() || crate::support::locks_ranges(), "{number}");
            }
        });
    });
}

/// Three rows with an index of their values.
fn rows_by_value<P: Protocol>(engine: &Engine<P>) -> (Table<u64, u64, P>, SecondaryIndex<u64, u64, u64, P>) {
    let mut builder = Database::on(engine).table("rows");
    let by_value = builder.secondary("by_value", |_, row: &u64| *row);
    (support::loaded(builder, [(1, 10), (2, 20), (3, 30)]), by_value)
}

#[test]
fn a_first_row_of_an_index_depends_on_nothing_behind_it() {
    for_each_concurrent_protocol!(4, |P| {
        for direction in [Direction::Ascending, Direction::Descending] {
            Interleaving::<P>::new().run(|engine, [mut t1, mut t2, _]: [Stepped<'_, P>; 3]| {
                let (rows, by_value) = rows_by_value(engine);
                let note = TBox::new(engine, 0);
                let first = t1.step(|tx| {
                    let mut seen = None;
                    by_value.scan(tx, .., direction, |_, key, row| {
                        seen = Some((*key, *row));
                        ControlFlow::Break(())
                    })?;
                    Ok(seen)
                });
                let is_up = direction == Direction::Ascending;
                assert_eq!(first, Some(Some(if is_up { (1, 10) } else { (3, 30) })));
                // Behind the first one on either side. (An entry that is removed from the leaf is a conflict.)
                t2.step(|tx| rows.insert_if_absent(tx, 4, if is_up { 15 } else { 26 }));
                t2.commit();
                assert!(t2.committed() || crate::support::locks_ranges());
                t1.step(|tx| note.set(tx, 1));
                assert!(t1.commit(), "it has seen nothing of that");
            });
        }
    });
}

#[test]
fn a_first_row_of_an_index_depends_on_all_before_it() {
    for_each_concurrent_protocol!(4, |P| {
        Interleaving::<P>::new().run(|engine, [mut t1, mut t2, _]: [Stepped<'_, P>; 3]| {
            let (rows, by_value) = rows_by_value(engine);
            let note = TBox::new(engine, 0);
            t1.step(|tx| by_value.scan(tx, 5.., Direction::Ascending, |_, _, _| ControlFlow::Break(())));
            t2.step(|tx| rows.insert_if_absent(tx, 4, 7));
            t2.step(|tx| note.set(tx, 1));
            t2.commit();
            // It would come after the other one, and before the row that this one has inserted.
            t1.step(|tx| note.update(tx, |note| *note += 1));
            assert!(!(t1.commit() && t2.committed()), "it has missed a row");
        });
    });
}

/// The first transaction looks, then others change district 2, and then the first one depends on them by a note. So it
/// would come after them, and before the change that it has not seen.
fn a_change_is_a_conflict<P: Protocol>(
    own: bool,
    changes: [&dyn Fn(&Orders<P>, &mut Tx<'_, P>) -> Result<(), Abort>; 2],
) {
    each_look::<P>(|_, orders, note, [mut t1, mut t2, mut t3], look, number| {
        assert_eq!(t1.step(|tx| look(orders, tx)).unwrap(), [10], "{number}");
        if own {
            t1.step(|tx| orders.insert_if_absent(tx, (2, 6), 0));
        }
        t2.step(|tx| changes[0](orders, tx));
        t2.step(|tx| note.set(tx, 1));
        t2.commit();
        t3.step(|tx| changes[1](orders, tx));
        t3.commit();
        let noted = t1.step(|tx| note.get(tx));
        t1.step(|tx| note.set(tx, 2));
        t1.commit();
        assert!(!(t1.committed() && t2.committed() && noted == Some(1)), "{number}: a phantom");
        assert!(t1.committed() || t2.committed(), "{number}");
    });
}

#[test]
fn changes_of_the_same_district_are_conflicts() {
    for_each_protocol!(4, |P| {
        for own in [false, true] {
            a_change_is_a_conflict::<P>(
                own,
                [&|orders, tx| orders.insert_if_absent(tx, (2, 7), 0).map(drop), &|_, _| Ok(())],
            );
            a_change_is_a_conflict::<P>(
                own,
                [&|orders, tx| orders.delete(tx, &(2, 10)).map(drop), &|_, _| Ok(())],
            );
            // It comes and goes.
            a_change_is_a_conflict::<P>(
                own,
                [&|orders, tx| orders.insert_if_absent(tx, (2, 7), 0).map(drop), &|orders, tx| {
                    orders.delete(tx, &(2, 7)).map(drop)
                }],
            );
            // It goes and comes.
            a_change_is_a_conflict::<P>(
                own,
                [&|orders, tx| orders.delete(tx, &(2, 10)).map(drop), &|orders, tx| {
                    orders.insert_if_absent(tx, (2, 10), 0).map(drop)
                }],
            );
            // One for another.
            a_change_is_a_conflict::<P>(
                own,
                [
                    &|orders, tx| {
                        orders.delete(tx, &(2, 10))?;
                        orders.insert_if_absent(tx, (2, 7), 0).map(drop)
                    },
                    &|_, _| Ok(()),
                ],
            );
            // The leaf is split.
            a_change_is_a_conflict::<P>(
                own,
                [
                    &|orders, tx| {
                        (0..80).try_for_each(|order| {
                            orders.insert_if_absent(tx, (1, 100 + order), 0).map(drop)
                        })?;
                        orders.insert_if_absent(tx, (2, 7), 0).map(drop)
                    },
                    &|_, _| Ok(()),
                ],
            );
            // The leaf is split, then emptied and unlinked.
            a_change_is_a_conflict::<P>(
                own,
                [
                    &|orders, tx| {
                        (0..80).try_for_each(|order| {
                            orders.insert_if_absent(tx, (2, 100 + order), 0).map(drop)
                        })?;
                        orders.insert_if_absent(tx, (2, 7), 0).map(drop)
                    },
                    &|orders, tx| {
                        (0..80).try_for_each(|order| orders.delete(tx, &(2, 100 + order)).map(drop))?;
                        [7, 10, 20].into_iter().try_for_each(|order| orders.delete(tx, &(2, order)).map(drop))
                    },
                ],
            );
        }
    });
}
