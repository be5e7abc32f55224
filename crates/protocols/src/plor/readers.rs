//! Readers and the writers that replace their reads: entering as a reader (plor Figure 4, `LockRd`), and settling
//! with the readers that have entered (plor Figure 5).
//!
//! Both wait through a function that they are given, so that they need not know attempts and items.

use super::Plor;
use super::locker::{Locker, Set, Writer};
use crate::worker_states::AttemptStamp;

impl Plor {
    /// Adds an attempt to the readers. `wait` waits until the writer seen in exclusive mode may have left it.
    #[inline(always)]
    pub(super) fn enter_readers<E>(
        &self,
        locker: &Locker,
        stamp: AttemptStamp,
        mut wait: impl FnMut(Writer) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            // Before it enters, because a writer that sees it may wound it in vain.
            let mut seen = locker.writer();
            let free = |seen: Writer| {
                seen.exclusive().is_none_or(|holder| holder == stamp.id || self.passes(stamp, holder, locker))
            };
            if free(seen) {
                let latch = self.latch(locker);
                locker.enter(Set::Readers, stamp.worker(), &self.overflow);
                seen = locker.writer();
                if free(seen) {
                    return Ok(());
                }
                locker.leave(Set::Readers, stamp.worker(), &self.overflow);
                drop(latch);
            }
            wait(seen)?;
        }
    }

    /// Settles with the readers of a segment that is in exclusive mode, until none is left that could still commit
    /// or be wounded. `wait` waits until an older one is not running. `readers` only lends its memory.
    #[inline(always)]
    pub(super) fn settle<E>(
        &self,
        locker: &Locker,
        stamp: AttemptStamp,
        readers: &mut Vec<AttemptStamp>,
        mut wait: impl FnMut(AttemptStamp) -> Result<(), E>,
    ) -> Result<(), E> {
        readers.clear();
        locker.each(Set::Readers, &self.overflow, |worker| {
            if worker != stamp.worker() {
                readers.extend(self.states.running(worker));
            }
        });
        for reader in readers {
            // (A reader past its commit point reads nothing any more.)
            if !self.passes(stamp, reader.id, locker) {
                wait(*reader)?;
            }
        }
        Ok(())
    }
}
