//! Intel's restricted transactional memory.
//!
//! # One block of assembly
//!
//! `xbegin` returns twice: once to begin, and again, with all registers and all memory as they were, after an abort. A compiler
//! must not see that. So one block of inline assembly holds `xbegin`, a call of the work, `xend` and the place to which an abort
//! goes. For the compiler the block is a call of a function that either has happened or has not: an abort restores each register
//! and each byte that the call has changed, its stack included, and only the status tells.
//!
//! # Status
//!
//! After an abort, register `eax` has the cause; bits 0 to 3 are: aborted by `xabort` (its code is in bits 24 to 31), may succeed on
//! another try, conflict, overflow. No bit is set after an interrupt and the like. An abort never leaves all bits set, so that value
//! means that the region has committed (Intel's manual, volume 1, chapter 16).

use super::{Abort, forget_panic};
use std::arch::asm;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};

/// The status of a region that has committed.
const COMMITTED: u32 = u32::MAX;

/// The code with which a region aborts itself because its work has panicked.
const PANICKED: u8 = u8::MAX;

/// The number of regions that are tried to find out if any commits. An interrupt may abort one; a processor that commits
/// regions at all does not fail so often in a row.
const TRIES: u32 = 64;

/// Work by its address, with the address of its data. It must not unwind.
type Work = unsafe extern "sysv64" fn(*mut u8);

