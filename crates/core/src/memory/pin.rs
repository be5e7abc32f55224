//! Epoch reclamation.
//!
//! "Any state reachable from an item must stay in memory until its transaction ends" (sto §3.7, where RCU
//! does it). Here each attempt pins an epoch of crossbeam-epoch, chosen over seize because it has a single
//! small dependency, a feature for loom, and pins for the price of one fence.
//!
//! crossbeam-epoch collects at every 128th pin of a thread, at most 8 bags of 64 values, and does not count bytes. So a
//! thread asks for a collection when it has retired [`RETIRED_MAX`] values or [`RETIRED_BYTES_MAX`] bytes since its
//! last one. A value is freed after the epoch has advanced twice, and a pinned thread lets it advance only once. So a
//! thread that has retired many bytes collects several times, and pins anew each time.

mod kept;

use crate::memory::held_back::{hold_back, holds_back};
use crate::memory::identity::ObjectMeta;
use crate::memory::retained::{
    self, Holder, HolderKind, MemoryLimit, count_freed, count_retired, freed_here,
};
use crate::memory::users_code::contained;
use crossbeam_epoch::{self as epoch, Guard};
use hotrow_sync::local;
use hotrow_sync::thread::{self, quietly};
use kept::Kept;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

/// A pinned epoch: nothing retired after this moment is freed while the pin lives.
#[derive(Debug)]
pub struct Pin {
    guard: Guard,
    retired: Cell<u32>,
    retired_bytes: Cell<usize>,
    kept: Cell<Option<Kept>>,
    /// True if it is the pin of an attempt, which holds no locks any more when it drops the pin.
    is_attempts: bool,
}

/// Number of retired values that a thread gathers before it asks for a collection.
///
/// In a model every thread that has retired a value asks.
const RETIRED_MAX: u32 = if cfg!(loom) {
    1
} else if cfg!(test) {
    4
} else {
    256
};

/// Number of retired bytes that a thread gathers before it asks for a collection.
const RETIRED_BYTES_MAX: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// From this many retained bytes on, a thread that asks for a collection asks for several, because there is more to
/// free than this thread retires.
const BACKLOG_BYTES: u64 = 16 << 20;

/// Maximum number of collections in a row. Each frees at most 8 bags, which may hold a single value each.
const ROUNDS_MAX: usize = 16;

/// Maximum number of times that a thread yields its processor before it goes on.
const YIELDS_MAX: usize = 4;

local! {
    /// Values and bytes that the thread has retired since it last asked for a collection.
    static RETIRED: Cell<(u32, usize)> = Cell::new((0, 0));
}

impl Pin {
    /// Pins the current thread.
    #[inline]
    pub fn new() -> Self {
        let (retired, retired_bytes) = (Cell::new(0), Cell::new(0));
        Self { guard: epoch::pin(), retired, retired_bytes, kept: Cell::new(None), is_attempts: false }
    }

    /// Pins the current thread for an attempt, which drops the pin last.
    #[inline]
    pub(crate) fn of_attempt() -> Self {
        let mut pin = Self::new();
        pin.is_attempts = true;
        pin
    }

    /// Forgets what an index has kept under the pin: it may lead to nodes that an aborted region has made.
    pub(crate) fn forget_kept(&self) {
        self.kept.set(None);
    }

    /// Pins anew: what was retired until now may be freed. Nothing found under the pin may be used any more.
    pub(crate) fn renew(&mut self) {
        self.kept = Cell::new(None);
        self.guard.repin();
    }

