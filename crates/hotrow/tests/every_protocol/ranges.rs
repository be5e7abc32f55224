//! Ranges, secondary indexes and queues under more threads than there are cores: no phantoms.

use crate::support;
use crate::support::{TableKind, for_each_protocol, on_threads};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Database, Direction, Engine, Protocol, SecondaryIndex, TBox, Table, Transaction, Worker,
};
use std::ops::ControlFlow;

const RANGES: u64 = 3;
const WIDTH: u64 = 60;

/// Rows in ranges of keys, and for each range a row elsewhere that says how many there are.
struct Counted<P: Protocol> {
    rows: Table<u64, u64, P>,
    counts: Table<u64, i64, P>,
    opaque: bool,
}

impl<P: Protocol> Counted<P> {
    fn new(engine: &Engine<P>, kind: TableKind) -> Self {
        let counts = Database::on(engine).table("counts").hash(10).create().unwrap();
        counts.bulk_insert((0..RANGES).map(|range| (range, 0))).unwrap();
        Self {
            rows: kind.of(Database::on(engine).table("rows")).create().unwrap(),
            counts,
            opaque: engine.is_opaque(),
        }
    }

    fn count(
        &self,
        tx: &mut Transaction<'_, P>,
        range: u64,
        direction: Direction,
    ) -> Result<(i64, i64), Abort> {
        let mut keys = Vec::new();
        self.rows.scan(tx, range * WIDTH..(range + 1) * WIDTH, direction, |key, row| {
            assert_eq!(key + 1, *row);
            keys.push(*key);
            ControlFlow::Continue(())
        })?;
        if direction == Direction::Descending {
            keys.reverse();
        }
        // True of any one state; an attempt that sees two may find a row before and after it has moved.
        let sorted = keys.is_sorted_by(|a, b| a < b);
        let noted = self.counts.get(tx, &range)?.expect("a count");
        if self.opaque {
            assert!(sorted && keys.len() as i64 == noted, "{keys:?} {noted}");
        }
        Ok((if sorted { keys.len() as i64 } else { -1 }, noted))
    }

    fn add(&self, tx: &mut Transaction<'_, P>, key: u64, inserts: bool) -> Result<(), Abort> {
        let changed = if inserts {
            self.rows.insert_if_absent(tx, key, key + 1)?
        } else {
            self.rows.delete(tx, &key)?
        };
        if changed {
            let by = if inserts { 1 } else { -1 };
            self.counts.update_if_present(tx, &(key / WIDTH), |count| *count += by)?;
        }
        Ok(())
    }

