//! Time: the virtual core's inside a simulation, the machine's outside.
//!
//! A moment that lies too far ahead for the clock is the last one that there is, [`Instant::NEVER`], which no clock reaches. So no
//! time is too long for a limit, and there is no sum that a caller would have to check.

use std::ops::{Add, Sub};
pub use std::time::Duration;

/// A moment of a monotonic clock. Moments inside and outside of a simulation must not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    nanoseconds: u64,
}

/// The current time. In a model no time passes.
#[inline]
pub fn now() -> Instant {
    Instant { nanoseconds: nanoseconds() }
}

/// Nanoseconds since a fixed moment, which is the same for all threads of the process; in a simulation, since it
/// began.
#[inline]
pub fn nanoseconds() -> u64 {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        return hotrow_sim::now();
    }
    #[cfg(loom)]
    return 0;
    #[cfg(not(loom))]
    {
        // The clock, and its reading at the beginning.
        static CLOCK: crate::OnceLock<(quanta::Clock, u64)> = crate::OnceLock::new();
        let (clock, beginning) = CLOCK.get_or_init(|| {
            let clock = quanta::Clock::new();
            let beginning = clock.raw();
            (clock, beginning)
        });
        clock.delta_as_nanos(*beginning, clock.raw())
    }
}

/// The number of nanoseconds of a time; `u64::MAX`, 584 years, if it is longer.
#[inline]
pub fn whole_nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

impl Instant {
    /// The moment that never comes.
    pub const NEVER: Self = Self { nanoseconds: u64::MAX };

    /// The time since this moment.
    pub fn elapsed(&self) -> Duration {
        now().saturating_duration_since(*self)
    }

    /// The nanoseconds since an earlier moment; 0 if it was not earlier.
    #[inline]
    pub fn nanoseconds_since(&self, earlier: Instant) -> u64 {
        self.nanoseconds.saturating_sub(earlier.nanoseconds)
    }

    /// The time since an earlier moment; zero if it was not earlier.
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    /// Nanoseconds since the simulation, or the process, began.
    #[cfg(all(feature = "sim", not(loom)))]
    pub(crate) fn nanoseconds(self) -> u64 {
        self.nanoseconds
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, time: Duration) -> Instant {
        Instant { nanoseconds: self.nanoseconds.saturating_add(whole_nanoseconds(time)) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, time: Duration) -> Instant {
        Instant { nanoseconds: self.nanoseconds.saturating_sub(whole_nanoseconds(time)) }
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// A number of the clock: 0 outside of simulations, and in each simulation another one, as far as 16 bits allow. Moments of
/// different clocks must not be compared.
#[inline]
pub fn era() -> u64 {
    #[cfg(all(feature = "sim", not(loom)))]
    if let number @ 1.. = hotrow_sim::number() {
        return 1 + (crate::thread::number().wrapping_mul(257).wrapping_add(number)) % 65_535;
    }
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_ends_never_and_overflows_nowhere() {
        let began = now();
        let end = began + Duration::MAX;
        assert_eq!(end, Instant::NEVER);
        assert_eq!(end + Duration::MAX, Instant::NEVER);
        assert!(end > now() + Duration::from_secs(u64::MAX / 1_000_000_000 / 2));
        assert_eq!(began - Duration::MAX, Instant { nanoseconds: 0 });
        assert_eq!(whole_nanoseconds(Duration::MAX), u64::MAX);
        assert_eq!(whole_nanoseconds(Duration::new(3, 7)), 3_000_000_007);
    }
}
