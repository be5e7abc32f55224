//! Atomic words and fences.

#[cfg(not(any(loom, feature = "sim")))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub use crate::model::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(all(feature = "sim", not(loom)))]
pub use crate::simulated::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Words that a model checker never follows: in a static, which outlives a model's execution, or made from a
/// pointer, so that their memory holds the value and nothing beside it. A simulation does follow them.
///
/// The same types as above in every other build.
pub mod unfollowed {
    #[cfg(any(loom, not(feature = "sim")))]
    pub use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

    #[cfg(all(feature = "sim", not(loom)))]
    pub use crate::simulated::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
}

/// Words of instruments, which nothing follows: what records a run must not be a part of what it records.
pub mod instrument {
    pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
}
