//! Recovery: what is left of a log, and how it goes on.
//!
//! # Where a log ends
//!
//! Segments are numbered without gaps. The header of each says how long the one before it was, so only the last one has
//! an end to be found: the first frame in it that is not whole. That frame may have been torn by the crash, or it was
//! acknowledged and has been damaged since. They are told apart by what follows. A frame is only written once the one
//! before it is synced; so if a header of a later frame is found anywhere behind a bad frame, the bad one was durable, and
//! the log is corrupt. Otherwise the frame is a torn tail. It is left where it is, and cut off by the next segment, whose
//! header tells the length without it. Zeros up to the end of the file are no tail: they were written ahead of frames.
//!
//! Damage to the very last frame of a log that was not closed cannot be told from a torn write. A closed log ends with a
//! frame without records, so there is no such doubt about its last batch.
//!
//! # The last frame is written again
//!
//! If the log was not closed, nobody knows if its last frame is on the device, even if it can be read: the process may
//! have died between write and sync, or the sync may have failed, after which some systems believe that all is well. So
//! [`Opened::start`] writes the frame once more at the beginning of its new segment, and cuts the old one off. The new
//! segment is created under a temporary name, synced and renamed, so a crash in the middle of it changes nothing. The frame
//! that closes a log is cut off for the same reason, and not written again.

pub(crate) mod checkpoint;
mod replay;
mod rows;
mod scan;

pub use replay::{Progress, RecoveredRow};
pub(crate) use scan::{Frame, Scanner, Segment};

use crate::files::{CheckpointState, Files, SegmentState};
use crate::layout::{
    CATALOG, FRAME_HEADER, FileName, FrameHeader, FrameKind, SEGMENT_HEADER, SegmentHeader, checkpoint_name,
    segment_name,
};
use crate::logger::{OpenSegment, new_salt, seal_frame};
use crate::shared::{Claim, Shared};
use crate::storage::{Storage, read_full, with_retries};
use crate::{CatalogEntry, Epochs, Log, Logger, OpenError, Options, Stamp, catalog};
pub(crate) use checkpoint::CheckpointFile;
use hotrow_sync::thread;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The end of a log that was being written when it crashed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// Name of the file.
    pub file: String,
    /// Offset from which on the file is ignored.
    pub offset: u64,
    /// Bytes that are ignored, without zeros at the end.
    pub bytes: u64,
    /// Fault of the frame there.
    pub reason: &'static str,
}

/// Findings about the files of a log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct OpenReport {
    /// Number of segments that recovery reads.
    pub segments: u64,
    /// Valid bytes of these segments.
    pub segment_bytes: u64,
    /// Epoch of the checkpoint that recovery begins with.
    pub checkpoint_epoch: Option<u64>,
    /// Bytes of the checkpoint; 0 if there is none.
    pub checkpoint_bytes: u64,
    /// The torn tail that was cut off, if there is one.
    pub torn_tail: Option<TornTail>,
    /// True if the log was closed and not written since.
    pub closed: bool,
}

/// Content of the files of a log, as far as it can be known without reading all.
pub(crate) struct Survey {
    /// `None` if the log is new.
    pub(crate) catalog: Option<Vec<CatalogEntry>>,
    pub(crate) checkpoint: Option<CheckpointFile>,
    /// With the offset at which each ends.
    pub(crate) segments: Vec<(Segment, u64)>,
    /// Last frame of the last segment, with the bound of the frame before it.
    pub(crate) last_frame: Option<(FrameHeader, u64)>,
    /// Sequence number of the next frame.
    pub(crate) sequence: u64,
    /// All surviving records have smaller epochs; later ones must not.
    pub(crate) bound: u64,
    /// Number that no segment has had.
    next_segment: u64,
    /// Files that were not completed.
    unfinished: Vec<String>,
    /// Files that are not needed.
    obsolete: Vec<String>,
    pub(crate) report: OpenReport,
}

impl Survey {
    /// Looks through the files, and changes none.
    pub(crate) fn new(storage: &dyn Storage) -> Result<Self, OpenError> {
        let names = with_retries(|| storage.list());
        let names = names.map_err(|error| OpenError::io("list the files of the log", "", 0, error))?;
        let (mut unfinished, mut obsolete) = (Vec::new(), Vec::new());
        let (mut numbers, mut checkpoints) = (BTreeSet::new(), BTreeSet::new());
        for name in names {
            match FileName::parse(&name) {
                Some(FileName::Segment(number)) => drop(numbers.insert(number)),
                Some(FileName::Checkpoint(number)) => drop(checkpoints.insert(number)),
                Some(FileName::Temporary) => unfinished.push(name),
                Some(FileName::Catalog) | None => {}
            }
        }
        let catalog = catalog::load(storage)?;
        let newest = checkpoints.pop_last();
        let checkpoint = newest.map(|number| CheckpointFile::load(storage, number)).transpose()?;
        obsolete.extend(checkpoints.into_iter().map(checkpoint_name));

        let first = checkpoint.as_ref().map_or(1, |checkpoint| checkpoint.first_segment);
        let needed = numbers.split_off(&first);
        obsolete.extend(numbers.into_iter().map(segment_name));
        let last_certain = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.last_segment);
        check_presence(catalog.as_deref(), checkpoint.is_some(), &needed, first, last_certain)?;

