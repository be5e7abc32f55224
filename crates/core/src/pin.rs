//! Epoch reclamation.
//!
//! "Any state reachable from an item must stay in memory until its transaction ends" (sto §3.7, where RCU
//! does it). Here each attempt pins an epoch of crossbeam-epoch, chosen over seize because it has a single
//! small dependency, a feature for loom, and pins for the price of one fence.

use crate::structure::Observed;
use crossbeam_epoch::{self as epoch, Guard};
use hotrow_sync::local;
use hotrow_sync::thread::quietly;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

/// A pinned epoch: nothing retired after this moment is freed while it lives.
#[derive(Debug)]
pub struct Pin {
    guard: Guard,
    retired: Cell<u32>,
    finger: Cell<Option<Finger>>,
}

/// Where in a tree something was inserted: the next key may come right behind it, and then there is no need to go down from
/// the root again (a finger search). How the nodes are by now their versions say.
#[derive(Debug, Clone, Copy)]
pub struct Finger {
    /// The tree.
    pub tree: NonNull<()>,
    /// The leaf, as it was after the insertion.
    pub leaf: Observed,
    /// The node above it, as it was on the way down.
    pub parent: Observed,
    /// Which child of that the leaf was.
    pub child: u32,
    /// The position in the leaf behind what was inserted.
    pub position: u32,
}

/// How many retired values a thread gathers before it asks for a collection.
///
/// crossbeam-epoch collects at every 128th pin, at most 8 bags of 64 values: four a transaction. A workload
/// that retires more would keep garbage for ever, so a collection is asked for by count as well.
///
/// In a model every thread that has retired something asks.
const RETIRED_MAX: u32 = if cfg!(loom) {
    1
} else if cfg!(test) {
    4
} else {
    256
};

local! {
    static RETIRED: Cell<u32> = Cell::new(0);
}

impl Pin {
    /// Pins the current thread.
    #[inline]
    pub fn new() -> Self {
        Self { guard: epoch::pin(), retired: Cell::new(0), finger: Cell::new(None) }
    }

    /// The guard, for index code.
    #[inline]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Where something was last inserted under this pin, if that is known.
    #[inline]
    pub fn finger(&self) -> Option<Finger> {
        self.finger.get()
    }

    /// Keeps where something was inserted, or forgets it.
    ///
    /// # Safety
    ///
    /// The tree is in memory, at its address, as long as this pin lives, and the nodes were part of it at some moment since the
    /// pin was made: whoever finds its own address takes them for its own.
    #[inline]
    pub unsafe fn keep_finger(&self, finger: Option<Finger>) {
        self.finger.set(finger);
    }

    /// Frees a boxed value once nobody who pinned before now can still see it.
    ///
    /// # Safety
    ///
    /// `pointer` comes from `Box::into_raw`, is retired once, and whoever pins after this call cannot
    /// reach it.
    #[inline]
    pub unsafe fn retire<T: Send + 'static>(&self, pointer: *mut T) {
        self.retired.set(self.retired.get() + 1);
        let pointer = Unaliased(pointer);
        // SAFETY: the closure runs once, after all who could see the value are gone; `T` is `Send`, so it
        // may be dropped by any thread, and it borrows nothing.
        unsafe {
            self.guard.defer_unchecked(move || {
                let pointer = pointer;
                free_in_turn(pointer.0.cast(), |pointer| drop(Box::from_raw(pointer.cast::<T>())));
            });
        }
    }
}

/// A pointer that only one closure holds.
struct Unaliased<T>(*mut T);
// SAFETY: the holder is the only one who will use the pointer, and `T` is `Send`.
unsafe impl<T: Send> Send for Unaliased<T> {}

/// How a retired value is freed.
type Free = unsafe fn(*mut ());

local! {
    /// What is to be freed after what the thread is freeing now; null while it frees nothing. (A word without a
    /// destructor, so it is there to the very end of the thread.)
    static NEXT: Cell<*const RefCell<Vec<(*mut (), Free)>>> = Cell::new(std::ptr::null());
}

