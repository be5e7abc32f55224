//! Entries of buckets: a record's address below a tag of its key, so that most other keys are told apart without their records.

use std::ptr::NonNull;

/// The number of bits of an address; the tag takes the rest of the word.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;
const _: () = assert!(usize::BITS == 64, "a tag and an address share one 64-bit word");

/// A record's address below its key's tag.
pub(super) struct Entry<T>(pub(super) *mut T);

impl<T> Entry<T> {
    /// The tag has 16 bits.
    ///
    /// # Panics
    ///
    /// If the address does not fit beside the tag. No allocator of a 64-bit system returns such an address unless
    /// asked for it.
    pub(super) fn new(record: NonNull<T>, tag: usize) -> Self {
        Self(record.as_ptr().map_addr(|address| {
            assert!(address & !ADDRESS == 0, "a record's address has more than {ADDRESS_BITS} bits");
            address | tag << ADDRESS_BITS
        }))
    }
}

/// The tag of an entry.
#[inline]
pub(super) fn tag_of<T>(entry: *mut T) -> usize {
    entry.addr() >> ADDRESS_BITS
}

/// The record of an entry; null if the slot is empty.
#[inline]
pub(super) fn untagged<T>(entry: *mut T) -> *mut T {
    entry.map_addr(|address| address & ADDRESS)
}
