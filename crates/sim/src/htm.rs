//! Hardware transactions, as Intel's RTM has them (dbx-tc §2.1).
//!
//! # The model
//!
//! The model tracks the reads and writes of a region (a hardware transaction) by cache line. Written lines must
//! stay in the first-level cache. The address bits above the line offset choose a set, as on the hardware; the
//! eviction of a written line aborts the region. Lines that were only read may leave the first level, up to a
//! total. Other lines enter the first level too and evict the least recently used ones: those of page walks and
//! prefetches (the profile gives their number), and those of the program's own stack, which is always in use.
//!
//! A conflict is an access by any core, inside a region or not, to a line that a region has written, or a write
//! to a line that it has read. The requester wins: the region that had the line is aborted at once. Interrupts
//! abort regions at a fixed rate per virtual time. An operation that enters the operating system or is forbidden
//! inside ([`sleep`](crate::sleep), [`park_on`](crate::park_on), [`yield_now`](crate::yield_now),
//! [`pause`](crate::pause)) always aborts the region.
//!
//! # Undo
//!
//! Regions write memory in place. Before each write inside a region the caller logs the old bytes with
//! [`log_write`]; an abort restores them before any other core runs. Since all cores run on one thread of the
//! operating system, no core ever sees a write that did not commit. Writes to the body's own stack are not logged: it is gone when the
//! abort has unwound it.
//!
//! # Unwinding
//!
//! A core learns of its region's abort at a step and leaves the region by unwinding from there, without a panic
//! message; [`run`] returns the cause. So, unlike on hardware, the destructors of what the body owned run. The
//! region's writes are already undone then, and the destructors' steps count as outside the region. Destructors
//! must not undo by hand what the abort has undone. If the core learns of the abort inside a destructor, the rest
//! of that destructor does not run. A body that catches all panics must let this one through ([`leaves_region`]).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::engine::{self, Engine};
use crate::regions::RegionLimits;
use crate::trace::Operation;
use crate::turn;

/// The cause of a region's abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum AbortCause {
    /// Another core wanted a line of the region.
    #[error("another core wanted a line of the region")]
    Conflict,
    /// The region wrote or read more than fits into the cache.
    #[error("the region does not fit into the cache")]
    Capacity,
    /// A written line was evicted from its set, though all lines together would have fitted.
    #[error("a set of the cache was full")]
    Associativity,
    /// An interrupt, or an operation that is forbidden inside a region.
    #[error("an interrupt, or an operation that is forbidden inside a region")]
    System,
    /// The region aborted itself, with this code.
    #[error("the region aborted itself with code {0}")]
    Explicit(u8),
    /// The machine has no hardware transactions, or no simulation runs in this thread.
    #[error("hardware transactions are not available here")]
    Unsupported,
}

/// The numbers of regions, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Regions {
    /// Regions that committed.
    pub commits: u64,
    /// Regions aborted by conflicts.
    pub conflict: u64,
    /// Regions aborted because they did not fit into the cache.
    pub capacity: u64,
    /// Regions aborted because a set of the cache was full.
    pub associativity: u64,
    /// Regions aborted by interrupts and forbidden operations.
    pub system: u64,
    /// Regions that aborted themselves.
    pub explicit: u64,
    /// The lines of the regions that committed.
    pub lines: RegionLines,
}

/// Numbers of cache lines in the working sets of regions that committed, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionLines {
    /// Lines that were read before anything was written to them.
    pub read: u64,
    /// Lines that were written.
    pub written: u64,
    /// Lines that were read or written.
    pub all: u64,
}

impl Regions {
    /// The number of regions that were aborted.
    pub fn aborts(&self) -> u64 {
        let Self { commits: _, conflict, capacity, associativity, system, explicit, lines: _ } = *self;
        conflict + capacity + associativity + system + explicit
    }
}

/// The panic payload that unwinds an aborted region.
pub(crate) struct RegionAborted;

/// True if a panic's payload is that of a core which leaves its aborted region: whoever catches it must pass it on.
pub fn leaves_region(payload: &(dyn Any + Send)) -> bool {
    payload.is::<RegionAborted>()
}

