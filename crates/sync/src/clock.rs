//! Time.

#[cfg(all(feature = "sim", not(loom)))]
pub use crate::simulated::clock::{Instant, now};
#[cfg(any(loom, not(feature = "sim")))]
pub use quanta::Instant;
pub use std::time::Duration;

/// Now, on a monotonic clock. In a model no time passes.
#[cfg(any(loom, not(feature = "sim")))]
#[inline]
pub fn now() -> Instant {
    #[cfg(loom)]
    return {
        static BEGINNING: crate::OnceLock<Instant> = crate::OnceLock::new();
        *BEGINNING.get_or_init(Instant::now)
    };
    #[cfg(not(loom))]
    Instant::now()
}
