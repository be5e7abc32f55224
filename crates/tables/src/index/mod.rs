//! Indexes: where a table finds its records.
//!
//! An index maps a key to a pointer to a record and knows nothing of transactions, protocols or rows. What
//! it gives the transaction layer is the version word of each bucket or leaf that it looked at
//! ([`Observed`]) or changed ([`StructureChange`](hotrow_core::StructureChange)); with those every protocol
//! rules out phantoms.
//!
//! Both indexes keep pointers only. The table owns the records: it frees them, through the epoch, after it
//! has removed them.

mod hash;
mod moment;
mod ordered;
#[cfg(all(test, not(loom)))]
mod testing;

pub(crate) use hash::HashIndex;
pub use ordered::Direction;
pub(crate) use ordered::{Cursor, OrderedIndex};

use hotrow_core::Observed;
use std::ptr::NonNull;

/// A record that knows its own key.
pub(crate) trait Keyed: Send + Sync + 'static {
    /// The key's type.
    type Key;
    /// The record's key; it never changes.
    fn key(&self) -> &Self::Key;
}

/// What a lookup found.
#[derive(Debug)]
pub(crate) enum Lookup<T> {
    /// The record.
    Found(NonNull<T>),
    /// Nothing, as the observed node says.
    Absent(Observed),
}

/// What an insertion did.
#[derive(Debug)]
pub(crate) enum Insertion<T> {
    /// The record is in the index.
    Inserted,
    /// Another record with this key was there and still is.
    Exists(NonNull<T>),
    /// The bucket or leaf must not be changed: nothing was inserted.
    Refused(Observed),
}
