//! Indexes: the structures in which a table finds its records.
//!
//! An index maps a key to a pointer to a record. It does not depend on transactions, protocols or rows. It gives the
//! transaction layer the version word of each bucket or leaf that it read ([`Observed`]) or changed
//! ([`StructureChange`](hotrow_core::StructureChange)). Every protocol uses these versions to exclude phantoms.
//!
//! Both indexes keep pointers only. The table owns the records: it frees them, through the epoch, after it
//! has removed them.

mod cached;
mod hash;
mod interleaving;
mod ordered;
mod tagged;
#[cfg(all(test, not(loom)))]
mod testing;

pub(crate) use cached::{CachedCursor, CachedIndex, CachedPart, MainIndex};
pub(crate) use hash::HashIndex;
pub use ordered::Direction;
pub(crate) use ordered::{Cursor, LeafPart, Marks, OrderedIndex};

use crate::key::{ImageOf, Key};
use hotrow_core::Observed;
use std::cmp::Ordering;
use std::ptr::NonNull;

/// A record that knows its own key.
pub(crate) trait Keyed: Send + Sync + 'static {
    /// The key's type.
    type Key;
    /// The record's key; it never changes.
    fn key(&self) -> &Self::Key;
    /// The key's image.
    #[inline(always)]
    fn image(&self) -> ImageOf<'_, Self::Key>
    where
        Self::Key: Key,
    {
        Key::image(self.key())
    }
}

/// The nodes that an insertion may change, at these versions; `None` for all.
pub(crate) type MayChange<'f> = Option<&'f dyn Fn(Observed) -> bool>;

/// True if a node must not be changed at this version. To ask may lock it, so it comes after all other conditions.
fn is_forbidden(may_change: MayChange<'_>, observed: Observed) -> bool {
    may_change.is_some_and(|may_change| !may_change(observed))
}

/// Sorts records of any type, so that it is compiled once.
pub(crate) fn sort(records: &mut [NonNull<()>], compare: &dyn Fn(NonNull<()>, NonNull<()>) -> Ordering) {
    records.sort_by(|one, other| compare(*one, *other));
}

/// The result of a lookup.
#[derive(Debug)]
pub(crate) enum Lookup<T> {
    /// The record.
    Found(NonNull<T>),
    /// No record; the observed node covers the key's absence.
    Absent(Observed),
}

/// The result of an insertion.
#[derive(Debug)]
pub(crate) enum Insertion<T> {
    /// The record is in the index.
    Inserted,
    /// Another record with this key is in the index; nothing was inserted.
    Exists(NonNull<T>),
    /// The bucket or leaf must not be changed: nothing was inserted.
    Refused(Observed),
}

/// Frees a node that was made in a region which was aborted.
///
/// # Safety
///
/// It comes from a box, and nobody can reach it.
unsafe fn free_made<T>(node: *mut ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(node.cast::<T>()) });
}
