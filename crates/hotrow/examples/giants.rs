//! Very large transactions beside an updater of one of their rows, under every protocol: how long they take, in how many
//! attempts, and how long the updater waits at most.
//!
//! `cargo run --release -p hotrow --example giants [WRITES [PROTOCOL ...]]`; a million writes unless told otherwise.

use hotrow::protocols::{PROTOCOLS, Visitor, with_protocol};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::clock::{self, Duration};
use hotrow::sync::thread;
use hotrow::{Abort, Database, Direction, Engine, Protocol, RetryPolicy, TBox, Table, Transaction};
use std::ops::ControlFlow;

/// The pause of the updater between two transactions.
const PAUSE: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, Copy)]
enum Work {
    /// Changes each row.
    Update,
    /// Finds all rows by a scan, and deletes them.
    Delete,
    /// Inserts as many rows; the updater changes something else.
    Insert,
}

struct Giant {
    work: Work,
    writes: u64,
}

impl Giant {
    fn run<P: Protocol>(&self, tx: &mut Transaction<'_, P>, rows: &Table<u64, u64, P>) -> Result<(), Abort> {
        match self.work {
            Work::Update => (0..self.writes).try_for_each(|key| rows.update(tx, &key, |row| *row += 1)),
            Work::Insert => (self.writes..2 * self.writes).try_for_each(|key| rows.insert(tx, key, 0)),
            Work::Delete => {
                let mut keys = Vec::new();
                rows.scan(tx, .., Direction::Ascending, |key, _| {
                    keys.push(*key);
                    ControlFlow::Continue(())
                })?;
                keys.iter().try_for_each(|key| rows.delete(tx, key).map(drop))
            }
        }
    }
}

impl Visitor for &Giant {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).expect("chosen by this name");
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        rows.bulk_insert((0..self.writes).map(|key| (key, 0))).unwrap();
        let (other, stop) = (TBox::new(&engine, 0u64), AtomicBool::new(false));
        let (took, attempts, wait_max) = thread::scope(|scope| {
            let updater = scope.spawn(|| {
                let mut wait_max = Duration::ZERO;
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(PAUSE);
                    let begin = clock::now();
                    let updated = engine.transact(|tx| match self.work {
                        Work::Insert => other.update(tx, |number| *number += 1),
                        // It may be deleted.
                        _ => rows.update_if_present(tx, &(self.writes / 2), |row| *row += 1).map(drop),
                    });
                    updated.expect("it has no limit");
                    wait_max = wait_max.max(begin.elapsed());
                }
                wait_max
            });
            let begin = clock::now();
            let attempts = engine.transact(|tx| self.run(tx, &rows).map(|()| tx.attempt_number() + 1));
            let took = begin.elapsed();
            stop.store(true, Ordering::Relaxed);
            (took, attempts.expect("it has no limit"), updater.join().expect("it does not panic"))
        });
        println!(
            "{:<8} {name:<24} {:>8.2} s {attempts:>6} attempts, longest wait of the updater {:>8.1} ms",
            format!("{:?}", self.work).to_lowercase(),
            took.as_secs_f64(),
            wait_max.as_secs_f64() * 1e3,
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let writes = arguments.next().map_or(1_000_000, |writes| writes.parse().expect("a number of writes"));
    let chosen: Vec<String> = arguments.collect();
    let admitted = PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= 2);
    for work in [Work::Update, Work::Delete, Work::Insert] {
        for protocol in admitted.clone() {
            if chosen.is_empty() || chosen.iter().any(|name| name == protocol.name) {
                with_protocol(protocol.name, &Giant { work, writes }).expect("it is in the list");
            }
        }
    }
}
