//! Waits for the log inside a function of the program's.

use crate::support::{chosen, for_each_protocol};
use hotrow::durable::storage::Faulty;
use hotrow::durable::{AroundWaits, DurableBuilder, LogOptions, Logger};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::{Mutex, lock};
use hotrow::{Database, Protocol};
use std::sync::Arc;

fn commit<P: Protocol>(around: fn(&mut dyn FnMut())) {
    let logger = Arc::new(Mutex::new(None::<Logger>));
    let waits = Arc::new(AtomicU64::new(0));
    let (steps, count) = (logger.clone(), waits.clone());
    let around = AroundWaits::new(move |wait| {
        count.fetch_add(1, Ordering::Relaxed);
        // Nobody else writes the log: without it the transaction would wait for ever.
        assert!(lock(&steps).as_mut().expect("opening waits for nothing").step());
        around(wait);
    });
    let options = LogOptions { around_waits: Some(around), ..LogOptions::default() };
    let builder = Database::builder().typed::<P>().variant(chosen()).log(options);
    let (db, begun) = builder.open_without_threads(Arc::new(Faulty::new(1))).unwrap();
    *lock(&logger) = Some(begun);
    let rows = db.table("rows").create().unwrap();
    for key in 0..3 {
        let durable = Arc::new(AtomicU64::new(0));
        db.transact(|tx| {
            let durable = durable.clone();
            tx.on_durable(move || {
                durable.fetch_add(1, Ordering::Relaxed);
            });
            rows.insert(tx, key, key)
        })
        .unwrap();
        assert_eq!(durable.load(Ordering::Relaxed), 1);
    }
    assert_eq!(waits.load(Ordering::Relaxed), 3, "one for each commit");
    // The database waits for the logger's end.
    drop(lock(&logger).take());
}

#[test]
fn waits_run_inside_the_programs_function() {
    for_each_protocol!(1, |P| { commit::<P>(|wait| wait()) });
}

#[test]
fn a_function_that_forgets_the_wait_acknowledges_nothing_early() {
    for_each_protocol!(1, |P| { commit::<P>(|_| ()) });
}

#[test]
fn a_function_that_panics_undoes_nothing_and_skips_no_hook() {
    for_each_protocol!(1, |P| { commit::<P>(|_| panic!("no executor here")) });
}