    fn turn(&self, worker: &mut Worker<P>, random: &mut Random) {
        let key = random.below(RANGES * WIDTH);
        let gives_up = random.chance(0.1);
        match random.below(8) {
            0 | 1 => {
                let (range, ascending) = (key / WIDTH, random.chance(0.5));
                let direction = if ascending { Direction::Ascending } else { Direction::Descending };
                let (counted, noted) = worker.transact(|tx| self.count(tx, range, direction)).unwrap();
                assert_eq!(counted, noted, "a phantom");
            }
            2 => {
                // Moves a row from one range to another.
                let to = random.below(RANGES * WIDTH);
                let moved = worker.transact(|tx| {
                    if self.rows.get(tx, &key)?.is_some() && self.rows.get(tx, &to)?.is_none() {
                        self.add(tx, key, false)?;
                        self.add(tx, to, true)?;
                    }
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                assert_eq!(moved.is_err(), gives_up);
            }
            3 => {
                // Empties or fills a small part at once, so that leaves come and go.
                let inserts = random.chance(0.5);
                worker
                    .transact(|tx| {
                        let last = (key + 25).min(RANGES * WIDTH);
                        (key..last).try_for_each(|key| self.add(tx, key, inserts))
                    })
                    .unwrap();
            }
            operation => {
                let added = worker.transact(|tx| {
                    self.add(tx, key, operation % 2 == 0)?;
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                assert_eq!(added.is_err(), gives_up);
            }
        }
    }
}

fn count_ranges<P: Protocol>(threads: u64, rounds: u64) {
    for kind in [TableKind::Ordered, TableKind::Cached, TableKind::CachedTogether] {
        let engine = support::engine::<P>();
        let counted = Counted::new(&engine, kind);
        on_threads(&engine, threads, |number, worker| {
            let mut random = Random::stream(5, number);
            (0..rounds).for_each(|_| counted.turn(worker, &mut random));
        });
        for range in 0..RANGES {
            let (counted, noted) =
                engine.transact(|tx| counted.count(tx, range, Direction::Ascending)).unwrap();
            assert_eq!(counted, noted);
        }
    }
}

#[test]
fn a_range_has_as_many_rows_as_its_counter_says() {
    for_each_protocol!(6, |P| { count_ranges::<P>(6, 500) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_range_has_as_many_rows_as_its_counter_says_for_long() {
    for_each_protocol!(8, |P| { count_ranges::<P>(8, 40_000) });
}

/// Everything that a secondary index says of the rows must be so, and everything in the rows must be in it.
fn check_secondary<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    table: &Table<u64, u64, P>,
    by_row: &SecondaryIndex<u64, u64, u64, P>,
    keys: u64,
    is_opaque: bool,
) -> Result<Option<String>, Abort> {
    let mut entries = Vec::new();
    by_row.scan_keys(tx, .., Direction::Ascending, |row, key| {
        entries.push((*row, *key));
        ControlFlow::Continue(())
    })?;
    let mut rows = Vec::new();
    for key in 0..keys {
        rows.extend(table.get(tx, &key)?.map(|row| (row, key)));
    }
    rows.sort_unstable();
    let wrong = (entries != rows).then(|| format!("{entries:?} {rows:?}"));
    if is_opaque {
        assert_eq!(wrong, None);
    }
    Ok(wrong)
}

fn follow_rows<P: Protocol>(threads: u64, rounds: u64) {
    const KEYS: u64 = 20;
    let engine = support::engine::<P>();
    for hash in [false, true] {
        let mut builder = Database::on(&engine).table::<u64, u64>("rows");
        let by_row = builder.secondary("by_row", |_, row| *row);
        let table = if hash { builder.hash(1) } else { builder }.create().unwrap();
        on_threads(&engine, threads, |number, worker| {
            let mut random = Random::stream(6, number);
            for _ in 0..rounds {
                let (key, row, kind) = (random.below(KEYS), random.below(5), random.below(6));
                let gives_up = random.chance(0.15);
                if kind == 0 {
                    let wrong =
                        worker.transact(|tx| check_secondary(tx, &table, &by_row, KEYS, engine.is_opaque()));
                    assert_eq!(wrong, Ok(None));
                    continue;
                }
                let changed = worker.transact(|tx| {
                    match kind {
                        1 => _ = table.insert_if_absent(tx, key, row)?,
                        2 => _ = table.delete(tx, &key)?,
                        3 => _ = table.update_if_present(tx, &key, |old| *old = row)?,
                        4 => {
                            // Found by the index, changed by the key.
                            let mut first = None;
                            by_row.scan_keys(tx, row.., Direction::Ascending, |_, key| {
                                first = Some(*key);
                                ControlFlow::Break(())
                            })?;
                            if let Some(key) = first {
                                table.update_if_present(tx, &key, |row| *row = (*row + 1) % 5)?;
                            }
                        }
                        _ => {
                            table.upsert(tx, key, row)?;
                            table.update_if_present(tx, &((key + 1) % KEYS), |old| *old = row)?;
                        }
                    }
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                assert_eq!(changed.is_err(), gives_up);
            }
        });
        assert_eq!(
            engine.transact(|tx| check_secondary(tx, &table, &by_row, KEYS, engine.is_opaque())),
            Ok(None)
        );
    }
}

#[test]
fn a_secondary_index_and_its_rows_agree_in_every_transaction() {
    for_each_protocol!(6, |P| { follow_rows::<P>(6, 350) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_secondary_index_and_its_rows_agree_in_very_many_transactions() {
    for_each_protocol!(8, |P| { follow_rows::<P>(8, 20_000) });
}

/// Some threads append to a queue, others take from its front.
fn queue<P: Protocol>(pairs: u64, items: u64) {
    let engine = support::engine::<P>();
    let queue = Database::on(&engine).table::<u64, u64>("queue").create().unwrap();
    let next = TBox::new(&engine, 0u64);
    let taken = on_threads(&engine, pairs * 2, |number, worker| {
        let mut taken = Vec::new();
        if number % 2 == 0 {
            for item in 0..items {
                worker
                    .transact(|tx| {
                        let key = next.update(tx, |next| {
                            *next += 1;
                            *next
                        })?;
                        assert!(
                            queue.insert_if_absent(tx, key, number * items + item)? || !engine.is_opaque()
                        );
                        Ok(())
                    })
                    .unwrap();
            }
        } else {
            while (taken.len() as u64) < items {
                let front = worker.transact(|tx| {
                    let front = queue.collect(tx, .., Direction::Ascending, 1)?;
                    let Some(&(key, item)) = front.first() else { return Ok(None) };
                    assert!(queue.count(tx, ..=key)? == 1 || !engine.is_opaque());
                    assert!(queue.delete(tx, &key)? || !engine.is_opaque());
                    Ok(Some((key, item)))
                });
                match front.unwrap() {
                    Some(item) => taken.push(item),
                    None => hotrow::sync::thread::yield_now(),
                }
            }
        }
        taken
    });
    assert!(taken.iter().all(|taken| taken.is_sorted_by(|a, b| a.0 < b.0)), "each takes from the front");
    let mut all: Vec<_> = taken.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.iter().map(|(key, _)| *key).eq(1..=pairs * items), "each item is taken once");
    // The items of one thread come in the order in which it appended them.
    for producer in (0..pairs * 2).step_by(2) {
        let items = all.iter().map(|(_, item)| *item).filter(|item| item / items == producer);
        assert!(items.is_sorted());
    }
    let memory = queue.memory(&mut engine.worker().unwrap()).unwrap();
    assert_eq!(memory.rows, 0);
    assert!(memory.index_bytes < 10_000, "a queue that grows: {} bytes", memory.index_bytes);
}

#[test]
fn a_queue_delivers_each_item_once_and_does_not_grow() {
    for_each_protocol!(4, |P| { queue::<P>(2, 1_000) });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_long_queue_delivers_each_item_once_and_does_not_grow() {
    for_each_protocol!(6, |P| { queue::<P>(3, 60_000) });
}
