//! Bounded spinning.

/// The number of turns of a [`Spin`].
///
/// They take about two microseconds on current x86-64: longer than a commit holds its locks while its thread runs,
/// much shorter than the time slice that is lost while its thread does not run.
///
/// Zero in a model. A model tries every moment for the first check anyway, and loom does not preempt a thread in
/// favour of one that has yielded, so that a yield would hide interleavings.
pub const TURNS: u32 = if cfg!(loom) {
    0
} else if cfg!(any(test, debug_assertions)) {
    16
} else {
    96
};

/// The number of last turns that yield the processor.
///
/// A thread that still waits by then most likely waits for a thread that is not running. A few yields let that
/// thread run; giving up instead would waste the attempt.
pub const YIELDS: u32 = 8;

/// A bounded busy wait: `while blocked() { if !spin.turn() { give up } }`.
///
/// STO bounds spinning to rule out deadlock (sto §3.3). Here the bound also keeps a waiter from using up the time
/// slice that the lock's holder needs when there are more threads than cores.
#[derive(Debug)]
pub struct Spin {
    left: u32,
}

impl Spin {
    /// A wait of [`TURNS`] turns, the last [`YIELDS`] of which yield.
    #[inline]
    pub fn new() -> Self {
        Self { left: TURNS }
    }

    /// A wait of [`YIELDS`] turns that yield, after one by other means.
    #[inline]
    pub fn yielding() -> Self {
        Self { left: YIELDS.min(TURNS) }
    }

    /// Spends one turn. Returns false when none is left.
    #[inline]
    pub fn turn(&mut self) -> bool {
        if self.left <= YIELDS {
            return self.turn_slowly();
        }
        self.left -= 1;
        crate::thread::spin_loop();
        true
    }

    #[cold]
    fn turn_slowly(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        crate::thread::yield_now();
        true
    }

    /// Spends one turn; when none is left, yields the processor and starts over with a quarter of the turns. For
    /// waits that cannot be given up, on short critical sections (the latches inside an index).
    #[inline]
    pub fn turn_or_yield(&mut self) {
        if !self.turn() {
            crate::thread::yield_now();
            self.left = TURNS / 4;
        }
    }
}

/// Pauses between looks at a word that many threads change. They grow, and by the clock: an instruction that pauses takes
/// nine cycles on some processors and 140 on others.
#[derive(Debug)]
pub struct Pauses {
    next_ns: u64,
    left_ns: u64,
}

impl Pauses {
    /// The shortest pause: a line takes about as long from one core to another.
    const MIN_NS: u64 = 256;
    /// The longest pause.
    const MAX_NS: u64 = 4_096;

    /// Pauses of about `limit_ns` nanoseconds together. None in a model, as for [`TURNS`].
    pub fn up_to(limit_ns: u64) -> Self {
        Self { next_ns: Self::MIN_NS, left_ns: if cfg!(loom) { 0 } else { limit_ns } }
    }

    /// Pauses, twice as long as before. False if no time is left.
    pub fn pause(&mut self) -> bool {
        if self.left_ns == 0 {
            return false;
        }
        crate::thread::spin_for(self.next_ns);
        self.left_ns = self.left_ns.saturating_sub(self.next_ns);
        self.next_ns = (2 * self.next_ns).min(Self::MAX_NS);
        true
    }
}

/// Spins until `condition` holds, for at most `rounds` rounds. Returns true if it holds.
///
/// The pauses between checks grow, because a check touches memory that other threads are working with. For waits
/// that continue in another way afterwards, while no other thread needs the processor.
pub fn spin_until(rounds: u32, mut condition: impl FnMut() -> bool) -> bool {
    for round in 0..rounds {
        if condition() {
            return true;
        }
        for _ in 0..1 << round.min(3) {
            crate::thread::spin_loop();
        }
    }
    condition()
}

/// Yields the processor until `condition` holds, at most `turns` times. Returns true if it holds.
///
/// For waits on a thread that may itself be waiting for this processor. A yield costs little if no other thread is
/// runnable.
pub fn yield_until(turns: u32, mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..turns {
        if condition() {
            return true;
        }
        crate::thread::yield_now();
    }
    condition()
}

impl Default for Spin {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn pauses_grow_and_end() {
        let mut pauses = Pauses::up_to(1_000);
        let begin = clock::nanoseconds();
        let mut count = 0;
        while pauses.pause() {
            count += 1;
        }
        // 256, 512 and 1,024 are more than 1,000 together only with the last.
        assert_eq!(count, 3);
        assert!(clock::nanoseconds() - begin >= 1_000);
    }

    #[test]
    fn a_spin_ends_after_its_turns() {
        let mut spin = Spin::new();
        let mut turns = 0;
        while spin.turn() {
            turns += 1;
        }
        assert_eq!(turns, TURNS);
        assert!(!spin.turn());
    }
}
