//! # Waiting for a change, and hooks
//!
//! A body that cannot go on yet calls [`retry`](Transaction::retry). All that it has written is undone, nothing is held, and the
//! transaction sleeps until a commit changes something that the body has read: an object, a row, a range, an absence, a
//! condition. Then the body runs again from its beginning. A bounded buffer:
//!
//! ```
//! use hotrow::prelude::*;
//!
//! let db = Database::open()?;
//! let (buffer, free) = (TQueue::new(&db), TCounter::new(&db, 3));
//! let put = |number: u32| db.transact(|tx| {
//!     if !free.is_at_least(tx, 1)? { return tx.retry(); }
//!     free.add(tx, -1)?;
//!     buffer.push(tx, number)
//! });
//! let take = || db.transact(|tx| {
//!     let Some(number) = buffer.pop(tx)? else { return tx.retry() };
//!     free.add(tx, 1).map(|()| number)
//! });
//! std::thread::scope(|scope| {
//!     scope.spawn(|| (0..100).for_each(|number| put(number).unwrap()));
//!     (0..100).for_each(|number| assert_eq!(take(), Ok(number)));
//! });
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Where two parts may wait, [`or_else`](Transaction::or_else) takes the second one if the first one waits. If both do, a change
//! of what either has read wakes the transaction. It waits for as long as the second one says: a limit of the first part
//! ([`retry_for`](Transaction::retry_for)) is over when the second one begins.
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
//! // No longer than this.
//! let late = db.transact(|tx| {
//!     accounts.get(tx, &WAGES)?;
//!     tx.retry_for::<()>(Duration::from_millis(5))
//! });
//! assert!(matches!(late, Err(hotrow::Error::RetryTimeout { .. })));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # What wakes, and what it costs
//!
//! - A transaction that never calls `retry` pays nothing for it at its reads, and a commit one look at a word that says if anybody
//!   waits. The first time that a body waits, it runs once more before it sleeps, and notes what it reads.
//! - A change wakes one of those that wait for it. A waiter that was woken passes the change on when it waits again or its transaction is
//!   over, however that has ended, so that everybody hears of it who needs it. Waiters that depend on a condition (an empty queue, a counter
//!   that is too small) are not woken while it holds again: of a thousand takers, one new element wakes one. A future that was woken
//!   must be polled or dropped: as long as it is neither, others behind it sleep.
//! - Everything counts on which the body depends: what it has read, rows whose presence a change at the commit needs
//!   ([`add_if_present`](Table::add_if_present)), and keys that it has found free or taken when it inserted.
//! - A wake-up is exact for objects and rows, and coarse for absences and ranges: whoever waits for a key that is missing may be woken
//!   by another one in the same bucket or leaf. [`Statistics::waits`] counts the waits, and [`Statistics::woken_in_vain`] those after
//!   which the body had to wait again. There is no polling.
//! - A wait is no abort and no rollback: it does not count as an attempt, and a transaction does not get older by it.
//! - What is not read through transactions wakes nobody: rows of immutable tables, boosted maps ([`TBoostedMap`]), variables of the
//!   program.
//!
//! # When it ends without a change
//!
//! The policy's deadline, or [`retry_for`](Transaction::retry_for), ends a wait with [`Error::RetryTimeout`]. Where it is certain that
//! nothing can change the wait ends at once with [`Error::BlockedForever`]: if the body has read nothing that can change; under a
//! protocol that admits one worker; and if all workers wait and nobody has a handle of the engine. (Whoever has one may yet make a
//! worker, so nothing else is certain.) A transaction with one attempt cannot wait ([`Misuse::CannotWait`]): that of a
//! [session](Session), one on a snapshot, one that is stepped by hand. Within `or_else` it may call `retry`.
//!
//! # Hooks
//!
//! A body may run several times, so it leaves what must happen once to a hook: [`on_commit`](Transaction::on_commit),
//! [`on_durable`](Transaction::on_durable) (when the commit is on the device, whether or not the caller waits for that), [`on_abort`](Transaction::on_abort) (when the
//! transaction, not one attempt, has ended without a commit). The hooks of an attempt that is followed by another one are dropped,
//! and so are those of a [part](Transaction::savepoint) that is undone.
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
//! Nothing is held when a hook runs: no lock, no memory. It may begin a transaction of its own (not under `none`, whose only
//! worker is in use: that transaction ends with [`Misuse::TooManyWorkers`]). Its panic undoes nothing; the other
//! hooks run, and then the panic is passed on in place of the result.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
