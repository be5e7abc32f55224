//! A mutex for critical sections that are shorter than a change of threads.

use crate::atomic::{AtomicBool, Ordering};
use crate::spin::Spin;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A mutex for a structure that is changed in a few hundred nanoseconds. Its waiters spin, and yield the processor now and
/// then. They do not park: waking a thread takes longer than all that is done under the lock, so that with parking all
/// waiters would be woken one after the other as soon as two have met.
///
/// A panic of its holder releases it.
#[derive(Default)]
pub struct ShortLock<T: ?Sized> {
    is_locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the lock's holder only, on one thread at a time.
unsafe impl<T: ?Sized + Send> Sync for ShortLock<T> {}
// SAFETY: it owns its value.
unsafe impl<T: ?Sized + Send> Send for ShortLock<T> {}

impl<T: ?Sized> fmt::Debug for ShortLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortLock").finish_non_exhaustive()
    }
}

impl<T> ShortLock<T> {
    /// A mutex that guards `value`.
    pub fn new(value: T) -> Self {
        Self { is_locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
}

impl<T: ?Sized> ShortLock<T> {
    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> ShortGuard<'_, T> {
        let mut spin = Spin::new();
        loop {
            // Acquire: pairs with the release in the guard's drop, so that what the holder before has done is visible.
            let taken = self.is_locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return ShortGuard { lock: self, _value: PhantomData };
            }
            // Reads until the lock is free, because a failed exchange takes the cache line from the holder.
            while self.is_locked.load(Ordering::Relaxed) {
                spin.turn_or_yield();
            }
        }
    }
}

/// The lock of a [`ShortLock`].
pub struct ShortGuard<'l, T: ?Sized> {
    lock: &'l ShortLock<T>,
    /// It may be shared only if the value may.
    _value: PhantomData<&'l mut T>,
}

impl<T: ?Sized> fmt::Debug for ShortGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortGuard").finish_non_exhaustive()
    }
}

impl<T: ?Sized> Deref for ShortGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard's owner holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for ShortGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard's owner holds the lock, and `&mut self` makes the reference exclusive.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ShortGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `lock`.
        self.lock.is_locked.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::thread;

    #[test]
    fn one_thread_at_a_time_holds_the_lock_and_a_panic_releases_it() {
        let lock = ShortLock::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| *lock.lock() += 1));
            }
        });
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("while holding it");
        }));
        assert!(panic.is_err());
        assert_eq!(*lock.lock(), 4_000);
    }
}
