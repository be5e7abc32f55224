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
//! stock.bulk_insert((1, 77), 0);
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

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
