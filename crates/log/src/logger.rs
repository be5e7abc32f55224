//! The logger: takes records from the buffers and writes them.

use crate::buffer::{BufferState, RECORD_OVERHEAD, RecordList};
use crate::catalog::FilesChange;
use crate::files::{SegmentState, SpareSegment};
use crate::layout::{
    BLOCK, CATALOG, FRAME_HEADER, FrameHeader, FrameKind, SEGMENT_HEADER, SegmentHeader, TEMPORARY, padded,
    segment_name,
};
use crate::shared::Shared;
use crate::storage::{Storage, create_new, write_all};
use crate::{Failure, GATHERING, Mode, Options};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::clock::{self, Instant};
use hotrow_sync::{lock, thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The engine's epochs, as the logger needs them.
pub trait Epochs: Send + 'static {
    /// Begins a new epoch. Returns `e` such that the record of every commit with an epoch below `e` has been appended. A
    /// record that comes later with such an epoch makes the log fail.
    ///
    /// Waits for the commits that are just between their stamp and their append. Called by the logger only; results never
    /// decrease, and exceed the epoch of every commit that ended before the call. The first result exceeds the epoch that
    /// [`Opened::replay`](crate::Opened::replay) returned.
    fn advance(&mut self) -> u64;

    /// Learns that all records below the epoch that [`advance`](Self::advance) has returned last are durable, before anybody else does.
    fn acknowledge(&mut self, _epoch: u64) {}

    /// Learns that the log has failed: nothing else will be durable.
    fn failed(&mut self) {}
}

/// Sleep of the logger when the engine's epochs do not get to the one that somebody waits for.
const STALLED: Duration = Duration::from_micros(50);

/// Most bytes of memory that the logger keeps for the next batch.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Zeros that are written ahead at once.
const AHEAD_BYTES: usize = if cfg!(debug_assertions) { 8 << 10 } else { 1 << 20 };

/// Frames of this size and larger have no zeros written ahead: a sync of them takes long in any case.
const LARGE_FRAME: usize = AHEAD_BYTES / 4;

/// The error of a segment that cannot be begun: the operation, the file and the storage's error.
type SegmentError = (&'static str, String, std::io::Error);

/// The segment that is being written.
pub(crate) struct OpenSegment {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) salt: u64,
    pub(crate) bytes: u64,
    /// Bytes of the file: behind those of the segment it has zeros, or what an earlier segment had.
    pub(crate) length: u64,
}

impl OpenSegment {
    /// Makes a segment without frames of a file that was another one, whole or not at all. What that had is written over: a sync then has
    /// no new length and no new place on the device to make durable.
    ///
    /// The old segment is listed no more, so its file may be in any state until it has its new name.
    fn reuse(
        storage: &dyn Storage,
        header: SegmentHeader,
        SpareSegment { name: old, length }: SpareSegment,
    ) -> Result<Self, SegmentError> {
        let failed = |operation| {
            let file = old.clone();
            move |error| (operation, file, error)
        };
        let header = SegmentHeader { is_reused: true, ..header };
        write_all(storage, &old, 0, &header.encode()).map_err(failed("write"))?;
        storage.sync(&old).map_err(failed("sync"))?;
        let name = segment_name(header.number);
        storage.rename(&old, &name).map_err(failed("rename"))?;
        storage.sync_directory().map_err(failed("sync the directory of"))?;
        Ok(Self { number: header.number, name, salt: header.salt, bytes: SEGMENT_HEADER as u64, length })
    }

    /// Creates a segment without frames, whole or not at all.
    pub(crate) fn create(storage: &dyn Storage, header: &SegmentHeader) -> Result<Self, SegmentError> {
        let name = segment_name(header.number);
        let temporary = format!("{name}{TEMPORARY}");
        let failed = |operation| {
            let temporary = temporary.clone();
            move |error| (operation, temporary, error)
        };
        create_new(storage, &temporary).map_err(failed("create"))?;
        write_all(storage, &temporary, 0, &header.encode()).map_err(failed("write"))?;
        storage.sync(&temporary).map_err(failed("sync"))?;
        storage.rename(&temporary, &name).map_err(failed("rename"))?;
        storage.sync_directory().map_err(failed("sync the directory of"))?;
        let bytes = SEGMENT_HEADER as u64;
        Ok(Self { number: header.number, name, salt: header.salt, bytes, length: bytes })
    }

