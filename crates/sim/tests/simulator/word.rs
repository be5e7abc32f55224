//! A word of shared memory, and locks built from it.

use std::cell::{Cell, RefCell};

use hotrow_sim::{AccessKind, access, htm, park_if, pause, unpark_one};

/// A word on a cache line of its own, so that the allocator does not decide which words share a line.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Word(pub(crate) Cell<u64>);

impl Word {
    pub(crate) fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    pub(crate) fn load(&self) -> u64 {
        access(self.address(), 8, AccessKind::Load);
        self.0.get()
    }

    /// Loads the word and ignores its value.
    pub(crate) fn touch(&self) {
        access(self.address(), 8, AccessKind::Load);
    }

    pub(crate) fn store(&self, value: u64) {
        access(self.address(), 8, AccessKind::Store);
        // SAFETY: the words outlive the simulations of these tests, and are shared through `Cell` only.
        unsafe { htm::log_write(self.0.as_ptr().cast(), 8) };
        self.0.set(value);
    }

    pub(crate) fn add(&self, value: u64) -> u64 {
        access(self.address(), 8, AccessKind::ReadModifyWrite);
        self.0.replace(self.0.get() + value)
    }

    pub(crate) fn swap(&self, value: u64) -> u64 {
        access(self.address(), 8, AccessKind::ReadModifyWrite);
        self.0.replace(value)
    }
}

pub(crate) fn words(count: usize) -> Vec<Word> {
    (0..count).map(|_| Word::default()).collect()
}

/// A mutex that parks: 0 is free, 1 held, 2 held with waiters.
#[derive(Default)]
pub(crate) struct Mutex(pub(crate) Word);

impl Mutex {
    pub(crate) fn lock(&self) {
        if self.0.swap(1) == 0 {
            return;
        }
        while self.0.swap(2) != 0 {
            park_if(self.0.address(), None, || self.0.0.get() == 2);
        }
    }

    pub(crate) fn unlock(&self) {
        if self.0.swap(0) == 2 {
            unpark_one(self.0.address());
        }
    }
}

/// The queue lock of Mellor-Crummey and Scott: each waiter spins on a line of its own.
#[derive(Default)]
pub(crate) struct QueueLock {
    /// The core that arrived last, plus one; 0 if the queue is empty.
    pub(crate) last: Word,
    pub(crate) arrived: RefCell<Vec<usize>>,
}

#[derive(Default)]
pub(crate) struct Waiter {
    /// The core that arrived next, plus one.
    next: Word,
    must_wait: Word,
}

impl QueueLock {
    pub(crate) fn lock(&self, waiters: &[Waiter], core: usize) {
        waiters[core].next.store(0);
        waiters[core].must_wait.store(1);
        let before = self.last.swap(core as u64 + 1);
        self.arrived.borrow_mut().push(core);
        if before != 0 {
            waiters[before as usize - 1].next.store(core as u64 + 1);
            while waiters[core].must_wait.load() == 1 {
                pause();
            }
        }
    }

    pub(crate) fn unlock(&self, waiters: &[Waiter], core: usize) {
        if waiters[core].next.load() == 0 {
            access(self.last.address(), 8, AccessKind::ReadModifyWrite);
            if self.last.0.get() == core as u64 + 1 {
                return self.last.0.set(0);
            }
            while waiters[core].next.load() == 0 {
                pause();
            }
        }
        waiters[waiters[core].next.load() as usize - 1].must_wait.store(0);
    }
}
