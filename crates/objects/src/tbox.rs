//! A box: one value, one segment. The worked example for authors of datatypes (sto §3.4, Figure 2).
//!
//! The box is a datatype over one segment, so it has nothing but its operations: each enters the segment and then works
//! on it. [`SingleSegment`] does the rest. A datatype with state or conflicts of its own does it itself:
//! [`TCounter`](crate::TCounter) shows how.

use crate::segment_operations::segment_operations;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Deferred, Engine, Input, LogSegment, Protocol, SingleSegment,
    Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional box around a value of any type that is [`Value`].
///
/// Reads and writes conflict on the whole value. For parts that change independently, use several boxes, a
/// [`TArray`](crate::TArray) or a table.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TBox;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let (from, to) = (TBox::new(&engine, 100), TBox::new(&engine, 0));
/// let moved = engine.transact(|tx| {
///     let amount = from.get(tx)?.min(30);
///     from.update(tx, |balance| *balance -= amount)?;
///     to.update(tx, |balance| *balance += amount)?;
///     Ok(amount)
/// })?;
/// assert_eq!(moved, 30);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TBox<T: Value, P: Protocol = Occ> {
    value: SingleSegment<T, P>,
}

impl<T: Value, P: Protocol> fmt::Debug for TBox<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBox").field("name", &self.value.name()).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> TBox<T, P> {
    /// A box that holds `value`.
    pub fn new(engine: &Engine<P>, value: T) -> Self {
        Self::named(engine, "box", value)
    }

    /// A box with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: T) -> Self {
        Self { value: SingleSegment::new(engine, name, value) }
    }
}

segment_operations!(TBox, value);