/// Defines a function that runs work between two instructions, which are parameters so that a test can replace them on a
/// processor that lacks them.
macro_rules! region {
    ($(#[$meta:meta])* $name:ident, $begin:literal, $end:literal) => {
        $(#[$meta])*
        unsafe fn $name(work: Work, data: *mut u8) -> u32 {
            let status: u32;
            // SAFETY: without `nostack`, the stack is aligned for a call, and what the block pushes harms nobody. The registers
            // that a call may change are declared. After an abort they and the memory are as before the block. The rest is the
            // caller's promise.
            unsafe {
                asm!(
                    // An abort goes to the label behind the block's last instruction, with its status in `eax`.
                    $begin,
                    "call {work}",
                    $end,
                    "mov eax, -1",
                    "2:",
                    work = in(reg) work,
                    in("rdi") data,
                    out("eax") status,
                    clobber_abi("sysv64"),
                );
            }
            status
        }
    };
}

region! {
    /// Runs work in a region. Returns the status.
    ///
    /// # Safety
    ///
    /// The processor has the instructions. `work` may be called with `data`, once, and does not unwind.
    attempt, "xbegin 2f", "xend"
}

/// True if a region has committed in this process, or commits now.
#[inline(always)]
pub(super) fn is_available() -> bool {
    const UNKNOWN: u8 = 0;
    const AVAILABLE: u8 = 1;
    const UNAVAILABLE: u8 = 2;
    /// What was found out. Relaxed: all threads find the same.
    static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[cold]
    fn find_out() -> bool {
        let is_available = probe();
        FOUND.store(if is_available { AVAILABLE } else { UNAVAILABLE }, Ordering::Relaxed);
        is_available
    }

    match FOUND.load(Ordering::Relaxed) {
        AVAILABLE => true,
        UNAVAILABLE => false,
        _ => find_out(),
    }
}

/// Tries if a region commits. The processor's word is not enough: where microcode has switched regions off, some processors still
/// claim to have them, and abort each with a status of 0.
pub(super) fn probe() -> bool {
    unsafe extern "sysv64" fn nothing(_: *mut u8) {}

    // SAFETY: the processor has the instructions.
    std::is_x86_feature_detected!("rtm")
        && (0..TRIES).any(|_| unsafe { attempt(nothing, std::ptr::null_mut()) } == COMMITTED)
}

/// Runs `work` in a region. Regions are available.
#[inline]
pub(super) fn run<R>(work: impl FnOnce() -> R) -> Result<R, Abort> {
    debug_assert!(is_available());
    run_by(attempt, work)
}

/// Runs `work` by a function that [`region!`] defines.
#[inline(always)]
fn run_by<R, F: FnOnce() -> R>(attempt: unsafe fn(Work, *mut u8) -> u32, work: F) -> Result<R, Abort> {
    /// The work, and its result once it has run.
    struct Call<F, R> {
        work: Option<F>,
        result: Option<R>,
    }

    unsafe extern "sysv64" fn call<R, F: FnOnce() -> R>(data: *mut u8) {
        // SAFETY: `run_by` passes its call, which nobody else uses meanwhile.
        let call = unsafe { &mut *data.cast::<Call<F, R>>() };
        let Some(work) = call.work.take() else { return };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => call.result = Some(result),
            Err(panic) => {
                // Undoes the panic, too, payload and all.
                abort::<PANICKED>();
                // In no region after all, that is, in a test.
                forget_panic(panic);
            }
        }
    }

    let mut call_of = Call { work: Some(work), result: None };
    // SAFETY: the caller of `run` says that regions are available, and tests pass functions without their instructions. `call`
    // gets the data that it needs, and contains panics.
    let status = unsafe { attempt(call::<R, F>, (&raw mut call_of).cast()) };
    match call_of.result {
        Some(result) if status == COMMITTED => Ok(result),
        _ if status == COMMITTED => Err(Abort::Panicked),
        _ => Err(cause_of(status)),
    }
}

/// Aborts the region that the calling code runs in, if it is in one.
#[inline(always)]
pub(super) fn abort<const CODE: u8>() {
    if is_available() {
        // SAFETY: the processor has the instruction, which does nothing outside of a region.
        unsafe { asm!("xabort {}", const CODE, options(nostack)) };
    }
}

/// Returns the cause that a status of an aborted region tells.
fn cause_of(status: u32) -> Abort {
    match (status >> 24) as u8 {
        PANICKED if status & 1 != 0 => Abort::Panicked,
        code if status & 1 != 0 => Abort::Explicit(code),
        _ if status & 4 != 0 => Abort::Conflict,
        _ if status & 8 != 0 => Abort::Capacity,
        _ => Abort::System,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    region! {
        /// The block without a region: what a commit looks like.
        ///
        /// # Safety
        ///
        /// As for [`attempt`].
        committing, "nop", "nop"
    }
    region! {
        /// The block with an abort by conflict in place of a region.
        ///
        /// # Safety
        ///
        /// As for [`attempt`].
        aborting, "mov eax, 6
                   jmp 2f", "nop"
    }

    #[test]
    fn a_region_that_commits_has_run_its_work_once_with_its_result() {
        let mut ran = 0;
        // Many values alive across the block, in whatever registers the compiler has chosen.
        let before: Vec<u64> = (0..32).map(|n| n * 3).collect();
        let (a, b, c, d, e, f) = (before[1], before[2], before[3], before[4], before[5], before[6]);
        let result = run_by(committing, || {
            ran += 1;
            before.iter().sum::<u64>() as f64 / 2.0
        });
        assert_eq!((result, ran), (Ok(744.0), 1));
        assert_eq!((a, b, c, d, e, f), (3, 6, 9, 12, 15, 18));
    }

    #[test]
    fn a_region_that_aborts_has_not_run_its_work_and_drops_it_once() {
        let witness = std::sync::Arc::new(());
        let own = witness.clone();
        let result = run_by(aborting, move || drop(own));
        assert_eq!(result, Err(Abort::Conflict));
        assert_eq!(std::sync::Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_panic_in_a_region_does_not_leave_it() {
        let result: Result<(), Abort> = run_by(committing, || std::panic::resume_unwind(Box::new(7)));
        assert_eq!(result, Err(Abort::Panicked));
    }

    #[test]
    fn a_status_tells_the_cause() {
        assert_eq!(cause_of(0), Abort::System);
        assert_eq!(cause_of(0b0110), Abort::Conflict);
        assert_eq!(cause_of(0b1000), Abort::Capacity);
        assert_eq!(cause_of(0x2a00_0001), Abort::Explicit(42));
        assert_eq!(cause_of(0xff00_0001), Abort::Panicked);
    }
}
