//! The stamp of a commit: its place in the order of log and snapshots, and the steps of an engine between the halves of its commits.
//!
//! A commit's [`CommitStamp`] is its place in the order of a log and of snapshots: *if one transaction must come after
//! another, its stamp is not smaller*; with an order within the epoch, it is larger. So the protocol draws it
//! ([`Attempt::draw_stamp`]) in the first half:
//!
//! - *after* everything to be written is locked, so that the next transaction to write or read these segments draws
//!   later;
//! - *after* predicates are checked, because they are answered by present values, whose commits have drawn their stamps by then;
//! - *before* reads and structure are validated, or become replaceable. A transaction that overwrites one of the reads
//!   locks it after the validation, and therefore draws later. (A stamp drawn between the halves would be too late: the
//!   overwriting transaction may have committed by then, with a smaller stamp. Silo §4.4 reads its epoch at the same
//!   moment.)
//!
//! `tictoc` serializes in logical time, which may contradict this order; while commits are stamped, it validates as `occ`
//! does.

use crate::kernel::abort::Misuse;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::Item;
use crate::kernel::object_access::Stop;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::memory::identity::WorkerId;
use crossbeam_utils::CachePadded;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::pin::Pin;

/// A commit's place in the order of log and snapshots: an epoch, which is a [snapshot's number](crate::Snapshot::number), and the
/// order within it, where the engine has [`CommitSteps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitStamp {
    epoch: u64,
    order: u64,
}

impl CommitStamp {
    /// Makes the stamp of a commit that a log has recovered.
    pub fn new(epoch: u64, order: u64) -> Self {
        Self { epoch, order }
    }

    /// The epoch.
    pub fn epoch(self) -> u64 {
        self.epoch
    }

    /// The order within the epoch, which goes on from one epoch to the next. 0 only where the engine has no steps.
    pub fn order(self) -> u64 {
        self.order
    }
}

/// A worker's way to its engine's log.
pub trait WorkerLog: Send {
    /// Waits until there is room for another record. Called before a transaction that may write, which holds nothing yet.
    ///
    /// # Errors
    ///
    /// The reason, if the log takes no more records. The transaction runs all the same, and cannot commit if it writes.
    fn admit(&mut self) -> Result<(), String>;

    /// Checks that the log takes records, before a commit has one.
    ///
    /// # Errors
    ///
    /// The reason, if it takes no more.
    fn check(&self) -> Result<(), String>;

    /// Appends the record of a commit. It must neither wait nor fail: the commit's locks are held, and it cannot be undone. A
    /// log that takes no more drops it, and [`acknowledge`](Self::acknowledge) says so.
    fn append(&mut self, stamp: CommitStamp, entries: &[u8]);

    /// Waits until all records of the epoch, and of those before, that have been appended are durable, or buffered, as the log promises.
    ///
    /// # Errors
    ///
    /// The reason, if they never will be.
    fn acknowledge(&mut self, epoch: u64) -> Result<(), String>;

    /// True if [`admit`](Self::admit) would not wait.
    ///
    /// # Errors
    ///
    /// The reason, if the log takes no more records.
    fn has_room(&self) -> Result<bool, String>;

    /// As [`acknowledge`](Self::acknowledge), as a future; `None` if there is nothing to wait for.
    fn acknowledgement(&self, epoch: u64)
    -> Option<Pin<Box<dyn Future<Output = Result<(), String>> + Send>>>;

    /// Returns what calls functions when records are on the device. It outlives the worker.
    fn followers(&self) -> Arc<dyn LogFollowers>;
}

/// Functions that a log calls when records are on the device.
pub trait LogFollowers: Send + Sync {
    /// Has a function called when all records of the epoch, and of those before, that have been appended are on the device. It is
    /// dropped if they never will be. Returns at once. The function may wait for the log.
    fn when_durable(&self, epoch: u64, function: Box<dyn FnOnce() + Send>);
}

/// The steps between the halves of an engine's commits. Each is called once for a commit that writes, in the order of
/// the methods. Nothing of the commit is installed then, and everything that it will write is locked.
///
/// They must not begin a transaction, and must not wait for one.
pub trait CommitSteps<P: Protocol>: Send + Sync + 'static {
    /// Runs the transaction's own hooks. A panic rolls the transaction back.
    fn before_commit(&self, _commit: &Committing<'_, P>) {}

    /// Learns that nothing can fail any more: the commit is going to install. It must not panic.
    fn will_install(&self, _commit: &Committing<'_, P>) {}

    /// True if commits are logged: the engine's workers call [`worker_log`](Self::worker_log).
    fn has_log(&self) -> bool {
        false
    }

    /// True if commits are acknowledged when a device has them, unless their transactions ask for less.
    fn awaits_device(&self) -> bool {
        false
    }

    /// Makes a new worker's way to the log. `Some` if there is [one](Self::has_log).
    fn worker_log(&self) -> Option<Box<dyn WorkerLog>> {
        None
    }
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
        Arc::new(Self { steps, order: CachePadded::new(AtomicU64::new(1)) })
    }

    /// Draws the next order. After the epoch, so that of two commits of which one must come after the other that one's order is
    /// larger, too.
    pub(crate) fn draw(&self, epoch: u64) -> CommitStamp {
        CommitStamp { epoch, order: self.order.fetch_add(1, Ordering::SeqCst) }
    }

    pub(crate) fn continue_after(&self, order: u64) {
        self.order.store(order + 1, Ordering::SeqCst);
    }

    pub(crate) fn has_log(&self) -> bool {
        self.steps.has_log()
    }

    pub(crate) fn awaits_device(&self) -> bool {
        self.steps.awaits_device()
    }

    pub(crate) fn worker_log(&self) -> Option<Box<dyn WorkerLog>> {
        self.steps.worker_log()
    }
}

