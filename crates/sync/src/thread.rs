//! Threads.

use std::num::NonZeroUsize;

pub use std::thread::{
    Builder, JoinHandle, Scope, ScopedJoinHandle, panicking, scope, sleep, spawn, yield_now,
};

/// How many threads this process can run at once (1 where the system does not say).
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
