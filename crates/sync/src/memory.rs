//! Plain memory that goes from one thread to another.
//!
//! What a simulation sees are accesses to atomic words. Where one thread hands plain memory to another, which is as dear as
//! any transfer, the code says so here. Nothing in other builds.

/// Says that the object at an address is read, which another thread has written.
#[inline(always)]
pub fn read<T>(address: *const T) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::access(address.addr(), size_of::<T>(), hotrow_sim::Kind::Load);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = address;
}

/// Says that the object at an address is written, for another thread to read.
#[inline(always)]
pub fn write<T>(address: *const T) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::access(address.addr(), size_of::<T>(), hotrow_sim::Kind::Store);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = address;
}
