//! Time: the virtual core's inside a simulation, the machine's outside.

use crate::OnceLock;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, inside or outside a simulation. Moments of the two kinds must not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    since_beginning: Duration,
}

/// The current time.
#[inline]
pub fn now() -> Instant {
    if hotrow_sim::is_active() {
        return Instant { since_beginning: Duration::from_nanos(hotrow_sim::now()) };
    }
    static BEGINNING: OnceLock<quanta::Instant> = OnceLock::new();
    Instant { since_beginning: BEGINNING.get_or_init(quanta::Instant::now).elapsed() }
}

/// Nanoseconds since the active simulation began; outside a simulation, since the clock was first read.
#[inline]
pub fn nanoseconds() -> u64 {
    now().nanoseconds()
}

impl Instant {
    /// The time since this moment.
    pub fn elapsed(&self) -> Duration {
        now().saturating_duration_since(*self)
    }

    /// The time since an earlier moment; zero if it was not earlier.
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.since_beginning.saturating_sub(earlier.since_beginning)
    }

    /// Nanoseconds since the simulation, or the process, began.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.since_beginning.as_nanos() as u64
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant { since_beginning: self.since_beginning.saturating_add(duration) }
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        Instant { since_beginning: self.since_beginning.saturating_sub(duration) }
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
