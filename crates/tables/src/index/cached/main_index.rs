//! The main index behind a cache: an index of either kind.

use crate::index::{HashIndex, Insertion, Keyed, Lookup, OrderedIndex};
use crate::key::{ImageOf, Key};
use hotrow_core::epoch::Guard;
use hotrow_core::{Pin, WatchedNodes};
use std::hash::Hash;
use std::ptr::NonNull;

/// The index behind a cache. No transaction observes its buckets or leaves, so nobody is told of their changes.
pub(crate) enum MainIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    Hash(HashIndex<T>),
    Ordered(OrderedIndex<T>),
}

impl<T> MainIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// The hash index, if it is one.
    pub(crate) fn hash(&self) -> Option<&HashIndex<T>> {
        match self {
            Self::Hash(index) => Some(index),
            Self::Ordered(_) => None,
        }
    }

    /// Looks up the key that has an image, and for which `is_wanted` is true; `key` has its hash.
    #[inline]
    pub(super) fn get(
        &self,
        key: &(impl Hash + ?Sized),
        image: &ImageOf<'_, T::Key>,
        is_wanted: impl Fn(&T) -> bool + Copy,
        guard: &Guard,
    ) -> Option<NonNull<T>> {
        let found = match self {
            Self::Hash(index) => index.get_by(key, is_wanted, guard),
            Self::Ordered(index) => index.get(image, guard),
        };
        match found {
            Lookup::Found(record) => Some(record),
            Lookup::Absent(_) => None,
        }
    }

    /// Adds a record under its key, or returns the one that has it.
    ///
    /// # Safety
    ///
    /// The record is valid, and is freed only through the epoch after its removal. The index is reached under the pin, does
    /// not move, and is freed through the epoch.
    pub(super) unsafe fn insert(&self, record: NonNull<T>, pin: &Pin) -> Option<NonNull<T>> {
        // SAFETY: the caller's promise. A finger in the pin was returned under this pin, because only insertions keep
        // fingers. So one with this index's address is this index's.
        let insertion = unsafe {
            match self {
                Self::Hash(index) => index.insert(record, pin.guard(), &mut |_| (), None),
                Self::Ordered(index) => {
                    let (insertion, finger) =
                        index.insert(record, pin.guard(), pin.kept(), &mut |_| (), None);
                    pin.keep(finger);
                    insertion
                }
            }
        };
        match insertion {
            Insertion::Inserted => None,
            Insertion::Exists(existing) => Some(existing),
            Insertion::Refused(_) => unreachable!("the insertion may change every node"),
        }
    }

    pub(super) fn remove(&self, record: NonNull<T>, guard: &Guard) -> bool {
        match self {
            Self::Hash(index) => index.remove(record, guard, &mut |_| ()),
            // Nobody looks at what the leaf counts.
            Self::Ordered(index) => index.remove(record, false, guard, &mut |_| ()),
        }
    }

    pub(super) fn set_watched(&mut self, watched: WatchedNodes) {
        match self {
            Self::Hash(index) => index.set_watched(watched),
            Self::Ordered(index) => index.set_watched(watched),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Hash(index) => index.memory_bytes(),
            Self::Ordered(index) => index.memory_bytes(),
        }
    }

    pub(super) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<T>)) {
        match self {
            Self::Hash(index) => index.drain(visit),
            Self::Ordered(index) => index.drain(visit),
        }
    }
}
