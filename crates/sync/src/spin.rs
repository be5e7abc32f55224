//! Bounded spinning.

/// How many times [`Spin::turn`] says "again" unless told otherwise.
///
/// About two microseconds on current x86-64: longer than a commit holds its locks when its thread runs,
/// much shorter than the time slice that is lost when its thread does not.
///
/// None in a model: it tries every moment for the first look anyway, and loom does not interrupt others in
/// favour of a thread that has yielded, so that a yield would hide interleavings.
pub const TURNS: u32 = if cfg!(loom) {
    0
} else if cfg!(test) {
    16
} else {
    96
};

/// How many of the last turns give the processor away.
///
/// Who still waits then waits for a thread that is not running, most likely. A few of these let it run on;
/// an attempt thrown away instead would have to be made again.
pub const YIELDS: u32 = 8;

/// A bounded busy wait: `while blocked() { if !spin.turn() { give up } }`.
///
/// STO bounds spinning to rule out deadlock (sto §3.3); here the bound also keeps a waiter from burning
/// the time slice that the lock's holder needs when there are more threads than cores.
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

    /// Spends one turn. False when none is left.
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

    /// Spends one turn, and yields the processor once the turns are used up: for waits on short critical
    /// sections that cannot be given up (the latches inside an index).
    #[inline]
    pub fn turn_or_yield(&mut self) {
        if !self.turn() {
            crate::thread::yield_now();
            self.left = TURNS / 4;
        }
    }
}

/// Waits until a condition holds, with looks that grow rarer, for `rounds` looks at most. Returns whether it holds.
///
/// For waits that go on in another way afterwards, where nobody else needs the processor: a look touches what the
/// others are working with.
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

/// Waits until a condition holds, giving the processor away between looks, for `turns` times at most. Returns whether it
/// holds.
///
/// For waits on a thread that may be waiting for this processor: a yield costs little where nobody else is.
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
