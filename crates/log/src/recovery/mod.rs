//! Recovery: what is left of a log, and how it goes on.
//!
//! # Which files count
//!
//! The catalog lists them: the checkpoint, the first segment that is needed and the last one there is. A segment is listed before a
//! frame is written to it, a checkpoint before anything that it replaces is deleted. So a file that is listed and missing was lost,
//! and one that is there and not listed is a leftover. All files have the identity of the database. Frames and checkpoints have the
//! number of changes of the catalog that they need, so an older catalog is not taken for the database's.
//!
//! # Where a log ends
//!
//! The header of each segment says how long the one before it was, so only the last one has
//! an end to be found: the first frame in it that is not whole. That frame may have been torn by the crash, or it was
//! acknowledged and has been damaged since. They are told apart by what follows. A frame is only written once the one
//! before it is synced; so if a header of a later frame is found anywhere behind a bad frame, the bad one was durable, and
//! the log is corrupt. It is so, too, if the catalog says that more was durable; it always does after a log was closed. Otherwise
//! the frame is a torn tail. Zeros up to the end of the file are no tail: they were written ahead of frames. Nor are frames of another
//! segment, if the file was that one before; the salt in their headers tells them.
//!
//! Damage to the very last frame of a log that was not closed cannot be told from a torn write.
//!
//! # The last segment is written again
//!
//! If the log was not closed, nobody knows if its last frame is on the device, even if it can be read: the process may
//! have died between write and sync, or the sync may have failed, after which some systems believe that all is well. So
//! [`Opened::start`] copies the last segment up to its end to a temporary file, syncs it and gives it the segment's name. A crash in
//! the middle of it changes nothing, the torn tail is gone, and no opening adds a file.
//!
//! A log that was closed goes on where it ended, so opening it changes no file.

pub(crate) mod checkpoint;
mod replay;
mod rows;
mod scan;

pub use replay::{Progress, RecoveredRow};
use scan::BadFrame;
pub(crate) use scan::{Frame, Scanner, Segment};

