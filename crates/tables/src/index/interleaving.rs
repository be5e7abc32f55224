//! Points at which another thread may act.

/// Marks a point of an optimistic operation, between two reads or between a read and its check, at which another
/// thread may change anything. The caller holds no latch, unless its comment says so.
///
/// It compiles to nothing in a real build. Tests use it to run another thread's action at this point
/// (`testing::meanwhile`), so that every such interleaving is tried on one thread.
#[inline(always)]
pub(super) fn interleaving_point() {
    #[cfg(all(test, not(loom)))]
    super::testing::interleaving_point();
}

/// Runs `work`, during which the caller holds a latch that other threads' actions in tests may want: no point is one.
#[inline(always)]
pub(super) fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(all(test, not(loom)))]
    return super::testing::undisturbed(work);
    #[cfg(not(all(test, not(loom))))]
    work()
}
