//! Procedures over a store.
//!
//! A procedure is recorded: an operation runs when all that it needs is known, not when it is called. All operations of which the rows
//! are known and were not read yet ask the store together, so that a procedure costs an answer for each step of *dependence*, not for each
//! operation. The recording is DRP's (drp §4); here it saves round trips instead of locks.
//!
//! **Order.** An operation may overtake one before it only if the two are on different tables, or on rows that are known and differ. So each
//! finds the rows that it would find if they ran one after the other.
//!
//! **Barriers.** [`Context::force`] and the end of the procedure wait for all that was recorded.

mod access;
mod context;
mod execution;
mod values;

use context::Remote;