/// Frees a value now, or after the one that the thread is freeing now.
///
/// What is dropped may itself pin (it has an [`EpochBox`], or is a user's value that runs a transaction). In a thread
/// that is ending, whose participant is gone, crossbeam-epoch makes a new participant for each pin, and the first pin
/// of a participant collects: so each value freed would free the next one inside itself, and with some hundred of them
/// waiting the stack would be at its end.
///
/// # Safety
///
/// `free` may be called for `value`, once, by this thread.
unsafe fn free_in_turn(value: *mut (), free: Free) {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            NEXT.with(|next| next.set(std::ptr::null()));
        }
    }

    if cfg!(loom) {
        // A model's threads are one thread of the system.
        // SAFETY: the caller's promise.
        return unsafe { free(value) };
    }
    // SAFETY: null, or a local variable of a call of this function further up this thread's stack.
    if let Some(next) = unsafe { NEXT.with(Cell::get).as_ref() } {
        return next.borrow_mut().push((value, free));
    }
    let next = RefCell::new(Vec::new());
    NEXT.with(|first| first.set(&raw const next));
    // Dropped before `next`, by a panic too; what was to be freed after the value that panicked then stays for ever.
    let _done = Done;
    let mut now = Some((value, free));
    while let Some((value, free)) = now {
        // SAFETY: the promise of the caller who brought it.
        quietly(|| unsafe { free(value) });
        now = next.borrow_mut().pop();
    }
}

impl Default for Pin {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let retired = self.retired.get();
        if retired != 0 {
            let total = RETIRED.with(Cell::get) + retired;
            if total >= RETIRED_MAX {
                RETIRED.with(|before| before.set(0));
                self.guard.flush();
            } else {
                RETIRED.with(|before| before.set(total));
            }
        }
    }
}

/// A value on the heap that is freed through the epoch when its owner goes.
///
/// A transactional object keeps its segments in one, so that the object may be dropped while transactions
/// (the dropping thread's own included) still have items that point into it.
#[derive(Debug)]
pub struct EpochBox<T: Send + Sync + 'static> {
    value: std::ptr::NonNull<T>,
    bulky: bool,
}

// SAFETY: it owns a `T` and gives out shared references only.
unsafe impl<T: Send + Sync + 'static> Send for EpochBox<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync + 'static> Sync for EpochBox<T> {}

impl<T: Send + Sync + 'static> EpochBox<T> {
    /// Moves `value` to the heap.
    pub fn new(value: T) -> Self {
        Self { value: std::ptr::NonNull::from(Box::leak(Box::new(value))), bulky: false }
    }

    /// As [`new`](Self::new), for a value that owns much memory (an array, a table): its owner's drop asks
    /// for a collection at once instead of leaving it to later transactions.
    pub fn bulky(value: T) -> Self {
        let mut boxed = Self::new(value);
        boxed.bulky = true;
        boxed
    }
}

impl<T: Send + Sync + 'static> std::ops::Deref for EpochBox<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: owned, and retired only by `drop`.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Send + Sync + 'static> Drop for EpochBox<T> {
    fn drop(&mut self) {
        let pin = Pin::new();
        // SAFETY: from `Box::leak`; dropped once; nobody finds the object any more.
        unsafe { pin.retire(self.value.as_ptr()) };
        drop(pin);
        if self.bulky && !epoch::is_pinned() {
            // The epoch must advance twice, by one at each collection; other threads' pins may hold it back,
            // and then whoever pins next collects.
            for _ in 0..COLLECTIONS {
                epoch::pin().flush();
            }
        }
    }
}

/// Collections that free what was retired just before them, if nobody else is pinned.
const COLLECTIONS: usize = 4;

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_sync::Arc;
    use hotrow_sync::atomic::{AtomicUsize, Ordering};

    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_bulky_value_is_freed_at_once_if_nobody_is_pinned() {
        let freed = Arc::new(AtomicUsize::new(0));
        let mut rounds = 0;
        // Other tests of this process may be pinned for a moment.
        while freed.load(Ordering::Relaxed) == 0 {
            drop(EpochBox::bulky(Counted(freed.clone())));
            rounds += 1;
            assert!(rounds < 1_000_000);
        }
    }

    #[test]
    fn what_is_retired_is_freed_after_a_while_and_not_before_the_pin_goes() {
        let freed = Arc::new(AtomicUsize::new(0));
        let pin = Pin::new();
        let value = EpochBox::new(Counted(freed.clone()));
        drop(value);
        assert_eq!(freed.load(Ordering::Relaxed), 0);
        drop(pin);
        for _ in 0..10_000 {
            drop(EpochBox::new(Counted(freed.clone())));
        }
        assert!(freed.load(Ordering::Relaxed) > 5_000, "garbage is collected as it is made");
    }
}
