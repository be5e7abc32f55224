//! Time.

pub use quanta::Instant;
pub use std::time::Duration;

/// Now, on a monotonic clock.
#[inline]
pub fn now() -> Instant {
    Instant::now()
}
