//! The same few rows again and again: inserted, deleted, changed, rolled back, and panicked over.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Protocol, TArray, Table, Transaction, Value};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[test]
fn each_key_is_inserted_by_exactly_one_of_many_threads() {
    for_each_protocol!(8, |P| {
        let engine = support::engine::<P>();
        let tables = [
            Database::on(&engine).table("hash").hash(1).create().unwrap(),
            Database::on(&engine).table::<u64, u64>("ordered").create().unwrap(),
        ];
        for table in tables {
            let won = on_threads(&engine, 8, |number, worker| {
                (0..400u64)
                    .filter(|key| worker.transact(|tx| table.insert_if_absent(tx, *key, number)).unwrap())
                    .map(|key| (key, number))
                    .collect::<Vec<_>>()
            });
            let mut won: Vec<_> = won.into_iter().flatten().collect();
            won.sort_unstable();
            assert!(won.iter().map(|(key, _)| *key).eq(0..400), "each is won once");
            for (key, winner) in won {
                assert_eq!(engine.transact(|tx| table.get(tx, &key)), Ok(Some(winner)));
            }
        }
    });
}

/// Keeps two tables alike, whatever happens: what is in one is in the other, with the same row.
struct Twins<P: Protocol> {
    first: Table<u64, u64, P>,
    second: Table<u64, u64, P>,
    sums: TArray<u64, P>,
    opaque: bool,
}

const KEYS: u64 = 6;

impl<P: Protocol> Twins<P> {
    fn change(&self, tx: &mut Transaction<'_, P>, key: u64, row: u64, kind: u64) -> Result<(), Abort> {
        let old = self.first.get(tx, &key)?;
        let other = self.second.get(tx, &key)?;
        if self.opaque {
            assert_eq!(old, other);
        }
        let changed = match kind {
            0 => self.first.insert_if_absent(tx, key, row)? && self.second.insert_if_absent(tx, key, row)?,
            1 => self.second.delete(tx, &key)? && self.first.delete(tx, &key)?,
            2 => {
                let first = self.first.update_if_present(tx, &key, |old| *old = row)?;
                self.second.update_if_present(tx, &key, |old| *old = row)?.is_some() && first.is_some()
            }
            3 => {
                // There and back again.
                let first = self.first.delete(tx, &key)?;
                self.first.insert_if_absent(tx, key, row)?;
                self.second.upsert(tx, key, row)?;
                if first && row.is_multiple_of(2) {
                    self.first.delete(tx, &key)?;
                    self.second.delete(tx, &key)?;
                }
                true
            }
            _ => self.first.upsert(tx, key, row)? == self.second.upsert(tx, key, row)?,
        };
        if changed {
            let new = self.first.get(tx, &key)?;
            self.sums.update(tx, 0, |sum| {
                *sum = sum.wrapping_sub(old.unwrap_or(0)).wrapping_add(new.unwrap_or(0));
            })?;
        }
        Ok(())
    }

    fn check(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        let mut sum = 0u64;
        let mut alike = true;
        for key in 0..KEYS {
            let (first, second) = (self.first.get(tx, &key)?, self.second.get(tx, &key)?);
            alike &= first == second;
            sum = sum.wrapping_add(first.unwrap_or(0));
        }
        alike &= sum == self.sums.get(tx, 0)?;
        assert!(alike || !self.opaque, "an attempt that saw two states");
        Ok(alike)
    }
}

fn churn<P: Protocol>(threads: u64, rounds: u64) {
    let engine = support::engine::<P>();
    let twins = Twins {
        first: Database::on(&engine).table("first").hash(1).create().unwrap(),
        second: Database::on(&engine).table("second").create().unwrap(),
        sums: TArray::new(&engine, 1, |_| 0),
        opaque: engine.is_opaque(),
    };
    on_threads(&engine, threads, |number, worker| {
        let mut random = Random::stream(9, number);
        for _ in 0..rounds {
            let changes: Vec<_> = (0..random.between(1, 3))
                .map(|_| (random.below(KEYS), random.below(1_000), random.below(5)))
                .collect();
            match random.below(10) {
                0..2 => assert_eq!(worker.transact(|tx| twins.check(tx)), Ok(true)),
                2 => {
                    let rolled_back = worker.transact(|tx| {
                        for (key, row, kind) in &changes {
                            twins.change(tx, *key, *row, *kind)?;
                        }
                        Err::<(), _>(Abort::rollback())
                    });
                    assert!(rolled_back.is_err());
                }
                3 => {
                    let panicked = catch_unwind(AssertUnwindSafe(|| {
                        worker.transact(|tx| -> Result<(), Abort> {
                            for (key, row, kind) in &changes {
                                twins.change(tx, *key, *row, *kind)?;
                            }
                            // Without the noise of a panic's message.
                            resume_unwind(Box::new("expected"))
                        })
                    }));
                    let panic = panicked.expect_err("it panics");
                    assert_eq!(panic.downcast_ref::<&str>(), Some(&"expected"));
                }
                _ => worker
                    .transact(|tx| {
                        for (key, row, kind) in &changes {
                            twins.change(tx, *key, *row, *kind)?;
                        }
                        Ok(())
                    })
                    .unwrap(),
            }
        }
    });
    assert_eq!(engine.transact(|tx| twins.check(tx)), Ok(true));
}

