//! Threads.

use std::num::NonZeroUsize;

#[cfg(not(loom))]
pub(crate) use std::hint::spin_loop;
#[cfg(not(loom))]
pub use std::thread::{
    Builder, JoinHandle, Scope, ScopedJoinHandle, panicking, scope, sleep, spawn, yield_now,
};

#[cfg(loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::thread::{Builder, JoinHandle, panicking, spawn, yield_now};

/// Lets others run; no time passes in a model.
#[cfg(loom)]
pub fn sleep(_: std::time::Duration) {
    yield_now();
}

/// How many threads this process can run at once (1 where the system does not say).
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
