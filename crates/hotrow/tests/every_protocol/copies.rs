//! A large row is not copied to be read.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::{Database, Direction, TArray, TBox, Value};
use std::ops::ControlFlow;

/// A row of 1 KB that counts its copies.
#[derive(Value)]
struct Large {
    bytes: [u8; 1024],
    copies: Arc<AtomicU64>,
}

impl Large {
    fn new(copies: &Arc<AtomicU64>) -> Self {
        Self { bytes: [1; 1024], copies: copies.clone() }
    }
}

impl Clone for Large {
    fn clone(&self) -> Self {
        self.copies.fetch_add(1, Ordering::Relaxed);
        Self { bytes: self.bytes, copies: self.copies.clone() }
    }
}

#[test]
fn reading_large_rows_copies_nothing_and_changing_one_copies_it_once() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let copies = Arc::new(AtomicU64::new(0));
        let copied = || copies.swap(0, Ordering::Relaxed);
        let kept = TBox::new(&engine, Large::new(&copies));
        let array = TArray::new(&engine, 10, |_| Large::new(&copies));
        let tables = [
            Database::on(&engine).table::<u64, Large>("hash").hash(10).create().unwrap(),
            Database::on(&engine).table("ordered").create().unwrap(),
        ];
        for table in &tables {
            table.bulk_insert((0..10).map(|key| (key, Large::new(&copies)))).unwrap();
        }
        copied();
        for _ in 0..3 {
            let sum = engine.transact(|tx| {
                let mut sum = kept.read(tx, |row| u64::from(row.bytes[7]))?;
                for key in 0..10 {
                    sum += array.read(tx, key as usize, |row| u64::from(row.bytes[7]))?;
                    for table in &tables {
                        sum += table.read(tx, &key, |row| u64::from(row.bytes[7]))?.unwrap();
                    }
                }
                tables[1].scan(tx, .., Direction::Ascending, |_, row| {
                    sum += u64::from(row.bytes[7]);
                    ControlFlow::Continue(())
                })?;
                Ok(sum)
            });
            assert_eq!(sum, Ok(41));
            assert_eq!(copied(), 0);
        }
        for table in &tables {
            engine.transact(|tx| table.update_if_present(tx, &3, |row| row.bytes[0] += 1)).unwrap();
            assert_eq!(copied(), 1);
        }
    });
}

#[test]
fn reading_large_rows_beside_a_writer_copies_nothing() {
    for_each_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let (copies, changes) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let builder = Database::on(&engine).table::<u64, Large>("rows").hash(4);
        let table = support::loaded(builder, (0..4).map(|key| (key, Large::new(&copies))));
        assert_eq!(copies.load(Ordering::Relaxed), 0);
        on_threads(&engine, 3, |number, worker| {
            for round in 0..1_000 {
                if number == 0 {
                    let change = |row: &mut Large| {
                        changes.fetch_add(1, Ordering::Relaxed);
                        row.bytes.fill(round as u8);
                    };
                    worker
                        .transact(|tx| table.update_if_present(tx, &(round % 4), change).map(drop))
                        .unwrap();
                } else {
                    let whole = |row: &Large| row.bytes.iter().all(|byte| *byte == row.bytes[0]);
                    let whole = worker.transact(|tx| {
                        let first = table.read(tx, &(round % 4), whole)?;
                        Ok((first, table.read(tx, &((round + number) % 4), whole)?))
                    });
                    assert_eq!(whole, Ok((Some(true), Some(true))));
                }
            }
        });
        // Each change, those of aborted attempts included, has made one copy to be changed.
        assert_eq!(copies.load(Ordering::Relaxed), changes.into_inner());
    });
}
