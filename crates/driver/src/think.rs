//! Think time: interactive transactions, whose operations arrive over a network (plor §6.2.2).
//!
//! Each operation of a procedure (a read, change, insertion, deletion or scan) begins only after a delay. There is no
//! delay before a commit. (The think times of TPC-C, clause 5.2.5, are different: they lie between transactions.)
//!
//! An attempt keeps all that it holds through the delays: locks, under a protocol that locks when it reads or writes;
//! under every protocol its own insertions, which lock their records, and the epoch, so that memory is reclaimed later.
//! The paper compares exactly this: protocols that lock early make others wait for whole round trips, optimistic ones
//! lose the round trips with each aborted attempt.
//!
//! The thread sleeps for the delay. Linux wakes it about 60 µs late at best (50 µs of timer slack, and the context
//! switch), and far later where threads wait for a core. In a simulation delays are exact.

use hotrow::sync::thread::sleep;
use hotrow::{Database, Procedures, Protocol};
use std::time::Duration;

/// Delays each operation of the database's procedures.
pub(crate) fn delay_operations<P: Protocol>(database: &Database<P>, think: Duration) {
    database.before_operations(move || sleep(think));
}