        let mut segments = Vec::new();
        for number in needed {
            segments.push(Segment::load(storage, number)?);
        }
        let ends = ends_by_successors(&segments)?;
        let mut survey = Self {
            catalog,
            next_segment: segments.last().map_or(first, |segment| segment.header.number + 1),
            segments: segments.into_iter().zip(ends).collect(),
            last_frame: None,
            sequence: 0,
            bound: 1,
            unfinished,
            obsolete,
            report: OpenReport::default(),
            checkpoint,
        };
        survey.find_end(storage)?;
        let epoch = survey.checkpoint.as_ref().map(|checkpoint| checkpoint.epoch);
        survey.bound = survey.bound.max(epoch.unwrap_or(0));
        survey.report.segments = survey.segments.len() as u64;
        survey.report.segment_bytes = survey.segments.iter().map(|(_, end)| end).sum();
        survey.report.checkpoint_epoch = epoch;
        survey.report.checkpoint_bytes = survey.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.length);
        Ok(survey)
    }

    /// Reads the last segment to find out where it ends.
    fn find_end(&mut self, storage: &dyn Storage) -> Result<(), OpenError> {
        let Some((segment, end)) = self.segments.last_mut() else { return Ok(()) };
        let mut scanner = Scanner::new(storage, segment, segment.length);
        let (mut buffer, mut frames) = (Vec::new(), Vec::new());
        let bad = loop {
            let bad = scanner.next(&mut buffer, &mut frames)?;
            if let Some(torn) = frames.iter().find(|frame| !frame.is_intact(&buffer)) {
                let before = frames.iter().take_while(|frame| frame.at < torn.at).last();
                self.last_frame = before.map(|frame| (frame.header, frame.floor)).or(self.last_frame);
                scanner.rewind(torn);
                break Some((torn.header.offset, "the checksum of the frame is wrong"));
            }
            if let Some(last) = frames.last() {
                self.last_frame = Some((last.header, last.floor));
            }
            match bad {
                Some(bad) => break Some((bad.offset, bad.reason)),
                None if frames.is_empty() => break None,
                None => {}
            }
        };
        self.sequence = scanner.sequence;
        self.bound = scanner.bound;
        let valid = scanner.offset;
        if let Some((offset, reason)) = bad {
            let tail = scan::tail(storage, segment, offset)?;
            if let Some(later) = tail.later_frame {
                let reason = format!("{reason}, but a later frame follows at byte {later}");
                return Err(OpenError::corrupt(&segment.name, offset, reason));
            }
            // Zeros were written ahead.
            if tail.end > offset {
                let bytes = tail.end - offset;
                self.report.torn_tail = Some(TornTail { file: segment.name.clone(), offset, bytes, reason });
            }
        }
        *end = valid;
        self.report.closed = matches!(&self.last_frame, Some((last, _)) if last.kind == FrameKind::Close);
        Ok(())
    }
}

/// Checks that no file is missing.
fn check_presence(
    catalog: Option<&[CatalogEntry]>,
    has_checkpoint: bool,
    segments: &BTreeSet<u64>,
    first: u64,
    last_certain: u64,
) -> Result<(), OpenError> {
    let missing = |name: String| Err(OpenError::corrupt(&name, 0, "the file is missing"));
    match catalog {
        None if has_checkpoint || !segments.is_empty() => return missing(CATALOG.into()),
        // A structure is only added while there is a segment.
        Some(entries) if segments.is_empty() && !entries.is_empty() => return missing(segment_name(first)),
        _ => {}
    }
    // The last one that must be there.
    let last = segments.last().copied().unwrap_or(0).max(last_certain);
    let mut expected = first;
    for &number in segments {
        if number != expected {
            return missing(segment_name(expected));
        }
        expected = match number.checked_add(1) {
            Some(next) => next,
            None => return Err(OpenError::corrupt(&segment_name(number), 0, "its number is too large")),
        };
    }
    if expected <= last { missing(segment_name(expected)) } else { Ok(()) }
}