use crate::catalog::{Catalog, FilesChange};
use crate::files::{CheckpointState, Files, SegmentState};
use crate::layout::{
    CATALOG, FileName, FrameKind, SEGMENT_HEADER, SegmentHeader, TEMPORARY, checkpoint_name, segment_name,
};
use crate::logger::{OpenSegment, new_identity, new_salt};
use crate::shared::{Claim, Shared};
use crate::storage::{CopyFault, Storage, copy, with_retries};
use crate::{CatalogEntry, Epochs, Log, Logger, OpenError, Options, Stamp};
pub(crate) use checkpoint::CheckpointFile;
use hotrow_sync::thread;
use std::collections::{BTreeSet, VecDeque};
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
    pub(crate) catalog: Option<Catalog>,
    pub(crate) checkpoint: Option<CheckpointFile>,
    /// With the offset at which each ends.
    pub(crate) segments: Vec<(Segment, u64)>,
    /// True if the log has frames.
    has_frames: bool,
    /// Sequence number of the next frame.
    pub(crate) sequence: u64,
    /// All surviving records have smaller epochs; later ones must not.
    pub(crate) bound: u64,
    /// Number that no checkpoint has.
    next_checkpoint: u64,
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
        let catalog = Catalog::load(storage)?;
        if catalog.is_none() && !(numbers.is_empty() && checkpoints.is_empty()) {
            return Err(OpenError::missing(CATALOG));
        }
        let listed = catalog.clone().unwrap_or_default();
        if listed.is_unfinished_backup {
            return Err(OpenError::UnfinishedBackup { file: CATALOG.into() });
        }
        let (first, last) = listed.segments;
        let mut checkpoint = None;
        if listed.checkpoint > 0 {
            checkpoints.insert(listed.checkpoint);
            checkpoint = Some(CheckpointFile::load(storage, listed.checkpoint, &listed)?);
        }
        let next_checkpoint = checkpoints.last().map_or(1, |number| number.saturating_add(1));
        for &number in checkpoints.iter().filter(|&&number| number != listed.checkpoint) {
            // One that was completed is older than the catalog, even if it was not listed.
            if number > listed.checkpoint {
                CheckpointFile::load(storage, number, &listed)?;
            }
            obsolete.push(checkpoint_name(number));
        }
        for &number in numbers.iter().filter(|number| !(first..=last).contains(number) || last == 0) {
            check_leftover(storage, &listed, number)?;
            obsolete.push(segment_name(number));
        }
        let mut segments = Vec::new();
        for number in (first..=last).filter(|_| last > 0) {
            segments.push(Segment::load(storage, number, &listed)?);
        }
        let ends = ends_by_successors(&segments)?;
        let mut survey = Self {
            catalog,
            segments: segments.into_iter().zip(ends).collect(),
            has_frames: false,
            sequence: 0,
            bound: 1,
            next_checkpoint,
            unfinished,
            obsolete,
            report: OpenReport::default(),
            checkpoint,
        };
        survey.find_end(storage, &listed)?;
        let epoch = survey.checkpoint.as_ref().map(|checkpoint| checkpoint.epoch);
        survey.bound = survey.bound.max(epoch.unwrap_or(0));
        survey.report.segments = survey.segments.len() as u64;
        survey.report.segment_bytes = survey.segments.iter().map(|(_, end)| end).sum();
        survey.report.checkpoint_epoch = epoch;
        survey.report.checkpoint_bytes = survey.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.length);
        Ok(survey)
    }

    /// Reads the last segment to find out where it ends.
    fn find_end(&mut self, storage: &dyn Storage, catalog: &Catalog) -> Result<(), OpenError> {
        self.has_frames = self.segments.len() > 1;
        let Some((segment, end)) = self.segments.last_mut() else { return Ok(()) };
        let mut scanner = Scanner::new(storage, catalog, segment, segment.length);
        let (mut buffer, mut frames) = (Vec::new(), Vec::new());
        let mut last_kind = FrameKind::Batch;
        let bad = loop {
            let bad = scanner.next(&mut buffer, &mut frames)?;
            let torn = frames.iter().find(|frame| !frame.is_intact(&buffer));
            let whole = frames.iter().take_while(|frame| torn.is_none_or(|torn| frame.at < torn.at));
            last_kind = whole.last().map_or(last_kind, |frame| frame.header.kind);
            if let Some(torn) = torn {
                scanner.rewind(torn);
                break Some(BadFrame::own(torn.header.offset, "the checksum of the frame is wrong"));
            }
            match bad {
                Some(bad) => break Some(bad),
                None if frames.is_empty() => break None,
                None => {}
            }
        };
        self.sequence = scanner.sequence;
        self.bound = scanner.bound;
        *end = scanner.offset;
        self.has_frames |= *end > SEGMENT_HEADER as u64;
        if *end < catalog.last_bytes {
            let reason = bad.map_or("it is cut off", |bad| bad.reason);
            let reason = format!(
                "{reason}, but {} bytes were durable when the catalog was written",
                catalog.last_bytes
            );
            return Err(OpenError::corrupt(&segment.name, *end, reason));
        }
        if let Some(BadFrame { offset, reason, is_foreign }) = bad {
            let tail = scan::tail(storage, segment, offset)?;
            if let Some(later) = tail.later_frame {
                let reason = format!("{reason}, but a later frame follows at byte {later}");
                return Err(OpenError::corrupt(&segment.name, offset, reason));
            }
            // Zeros were written ahead, or an earlier segment's frames are there.
            if tail.end > offset && !(is_foreign && segment.header.is_reused) {
                let bytes = tail.end - offset;
                self.report.torn_tail = Some(TornTail { file: segment.name.clone(), offset, bytes, reason });
            }
        }
        // The mark alone may be in the system's memory only. The catalog was written after its sync.
        let is_durable = *end == catalog.last_bytes && self.report.torn_tail.is_none();
        self.report.closed = last_kind == FrameKind::Close && is_durable;
        Ok(())
    }
}

/// Checks that a segment that the catalog does not list is not one that it ought to list. An older one was not deleted yet. The next one
/// was begun, and would have been listed before it got a frame.
fn check_leftover(storage: &dyn Storage, catalog: &Catalog, number: u64) -> Result<(), OpenError> {
    if number < catalog.segments.0 {
        return Ok(());
    }
    let name = segment_name(number);
    let length = with_retries(|| storage.length(&name));
    let length = length.map_err(|error| OpenError::io("read", &name, 0, error))?;
    let mut is_listed_later = number > catalog.segments.1 + 1;
    if !is_listed_later && length > SEGMENT_HEADER as u64 {
        // One that is made of another's file has that one's frames.
        let segment = Segment::load(storage, number, catalog)?;
        is_listed_later = scan::tail(storage, &segment, 0)?.later_frame.is_some();
    }
    if is_listed_later {
        return Err(catalog.is_older_than(&name, SEGMENT_HEADER as u64));
    }
    Ok(())
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
        let claim = Claim::new(storage).map_err(OpenError::locked)?;
        let survey = Survey::new(&**claim.storage())?;
        Ok(Opened { claim, options, survey, replayed: false })
    }
}

