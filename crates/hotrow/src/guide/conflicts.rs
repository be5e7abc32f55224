//! # The conflict report
//!
//! Every database counts commits, aborts by [`Reason`], and the keys over which attempts lost, also in release builds
//! ([`Engine::statistics`], [`Engine::hot_keys`]). [`Engine::report_both_sides`] adds the transaction that won each conflict. Transactions
//! have the names of their procedures, or those that [`Worker::named`] gives them; otherwise the place of the call stands for the name.
//!
//! ```
//! use hotrow::{Database, Error, Reason, RetryPolicy};
//!
//! let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
//! let db: Database = Database::builder().retry_policy(policy).open()?;
//! db.report_both_sides(true);
//! let stock = db.table::<(u16, u32), u64>("stock").hash(10).create()?;
//! stock.bulk_insert([((1, 77), 0)])?;
//!
//! let count = db.with_worker(|worker| worker.named("count").transact(|tx| {
//!     let seen = stock.get(tx, &(1, 77))?.unwrap_or(0);
//!     let sell = || db.with_worker(|worker| {
//!         worker.named("sell").transact(|tx| stock.update(tx, &(1, 77), |row| *row = 10))
//!     });
//!     std::thread::scope(|scope| scope.spawn(sell).join().unwrap()).unwrap();
//!     stock.update(tx, &(1, 77), |row| *row = seen + 1)
//! }));
//! let Err(Error::Conflict(conflict)) = count else { panic!("it was overtaken") };
//! let text = "a value that was read has changed: stock[(1, 77)], attempt 1 of count, lost to sell";
//! assert_eq!(conflict.to_string(), text);
//! assert_eq!(db.statistics().aborts_for(Reason::ReadChanged), 1);
//! let hottest = &db.hot_keys(10)[0];
//! assert_eq!((hottest.key.as_str(), hottest.conflicts), ("(1, 77)", 1));
//! assert_eq!(hottest.rivalries[0].to_string(), "count lost 1 to sell");
//! # Ok::<(), Error>(())
//! ```
//!
//! Each worker keeps 256 keys. A new key beyond that replaces the least frequent one and inherits its count, so that a hot key is never missed
//! and counts are upper bounds.
//!
//! | protocol | reported winner |
//! |---|---|
//! | `occ`, `chop`, `dbx`, `ic3`, `tl2` | the transaction that wrote the value; unknown while the value is locked |
//! | those that lock, `plor`, `drp`, `deferred-2pl` | the transaction that the holder's worker runs when the loser looks; it may be the one after the winner |
//! | `tictoc`, `mocc`, `serial`, `none`, `naive-htm` | unknown |
//!
//! `hotrow bench … --both-sides` prints the report, and `--live` shows it during the run.
//!
//! # Deadlocks
//!
//! Only under `2pl-mcs`, `steal` and `steal-basic` can transactions wait for each other in a cycle; the youngest of the cycle is aborted. The
//! engine keeps the last 64 cycles ([`Engine::deadlocks`]). `hotrow bench … --protocol 2pl-mcs` prints the last five.
//!
//! ```
//! use hotrow::{Any, Engine, RetryPolicy, TArray};
//!
//! let engine = Engine::<Any>::named("2pl-mcs", RetryPolicy::default()).expect("its name");
//! engine.report_both_sides(true);
//! let rows = TArray::named(&engine, "rows", 2, |_| 0u64);
//! let both_have_one = std::sync::Barrier::new(2);
//! let swap = |name: &'static str, first: usize, second: usize| {
//!     let swapped = engine.with_worker(|worker| worker.named(name).transact(|tx| {
//!         rows.set(tx, first, 1)?;
//!         if tx.attempt_number() == 0 { both_have_one.wait(); }
//!         rows.set(tx, second, 1)
//!     }));
//!     swapped.unwrap();
//! };
//! std::thread::scope(|scope| {
//!     scope.spawn(|| swap("down", 1, 0));
//!     swap("up", 0, 1);
//! });
//! let text = engine.deadlocks(1)[0].to_string();
//! assert!(text.contains("up waited for down over rows[1]"), "{text}");
//! assert!(text.contains("down waited for up over rows[0]"), "{text}");
//! ```
//!
//! The waits of a cycle are read one after the other, so that a reported deadlock is false if one of its waits ended meanwhile. The part of
//! that member is then unknown.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
