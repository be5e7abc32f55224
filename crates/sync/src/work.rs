//! Work that a simulation cannot see.
//!
//! A simulation charges accesses to shared memory by its model of caches. All else that a transaction does (it computes,
//! allocates, searches its own lists) is announced here by kind, at the places that every protocol passes. The profile of the
//! machine has a price for each kind, the same for every protocol and workload.
//!
//! In builds without feature `sim` nothing of this is compiled.

/// A kind of work that touches no memory that threads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Beginning and ending an attempt: the epoch's pin, the attempt's lists, the caller's counts.
    Attempt,
    /// Entering an operation of an object.
    Operation,
    /// Finding a segment in the tracking set, or adding it.
    Item,
    /// Logging a read.
    LoggedRead,
    /// Hashing a key and choosing its bucket.
    Hash,
    /// Searching a node of an ordered index for a key.
    NodeSearch,
    /// Installing a pending write, by the call of its object.
    Install,
    /// The fixed part of a commit.
    Commit,
    /// Allocating a block on the heap, and freeing it some time later.
    Allocation,
    /// Writing 64 bytes of a new value to memory of the thread's own.
    Fill,
    /// Drawing a random number.
    Draw,
    /// Recording an operation that runs later, and finding it again.
    RecordedOperation,
}

#[cfg(all(feature = "sim", not(loom)))]
impl From<Work> for hotrow_sim::Work {
    fn from(work: Work) -> Self {
        match work {
            Work::Attempt => Self::Attempt,
            Work::Operation => Self::Operation,
            Work::Item => Self::Item,
            Work::LoggedRead => Self::LoggedRead,
            Work::Hash => Self::Hash,
            Work::NodeSearch => Self::NodeSearch,
            Work::Install => Self::Install,
            Work::Commit => Self::Commit,
            Work::Allocation => Self::Allocation,
            Work::Fill => Self::Fill,
            Work::Draw => Self::Draw,
            Work::RecordedOperation => Self::RecordedOperation,
        }
    }
}

/// Charges some work.
#[inline(always)]
pub fn charge(work: Work) {
    charge_times(work, || 1);
}

/// Charges some work several times. The number is asked for in a simulation only.
#[inline(always)]
pub fn charge_times(work: Work, times: impl FnOnce() -> usize) {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        hotrow_sim::charge(work.into(), times() as u64);
    }
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (work, times);
}

/// Charges a new block on the heap, the writing of its content included. The size is asked for in a simulation only.
#[inline(always)]
pub fn charge_block(bytes: impl FnOnce() -> usize) {
    charge(Work::Allocation);
    charge_times(Work::Fill, || bytes().div_ceil(64));
}

/// Charges processor cycles, for work of no kind above that a datatype has measured.
#[inline(always)]
pub fn charge_cycles(cycles: u32) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::work(cycles.into());
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = cycles;
}