    /// Writes zeros behind a frame that ends at an offset, unless there are some left. With them there, a sync has only the frame's
    /// bytes to make durable, and no new length of the file.
    fn write_ahead(&mut self, storage: &dyn Storage, end: u64, options: &Options) {
        self.length = self.length.max(end);
        let bytes = ahead_bytes(options).min(options.segment_bytes.saturating_sub(end));
        if self.length == end && bytes > 0 {
            let zeros = vec![0; bytes as usize];
            // If it fails, the frame is there all the same; the next one tries again.
            if write_all(storage, &self.name, end, &zeros).is_ok() {
                self.length += bytes;
            }
        }
    }
}

/// Zeros that are written ahead at once: fewer if space is limited.
pub(crate) fn ahead_bytes(options: &Options) -> u64 {
    (AHEAD_BYTES as u64).min(options.space_bytes_max / 64 / BLOCK as u64 * BLOCK as u64)
}

/// Completes a frame whose payload follows `FRAME_HEADER` bytes in `bytes`: pads it and writes the header.
pub(crate) fn seal_frame(bytes: &mut Vec<u8>, mut header: FrameHeader) {
    header.payload = (bytes.len() - FRAME_HEADER) as u64;
    bytes.resize(padded(bytes.len() as u64) as usize, 0);
    header.checksum = crc32c::crc32c(&bytes[FRAME_HEADER..]);
    header.encode(bytes);
}

/// Result of a step of the logger.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All that it was asked for.
    Written,
    /// There was nothing to write yet, although somebody waits.
    Stalled,
    /// There will be no more steps.
    Ended,
}

/// The log's writer. [`Opened::start`](crate::Opened::start) runs it on a thread of its own;
/// [`Opened::start_without_thread`](crate::Opened::start_without_thread) leaves that to the caller.
///
/// A logger that is dropped without running, or ends, ends the log.
pub struct Logger {
    shared: Arc<Shared>,
    storage: Arc<dyn Storage>,
    epochs: Box<dyn Epochs>,
    segment: OpenSegment,
    /// Sequence number of the next frame.
    sequence: u64,
    /// All records written have smaller epochs; no later one may have.
    bound: u64,
    /// The frame being made.
    frame: Vec<u8>,
    records: u32,
    /// Records taken from the buffers whose epoch is not complete yet.
    carried: RecordList,
    /// An empty list to exchange for a worker's.
    spare: RecordList,
    last_batch: Instant,
    /// The smallest epoch that is larger than those of the frame's records.
    frame_bound: u64,
    /// True if the last frame says that the log was closed.
    is_clean: bool,
    /// True once the log is closed.
    closed: bool,
}

impl Logger {
    pub(crate) fn new(
        shared: Arc<Shared>,
        storage: Arc<dyn Storage>,
        epochs: Box<dyn Epochs>,
        segment: OpenSegment,
        sequence: u64,
        bound: u64,
        is_clean: bool,
    ) -> Self {
        Self {
            shared,
            storage,
            epochs,
            segment,
            sequence,
            bound,
            frame: Vec::new(),
            records: 0,
            carried: RecordList::default(),
            spare: RecordList::default(),
            last_batch: clock::now(),
            frame_bound: 0,
            is_clean,
            closed: false,
        }
    }

    /// Writes batches until the log is closed or fails. The dropping of the last [`Log`](crate::Log) closes it, too.
    pub fn run(mut self) {
        // Relaxed: only this thread compares it with its own number.
        self.shared.logger_thread.store(thread::number(), Ordering::Relaxed);
        loop {
            match self.guarded(Self::wait_and_write) {
                Step::Ended => break,
                Step::Stalled => {
                    self.shared.interval.park_until(Some(STALLED), || self.shared.has_failed());
                }
                Step::Written => {}
            }
        }
        // The drop ends the log.
    }