impl<P: Protocol> Attempt<P> {
    /// Draws the commit's stamp, unless the attempt has one. [`Steps::prepare`](crate::Steps::prepare) calls it for an attempt that writes,
    /// once everything to be written is locked and predicates are checked, and before reads are validated: see
    /// [`CommitStamp`]. True if the engine stamps its commits now: then reads must be validated, whatever else may show that
    /// nobody has changed them.
    #[inline(always)]
    pub fn draw_stamp(&mut self) -> bool {
        let Some(announcement) = &mut self.features.announcement else { return false };
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
        self.hears.add(Moments::BETWEEN);
        if self.features.stamp.is_none() {
            let unordered = CommitStamp { epoch, order: 0 };
            self.features.stamp =
                Some(self.features.commits.as_ref().map_or(unordered, |commits| commits.draw(epoch)));
        }
    }

    /// Forgets the stamp, after an attempt that has failed and is to draw another one.
    pub fn forget_stamp(&mut self) {
        self.features.stamp = None;
    }

    /// The epoch of the transaction's stamp; 0 if none is drawn.
    #[inline]
    pub fn stamp_epoch(&self) -> u64 {
        self.features.stamp.map_or(0, CommitStamp::epoch)
    }

    /// True if the engine stamps its commits now. A transaction that has read a write of a stamped commit sees it.
    #[inline]
    pub fn are_commits_stamped(&self) -> bool {
        self.features.announcement.as_ref().is_some_and(|announcement| announcement.snapshots().is_stamping())
    }

    /// Writes the log's entries, runs the engine's steps, begins the keeping of versions, and appends the record.
    ///
    /// # Errors
    ///
    /// If an object cannot be logged, or the log takes no more: the attempt cannot commit.
    pub(super) fn log_and_keep(&mut self) -> Result<(), Box<Stop>> {
        if self.features.logging.is_some() {
            self.write_entries().map_err(|misuse| Box::new(Stop::Misuse(misuse)))?;
        }
        // A piece after others must commit: they have.
        if let Some(logging) = &mut self.features.logging
            && !logging.entries.is_empty()
            && !self.features.piece.is_later()
        {
            logging.check().map_err(|reason| Box::new(Stop::Refused(reason)))?;
        }
        if let Some((steps, commit)) = self.committing() {
            steps.before_commit(&commit);
        }
        self.begin_keeping();
        // INVARIANT 13: Nothing fails once a commit begins to append its record to the log.
        if self.features.logging.is_some()
            && let Some(stamp) = self.features.stamp
        {
            self.note_commit(stamp.epoch());
        }
        if let Some((steps, commit)) = self.committing() {
            steps.will_install(&commit);
        }
        if let (Some(logging), Some(stamp)) = (&mut self.features.logging, self.features.stamp)
            && !logging.entries.is_empty()
        {
            logging.log.append(stamp, &logging.entries);
        }
        Ok(())
    }

    /// The engine's steps, and the commit between its halves.
    fn committing(&self) -> Option<(&dyn CommitSteps<P>, Committing<'_, P>)> {
        Some((
            &*self.features.commits.as_ref()?.steps,
            Committing { attempt: self, stamp: self.features.stamp? },
        ))
    }

    /// Has the objects write the log's entries. A panic of users' code (of a row's serialization) rolls the transaction back.
    fn write_entries(&mut self) -> Result<(), Misuse> {
        let Self { items, features, pin: Some(pin), .. } = self else { return Ok(()) };
        let Some(logging) = &mut features.logging else { return Ok(()) };
        logging.entries.clear();
        for id in items.writes() {
            let item = items.get(*id);
            // The log has forgotten what is closed.
            if item.object().meta().is_closed() {
                continue;
            }
            // SAFETY: the item has a pending write of its object, which is locked, as all that is written is.
            unsafe { item.object().log(item, pin, &mut logging.entries) }.map_err(Misuse::Unsupported)?;
        }
        Ok(())
    }

    /// Ends what [`draw_stamp`](Self::draw_stamp) has begun: all is installed (`committed`), or nothing will be. A transaction
    /// [in pieces](crate::Pieces) is announced from its first piece until its last one.
    #[inline(always)]
    pub(crate) fn end_stamped(&mut self, committed: bool) {
        let stays = P::ALLOWS_CHOPPING
            && if committed { self.features.piece.goes_on() } else { self.features.piece.is_later() };
        if let Some(announcement) = &mut self.features.announcement
            && !stays
        {
            announcement.end();
        }
        self.end_keeping();
    }
}
