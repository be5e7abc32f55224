//! A running log.

use crate::shared::Shared;
use crate::{Buffer, CatalogEntry, Failure, WhenDurable};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::thread::JoinHandle;
use hotrow_sync::{Mutex, lock, thread};
use std::sync::Arc;

/// A running log. Cheap to clone; when the last clone is dropped, the log is closed.
#[derive(Clone)]
pub struct Log {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    /// The logger's thread, if the log has started it.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Figures of a running log. Bytes and counts since it was started, unless said otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Report {
    /// All commits of this epoch and earlier ones are durable.
    pub durable_epoch: u64,
    /// Number of batches written.
    pub batches: u64,
    /// Number of records written.
    pub records: u64,
    /// Bytes written to segments, padding included.
    pub bytes_written: u64,
    /// Number of syncs of segments.
    pub syncs: u64,
    /// Number of segments that recovery would read.
    pub segments: u64,
    /// Bytes of these segments.
    pub space_bytes: u64,
    /// As in the options. A checkpoint should be made well before the space is used up.
    pub space_bytes_max: u64,
    /// Bytes of frames that the newest checkpoint left, or that were written since, by this log or, before it was opened, by an earlier one.
    pub bytes_since_checkpoint: u64,
    /// Number of checkpoints made.
    pub checkpoints: u64,
    /// Number of checkpoints that were begun and not made.
    pub checkpoints_failed: u64,
    /// Epoch of the newest checkpoint.
    pub checkpoint_epoch: Option<u64>,
    /// Bytes of the newest checkpoint; 0 if there is none.
    pub checkpoint_bytes: u64,
    /// Bytes in the buffers of all workers.
    pub buffered_bytes: u64,
}

impl Log {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { handle: Arc::new(Handle { shared, thread: Mutex::new(None) }) }
    }

    pub(crate) fn keep_thread(&self, thread: JoinHandle<()>) {
        *lock(&self.handle.thread) = Some(thread);
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Makes a buffer for one worker.
    pub fn buffer(&self) -> Buffer {
        Buffer::new(Arc::clone(self.shared()))
    }

    /// Adds a structure to the catalog, or replaces the entry with the same number. Durable on return. To be called before
    /// any record that names the structure is appended.
    ///
    /// # Errors
    ///
    /// The log's failure. A failed write of the catalog makes the log fail.
    pub fn put_catalog(&self, entry: CatalogEntry) -> Result<(), Failure> {
        self.shared().put_catalog(entry)
    }

    /// Gives out the number of a new structure, which may be entered at any time later, before or after those with larger numbers. One that is
    /// not entered is given out again when the log is opened the next time, unless a larger one was.
    pub fn reserve_structure(&self) -> u32 {
        self.shared().reserve_structure()
    }

    /// Takes a structure out of the catalog, for good: recovery passes over what the log has of it. Durable on return. To be called when no
    /// more records name it. Its number is not used again.
    ///
    /// # Errors
    ///
    /// Those of [`put_catalog`](Self::put_catalog).
    pub fn drop_structure(&self, structure: u32) -> Result<(), Failure> {
        self.shared().drop_structure(structure)
    }

    /// Waits until all commits of `epoch` and of earlier epochs are durable.
    ///
    /// The epoch is that of a commit that has ended, or one that the engine reaches soon: the logger advances the engine's
    /// epochs until it is reached.
    ///
    /// # Errors
    ///
    /// The log's failure if it fails before; [`Failure::Closed`] if it ends before.
    pub fn wait_durable(&self, epoch: u64) -> Result<(), Failure> {
        self.shared().wait_durable(epoch)
    }

    /// A future of [`wait_durable`](Self::wait_durable).
    pub fn when_durable(&self, epoch: u64) -> WhenDurable {
        WhenDurable::new(Arc::clone(self.shared()), epoch)
    }

    /// As [`wait_durable`](Self::wait_durable), for the records that were appended before the call: it does not wait for an epoch that has
    /// none.
    ///
    /// # Errors
    ///
    /// As [`wait_durable`](Self::wait_durable).
    pub fn wait_appended(&self, epoch: u64) -> Result<(), Failure> {
        self.shared().wait_durable(self.shared().appended_up_to(epoch))
    }

    /// A future of [`wait_appended`](Self::wait_appended).
    pub fn when_appended(&self, epoch: u64) -> WhenDurable {
        self.when_durable(self.shared().appended_up_to(epoch))
    }

    /// The largest epoch up to which [`wait_appended`](Self::wait_appended) would wait.
    pub fn last_appended(&self, epoch: u64) -> u64 {
        self.shared().appended_up_to(epoch)
    }

    /// As [`wait_durable`](Self::wait_durable), but does not ask the logger to hurry.
    ///
    /// # Errors
    ///
    /// As [`wait_durable`](Self::wait_durable).
    pub fn wait_written(&self, epoch: u64) -> Result<(), Failure> {
        self.shared().wait_written(epoch)
    }

    /// True if [`wait_appended`](Self::wait_appended) would not wait.
    pub fn is_settled(&self, epoch: u64) -> bool {
        self.durable_epoch() >= self.shared().appended_up_to(epoch)
    }

    /// Largest epoch of which all commits are durable, and those of all earlier epochs.
    pub fn durable_epoch(&self) -> u64 {
        self.shared().durable_epoch()
    }

    /// Waits until everything that was appended before the call is durable.
    ///
    /// # Errors
    ///
    /// As [`wait_durable`](Self::wait_durable).
    pub fn flush(&self) -> Result<(), Failure> {
        self.shared().flush()
    }

    /// The reason for which the log has failed, if it has; [`Failure::Forked`] in a fork.
    pub fn failure(&self) -> Option<Failure> {
        let shared = self.shared();
        if shared.has_failed() { shared.failure() } else { shared.check_process().err() }
    }

    /// Figures of the moment.
    pub fn report(&self) -> Report {
        let shared = self.shared();
        let buffered_bytes = {
            let buffers = lock(&shared.buffers);
            // Relaxed: a figure of the moment.
            buffers.iter().map(|buffer| buffer.bytes.load(Ordering::Relaxed) as u64).sum()
        };
        let files = lock(&shared.files);
        let counts = &shared.counts;
        // Relaxed, all: counters.
        Report {
            durable_epoch: shared.durable_epoch(),
            batches: counts.batches.load(Ordering::Relaxed),
            records: counts.records.load(Ordering::Relaxed),
            bytes_written: counts.bytes.load(Ordering::Relaxed),
            syncs: counts.syncs.load(Ordering::Relaxed),
            segments: files.segments.len() as u64,
            space_bytes: files.space(),
            space_bytes_max: shared.options.space_bytes_max,
            bytes_since_checkpoint: files.frame_bytes(),
            checkpoints: counts.checkpoints.load(Ordering::Relaxed),
            checkpoints_failed: counts.checkpoints_failed.load(Ordering::Relaxed),
            checkpoint_epoch: files.checkpoint.map(|checkpoint| checkpoint.epoch),
            checkpoint_bytes: files.checkpoint.map_or(0, |checkpoint| checkpoint.bytes),
            buffered_bytes,
        }
    }

    /// Makes everything that was appended durable and ends the logger. Later calls return the same.
    ///
    /// # Errors
    ///
    /// The log's failure, if it has failed.
    pub fn close(&self) -> Result<(), Failure> {
        self.handle.close()
    }
}

