//! Reads the frames of a segment in their order, and decides where a segment ends.

use crate::OpenError;
use crate::catalog::Catalog;
use crate::layout::{
    BLOCK, FRAME_HEADER, FrameHeader, FrameKind, SEGMENT_HEADER, SegmentHeader, segment_name,
};
use crate::storage::{Storage, read_full, with_retries};
use std::io;

/// Bytes that are read at once, unless a frame has more.
pub(super) const CHUNK: usize = if cfg!(debug_assertions) { 64 << 10 } else { 8 << 20 };

/// A segment whose header is sound.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) header: SegmentHeader,
    /// Bytes of the file.
    pub(crate) length: u64,
}

impl Segment {
    /// Reads the header of a segment.
    pub(crate) fn load(storage: &dyn Storage, number: u64, catalog: &Catalog) -> Result<Self, OpenError> {
        let name = segment_name(number);
        let failed = |error| OpenError::io("read", &name, 0, error);
        let length = match with_retries(|| storage.length(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::missing(&name)),
            length => length.map_err(failed)?,
        };
        let mut bytes = [0; SEGMENT_HEADER];
        let read = read_full(storage, &name, 0, &mut bytes).map_err(failed)?;
        if read < SEGMENT_HEADER {
            return Err(OpenError::corrupt(&name, 0, "it is shorter than its header"));
        }
        let header = SegmentHeader::decode(&bytes).map_err(|fault| OpenError::header(&name, fault))?;
        if header.number != number {
            return Err(OpenError::corrupt(&name, 16, format!("it is segment {:#x}", header.number)));
        }
        if header.identity != catalog.identity {
            return Err(OpenError::corrupt(&name, 56, "it belongs to another database"));
        }
        Ok(Self { name, header, length })
    }
}

/// A frame in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    /// All its records have this epoch or a later one.
    pub(crate) floor: u64,
    /// Place of its header in the buffer.
    pub(crate) at: usize,
}

impl Frame {
    fn padded_payload<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        &buffer[self.at + FRAME_HEADER..self.at + self.header.frame_bytes() as usize]
    }

    /// Place of its records in the buffer.
    pub(crate) fn records(&self) -> std::ops::Range<usize> {
        let start = self.at + FRAME_HEADER;
        start..start + self.header.payload as usize
    }

    /// True if records and padding are as they were written.
    pub(crate) fn is_intact(&self, buffer: &[u8]) -> bool {
        crc32c::crc32c(self.padded_payload(buffer)) == self.header.checksum
    }

    /// The error for a fault at a place in the buffer.
    pub(crate) fn corrupt(&self, file: &str, at: usize, reason: impl Into<String>) -> OpenError {
        OpenError::corrupt(file, self.header.offset + (at - self.at) as u64, reason)
    }
}

/// Fault of a frame: nothing behind its offset can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadFrame {
    pub(crate) offset: u64,
    pub(crate) reason: &'static str,
    /// True if nothing there says that it is one of the segment's frames.
    pub(crate) is_foreign: bool,
}

impl BadFrame {
    /// One that is, or was, the segment's.
    pub(crate) fn own(offset: u64, reason: &'static str) -> Self {
        Self { offset, reason, is_foreign: false }
    }
}

/// Reads a segment's frames, a chunk at a time.
pub(crate) struct Scanner<'s> {
    storage: &'s dyn Storage,
    pub(crate) segment: &'s Segment,
    catalog: &'s Catalog,
    /// Offset of the next frame.
    pub(crate) offset: u64,
    /// Offset at which to stop.
    end: u64,
    /// Sequence number of the next frame.
    pub(crate) sequence: u64,
    /// Bound of the last frame.
    pub(crate) bound: u64,
}

impl<'s> Scanner<'s> {
    pub(crate) fn new(
        storage: &'s dyn Storage,
        catalog: &'s Catalog,
        segment: &'s Segment,
        end: u64,
    ) -> Self {
        Self {
            storage,
            segment,
            catalog,
            offset: SEGMENT_HEADER as u64,
            end,
            sequence: segment.header.sequence,
            bound: segment.header.floor,
        }
    }

