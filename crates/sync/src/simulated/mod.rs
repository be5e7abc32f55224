//! What stands in for the standard library in builds with feature `sim`: the same primitives, each operation of
//! which is a step of the simulation that runs on this thread. If none runs, they are the standard library's, at
//! the price of looking whether one runs.

pub(crate) mod atomic;
pub(crate) mod clock;
mod mutex;

pub use mutex::{Condvar, Mutex, MutexGuard};

/// The key on which cores park for something at this address.
pub(crate) fn key<T: ?Sized>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}
