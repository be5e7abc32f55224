//! The memory of one attempt: payloads, and the nodes of recorded operations.

use bumpalo::Bump;
use std::alloc::Layout;
use std::cell::Cell;

/// A bump arena that knows whether it was used: most attempts of small values need none.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    bump: Bump,
    used: Cell<bool>,
}

impl Arena {
    /// Returns memory that stays in place until the next [`reset`](Self::reset).
    ///
    /// Is not inlined into unoptimized code, of which bumpalo would make much.
    #[inline]
    pub(crate) fn allocate(&self, layout: Layout) -> *mut u8 {
        self.used.set(true);
        self.bump.alloc_layout(layout).as_ptr()
    }

    /// Returns a copy of some values, which stays in place until the next [`reset`](Self::reset).
    #[inline]
    pub(crate) fn allocate_copies<T: Copy>(&self, values: &[T]) -> &[T] {
        self.used.set(true);
        self.bump.alloc_slice_copy(values)
    }

    /// Takes all memory back. Drops nothing.
    #[inline]
    pub(crate) fn reset(&mut self) {
        if self.used.replace(false) {
            self.bump.reset();
        }
    }
}
