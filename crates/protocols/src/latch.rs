//! Latches that commits take besides the locks of segments: of one set several, in ascending order.

use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::spin::Spin;

/// A latch. Nobody holds it for longer than a commit.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicBool);

impl Latch {
    /// Takes the latch if it is free.
    pub(crate) fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. The load and the failure order nothing.
        !self.0.load(Ordering::Relaxed)
            && self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the latch. Its holder waits for latches of higher numbers, and a bounded time for locks of segments.
    pub(crate) fn lock(&self) {
        let mut spin = Spin::new();
        while !self.try_lock() {
            spin.turn_or_yield();
        }
    }

    /// True if somebody holds the latch.
    pub(crate) fn is_locked(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.0.load(Ordering::Acquire)
    }

    /// Gives the latch back. Only its holder may call it.
    pub(crate) fn unlock(&self) {
        // Release: pairs with the acquire in `try_lock` and `is_locked`.
        self.0.store(false, Ordering::Release);
    }
}

/// The number of the latch, of so many, for what has this rank.
pub(crate) fn number_of(rank: u64, count: usize) -> u32 {
    // Fibonacci hashing: the highest bits depend on all others.
    (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 % count as u32
}
