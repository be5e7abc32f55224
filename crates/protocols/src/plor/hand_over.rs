//! Waiting for the right to write and handing it over (plor Figure 4, `LockWr` and `UnlockWr`).
//!
//! A waiter polls its own state, not the lock, so it disturbs nobody: it will be told. An attempt that gives the
//! right up gives it to the oldest waiter. After a commit it does so in one step. Otherwise the right would be free while the
//! waiters are compared, and whoever took it then would have to compare them again. An attempt that gets the right passes it
//! on to a waiter that is older than itself. An oldest waiter that is *asleep* is called instead (`WorkerStates::call`), and the right is left free: it
//! would be idle until that one is awake, which takes longer than most transactions. Attempts that come meanwhile may
//! be younger; the waiter wounds them when it is awake. (The paper's waiters never sleep.) Three errors must not happen:
//!
//! - *A waiter is not told.* A waiter enters first and loads the writer afterwards. A holder gives the right up
//!   first and looks for waiters afterwards. All four accesses are sequentially consistent, so one of the two sees
//!   the other.
//! - *The right is given to an attempt that has left.* An attempt that aborts stops running before it gives the
//!   right up. A waiter that leaves without the right stops running before it leaves, and then checks whether it has
//!   the right after all. So either the waiter finds the right, or the giver finds an attempt that is not running,
//!   and takes the right back.
//! - *The right is given to an attempt that never waited*, the next one of a worker that has left. So it is given
//!   only to an attempt that was running before and after its worker was seen to wait ([`Plor::oldest_waiter`]).

use super::Plor;
use super::locker::{Locker, Set, Writer};
use crate::queue_place::QueuePlace;
use crate::worker_states::AttemptStamp;

impl Plor {
    /// Waits for the right to write. `wait` is given a writer and waits until the writer's word may have changed.
    pub(super) fn take_in_turn<E>(
        &self,
        locker: &Locker,
        stamp: AttemptStamp,
        mut wait: impl FnMut(Writer) -> Result<(), E>,
    ) -> Result<(), E> {
        self.states.clear_grant(stamp.worker());
        locker.enter(Set::Waiters, stamp.worker(), &self.overflow);
        let place = QueuePlace::new(|| {
            // Before it leaves; see the head of this file. (It may have waited too long without being wounded.)
            self.states.wound(stamp.id, locker.address());
            locker.leave(Set::Waiters, stamp.worker(), &self.overflow);
            // The right may have been handed over at the last moment.
            locker.release_if_held(stamp.id);
            self.hand_over(locker);
        });
        loop {
            let seen = locker.writer();
            let mine = match seen.holder() {
                // The right was handed over to this attempt.
                Some(holder) if holder == stamp.id => true,
                None => locker.take(None, stamp.id),
                Some(holder) => self.passes(stamp, holder, locker) && locker.take(Some(seen), stamp.id),
            };
            if mine {
                // An older attempt may have begun to wait for the previous holder.
                match self.oldest_waiter(locker) {
                    Some(oldest)
                        if oldest.is_older_than(stamp) && !self.states.is_asleep(oldest.worker()) =>
                    {
                        if locker.pass(stamp.id, Some(oldest.id)) {
                            self.granted(locker, oldest);
                        }
                    }
                    _ => {
                        place.keep();
                        locker.leave(Set::Waiters, stamp.worker(), &self.overflow);
                        return Ok(());
                    }
                }
            } else if locker.writer() == seen {
                wait(seen)?;
            }
        }
    }

    /// Returns the oldest attempt that waits for the right to write and may still commit.
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
            // The worker may have left before its attempt was loaded, and then that attempt is another one.
            let waits = |waiter: AttemptStamp| {
                locker.contains(Set::Waiters, waiter.worker(), &self.overflow)
                    && self.states.is_running(waiter.id)
            };
            if oldest.is_none_or(waits) {
                return oldest;
            }
        }
    }

    /// Releases the right to write after a commit: gives it to the oldest waiter, or to nobody. Then
    /// [`hand_over`](Self::hand_over) must follow, for a waiter that was not seen.
    #[inline(always)]
    pub(super) fn release(&self, locker: &Locker) {
        if locker.is_empty(Set::Waiters) {
            locker.release();
        } else {
            self.release_to_oldest(locker);
        }
    }

    #[cold]
    fn release_to_oldest(&self, locker: &Locker) {
        match self.oldest_waiter(locker) {
            Some(oldest) if !self.states.is_asleep(oldest.worker()) => {
                locker.release_to(oldest.id);
                self.granted(locker, oldest);
                self.take_back_if_left(locker, oldest);
            }
            _ => locker.release(),
        }
    }

    /// Takes the right back from a waiter that was wounded meanwhile: it may have left before it could see that it has the
    /// right. True if nobody has the right then.
    fn take_back_if_left(&self, locker: &Locker, waiter: AttemptStamp) -> bool {
        !self.states.is_running(waiter.id) && locker.pass(waiter.id, None)
    }

    /// Gives the right to write, if nobody has it, to the oldest waiter (plor Figure 4, `UnlockWr`).
    #[inline]
    pub(super) fn hand_over(&self, locker: &Locker) {
        // An attempt that has the right by now looks for older waiters itself.
        if !locker.is_empty(Set::Waiters) && locker.writer().holder().is_none() {
            self.hand_over_to_oldest(locker);
        }
    }

    #[cold]
    fn hand_over_to_oldest(&self, locker: &Locker) {
        // If no waiter is left, nothing is to be done. If another attempt has taken the right first, that one looks
        // for older waiters.
        while let Some(oldest) = self.oldest_waiter(locker) {
            if self.states.is_asleep(oldest.worker()) {
                self.states.call(oldest.worker());
                break;
            }
            if !locker.take(None, oldest.id) {
                break;
            }
            self.granted(locker, oldest);
            if !self.take_back_if_left(locker, oldest) {
                break;
            }
        }
    }

    /// Tells a waiter that it has the right to write.
    fn granted(&self, locker: &Locker, waiter: AttemptStamp) {
        self.states.grant(waiter.worker(), locker.address());
    }
}
