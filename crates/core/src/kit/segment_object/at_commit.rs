//! Operations on a segment that has been entered, which run when the transaction commits.

use super::{SegmentAccess, Segments};
use crate::features::operations::{Deferred, Input};
use crate::kernel::abort::Abort;
use crate::kernel::protocol::Protocol;
use crate::kit::commit_time::{Addend, Addition, Applied, CommitTimeChange};
use crate::memory::column::Column;

impl<S: Segments<P>, P: Protocol> SegmentAccess<'_, '_, S, P> {
    /// Changes the value when the transaction commits, without reading it: a [commit-time change](CommitTimeChange). Two
    /// transactions that only make such changes never abort each other. What the transaction reads later is what they make
    /// of the value.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn change_at_commit(self, change: impl CommitTimeChange<S::Value>) -> Result<(), Abort> {
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.change_at_commit(self.tx, self.object, change) }
    }

    /// Changes the value when the transaction commits, by code that gives nothing back.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn apply_at_commit(self, change: impl Fn(&mut S::Value) + Send + 'static) -> Result<(), Abort> {
        self.change_at_commit(Applied(change))
    }

    /// Adds an amount when the transaction commits.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). If the sum is not in the type's range, the transaction rolls back with
    /// [`Overflow`](crate::Overflow), here or at its commit.
    #[inline]
    pub fn add_at_commit(self, amount: S::Value) -> Result<(), Abort>
    where
        S::Value: Addend,
    {
        self.change_at_commit(Addition::new(Column::whole(), amount))
    }

    /// As [`add_at_commit`](Self::add_at_commit), but the sum wraps around at the ends of the type's range.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn wrapping_add_at_commit(self, amount: S::Value) -> Result<(), Abort>
    where
        S::Value: Addend,
    {
        self.change_at_commit(Addition::new(Column::whole(), amount).wrapping())
    }

    /// Raises the value to another one when the transaction commits, if it is less than that.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn raise_at_commit(self, least: S::Value) -> Result<(), Abort>
    where
        S::Value: Ord,
    {
        self.apply_at_commit(move |present| {
            if *present < least {
                *present = least.clone();
            }
        })
    }

    /// Lowers the value to another one when the transaction commits, if it is greater than that.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn lower_at_commit(self, most: S::Value) -> Result<(), Abort>
    where
        S::Value: Ord,
    {
        self.apply_at_commit(move |present| {
            if *present > most {
                *present = most.clone();
            }
        })
    }

    /// Appends elements when the transaction commits.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn append_at_commit<E, I>(self, elements: I) -> Result<(), Abort>
    where
        S::Value: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.apply_at_commit(move |present| present.extend(elements.clone()))
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
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.defer_read(self.tx, self.object, (), |value, ()| look(value)) }
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
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.defer_update(self.tx, self.object, inputs, change) }
    }

    /// Replaces the value when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn defer_write(self, value: impl Input<Value = S::Value>) -> Result<(), Abort> {
        // SAFETY: as in `SegmentAccess::read`.
        unsafe { self.segment.defer_write(self.tx, self.object, value) }
    }
}
