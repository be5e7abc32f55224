//! Waiting for the right to write, and handing it over (plor Figure 4, `LockWr` and `UnlockWr`).
//!
//! A waiter looks at its own context, not at the lock, so it disturbs nobody: it will be told. Whoever gives the right
//! up gives it to the oldest waiter, and whoever gets it passes it on to a waiter that is older than itself. Three
//! things must not happen:
//!
//! - *Nobody is told.* Who waits enters first and looks at the writer afterwards; who gives up gives up first and
//!   looks for waiters afterwards. All of it is sequentially consistent, so one of them sees the other.
//! - *It is given to an attempt that has left.* Who aborts is no longer running before it gives the right up, and who
//!   leaves without the right is not before it leaves, and then looks whether it has the right after all. So either
//!   it finds it, or whoever gave it finds an attempt that is not running, and takes it back.
//! - *It is given to an attempt that never waited*, the next one of a worker that has left. So it is given only to
//!   an attempt that was running before and after its worker was seen to wait ([`Plor::oldest_waiter`]).

use super::Plor;
use super::locker::{Locker, Set, Writer};
use crate::worker_states::AttemptStamp;

impl Plor {
    /// Waits for the right to write. `wait` waits until it may be worth another look at the writer it is given.
    pub(super) fn take_in_turn<E>(
        &self,
        locker: &Locker,
        stamp: AttemptStamp,
        mut wait: impl FnMut(Writer) -> Result<(), E>,
    ) -> Result<(), E> {
        self.states.clear_grant(stamp.worker());
        locker.enter(Set::Waiters, stamp.worker(), &self.overflow);
        let taken = loop {
            let seen = locker.writer();
            let mine = match seen.holder() {
                // Handed over to it.
                Some(holder) if holder == stamp.id => true,
                None => locker.take(None, stamp.id),
                Some(holder) => self.passes(stamp, holder, locker) && locker.take(Some(seen), stamp.id),
            };
            if mine {
                // An older one may have begun to wait for whoever had the right before.
                match self.oldest_waiter(locker) {
                    Some(oldest) if oldest.is_older_than(stamp) => {
                        if locker.pass(stamp.id, Some(oldest.id)) {
                            self.granted(locker, oldest);
                        }
                    }
                    _ => break Ok(()),
                }
            } else if locker.writer() == seen
                && let Err(lost) = wait(seen)
            {
                break Err(lost);
            }
        };
        if taken.is_err() {
            // Before it leaves; see the head of this file. (It may have waited too long, and not been wounded.)
            self.states.wound(stamp.id, locker.address());
        }
        locker.leave(Set::Waiters, stamp.worker(), &self.overflow);
        if taken.is_err() {
            // It may have been handed over in the last moment.
            locker.release_if_held(stamp.id);
            self.hand_over(locker);
        }
        taken
    }

    /// The oldest attempt that waits for the right to write and may still commit.
    pub(super) fn oldest_waiter(&self, locker: &Locker) -> Option<AttemptStamp> {
        loop {
            let mut oldest: Option<AttemptStamp> = None;
            locker.each(Set::Waiters, &self.overflow, |worker| {
                if let Some(waiter) = self.states.running(worker)
                    && oldest.is_none_or(|oldest| waiter.is_older_than(oldest))
                {
                    oldest = Some(waiter);
                }
            });
            // The worker may have left before its attempt was looked at, which then is another one.
            let waits = |waiter: AttemptStamp| {
                locker.contains(Set::Waiters, waiter.worker(), &self.overflow)
                    && self.states.is_running(waiter.id)
            };
            if oldest.is_none_or(waits) {
                return oldest;
            }
        }
    }

    /// Gives the right to write, if nobody has it, to the oldest who waits for it (plor Figure 4, `UnlockWr`).
    #[inline]
    pub(super) fn hand_over(&self, locker: &Locker) {
        if !locker.is_empty(Set::Waiters) {
            self.hand_over_to_oldest(locker);
        }
    }

    #[cold]
    fn hand_over_to_oldest(&self, locker: &Locker) {
        // If nobody is left, or somebody has come first, that one looks for older ones.
        while let Some(oldest) = self.oldest_waiter(locker)
            && locker.take(None, oldest.id)
        {
            self.granted(locker, oldest);
            // One that was wounded meanwhile may have left before it could see that the right is its own.
            if self.states.is_running(oldest.id) || !locker.pass(oldest.id, None) {
                break;
            }
        }
    }

    /// Tells a waiter that it has the right to write.
    fn granted(&self, locker: &Locker, waiter: AttemptStamp) {
        self.states.grant(waiter.worker(), locker.address());
    }
}
