//! Reports of conflicts that name both sides.

use crate::support::{self, for_each_protocol};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::clock::{self, Duration};
use hotrow::sync::thread;
use hotrow::{Conflict, Database, Engine, Error, HotKey, Origin, Protocol, RetryPolicy, TBox};

const AUDIT: Option<Origin> = Some(Origin::Name("audit"));
const BUY: Option<Origin> = Some(Origin::Name("buy"));

/// Waits for a condition, for this time at most.
fn until(condition: impl Fn() -> bool, time_max: Option<Duration>) {
    let begin = clock::now();
    while !condition() && time_max.is_none_or(|max| begin.elapsed() < max) {
        thread::yield_now();
    }
}

/// True if a purchase commits while the audit is running, which learns of it at its commit.
fn overtakes<P: Protocol>(engine: &Engine<P>) -> bool {
    ["occ", "chop", "ic3", "tl2"].contains(&engine.protocol())
}

/// Lets an audit and a purchase meet: the audit reads a row, the purchase changes it, the audit changes it, too. The engine's hottest
/// keys.
fn meet<P: Protocol>(engine: &Engine<P>, price: &TBox<u64, P>) -> Vec<HotKey> {
    // Under other protocols the purchase may wait for the audit.
    let time_max = (!overtakes(engine)).then_some(Duration::from_millis(100));
    let (has_read, has_bought) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut worker = engine.worker().unwrap();
            let audited = worker.named("audit").transact(|tx| {
                let seen = price.get(tx)?;
                has_read.store(true, Ordering::SeqCst);
                until(|| has_bought.load(Ordering::SeqCst), time_max);
                price.set(tx, seen + 1)
            });
            audited.unwrap();
        });
        until(|| has_read.load(Ordering::SeqCst), None);
        let mut worker = engine.worker().unwrap();
        worker.named("buy").transact(|tx| price.set(tx, 10)).unwrap();
        has_bought.store(true, Ordering::SeqCst);
    });
    engine.hot_keys(10)
}

/// The names that a report gives are those of the transactions.
fn sides_are_named<P: Protocol>() {
    let engine = support::engine::<P>();
    let price = TBox::named(&engine, "price", 1u64);
    assert!(meet(&engine, &price).iter().all(|key| key.rivalries.is_empty()), "at first it names none");
    engine.report_both_sides(true);
    let mut named = 0;
    for _ in 0..if crate::support::is_concurrent() { 3 } else { 1 } {
        for key in meet(&engine, &price) {
            assert_eq!(key.object, "price");
            let known = key.rivalries.iter().map(|rivalry| rivalry.conflicts).sum::<u64>();
            assert!(known <= key.conflicts, "{key}");
            for rivalry in key.rivalries {
                assert!([AUDIT, BUY].contains(&rivalry.loser), "{rivalry}");
                assert!([None, AUDIT, BUY].contains(&rivalry.winner), "{rivalry}");
                // Where the commit is not known, the worker may have run an audit before.
                assert!(!overtakes(&engine) || rivalry.winner != rivalry.loser, "{rivalry}");
                named += 1;
            }
        }
    }
    if overtakes(&engine) {
        assert!(named > 0, "the audit has been overtaken");
        let first = meet(&engine, &price)[0].rivalries[0];
        assert_eq!((first.loser, first.winner), (AUDIT, BUY));
    }
}

#[test]
fn reports_name_the_loser_and_the_winner() {
    for_each_protocol!(3, |P| {
        sides_are_named::<P>();
    });
}

#[test]
fn an_error_names_both_sides() {
    let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let db: Database = Database::builder().retry_policy(policy).open().unwrap();
    db.report_both_sides(true);
    let price = TBox::named(&db, "price", 1u64);
    let overtake = || {
        let set = || db.with_worker(|worker| worker.named("buy").transact(|tx| price.set(tx, 10)));
        thread::scope(|scope| scope.spawn(set).join().unwrap())
    };
    let line = line!() + 1;
    let lost = db.transact(|tx| {
        let seen = price.get(tx)?;
        overtake().unwrap();
        price.set(tx, seen + 1)
    });
    let Err(Error::Conflict(conflict)) = lost else { panic!("{lost:?}") };
    let Conflict { loser: Some(Origin::Place(place)), winner, .. } = &*conflict else {
        panic!("{conflict:?}")
    };
    assert_eq!((place.file(), place.line()), (file!(), line));
    assert_eq!(*winner, BUY);
    let text = conflict.to_string();
    assert!(text.ends_with(&format!("price[value], attempt 1 of {}:{line}, lost to buy", file!())), "{text}");
}
