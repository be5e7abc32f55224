//! Taking back pieces that have committed, with all that have seen them: the cascading aborts of IC3, in `ic3+cascading`.
//!
//! # Algorithm
//!
//! Each worker has a word: the number of its transaction, the number of its *followers*, and whether it is taken back. A
//! transaction that comes after another becomes one of its followers by changing the word, while it holds the latch of the list where it has found
//! it; unless the transaction is taken back already: then it is in the way until it has ended.
//!
//! A transaction that is to be taken back
//!
//! 1. says so in its word, and wakes all that wait for anybody;
//! 2. waits until it has no followers. Each of them finds the word before its next piece, or at its end, and is taken back itself;
//! 3. writes again what was there before its pieces, in a transaction of `occ`;
//! 4. stops following others, and ends; it is made again from the beginning, or the rollback is told.
//!
//! A row that it had deleted comes back with a new record, of which the lists know nothing: not that others, before it, have written the
//! former one. So it enters the new record, and ends after all that were before it.
//!
//! # Why it is right
//!
//! Whoever has read or overwritten what a transaction wrote is a follower, and does not end before the transaction has: so it learns
//! of it. From step 2 on nobody has seen the transaction's writes but attempts that will find it in a list, or whose validation will
//! fail: they validate once more after they have looked at the lists, because it may have written back, and ended, between the two. When
//! step 3 begins, the values that it replaces are its own, because those of followers are taken back. So the values from before its pieces
//! return, in the reverse order of the pieces.
//!
//! A rollback is told only when those before the transaction have ended well: otherwise it was decided upon what never was.
//!
//! # Why nobody waits for ever
//!
//! Followers come after the one that waits for them, and they are told: none of them waits for anything else for long. "Comes
//! after" has no circle. A transaction that is taken back keeps its bound, so that the argument at the head of [`super`] holds for those that
//! wait until it is out of the way, and for those before it, for which it waits before it tells its rollback.

use crate::drp::progress::{Predecessor, Progress};
use crate::per_worker::PerWorker;
use crate::version::WORKERS_MAX;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::profile::waiting;

/// The bit of a word whose transaction is taken back. The number of followers is below it, the transaction's number above.
const TAKEN_BACK: u64 = 1 << 16;
const FOLLOWERS: u64 = TAKEN_BACK - 1;
const SERIAL_SHIFT: u32 = 17;

const _: () = assert!(FOLLOWERS as u32 >= WORKERS_MAX, "each worker follows a transaction once");

/// The outcome of an attempt to follow a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Following {
    Follows,
    /// The transaction has ended.
    Ended,
    /// It is taken back, and has not ended.
    TakenBack,
}

/// The words of all workers.
#[derive(Debug)]
pub(super) struct Cascade(PerWorker<AtomicU64>);

fn is_of(word: u64, transaction: Predecessor) -> bool {
    word >> SERIAL_SHIFT == transaction.serial() & (u64::MAX >> SERIAL_SHIFT)
}

/// Changes a word, unless `next` returns `None` for it, and returns the word before; an error with the word if not.
fn change(word: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
    let mut before = word.load(Ordering::Acquire);
    loop {
        let Some(after) = next(before) else { return Err(before) };
        // Acquire and release: pair with those of `Cascade::take_back`. Who finds the mark follows no more; who finds no followers finds
        // what they have written back.
        match word.compare_exchange_weak(before, after, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok(before),
            Err(now) => before = now,
        }
    }
}

impl Cascade {
    pub(super) fn new() -> Self {
        Self(PerWorker::new(WORKERS_MAX))
    }

    /// Begins the worker's transaction, before others can find it.
    pub(super) fn begin(&self, own: Predecessor) {
        // Relaxed: who finds the transaction in a list has taken its latch after it.
        self.0.of(own.worker).store(own.serial() << SERIAL_SHIFT, Ordering::Relaxed);
    }

    /// Becomes a follower of a transaction that was found in a list.
    pub(super) fn follow(&self, other: Predecessor) -> Following {
        let followed = change(self.0.of(other.worker), |word| {
            (is_of(word, other) && word & TAKEN_BACK == 0).then_some(word + 1)
        });
        match followed {
            Ok(_) => Following::Follows,
            Err(word) if is_of(word, other) => Following::TakenBack,
            Err(_) => Following::Ended,
        }
    }

    /// Ceases to be a follower. True if the transaction has not ended.
    pub(super) fn leave(&self, other: Predecessor) -> bool {
        change(self.0.of(other.worker), |word| is_of(word, other).then(|| word - 1)).is_ok()
    }

    /// True if a transaction, which the caller follows, is taken back.
    pub(super) fn is_taken_back(&self, other: Predecessor) -> bool {
        // Acquire: no more is needed; the caller leaves, and so is ordered before the transaction's writes.
        let word = self.0.of(other.worker).load(Ordering::Acquire);
        is_of(word, other) && word & TAKEN_BACK != 0
    }

    /// Takes the worker's transaction back, up to the point where it has no followers.
    pub(super) fn take_back(&self, own: Predecessor, progress: &Progress) {
        let word = self.0.of(own.worker);
        // Acquire and release: pairs with `change`: who follows has changed the word before, or finds the mark.
        word.fetch_or(TAKEN_BACK, Ordering::AcqRel);
        // Those that follow may wait for others.
        progress.tell(progress.workers().map(u64::from));
        // Acquire: pairs with the release in `change`, when a follower leaves.
        let is_alone = || word.load(Ordering::Acquire) & FOLLOWERS == 0;
        if !is_alone() {
            let _waiting = waiting("those that have seen what is taken back", 0);
            progress.wait(u64::from(own.worker), is_alone);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_followed_until_it_is_taken_back_or_has_ended() {
        let (cascade, progress) = (Cascade::new(), Progress::new());
        progress.begin(3, Some(0));
        let one = progress.current(3);
        cascade.begin(one);
        assert_eq!(cascade.follow(one), Following::Follows);
        assert!(!cascade.is_taken_back(one) && cascade.leave(one));
        cascade.take_back(one, &progress);
        assert!(cascade.is_taken_back(one));
        assert_eq!(cascade.follow(one), Following::TakenBack);
        progress.finish(3);
        progress.begin(3, Some(0));
        let other = progress.current(3);
        cascade.begin(other);
        assert!(!cascade.is_taken_back(one) && !cascade.is_taken_back(other));
        assert_eq!(cascade.follow(one), Following::Ended);
        assert_eq!(cascade.follow(other), Following::Follows);
        assert!(!cascade.leave(one) && cascade.leave(other));
    }
}
