//! The files that the log consists of.

use crate::layout::{SEGMENT_HEADER, checkpoint_name, segment_name};
use std::collections::VecDeque;

/// A segment: a file with a part of the log.
#[derive(Clone, Debug)]
pub(crate) struct SegmentState {
    pub(crate) number: u64,
    /// Bytes that are durable.
    pub(crate) bytes: u64,
    /// Bytes of the file once nothing is written to it any more: behind the others there are zeros.
    pub(crate) length: u64,
    /// All its records have smaller epochs.
    pub(crate) bound: u64,
}

/// A file that was a segment, and may become another one. It is under the name of the one that it was.
#[derive(Debug)]
pub(crate) struct SpareSegment {
    pub(crate) name: String,
    pub(crate) length: u64,
}

/// Most spare segments that are kept.
const SPARES_MAX: usize = 2;

/// The newest checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointState {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    pub(crate) bytes: u64,
}

/// The log's files, as far as they are needed.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// In the order of their numbers, without gaps. The last one is being written.
    pub(crate) segments: VecDeque<SegmentState>,
    pub(crate) checkpoint: Option<CheckpointState>,
    /// True while a checkpoint is being written.
    pub(crate) checkpoint_running: bool,
    /// Smallest epoch that a checkpoint may have.
    pub(crate) epoch_min: u64,
    /// Number of the next checkpoint.
    pub(crate) next_checkpoint: u64,
    /// Number of backups that read the files.
    pub(crate) backups: u32,
    /// Files that are needed no more, to be deleted when no backup reads them.
    pub(crate) obsolete: Vec<String>,
    /// Files that the next checkpoint makes obsolete.
    pub(crate) obsolete_later: Vec<String>,
    /// Segments that are needed no more, and are used again when no backup reads them. None if space is limited.
    pub(crate) spares: Vec<SpareSegment>,
}

impl Files {
    /// Bytes of all segments.
    pub(crate) fn space(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes.max(segment.length)).sum()
    }

    /// Bytes of their frames.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes.saturating_sub(SEGMENT_HEADER as u64)).sum()
    }

    /// Number of the first segment that may have records of an epoch or later, given the one that is about to be the last.
    pub(crate) fn first_needed(&self, epoch: u64, next: Option<&SegmentState>) -> Option<u64> {
        // The last one is being written, so it may get later records even if it has none.
        let last = next.or(self.segments.back())?.number;
        let first = self.segments.iter().find(|segment| segment.number == last || segment.bound > epoch);
        Some(first.map_or(last, |segment| segment.number))
    }

    /// Enters what the catalog has. Segments before `first` are obsolete, and some of them spares unless space `is_limited`.
    pub(crate) fn change(
        &mut self,
        segment: Option<SegmentState>,
        checkpoint: Option<CheckpointState>,
        first: u64,
        is_limited: bool,
    ) {
        self.segments.extend(segment);
        if let Some(newest) = checkpoint {
            self.obsolete.extend(self.checkpoint.replace(newest).map(|old| checkpoint_name(old.number)));
            self.obsolete.append(&mut self.obsolete_later);
        }
        while self.segments.front().is_some_and(|segment| segment.number < first) {
            let Some(old) = self.segments.pop_front() else { break };
            let (name, length) = (segment_name(old.number), old.bytes.max(old.length));
            if is_limited || self.spares.len() == SPARES_MAX {
                self.obsolete.push(name);
            } else {
                self.spares.push(SpareSegment { name, length });
            }
        }
    }

    /// A file for the next segment, if there is one that nobody reads.
    pub(crate) fn take_spare(&mut self) -> Option<SpareSegment> {
        if self.backups > 0 { None } else { self.spares.pop() }
    }

    /// Has the spare segments deleted with what is obsolete.
    pub(crate) fn give_up_spares(&mut self) {
        self.obsolete.extend(self.spares.drain(..).map(|spare| spare.name));
    }
}
