//! Moments at which snapshots are asked for and points are made.

use super::LINGER;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::clock::{self, Duration};

/// A moment, and the clock that has told it: a simulation has a clock of its own. In units of 1,024 nanoseconds, of which 48 bits
/// last nine years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    const BITS: u32 = 48;

    pub(super) fn now() -> Self {
        Self(clock::era() << Self::BITS | (clock::nanoseconds() >> 10) & ((1 << Self::BITS) - 1))
    }

    /// An upper bound of the time since the moment: [`Duration::MAX`] if another clock has told it.
    pub(super) fn age(self) -> Duration {
        let now = Self::now().0;
        if (now ^ self.0) >> Self::BITS == 0 {
            Duration::from_nanos((now.saturating_sub(self.0) + 1) << 10)
        } else {
            Duration::MAX
        }
    }
}

/// The last moment at which something happened, if it has. All accesses are relaxed: whoever looks estimates.
#[derive(Default)]
pub(super) struct LastMoment(AtomicU64);

impl LastMoment {
    /// Notes that it happens now.
    pub(super) fn note(&self) {
        self.0.store(Moment::now().0, Ordering::Relaxed);
    }

    /// The moment; one of long ago if there was none.
    pub(super) fn get(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }

    /// True if it has happened less than [`LINGER`] ago.
    pub(super) fn is_recent(&self) -> bool {
        self.get().0 != 0 && self.get().age() < LINGER
    }

    /// As if it had never happened.
    #[cfg(all(test, not(loom)))]
    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
