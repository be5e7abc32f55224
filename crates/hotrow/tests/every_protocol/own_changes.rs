//! A transaction's changes of rows, stepped by hand, as seen by itself and by others in the midst of it.

use crate::support::for_each_protocol;
use crate::support::steps::{Interleaving, Stepped};
use hotrow::{Abort, Database, Direction, Engine, Protocol, SecondaryIndex, Table, Transaction};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

type Tx<'w, P> = Transaction<'w, P>;

/// Rows, also by their values.
struct Rows<P: Protocol> {
    table: Table<u64, u64, P>,
    by_value: SecondaryIndex<u64, u64, u64, P>,
    hash: bool,
}

/// A row's new state under a key: `None` for none.
type Change = (u64, Option<u64>);

impl<P: Protocol> Rows<P> {
    fn new(engine: &Engine<P>, hash: bool, loaded: &BTreeMap<u64, u64>) -> Self {
        let mut builder = Database::on(engine).table("rows");
        let by_value = builder.secondary("by_value", |_, row| *row);
        let table = if hash { builder.hash(10).create().unwrap() } else { builder.create().unwrap() };
        table.bulk_insert(loaded.clone()).unwrap();
        Self { table, by_value, hash }
    }

    /// Steps the same interleaving over a hash and an ordered table with these rows.
    fn interleave<const N: usize>(
        loaded: &BTreeMap<u64, u64>,
        work: impl Fn(&Engine<P>, &Self, [Stepped<'_, P>; N]),
    ) {
        for hash in [true, false] {
            Interleaving::<P>::new().run(|engine, transactions| {
                work(engine, &Self::new(engine, hash, loaded), transactions);
            });
        }
    }

    /// Inserts, updates or deletes, as is needed to get there.
    fn change(&self, tx: &mut Tx<'_, P>, (key, row): Change) -> Result<(), Abort> {
        match row {
            None => self.table.delete(tx, &key).map(drop),
            Some(row) => {
                if !self.table.insert_if_absent(tx, key, row)? {
                    self.table.update_if_present(tx, &key, |old| *old = row)?;
                }
                Ok(())
            }
        }
    }

    /// Looks at all rows in every way there is, which must all say the same.
    fn look(&self, tx: &mut Tx<'_, P>) -> Result<BTreeMap<u64, u64>, Abort> {
        let mut rows = BTreeMap::new();
        for key in 0..KEYS {
            rows.extend(self.table.get(tx, &key)?.map(|row| (key, row)));
        }
        if !self.hash {
            self.check_scans(tx, &rows)?;
        }
        self.check_secondary_scans(tx, &rows)?;
        Ok(rows)
    }

    fn check_scans(&self, tx: &mut Tx<'_, P>, rows: &BTreeMap<u64, u64>) -> Result<(), Abort> {
        let all = (Bound::Unbounded, Bound::Unbounded);
        for range in [all, (Bound::Included(1), Bound::Excluded(4)), (Bound::Excluded(2), Bound::Included(5))]
        {
            let mut expected: Vec<_> = rows.range(range).map(|(key, row)| (*key, *row)).collect();
            for direction in [Direction::Ascending, Direction::Descending] {
                assert_eq!(self.table.collect(tx, range, direction, usize::MAX)?, expected, "{range:?}");
                let first = expected.iter().take(1).copied().collect::<Vec<_>>();
                assert_eq!(self.table.collect(tx, range, direction, 1)?, first, "{range:?}");
                expected.reverse();
            }
        }
        Ok(())
    }

    fn check_secondary_scans(&self, tx: &mut Tx<'_, P>, rows: &BTreeMap<u64, u64>) -> Result<(), Abort> {
        let mut expected: Vec<_> = rows.iter().map(|(key, row)| (*row, *key)).collect();
        expected.sort_unstable();
        for direction in [Direction::Ascending, Direction::Descending] {
            let (mut entries, mut found) = (Vec::new(), Vec::new());
            self.by_value.scan_keys(tx, .., direction, |row, key| {
                entries.push((*row, *key));
                ControlFlow::Continue(())
            })?;
            self.by_value.scan(tx, .., direction, |value, key, row| {
                assert_eq!(value, row);
                found.push((*value, *key));
                ControlFlow::Continue(())
            })?;
            assert_eq!((&entries, &found), (&expected, &expected), "{direction:?}");
            expected.reverse();
        }
        Ok(())
    }
}

const KEYS: u64 = 7;

/// Rows 1, 3 and 5, with values in the opposite order.
fn odd() -> BTreeMap<u64, u64> {
    BTreeMap::from([(1, 50), (3, 30), (5, 10)])
}

/// Makes changes, one a step. After each the transaction itself sees them all, by lookups and scans; the others
/// see none of them, and then, if it commits, all.
fn changes_are_seen_by_oneself_only<P: Protocol>(loaded: &BTreeMap<u64, u64>, changes: &[Change]) {
    for commits in [true, false] {
        Rows::<P>::interleave(loaded, |engine, rows, [mut t1, mut t2, mut t3]| {
            let mut own = loaded.clone();
            assert_eq!(t1.step(|tx| rows.look(tx)).as_ref(), Some(loaded));
            t2.begin();
            for change in changes {
                match change.1 {
                    Some(row) => own.insert(change.0, row),
                    None => own.remove(&change.0),
                };
                let seen = t1.step(|tx| {
                    rows.change(tx, *change)?;
                    rows.look(tx)
                });
                assert!(seen.is_none_or(|seen| seen == own), "at {change:?}");
                // One who does nothing but look on, and one who has looked on all the time.
                let looked = t3.ahead(|tx| rows.look(tx));
                assert!(looked.is_none_or(|looked| looked == *loaded), "a dirty read at {change:?}");
                let looked = t2.step(|tx| rows.look(tx));
                assert!(looked.is_none_or(|looked| looked == *loaded), "a dirty read at {change:?}");
            }
            t2.commit();
            let expected = if commits && t1.commit() { own } else { loaded.clone() };
            if !commits {
                t1.roll_back();
            }
            assert_eq!(t3.ahead(|tx| rows.look(tx)), Some(expected.clone()));
            assert_eq!(engine.transact(|tx| rows.look(tx)), Ok(expected));
            assert!(!commits || t1.committed() || t2.committed());
        });
    }
}

#[test]
fn a_row_inserted_deleted_and_inserted_again_is_seen_by_nobody_else_before_the_end() {
    for_each_protocol!(4, |P| {
        changes_are_seen_by_oneself_only::<P>(&odd(), &[(2, Some(7)), (2, None), (2, Some(8))]);
        changes_are_seen_by_oneself_only::<P>(&odd(), &[(2, Some(7)), (2, None)]);
        changes_are_seen_by_oneself_only::<P>(&BTreeMap::new(), &[(0, Some(7)), (0, None), (0, Some(7))]);
    });
}

#[test]
fn a_row_deleted_inserted_again_and_deleted_is_there_for_others_until_the_end() {
    for_each_protocol!(4, |P| {
        changes_are_seen_by_oneself_only::<P>(&odd(), &[(3, None), (3, Some(8)), (3, Some(60)), (3, None)]);
        changes_are_seen_by_oneself_only::<P>(&odd(), &[(3, Some(31)), (3, None), (3, Some(30))]);
    });
}

#[test]
fn scans_see_ones_own_changes_in_their_places() {
    for_each_protocol!(4, |P| {
        let changes = [
            (0, Some(20)),
            (1, Some(5)),
            (2, Some(55)),
            (3, None),
            (6, Some(5)),
            (3, Some(15)),
            (5, None),
            (0, None),
            (4, Some(5)),
            (5, Some(70)),
            (1, None),
        ];
        changes_are_seen_by_oneself_only::<P>(&odd(), &changes);
        changes_are_seen_by_oneself_only::<P>(&BTreeMap::new(), &changes);
    });
}

#[test]
fn of_two_open_transactions_that_insert_the_same_key_one_is_told_that_it_exists() {
    for_each_protocol!(3, |P| {
        for (looks_first, rolls_back) in [(false, false), (false, true), (true, false), (true, true)] {
            Rows::<P>::interleave(&odd(), |engine, rows, [mut t1, mut t2]| {
                if looks_first {
                    t1.step(|tx| rows.table.get(tx, &2));
                    t2.step(|tx| rows.table.get(tx, &2));
                }
                let first = t1.step(|tx| rows.table.insert_if_absent(tx, 2, 100));
                let second = t2.step(|tx| rows.table.insert_if_absent(tx, 2, 200));
                if rolls_back {
                    t1.roll_back();
                } else {
                    t1.commit();
                }
                let inserted: Vec<_> = [(t2.commit(), second, 200), (t1.committed(), first, 100)]
                    .into_iter()
                    .filter_map(|(committed, inserted, row)| {
                        (committed && inserted == Some(true)).then_some(row)
                    })
                    .collect();
                assert!(rolls_back || t1.committed() || t2.committed());
                assert!(inserted.len() < 2, "both have inserted it");
                if second == Some(false) && t2.committed() {
                    assert!(t1.committed(), "told of what did not come to be");
                }
                let now = engine.transact(|tx| rows.table.get(tx, &2));
                assert_eq!(now, Ok(inserted.first().copied()));
                engine.transact(|tx| rows.look(tx)).unwrap();
            });
        }
    });
}

#[test]
fn a_key_can_be_inserted_after_another_ones_insertion_of_it_was_rolled_back() {
    for_each_protocol!(3, |P| {
        Rows::<P>::interleave(&odd(), |engine, rows, [mut t1, mut t2]| {
            t2.begin();
            t1.step(|tx| rows.table.insert_if_absent(tx, 2, 100));
            t1.roll_back();
            assert_eq!(t2.step(|tx| rows.table.insert_if_absent(tx, 2, 200)), Some(true));
            assert!(t2.commit(), "nobody is in its way");
            assert_eq!(engine.transact(|tx| rows.look(tx)).unwrap().get(&2), Some(&200));
        });
    });
}

#[test]
fn a_key_that_another_open_transaction_has_deleted_exists_until_that_commits() {
    for_each_protocol!(3, |P| {
        for (deleter_first, rolls_back) in [(true, false), (false, false), (true, true), (false, true)] {
            Rows::<P>::interleave(&odd(), |engine, rows, [mut t1, mut t2]| {
                let deleted = t1.step(|tx| rows.table.delete(tx, &3));
                let inserted = t2.step(|tx| rows.table.insert_if_absent(tx, 3, 200));
                let end = |t: &mut Stepped<'_, P>| {
                    if rolls_back {
                        t.roll_back();
                    } else {
                        t.commit();
                    }
                };
                if deleter_first {
                    end(&mut t1);
                }
                t2.commit();
                if !deleter_first {
                    end(&mut t1);
                }
                assert!(rolls_back || t1.committed() || t2.committed());
                let now = engine.transact(|tx| rows.look(tx)).unwrap().get(&3).copied();
                if t2.committed() && inserted == Some(true) {
                    assert!(t1.committed(), "in the place of a row that was not deleted");
                    assert_eq!(now, Some(200));
                } else {
                    assert_eq!(now, if t1.committed() { None } else { Some(30) });
                    assert!(!t1.committed() || deleted == Some(true));
                }
            });
        }
    });
}

#[test]
fn a_row_that_one_updates_and_another_deletes_is_updated_first_or_not_at_all() {
    for_each_protocol!(3, |P| {
        for (updater_first, read_first) in [(true, true), (true, false), (false, true), (false, false)] {
            Rows::<P>::interleave(&odd(), |engine, rows, [mut t1, mut t2]| {
                if read_first {
                    t2.step(|tx| rows.table.get(tx, &3));
                }
                let updated = t1.step(|tx| rows.table.update_if_present(tx, &3, |row| *row += 1));
                let deleted = t2.step(|tx| rows.table.delete(tx, &3));
                if updater_first {
                    t1.commit();
                }
                t2.commit();
                if !updater_first {
                    t1.commit();
                }
                let now = engine.transact(|tx| rows.look(tx)).unwrap().get(&3).copied();
                // Both found the row, so the update came first if both commit.
                assert!(updated.is_none_or(|row| row.is_some()) && deleted.is_none_or(|deleted| deleted));
                match (t1.committed(), t2.committed()) {
                    (_, true) => assert_eq!(now, None),
                    (true, false) => assert_eq!(now, Some(31)),
                    (false, false) => panic!("both aborted"),
                }
                if t1.committed() && t2.committed() {
                    assert!(updater_first, "a row updated after it was deleted");
                }
            });
        }
    });
}

#[test]
fn rows_that_an_aborted_transaction_inserted_are_gone() {
    for_each_protocol!(4, |P| {
        Rows::<P>::interleave(&odd(), |engine, rows, [mut t1, mut t2, mut t3]| {
            let one = t1.step(|tx| rows.table.get(tx, &3));
            for key in [0, 2, 4, 6] {
                t1.step(|tx| rows.table.insert_if_absent(tx, key, key));
            }
            t1.step(|tx| rows.table.delete(tx, &1));
            for key in [3, 5] {
                t2.step(|tx| rows.table.update_if_present(tx, &key, |row| *row += 1));
            }
            t2.commit();
            let other = t1.step(|tx| rows.table.get(tx, &5));
            if t1.commit() {
                assert!([(30, 10), (31, 11)].contains(&(one.flatten().unwrap(), other.flatten().unwrap())));
            }
            assert!(t1.committed() || t2.committed());
            let mut expected = odd();
            if t1.committed() {
                expected.remove(&1);
                expected.extend([0, 2, 4, 6].map(|key| (key, key)));
            }
            if t2.committed() {
                expected.extend([(3, 31), (5, 11)]);
            }
            assert_eq!(t3.step(|tx| rows.look(tx)), Some(expected.clone()));
            assert_eq!(
                t3.step(|tx| rows.table.insert_if_absent(tx, 2, 9)),
                Some(!t1.committed()),
                "whether it is free"
            );
            expected.entry(2).or_insert(9);
            assert!(t3.commit());
            assert_eq!(engine.transact(|tx| rows.look(tx)), Ok(expected));
        });
    });
}
