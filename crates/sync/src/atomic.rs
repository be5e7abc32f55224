//! Atomic words and fences.

#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub use crate::model::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Words that a model checker never follows: in a static, which outlives a model's execution, or made from a
/// pointer, so that their memory holds the value and nothing beside it.
///
/// The same types as above in every other build.
pub mod unfollowed {
    pub use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
}
