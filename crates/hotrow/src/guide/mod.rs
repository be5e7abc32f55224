//! The guide. Every Rust program in it is a test.
//!
//! # Tasks
//!
//! Each page has one program, its guarantees, its errors, and the way to make it fast when a row is hot.
//!
//! | task | page |
//! |---|---|
//! | sell tickets or stock from one hot row | [shop] |
//! | book payments once, with balances that are never overdrawn | [ledger] |
//! | hand out jobs, and wait without polling | [queue] |
//! | limit requests of each client and of all | [quota] |
//! | read a report beside writers | [reports] |
//! | survive a crash | [crash] |
//! | change the type of rows that are on the device | [evolving] |
//! | serve psql and PostgreSQL's drivers | [serving] |
//! | use more than one machine | [machines] |
//! | move here from mutexes, STM, an embedded store or PostgreSQL | [moving] |
//! | understand a message | [mistakes] |
//! | choose Cargo features | [features] |
//!
//! # Reference
//!
//! | about | pages |
//! |---|---|
//! | data | [tables, keys, rows](tables); [boxes, counters, collections](objects); [a datatype of your own](crate::object) |
//! | transactions | [errors, retries, rollback, panics](errors); [waiting, and hooks](waiting); [snapshots]; [profiles, and single reads](profiles); [guarantees, rules for bodies, limits](guarantees) |
//! | programs | [threads, workers, sessions](threads); [servers]; [asynchronous code](tasks); [durability] |
//! | speed | [hot rows](hot_rows); [the conflict report](conflicts); [which protocol when](protocols); [deferred operations](deferred); [procedures and contexts](procedures) |
//! | checking | [recording and checking a run](histories) |

pub mod conflicts;
pub mod crash;
pub mod deferred;
pub mod durability;
pub mod errors;
pub mod evolving;
pub mod features;
pub mod guarantees;
pub mod histories;
pub mod hot_rows;
pub mod ledger;
pub mod machines;
pub mod mistakes;
pub mod moving;
pub mod objects;
pub mod procedures;
pub mod profiles;
pub mod protocols;
pub mod queue;
pub mod quota;
pub mod reports;
pub mod servers;
pub mod serving;
pub mod shop;
pub mod snapshots;
pub mod tables;
pub mod tasks;
pub mod threads;
pub mod waiting;
