//! Announcements of accesses to plain memory that one thread hands to another, and places in memory.
//!
//! A simulation sees accesses to atomic words only. Plain memory that one thread hands to another costs as much
//! as any transfer between caches, so the code announces it here. Does nothing in other builds.

/// Announces a read of the object at an address, which another thread has written.
#[inline(always)]
pub fn read<T>(address: *const T) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::access(address.addr(), size_of::<T>(), hotrow_sim::AccessKind::Load);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = address;
}

/// Announces a write of the object at an address, which another thread will read.
#[inline(always)]
pub fn write<T>(address: *const T) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::access(address.addr(), size_of::<T>(), hotrow_sim::AccessKind::Store);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = address;
}

/// A number for an address by which code may choose among things, as among the lists of a table of locks: the address itself, but in a
/// simulation a number that does not depend on the allocator, so that each run chooses the same.
#[inline(always)]
#[must_use]
pub fn place(address: usize) -> usize {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::place(address);
    #[cfg(any(loom, not(feature = "sim")))]
    address
}
