//! # Recording and checking a run
//!
//! [`Engine::record_history`] records the version of each key that each attempt reads or writes, with failed lookups and scanned ranges. Crate
//! `hotrow-check` decides if some order of the committed transactions explains the record, if that order agrees with real time, and if
//! aborted attempts, too, saw one state.
//!
//! ```
//! use hotrow::{Database, TBox};
//!
//! let db = Database::open()?;
//! let recording = db.record_history(100_000_000)?; // Bytes of memory, at most about.
//! let (left, right) = (TBox::named(&db, "left", 0u64), TBox::named(&db, "right", 0u64));
//! std::thread::scope(|scope| {
//!     for (from, to) in [(&left, &right), (&right, &left)] {
//!         let add = |tx: &mut hotrow::Transaction| { let seen = from.get(tx)?; to.set(tx, seen + 1) };
//!         let db = &db;
//!         scope.spawn(move || (0..100).for_each(|_| db.transact(add).unwrap()));
//!     }
//! });
//! let report = hotrow_check::check(&recording.finish()).unwrap();
//! assert!(report.is(report.claimed()), "{report}"); // The report explains each violation.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Call it while no transaction runs. An engine is recorded once ([`Misuse::AlreadyRecorded`]). A recorded run is slower, because each
//! operation looks its key up in a map, so it is no benchmark. Immutable tables are not recorded.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
