//! Phantoms, stepped by hand: conditions that rows come to meet, or cease to meet, in the midst of a transaction.

use crate::support;
use crate::support::TableKind;
use crate::support::for_each_protocol;
use crate::support::steps::Interleaving;
use hotrow::{
    Abort, Database, Direction, Engine, Protocol, SecondaryIndex, TBox, TCounter, Table, Transaction,
};
use std::ops::ControlFlow;

type Tx<'w, P> = Transaction<'w, P>;

/// Accounts by number, with their balances, and by balance.
struct Accounts<P: Protocol> {
    table: Table<u64, i64, P>,
    by_balance: SecondaryIndex<i64, u64, i64, P>,
}

/// How the number of accounts in a range is found.
type Count<P> = fn(&Accounts<P>, &mut Tx<'_, P>) -> Result<i64, Abort>;

impl<P: Protocol> Accounts<P> {
    /// Accounts 0, 10, 20, 30 and 40 with these balances.
    fn new(engine: &Engine<P>, kind: TableKind) -> Self {
        let mut builder = Database::on(engine).table("accounts");
        let by_balance = builder.secondary("by_balance", |_, balance| *balance);
        let table = kind.of(builder).create().unwrap();
        table.bulk_insert((0..5u64).map(|number| (number * 10, number.cast_signed() * 10))).unwrap();
        Self { table, by_balance }
    }

    /// Counts those with a number, or a balance, from 15 to 25, in every way that there is.
    const COUNTS: [(TableKind, Count<P>); 11] = [
        (TableKind::Hash, Self::by_lookups),
        (TableKind::CachedHash, Self::by_lookups),
        (TableKind::Ordered, Self::by_lookups),
        (TableKind::Cached, Self::by_lookups),
        (TableKind::Ordered, |accounts, tx| accounts.by_numbers(tx, Direction::Ascending)),
        (TableKind::Ordered, |accounts, tx| accounts.by_numbers(tx, Direction::Descending)),
        (TableKind::Cached, |accounts, tx| accounts.by_numbers(tx, Direction::Ascending)),
        (TableKind::CachedTogether, |accounts, tx| accounts.by_numbers(tx, Direction::Descending)),
        (TableKind::Hash, |accounts, tx| accounts.by_entries(tx, Direction::Ascending)),
        (TableKind::Ordered, |accounts, tx| accounts.by_entries(tx, Direction::Descending)),
        (TableKind::Hash, |accounts, tx| accounts.by_rows(tx, Direction::Descending)),
    ];

    fn by_lookups(&self, tx: &mut Tx<'_, P>) -> Result<i64, Abort> {
        (15..=25).try_fold(0, |count, key| Ok(count + i64::from(self.table.get(tx, &key)?.is_some())))
    }

    fn by_numbers(&self, tx: &mut Tx<'_, P>, direction: Direction) -> Result<i64, Abort> {
        let mut count = 0;
        self.table.scan(tx, 15..=25, direction, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    fn by_entries(&self, tx: &mut Tx<'_, P>, direction: Direction) -> Result<i64, Abort> {
        let mut count = 0;
        self.by_balance.scan_keys(tx, 15..=25, direction, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    fn by_rows(&self, tx: &mut Tx<'_, P>, direction: Direction) -> Result<i64, Abort> {
        let mut count = 0;
        self.by_balance.scan(tx, 15..=25, direction, |_, _, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

/// The first transaction counts and notes the count; in between the second one sees nothing noted and makes a
/// change. If both commit, the second came first, so that its change is counted. A second look would find a
/// phantom before the commit does, so the first one takes it in every other interleaving only.
fn a_change_is_counted_or_comes_later<P: Protocol>(
    change: impl Fn(&Accounts<P>, &mut Tx<'_, P>) -> Result<(), Abort>,
) {
    for (number, (kind, count)) in Accounts::<P>::COUNTS.into_iter().enumerate() {
        // `change_first`: the change is made before the count, not after. It is committed after it either way.
        for (change_first, twice) in [(false, false), (false, true), (true, false), (true, true)] {
            Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                let accounts = Accounts::new(engine, kind);
                let note = TBox::new(engine, -1);
                let noted = t2.step(|tx| note.get(tx));
                if change_first {
                    t2.step(|tx| change(&accounts, tx));
                }
                let counted = t1.step(|tx| count(&accounts, tx));
                if !change_first {
                    t2.step(|tx| change(&accounts, tx));
                }
                t2.commit();
                let again = if twice { t1.step(|tx| count(&accounts, tx)) } else { counted };
                t1.step(|tx| note.set(tx, counted.unwrap()));
                if t1.commit() {
                    assert_eq!(counted, again, "way {number}: a phantom between two looks");
                }
                if support::is_opaque::<P>() {
                    assert!(again.is_none() || again == counted, "way {number}: a phantom");
                }
                assert!(t1.committed() || t2.committed());
                if t1.committed() && t2.committed() {
                    assert_eq!(noted, Some(-1));
                    let now = engine.transact(|tx| count(&accounts, tx));
                    assert_eq!(now.ok(), counted, "way {number}: a phantom");
                }
            });
        }
    }
}

#[test]
fn a_row_inserted_into_a_range_is_counted_or_comes_later() {
    for_each_protocol!(3, |P| {
        a_change_is_counted_or_comes_later::<P>(|accounts, tx| {
            accounts.table.insert_if_absent(tx, 17, 17).map(drop)
        });
    });
}

#[test]
fn a_row_deleted_from_a_range_is_counted_or_comes_later() {
    for_each_protocol!(3, |P| {
        a_change_is_counted_or_comes_later::<P>(|accounts, tx| accounts.table.delete(tx, &20).map(drop));
    });
}

#[test]
fn a_row_moved_into_or_out_of_a_range_of_a_secondary_index_is_counted_or_comes_later() {
    for_each_protocol!(3, |P| {
        for (key, balance) in [(40, 22), (20, 99)] {
            a_change_is_counted_or_comes_later::<P>(|accounts, tx| {
                accounts.table.update_if_present(tx, &key, |row| *row = balance).map(drop)
            });
        }
    });
}

#[test]
fn a_row_that_leaves_and_another_that_comes_do_not_hide_each_other() {
    for_each_protocol!(3, |P| {
        a_change_is_counted_or_comes_later::<P>(|accounts, tx| {
            accounts.table.delete(tx, &20)?;
            accounts.table.insert_if_absent(tx, 16, 16)?;
            accounts.table.insert_if_absent(tx, 24, 24).map(drop)
        });
    });
}

#[test]
fn two_that_each_insert_what_both_have_found_missing_do_not_both_commit() {
    for_each_protocol!(3, |P| {
        for (number, (kind, count)) in Accounts::<P>::COUNTS.into_iter().enumerate() {
            // `apart`: the first has committed before the second one inserts.
            for apart in [true, false] {
                Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                    let accounts = Accounts::new(engine, kind);
                    engine.transact(|tx| accounts.table.delete(tx, &20)).unwrap();
                    let counts = [&mut t1, &mut t2].map(|t| t.step(|tx| count(&accounts, tx)));
                    assert!(counts.iter().flatten().all(|count| *count == 0));
                    t1.step(|tx| accounts.table.insert_if_absent(tx, 17, 17));
                    if apart {
                        t1.commit();
                    }
                    t2.step(|tx| accounts.table.insert_if_absent(tx, 23, 23));
                    if !apart {
                        t1.commit();
                    }
                    t2.commit();
                    let committed = i64::from(t1.committed()) + i64::from(t2.committed());
                    assert!(committed < 2, "way {number}: a write skew by phantoms");
                    // Otherwise each one's insertion may be in the way of the other's.
                    assert!(!apart || committed == 1);
                    assert_eq!(engine.transact(|tx| count(&accounts, tx)), Ok(committed));
                });
            }
        }
    });
}

#[test]
fn a_change_of_two_tables_is_seen_in_both_or_in_neither() {
    for_each_protocol!(3, |P| {
        type Look<P> = fn(&Table<u64, u64, P>, &mut Tx<'_, P>) -> Result<u64, Abort>;
        // How a row is changed, and how the change is seen.
        let by_value: Look<P> = |table, tx| Ok(table.get(tx, &1)?.unwrap_or(0));
        let by_insertion: Look<P> = |table, tx| Ok(u64::from(table.get(tx, &2)?.is_some()));
        let by_deletion: Look<P> = |table, tx| Ok(u64::from(table.get(tx, &3)?.is_none()));
        let looks = [by_value, by_insertion, by_deletion];
        let pairs = looks.into_iter().flat_map(|first| looks.map(|second| (first, second)));
        for ((first, second), hash_first) in pairs.flat_map(|pair| [(pair, true), (pair, false)]) {
            Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                let mut tables = [
                    Database::on(engine).table("hash").hash(10).create().unwrap(),
                    Database::on(engine).table("ordered").create().unwrap(),
                ];
                for table in &tables {
                    table.bulk_insert([(1, 0)]).unwrap();
                    table.bulk_insert([(3, 0)]).unwrap();
                }
                if !hash_first {
                    tables.reverse();
                }
                let one = t1.step(|tx| first(&tables[0], tx));
                for table in &tables {
                    t2.step(|tx| {
                        table.update_if_present(tx, &1, |row| *row = 1)?;
                        table.insert_if_absent(tx, 2, 1)?;
                        table.delete(tx, &3)
                    });
                }
                t2.commit();
                let other = t1.step(|tx| second(&tables[1], tx));
                if t1.commit() || (support::is_opaque::<P>() && other.is_some()) {
                    assert_eq!(one, other, "a fractured read");
                }
                assert!(t1.committed() || t2.committed());
            });
        }
    });
}

#[test]
fn a_test_of_a_counter_holds_at_commit_whatever_is_added_meanwhile() {
    for_each_protocol!(3, |P| {
        let cases =
            [3, 4, 5, 6, 7, 8].into_iter().flat_map(|bound| [-2, -1, 1, 2].map(|added| (bound, added)));
        for (bound, added) in cases {
            // The adder commits before or after the tester; the tester adds something itself, or not.
            for (adder_first, own) in [(true, 0), (true, 2), (false, 0), (false, -2)] {
                Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                    let (counter, note) = (TCounter::new(engine, 5), TBox::new(engine, false));
                    let add_own = |tx: &mut Tx<'_, P>| if own == 0 { Ok(()) } else { counter.add(tx, own) };
                    t1.step(add_own);
                    let held = t1.step(|tx| counter.is_at_least(tx, bound));
                    // The adder sees nothing noted: if both commit, it came first.
                    let noted = t2.step(|tx| note.get(tx));
                    t2.step(|tx| counter.add(tx, added));
                    if adder_first {
                        t2.commit();
                    }
                    t1.step(|tx| note.set(tx, true));
                    t1.commit();
                    if !adder_first {
                        t2.commit();
                    }
                    assert!(t1.committed() || t2.committed());
                    let case = format!("5{own:+} >= {bound}, {added:+}");
                    if t1.committed() && t2.committed() {
                        assert_eq!(noted, Some(false), "{case}");
                        assert_eq!(held, Some(5 + added + own >= bound), "{case}");
                    }
                    let sum = if t1.committed() { own } else { 0 } + if t2.committed() { added } else { 0 };
                    assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(5 + sum), "{case}");
                });
            }
        }
    });
}
