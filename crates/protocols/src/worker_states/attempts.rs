//! The steps of an attempt that goes by age, shared by the protocols that use worker states.

use super::{AttemptId, AttemptStamp, Waited, WorkerStates};
use hotrow_core::{Attempt, ConflictCause, Protocol, Reason};
use hotrow_sync::atomic::Ordering;

impl WorkerStates {
    /// Begins an attempt. `now_ns`, the time when the transaction begins, is called in its first attempt only.
    #[inline]
    pub(crate) fn begin<P: Protocol>(
        &self,
        attempt: &Attempt<P>,
        last: AttemptStamp,
        now_ns: impl FnOnce() -> u64,
    ) -> AttemptStamp {
        let began_ns = if attempt.number() == 0 { now_ns() } else { last.began_ns };
        if last.id == AttemptId::default() {
            self.crowd.join(attempt.worker().number());
        }
        self.enter_next(last, attempt.worker().number(), began_ns)
    }

    /// Returns a value that was read by a right of the attempt, or fails if the attempt was wounded: then the value
    /// does not count ([`is_wounded`](Self::is_wounded)).
    #[inline(always)]
    pub(crate) fn unharmed<P: Protocol, V>(
        &self,
        attempt: &Attempt<P>,
        stamp: AttemptStamp,
        value: V,
    ) -> Result<V, ConflictCause> {
        if self.is_wounded(stamp) { Err(self.loss(attempt)) } else { Ok(value) }
    }

    /// Waits at a worker's event until `over` holds, which must become true before that worker's event is told.
    /// `hint` is a cheap check that it may hold. `lost` is the conflict to report if the transaction's deadline
    /// passes first.
    pub(crate) fn wait<P: Protocol>(
        &self,
        attempt: &mut Attempt<P>,
        at: u32,
        stamp: AttemptStamp,
        hint: impl FnMut() -> bool,
        over: impl FnMut() -> bool,
        lost: ConflictCause,
    ) -> Result<(), ConflictCause> {
        let waited = self.wait_at_most(attempt.wait_max(), at, stamp, hint, over);
        self.ended(attempt, waited, lost)
    }

    /// Returns the conflict with which a wait has ended, if any. `lost` is the one for a deadline that has passed.
    pub(crate) fn ended<P: Protocol>(
        &self,
        attempt: &Attempt<P>,
        waited: Waited,
        lost: ConflictCause,
    ) -> Result<(), ConflictCause> {
        match waited {
            Waited::Over => Ok(()),
            Waited::Wounded => Err(self.loss(attempt)),
            Waited::TimedOut => Err(lost),
        }
    }

    /// Passes the commit point, unless the attempt was wounded before. (An attempt that touched no segment has lost
    /// nothing.)
    #[inline]
    pub(crate) fn pass_commit_point<P: Protocol>(
        &self,
        attempt: &Attempt<P>,
        stamp: AttemptStamp,
    ) -> Result<(), ConflictCause> {
        if !self.commit(stamp) && !attempt.items.is_empty() { Err(self.loss(attempt)) } else { Ok(()) }
    }

    /// Returns the conflict of a wounded attempt: the segment over which it was wounded, if it still knows it.
    #[cold]
    pub(crate) fn loss<P: Protocol>(&self, attempt: &Attempt<P>) -> ConflictCause {
        let over = self.of(attempt.worker().number()).wounded_over.load(Ordering::Relaxed);
        let item = attempt.items.at(over).or_else(|| attempt.items.ids().next());
        ConflictCause::item(Reason::Wounded, item.expect("only an attempt that holds something is wounded"))
    }
}
