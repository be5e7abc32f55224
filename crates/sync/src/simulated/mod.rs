//! Replacements for the standard library's primitives in builds with feature `sim`. Each operation is a step of
//! the simulation that runs on this thread. If none runs, the operation is the standard library's, plus the cost of
//! the check.

pub(crate) mod atomic;
mod mutex;

pub use mutex::{Condvar, Mutex, MutexGuard};

/// The key on which cores park when they wait for an object: its address.
pub(crate) fn key<T: ?Sized>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}
