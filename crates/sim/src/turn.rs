//! The beginning of a step: the wait for the core's turn.
//!
//! Fibers switch here, and here a core starts to unwind out of an aborted region or at the end of the run.

use std::panic::resume_unwind;

use crate::ending::AfterEnd;
use crate::engine::Engine;
use crate::fault::Fault;
use crate::htm::RegionAborted;
use crate::outcome::End;

/// The panic payload that unwinds a core that must end. Only the fiber's root may catch it.
pub(crate) struct CoreEnded;

/// Begins a step: waits for the core's turn. Returns false if the step must have no effect.
///
/// # Safety
///
/// `engine` is the active engine, the caller runs in the fiber of its current core and holds no reference into
/// it.
#[inline(always)]
pub(crate) unsafe fn begin_step(engine: *mut Engine, gives_way: bool) -> bool {
    // SAFETY: the engine lives as long as any fiber runs, and no other reference to it exists now (this
    // function's contract); the reference ends before any switch.
    let (is_quiet, is_turn) = unsafe {
        let engine = &*engine;
        (engine.quiet, engine.is_turn())
    };
    if is_quiet {
        // SAFETY: this function's contract.
        unsafe { quiet_step(engine, gives_way) };
        return false;
    }
    if !is_turn {
        // SAFETY: this function's contract.
        return unsafe { wait_for_turn(engine, gives_way) };
    }
    true
}

/// # Safety
///
/// As [`begin_step`].
#[cold]
#[inline(never)]
unsafe fn wait_for_turn(engine: *mut Engine, gives_way: bool) -> bool {
    // SAFETY: the contract of `begin_step`, which is this one's; each reference ends with its statement, before any
    // switch.
    unsafe {
        attend(engine);
        if (*engine).quiet {
            quiet_step(engine, gives_way);
            return false;
        }
        if (*engine).hand_over(gives_way) {
            suspend(engine);
        }
        !(*engine).quiet
    }
}

/// Handles the limits and faults that are due.
///
/// # Safety
///
/// As [`begin_step`].
unsafe fn attend(engine: *mut Engine) {
    // SAFETY: the contract of `begin_step`, which is this one's; each reference ends with its statement, before any
    // switch.
    unsafe {
        if (*engine).now >= (*engine).limits.until_ps_hard {
            return end_run(engine, End::TimeLimit);
        }
        if (*engine).steps < (*engine).attention_at {
            return;
        }
        if (*engine).steps >= (*engine).limits.steps_hard {
            return end_run(engine, End::StepLimit);
        }
        while let Some(fault) = (*engine).due_fault() {
            strike(engine, fault);
        }
        (*engine).set_attention();
    }
}

/// # Safety
///
/// As [`begin_step`].
unsafe fn strike(engine: *mut Engine, fault: Fault) {
    // SAFETY: as in `attend`.
    unsafe {
        match fault {
            Fault::Stop(ps) if (*engine).stop(ps) => suspend(engine),
            Fault::Stop(_) => check_region(engine),
            Fault::Kill if (*engine).kill() => {
                suspend(engine);
                unreachable!("a killed core is never resumed");
            }
            Fault::Kill => {}
        }
    }
}

/// Suspends the current core. When resumed, it unwinds if it must end or if its region was aborted.
///
/// # Safety
///
/// As [`begin_step`].
pub(crate) unsafe fn suspend(engine: *mut Engine) {
    // SAFETY: as in `attend`. The yielder lives on the fiber's own stack and was set before the body began; the
    // engine is at this core again when the fiber is resumed.
    unsafe {
        let yielder = (*engine).leave_current();
        (*yielder).suspend(());
        if (*engine).quiet {
            quiet_step(engine, false);
        }
        check_region(engine);
    }
}

/// Unwinds to the beginning of the current core's region if it was aborted.
///
/// # Safety
///
/// As [`begin_step`].
pub(crate) unsafe fn check_region(engine: *mut Engine) {
    // SAFETY: the contract of `begin_step`; the reference ends here.
    if unsafe { (*engine).htm.must_leave((*engine).current) } {
        resume_unwind(Box::new(RegionAborted));
    }
}

/// Ends the run from within a core.
///
/// # Safety
///
/// As [`begin_step`].
unsafe fn end_run(engine: *mut Engine, end: End) {
    // SAFETY: as in `attend`.
    unsafe {
        (*engine).end_here(end);
        quiet_step(engine, false);
    }
}

/// A step without effect: the run has ended, or a condition is being checked. After the end of the run, the
/// first such step of a core unwinds it.
///
/// # Safety
///
/// As [`begin_step`].
#[cold]
unsafe fn quiet_step(engine: *mut Engine, gives_way: bool) {
    // SAFETY: as in `attend`; for the yielder as in `suspend`.
    unsafe {
        if (*engine).end.is_none() {
            return;
        }
        match (*engine).after_end(gives_way) {
            AfterEnd::GoOn => {}
            AfterEnd::Unwind => resume_unwind(Box::new(CoreEnded)),
            AfterEnd::Suspend(yielder) => (*yielder).suspend(()),
            AfterEnd::Abandon(yielder) => {
                (*yielder).suspend(());
                unreachable!("an abandoned core is never resumed");
            }
        }
    }
}
