//! # Boxes, counters, collections
//!
//! An object belongs to the database for which it is made. [`TBox`] holds one value; [`TArray`] a fixed number of values, each of which
//! conflicts on its own; [`TCounter`] a number that many threads change and few read exactly; [`TCounters`] many counters side by side.
//!
//! ```
//! use hotrow::{Database, TArray, TBox, TCounter};
//!
//! let db = Database::open()?;
//! let title = TBox::new(&db, String::from("draft"));
//! let votes = TArray::new(&db, 3, |_| 0u64);
//! let tickets = TCounter::new(&db, 2);
//!
//! let seen = db.transact(|tx| {
//!     title.set(tx, String::from("final"))?;
//!     votes.update(tx, 2, |votes| *votes += 1)?;
//!     let length = title.read(tx, |title| title.len())?; // Looks at the value without copying it.
//!     Ok((length, votes.get(tx, 2)?)) // A transaction sees its own writes.
//! })?;
//! assert_eq!(seen, (5, 1));
//!
//! let buy = || db.transact(|tx| {
//!     let is_left = tickets.is_at_least(tx, 1)?;
//!     if is_left { tickets.add(tx, -1)?; }
//!     Ok(is_left)
//! });
//! assert_eq!([buy()?, buy()?, buy()?], [true, true, false]);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Increments of a counter do not read it, so that they never abort each other. A test ([`is_at_least`](TCounter::is_at_least)
//! and its siblings) makes the transaction depend on the answer, not on the value. An exact [`get`](TCounter::get) conflicts with every change.
//!
//! # Collections
//!
//! A collection behaves as one of the standard library does. Two transactions conflict only if what they did and saw in it conflicts:
//!
//! | collection | is | does not conflict |
//! |---|---|---|
//! | [`TVector`] | a `Vec` | pushes; operations on different elements; tests of the length with the same answer |
//! | [`TQueue`] | a `VecDeque`, first in, first out | pushes; a push and a pop, unless the queue runs empty |
//! | [`TPriorityQueue`] | a `BinaryHeap` | pushes; a push and a pop, unless the pushed element comes first |
//! | [`TList`] | a list that is searched | insertions; a search and the removal of another element |
//! | [`TListSet`] | a `BTreeSet` of up to some hundred elements | operations on different elements |
//! | [`TTreeMap`] | a `BTreeMap` | operations on different keys; scans and changes outside of what they saw |
//! | [`THashMap`], [`TOrderedMap`] | a `HashMap`, a `BTreeMap` | operations on different keys; scans and changes outside of their range |
//! | [`TBoostedMap`] | any concurrent map of another crate | operations on different keys |
//! | [`TWords`] | memory | accesses to different words |
//!
//! Operations take `&self`, so a collection is shared by reference or in an `Arc`. Elements are any types that can be cloned and sent;
//! elements of vectors and values of maps are a derived `Value`, or in a `Box` or `Arc`. A [`TOrderedMap`] needs keys that are a `Key`, and
//! insertions into different parts run side by side; a [`TTreeMap`] takes keys of any ordered type, and its insertions and removals commit
//! one after the other.
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
//!     if let Some((_, task)) = next { done.push(tx, task.to_owned())?; }
//!     Ok((next, done.len(tx)?))
//! })?;
//! assert_eq!(next, (Some((9, "alarm")), 1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! The less an operation tells, the less it conflicts: [`is_longer_than`](TVector::is_longer_than) less than [`len`](TVector::len),
//! [`discard_last`](TVector::discard_last) less than [`pop`](TVector::pop). If nothing fits, [write a datatype](crate::object).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
