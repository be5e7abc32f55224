//! Prefetching of cache lines.

/// Asks the processor to fetch the cache lines of the `bytes` from `address` on, as [`prefetch`] does.
#[inline(always)]
pub fn prefetch_bytes<T>(address: *const T, bytes: usize) {
    (0..bytes).step_by(CACHE_LINE).for_each(|at| prefetch(address.cast::<u8>().wrapping_add(at)));
}

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// Asks the processor to fetch the cache line at `address`. Any address is allowed; a useless one only costs time.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor, and a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
