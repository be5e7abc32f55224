//! Hardware transactions, as Intel's RTM has them (dbx-tc §2.1).
//!
//! # The model
//!
//! A region's reads and writes are tracked by cache line. Written lines have to stay in the first level: its
//! sets are chosen by the bits of the address above the line's, as the hardware does, and a written line that
//! has to leave aborts the region. Lines that were read may leave it, up to a total. Other lines come into the
//! first level, too, and push out what was used longest ago: page walks and prefetches (the profile says how
//! many), and the program's own stack, which is always in use.
//!
//! A conflict is an access by any core, inside a region or not, to a line that a region has written, or a write
//! to one that it has read. The requester wins: the region that had the line is aborted at once. Interrupts
//! abort at a certain rate of virtual time; what enters the operating system or is not allowed inside
//! ([`sleep`](crate::sleep), [`park_on`](crate::park_on), [`yield_now`](crate::yield_now),
//! [`pause`](crate::pause)) aborts always.
//!
//! # Undoing
//!
//! Memory is written in place. Before each write inside a region the caller says where with [`log_write`]; an
//! abort puts the old bytes back before anybody else runs. Since all cores run on one thread of the operating
//! system, nobody ever sees a write that did not commit.
//!
//! # Leaving
//!
//! An aborted region is left by unwinding from the step at which its core learns of it, without a panic
//! message; [`run`] returns the cause. So, other than on hardware, destructors of what the body owned run; the
//! region is already undone then, and their steps count as outside of it. They must not undo by hand what the
//! abort has undone. A destructor that makes steps inside the region may itself be where it is left, and its rest
//! does not run. A body that catches all panics must let this one through.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::engine::{self, Engine};
use crate::regions::Limits;
use crate::trace::Operation;
use crate::turn;

/// Why a region was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum AbortCause {
    /// Another core wanted a line of the region.
    #[error("another core wanted one of its lines")]
    Conflict,
    /// The region wrote or read more than fits.
    #[error("it does not fit into the cache")]
    Capacity,
    /// A written line had to leave its set, though the whole would have fitted.
    #[error("a set of the cache was full")]
    Associativity,
    /// An interrupt, or an operation that is not allowed inside.
    #[error("an interrupt, or an operation that is not allowed inside")]
    System,
    /// The region aborted itself, with this code.
    #[error("aborted by itself with code {0}")]
    Explicit(u8),
    /// The machine has no hardware transactions, or no simulation runs in this thread.
    #[error("there are no hardware transactions here")]
    Unsupported,
}

/// How many regions ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Regions {
    /// Committed.
    pub commits: u64,
    /// Aborted by conflicts.
    pub conflict: u64,
    /// Aborted because they did not fit.
    pub capacity: u64,
    /// Aborted because a set was full.
    pub associativity: u64,
    /// Aborted by interrupts and forbidden operations.
    pub system: u64,
    /// Aborted by themselves.
    pub explicit: u64,
}

/// What unwinds an aborted region.
pub(crate) struct RegionAborted;

/// Runs `body` as a region: all its writes, or none.
///
/// A region within a region is part of the outer one. There is no retry and no fallback; both are the
/// caller's. A panic of the body aborts the region and goes on; destructors that make steps while it unwinds
/// must expect to be inside still, and if the region is aborted in one of them, the process aborts.
///
/// # Errors
///
/// Why the region was aborted; everything that was logged with [`log_write`] has its old value again.
pub fn run<R>(body: impl FnOnce() -> R) -> Result<R, AbortCause> {
    let engine = engine::active();
    // SAFETY: an active engine outlives this call; the reference ends with the statement.
    if engine.is_null() || unsafe { (*engine).htm.limits.is_none() || (*engine).quiet } {
        return Err(AbortCause::Unsupported);
    }
    // SAFETY: as above.
    if unsafe { (*engine).htm.is_inside((*engine).current) } {
        return Ok(body());
    }
    // SAFETY: this runs in the fiber of the current core, without references into the engine.
    unsafe { step(engine, Operation::Begin, |limits| limits.begin) };
    // SAFETY: as above; the reference ends with the block.
    let core = unsafe {
        let this: &mut Engine = &mut *engine;
        this.htm.begin(this.current, this.now);
        this.current
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = body();
        // SAFETY: as above.
        unsafe {
            step(engine, Operation::Commit, |limits| limits.commit);
            (*engine).htm.commit(core);
        }
        value
    }));
    let payload = match result {
        Ok(value) => return Ok(value),
        Err(payload) => payload,
    };
    // SAFETY: as above.
    let cause = unsafe { (*engine).htm.aborted(core) };
    match cause {
        Some(cause) if payload.is::<RegionAborted>() => {
            // SAFETY: as above.
            unsafe {
                (*engine).htm.forget(core);
                step(engine, Operation::Abort, |limits| limits.abort);
            }
            Err(cause)
        }
        _ => {
            // SAFETY: as above.
            unsafe {
                (*engine).htm.doom(core, AbortCause::System);
                (*engine).htm.forget(core);
            }
            resume_unwind(payload)
        }
    }
}

/// # Safety
///
/// `engine` is the active engine, the caller runs in the fiber of its current core and holds no reference into
/// it.
unsafe fn step(engine: *mut Engine, operation: Operation, cost: impl FnOnce(&Limits) -> u64) {
    // SAFETY: this function's contract; the reference is made after the switch that `turn` may be.
    unsafe {
        if turn::turn(engine, false) {
            let this = &mut *engine;
            let cost = this.htm.limits.as_ref().map_or(0, cost);
            this.record(operation, None, cost);
        }
    }
}

/// Whether the current core is in a region. Not a step; false outside a simulation.
pub fn is_inside() -> bool {
    let engine = engine::active();
    // SAFETY: an active engine outlives this call; the references end with the statement.
    !engine.is_null() && unsafe { (*engine).htm.is_inside((*engine).current) }
}

/// Aborts the current core's region. Returns only if it is in none.
pub fn abort(code: u8) {
    leave(AbortCause::Explicit(code));
}

/// Aborts the current core's region, if it is in one, because of what it is about to do.
pub(crate) fn leave(cause: AbortCause) {
    let engine = engine::active();
    if is_inside() {
        // SAFETY: the engine is active, this is its current core's fiber, and the references end with each
        // statement.
        unsafe {
            let current = (*engine).current;
            (*engine).htm.doom(current, cause);
            turn::check_region(engine);
        }
    }
}

/// Notes what is now in these bytes, so that an abort of the region puts it back. To be called after the
/// [`access`](crate::access) and before the write. Without effect outside a region.
///
/// # Safety
///
/// Until the region ends, the bytes may be read and written (they stay allocated, and no reference forbids it),
/// by nobody but the cores of this simulation.
pub unsafe fn log_write(address: *mut u8, bytes: usize) {
    let engine = engine::active();
    if !is_inside() {
        return;
    }
    // SAFETY: the engine is active, and the references end with each statement. The rest is this function's
    // contract.
    unsafe {
        let core = (*engine).current;
        (*engine).htm.log(core, address, bytes);
    }
}
