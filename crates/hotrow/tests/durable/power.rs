//! Losses of power: what was not synced is lost, torn or reordered.

use crate::ledger::{Ledger, nothing_acknowledged, now};
use crate::support::{chosen, for_each_protocol};
use hotrow::durable::storage::{Faulty, Storage};
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode, OpenError};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Database, Protocol};
use std::sync::Arc;
use std::time::Duration;

/// The number of crashes; more if the environment says so.
pub(crate) fn crashes(few: u64) -> u64 {
    std::env::var("HOTROW_CRASHES").map_or(few, |number| number.parse().expect("HOTROW_CRASHES is a number"))
}

pub(crate) fn open<P: Protocol>(storage: Arc<dyn Storage>, mode: Mode) -> Database<P> {
    try_open(storage, mode).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn try_open<P: Protocol>(storage: Arc<dyn Storage>, mode: Mode) -> Result<Database<P>, OpenError> {
    // Segments so small that there are many.
    let options = LogOptions { mode, segment_bytes: 1 << 13, ..LogOptions::default() };
    Database::builder().typed::<P>().variant(chosen()).log(options).open_in(storage)
}

/// Runs a ledger from one loss of power to the next, each time on what the last one has left, and checks it each time.
fn lose_power<P: Protocol>(seed: u64, losses: u64) -> u64 {
    let mut random = Random::seeded(seed);
    let mut storage = Arc::new(Faulty::new(seed));
    let acknowledged = nothing_acknowledged(3);
    let mut commits = 0;
    for loss in 0..losses {
        let db = open::<P>(storage.clone(), Mode::Group);
        let ledger = Ledger::open(&db);
        commits = ledger.check(&now(&acknowledged));
        let must_end = AtomicBool::new(false);
        let (length, checkpoints) = (random.below(3_000), random.below(3) == 0);
        let after = thread::scope(|scope| {
            scope.spawn(|| ledger.run(seed ^ loss, &acknowledged, &must_end, &|_, _| ()));
            scope.spawn(|| ledger.load_beside(&must_end));
            if checkpoints {
                let (db, must_end) = (&db, &must_end);
                scope.spawn(move || {
                    while !must_end.load(Ordering::Relaxed) {
                        db.checkpoint().unwrap();
                    }
                });
            }
            thread::sleep(Duration::from_micros(length));
            // First: what is acknowledged later may be lost.
            let told = now(&acknowledged);
            let after = storage.power_loss(seed.wrapping_mul(1_000).wrapping_add(loss));
            must_end.store(true, Ordering::Relaxed);
            (after, told)
        });
        drop((ledger, db));
        for (last, told) in acknowledged.iter().zip(&after.1) {
            last.store(*told, Ordering::SeqCst);
        }
        storage = Arc::new(after.0);
    }
    commits
}

#[test]
fn power_is_lost_and_nothing_acknowledged_is() {
    let losses = crashes(40);
    let mut commits = 0;
    for_each_protocol!(1, |P| {
        eprintln!("commits: {}", lose_power::<P>(7, 4));
    });
    for seed in 0..losses / 4 {
        crate::support::choose("occ");
        commits += lose_power::<hotrow::Occ>(seed, 4);
    }
    assert!(commits > 0);
}

#[test]
fn what_async_loses_is_the_end_and_nothing_else() {
    let mut storage = Arc::new(Faulty::new(1));
    crate::support::choose("occ");
    for loss in 0..crashes(40) / 4 {
        let db = open::<hotrow::Occ>(storage.clone(), Mode::Async { interval: Duration::from_millis(1) });
        let ledger = Ledger::open(&db);
        // Nothing is promised, but no commit is half there.
        ledger.check(&[]);
        let (acknowledged, must_end) = (nothing_acknowledged(2), AtomicBool::new(false));
        let after = thread::scope(|scope| {
            scope.spawn(|| ledger.run(loss, &acknowledged, &must_end, &|_, _| ()));
            scope.spawn(|| ledger.load_beside(&must_end));
            thread::sleep(Duration::from_micros(500 * (loss % 8)));
            let after = storage.power_loss(loss);
            must_end.store(true, Ordering::Relaxed);
            after
        });
        storage = Arc::new(after);
    }
}