    /// Returns the guard, for index code.
    #[inline]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Frees a boxed value once no thread that pinned before now can still see it.
    ///
    /// # Safety
    ///
    /// `pointer` comes from `Box::into_raw`, is retired once, and no thread that pins after this call can reach it.
    #[inline]
    pub unsafe fn retire<T: Send + 'static>(&self, pointer: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.retire_owning(pointer, 0) }
    }

    /// As [`retire`](Self::retire), for a value that owns this many bytes on the heap beside its own. They count for
    /// the limit and the reports of the process's retained memory.
    ///
    /// # Safety
    ///
    /// As for [`retire`](Self::retire).
    #[inline]
    pub unsafe fn retire_owning<T: Send + 'static>(&self, pointer: *mut T, heap_bytes: usize) {
        unsafe fn retire<T: Send + 'static>(pin: &Pin, pointer: *mut (), heap_bytes: usize) {
            // SAFETY: the promise of the one that has retired it.
            unsafe { pin.retire_owning(pointer.cast::<T>(), heap_bytes) };
        }

        // SAFETY: the caller's promise.
        if unsafe { hold_back(pointer.cast(), heap_bytes, retire::<T>) } {
            return;
        }
        let bytes = size_of::<T>().wrapping_add(heap_bytes);
        self.retired.set(self.retired.get() + 1);
        self.retired_bytes.set(self.retired_bytes.get().wrapping_add(bytes));
        let pointer = Unaliased(pointer);
        // SAFETY: the closure runs once, after all threads that could see the value have unpinned; `T` is `Send`, so it
        // may be dropped by any thread, and it borrows nothing.
        unsafe {
            self.guard.defer_unchecked(move || {
                let pointer = pointer;
                count_freed(bytes);
                free_in_turn(pointer.0.cast(), free::<T>);
            });
        }
    }
}

impl Pin {
    /// Drops a value when the epoch ends, and so not under a lock: users' code may be run by it. A value of a few words needs
    /// no memory until then.
    #[inline]
    pub fn drop_later<T: Send + 'static>(&self, value: T) {
        if !std::mem::needs_drop::<T>() {
            return;
        }
        if holds_back() {
            return hold_back_drop(value);
        }
        self.retired.set(self.retired.get() + 1);
        self.retired_bytes.set(self.retired_bytes.get().wrapping_add(size_of::<T>()));
        // SAFETY: the closure owns the value, which is `Send`, and borrows nothing.
        unsafe {
            self.guard.defer_unchecked(move || {
                count_freed(size_of::<T>());
                drop_in_turn(value);
            });
        }
    }

    /// As [`retire`](Self::retire), for bytes: a boxed slice.
    ///
    /// # Safety
    ///
    /// As for [`retire`](Self::retire).
    #[inline]
    pub unsafe fn retire_bytes(&self, bytes: *mut [u8]) {
        unsafe fn retire(pin: &Pin, first: *mut (), length: usize) {
            // SAFETY: the promise of the one that has retired it.
            unsafe { pin.retire_bytes(std::ptr::slice_from_raw_parts_mut(first.cast(), length)) };
        }

        let length = bytes.len();
        // SAFETY: the caller's promise.
        if unsafe { hold_back(bytes.cast(), length, retire) } {
            return;
        }
        self.retired.set(self.retired.get() + 1);
        self.retired_bytes.set(self.retired_bytes.get().wrapping_add(length));
        let first = Unaliased(bytes.cast::<u8>());
        // SAFETY: the closure runs once, after all threads that could see the bytes have unpinned. They come from a box of
        // this length, and nothing pins while they are freed.
        unsafe {
            self.guard.defer_unchecked(move || {
                let first = first;
                count_freed(length);
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(first.0, length)));
            });
        }
    }
}

/// A pointer that only one closure holds.
struct Unaliased<T>(*mut T);
// SAFETY: only the holder will use the pointer, and `T` is `Send`.
unsafe impl<T: Send> Send for Unaliased<T> {}

/// A function that frees a retired value.
type Free = unsafe fn(*mut ());

local! {
    /// Values to be freed after the one that the thread is freeing now; null while it frees none. (A word without a
    /// destructor, so it is there to the very end of the thread.)
    static NEXT: Cell<*const RefCell<Vec<(*mut (), Free)>>> = Cell::new(std::ptr::null());
}

