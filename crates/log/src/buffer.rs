//! The buffers in which workers leave the records of their commits.

use crate::around::AroundWaits;
use crate::layout::{BLOCK, FRAME_HEADER, push_record};
use crate::shared::Shared;
use crate::{Failure, RECORD_BYTES_MAX, Stamp};
use hotrow_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use hotrow_sync::clock;
use hotrow_sync::{Mutex, lock};
use std::sync::Arc;

/// Bytes that a record takes in a segment beside its own, if it is alone in its frame.
pub(crate) const RECORD_OVERHEAD: u64 = (FRAME_HEADER + BLOCK - 1) as u64;

/// Bytes that the first record of a worker is expected to have.
const EXPECTED_BYTES: u64 = 1 << 10;

/// Records of one worker that the logger has not taken yet.
#[derive(Default)]
pub(crate) struct BufferState {
    pub(crate) records: Mutex<Records>,
    /// Bytes of the records. Written under the mutex.
    pub(crate) bytes: AtomicUsize,
    /// True once the worker has given the buffer up.
    pub(crate) abandoned: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Records {
    pub(crate) list: RecordList,
    /// Largest epoch of all records that were ever appended.
    pub(crate) last_epoch: u64,
}

/// Records behind each other, and the epochs that they have: nobody need read them to sort them by epochs.
#[derive(Default)]
pub(crate) struct RecordList {
    pub(crate) bytes: Vec<u8>,
    pub(crate) runs: Vec<Run>,
}

/// Records of one epoch that follow each other.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    pub(crate) epoch: u64,
    pub(crate) records: u32,
    pub(crate) bytes: usize,
}

impl RecordList {
    /// Appends a record. Returns its bytes.
    #[inline]
    fn push(&mut self, stamp: Stamp, entries: &[u8]) -> usize {
        let before = self.bytes.len();
        push_record(&mut self.bytes, stamp, entries);
        let bytes = self.bytes.len() - before;
        match self.runs.last_mut() {
            Some(run) if run.epoch == stamp.epoch => {
                run.records += 1;
                run.bytes += bytes;
            }
            _ => self.runs.push(Run { epoch: stamp.epoch, records: 1, bytes }),
        }
        bytes
    }

    /// Appends a run of another list.
    pub(crate) fn push_run(&mut self, run: Run, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.runs.push(run);
    }

    /// Takes all records out, and keeps some memory for others.
    pub(crate) fn clear(&mut self, kept_bytes_max: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(kept_bytes_max);
        self.runs.clear();
    }
}

/// The buffer of one worker.
///
/// A buffer may be dropped with records in it: they are written all the same.
pub struct Buffer {
    shared: Arc<Shared>,
    state: Arc<BufferState>,
    /// Space that is reserved for the next record. Only if space is limited.
    reserved: u64,
    /// Space that the next record is expected to take: as much as the largest one of the last few.
    expected: u64,
}

