//! Time.

#[cfg(all(feature = "sim", not(loom)))]
pub use crate::simulated::clock::{Instant, nanoseconds, now};
#[cfg(any(loom, not(feature = "sim")))]
pub use quanta::Instant;
pub use std::time::Duration;

/// The current time of a monotonic clock. In a model no time passes.
#[cfg(any(loom, not(feature = "sim")))]
#[inline]
pub fn now() -> Instant {
    #[cfg(loom)]
    return *BEGINNING.get_or_init(Instant::now);
    #[cfg(not(loom))]
    Instant::now()
}

/// Nanoseconds since a fixed moment, which is the same for all threads of the process; in a simulation, since it
/// began.
#[cfg(any(loom, not(feature = "sim")))]
#[inline]
pub fn nanoseconds() -> u64 {
    let beginning = *BEGINNING.get_or_init(Instant::now);
    now().saturating_duration_since(beginning).as_nanos() as u64
}

#[cfg(any(loom, not(feature = "sim")))]
static BEGINNING: crate::OnceLock<Instant> = crate::OnceLock::new();
