//! # Boxes, counters, collections
//!
//! Objects are made for a database and belong to it. [`TBox`] holds one value. [`TArray`] holds a fixed number of values, each of
//! which conflicts on its own. A transaction sees its own writes. Others see them only after the commit, all or none.
//!
//! ```
//! use hotrow::{Database, TArray, TBox};
//!
//! let db = Database::open()?;
//! let title = TBox::new(&db, String::from("draft"));
//! let votes = TArray::new(&db, 3, |_| 0u64);
//!
//! let seen = db.transact(|tx| {
//!     title.set(tx, String::from("final"))?;
//!     votes.update(tx, 2, |votes| *votes += 1)?;
//!     let length = title.read(tx, |title| title.len())?; // Looks at the value without copying it.
//!     Ok((length, votes.get(tx, 2)?))
//! })?;
//! assert_eq!(seen, (5, 1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! [`TCounter`] is for a number that many threads change and few read exactly. Increments do not read the counter, so
//! they never make each other abort. Tests ([`is_at_least`](TCounter::is_at_least) and its siblings) are
//! *predicates*: the transaction depends on the answer, not on the value. An exact [`get`](TCounter::get) conflicts
//! with every change. [`TCounters`] are many of them side by side.
//!
//! ```
//! use hotrow::{Database, TCounter};
//!
//! let db = Database::open()?;
//! let tickets = TCounter::new(&db, 2);
//! let mut buy = || {
//!     db.transact(|tx| {
//!         if !tickets.is_at_least(tx, 1)? {
//!             return Ok(false);
//!         }
//!         tickets.add(tx, -1)?;
//!         Ok(true)
//!     })
//! };
//! assert_eq!([buy()?, buy()?, buy()?], [true, true, false]);
//! # Ok::<(), hotrow::Error>(())
//! ```

//!
//! # Collections
//!
//! Each collection behaves as one of the standard library does, and its transactions conflict only if what they have done and
//! seen does:
//!
//! | collection | is | does not conflict |
//! |---|---|---|
//! | [`TVector`] | a `Vec` | pushes; operations on different elements; tests of the length that come out the same |
//! | [`TQueue`] | a `VecDeque`, first in, first out | pushes; a push and a pop, unless the queue runs empty |
//! | [`TPriorityQueue`] | a `BinaryHeap` | pushes; a push and a pop, unless the element pushed comes first |
//! | [`TList`] | a list that is searched | insertions; a search and the removal of another element |
//! | [`TListSet`] | a small `BTreeSet` | operations on different elements |
//! | [`TTreeMap`] | a `BTreeMap` | operations on different keys; scans and changes outside of what they have seen |
//! | [`THashMap`], [`TOrderedMap`] | a `HashMap`, a `BTreeMap` | operations on different keys; scans and changes outside of their range |
//! | [`TBoostedMap`] | any concurrent map of another crate | operations on different keys |
//! | [`TWords`] | memory | accesses to different words |
//!
//! Their operations take `&self`, so they are shared by reference or in an `Arc`, and a collection may be an element of another
//! one in an `Arc`. Elements are of any type that can be cloned and sent; those of vectors and values of maps need `Value`, which
//! is derived, or a `Box` or `Arc` around them.
//!
//! Two maps are in order. A [`TOrderedMap`] needs keys with images (`Key`), and insertions into different parts of it go on side by
//! side: take it for many entries, or many insertions. A [`TTreeMap`] takes keys of any type with an order, and lookups by
//! borrowed ones; transactions that insert into it or remove from it commit one after the other.
//!
//! ```
//! use hotrow::{Database, TPriorityQueue, TQueue, TVector};
//!
//! let db = Database::open()?;
//! let incoming = TQueue::with_elements(&db, ["mail", "alarm"]);
//! let urgent = TPriorityQueue::new(&db);
//! let done = TVector::new(&db);
//! let next = db.transact(|tx| {
//!     while let Some(task) = incoming.pop(tx)? {
//!         urgent.push(tx, (if task == "alarm" { 9 } else { 1 }, task))?;
//!     }
//!     let next = urgent.pop(tx)?;
//!     if let Some((_, task)) = next {
//!         done.push(tx, task.to_owned())?;
//!     }
//!     Ok((next, done.len(tx)?))
//! })?;
//! assert_eq!(next, (Some((9, "alarm")), 1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! The less an operation tells, the less it conflicts: [`is_longer_than`](TVector::is_longer_than) less than [`len`](TVector::len),
//! [`discard_last`](TVector::discard_last) less than [`pop`](TVector::pop). If nothing fits, [write your own](crate::object).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
