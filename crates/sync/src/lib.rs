//! The one home of Hotrow's shared-memory primitives.
//!
//! Every atomic word, lock, wait, clock reading, random number and thread of the project comes from here. No
//! other crate names `std::sync::atomic`, `std::thread` or `Instant`; a test of the command's crate checks the
//! sources for these names. So all of them can be routed to a simulator or to a model checker without a change
//! of any protocol.
//!
//! # Waiting
//!
//! More threads than cores are normal. A waiting thread therefore spins briefly ([`spin::Spin`]) and then gives
//! up the processor: a bounded wait ends and its transaction aborts, an unbounded wait parks ([`event::Event`]).
//! No thread holds anything while it backs off ([`backoff::Backoff`]).
//!
//! # Model checking
//!
//! A build with `--cfg loom` takes these primitives from loom instead of the standard library, so that module
//! `model` can run a kernel in every interleaving and with every result of its relaxed accesses. `.ci/loom`
//! builds and runs the models; docs/memory-model.md says what they show.
//!
//! # Simulation
//!
//! With feature `sim`, and while a simulation (`hotrow-sim`) runs on the thread, each operation is a step of it.
//! Without the feature none of that is compiled.
//!
//! # Exception
//!
//! Epoch reclamation (`crossbeam-epoch`, used by `hotrow-core`) brings its own atomics.

// This crate wraps what clippy.toml forbids in all others.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod atomic;
pub mod backoff;
pub mod barrier;
pub mod clock;
pub mod event;
pub mod hashing;
pub mod memory;
#[cfg(loom)]
pub mod model;
pub mod prefetch;
pub mod process;
pub mod profile;
pub mod random;
pub mod region;
#[cfg(all(feature = "sim", not(loom)))]
mod simulated;
pub mod spin;
pub mod thread;
pub mod work;

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

/// Locks of instruments. Neither the simulator nor the model checker sees them, because recording a run must not
/// change the run. A thread that holds one must not use [`atomic`].
pub mod instrument {
    pub use std::sync::{Mutex, MutexGuard};

    /// As [`lock`](crate::lock).
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Locks a mutex, even if a thread panicked while holding it.
///
/// Hotrow's mutexes guard counters, registries and reports. Each of these is valid after every statement, so its
/// data are valid even if the mutex is poisoned.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Locks a mutex if that needs no wait, as [`lock`] does.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}
