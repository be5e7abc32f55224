//! The counters of deferred operations.

use crate::kernel::abort::Reason;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::Counter;

/// Counters of attempts that were *tame* (drp §4): when their commit began, deferred operations were waiting for it, and
/// nothing had been read. They never abort for a conflict over a value.
impl Counter {
    /// Tame transactions committed.
    pub const TAME_COMMITS: Counter =
        Counter::count("tame_commits", "commits of transactions that were tame");
    /// Tame attempts that still lost, because a row of a deferred operation had been deleted before its turn
    /// ([`Reason::ReadChanged`]), or a wild one was inserting a row under the same key ([`Reason::ReadLocked`]). Those
    /// that had to touch more than they had declared ([`Reason::Undeclared`]) are left out.
    pub const TAME_ABORTS: Counter =
        Counter::count("tame_aborts", "attempts that lost although they were tame");
}

/// The counters of deferred operations.
pub(crate) const COUNTERS: &[Counter] = &[Counter::TAME_COMMITS, Counter::TAME_ABORTS];

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Counts a commit, if the attempt was tame.
    #[inline(always)]
    pub(crate) fn count_tame_commit(&self) {
        if self.attempt.can_defer() && self.attempt.features.execution.is_tame {
            self.counters().count(const { Counter::TAME_COMMITS.place::<P>() });
        }
    }

    /// Counts a lost attempt, if it was tame.
    pub(crate) fn count_tame_abort(&self, reason: Reason) {
        if self.attempt.can_defer() && self.attempt.features.execution.is_tame && reason != Reason::Undeclared
        {
            self.counters().count(const { Counter::TAME_ABORTS.place::<P>() });
        }
    }
}
