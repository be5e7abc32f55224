//! Snapshots across the boundary of a simulation: opened on the one side and read on the other, while rows change on both.

use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::Mutex;
use hotrow::{Database, Protocol, Snapshot, Table};
use hotrow_sim::{Config, Machine, Simulation};
use std::time::Duration;

const KEYS: u64 = 20;

/// The tables' numbers, which are the same in all rows of a state.
fn state<P: Protocol>(snapshot: &Snapshot<P>, tables: &[Table<u64, u64, P>]) -> u64 {
    let read = snapshot.transact(|tx| {
        let mut numbers = Vec::new();
        for table in tables {
            for key in 0..KEYS {
                numbers.push(table.get(tx, &key)?);
            }
        }
        Ok(numbers)
    });
    let numbers = read.unwrap();
    // Every other state lacks the odd keys.
    let number = numbers[0].expect("an even key is always there");
    for (at, found) in numbers.iter().enumerate() {
        let is_there = at % 2 == 0 || number.is_multiple_of(2);
        assert_eq!(*found, is_there.then_some(number), "at {at} of {numbers:?}");
    }
    number
}

/// Goes to a later state.
fn change<P: Protocol>(db: &Database<P>, tables: &[Table<u64, u64, P>], number: u64) {
    db.transact(|tx| {
        for table in tables {
            for key in 0..KEYS {
                match key % 2 == 1 {
                    true if number % 2 == 1 => drop(table.delete(tx, &key)?),
                    true => table.insert(tx, key, number)?,
                    false if number > 0 => table.update(tx, &key, |row| *row = number)?,
                    false => table.insert(tx, key, number)?,
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

#[derive(Clone, Copy)]
struct BothSides;

impl Visitor for BothSides {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        eprintln!("protocol {name}");
        let db: Database<P> = Database::builder().typed::<P>().variant(name).open().unwrap();
        let tables: [Table<u64, u64, P>; 2] =
            [db.table("hash").hash(4).create().unwrap(), db.table("ordered").ordered().create().unwrap()];
        let open = Mutex::new(Vec::new());
        let look = |open: &[(Snapshot<P>, u64)]| {
            open.iter().for_each(|(snapshot, number)| assert_eq!(state(snapshot, &tables), *number));
        };
        // A snapshot of each state, opened and replaced on either side.
        let step = |number, is_strict| {
            change(&db, &tables, number);
            let snapshot = if is_strict { db.snapshot_strict() } else { db.snapshot() }.unwrap();
            let number = state(&snapshot, &tables);
            let mut open = open.lock().unwrap();
            open.push((snapshot, number));
            look(&open);
        };
        let simulation = Simulation::new(Config::new(Machine::named("this").unwrap(), 2)).unwrap();
        for round in 0..3 {
            step(4 * round, true);
            step(4 * round + 1, false);
            let outside = open.lock().unwrap().last().map(|(snapshot, _)| snapshot.clone()).unwrap();
            assert!(outside.staleness() < Duration::MAX);
            simulation.run(|core| {
                if core == 0 {
                    step(4 * round + 2, true);
                    step(4 * round + 3, false);
                    assert_eq!(outside.staleness(), Duration::MAX);
                }
            });
            look(&open.lock().unwrap());
        }
        // A snapshot that may be a little old is not one of another clock.
        let fresh = db.snapshot().unwrap();
        assert_eq!((state(&fresh, &tables), fresh.staleness() < Duration::MAX), (11, true));
    }
}

#[test]
fn a_snapshot_is_the_same_on_both_sides_of_a_simulations_boundary() {
    for_each_protocol(2, BothSides);
}
