//! The commit: two halves, and the place between them.
//!
//! 1. [`Protocol::prepare`] takes the locks that are missing and validates reads, predicates and structure. After it
//!    nothing can fail.
//! 2. Objects write the log's entries, and [`CommitSteps`] run. Then nothing can fail any more, and the record is appended to the
//!    worker's log ([`WorkerLog`](crate::WorkerLog)). A commit that draws no stamp pays only one predictable branch.
//! 3. [`Protocol::finish`] installs each write, having kept the value that it replaces for snapshots that may need it (`snapshot`), and
//!    releases everything.
//!
//! [`Prepared`] is the witness that the first half has succeeded. Only the core makes one, and a write can be installed
//! only through it.

use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::protocol::Protocol;

/// The witness that the first half of a commit has succeeded: [`Protocol::finish`] installs with it.
pub struct Prepared<'a, P: Protocol> {
    attempt: &'a mut Attempt<P>,
}

impl<'a, P: Protocol> Prepared<'a, P> {
    /// Makes the witness. [`Protocol::prepare`] must have returned `Ok`, with no other call since.
    #[inline(always)]
    pub(crate) fn new(attempt: &'a mut Attempt<P>) -> Self {
        Self { attempt }
    }

    /// The attempt.
    #[inline(always)]
    pub fn attempt(&mut self) -> &mut Attempt<P> {
        self.attempt
    }

    /// Installs all pending writes, in the order of first write, and calls `before` and `after` around each.
    #[inline(always)]
    pub fn install_all(
        self,
        before: impl FnMut(&Item<P>),
        after: impl FnMut(&Item<P>),
    ) -> &'a mut Attempt<P> {
        // SAFETY: prepared, so that the writes are the attempt's alone; `self` is consumed, so none was installed.
        unsafe { self.attempt.install_all(before, after) };
        self.attempt
    }

    /// Installs all pending writes, and calls `after` after each: first those for which `is_first` is true, the last of them first, then
    /// the others in the order of first write.
    #[inline(always)]
    pub fn install_first(
        self,
        is_first: impl Fn(&Item<P>) -> bool,
        mut after: impl FnMut(&Item<P>),
    ) -> &'a mut Attempt<P> {
        if !self.attempt.items.any_write(&is_first) {
            return self.install_all(|_| (), after);
        }
        let attempt = self.attempt;
        let count = attempt.items.writes().len();
        for (first, at) in (0..count).rev().map(|at| (true, at)).chain((0..count).map(|at| (false, at))) {
            let id = attempt.items.writes()[at];
            let item = attempt.items.get_mut(id);
            if !item.is(Flags::INSTALLED) && (!first || is_first(item)) {
                item.mark_as(Flags::INSTALLED);
                // SAFETY: prepared, so that the write is the attempt's alone; none is installed twice, by its mark.
                unsafe { attempt.install(id) };
                after(attempt.items.get(id));
            }
        }
        attempt
    }

    /// Installs the pending writes one by one, in an order that the protocol chooses.
    #[inline(always)]
    pub fn one_by_one(self) -> OneByOne<'a, P> {
        OneByOne { attempt: self.attempt }
    }
}

/// Installs pending writes one by one, each once.
pub struct OneByOne<'a, P: Protocol> {
    attempt: &'a mut Attempt<P>,
}

impl<'a, P: Protocol> OneByOne<'a, P> {
    /// The attempt.
    #[inline(always)]
    pub fn attempt(&mut self) -> &mut Attempt<P> {
        self.attempt
    }

    /// Returns the attempt, when all writes are installed.
    #[inline(always)]
    pub fn into_attempt(self) -> &'a mut Attempt<P> {
        self.attempt
    }

    /// Installs the pending write of an item.
    ///
    /// # Panics
    ///
    /// If the item has no pending write, or it was installed before.
    #[inline(always)]
    pub fn install(&mut self, id: ItemId) {
        let item = self.attempt.items.get_mut(id);
        assert!(item.is(Flags::WRITE) && !item.is(Flags::INSTALLED), "each write is installed once");
        item.mark_as(Flags::INSTALLED);
        // SAFETY: prepared, so that the write is the attempt's alone; it has not been installed before, says its mark.
        unsafe { self.attempt.install(id) };
    }
}
