//! A transaction that loses to another one.

use hotrow::sync::thread;
use hotrow::{Database, Error, RetryPolicy, TBox};

/// A database in which an audit loses to a purchase, once, and gives up after so many attempts.
pub(crate) fn overtaken(attempts_max: u32) -> (Database, Result<(), Error>) {
    let policy = RetryPolicy { attempts_max, ..RetryPolicy::default() };
    let db: Database = Database::builder().retry_policy(policy).open().unwrap();
    db.report_both_sides(true);
    let price = TBox::named(&db, "price", 1u64);
    let mut is_overtaken = false;
    let result = db.with_worker(|worker| {
        worker.named("audit").transact(|tx| {
            let seen = price.get(tx)?;
            if !std::mem::replace(&mut is_overtaken, true) {
                let buy = || db.with_worker(|worker| worker.named("buy").transact(|tx| price.set(tx, 10)));
                thread::scope(|scope| scope.spawn(buy).join().unwrap()).unwrap();
            }
            price.set(tx, seen + 1)
        })
    });
    (db, result)
}