    /// Reads the next frames into `buffer`. No frames mean the end, or a bad frame in the beginning. A bad frame behind
    /// good ones is found by the next call.
    ///
    /// Payloads are not checked.
    pub(crate) fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        frames: &mut Vec<Frame>,
    ) -> Result<Option<BadFrame>, OpenError> {
        frames.clear();
        let start = self.offset;
        self.fill(buffer, start, CHUNK)?;
        while self.offset < self.end {
            let at = (self.offset - start) as usize;
            let header = match self.header(buffer, at) {
                Ok(header) => header,
                Err(_) if !frames.is_empty() => break,
                Err(bad) => return Ok(Some(bad)),
            };
            if header.generation > self.catalog.generation {
                return Err(self.catalog.is_older_than(&self.segment.name, self.offset));
            }
            let length = header.frame_bytes();
            if at as u64 + length > buffer.len() as u64 {
                if !frames.is_empty() {
                    break;
                }
                // At most what is left of the file.
                let whole = usize::try_from(length).unwrap_or(usize::MAX);
                self.fill(buffer, start, whole)?;
                if buffer.len() < whole {
                    return Ok(Some(BadFrame::own(start, CUT_OFF)));
                }
            }
            frames.push(Frame { header, floor: self.bound, at });
            self.offset += length;
            self.sequence += 1;
            self.bound = header.bound;
        }
        Ok(None)
    }

    /// Goes back to before a frame.
    pub(crate) fn rewind(&mut self, frame: &Frame) {
        self.offset = frame.header.offset;
        self.sequence = frame.header.sequence;
        self.bound = frame.floor;
    }

    fn fill(&self, buffer: &mut Vec<u8>, from: u64, length: usize) -> Result<(), OpenError> {
        let length = (self.end - from).min(length as u64) as usize;
        let have = buffer.len();
        if have < length {
            buffer.resize(length, 0);
        }
        buffer.truncate(length);
        let name = &self.segment.name;
        let read = read_full(self.storage, name, from, buffer);
        let read = read.map_err(|error| OpenError::io("read", name, from, error))?;
        buffer.truncate(read);
        Ok(())
    }

    fn header(&self, buffer: &[u8], at: usize) -> Result<FrameHeader, BadFrame> {
        let rest = buffer.get(at..).unwrap_or_default();
        let foreign = |reason| BadFrame { offset: self.offset, reason, is_foreign: true };
        let own = |reason| BadFrame::own(self.offset, reason);
        let header = FrameHeader::decode(rest).ok_or(foreign("there is no frame"))?;
        let segment = &self.segment.header;
        if header.segment != segment.number || header.salt != segment.salt || header.offset != self.offset {
            return Err(foreign("the frame belongs to another place"));
        }
        if header.sequence != self.sequence {
            return Err(own("the frame is out of sequence"));
        }
        let grows = match header.kind {
            FrameKind::Batch => header.bound > self.bound,
            FrameKind::Close => header.bound >= self.bound,
        };
        if !grows {
            return Err(own("the epoch of the frame is out of order"));
        }
        if header.frame_bytes() > self.end - self.offset {
            return Err(own(CUT_OFF));
        }
        Ok(header)
    }
}

const CUT_OFF: &str = "the frame is cut off";

/// Content of the last segment from a bad frame on.
pub(crate) struct Tail {
    /// Offset of a header of a later frame. It proves that the bad frame was synced once.
    pub(crate) later_frame: Option<u64>,
    /// Offset behind which there are only zeros.
    pub(crate) end: u64,
}

/// Looks at all that follows the last good frame.
pub(crate) fn tail(storage: &dyn Storage, segment: &Segment, bad: u64) -> Result<Tail, OpenError> {
    let mut buffer = vec![0; CHUNK];
    // Frames begin at whole blocks.
    let mut offset = bad;
    let mut end = bad;
    while offset < segment.length {
        let read = read_full(storage, &segment.name, offset, &mut buffer);
        let read = read.map_err(|error| OpenError::io("read", &segment.name, offset, error))?;
        if read == 0 {
            break;
        }
        if let Some(last) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            end = offset + last as u64 + 1;
        }
        for at in (0..read).step_by(BLOCK) {
            let place = offset + at as u64;
            let found = FrameHeader::decode(&buffer[at..read]).filter(|header| {
                place > bad
                    && header.segment == segment.header.number
                    && header.salt == segment.header.salt
                    && header.offset == place
            });
            if found.is_some() {
                return Ok(Tail { later_frame: Some(place), end });
            }
        }
        // A header does not cross a block, and a chunk is whole blocks.
        offset += buffer.len() as u64;
    }
    Ok(Tail { later_frame: None, end })
}
