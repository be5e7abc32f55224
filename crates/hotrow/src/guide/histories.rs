//! # Recording and checking a run
//!
//! A database can record the version of each key that each attempt read or wrote ([`history`]), including failed
//! lookups and scanned ranges. Crate `hotrow-check` judges the result: whether some order of the committed
//! transactions explains it, whether that order agrees with real time, and whether aborted attempts, too, saw one
//! state.
//!
//! ```
//! use hotrow::{Database, TBox};
//!
//! let db = Database::open()?;
//! let recording = db.record_history(100_000_000)?; // At most about so many bytes of memory.
//! let (left, right) = (TBox::named(&db, "left", 0u64), TBox::named(&db, "right", 0u64));
//! std::thread::scope(|scope| {
//!     for (from, to) in [(&left, &right), (&right, &left)] {
//!         let db = &db;
//!         scope.spawn(move || {
//!             for _ in 0..100 {
//!                 db.transact(|tx| { let seen = from.get(tx)?; to.set(tx, seen + 1) }).unwrap();
//!             }
//!         });
//!     }
//! });
//! let report = hotrow_check::check(&recording.finish()).unwrap();
//! assert!(report.is(report.claimed()), "{report}"); // The report tells each violation in sentences.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A database that does not record pays no measurable cost. While it records, each operation looks its key up in a
//! map, so such a run is slower and is no benchmark.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
