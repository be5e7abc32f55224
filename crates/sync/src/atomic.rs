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

/// Words that the model checker does not see. They live in a static, which outlives a model's execution, or are
/// made from a pointer, so that their memory has room for the value only. The simulator does see them.
///
/// In all other builds they are the same types as above.
pub mod unfollowed {
    #[cfg(any(loom, not(feature = "sim")))]
    pub use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

    #[cfg(all(feature = "sim", not(loom)))]
    pub use crate::simulated::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
}

/// Words of instruments. Neither the simulator nor the model checker sees them, because recording a run must not
/// change the run.
pub mod instrument {
    pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
}