impl Opened {
    /// The structures that the log knows.
    pub fn catalog(&self) -> &[CatalogEntry] {
        self.survey.catalog.as_ref().map_or(&[], |catalog| &catalog.entries)
    }

    /// A number that no structure has had, and no smaller one than that of any that was entered or dropped.
    pub fn next_structure(&self) -> u32 {
        self.survey.catalog.as_ref().map_or(0, |catalog| catalog.next_structure)
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

    /// Starts the logger on a thread of its own. Changes no file if the log was closed.
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
        if !replayed && (survey.checkpoint.is_some() || survey.has_frames) {
            return Err(OpenError::NotReplayed);
        }
        let storage = Arc::clone(claim.storage());
        survey.delete_unfinished(&*storage)?;
        let stored = |(operation, error)| OpenError::io(operation, CATALOG, 0, error);
        let catalog = match &survey.catalog {
            Some(catalog) => catalog.clone(),
            None => {
                let catalog = Catalog { identity: new_identity(), ..Catalog::default() };
                catalog.store(&*storage).map_err(stored)?;
                catalog
            }
        };
        // Before a new file can have the name of one of them.
        for name in &survey.obsolete {
            // The rest is deleted when the log is opened the next time.
            let _ = storage.delete(name);
        }
        let segment = survey.last_segment(&*storage, &catalog)?;
        let is_listed = catalog.segments.1 == segment.number;
        let (bound, is_clean) = (survey.bound, survey.report.closed);
        let files = survey.files(&segment);
        let shared = Arc::new(Shared::new(claim, options, catalog, files, bound - 1));
        if !is_listed {
            shared.change_catalog(&*storage, FilesChange::default(), |_| ()).map_err(stored)?;
        }
        shared.note_space();
        let log = Log::new(Arc::clone(&shared));
        Ok((log, Logger::new(shared, storage, epochs, segment, survey.sequence, bound, is_clean)))
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("report", &self.survey.report).finish_non_exhaustive()
    }
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

    /// The segment with which the log goes on: the first one of a new log, the last one as it is if the log was closed, and otherwise a
    /// copy of the last one up to its end, in its place.
    fn last_segment(&self, storage: &dyn Storage, catalog: &Catalog) -> Result<OpenSegment, OpenError> {
        let Some((segment, end)) = self.segments.last() else {
            let header = SegmentHeader {
                number: 1,
                salt: new_salt(),
                previous_bytes: 0,
                sequence: self.sequence,
                floor: 1,
                identity: catalog.identity,
                is_reused: false,
            };
            let created = OpenSegment::create(storage, &header);
            return created.map_err(|(operation, file, error)| OpenError::io(operation, &file, 0, error));
        };
        let (name, number, salt, bytes) = (&segment.name, segment.header.number, segment.header.salt, *end);
        let mut length = segment.length;
        if !self.report.closed {
            let temporary = format!("{name}{TEMPORARY}");
            let failed = |operation| move |error| OpenError::io(operation, name, 0, error);
            copy(storage, name, storage, &temporary, bytes, &mut |_| ()).map_err(|error| match error.at {
                CopyFault::Read => OpenError::io("read", name, error.offset, error.error),
                CopyFault::Write => OpenError::io("write", &temporary, error.offset, error.error),
            })?;
            storage.rename(&temporary, name).map_err(failed("rename the copy of"))?;
            storage.sync_directory().map_err(failed("sync the directory of"))?;
            length = bytes;
        }
        Ok(OpenSegment { number, name: name.clone(), salt, bytes, length })
    }

    /// The files that a started log has.
    fn files(&self, last: &OpenSegment) -> Files {
        let mut segments: VecDeque<SegmentState> = VecDeque::new();
        for (index, (segment, end)) in self.segments.iter().enumerate() {
            let bound = self.segments.get(index + 1).map_or(self.bound, |(next, _)| next.header.floor);
            let length = if index + 1 < self.segments.len() { segment.length } else { 0 };
            segments.push_back(SegmentState { number: segment.header.number, bytes: *end, length, bound });
        }
        if segments.is_empty() {
            segments.push_back(SegmentState { number: last.number, bytes: last.bytes, length: 0, bound: 0 });
        }
        let checkpoint = self.checkpoint.as_ref().map(|checkpoint| CheckpointState {
            number: checkpoint.number,
            epoch: checkpoint.epoch,
            bytes: checkpoint.length,
        });
        Files {
            segments,
            checkpoint,
            epoch_min: self.bound,
            next_checkpoint: self.next_checkpoint,
            ..Files::default()
        }
    }
}