/// Frees a boxed value, and contains a panic in its `Drop`. Otherwise the values behind it would not be freed, and the
/// panic would come out of an unrelated transaction.
///
/// # Safety
///
/// The pointer comes from a box of a `T` that nobody else uses.
unsafe fn free<T>(pointer: *mut ()) {
    // SAFETY: the caller's promise.
    let value = unsafe { Box::from_raw(pointer.cast::<T>()) };
    if std::mem::needs_drop::<T>() {
        contained(|| drop(value));
    }
}

/// Frees a value now, or after the one that the thread is freeing now.
///
/// A dropped value may itself pin (it has an [`EpochBox`], or is a user's value that runs a transaction). In a thread
/// that is ending, whose participant is gone, crossbeam-epoch makes a new participant for each pin, and the first pin
/// of a participant collects. So each value freed would free the next one inside itself, and some hundred of them would
/// overflow the stack.
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
    // Dropped before `next`.
    let _done = Done;
    let mut now = Some((value, free));
    while let Some((value, free)) = now {
        // SAFETY: the promise of the caller that queued it.
        quietly(|| unsafe { free(value) });
        now = next.borrow_mut().pop();
    }
}

/// Drops a value now, or after the one that the thread is freeing now, as [`free_in_turn`] does.
fn drop_in_turn<T: 'static>(value: T) {
    unsafe fn drop_at<T>(value: *mut ()) {
        // SAFETY: the pointer is that of a value which nobody else drops; see below.
        contained(|| unsafe { value.cast::<T>().drop_in_place() });
    }

    if !NEXT.with(Cell::get).is_null() {
        // SAFETY: from a box, and nobody else has it.
        return unsafe { free_in_turn(Box::into_raw(Box::new(value)).cast(), free::<T>) };
    }
    let mut value = ManuallyDrop::new(value);
    // SAFETY: the thread frees nothing, so the value is dropped before the call returns, and never again.
    unsafe { free_in_turn((&raw mut value).cast(), drop_at::<T>) };
}

impl Default for Pin {
    fn default() -> Self {
        Self::new()
    }
}

impl Pin {
    /// Counts the values retired under the pin, and collects if it is time.
    #[inline(never)]
    fn settle(&mut self) {
        let bytes = self.retired_bytes.get();
        count_retired(bytes);
        let (before, bytes_before) = RETIRED.with(Cell::get);
        let (total, bytes_total) = (before + self.retired.get(), bytes_before.saturating_add(bytes));
        if total >= RETIRED_MAX || bytes_total >= RETIRED_BYTES_MAX {
            RETIRED.with(|retired| retired.set((0, 0)));
            // A panic in it is not this transaction's, which may have committed.
            contained(|| self.collect(bytes_total >= RETIRED_BYTES_MAX));
        } else {
            RETIRED.with(|retired| retired.set((total, bytes_total)));
        }
    }

    #[cold]
    fn collect(&mut self, by_bytes: bool) {
        self.guard.flush();
        if !cfg!(loom) && (by_bytes || retained::was_seen_to_retain(BACKLOG_BYTES)) {
            self.collect_more();
        }
        if !(by_bytes && self.is_attempts) {
            return retained::watch();
        }
        // Yields to threads that are pinned but do not run, because there are more threads than processors. They keep
        // the values from being freed that others retire by the mebibyte.
        for _ in 0..YIELDS_MAX {
            if !retained::is_worth_yielding(BACKLOG_BYTES) {
                break;
            }
            thread::yield_now();
            self.collect_more();
        }
    }

    /// Lets epochs pass, and collects as long as that frees something, within bounds.
    fn collect_more(&mut self) {
        let mut freed = freed_here();
        for round in 1..ROUNDS_MAX {
            // The pin is being dropped: nothing is read under it any more.
            self.guard.repin();
            self.guard.flush();
            let before = std::mem::replace(&mut freed, freed_here());
            if round >= COLLECTIONS && freed == before {
                break;
            }
        }
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        if self.retired.get() != 0 {
            self.settle();
        }
    }
}

