//! Lost conflicts: their report by key, and the transactions on both sides.
//!
//! A loss is counted by the worker that loses, in a table of its own ([`table`]). The other side is found only if the engine
//! [reports both sides](crate::Engine::report_both_sides): then each worker says which transaction it runs ([`origin`]), and the
//! loser asks the protocol whose worker holds or has changed the segment ([`Reports::rival`]).

mod deadlocks;
mod losing;
mod origin;
mod table;

pub(crate) use deadlocks::Deadlocks;
pub use deadlocks::{Deadlock, DeadlockWait};
pub use origin::Named;
pub(crate) use origin::{Activity, KnownOrigins, Origins};
pub(crate) use table::ConflictTable;
pub use table::{HotKey, Rivalry};
