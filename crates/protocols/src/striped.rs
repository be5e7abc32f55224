//! Lists beside locks, for data that few segments need at a time and that has no room in their words.
//!
//! Segments whose addresses map to the same stripe share a list under a mutex, so each entry names its segment.

use crossbeam_utils::CachePadded;
use hotrow_sync::memory::place;
use hotrow_sync::profile::name_slice;
use hotrow_sync::{Mutex, MutexGuard, lock};

/// `STRIPES` lists of `T`. Segments that begin within the same `GRAIN` bytes share one.
#[derive(Debug)]
pub(crate) struct Striped<T, const STRIPES: usize, const GRAIN: usize> {
    stripes: Box<[CachePadded<Mutex<Vec<T>>>]>,
}

impl<T, const STRIPES: usize, const GRAIN: usize> Striped<T, STRIPES, GRAIN> {
    pub(crate) fn new() -> Self {
        let stripes: Box<[CachePadded<Mutex<Vec<T>>>]> =
            (0..STRIPES).map(|_| CachePadded::new(Mutex::new(Vec::new()))).collect();
        name_slice(&stripes, || String::from("the lists beside locks"));
        Self { stripes }
    }

    /// Locks and returns the list of the segment at an address.
    pub(crate) fn lock(&self, address: usize) -> MutexGuard<'_, Vec<T>> {
        lock(&self.stripes[place(address) / GRAIN % STRIPES])
    }
}