#[test]
fn a_few_rows_survive_inserts_deletes_rollbacks_and_panics() {
    for_each_protocol!(6, |P| { churn::<P>(6, 1_500) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_few_rows_survive_very_many_inserts_deletes_rollbacks_and_panics() {
    for_each_protocol!(8, |P| { churn::<P>(8, 100_000) });
}

/// A row of a kilobyte behind a pointer.
#[derive(Clone, Value)]
struct Wide {
    words: [u64; 128],
}

/// 256 bytes in place.
type Narrow = [u64; 32];

/// A row of three segments, which an operation on the whole row reads one after the other.
#[derive(Debug, Clone, Copy, Value)]
#[value(inline)]
struct Split {
    main: [u64; 4],
    #[value(group = "first")]
    first: [u64; 4],
    #[value(group = "second")]
    second: [u64; 4],
}

impl Split {
    fn new(value: u64) -> Self {
        Self { main: [value; 4], first: [value; 4], second: [value; 4] }
    }

    fn words(&self) -> [u64; 12] {
        [self.main, self.first, self.second].concat().try_into().unwrap()
    }
}

fn all_equal(words: &[u64]) -> u64 {
    assert!(words.iter().all(|word| *word == words[0]), "a torn row: {words:?}");
    words[0]
}

/// Readers assert inside their looks, so attempts that are going to abort are covered, too.
fn tear<P: Protocol>(threads: u64, rounds: u64) {
    const ROWS: u64 = 3;
    let engine = support::engine::<P>();
    let array = TArray::new(&engine, ROWS as usize, |_| [0u64; 32]);
    let hash = Database::on(&engine).table::<u64, Narrow>("narrow").hash(4).create().unwrap();
    let narrow = Database::on(&engine).table::<u64, Narrow>("narrow").create().unwrap();
    let wide = Database::on(&engine).table::<u64, Wide>("wide").hash(4).create().unwrap();
    let split = Database::on(&engine).table::<u64, Split>("split").hash(4).create().unwrap();
    for row in 0..ROWS {
        assert!(
            hash.bulk_insert([(row, [0; 32])]).is_ok()
                && split.bulk_insert([(row, Split::new(0))]).is_ok()
                && narrow.bulk_insert([(row, [0; 32])]).is_ok()
                && wide.bulk_insert([(row, Wide { words: [0; 128] })]).is_ok()
        );
    }
    on_threads(&engine, threads, |number, worker| {
        let mut random = Random::stream(4, number);
        for round in 0..rounds {
            let (row, value) = (random.below(ROWS), number * rounds + round);
            let kind = random.below(6);
            if random.chance(0.5) {
                worker
                    .transact(|tx| {
                        match kind {
                            0 => array.update(tx, row as usize, |words| *words = [value; 32])?,
                            4 => _ = split.upsert(tx, row, Split::new(value))?,
                            5 => split.update(tx, &row, |row| {
                                all_equal(&row.words());
                                *row = Split::new(value);
                            })?,
                            1 => _ = hash.update_if_present(tx, &row, |words| words.fill(value))?,
                            2 => _ = narrow.upsert(tx, row, [value; 32])?,
                            _ => _ = wide.update_if_present(tx, &row, |row| row.words.fill(value))?,
                        }
                        Ok(())
                    })
                    .unwrap();
            } else {
                worker
                    .transact(|tx| {
                        // Several looks in one attempt, so that many attempts are doomed before the last.
                        for row in 0..ROWS {
                            match kind {
                                0 => _ = array.read(tx, row as usize, |words| all_equal(words))?,
                                4 | 5 => _ = split.read(tx, &row, |row| all_equal(&row.words()))?,
                                1 => _ = hash.read(tx, &row, |words| all_equal(words))?,
                                2 => {
                                    narrow.scan(tx, .., hotrow::Direction::Ascending, |_, words| {
                                        all_equal(words);
                                        std::ops::ControlFlow::Continue(())
                                    })?;
                                }
                                _ => _ = wide.read(tx, &row, |row| all_equal(&row.words))?,
                            }
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        }
    });
}

#[test]
fn nobody_ever_looks_at_a_torn_row() {
    for_each_protocol!(6, |P| { tear::<P>(6, 2_000) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn nobody_ever_looks_at_a_torn_row_for_long() {
    for_each_protocol!(8, |P| { tear::<P>(8, 200_000) });
}
