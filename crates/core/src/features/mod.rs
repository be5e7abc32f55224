//! Features: what only some transactions or engines use.

pub(crate) mod compiled;
pub(crate) mod conflicts;
pub(crate) mod counters;
pub mod deferred;
pub(crate) mod durability;
pub(crate) mod end_hooks;
pub mod graph;
pub mod history;
pub(crate) mod hooks;
pub(crate) mod moments;
pub mod operations;
pub(crate) mod pieces;
pub(crate) mod recorded;
pub mod region;
pub(crate) mod savepoint;
pub(crate) mod session;
#[cfg(feature = "serde")]
pub(crate) mod shown;
pub(crate) mod snapshot;
pub(crate) mod stamp;
pub(crate) mod state;
pub(crate) mod unacknowledged;
pub(crate) mod untracked;
pub(crate) mod waiting;