    /// Writes one batch, even if it would be empty, and waits for nothing but the device. Returns false once the log was
    /// closed or has failed. For callers that decide about each step themselves, instead of [`run`](Self::run).
    pub fn step(&mut self) -> bool {
        self.guarded(Self::write) != Step::Ended
    }

    fn guarded(&mut self, step: impl FnOnce(&mut Self) -> Result<Step, Failure>) -> Step {
        let failure = match catch_unwind(AssertUnwindSafe(|| step(self))) {
            Ok(Ok(done)) if !self.shared.has_failed() => return done,
            Ok(Ok(_)) => self.shared.failure().unwrap_or(Failure::Closed),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Thread("panicked".into()),
        };
        self.epochs.failed();
        self.shared.fail(failure);
        Step::Ended
    }

    fn wait_and_write(&mut self) -> Result<Step, Failure> {
        self.wait_for_work();
        self.write()
    }

    fn write(&mut self) -> Result<Step, Failure> {
        if self.closed || self.shared.has_failed() {
            return Ok(Step::Ended);
        }
        // Acquire: pairs with the release in `Log::close`. What was appended before is written below.
        let closing = self.shared.closing.load(Ordering::Acquire);
        // Acquire: pairs with the release of a checkpoint's beginning.
        if self.shared.rotate.load(Ordering::Acquire) {
            if self.segment.bytes > SEGMENT_HEADER as u64 {
                self.begin_segment()?;
            }
            // Release: pairs with the acquire of the end of a checkpoint, which waits for it.
            self.shared.rotate.store(false, Ordering::Release);
            self.shared.progress.notify_all();
        }
        let written = self.write_batch()?;
        if closing && self.carried.runs.is_empty() {
            self.write_close()?;
            self.closed = true;
            return Ok(Step::Ended);
        }
        // The engine has not got to an epoch that somebody waits for, or that a record has.
        let stalled = !written && (self.shared.is_urgent() || !self.carried.runs.is_empty());
        Ok(if stalled { Step::Stalled } else { Step::Written })
    }

    fn wait_for_work(&mut self) {
        let shared = &*self.shared;
        // Acquire: pairs with the release in `Buffer::append`.
        let has_appended = || shared.appended.load(Ordering::Acquire);
        shared.idle.wait_until(|| has_appended() || shared.is_urgent());
        let interval = match shared.options.mode {
            Mode::Group => GATHERING,
            Mode::Async { interval } => interval,
        };
        let left = interval.saturating_sub(clock::now().saturating_duration_since(self.last_batch));
        if !left.is_zero() && !shared.is_urgent() {
            shared.interval.park_until(Some(left), || shared.is_urgent());
        }
        self.last_batch = clock::now();
    }

    /// Writes what is complete as one frame and publishes its epoch. Returns true if there was something to write.
    fn write_batch(&mut self) -> Result<bool, Failure> {
        // Before the epoch: what is appended from now on sets the flags again. AcqRel: pairs with the stores in `append`.
        self.shared.appended.swap(false, Ordering::AcqRel);
        self.shared.hurry.swap(false, Ordering::AcqRel);
        let bound = self.epochs.advance();
        // INVARIANT 38: A batch holds all records of its epochs; one that comes later makes the log fail.
        if bound < self.bound || bound == 0 {
            return Err(Failure::LateEpoch { epoch: bound, bound: self.bound });
        }
        self.collect(bound)?;
        if !self.carried.runs.is_empty() {
            // Relaxed: read by this thread, which is the one that waits for it.
            self.shared.appended.store(true, Ordering::Relaxed);
        }
        let written = self.records > 0;
        if written {
            self.write_frame(FrameKind::Batch, bound)?;
            // Relaxed, all: counters for reports.
            self.shared.counts.batches.fetch_add(1, Ordering::Relaxed);
            self.shared.counts.records.fetch_add(u64::from(self.records), Ordering::Relaxed);
        }
        self.bound = bound;
        // INVARIANT 39: An epoch is acknowledged only when its frame is synced.
        self.epochs.acknowledge(bound);
        self.shared.publish(bound - 1);
        Ok(written)
    }