impl Shared {
    fn flush(&self) -> Result<(), Failure> {
        self.wait_durable(self.appended_up_to(u64::MAX))
    }

    /// An epoch, or the largest one of any record, if that is smaller and not durable.
    pub(crate) fn appended_up_to(&self, epoch: u64) -> u64 {
        if self.durable_epoch() >= epoch {
            return epoch;
        }
        let buffers = lock(&self.buffers);
        let live = buffers.iter().map(|buffer| lock(&buffer.records).last_epoch).max();
        // Acquire: pairs with the release of the logger, which adds a buffer's epoch before it forgets the buffer.
        let last = live.unwrap_or(0).max(self.departed_epoch.load(Ordering::Acquire));
        epoch.min(last)
    }
}

impl Handle {
    fn close(&self) -> Result<(), Failure> {
        self.shared.check_process()?;
        self.request_close();
        self.shared.progress.wait_until(|| self.shared.has_ended());
        self.join();
        self.shared.failure().map_or(Ok(()), Err)
    }

    fn request_close(&self) {
        // Release: pairs with the acquire in `Shared::is_urgent` and in the logger.
        self.shared.closing.store(true, Ordering::Release);
        self.shared.wake_logger();
    }

    fn join(&self) {
        // A fork has no such thread, and its memory of one must not be waited for.
        if self.shared.check_process().is_err() {
            std::mem::forget(lock(&self.thread).take());
            return;
        }
        let thread = lock(&self.thread).take();
        // Relaxed: if it is this thread's number, this thread has stored it. The engine's epochs, which the logger drops when
        // it ends, may hold the last clone of the log.
        if self.shared.logger_thread.load(Ordering::Relaxed) == thread::number() {
            return;
        }
        if let Some(thread) = thread {
            // The logger catches its panics and keeps them as the log's failure.
            drop(thread.join());
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.request_close();
        self.join();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("report", &self.report()).finish_non_exhaustive()
    }
}
