//! The examples over a mutex and over an embedded store, to compare with.

pub(crate) mod inventory;
pub(crate) mod job_queue;
pub(crate) mod leaderboard;
pub(crate) mod ledger;
pub(crate) mod order_matching;
pub(crate) mod rate_limiter;
mod store;
pub(crate) mod ticket_shop;
