//! Operations on a segment that has been entered, which run when the transaction commits.

use super::{SegmentAccess, Segments};
use crate::features::operations::{Deferred, Input};
use crate::kernel::abort::Abort;
use crate::kernel::capabilities::Access;
use crate::kernel::protocol::Protocol;
use crate::kit::commit_time::{Addend, CommitTimeChange};

impl<S: Segments<P>, P: Protocol> SegmentAccess<'_, '_, S, P> {
    /// Changes the value when the transaction commits, without reading it: a [commit-time change](CommitTimeChange). Two
    /// transactions that only make such changes never abort each other. What the transaction reads later is what they make
    /// of the value.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). If a sum is not in its type's range, the transaction rolls back with
    /// [`Overflow`](crate::Overflow), here or at its commit.
    #[inline]
    pub fn change_at_commit(self, change: impl CommitTimeChange<S::Value>) -> Result<(), Abort> {
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.change_at_commit(self.tx, self.object, change) }
    }

    /// Subtracts an amount when the transaction commits, if there is enough, and depends on that alone. False if there is not:
    /// then the transaction depends on the value.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn subtract_if_enough(self, amount: S::Value) -> Result<bool, Abort>
    where
        S::Value: Addend,
    {
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.subtract_if_enough(self.tx, self.object, amount) }
    }

    /// Reads the value when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn defer_read<R: 'static>(
        self,
        look: impl FnOnce(&S::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.defer_work(Access::Read, (), |access, ()| access.read(look))
    }

    /// Changes the value when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn defer_update<I: Input, R: 'static>(
        self,
        inputs: I,
        change: impl FnOnce(&mut S::Value, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.defer_work(Access::Write, inputs, |access, inputs| access.update(|value| change(value, inputs)))
    }

    /// Replaces the value when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn defer_write(self, value: impl Input<Value = S::Value>) -> Result<(), Abort> {
        self.defer_work(Access::Write, value, |access, value| access.write(value)).map(drop)
    }
}