impl Buffer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let state = Arc::new(BufferState::default());
        lock(&shared.buffers).push(Arc::clone(&state));
        Self { shared, state, reserved: 0, expected: EXPECTED_BYTES + RECORD_OVERHEAD }
    }

    /// Waits until there is room for another commit. To be called before a transaction takes locks.
    ///
    /// While the buffer has more than [`Options::buffer_bytes_max`](crate::Options::buffer_bytes_max) bytes it waits for
    /// the logger. While the log, with the records that are not written yet, would have more than
    /// [`Options::space_bytes_max`](crate::Options::space_bytes_max) bytes it waits for a checkpoint.
    ///
    /// # Errors
    ///
    /// The log's [`Failure`] if it has failed, or [`Failure::Closed`]. [`Failure::OutOfSpace`] if the log is too large and
    /// no checkpoint began within [`Options::space_wait`](crate::Options::space_wait), or those that did made too little
    /// room.
    #[inline]
    pub fn admit(&mut self) -> Result<(), Failure> {
        let shared = &*self.shared;
        // Relaxed, both: a late answer admits one commit more, which is allowed.
        if self.state.bytes.load(Ordering::Relaxed) <= shared.options.buffer_bytes_max
            && !shared.is_limited()
            && !shared.closing.load(Ordering::Relaxed)
            && !shared.has_failed()
        {
            return Ok(());
        }
        self.admit_slowly()
    }

    /// Checks that the log takes records.
    ///
    /// # Errors
    ///
    /// The log's failure if it has failed; [`Failure::Closed`] if it is being closed.
    pub fn check(&self) -> Result<(), Failure> {
        self.shared.check()?;
        // Acquire: pairs with the release in `Log::close`.
        if self.shared.closing.load(Ordering::Acquire) { Err(Failure::Closed) } else { Ok(()) }
    }

    /// True if [`admit`](Self::admit) would not wait.
    ///
    /// # Errors
    ///
    /// The log's failure if it has failed; [`Failure::Closed`] if it is being closed.
    pub fn has_room(&self) -> Result<bool, Failure> {
        self.check()?;
        let shared = &*self.shared;
        let missing = self.expected.saturating_sub(self.reserved);
        let has_space = shared.used().saturating_add(missing).saturating_add(shared.space_of_ends())
            <= shared.options.space_bytes_max;
        // Relaxed: a late answer admits one commit more, which is allowed.
        Ok(has_space && self.state.bytes.load(Ordering::Relaxed) <= shared.options.buffer_bytes_max)
    }

    #[cold]
    fn admit_slowly(&mut self) -> Result<(), Failure> {
        let around = self.shared.options.around_waits.clone();
        AroundWaits::run(around.as_ref(), || self.wait_for_room())
    }

    fn wait_for_room(&mut self) -> Result<(), Failure> {
        let shared = &*self.shared;
        shared.check_process()?;
        let has_room = || self.state.bytes.load(Ordering::Relaxed) <= shared.options.buffer_bytes_max;
        shared.progress.wait_until(|| has_room() || shared.check().is_err());
        let deadline = clock::now() + shared.options.space_wait;
        loop {
            shared.check()?;
            // Acquire: pairs with the release in `Log::close`.
            if shared.closing.load(Ordering::Acquire) {
                return Err(Failure::Closed);
            }
            let missing = self.expected.saturating_sub(self.reserved);
            if missing == 0 || !shared.is_limited() || shared.reserve(missing) {
                self.reserved += missing;
                return Ok(());
            }
            let used = shared.used();
            let is_making_room = lock(&shared.files).checkpoint_running;
            let over = || shared.used() < used || shared.check().is_err();
            if is_making_room {
                shared.progress.wait_until(|| over() || !lock(&shared.files).checkpoint_running);
                continue;
            }
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Err(Failure::OutOfSpace { used, max: shared.options.space_bytes_max });
            }
            shared.progress.park_until(Some(left), || over() || lock(&shared.files).checkpoint_running);
        }
    }

    /// Appends the record of a commit. To be called while the transaction holds its locks; copies the bytes, and waits at
    /// most for the logger to exchange two pointers.
    ///
    /// Stamps of one buffer need not be in order. After the log has failed or ended the record is lost, as a later wait for
    /// its epoch says. Entries of more than [`RECORD_BYTES_MAX`] bytes make the log fail, because they cannot be written and
    /// the commit cannot be undone any more.
    #[inline]
    pub fn append(&mut self, stamp: Stamp, entries: &[u8]) {
        if entries.len() > RECORD_BYTES_MAX {
            return self.shared.fail(Failure::RecordTooLarge { bytes: entries.len() });
        }
        let (length, bytes) = {
            let mut records = lock(&self.state.records);
            let bytes = records.list.push(stamp, entries);
            records.last_epoch = records.last_epoch.max(stamp.epoch);
            let length = records.list.bytes.len();
            // Relaxed: read without the mutex only to decide about waiting.
            self.state.bytes.store(length, Ordering::Relaxed);
            (length, bytes)
        };
        let shared = &*self.shared;
        if shared.is_limited() {
            let taken = bytes as u64 + RECORD_OVERHEAD;
            if let Some(more) = taken.checked_sub(self.reserved) {
                shared.reserve_anyway(more);
            }
            self.reserved = self.reserved.saturating_sub(taken);
            self.expected = taken.max(self.expected - self.expected / 8);
        }
        // Relaxed: if the logger has taken the records before these came, it has cleared the flag before, and the mutex of
        // the records makes that visible here. If it takes these, the flag does not matter.
        if !shared.appended.load(Ordering::Relaxed) {
            // Release: pairs with the acquire by which the logger clears it.
            shared.appended.store(true, Ordering::Release);
            shared.idle.notify_all();
        }
        // Relaxed, as above.
        if length > shared.options.buffer_bytes_max / 2 && !shared.hurry.load(Ordering::Relaxed) {
            // Release: pairs with the acquire in `Shared::is_urgent`.
            shared.hurry.store(true, Ordering::Release);
            shared.interval.notify_all();
        }
    }

    /// As [`Log::wait_appended`](crate::Log::wait_appended).
    ///
    /// # Errors
    ///
    /// As [`Log::wait_durable`](crate::Log::wait_durable).
    pub fn wait_appended(&self, epoch: u64) -> Result<(), Failure> {
        // Nearly always its own record is the one.
        let is_own = lock(&self.state.records).last_epoch >= epoch;
        self.shared.wait_durable(if is_own { epoch } else { self.shared.appended_up_to(epoch) })
    }

    /// Bytes of the records that the logger has not taken yet.
    pub fn bytes(&self) -> usize {
        // Relaxed: a figure of the moment.
        self.state.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.unreserve(self.reserved);
        // Release: pairs with the acquire of the logger, which then sees the last records.
        self.state.abandoned.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
