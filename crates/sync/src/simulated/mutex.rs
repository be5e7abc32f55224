//! A mutex and a condition variable on which cores park.

use super::key;
use hotrow_sim::{AccessKind, access};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
use std::time::Duration;

/// A mutex that cores of a simulation can wait for. All cores run on one thread of the operating system, so with
/// the standard library's mutex that thread would wait for itself.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

/// The number of checks of a held mutex before a core parks, as in `std::sync::Mutex` on Linux.
const SPINS: u32 = 100;

/// The lock of a [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'m, T: ?Sized> {
    guard: ManuallyDrop<std::sync::MutexGuard<'m, T>>,
    mutex: &'m Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex that guards `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Consumes the mutex and returns its value.
    ///
    /// # Errors
    ///
    /// As the standard library's.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock if it is free.
    ///
    /// # Errors
    ///
    /// As the standard library's.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if hotrow_sim::is_active() {
            leave_region();
            access(key(self), size_of::<u32>(), AccessKind::ReadModifyWrite);
        }
        let held = |guard| MutexGuard { guard: ManuallyDrop::new(guard), mutex: self };
        self.0.try_lock().map(held).map_err(|error| match error {
            TryLockError::Poisoned(error) => PoisonError::new(held(error.into_inner())).into(),
            TryLockError::WouldBlock => TryLockError::WouldBlock,
        })
    }

    /// Waits for the lock and takes it.
    ///
    /// # Errors
    ///
    /// As the standard library's. (In a simulation a panic of one core can poison a mutex that another core holds,
    /// because the standard library takes both for one thread.)
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let key = key(self);
        let held = |guard| MutexGuard { guard: ManuallyDrop::new(guard), mutex: self };
        if !hotrow_sim::is_active() {
            return self.0.lock().map(held).map_err(|error| PoisonError::new(held(error.into_inner())));
        }
        leave_region();
        let mut spins = SPINS;
        loop {
            let kind =
                if spins == SPINS || spins == 0 { AccessKind::ReadModifyWrite } else { AccessKind::Load };
            access(key, size_of::<u32>(), kind);
            match self.0.try_lock() {
                Ok(guard) => return Ok(held(guard)),
                Err(TryLockError::Poisoned(error)) => {
                    return Err(PoisonError::new(held(error.into_inner())));
                }
                // As the standard library's mutex: spins briefly before it parks.
                Err(TryLockError::WouldBlock) if spins > 0 => {
                    spins -= 1;
                    hotrow_sim::pause();
                }
                Err(TryLockError::WouldBlock) => {
                    hotrow_sim::park_if(key, None, || {
                        matches!(self.0.try_lock(), Err(TryLockError::WouldBlock))
                    });
                }
            }
        }
    }
}

/// Aborts the core's region, if it is in one: what a mutex guards would not be undone.
fn leave_region() {
    hotrow_sim::htm::abort_by_system();
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let key = key(self.mutex);
        access(key, size_of::<u32>(), AccessKind::Store);
        // SAFETY: dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        hotrow_sim::unpark_one(key);
    }
}

/// A condition variable on which cores of a simulation wait, as on a futex: a waiter parks unless a notification
/// came after it read `notified`.
#[derive(Debug, Default)]
pub struct Condvar {
    outside: std::sync::Condvar,
    /// The number of notifications. Its accesses are no steps, because the operating system does this work within
    /// one system call.
    notified: AtomicU32,
}

impl Condvar {
    /// Releases the lock, waits for a notification (or wakes up spuriously), and takes the lock again.
    ///
    /// # Errors
    ///
    /// As the standard library's.
    pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> LockResult<MutexGuard<'m, T>> {
        self.wait_until(guard, None)
            .map_err(|error| PoisonError::new(error.into_inner().0))
            .map(|(guard, ())| guard)
    }

    /// As [`wait`](Self::wait), but for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As the standard library's.
    pub fn wait_timeout<'m, T>(
        &self,
        guard: MutexGuard<'m, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'m, T>, ())> {
        self.wait_until(guard, Some(timeout))
    }

    fn wait_until<'m, T>(
        &self,
        mut guard: MutexGuard<'m, T>,
        timeout: Option<Duration>,
    ) -> LockResult<(MutexGuard<'m, T>, ())> {
        let mutex = guard.mutex;
        if !hotrow_sim::is_active() {
            // SAFETY: the guard is forgotten right after, so it is not used or dropped again.
            let inner = unsafe { ManuallyDrop::take(&mut guard.guard) };
            std::mem::forget(guard);
            let inner = match timeout {
                None => self.outside.wait(inner),
                Some(timeout) => match self.outside.wait_timeout(inner, timeout) {
                    Ok((inner, _)) => Ok(inner),
                    Err(error) => Err(PoisonError::new(error.into_inner().0)),
                },
            };
            let held = |guard| (MutexGuard { guard: ManuallyDrop::new(guard), mutex }, ());
            return inner.map(held).map_err(|error| PoisonError::new(held(error.into_inner())));
        }
        // Relaxed: all cores run on one thread.
        let seen = self.notified.load(Ordering::Relaxed);
        let deadline = timeout.map(|timeout| (crate::clock::now() + timeout).nanoseconds());
        drop(guard);
        hotrow_sim::park_if(key(self), deadline, || self.notified.load(Ordering::Relaxed) == seen);
        match mutex.lock() {
            Ok(guard) => Ok((guard, ())),
            Err(error) => Err(PoisonError::new((error.into_inner(), ()))),
        }
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.outside.notify_all();
        self.notified.fetch_add(1, Ordering::Relaxed);
        hotrow_sim::unpark_all(key(self));
    }
}
