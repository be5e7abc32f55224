//! State that the log's handles, its workers' buffers and its logger share.

use crate::buffer::BufferState;
use crate::catalog::Catalog;
use crate::files::Files;
use crate::layout::{BLOCK, SEGMENT_HEADER};
use crate::logger::ahead_bytes;
use crate::storage::{Storage, with_retries};
use crate::waiting::Wakers;
use crate::{Failure, Options};
use hotrow_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::process::Process;
use hotrow_sync::{Mutex, lock};
use std::sync::Arc;

/// The claim to a storage for as long as a call lasts.
pub(crate) struct Claimed<'s>(&'s dyn Storage);

impl<'s> Claimed<'s> {
    pub(crate) fn new(storage: &'s dyn Storage) -> std::io::Result<Self> {
        with_retries(|| storage.lock())?;
        Ok(Self(storage))
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// The claim to a storage. Ends with its last owner.
pub(crate) struct Claim(Arc<dyn Storage>);

impl Claim {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> std::io::Result<Self> {
        with_retries(|| storage.lock())?;
        Ok(Self(storage))
    }

    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.0
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// State of a running log.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// `None` once the logger has ended.
    claim: Mutex<Option<Arc<Claim>>>,
    /// Identity of the database.
    pub(crate) identity: u128,
    /// The process that has opened the log. A fork of it has no logger.
    process: Process,
    /// Locked before `files`.
    pub(crate) catalog: Mutex<Catalog>,
    /// Generation of the catalog.
    pub(crate) generation: AtomicU32,
    pub(crate) files: Mutex<Files>,
    pub(crate) buffers: Mutex<Vec<Arc<BufferState>>>,
    /// Largest epoch of the commits of buffers that are gone.
    pub(crate) departed_epoch: AtomicU64,
    /// All commits of this epoch and earlier ones are durable.
    durable: AtomicU64,
    /// Largest epoch that somebody waits for.
    pub(crate) wanted: AtomicU64,
    /// True if something may have been appended since the logger last cleared it.
    pub(crate) appended: AtomicBool,
    /// True if the next batch must not wait for its time, because a buffer is half full.
    pub(crate) hurry: AtomicBool,
    /// True if the logger is to begin a new segment.
    pub(crate) rotate: AtomicBool,
    /// Bytes of all segments.
    space: AtomicU64,
    /// Bytes that records take in segments at most that were admitted and are not written. Only if space is limited.
    reserved: AtomicU64,
    pub(crate) closing: AtomicBool,
    /// True once `failure` is set.
    failed: AtomicBool,
    /// True once the logger has ended, for whatever reason.
    ended: AtomicBool,
    failure: Mutex<Option<Failure>>,
    /// Number of the logger's thread; 0 before it runs.
    pub(crate) logger_thread: AtomicU64,
    /// The logger waits on it for something to do.
    pub(crate) idle: Event,
    /// The logger waits on it for the time of the next batch.
    pub(crate) interval: Event,
    /// All others wait on it, for durability, room, or the logger's end.
    pub(crate) progress: Event,
    pub(crate) wakers: Mutex<Wakers>,
    pub(crate) counts: Counts,
}

/// Counters of [`Report`](crate::Report). Only read for reports, so all accesses are relaxed.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) batches: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) checkpoints_failed: AtomicU64,
}

impl Shared {
    pub(crate) fn new(claim: Claim, options: Options, catalog: Catalog, files: Files, durable: u64) -> Self {
        Self {
            options,
            claim: Mutex::new(Some(Arc::new(claim))),
            identity: catalog.identity,
            process: Process::current(),
            generation: AtomicU32::new(catalog.generation),
            catalog: Mutex::new(catalog),
            files: Mutex::new(files),
            buffers: Mutex::new(Vec::new()),
            departed_epoch: AtomicU64::new(0),
            durable: AtomicU64::new(durable),
            wanted: AtomicU64::new(0),
            appended: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            rotate: AtomicBool::new(false),
            space: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            logger_thread: AtomicU64::new(0),
            idle: Event::new(),
            interval: Event::new(),
            progress: Event::new(),
            wakers: Mutex::new(Wakers::default()),
            counts: Counts::default(),
        }
    }

    /// An error in a fork of the process that has opened the log.
    pub(crate) fn check_process(&self) -> Result<(), Failure> {
        if self.process.is_current() { Ok(()) } else { Err(Failure::Forked) }
    }

    /// The storage, unless the log has ended.
    pub(crate) fn claim(&self) -> Result<Arc<Claim>, Failure> {
        self.check_process()?;
        lock(&self.claim).clone().ok_or_else(|| self.failure().unwrap_or(Failure::Closed))
    }

