//! The operations of a box, which are those of each element of an array: written once for both.

/// Gives an object its operations. `$segments` is its field with the segments, of which `$index` tells one from the others if there are several.
macro_rules! segment_operations {
    ($object:ident, $segments:ident $(, $index:ident)?) => {
        impl<T: Value, P: Protocol> $object<T, P> {
            /// Returns a copy of the value.
            ///
            /// # Errors
            ///
            /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
            #[inline]
            pub fn get(&self, tx: &mut Transaction<'_, P> $(, $index: usize)?) -> Result<T, Abort> {
                self.$segments.enter(tx $(, $index)?)?.read(T::clone)
            }

            /// Reads the value without copying it. `look` never sees a torn value.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            #[inline]
            pub fn read<R>(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                look: impl FnOnce(&T) -> R,
            ) -> Result<R, Abort> {
                self.$segments.enter(tx $(, $index)?)?.read(look)
            }

            /// Replaces the value without reading it.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            #[inline]
            pub fn set(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? value: T) -> Result<(), Abort> {
                self.$segments.enter(tx $(, $index)?)?.write(value)
            }

            /// Changes the value.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            #[inline]
            pub fn update<R>(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                change: impl FnOnce(&mut T) -> R,
            ) -> Result<R, Abort> {
                self.$segments.enter(tx $(, $index)?)?.update(change)
            }

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
                $($index: usize,)?
                change: impl Fn(&mut T) + Send + 'static,
            ) -> Result<(), Abort> {
                self.$segments.enter(tx $(, $index)?)?.change_at_commit(Applied(hotrow_core::always(change)))
            }

            /// Adds an amount (which may be negative) [at the commit](Self::apply).
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get). If the sum is not in the type's range, the transaction rolls back with
            /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
            #[inline]
            pub fn add(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? amount: T) -> Result<(), Abort>
            where
                T: Addend,
            {
                let addition = Addition::new(Column::whole(), amount);
                self.$segments.enter(tx $(, $index)?)?.change_at_commit(addition)
            }

            /// As [`add`](Self::add), but the sum wraps around at the ends of the type's range.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            #[inline]
            pub fn wrapping_add(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                amount: T,
            ) -> Result<(), Abort>
            where
                T: Addend,
            {
                let addition = Addition::new(Column::whole(), amount).wrapping();
                self.$segments.enter(tx $(, $index)?)?.change_at_commit(addition)
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
            pub fn subtract_if_enough(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                amount: T,
            ) -> Result<bool, Abort>
            where
                T: Addend,
            {
                self.$segments.enter(tx $(, $index)?)?.subtract_if_enough(amount)
            }

            /// Raises the value to another one [at the commit](Self::apply), if it is less than that.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            pub fn max(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? value: T) -> Result<(), Abort>
            where
                T: Ord,
            {
                self.apply(tx, $($index,)? move |present| {
                    if *present < value {
                        *present = value.clone();
                    }
                })
            }

            /// Lowers the value to another one [at the commit](Self::apply), if it is greater than that.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            pub fn min(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? value: T) -> Result<(), Abort>
            where
                T: Ord,
            {
                self.apply(tx, $($index,)? move |present| {
                    if *present > value {
                        *present = value.clone();
                    }
                })
            }

            /// Appends elements to a collection or a text [at the commit](Self::apply).
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            pub fn append<E, I>(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                elements: I,
            ) -> Result<(), Abort>
            where
                T: Extend<E>,
                I: IntoIterator<Item = E> + Clone + Send + 'static,
            {
                self.apply(tx, $($index,)? move |present| present.extend(elements.clone()))
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
                $($index: usize,)?
                look: impl FnOnce(&T) -> R + 'static,
            ) -> Result<Deferred<R>, Abort> {
                self.$segments.enter(tx $(, $index)?)?.defer_read(look)
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
                $($index: usize,)?
                inputs: I,
                change: impl FnOnce(&mut T, I::Value) -> R + 'static,
            ) -> Result<Deferred<R>, Abort> {
                self.$segments.enter(tx $(, $index)?)?.defer_update(inputs, change)
            }

            /// Replaces the value when the transaction commits. The new value may become known only then.
            ///
            /// # Errors
            ///
            /// As [`get`](Self::get).
            #[inline]
            pub fn defer_set(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                value: impl Operand<T>,
            ) -> Result<(), Abort> {
                self.$segments.enter(tx $(, $index)?)?.defer_write(value.into_input())
            }

            /// Logs all that commits change from now on, as [`SegmentObject::logged`](hotrow_core::SegmentObject::logged) does. A
            /// database makes its objects so.
            ///
            /// # Panics
            ///
            /// If it is logged.
            #[must_use]
            pub fn logged(self, log: LogSegment<T>) -> Self {
                Self { $segments: self.$segments.logged(log) }
            }

            /// Sets the object's rank: its position in the order in which transactions acquire the segments of their deferred
            /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
            pub fn set_rank(&mut self, rank: u16) {
                self.$segments.set_rank(rank);
            }
        }
    };
}

pub(crate) use segment_operations;