/// Frees memory once no thread that pinned before now can still see it; its bytes count as retained until then.
///
/// # Safety
///
/// Only threads that have pinned before can use the captures of `free`. `free` may be sent to another thread and
/// borrows nothing. It is called once, when these threads have unpinned.
pub unsafe fn retire_with(guard: &Guard, bytes: usize, free: impl FnOnce() + 'static) {
    if holds_back() {
        return hold_back_call(bytes, free);
    }
    count_retired(bytes);
    // SAFETY: the caller's promise.
    unsafe {
        guard.defer_unchecked(move || {
            count_freed(bytes);
            quietly(free);
        });
    }
}

/// Notes a value that is to be dropped later, in a region.
#[cold]
fn hold_back_drop<T: Send + 'static>(value: T) {
    unsafe fn drop_later<T: Send + 'static>(pin: &Pin, value: *mut (), _: usize) {
        // SAFETY: from the box below, and called once.
        pin.drop_later(*unsafe { Box::from_raw(value.cast::<T>()) });
    }

    // SAFETY: the box is this entry's.
    unsafe { hold_back(Box::into_raw(Box::new(value)).cast(), 0, drop_later::<T>) };
}

/// Notes what [`retire_with`] is to do, in a region.
#[cold]
fn hold_back_call<F: FnOnce() + 'static>(bytes: usize, free: F) {
    unsafe fn retire<F: FnOnce() + 'static>(pin: &Pin, free: *mut (), bytes: usize) {
        // SAFETY: from the box below, and called once; the rest is the promise of the one that has retired.
        unsafe { retire_with(pin.guard(), bytes, *Box::from_raw(free.cast::<F>())) };
    }

    // SAFETY: the box is this entry's.
    unsafe { hold_back(Box::into_raw(Box::new(free)).cast(), bytes, retire::<F>) };
}

/// Frees all that can be freed now. Each round lets the epoch advance once, unless the thread is pinned.
pub(crate) fn collect_all() {
    for _ in 0..COLLECTIONS {
        epoch::pin().flush();
    }
}

/// A pin for a walk over an object outside of transactions, which may take long: it is
/// [reported](crate::RetainedMemory) while it lasts.
#[derive(Debug)]
pub struct Walk {
    /// Taken by `drop`, before the holder is released.
    pin: Option<Pin>,
    holder: &'static Holder,
}

impl Walk {
    /// Pins the current thread for a walk over the object.
    pub fn new(object: &ObjectMeta) -> Self {
        let kind = HolderKind::Walk { object: object.name().to_owned() };
        let holder = retained::register(object.engine().of_open(), kind);
        holder.name_thread();
        holder.begin(0);
        Self { pin: Some(Pin::new()), holder }
    }

    /// Returns the pin.
    pub fn pin(&self) -> &Pin {
        self.pin.as_ref().expect("taken by `drop` only")
    }

    /// Checks that the walk may go on.
    ///
    /// # Errors
    ///
    /// [`MemoryLimit`]: it retains too much memory.
    pub fn may_go_on(&self) -> Result<(), Box<MemoryLimit>> {
        if self.holder.is_told() { Err(retained::told_error(self.holder)) } else { Ok(()) }
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.holder.end();
        drop(self.pin.take());
        if retained::is_anybody_noticed() {
            retained::after_holder(self.holder);
        }
        retained::release(self.holder);
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

    /// As [`new`](Self::new), for a value that owns much memory (an array, a table): its owner's drop asks for a
    /// collection at once instead of leaving it to later transactions.
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
        // SAFETY: from `Box::leak`; dropped once; no thread finds the object any more.
        unsafe { pin.retire(self.value.as_ptr()) };
        drop(pin);
        if self.bulky && !epoch::is_pinned() {
            // The epoch must advance twice, by one at each collection. Other threads' pins may hold it back; the next
            // thread that pins collects then.
            collect_all();
        }
    }
}

/// Number of collections that free values retired just before them, if no other thread is pinned.
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
    fn retired_values_are_freed_after_a_while_and_not_before_the_pin_goes() {
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