/// Ends of the segments, told by the headers of those that follow. That of the last one is its header's, until more is known.
fn ends_by_successors(segments: &[Segment]) -> Result<Vec<u64>, OpenError> {
    let mut ends = Vec::new();
    for pair in segments.windows(2) {
        let (segment, next) = (&pair[0], &pair[1].header);
        let end = next.previous_bytes;
        if end < SEGMENT_HEADER as u64
            || next.sequence < segment.header.sequence
            || next.floor < segment.header.floor
        {
            let reason = format!("it does not fit to {}", segment.name);
            return Err(OpenError::corrupt(&pair[1].name, 32, reason));
        }
        if end > segment.length {
            let reason = format!("it is cut off: {} says that it has {end} bytes", pair[1].name);
            return Err(OpenError::corrupt(&segment.name, segment.length, reason));
        }
        ends.push(end);
    }
    ends.extend(segments.last().map(|_| SEGMENT_HEADER as u64));
    Ok(ends)
}

/// A log whose files have been looked at. Nothing was changed.
pub struct Opened {
    claim: Claim,
    options: Options,
    survey: Survey,
    /// True once all rows were handed out.
    replayed: bool,
}

impl Log {
    /// Looks at the files of a log; at none if it is a new one. Changes nothing, so a crash afterwards, or another opening,
    /// finds the same.
    ///
    /// Reads the last segment and the headers of the others; [`Opened::replay`] reads all.
    ///
    /// # Errors
    ///
    /// [`OpenError::Locked`] if another log has the storage, [`OpenError::Corrupt`] with file and offset if data that were
    /// durable have changed, errors of the storage.
    pub fn open(storage: Arc<dyn Storage>, options: Options) -> Result<Opened, OpenError> {
        let claim = Claim::new(storage).map_err(OpenError::Locked)?;
        let survey = Survey::new(&**claim.storage())?;
        Ok(Opened { claim, options, survey, replayed: false })
    }
}

impl Opened {
    /// The structures that the log knows.
    pub fn catalog(&self) -> &[CatalogEntry] {
        self.survey.catalog.as_deref().unwrap_or_default()
    }

    /// Findings about the files.
    pub fn report(&self) -> &OpenReport {
        &self.survey.report
    }

    /// Calls `apply` once for each row that survives, from `threads` threads at once, and `progress` now and then, from the
    /// calling thread. Rows come in no particular order.
    ///
    /// Returns the last stamp: epochs of later commits must be larger than its epoch.
    ///
    /// Uses memory for the rows that survive, and for a few MiB (or one batch) of the log. With one thread all runs on the
    /// calling one.
    ///
    /// # Errors
    ///
    /// [`OpenError::Corrupt`] with file and offset. Then `apply` was not called, and nothing was changed.
    pub fn replay(
        &mut self,
        threads: usize,
        progress: &(dyn Fn(Progress) + Sync),
        apply: &(dyn Fn(RecoveredRow<'_>) + Sync),
    ) -> Result<Stamp, OpenError> {
        let last = replay::replay(&**self.claim.storage(), &self.survey, threads, progress, apply)?;
        self.replayed = true;
        Ok(last)
    }

    /// Begins a new segment and starts the logger on a thread of its own.
    ///
    /// # Errors
    ///
    /// Errors of the storage; [`OpenError::NotReplayed`] if the log has records and [`replay`](Self::replay) was not
    /// called. After an error the log can be opened again.
    pub fn start(self, epochs: Box<dyn Epochs>) -> Result<Log, OpenError> {
        let (log, logger) = self.start_without_thread(epochs)?;
        let thread = thread::Builder::new().name("hotrow-log".into()).spawn(|| logger.run());
        log.keep_thread(thread.map_err(OpenError::Thread)?);
        Ok(log)
    }

    /// As [`start`](Self::start), but leaves it to the caller to [run](Logger::run) the logger: on a virtual core of a
    /// simulation, for instance. Until it runs nothing becomes durable.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn start_without_thread(self, epochs: Box<dyn Epochs>) -> Result<(Log, Logger), OpenError> {
        let Self { claim, options, survey, replayed } = self;
        let has_records = survey.checkpoint.is_some() || survey.last_frame.is_some();
        if !replayed && (has_records || survey.segments.len() > 1) {
            return Err(OpenError::NotReplayed);
        }
        let storage = Arc::clone(claim.storage());
        survey.delete_unfinished(&*storage)?;
        if survey.catalog.is_none() {
            let stored = catalog::store(&*storage, &[]);
            stored.map_err(|(operation, error)| OpenError::io(operation, CATALOG, 0, error))?;
        }
        let start = survey.begin_segment(&*storage)?;
        for name in &survey.obsolete {
            // The rest is deleted when the log is opened the next time.
            let _ = storage.delete(name);
        }
        let durable = survey.bound - 1;
        let (bound, sequence) = (survey.bound, start.sequence);
        let checkpoint = survey.checkpoint.as_ref().map(|checkpoint| CheckpointState {
            number: checkpoint.number,
            epoch: checkpoint.epoch,
            bytes: checkpoint.length,
        });
        let files = Files {
            segments: start.segments.into(),
            checkpoint,
            epoch_min: bound,
            next_checkpoint: checkpoint.map_or(1, |newest| newest.number + 1),
            ..Files::default()
        };
        let catalog = survey.catalog.unwrap_or_default();
        let shared = Arc::new(Shared::new(claim, options, catalog, files, durable));
        shared.note_space();
        let log = Log::new(Arc::clone(&shared));
        Ok((log, Logger::new(shared, storage, epochs, start.segment, sequence, bound)))
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("report", &self.survey.report).finish_non_exhaustive()
    }
}

/// The segment that a started log begins with.
struct Start {
    segment: OpenSegment,
    sequence: u64,
    segments: Vec<SegmentState>,
}

impl Survey {
    /// Reads all, and counts the rows that survive. Returns the last stamp, too.
    pub(crate) fn count_rows(
        &self,
        storage: &dyn Storage,
        threads: usize,
    ) -> Result<(u64, Stamp), OpenError> {
        replay::count_rows(storage, self, threads)
    }

