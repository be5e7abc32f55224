//! The one home of Hotrow's shared-memory primitives.
//!
//! Every atomic word, lock, wait, clock reading, random number and thread of the project comes from here,
//! and no other crate names `std::sync::atomic`, `std::thread` or `Instant` (a test of the command's crate
//! reads the sources and says so). One home makes it possible to route all of them to a simulator or to a
//! model checker without touching a protocol.
//!
//! # Waiting
//!
//! More threads than cores is normal. Whoever waits therefore spins briefly ([`spin::Spin`]) and then lets
//! the processor go: a bounded wait gives up and its transaction aborts, an unbounded one parks
//! ([`event::Event`]). Nobody holds anything while backing off ([`backoff::Backoff`]).
//!
//! # Model checking
//!
//! A build with `--cfg loom` takes all of this from loom instead of the standard library, so that module
//! `model` can run a kernel in every interleaving and under every outcome of its relaxed accesses. `.ci/loom`
//! builds and runs the models; docs/memory-model.md says what they show.
//!
//! # Simulation
//!
//! With feature `sim` each operation is a step of the simulation that runs on its thread, if one does
//! (`hotrow-sim`). Without the feature nothing of that is compiled.
//!
//! # What is not here
//!
//! Epoch reclamation (`crossbeam-epoch`, used by `hotrow-core`) brings its own atomics.

// What clippy.toml forbids everywhere else is this crate's to wrap.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod atomic;
pub mod backoff;
pub mod clock;
pub mod event;
pub mod memory;
#[cfg(loom)]
pub mod model;
pub mod prefetch;
pub mod random;
#[cfg(all(feature = "sim", not(loom)))]
mod simulated;
pub mod spin;
pub mod thread;

#[cfg(not(loom))]
pub use std::sync::{Arc, LazyLock, OnceLock, Weak};
#[cfg(not(any(loom, feature = "sim")))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(all(feature = "sim", not(loom)))]
pub use simulated::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(loom)]
pub use std::sync::{LazyLock, OnceLock};

/// Locks of instruments, which nothing follows: what records a run must not be a part of what it records. No
/// operation of [`atomic`] may happen while one is held.
pub mod instrument {
    pub use std::sync::{Mutex, MutexGuard};

    /// As [`lock`](crate::lock).
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Locks a mutex whether or not a thread panicked while holding it.
///
/// Hotrow's mutexes guard counters, registries and reports, each of which is valid after every statement,
/// so a poisoned one says nothing about the data.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
