//! The values that a region retires, and the memory that it makes: held back until the region has committed.
//!
//! [`Pin::retire`] hands a value to the epoch, which allocates, and which nobody takes back if the region is aborted. So as long as a
//! thread holds back, [`Pin`]'s functions put what is retired into a list, whose room was made before; when it is full, the region
//! aborts itself ([`FULL`]).

use crate::memory::pin::Pin;
use hotrow_sync::local;
use hotrow_sync::region;
use hotrow_sync::thread::quietly;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

/// The code with which a region aborts itself because it has retired more than there is room for.
pub(crate) const FULL: u8 = 3;

local! {
    /// The list of the region that the thread is in; null if it is in none.
    static HELD_BACK: Cell<*mut HeldBack> = Cell::new(null_mut());
}

/// A value that was retired inside a region.
struct Retired {
    value: *mut (),
    bytes: usize,
    /// Retires it.
    retire: unsafe fn(&Pin, *mut (), usize),
}

/// Memory that was made inside a region, and the function that frees it.
type Made = (*mut (), unsafe fn(*mut ()));

/// Work that an object has left for the time after the region.
struct Later {
    object: NonNull<()>,
    on: NonNull<()>,
    run: unsafe fn(&Pin, NonNull<()>, NonNull<()>),
}

/// The number of calls that a region may leave for later.
const LATER_MAX: usize = 64;

/// The things that a region has retired and made, and those to be done when it has committed.
#[derive(Default)]
pub(crate) struct HeldBack {
    retired: Vec<Retired>,
    later: Vec<Later>,
    /// In a simulation only: the processor gives memory back by itself.
    made: Vec<Made>,
}

/// The time for which a thread holds back what it retires.
struct Holding;

impl HeldBack {
    /// Runs a region, and holds back what it retires, up to this number of values.
    pub(crate) fn during<R>(&mut self, values_max: usize, run: impl FnOnce() -> R) -> R {
        self.retired.clear();
        self.retired.reserve(values_max);
        self.later.clear();
        self.later.reserve(LATER_MAX);
        self.made.clear();
        HELD_BACK.with(|held_back| held_back.set(self));
        // Dropped before the list goes, also if a simulation ends within the region.
        let _holding = Holding;
        run()
    }

    /// Retires what the region has retired, if it has committed. Otherwise nothing was retired, and frees what the region has made.
    pub(crate) fn settle(&mut self, committed: bool, pin: &Pin) {
        for Retired { value, bytes, retire } in self.retired.drain(..).filter(|_| committed) {
            // SAFETY: who retired it has promised what `retire` needs; it is done once.
            unsafe { retire(pin, value, bytes) };
        }
        for Later { object, on, run } in self.later.drain(..).filter(|_| committed) {
            // SAFETY: who left it for later has promised what `run` needs, under the pin; it is called once.
            unsafe { run(pin, object, on) };
        }
        for (memory, free) in self.made.drain(..).filter(|_| !committed) {
            // SAFETY: promised by who made it; nobody can reach it, as the abort has undone whatever led to it.
            quietly(|| unsafe { free(memory) });
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD_BACK.with(|held_back| held_back.set(null_mut()));
    }
}

/// Notes a value that is retired, if the thread is in a region. False if it is in none.
///
/// # Safety
///
/// `retire` may be called with a pin, `value` and `bytes` once, at a later time, by this thread, unless the region is aborted.
#[inline(always)]
pub(crate) unsafe fn hold_back(
    value: *mut (),
    bytes: usize,
    retire: unsafe fn(&Pin, *mut (), usize),
) -> bool {
    let held_back = HELD_BACK.with(Cell::get);
    if held_back.is_null() {
        return false;
    }
    // SAFETY: it is set while `during` runs a region, when the list is used here only, by this thread.
    let HeldBack { retired, .. } = unsafe { &mut *held_back };
    if retired.len() == retired.capacity() {
        region::abort::<FULL>();
    }
    retired.push(Retired { value, bytes, retire });
    true
}

/// True if the thread is in a region, and holds back what it retires.
#[inline]
pub fn holds_back() -> bool {
    !HELD_BACK.with(Cell::get).is_null()
}

/// Notes memory that is made inside a region and from now on belongs to something that others can reach, so that it is freed if the
/// region is aborted. Does nothing outside of regions, and where an abort undoes allocations.
///
/// # Safety
///
/// `free` may be called for the memory by this thread, once, when nobody can reach it. Otherwise it is freed by [`Pin::retire`] and
/// [`retire_with`](crate::retire_with) only.
#[inline]
pub unsafe fn made_in_region(memory: *mut (), free: unsafe fn(*mut ())) {
    if region::undoes_all_memory() {
        return;
    }
    let held_back = HELD_BACK.with(Cell::get);
    if !held_back.is_null() {
        // SAFETY: as in `hold_back`.
        unsafe { (*held_back).made.push((memory, free)) };
    }
}

/// Calls `run` with the pin, an object, and what it concerns: at once if the thread is in no region, otherwise when the region has
/// committed, and never if it is aborted. For work that may as well be left undone, which it is if a region leaves too much for later.
///
/// # Safety
///
/// `run` may be called with these, once, as long as the attempt is pinned whose pin this is. It does not panic.
pub unsafe fn after_region(
    pin: &Pin,
    object: NonNull<()>,
    on: NonNull<()>,
    run: unsafe fn(&Pin, NonNull<()>, NonNull<()>),
) {
    let held_back = HELD_BACK.with(Cell::get);
    if held_back.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { run(pin, object, on) };
    }
    // SAFETY: as in `hold_back`.
    let HeldBack { later, .. } = unsafe { &mut *held_back };
    if later.len() < later.capacity() {
        later.push(Later { object, on, run });
    }
}