    /// Takes all records below `bound` from the buffers into the frame.
    fn collect(&mut self, bound: u64) -> Result<(), Failure> {
        self.frame.clear();
        self.frame.shrink_to(KEPT_BYTES_MAX);
        self.frame.resize(FRAME_HEADER, 0);
        (self.records, self.frame_bound) = (0, 0);
        let carried = std::mem::take(&mut self.carried);
        self.sort_in(&carried, bound)?;
        // After `advance`, so that every buffer with a record below the bound is there.
        let buffers: Vec<Arc<BufferState>> = lock(&self.shared.buffers).clone();
        let mut abandoned = false;
        for buffer in &buffers {
            // Acquire: pairs with the release of the drop, so that an abandoned buffer's last records are taken here.
            abandoned |= buffer.abandoned.load(Ordering::Acquire);
            let mut taken = std::mem::take(&mut self.spare);
            {
                let mut records = lock(&buffer.records);
                if !records.list.runs.is_empty() {
                    std::mem::swap(&mut records.list, &mut taken);
                    // Relaxed: read without the mutex only to decide about waiting.
                    buffer.bytes.store(0, Ordering::Relaxed);
                }
            }
            let result = self.sort_in(&taken, bound);
            taken.clear(KEPT_BYTES_MAX);
            self.spare = taken;
            result?;
        }
        if abandoned {
            self.forget_abandoned();
        }
        // There is room in the buffers again.
        self.shared.progress.notify_all();
        Ok(())
    }

    /// Adds records to the frame, or to those carried to the next one.
    fn sort_in(&mut self, list: &RecordList, bound: u64) -> Result<(), Failure> {
        let mut rest = &list.bytes[..];
        for run in &list.runs {
            let (bytes, behind) = rest.split_at(run.bytes);
            rest = behind;
            let epoch = run.epoch;
            // INVARIANT 38: A batch holds all records of its epochs; one that comes later makes the log fail.
            if epoch < self.bound {
                return Err(Failure::LateEpoch { epoch, bound: self.bound });
            }
            if epoch < bound {
                self.frame.extend_from_slice(bytes);
                self.records += run.records;
                self.frame_bound = self.frame_bound.max(epoch + 1);
            } else {
                self.carried.push_run(*run, bytes);
            }
        }
        debug_assert!(rest.is_empty(), "the runs are all of the list");
        Ok(())
    }

    #[cold]
    fn forget_abandoned(&self) {
        lock(&self.shared.buffers).retain(|buffer| {
            // Acquire: pairs with the release of the drop.
            if !buffer.abandoned.load(Ordering::Acquire) {
                return true;
            }
            let records = lock(&buffer.records);
            // Release: pairs with the acquire in `Log::flush`.
            self.shared.departed_epoch.fetch_max(records.last_epoch, Ordering::Release);
            !records.list.runs.is_empty()
        });
    }

