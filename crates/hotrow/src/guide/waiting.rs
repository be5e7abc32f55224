//! # Waiting for a change, and hooks
//!
//! A body that cannot go on yet calls [`retry`](Transaction::retry). Its writes are undone, nothing is held, and the transaction sleeps until
//! a commit changes something that the body has read: an object, a row, a range, an absence, a condition. Then the body runs again. A
//! [job queue](super::queue) shows it.
//!
//! [`or_else`](Transaction::or_else) runs a second part if the first one waits. If both wait, a change of what either has read wakes the
//! transaction. [`retry_for`](Transaction::retry_for) limits the wait; in `or_else` the limit of the second part counts.
//!
//! ```
//! # use hotrow::prelude::*;
//! # use std::time::Duration;
//! # let db = Database::open()?;
//! # let accounts = db.table::<u32, u64>("accounts").create()?;
//! const WAGES: u32 = 1;
//! const SAVINGS: u32 = 2;
//! # accounts.bulk_insert([(WAGES, 0), (SAVINGS, 5)])?;
//! let pay = |tx: &mut Transaction, from: u32, amount: u64| {
//!     if accounts.get(tx, &from)?.unwrap_or(0) < amount { return tx.retry(); }
//!     accounts.update(tx, &from, |balance| *balance -= amount).map(|_| from)
//! };
//! let paid = std::thread::scope(|scope| {
//!     let paying = scope.spawn(|| db.transact(|tx| {
//!         tx.or_else(|tx| pay(tx, WAGES, 100), |tx| pay(tx, SAVINGS, 100))
//!     }));
//!     db.transact(|tx| accounts.update(tx, &WAGES, |balance| *balance += 100)).unwrap();
//!     paying.join().unwrap()
//! })?;
//! assert_eq!(paid, WAGES);
//! let late = db.transact(|tx| {
//!     accounts.get(tx, &WAGES)?;
//!     tx.retry_for::<()>(Duration::from_millis(5))
//! });
//! assert!(matches!(late, Err(hotrow::Error::RetryTimeout { .. })));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Wake-ups and their cost
//!
//! - Without waiters a commit pays one look at a word, and reads pay nothing. A body that waits for the first time runs once more before it
//!   sleeps.
//! - A change wakes one waiter, which passes it on when it waits again or ends. A waiter whose condition (an empty queue, a small counter) still
//!   holds is not woken: one new element wakes one of a thousand takers. A woken future must be polled or dropped; until then others
//!   behind it sleep.
//! - A waiter for a missing key or a range may be woken by another key in the same bucket or leaf. [`Statistics::waits`] counts the waits,
//!   [`Statistics::woken_in_vain`] those after which the body waited again.
//! - A wait does not count as an attempt or an abort.
//! - Rows of immutable tables, boosted maps ([`TBoostedMap`]) and variables of the program wake nobody.
//!
//! # Ends without a change
//!
//! | error | cause |
//! |---|---|
//! | [`Error::RetryTimeout`] | the policy's deadline, or the limit of [`retry_for`](Transaction::retry_for) |
//! | [`Error::BlockedForever`] | the body has read nothing that can change; the protocol admits one worker; all workers wait, and nobody has a handle |
//! | [`Misuse::CannotWait`] | the transaction has one attempt only: a [session's](Session), on a snapshot, in a later piece of a chopped procedure, stepped by hand |
//!
//! # Hooks
//!
//! A body may run several times, so leave what must happen once to a hook. Hooks of an attempt that is followed by another one, or of an undone
//! [part](Transaction::savepoint), are dropped.
//!
//! | hook | runs once when |
//! |---|---|
//! | [`on_commit`](Transaction::on_commit) | the transaction has committed |
//! | [`on_durable`](Transaction::on_durable) | the commit is on the device; without a log, when it has committed |
//! | [`on_abort`](Transaction::on_abort) | the transaction, not one attempt, has ended without a commit |
//!
//! ```
//! # use hotrow::prelude::*;
//! # use std::sync::mpsc;
//! # let db = Database::open()?;
//! # let sold = TCounter::new(&db, 0);
//! let (mails, sent) = mpsc::channel();
//! db.transact(|tx| {
//!     let mails = mails.clone();
//!     tx.on_commit(move || mails.send("your ticket").unwrap());
//!     sold.add(tx, 1)
//! })?;
//! assert_eq!(sent.recv(), Ok("your ticket"));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A hook runs when nothing is held, and may begin a transaction, except under `none` ([`Misuse::TooManyWorkers`]). Its panic undoes nothing: the
//! other hooks run, and then the panic is passed on in place of the result.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