/// Runs `body` as a region: all its writes take effect, or none.
///
/// A region within a region is part of the outer one. Retry and fallback are left to the caller. A panic of the
/// body aborts the region and propagates. Destructors that make steps during such a panic are still inside the
/// region; if the region is aborted in one of them, the process aborts.
///
/// # Errors
///
/// The cause of the abort. All bytes logged with [`log_write`] have their old values again.
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
        this.htm.begin(this.current, this.now, (&raw const body).addr());
        this.current
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = body();
        // SAFETY: as above.
        unsafe {
            step(engine, Operation::Commit, |limits| limits.commit);
            (*engine).htm.count_step(core);
            turn::check_region(engine);
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
unsafe fn step(engine: *mut Engine, operation: Operation, cost: impl FnOnce(&RegionLimits) -> u64) {
    // SAFETY: this function's contract; the reference is made after `begin_step`, which may switch.
    unsafe {
        if turn::begin_step(engine, false) {
            let this = &mut *engine;
            let cost = this.htm.limits.as_ref().map_or(0, cost);
            this.record(operation, None, cost);
        }
    }
}

/// True if the machine of the simulation that runs in this thread has hardware transactions.
#[inline]
pub fn is_available() -> bool {
    let engine = engine::active();
    // SAFETY: an active engine outlives this call; the reference ends with the statement.
    !engine.is_null() && unsafe { (*engine).htm.limits.is_some() }
}

/// True if a panic's payload is that of a core which must end with the run: whoever catches it must pass it on.
pub fn ends_core(payload: &(dyn Any + Send)) -> bool {
    payload.is::<turn::CoreEnded>()
}

/// True if the current core unwinds out of an aborted region.
pub fn is_leaving() -> bool {
    let engine = engine::active();
    // SAFETY: an active engine outlives this call; the references end with the statement.
    !engine.is_null() && unsafe { (*engine).htm.is_leaving((*engine).current) }
}

/// True if the current core is in a region; false outside a simulation. Not a step.
pub fn is_inside() -> bool {
    let engine = engine::active();
    // SAFETY: an active engine outlives this call; the references end with the statement.
    !engine.is_null() && unsafe { (*engine).htm.is_inside((*engine).current) }
}

/// Aborts the current core's region. Returns only if the core is in none.
pub fn abort(code: u8) {
    leave(AbortCause::Explicit(code));
}

/// Aborts the current core's region, if it is in one, as an operation does that is forbidden inside.
pub fn abort_by_system() {
    leave(AbortCause::System);
}

/// Aborts the current core's region, if it is in one, because of an operation that it is about to make.
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

/// Notes an access to the word of an instrument at this address. On a processor it would be one of the region's, and so it is for
/// conflicts between regions; but it is no step and has no cost.
pub fn note(address: usize, writes: bool) {
    let engine = engine::active();
    if !engine.is_null() {
        // SAFETY: the engine is active, and the reference ends with the block.
        unsafe {
            let this = &mut *engine;
            if this.htm.is_active() {
                this.htm.note(this.current, (address / this.memory.unit()) as u64, writes);
            }
        }
    }
}

/// Logs the current content of these bytes, so that an abort of the region restores it. Call it after the
/// [`access`](crate::access) and before the write. Outside a region it has no effect.
///
/// # Safety
///
/// Until the region ends, the bytes may be read and written (they stay allocated, and no reference forbids it),
/// and only the cores of this simulation access them.
pub unsafe fn log_write(address: *mut u8, bytes: usize) {
    let engine = engine::active();
    if !is_inside() {
        return;
    }
    let top = 0u8;
    let stack_from = (&raw const top).addr();
    // SAFETY: the engine is active, and the references end with each statement. The rest is this function's
    // contract.
    unsafe {
        let core = (*engine).current;
        if (stack_from..(*engine).htm.stack_to(core)).contains(&address.addr()) {
            return;
        }
        (*engine).htm.log(core, address, bytes);
    }
}