    /// Deletes files that were not completed, for good: their names are used again, and a renaming must not find an old
    /// file because the creation of the new one did not survive.
    fn delete_unfinished(&self, storage: &dyn Storage) -> Result<(), OpenError> {
        for name in &self.unfinished {
            storage.delete(name).map_err(|error| OpenError::io("delete", name, 0, error))?;
        }
        // Even if there are none: an earlier start may have failed right here.
        storage
            .sync_directory()
            .map_err(|error| OpenError::io("sync the names of the files of the log", "", 0, error))
    }

    /// Creates the segment with which the log goes on, with the last frame once more if the log was not closed.
    fn begin_segment(&self, storage: &dyn Storage) -> Result<Start, OpenError> {
        let number = self.next_segment;
        let mut states: Vec<SegmentState> = Vec::new();
        for (index, (segment, end)) in self.segments.iter().enumerate() {
            let bound = self.segments.get(index + 1).map_or(self.bound, |(next, _)| next.header.floor);
            states.push(SegmentState { number: segment.header.number, bytes: *end, bound });
        }
        let mut header = SegmentHeader {
            number,
            salt: new_salt(),
            previous_bytes: self.segments.last().map_or(0, |(_, end)| *end),
            sequence: self.sequence,
            floor: self.segments.last().map_or(1, |(segment, _)| segment.header.floor),
        };
        let mut sequence = self.sequence;
        let mut frame = Vec::new();
        if let (Some((last, floor)), Some((segment, _))) = (self.last_frame, self.segments.last()) {
            header.previous_bytes = last.offset;
            (header.sequence, header.floor) = (last.sequence, floor);
            sequence = last.sequence;
            if last.kind == FrameKind::Batch {
                frame = read_frame(storage, segment, &last)?;
                let moved =
                    FrameHeader { segment: number, salt: header.salt, offset: SEGMENT_HEADER as u64, ..last };
                seal_frame(&mut frame, moved);
                sequence += 1;
            }
            if let Some(state) = states.last_mut() {
                (state.bytes, state.bound) = (last.offset, floor);
            }
        }
        let segment = OpenSegment::create(storage, &header, &frame)
            .map_err(|(operation, file, error)| OpenError::io(operation, &file, 0, error))?;
        states.push(SegmentState { number, bytes: segment.bytes, bound: self.bound });
        Ok(Start { segment, sequence, segments: states })
    }
}

/// Reads a frame without its padding, with room for a header.
fn read_frame(storage: &dyn Storage, segment: &Segment, header: &FrameHeader) -> Result<Vec<u8>, OpenError> {
    let name = &segment.name;
    let mut frame = vec![0; header.frame_bytes() as usize];
    let read = read_full(storage, name, header.offset, &mut frame);
    let read = read.map_err(|error| OpenError::io("read", name, header.offset, error))?;
    if read < frame.len() || crc32c::crc32c(&frame[FRAME_HEADER..]) != header.checksum {
        return Err(OpenError::corrupt(
            name,
            header.offset,
            "the frame has changed since the log was opened",
        ));
    }
    frame.truncate(FRAME_HEADER + header.payload as usize);
    Ok(frame)
}
