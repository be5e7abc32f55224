//! Lists beside locks: what few segments need at one moment and has no place in their words.
//!
//! A list under a mutex is shared by the segments whose addresses fall together, so its entries name their segment.

use crossbeam_utils::CachePadded;
use hotrow_sync::{Mutex, MutexGuard, lock};

/// Bytes of a page.
const PAGE: usize = 4_096;

/// `STRIPES` lists of `T`. Segments that begin within the same `GRAIN` bytes share one.
#[derive(Debug)]
pub(crate) struct Striped<T, const STRIPES: usize, const GRAIN: usize> {
    stripes: Box<[CachePadded<Mutex<Vec<T>>>]>,
}

impl<T, const STRIPES: usize, const GRAIN: usize> Striped<T, STRIPES, GRAIN> {
    /// Only the place within a page counts, which does not change from one run of a simulation to the next.
    const WITHIN_PAGE: () = assert!(PAGE.is_multiple_of(STRIPES * GRAIN));

    pub(crate) fn new() -> Self {
        const { Self::WITHIN_PAGE };
        Self { stripes: (0..STRIPES).map(|_| CachePadded::new(Mutex::new(Vec::new()))).collect() }
    }

    /// The list of the segment at an address, locked.
    pub(crate) fn lock(&self, address: usize) -> MutexGuard<'_, Vec<T>> {
        lock(&self.stripes[address / GRAIN % STRIPES])
    }
}
