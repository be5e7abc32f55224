//! The commit: two halves, and the place between them.
//!
//! 1. [`Protocol::prepare`] takes the locks that are missing and validates reads, predicates and structure. After it
//!    nothing can fail.
//! 2. [`CommitSteps`] run: a log, hooks. Then the values to be replaced are kept for snapshots (`snapshot`). A commit that
//!    draws no stamp pays only one predictable branch.
//! 3. [`Protocol::finish`] installs each write and releases everything.
//!
//! [`Prepared`] is the witness that the first half has succeeded. Only the core makes one, and a write can be installed
//! only through it.
//!
//! # The stamp
//!
//! A commit's [`CommitStamp`] is its place in the order of a log and of snapshots: *if one transaction must come after
//! another, its stamp is not smaller*; with an order within the epoch, it is larger. So the protocol draws it ([`Attempt::draw_stamp`]) in the first half, between two
//! moments:
//!
//! - *after* everything to be written is locked, so that the next transaction to write or read these segments draws
//!   later;
//! - *before* reads and structure are validated, or become replaceable. A transaction that overwrites one of the reads
//!   locks it after the validation, and therefore draws later. (A stamp drawn between the halves would be too late: the
//!   overwriting transaction may have committed by then, with a smaller stamp. Silo §4.4 reads its epoch at the same
//!   moment.)
//!
//! `tictoc` serializes in logical time, which may contradict this order; while commits are stamped, it validates as `occ`
//! does.

use crate::attempt::{Attempt, WorkerId};
use crate::item::{Flags, Item, ItemId};
use crate::protocol::Protocol;
use crossbeam_utils::CachePadded;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// A commit's place in the order of log and snapshots: an epoch, which is a [snapshot's number](crate::Snapshot::number), and the
/// order within it, where the engine has [`CommitSteps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitStamp(u64);

/// Bits of the order within an epoch. The order goes on from one epoch to the next.
const ORDER_BITS: u32 = 40;

impl CommitStamp {
    /// The epoch.
    pub fn epoch(self) -> u64 {
        self.0 >> ORDER_BITS
    }

    /// The order within the epoch.
    pub fn order(self) -> u64 {
        self.0 & ((1 << ORDER_BITS) - 1)
    }
}

/// The steps between the halves of an engine's commits. Each is called once for a commit that writes, in the order of
/// the methods. Nothing of the commit is installed then, and everything that it will write is locked. A panic rolls the
/// transaction back.
///
/// They must not begin a transaction, and must not wait for one.
pub trait CommitSteps<P: Protocol>: Send + Sync + 'static {
    /// Puts the writes into the worker's log buffer.
    fn log(&self, _commit: &Committing<'_, P>) {}

    /// Runs the transaction's own hooks.
    fn before_commit(&self, _commit: &Committing<'_, P>) {}
}

/// A commit between its halves.
pub struct Committing<'a, P: Protocol> {
    attempt: &'a Attempt<P>,
    stamp: CommitStamp,
}

impl<'a, P: Protocol> Committing<'a, P> {
    /// The commit's stamp.
    pub fn stamp(&self) -> CommitStamp {
        self.stamp
    }

    /// The worker that commits.
    pub fn worker(&self) -> WorkerId {
        self.attempt.worker()
    }

    /// The items to be written, in the order of their first write.
    pub fn writes(&self) -> impl Iterator<Item = &'a Item<P>> + use<'a, P> {
        let items = &self.attempt.items;
        items.writes().iter().map(|id| items.get(*id))
    }
}

/// The steps of an engine, and the order of its commits.
pub(crate) struct Commits<P: Protocol> {
    steps: Box<dyn CommitSteps<P>>,
    order: CachePadded<AtomicU64>,
}

impl<P: Protocol> Commits<P> {
    pub(crate) fn new(steps: Box<dyn CommitSteps<P>>) -> Arc<Self> {
        Arc::new(Self { steps, order: CachePadded::new(AtomicU64::new(0)) })
    }

    /// Runs the steps between the halves.
    #[cold]
    fn between_halves(&self, attempt: &Attempt<P>, stamp: CommitStamp) {
        let commit = Committing { attempt, stamp };
        self.steps.log(&commit);
        self.steps.before_commit(&commit);
    }
}

impl<P: Protocol> Attempt<P> {
    /// Draws the commit's stamp, unless the attempt has one. [`Protocol::prepare`] calls it for an attempt that writes,
    /// once everything to be written is locked and before reads are validated: see [`CommitStamp`]. True if the engine
    /// stamps its commits now: then reads must be validated, whatever else may show that nobody has changed them.
    #[inline(always)]
    pub fn draw_stamp(&mut self) -> bool {
        let Some(announcement) = &mut self.announcement else { return false };
        match announcement.begin() {
            None => false,
            Some(epoch) => {
                self.note_stamp(epoch);
                true
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn note_stamp(&mut self, epoch: u64) {
        if self.stamp.is_none() {
            // After the epoch, so that of two commits of which one must come after the other that one's order is larger, too.
            let order =
                self.commits.as_ref().map_or(0, |commits| commits.order.fetch_add(1, Ordering::SeqCst));
            self.stamp = Some(CommitStamp(epoch << ORDER_BITS | order & ((1 << ORDER_BITS) - 1)));
        }
    }

    /// True if the engine stamps its commits now. A transaction that has read a write of a stamped commit sees it.
    #[inline]
    pub fn are_commits_stamped(&self) -> bool {
        self.announcement.as_ref().is_some_and(|announcement| announcement.snapshots().is_stamping())
    }

    /// Runs the steps between the halves of a commit.
    #[inline(always)]
    pub(crate) fn between_halves(&mut self) {
        if self.stamp.is_some() {
            self.between_halves_now();
        }
    }

    #[cold]
    #[inline(never)]
    fn between_halves_now(&mut self) {
        if self.items.writes().is_empty() {
            return;
        }
        if let (Some(commits), Some(stamp)) = (self.commits.clone(), self.stamp) {
            commits.between_halves(self, stamp);
        }
        self.keep_versions();
    }

    /// Ends what [`draw_stamp`](Self::draw_stamp) has begun: all is installed (`committed`), or nothing will be. A transaction
    /// [in pieces](crate::Pieces) is announced from its first piece until its last one.
    #[inline(always)]
    pub(crate) fn end_stamped(&mut self, committed: bool) {
        let stays =
            P::ALLOWS_CHOPPING && if committed { self.piece.goes_on() } else { self.piece.is_later() };
        if let Some(announcement) = &mut self.announcement
            && !stays
        {
            announcement.end();
        }
        self.end_keeping();
    }
}

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
        mut before: impl FnMut(&Item<P>),
        after: impl FnMut(&Item<P>),
    ) -> &'a mut Attempt<P> {
        let before = |item: &mut Item<P>| {
            before(item);
            if cfg!(debug_assertions) {
                item.mark_as(Flags::INSTALLED);
            }
        };
        // SAFETY: prepared, so that the writes are the attempt's alone; `self` is consumed, so none was installed.
        unsafe { self.attempt.install_all(before, after) };
        self.attempt
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
        let note = |item: &mut Item<P>| {
            assert!(item.is(Flags::WRITE) && !item.is(Flags::INSTALLED), "each write is installed once");
            item.mark_as(Flags::INSTALLED);
        };
        // SAFETY: prepared, so that the write is the attempt's alone; it has not been installed before, says `note`.
        unsafe { self.attempt.install(id, note) };
    }
}
