//! State that the log's handles, its workers' buffers and its logger share.

use crate::buffer::BufferState;
use crate::files::Files;
use crate::storage::Storage;
use crate::waiting::Wakers;
use crate::{CatalogEntry, Failure, Options};
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::{Mutex, lock};
use std::sync::Arc;

/// The claim to a storage for as long as a call lasts.
pub(crate) struct Claimed<'s>(&'s dyn Storage);

impl<'s> Claimed<'s> {
    pub(crate) fn new(storage: &'s dyn Storage) -> std::io::Result<Self> {
        storage.lock()?;
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
        storage.lock()?;
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
    pub(crate) catalog: Mutex<Vec<CatalogEntry>>,
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
    /// True if the next batch begins a new segment.
    pub(crate) rotate: AtomicBool,
    /// True if the segments have as many bytes as they may.
    pub(crate) out_of_space: AtomicBool,
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
    /// Bytes that were written when the newest checkpoint was begun.
    pub(crate) bytes_before_checkpoint: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        claim: Claim,
        options: Options,
        catalog: Vec<CatalogEntry>,
        files: Files,
        durable: u64,
    ) -> Self {
        Self {
            options,
            claim: Mutex::new(Some(Arc::new(claim))),
            catalog: Mutex::new(catalog),
            files: Mutex::new(files),
            buffers: Mutex::new(Vec::new()),
            departed_epoch: AtomicU64::new(0),
            durable: AtomicU64::new(durable),
            wanted: AtomicU64::new(0),
            appended: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            rotate: AtomicBool::new(false),
            out_of_space: AtomicBool::new(false),
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

    /// The storage, unless the log has ended.
    pub(crate) fn claim(&self) -> Result<Arc<Claim>, Failure> {
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

    /// Wakes the logger, whatever it waits for.
    pub(crate) fn wake_logger(&self) {
        self.idle.notify_all();
        self.interval.notify_all();
    }

    /// True if the logger must not wait for the time of the next batch.
    pub(crate) fn is_urgent(&self) -> bool {
        // Acquire: `closing` pairs with the release in `Log::close`, `hurry` with that in `Buffer::append`, `wanted` with
        // that in `want`. The event's fences order these loads with the stores before `wake_logger`.
        self.has_failed()
            || self.closing.load(Ordering::Acquire)
            || self.hurry.load(Ordering::Acquire)
            || self.wanted.load(Ordering::Acquire) > self.durable_epoch()
    }
}
