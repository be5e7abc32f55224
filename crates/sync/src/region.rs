//! Regions: hardware transactions (dbx-tc §2.1). All that a region writes takes effect at one moment, or nothing does.
//!
//! # Backends
//!
//! - *Intel's RTM*, on x86-64: see `rtm`. A region is available if the processor says so and a first one has committed: some
//!   processors abort every region. That is found out once in a process, by a few tries.
//! - *The simulator's*, with feature `sim` and while a simulation runs: `hotrow_sim::htm`, if the machine has regions. There, no
//!   processor undoes anything: the words of [`atomic`](crate::atomic) log what they change.
//! - In all other builds and in models there are none.
//!
//! There is no guarantee that a region ever commits. So the caller has another way to do its work, and regions must be right
//! beside it.
//!
//! # The work of a region
//!
//! It may be cut off at any instruction. It must not rely on another thread to go on, and should not allocate much, wait or call
//! the operating system: that aborts the region.
//!
//! RTM undoes all that the work has changed. The simulator undoes the words of [`atomic`](crate::atomic) only, and cuts work off by
//! unwinding from a step. So that both are right:
//!
//! - what the work changes beside those words it may change again, from the beginning, with the same result, or the caller puts it
//!   back ([`undoes_all_memory`] tells the two apart);
//! - destructors of what the work holds at a step must be right although its changes of words were undone before;
//! - words that it changes stay in memory until the region ends;
//! - there it takes no mutex: one aborts the region, because what it guards would not be undone;
//! - code that catches panics passes those of [`leaves`] on.
//!
//! A panic of the work undoes the region and is dropped ([`Abort::Panicked`]). Work that is done again without a region panics
//! again, where the caller can see it.
//!
//! # Orderings
//!
//! A region's accesses happen at one moment between the accesses before it and those after it, and in one order with all other
//! regions and atomic accesses: the beginning and the end of a region are full fences. What a region has stored, with whatever
//! ordering, another thread sees whole or not at all.

#[cfg(all(target_arch = "x86_64", not(loom)))]
mod rtm;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The cause of a region's abort. Nothing of the region has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Abort {
    /// Another thread wanted a cache line of the region.
    Conflict,
    /// The region's lines do not fit into the cache, or into one of its sets.
    Capacity,
    /// The region aborted itself with this code.
    Explicit(u8),
    /// An interrupt, an operation that regions must not contain, or something that the processor does not tell.
    System,
    /// The work of the region panicked.
    Panicked,
    /// There are no regions here.
    Unavailable,
}

/// True if regions can commit here. The first call finds out, which takes some microseconds.
#[inline]
pub fn is_available() -> bool {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        return hotrow_sim::htm::is_available();
    }
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    return rtm::is_available();
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    false
}

/// Runs `work` in a region.
///
/// A region inside a region is a part of the outer one.
///
/// # Errors
///
/// The cause of the abort. To try again or to do the work otherwise is left to the caller.
#[inline]
pub fn run<R>(work: impl FnOnce() -> R) -> Result<R, Abort> {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        return run_simulated(work);
    }
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    if rtm::is_available() {
        return rtm::run(work);
    }
    drop(work);
    Err(Abort::Unavailable)
}

/// Aborts the region that the calling code runs in. Returns only if it is in none.
#[inline]
pub fn abort<const CODE: u8>() {
    #[cfg(all(feature = "sim", not(loom)))]
    if hotrow_sim::is_active() {
        return hotrow_sim::htm::abort(CODE);
    }
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    rtm::abort::<CODE>();
}

/// True if an abort undoes all memory that a region has changed, and not only the words of [`atomic`](crate::atomic).
#[inline(always)]
pub fn undoes_all_memory() -> bool {
    !crate::thread::is_simulated()
}

/// True if a panic's payload is that of work which leaves its aborted region. Whoever catches it must pass it on.
#[inline]
pub fn leaves(payload: &(dyn Any + Send)) -> bool {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::htm::leaves_region(payload);
    #[cfg(any(loom, not(feature = "sim")))]
    {
        let _ = payload;
        false
    }
}

/// Tells a simulation that the calling code reads, or changes, an instrument's word, which it does not see otherwise: so regions conflict
/// over it as they would on a processor. Does nothing in other builds.
#[inline]
pub fn note<T>(word: *const T, writes: bool) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::htm::note(word.addr(), writes);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (word, writes);
}

/// True if the calling code is a destructor that runs because work leaves its aborted region. What it would undo is undone.
#[inline]
pub fn is_leaving() -> bool {
    #[cfg(all(feature = "sim", not(loom)))]
    return hotrow_sim::htm::is_leaving();
    #[cfg(any(loom, not(feature = "sim")))]
    false
}

#[cfg(all(feature = "sim", not(loom)))]
fn run_simulated<R>(work: impl FnOnce() -> R) -> Result<R, Abort> {
    use hotrow_sim::htm::{self, AbortCause};
    if htm::is_inside() {
        return Ok(work());
    }
    match catch_unwind(AssertUnwindSafe(|| htm::run(work))) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(cause)) => Err(match cause {
            AbortCause::Conflict => Abort::Conflict,
            AbortCause::Capacity | AbortCause::Associativity => Abort::Capacity,
            AbortCause::Explicit(code) => Abort::Explicit(code),
            AbortCause::Unsupported => Abort::Unavailable,
            _ => Abort::System,
        }),
        Err(panic) if htm::ends_core(&*panic) => std::panic::resume_unwind(panic),
        Err(panic) => {
            forget_panic(panic);
            Err(Abort::Panicked)
        }
    }
}

/// Drops the payload of a panic, even if that panics.
#[cold]
fn forget_panic(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
