//! Moments at which another thread may act.

/// Marks a moment of an optimistic operation, between two reads or between a read and its check, at which
/// another thread may change anything. The caller holds no latch, unless it says so.
///
/// It is nothing in a real build. Tests step in here and do what another thread might (`testing::meanwhile`), so
/// that every such interleaving is tried on one thread.
#[inline(always)]
pub(super) fn moment() {
    #[cfg(all(test, not(loom)))]
    super::testing::moment();
}