    pub(crate) fn durable_epoch(&self) -> u64 {
        // Acquire: pairs with the release in `publish`.
        self.durable.load(Ordering::Acquire)
    }

    /// Declares an epoch durable and wakes all that wait.
    pub(crate) fn publish(&self, epoch: u64) {
        // Release: pairs with the acquire in `durable_epoch`, so that what the logger did is seen by those it tells.
        self.durable.store(epoch, Ordering::Release);
        self.tell();
    }

    /// Wakes all that wait for the logger's progress.
    pub(crate) fn tell(&self) {
        self.progress.notify_all();
        self.wake_futures();
    }

    pub(crate) fn has_failed(&self) -> bool {
        // Acquire: pairs with the release in `fail`.
        self.failed.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    /// Makes the log fail for good. The first failure is the one that is kept.
    #[cold]
    pub(crate) fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        // Release: pairs with the acquire in `has_failed`; the failure itself is under its mutex.
        self.failed.store(true, Ordering::Release);
        self.wake_logger();
        self.tell();
    }

    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with the release in `end`.
        self.ended.load(Ordering::Acquire)
    }

    /// Notes that the logger does nothing any more.
    pub(crate) fn end(&self) {
        drop(lock(&self.claim).take());
        // Release: pairs with the acquire in `has_ended`, so that the storage is free for those who see it.
        self.ended.store(true, Ordering::Release);
        self.tell();
    }

    /// An error if the log can do nothing more.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.has_failed() {
            return Err(self.failure().unwrap_or(Failure::Closed));
        }
        if self.has_ended() { Err(Failure::Closed) } else { Ok(()) }
    }

    /// Bytes of all segments.
    pub(crate) fn space(&self) -> u64 {
        // Acquire: pairs with the release in `note_space`.
        self.space.load(Ordering::Acquire)
    }

    /// True if space is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.options.space_bytes_max != u64::MAX
    }

    /// Counts the bytes of the segments.
    pub(crate) fn note_space(&self) {
        let files = lock(&self.files);
        // Release: pairs with the acquire in `space`.
        self.space.store(files.space(), Ordering::Release);
        drop(files);
        if self.is_limited() {
            self.progress.notify_all();
        }
    }

    /// Reserves space for records. Returns false if there is not as much.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        // AcqRel: pairs with itself and with `unreserve`. What is written is counted as space before it is no more reserved, so that the
        // sum is never too small.
        let mut reserved = self.reserved.load(Ordering::Acquire);
        loop {
            let more = reserved.saturating_add(bytes);
            let used = more.saturating_add(self.space()).saturating_add(self.space_of_ends());
            if used > self.options.space_bytes_max {
                return false;
            }
            match self.reserved.compare_exchange(reserved, more, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => reserved = now,
            }
        }
    }

    /// Adds to what is reserved, whether there is space or not: the record has come.
    pub(crate) fn reserve_anyway(&self, bytes: u64) {
        // AcqRel: as in `reserve`.
        self.reserved.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Gives back what was reserved for records that are written, or did not come.
    pub(crate) fn unreserve(&self, bytes: u64) {
        if self.is_limited() {
            // AcqRel: as in `reserve`.
            self.reserved.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Bytes that the log needs beside records: the header of a segment that a checkpoint asks for, the zeros that are left behind the one
    /// before it, and the frame that closes the log.
    pub(crate) fn space_of_ends(&self) -> u64 {
        (SEGMENT_HEADER + 2 * BLOCK) as u64 + ahead_bytes(&self.options)
    }

    /// Bytes of the segments, and of what was reserved in them.
    pub(crate) fn used(&self) -> u64 {
        // Acquire: as in `reserve`.
        self.reserved.load(Ordering::Acquire).saturating_add(self.space())
    }

    /// Wakes the logger, whatever it waits for.
    pub(crate) fn wake_logger(&self) {
        self.idle.notify_all();
        self.interval.notify_all();
    }

    /// True if the logger must not wait for the time of the next batch.
    pub(crate) fn is_urgent(&self) -> bool {
        // Acquire: `closing` pairs with the release in `Log::close`, `hurry` with that in `Buffer::append`, `wanted` with
        // that in `want`, `rotate` with that of a checkpoint's beginning. The event's fences order these loads with the stores before `wake_logger`.
        self.has_failed()
            || self.closing.load(Ordering::Acquire)
            || self.hurry.load(Ordering::Acquire)
            || self.rotate.load(Ordering::Acquire)
            || self.wanted.load(Ordering::Acquire) > self.durable_epoch()
    }
}
