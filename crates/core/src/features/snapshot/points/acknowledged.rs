//! Points up to which everything is acknowledged, for engines whose commits are acknowledged when a device has them.
//!
//! The log closes a batch by advancing the clock. While snapshots are in use, that makes a point, and when the batch is on the device,
//! the point is *acknowledged*: every commit before it is durable. A snapshot on it shows nothing that a crash could take back, and all
//! that anybody was told of, unless somebody was told early (a commit that does not wait for the device). Whoever tells early notes the
//! epoch ([`Snapshots::tell`]), so that a snapshot looks if the acknowledged point is behind that. Then, and if no point was made for the
//! last batch, the snapshot is one of now, and its transactions wait for the device when they end. Where that happens all the time, because all
//! go on before the device has their commits, acknowledged points serve nobody, and no versions are kept for them.
//!
//! # Invariants
//!
//! - An acknowledged point is the last one whose batch the log has published: the log calls [`Snapshots::acknowledge`] before it
//!   publishes, and where no point was made for the batch, there is no acknowledged point any more.
//! - The versions of the acknowledged point, and of the one that the log is writing, are kept ([`Snapshots::open_numbers`]). A reader
//!   shows its number first, and then looks if the point is still there. All points are hidden by `ready` alone
//!   ([`Snapshots::stop_keeping`]).

use super::super::moment::LastMoment;
use super::{Opened, Snapshots};
use hotrow_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use hotrow_sync::lock;

/// The points for which a log answers.
pub(super) struct AcknowledgedPoints {
    /// True if commits are acknowledged when they are on a device.
    are_awaited: bool,
    /// The number of the newest one; 0 if there is none.
    newest: AtomicU64,
    /// The number of the point whose commits the log is writing; 0 if there is none.
    coming: AtomicU64,
    /// The largest epoch of which somebody was told.
    told: AtomicU64,
    /// When a snapshot was last asked for that shows acknowledged commits only.
    last_use: LastMoment,
    /// The number of points, one after the other, that were behind what somebody had been told when they were acknowledged.
    vain: AtomicU32,
    /// When there were too many of them.
    paused: LastMoment,
    /// True if the log has failed, so that there will be no other one.
    is_last: AtomicBool,
}

/// The number of points in vain, one after the other, after which no more are made for a while.
const VAIN_MAX: u32 = 8;

impl AcknowledgedPoints {
    pub(super) fn new(are_awaited: bool) -> Self {
        let (newest, coming, told, last_use) = Default::default();
        let (vain, paused, is_last) = Default::default();
        Self { are_awaited, newest, coming, told, last_use, vain, paused, is_last }
    }

    /// True if the next batch of the log should get a point, and the points there are stay.
    pub(super) fn are_in_use(&self) -> bool {
        (self.last_use.is_recent() && !self.paused.is_recent())
            || self.is_last.load(Ordering::Relaxed) && self.newest() != 0
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    pub(super) fn coming(&self) -> u64 {
        self.coming.load(Ordering::SeqCst)
    }

    /// True if a point has all commits of which somebody was told.
    fn has_all_told(&self, number: u64) -> bool {
        // SeqCst: pairs with `tell`.
        self.told.load(Ordering::SeqCst) < number
    }

    /// Notes the point of the next batch. The caller holds the lock of the pending points, as in the other functions that change it.
    pub(super) fn begin(&self, number: u64) {
        self.coming.store(number, Ordering::SeqCst);
    }

    /// Forgets all: their versions are kept no longer.
    pub(super) fn forget(&self) {
        self.newest.store(0, Ordering::SeqCst);
        self.coming.store(0, Ordering::SeqCst);
    }
}

impl Snapshots {
    /// True if commits are acknowledged when they are on a device.
    pub(crate) fn awaits_device(&self) -> bool {
        self.acknowledged.are_awaited
    }

    /// Notes that all commits with epochs below the number of a batch are durable. Called before anybody is told.
    pub(crate) fn acknowledge(&self, number: u64) {
        let AcknowledgedPoints { newest, coming, vain, paused, .. } = &self.acknowledged;
        let _pending = lock(&self.pending);
        let is_point = coming.load(Ordering::Relaxed) == number;
        if is_point {
            // Relaxed: changed under the lock.
            let is_useful = self.acknowledged.has_all_told(number);
            let count = if is_useful { 0 } else { vain.load(Ordering::Relaxed) + 1 };
            // After the pause, one more is enough.
            vain.store(count.min(VAIN_MAX - 1), Ordering::Relaxed);
            if count == VAIN_MAX {
                paused.note();
            }
        }
        // In this order: `open_numbers` reads them in the other one.
        newest.store(if is_point { number } else { 0 }, Ordering::SeqCst);
        coming.store(0, Ordering::SeqCst);
    }

    /// Notes that there will be no other acknowledged point: the last one stays.
    pub(crate) fn end_acknowledging(&self) {
        self.acknowledged.is_last.store(true, Ordering::Relaxed);
    }

    /// Notes that somebody is told of a commit with this epoch, or has read from one.
    #[inline]
    pub(crate) fn tell(&self, epoch: u64) {
        let told = &self.acknowledged.told;
        // SeqCst: before whatever the teller does next, and so before a snapshot of somebody who was told.
        if told.load(Ordering::SeqCst) < epoch {
            told.fetch_max(epoch, Ordering::SeqCst);
        }
    }

    /// Opens a snapshot of the newest acknowledged point. `None` if there is none, or it does not have all that was told.
    pub(crate) fn open_acknowledged(&self) -> Option<Opened> {
        let AcknowledgedPoints { are_awaited, newest, last_use, .. } = &self.acknowledged;
        if !are_awaited {
            return None;
        }
        last_use.note();
        loop {
            let number = newest.load(Ordering::SeqCst);
            if !self.acknowledged.has_all_told(number) {
                return None;
            }
            let opened = self.claim(number);
            // The fence orders the slot before the second look, as in `open`.
            fence(Ordering::SeqCst);
            if self.ready.load(Ordering::SeqCst) == 0 {
                return None;
            }
            if newest.load(Ordering::SeqCst) == number {
                return Some(opened);
            }
        }
    }
}
