//! The bounded wait for a segment's lock in an optimistic commit.

use hotrow_sync::spin::{Pauses, Spin};

/// The time for which a commit that needs no earlier value pauses: two dozen commits of others.
const PAUSES_NS: u64 = 20_000;

/// A wait for a lock that others hold for the end of their commits: `while blocked() { if !wait.turn() { give up } }`.
///
/// A commit that has read the value spins: whoever holds the lock most likely replaces what it has read, and so it
/// fails soon. One that only changes the value, whatever it is, gets the lock in the end, and giving up would waste the
/// attempt. So it waits longer, and looks seldom, because each look takes the line from the one that is to be done with it.
#[derive(Debug)]
pub(crate) struct LockWait {
    pauses: Pauses,
    spin: Spin,
}

impl LockWait {
    /// A wait of a commit that has read the value, or has not.
    #[inline]
    pub(crate) fn new(has_read: bool) -> Self {
        if has_read {
            Self { pauses: Pauses::up_to(0), spin: Spin::new() }
        } else {
            Self { pauses: Pauses::up_to(PAUSES_NS), spin: Spin::yielding() }
        }
    }

    /// Spends one turn. False if none is left.
    #[inline]
    pub(crate) fn turn(&mut self) -> bool {
        self.pauses.pause() || self.spin.turn()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_sync::clock;

    #[test]
    fn a_commit_that_has_read_nothing_waits_longer_and_looks_less() {
        let wait = |has_read| {
            let (mut wait, begin) = (LockWait::new(has_read), clock::nanoseconds());
            let looks = std::iter::from_fn(|| wait.turn().then_some(())).count();
            (looks, clock::nanoseconds() - begin)
        };
        let (looks, time) = wait(false);
        assert!(looks < 24 && time >= PAUSES_NS, "{looks} looks in {time} ns");
        assert!(wait(true).0 > 8);
    }
}
