//! Looking at a log without opening it for use: checking it, and printing it.

use crate::entry::{self, Change};
use crate::layout::{FrameKind, split_record};
use crate::recovery::{Frame, OpenReport, Scanner, Survey, TornTail};
use crate::shared::Claimed;
use crate::storage::Storage;
use crate::{DumpError, OpenError, Stamp};
use std::fmt::{self, Write as _};
use std::io;

/// Findings about a log that is sound.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The files.
    pub open: OpenReport,
    /// Number of structures in the catalog.
    pub structures: u64,
    /// Number of rows that survive.
    pub rows: u64,
    /// Stamp of the last commit.
    pub last: Stamp,
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = &self.open;
        write!(
            f,
            "{} rows of {} structures, up to epoch {}; {} bytes in {} segments",
            self.rows, self.structures, self.last.epoch, open.segment_bytes, open.segments
        )?;
        if let Some(epoch) = open.checkpoint_epoch {
            write!(f, "; {} bytes in a checkpoint of epoch {epoch}", open.checkpoint_bytes)?;
        }
        f.write_str(if open.closed { "; closed" } else { "; not closed" })?;
        open.torn_tail.iter().try_for_each(|tail| write!(f, "; {tail}"))
    }
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, bytes, reason } = self;
        write!(f, "torn tail of {bytes} bytes in {file} from byte {offset} on ({reason})")
    }
}

/// Checks all files of a log as recovery does, and changes none. Needs as much memory as recovery does.
///
/// # Errors
///
/// Those of [`Log::open`](crate::Log::open) and [`Opened::replay`](crate::Opened::replay).
pub fn verify(storage: &dyn Storage) -> Result<VerifyReport, OpenError> {
    let _claimed = Claimed::new(storage).map_err(OpenError::locked)?;
    let survey = Survey::new(storage)?;
    let (rows, last) = survey.count_rows(storage, hotrow_sync::thread::running_at_once())?;
    let structures = survey.catalog.as_ref().map_or(0, |catalog| catalog.entries.len() as u64);
    Ok(VerifyReport { open: survey.report, structures, rows, last })
}

/// Bytes of a key or value that are printed.
const SHOWN_BYTES: usize = 32;

/// Bytes as text: hexadecimal, the first few of them.
struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(SHOWN_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        match self.0.len().saturating_sub(SHOWN_BYTES) {
            0 => Ok(()),
            more => write!(f, "… and {more} bytes"),
        }
    }
}

/// Prints the catalog, the checkpoint's figures and each record of the segments, one entry a line.
///
/// # Errors
///
/// The first fault that is found; all before it is printed. Errors of the output.
pub fn dump(storage: &dyn Storage, out: &mut dyn io::Write) -> Result<(), DumpError> {
    let _claimed = Claimed::new(storage).map_err(OpenError::locked)?;
    let survey = Survey::new(storage)?;
    let catalog = survey.catalog.clone().unwrap_or_default();
    for entry in &catalog.entries {
        writeln!(out, "structure {} {:?} shape {}", entry.structure, entry.name, Bytes(&entry.shape))?;
    }
    if let Some(checkpoint) = &survey.checkpoint {
        let (name, epoch, rows) = (&checkpoint.name, checkpoint.epoch, checkpoint.rows);
        writeln!(out, "{name}: {rows} rows, all commits before epoch {epoch}")?;
    }
    let (mut buffer, mut frames) = (Vec::new(), Vec::new());
    for (segment, end) in &survey.segments {
        writeln!(out, "{}: {end} bytes", segment.name)?;
        let mut scanner = Scanner::new(storage, &catalog, segment, *end);
        loop {
            if let Some(bad) = scanner.next(&mut buffer, &mut frames)? {
                return Err(OpenError::corrupt(&segment.name, bad.offset, bad.reason).into());
            }
            if frames.is_empty() {
                break;
            }
            for frame in &frames {
                dump_frame(&segment.name, frame, &buffer, out)?;
            }
        }
    }
    if let Some(tail) = &survey.report.torn_tail {
        writeln!(out, "{tail}")?;
    }
    Ok(())
}

fn dump_frame(file: &str, frame: &Frame, buffer: &[u8], out: &mut dyn io::Write) -> Result<(), DumpError> {
    let header = &frame.header;
    let kind = match header.kind {
        FrameKind::Batch => "batch",
        FrameKind::Close => "close",
    };
    writeln!(
        out,
        "  {kind} {} at byte {}: {} records, {} bytes, epochs before {}",
        header.sequence, header.offset, header.records, header.payload, header.bound
    )?;
    if !frame.is_intact(buffer) {
        return Err(frame.corrupt(file, frame.at, "the checksum of the frame is wrong").into());
    }
    let range = frame.records();
    let mut bytes = &buffer[range.clone()];
    let mut line = String::new();
    while !bytes.is_empty() {
        let at = range.end - bytes.len();
        let malformed = |reason| frame.corrupt(file, at, reason);
        let (record, rest) =
            split_record(bytes).ok_or_else(|| malformed("a record is longer than its frame"))?;
        writeln!(out, "    commit {}.{}", record.stamp.epoch, record.stamp.order)?;
        for entry in entry::read(record.entries) {
            let entry = entry.map_err(|fault| malformed(fault.reason))?;
            line.clear();
            let key = Bytes(entry.key);
            let written = match entry.change {
                Change::Delete => write!(line, "delete {key}"),
                Change::Put(value) => write!(line, "put {key} = {}", Bytes(value)),
                Change::PutParts(mut parts) => write!(line, "parts of {key}:").and_then(|()| {
                    parts.try_for_each(|(part, value)| write!(line, " {part} = {}", Bytes(value)))
                }),
            };
            written.map_err(io::Error::other)?;
            writeln!(out, "      structure {}: {line}", entry.structure)?;
        }
        bytes = rest;
    }
    Ok(())
}
