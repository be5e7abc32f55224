//! # The conflict report
//!
//! Every database always counts, in release builds too: commits, aborts by [`Reason`], and the keys over which attempts
//! were lost. The names of objects and tables appear here.
//!
//! ```
//! use hotrow::{Database, Reason};
//!
//! let db = Database::open()?;
//! let stock = db.table::<(u16, u32), u64>("stock").hash(10).create()?;
//! stock.bulk_insert([((1, 77), 0)])?;
//!
//! // A transaction that another one overtakes once.
//! let mut overtaken = false;
//! db.transact(|tx| {
//!     let seen = stock.get(tx, &(1, 77))?.unwrap_or(0);
//!     if !std::mem::replace(&mut overtaken, true) {
//!         let overtake = || db.transact(|tx| stock.update(tx, &(1, 77), |row| *row = 10));
//!         std::thread::scope(|scope| scope.spawn(overtake).join().unwrap().unwrap());
//!     }
//!     stock.update(tx, &(1, 77), |row| *row = seen + 1)
//! })?;
//! assert_eq!(db.transact(|tx| stock.get(tx, &(1, 77)))?, Some(11));
//!
//! let statistics = db.statistics();
//! assert_eq!((statistics.aborts, statistics.aborts_for(Reason::ReadChanged)), (1, 1));
//! let hottest = &db.hot_keys(10)[0];
//! assert_eq!((hottest.object.as_str(), hottest.key.as_str()), ("stock", "(1, 77)"));
//! assert_eq!(hottest.conflicts, 1);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Both sides
//!
//! [`report_both_sides`](Engine::report_both_sides) adds who lost to whom. A transaction's name is its procedure's, or the one that
//! [`Worker::named`] gives it, or else the place of the call. The errors of transactions that give up have both names, too.
//!
//! ```
//! use hotrow::{Database, Error, RetryPolicy, TBox};
//!
//! let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
//! let db: Database = Database::builder().retry_policy(policy).open()?;
//! db.report_both_sides(true);
//! let price = TBox::named(&db, "price", 1u64);
//!
//! let audited = db.with_worker(|worker| {
//!     worker.named("audit").transact(|tx| {
//!         let seen = price.get(tx)?;
//!         let buy = || db.with_worker(|worker| worker.named("buy").transact(|tx| price.set(tx, 10)));
//!         std::thread::scope(|scope| scope.spawn(buy).join().unwrap().unwrap());
//!         price.set(tx, seen + 1)
//!     })
//! });
//! let Err(Error::Conflict(conflict)) = audited else { panic!("it has been overtaken") };
//! assert_eq!(
//!     conflict.to_string(),
//!     "a value that was read has changed: price[value], attempt 1 of audit, lost to buy"
//! );
//! assert_eq!(db.hot_keys(1)[0].rivalries[0].to_string(), "audit lost 1 to buy");
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! The loser asks its protocol which worker had the value or had changed it, and that worker which transaction that was.
//! `occ` and `tl2` know exactly, but not while the value is locked. Under the protocols with locks, and under `drp`, it is the
//! transaction that the worker runs when the loser looks, which may be one after the true one. `tictoc`, `mocc` and `serial` do not
//! know. Where it is not known, the winner is `None`. `hotrow bench … --both-sides` prints the same, and
//! `--live` shows it while the run goes on.
//!
//! # Deadlocks
//!
//! Under `2pl-mcs` and the `steal` protocols a transaction waits for any other, and the youngest
//! of a cycle is aborted. The engine keeps the last 64 such [deadlocks](Engine::deadlocks): who waited for whom, and for which key.
//! `hotrow bench … --protocol 2pl-mcs` prints the last ones. The other protocols have none.
//!
//! ```
//! use hotrow::{Any, Engine, RetryPolicy, TArray};
//! use std::sync::Barrier;
//!
//! let engine = Engine::<Any>::named("2pl-mcs", RetryPolicy::default()).expect("its name");
//! engine.report_both_sides(true);
//! let rows = TArray::named(&engine, "rows", 2, |_| 0u64);
//! let both_have_one = Barrier::new(2);
//! let swap = |name: &'static str, first: usize, second: usize| {
//!     engine.with_worker(|worker| {
//!         worker.named(name).transact(|tx| {
//!             rows.set(tx, first, 1)?;
//!             if tx.attempt_number() == 0 {
//!                 both_have_one.wait();
//!             }
//!             rows.set(tx, second, 1)
//!         })
//!     })
//! };
//! std::thread::scope(|scope| {
//!     let other = scope.spawn(|| swap("down", 1, 0));
//!     swap("up", 0, 1)?;
//!     other.join().expect("it does not panic")
//! })?;
//! let deadlock = engine.deadlocks(1).remove(0);
//! let text = deadlock.to_string();
//! assert!(text.contains("up waited for down over rows[1]"), "{text}");
//! assert!(text.contains("down waited for up over rows[0]"), "{text}");
//! assert_eq!(deadlock.waits.iter().filter(|wait| wait.is_victim).count(), 1);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A deadlock that is found at the moment at which one of its waits ends may be none: the waits were read one after the other.
//! The part of the one whose wait had ended is then unknown.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
