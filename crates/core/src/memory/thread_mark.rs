//! The mark of a thread: whether it is inside a transaction, and whether the body has made an error with which to end it.

use hotrow_sync::{local, thread};
use std::cell::Cell;

local! {
    /// Bit 0: set while the thread is inside a transaction. Bit 1: set if the attempt's body has made an error with which
    /// to end it. The other bits: the thread's number, 0 before its first transaction.
    static THREAD: Cell<u64> = Cell::new(0);
}

const INSIDE: u64 = 1;
const ROLLS_BACK: u64 = 2;

/// Notes that the body of the thread's transaction, if it is inside one, has made an error with which to end it.
pub(crate) fn note_rollback() {
    THREAD.with(|thread| thread.set(thread.get() | (thread.get() & INSIDE) << 1));
}

/// Sets whether the body has made such an error, and returns what was set before.
pub(crate) fn set_rollback(noted: bool) -> bool {
    THREAD.with(|thread| {
        let word = thread.get();
        thread.set(word & !ROLLS_BACK | if noted { ROLLS_BACK } else { 0 });
        word & ROLLS_BACK != 0
    })
}

/// True if the body has made such an error.
#[inline(always)]
pub(crate) fn is_rolling_back() -> bool {
    THREAD.with(Cell::get) & ROLLS_BACK != 0
}

/// True if the current thread is inside a transaction.
pub(crate) fn in_transaction() -> bool {
    THREAD.with(Cell::get) & INSIDE != 0
}

/// Marks the current thread as inside a transaction. It holds the thread's number.
pub(crate) struct NestingGuard(pub(crate) u64);

impl NestingGuard {
    /// `None` if it is inside of one.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        THREAD.with(|thread| {
            let mut word = thread.get();
            // INVARIANT 15: A thread is inside one transaction at a time.
            if word & INSIDE != 0 {
                return None;
            }
            if word == 0 {
                word = thread::number() << 2;
            }
            thread.set(word | INSIDE);
            Some(Self(word >> 2))
        })
    }
}

impl Drop for NestingGuard {
    #[inline]
    fn drop(&mut self) {
        THREAD.with(|thread| thread.set(self.0 << 2));
    }
}

/// Calls a function as if the thread were outside of the transaction that is just ending.
pub(crate) fn outside(work: impl FnOnce()) {
    let word = THREAD.with(|thread| thread.replace(thread.get() & !(INSIDE | ROLLS_BACK)));
    work();
    THREAD.with(|thread| thread.set(word));
}
