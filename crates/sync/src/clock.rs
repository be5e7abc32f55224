//! Time.

pub use quanta::Instant;
pub use std::time::Duration;

/// Now, on a monotonic clock. In a model no time passes.
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
