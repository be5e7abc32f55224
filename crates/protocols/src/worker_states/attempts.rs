//! The steps of an attempt that goes by age: what the protocols that use contexts share.

use super::{AttemptId, AttemptStamp, Waited, WorkerStates};
use hotrow_core::{Attempt, ConflictCause, Protocol, Reason};
use hotrow_sync::atomic::Ordering;

impl WorkerStates {
    /// Begins an attempt. When the transaction began, in nanoseconds of the clock, is asked in a first one only.
    #[inline]
    pub(crate) fn begin<P: Protocol>(
        &self,
        attempt: &Attempt<P>,
        last: AttemptStamp,
        now_ns: impl FnOnce() -> u64,
    ) -> AttemptStamp {
        let began_ns = if attempt.number() == 0 { now_ns() } else { last.began_ns };
        if last.id == AttemptId::default() {
            // Relaxed: it only says how to wait.
            self.workers.fetch_add(1, Ordering::Relaxed);
        }
        self.enter_next(last, attempt.worker().number(), began_ns)
    }

    /// What was seen of a value that the attempt has a right to, unless the attempt was wounded: then it does not count
    /// ([`is_wounded`](Self::is_wounded)).
    #[inline(always)]
    pub(crate) fn unharmed<P: Protocol, V>(
        &self,
        attempt: &Attempt<P>,
        stamp: AttemptStamp,
        value: V,
    ) -> Result<V, ConflictCause> {
        if self.is_wounded(stamp) { Err(self.loss(attempt)) } else { Ok(value) }
    }

    /// Waits at a worker's event until `over`, which must become true before that worker is told. `hint` says that
    /// it may be. `lost` is what the attempt has lost if the transaction's deadline passes first.
    pub(crate) fn wait<P: Protocol>(
        &self,
        attempt: &mut Attempt<P>,
        at: u32,
        stamp: AttemptStamp,
        hint: impl FnMut() -> bool,
        over: impl FnMut() -> bool,
        lost: ConflictCause,
    ) -> Result<(), ConflictCause> {
        match self.wait_at_most(attempt.wait_max(), at, stamp, hint, over) {
            Waited::Over => Ok(()),
            Waited::Wounded => Err(self.loss(attempt)),
            Waited::TimedOut => Err(lost),
        }
    }

    /// The commit point, unless the attempt was wounded before. (One that has touched no segment has lost nothing.)
    #[inline]
    pub(crate) fn pass_commit_point<P: Protocol>(
        &self,
        attempt: &Attempt<P>,
        stamp: AttemptStamp,
    ) -> Result<(), ConflictCause> {
        if !self.commit(stamp) && !attempt.items.is_empty() { Err(self.loss(attempt)) } else { Ok(()) }
    }

    /// What a wounded attempt lost: the segment over which it was wounded, if it still knows it.
    #[cold]
    pub(crate) fn loss<P: Protocol>(&self, attempt: &Attempt<P>) -> ConflictCause {
        let over = self.of(attempt.worker().number()).wounded_over.load(Ordering::Relaxed);
        let item = attempt.items.at(over).or_else(|| attempt.items.ids().next());
        ConflictCause::item(Reason::Wounded, item.expect("only who holds something is wounded"))
    }
}
