//! The newest commits, by the places that they have written: how far a transaction that only reads must wait for the device.
//!
//! A commit releases its locks before its record is on the device, so others may read what a crash could take back. Nobody is told of a
//! result before everything that it has read is durable. A transaction that writes waits for its own epoch, which is not smaller than
//! any that it has read. One that only reads need not wait for what it has not read: so each commit notes its epoch at the places that it
//! writes, before anybody can see that, and the reader looks at its places when it ends.
//!
//! A place is a segment; and for all that was found absent, the object as a whole, because what is absent has no segment. Rows have the
//! epoch beside them. Other places share words, so a reader may wait for a commit that it has not read from. It never misses one.

use crate::kernel::attempt::Attempt;
use crate::kernel::item::TouchedSegment;
use crate::kernel::protocol::Protocol;
use crate::kernel::read_log::LoggedRead;
use crate::memory::identity::ObjectMeta;
use crate::memory::versions::note_epoch;
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// The number of words.
const WORDS: usize = if cfg!(test) { 4 } else { 1 << 14 };

/// The epochs of the newest commits.
pub(crate) struct NewestCommits {
    words: Box<[AtomicU64]>,
}

impl NewestCommits {
    pub(crate) fn new() -> Self {
        Self { words: (0..WORDS).map(|_| AtomicU64::new(0)).collect() }
    }

    fn word(&self, place: u64) -> &AtomicU64 {
        // Fibonacci hashing: the upper bits depend on all of the place's.
        let hash = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.words[(hash >> (64 - WORDS.trailing_zeros())) as usize]
    }

    /// Notes an epoch, and returns the one that was there: no commit before has a greater one that has written the place.
    fn note(word: &AtomicU64, epoch: u64) -> u64 {
        // Relaxed, all accesses of words: the release by which the commit installs, and the acquire by which a reader finds its
        // write, order the two. Most commits find their epoch noted.
        let before = word.load(Ordering::Relaxed);
        if before < epoch { word.fetch_max(epoch, Ordering::Relaxed) } else { before }
    }

    /// As [`note`](Self::note), for a segment that has no word of its own.
    pub(crate) fn note_segment(&self, address: usize, epoch: u64) -> u64 {
        Self::note(self.word(segment_place(address)), epoch)
    }

    /// The epoch of a segment's newest commit, or a later one.
    fn of_segment<P: Protocol>(&self, segment: &TouchedSegment<P>) -> u64 {
        let word = segment.newest_commit().unwrap_or_else(|| self.word(segment_place(segment.address())));
        word.load(Ordering::Relaxed)
    }

    fn of_absence(&self, meta: &ObjectMeta) -> u64 {
        self.word(absence_place(meta)).load(Ordering::Relaxed)
    }
}

/// The place of a segment.
fn segment_place(address: usize) -> u64 {
    address as u64
}

/// The place of all that is absent in an object. No segment is in the upper half of the address space.
fn absence_place(meta: &ObjectMeta) -> u64 {
    !u64::from(meta.number())
}

impl<P: Protocol> Attempt<P> {
    /// The newest commits, if its engine has a log.
    fn newest_commits(&self) -> Option<&NewestCommits> {
        self.features.announcement.as_ref()?.snapshots().newest_commits()
    }

    /// The present epoch: no commit that it may have read from has a greater one.
    fn present_epoch(&self) -> u64 {
        self.features.announcement.as_ref().map_or(0, |announcement| announcement.snapshots().epoch())
    }

    /// The epoch of its transaction, which has ended: see [`Worker::epoch`](crate::Worker::epoch).
    pub(crate) fn epoch(&self) -> u64 {
        match (self.features.stamp, self.features.snapshot_read) {
            // It has seen the commits with stamps below its number.
            (_, number @ 1..) => number - 1,
            (_, 0) if self.newest_commits().is_some() && !self.features.has_written => self.features.seen,
            (Some(stamp), 0) => stamp.epoch(),
            (None, 0) => self.present_epoch(),
        }
    }

    /// Notes the places that the commit is going to write; but the segments if it keeps versions, which notes each of them.
    pub(crate) fn note_commit(&mut self, epoch: u64) {
        self.features.has_written = true;
        let Some(newest) = self.newest_commits() else { return };
        let (mut last_object, notes_later) = (None, self.features.kept.are_kept());
        for item in self.items.writes().iter().map(|id| self.items.get(*id)) {
            match item.touched.newest_commit() {
                _ if notes_later => {}
                Some(own) => note_epoch(own, epoch),
                None => _ = newest.note_segment(item.segment().addr().get(), epoch),
            }
            let place = absence_place(item.object().meta());
            if last_object.replace(place) != Some(place) {
                NewestCommits::note(newest.word(place), epoch);
            }
        }
    }

    /// Notes how new the newest commit is from which the attempt, which is about to forget what it has read, may have read.
    #[inline]
    pub(crate) fn note_seen(&mut self) {
        if self.features.logging.is_some() && !self.features.has_written && self.features.snapshot.is_none() {
            self.note_seen_now();
        }
    }

    #[cold]
    fn note_seen_now(&mut self) {
        let Some(newest) = self.newest_commits() else { return };
        let segments = self.items.iter().map(|item| &item.touched);
        let segments = segments.chain(self.reads.iter().map(LoggedRead::segment));
        let epochs = segments.map(|segment| newest.of_segment(segment));
        let absences = self.observed_objects().map(|meta| newest.of_absence(meta));
        let seen = epochs.chain(absences).max().unwrap_or(0);
        // The effects of datatypes with concurrency control of their own have no places.
        let elsewhere = if self.has_hooks() { self.present_epoch() } else { 0 };
        self.features.seen = self.features.seen.max(seen).max(elsewhere);
    }

    /// As [`note_seen`](Self::note_seen), for a segment that was read just now and of which the attempt keeps no trace.
    #[inline]
    pub(crate) fn note_seen_segment(&mut self, segment: &TouchedSegment<P>) {
        if self.features.logging.is_some() {
            self.note_seen_at(|newest| newest.of_segment(segment));
        }
    }

    /// As [`note_seen_segment`](Self::note_seen_segment), for something that was found absent just now.
    #[inline]
    pub(crate) fn note_seen_absence(&mut self, meta: &ObjectMeta) {
        if self.features.logging.is_some() {
            self.note_seen_at(|newest| newest.of_absence(meta));
        }
    }

    #[cold]
    fn note_seen_at(&mut self, epoch: impl FnOnce(&NewestCommits) -> u64) {
        let seen = self.newest_commits().map_or(0, epoch);
        self.features.seen = self.features.seen.max(seen);
    }
}
