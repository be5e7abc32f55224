//! The operations of a box that run when the transaction commits.

use super::TBox;
use hotrow_core::operations::Operand;
use hotrow_core::{Abort, Addend, Deferred, Input, Protocol, Transaction, Value};

impl<T: Value, P: Protocol> TBox<T, P> {
    /// Changes the value at the commit, without reading it: what `change` does to the value that the commit finds. It gives
    /// nothing back, and two transactions that only make such changes never abort each other.
    ///
    /// `change` runs while the value is locked: it should be short, and use nothing but what it has captured. It runs
    /// once at the commit, and on another copy of the value if an operation of the same transaction needs it before. If it panics, the
    /// transaction rolls back with [`Error::Panicked`](hotrow_core::Error::Panicked).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply(
        &self,
        tx: &mut Transaction<'_, P>,
        change: impl Fn(&mut T) + Send + 'static,
    ) -> Result<(), Abort> {
        self.value.enter(tx)?.apply_at_commit(change)
    }

    /// Adds an amount (which may be negative) [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). If the sum is not in the type's range, the transaction rolls back with
    /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.add_at_commit(amount)
    }

    /// As [`add`](Self::add), but the sum wraps around at the ends of the type's range.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn wrapping_add(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.wrapping_add_at_commit(amount)
    }

    /// Subtracts an amount at the commit if the value is at least the amount, and tells whether it was.
    ///
    /// If it is enough, the transaction depends on that alone: others may add and subtract meanwhile, as long as enough is
    /// left for this one. If it is not, the transaction depends on the value, and so it does within a part of a body that may be
    /// undone alone.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn subtract_if_enough(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<bool, Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.subtract_if_enough(amount)
    }

    /// Raises the value to another one [at the commit](Self::apply), if it is less than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn max(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.value.enter(tx)?.raise_at_commit(value)
    }

    /// Lowers the value to another one [at the commit](Self::apply), if it is greater than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn min(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.value.enter(tx)?.lower_at_commit(value)
    }

    /// Appends elements to a collection or a text [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn append<E, I>(&self, tx: &mut Transaction<'_, P>, elements: I) -> Result<(), Abort>
    where
        T: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.value.enter(tx)?.append_at_commit(elements)
    }

    /// Reads the value when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_read<R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        look: impl FnOnce(&T) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.value.enter(tx)?.defer_read(look)
    }

    /// Changes the value when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_update<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        inputs: I,
        change: impl FnOnce(&mut T, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.value.enter(tx)?.defer_update(inputs, change)
    }

    /// Replaces the value when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<T>) -> Result<(), Abort> {
        self.value.enter(tx)?.defer_write(value.into_input())
    }
}