    /// Writes the frame and syncs it.
    fn write_frame(&mut self, kind: FrameKind, bound: u64) -> Result<(), Failure> {
        let has_frames = self.segment.bytes > SEGMENT_HEADER as u64;
        if has_frames && self.segment.bytes >= self.shared.options.segment_bytes {
            self.begin_segment()?;
        }
        let records_bytes = (self.frame.len() - FRAME_HEADER) as u64;
        let offset = self.segment.bytes;
        let header = FrameHeader {
            kind,
            segment: self.segment.number,
            salt: self.segment.salt,
            offset,
            sequence: self.sequence,
            bound,
            payload: 0,
            records: self.records,
            checksum: 0,
            // Acquire: pairs with the release of the change. A record that needs it was appended afterwards.
            generation: self.shared.generation.load(Ordering::Acquire),
        };
        seal_frame(&mut self.frame, header);
        let name = &self.segment.name;
        let storage = &*self.storage;
        write_all(storage, name, offset, &self.frame)
            .map_err(|error| Failure::io("write", name, offset, error))?;
        let is_synced_often = !matches!(self.shared.options.mode, Mode::Async { .. });
        if is_synced_often && self.frame.len() < LARGE_FRAME && kind == FrameKind::Batch {
            let end = offset + self.frame.len() as u64;
            self.segment.write_ahead(storage, end, &self.shared.options);
        }
        let name = &self.segment.name;
        storage.sync(name).map_err(|error| Failure::io("sync", name, offset, error))?;
        self.sequence += 1;
        self.segment.bytes += self.frame.len() as u64;
        let counts = &self.shared.counts;
        // Relaxed, all: counters for reports.
        counts.bytes.fetch_add(self.frame.len() as u64, Ordering::Relaxed);
        counts.syncs.fetch_add(1, Ordering::Relaxed);
        if let Some(last) = lock(&self.shared.files).segments.back_mut() {
            last.bytes = self.segment.bytes;
            last.bound = last.bound.max(self.frame_bound);
        }
        self.shared.note_space();
        self.shared.unreserve(records_bytes + u64::from(self.records) * RECORD_OVERHEAD);
        self.is_clean = kind == FrameKind::Close;
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), Failure> {
        let header = SegmentHeader {
            number: self.segment.number + 1,
            salt: new_salt(),
            previous_bytes: self.segment.bytes,
            sequence: self.sequence,
            floor: self.bound,
            identity: self.shared.identity,
            is_reused: false,
        };
        let spare = {
            let mut files = lock(&self.shared.files);
            if let Some(last) = files.segments.back_mut() {
                last.length = self.segment.length;
            }
            files.take_spare()
        };
        let begun = match spare {
            Some(spare) => OpenSegment::reuse(&*self.storage, header, spare),
            None => OpenSegment::create(&*self.storage, &header),
        };
        self.segment = begun.map_err(|(operation, file, error)| Failure::io(operation, &file, 0, error))?;
        // Relaxed: a counter for reports.
        self.shared.counts.syncs.fetch_add(2, Ordering::Relaxed);
        // No record so far, whatever its epochs will be.
        let segment = SegmentState { number: header.number, bytes: self.segment.bytes, length: 0, bound: 0 };
        // INVARIANT 40: The catalog lists a file before the file has commits.
        self.enter(FilesChange { segment: Some(segment), ..FilesChange::default() })?;
        self.shared.delete_obsolete();
        self.shared.note_space();
        Ok(())
    }

    /// Writes the catalog, with what has become durable since.
    fn enter(&self, change: FilesChange) -> Result<(), Failure> {
        let entered = self.shared.change_catalog(&*self.storage, change, |_| ());
        entered.map_err(|(operation, error)| Failure::io(operation, CATALOG, 0, error))
    }

    /// Ends the log with a frame that says that all before is durable, and enters its end in the catalog.
    fn write_close(&mut self) -> Result<(), Failure> {
        if !self.is_clean {
            self.frame.clear();
            self.frame.resize(FRAME_HEADER, 0);
            (self.records, self.frame_bound) = (0, 0);
            self.write_frame(FrameKind::Close, self.bound)?;
        }
        self.enter(FilesChange::default())?;
        lock(&self.shared.files).give_up_spares();
        self.shared.delete_obsolete();
        Ok(())
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger").field("segment", &self.segment.name).finish_non_exhaustive()
    }
}

/// A random number that no other database has; in a simulation always the same.
pub(crate) fn new_identity() -> u128 {
    u128::from(new_salt()) << 64 | u128::from(new_salt())
}

/// A number that cannot be foretold, so that nobody can make a value that looks like a frame, or keys that collide; in a simulation always the
/// same.
pub(crate) fn new_salt() -> u64 {
    use std::hash::BuildHasher;
    if thread::is_simulated() { 1 } else { std::collections::hash_map::RandomState::new().hash_one(0_u64) }
}
