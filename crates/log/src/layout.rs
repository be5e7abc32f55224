//! The bytes of files: names, headers, frames, records. docs/log-format.md describes them.

use crate::Stamp;
use crate::entry::{push_number, take_number};

/// Name of the file that lists the database's files and structures.
pub(crate) const CATALOG: &str = "catalog";
const SEGMENT: &str = "log-";
const CHECKPOINT: &str = "checkpoint-";
/// Ending of the names of files that are not whole yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Version of the format of all files.
pub(crate) const VERSION: u32 = 4;

/// Frames begin and end at multiples of it, so that the write of one cannot tear the sector of another.
pub(crate) const BLOCK: usize = 512;

pub(crate) const SEGMENT_MAGIC: [u8; 8] = *b"HOTROWLG";
pub(crate) const CHECKPOINT_MAGIC: [u8; 8] = *b"HOTROWCP";
pub(crate) const CATALOG_MAGIC: [u8; 8] = *b"HOTROWCA";

/// Bytes of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = BLOCK;
/// Bytes of a frame's header.
pub(crate) const FRAME_HEADER: usize = 72;
/// Bytes of a record before its entries, at most.
const RECORD_HEADER_MAX: usize = 24;
const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"HRFR");

/// A name of a file of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileName {
    Catalog,
    Segment(u64),
    Checkpoint(u64),
    Temporary,
}

impl FileName {
    /// The kind of a file by its name; `None` if the file is not the log's.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some(whole) = name.strip_suffix(TEMPORARY) {
            return Self::parse(whole).map(|_| Self::Temporary);
        }
        let number = |digits: &str| {
            let canonical =
                digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            u64::from_str_radix(digits, 16).ok().filter(|_| canonical)
        };
        if name == CATALOG {
            Some(Self::Catalog)
        } else if let Some(digits) = name.strip_prefix(SEGMENT) {
            number(digits).map(Self::Segment)
        } else {
            name.strip_prefix(CHECKPOINT).and_then(number).map(Self::Checkpoint)
        }
    }
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("{SEGMENT}{number:016x}")
}

pub(crate) fn checkpoint_name(number: u64) -> String {
    format!("{CHECKPOINT}{number:016x}")
}

/// `length` rounded up to a multiple of [`BLOCK`].
pub(crate) fn padded(length: u64) -> u64 {
    length.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    let mut word = [0; 16];
    word.copy_from_slice(&bytes[at..at + 16]);
    u128::from_le_bytes(word)
}

pub(crate) fn put_u128(bytes: &mut [u8], at: usize, value: u128) {
    bytes[at..at + 16].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Header of a segment: its place in the log, and the end of the segment before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u64,
    /// Random; in the header of each frame, so that bytes in a value are not taken for a frame.
    pub(crate) salt: u64,
    /// Valid bytes of the segment before this one; what follows them there is cut off. 0 for the first one.
    pub(crate) previous_bytes: u64,
    /// Sequence number of this segment's first frame.
    pub(crate) sequence: u64,
    /// All records of earlier segments have smaller epochs; all of this one and later ones do not.
    pub(crate) floor: u64,
    /// Identity of the database.
    pub(crate) identity: u128,
    /// True if the file was an earlier segment: behind the frames of this one there may be some of that one.
    pub(crate) is_reused: bool,
}

/// Fault of a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderFault {
    Corrupt(&'static str),
    Version(u32),
}

/// Checks magic, version and checksum of the header in `bytes`, whose last four bytes are the checksum.
pub(crate) fn check_header(bytes: &[u8], magic: [u8; 8]) -> Result<(), HeaderFault> {
    if bytes[..8] != magic {
        return Err(HeaderFault::Corrupt("it does not begin with the right eight bytes"));
    }
    let sum = bytes.len() - 4;
    if u32_at(bytes, sum) != crc32c::crc32c(&bytes[..sum]) {
        return Err(HeaderFault::Corrupt("the checksum of its header is wrong"));
    }
    match u32_at(bytes, 8) {
        VERSION => Ok(()),
        version => Err(HeaderFault::Version(version)),
    }
}

/// Begins a header with magic and version. [`seal_header`] ends it.
pub(crate) fn begin_header(bytes: &mut [u8], magic: [u8; 8]) {
    bytes[..8].copy_from_slice(&magic);
    put_u32(bytes, 8, VERSION);
}

pub(crate) fn seal_header(bytes: &mut [u8]) {
    let sum = bytes.len() - 4;
    let checksum = crc32c::crc32c(&bytes[..sum]);
    put_u32(bytes, sum, checksum);
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        begin_header(&mut bytes, SEGMENT_MAGIC);
        put_u64(&mut bytes, 16, self.number);
        put_u64(&mut bytes, 24, self.salt);
        put_u64(&mut bytes, 32, self.previous_bytes);
        put_u64(&mut bytes, 40, self.sequence);
        put_u64(&mut bytes, 48, self.floor);
        put_u128(&mut bytes, 56, self.identity);
        put_u32(&mut bytes, 72, u32::from(self.is_reused));
        seal_header(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER]) -> Result<Self, HeaderFault> {
        check_header(bytes, SEGMENT_MAGIC)?;
        Ok(Self {
            number: u64_at(bytes, 16),
            salt: u64_at(bytes, 24),
            previous_bytes: u64_at(bytes, 32),
            sequence: u64_at(bytes, 40),
            floor: u64_at(bytes, 48),
            identity: u128_at(bytes, 56),
            is_reused: u32_at(bytes, 72) != 0,
        })
    }
}

/// Purpose of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    /// Records of commits.
    Batch,
    /// The log was closed here: all before is durable.
    Close,
}

/// Header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) segment: u64,
    pub(crate) salt: u64,
    /// Offset of this header in its file.
    pub(crate) offset: u64,
    pub(crate) sequence: u64,
    /// All records up to this frame have smaller epochs; all later ones do not.
    pub(crate) bound: u64,
    /// Bytes of records, without padding.
    pub(crate) payload: u64,
    pub(crate) records: u32,
    /// Checksum of records and padding.
    pub(crate) checksum: u32,
    /// The catalog that the records need: one with so many changes, or more.
    pub(crate) generation: u32,
}

impl FrameHeader {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u32(bytes, 0, FRAME_MAGIC);
        put_u32(bytes, 4, u32::from(self.kind == FrameKind::Close));
        put_u64(bytes, 8, self.segment);
        put_u64(bytes, 16, self.salt);
        put_u64(bytes, 24, self.offset);
        put_u64(bytes, 32, self.sequence);
        put_u64(bytes, 40, self.bound);
        put_u64(bytes, 48, self.payload);
        put_u32(bytes, 56, self.records);
        put_u32(bytes, 60, self.checksum);
        put_u32(bytes, 64, self.generation);
        seal_header(&mut bytes[..FRAME_HEADER]);
    }

    /// The header in the first bytes of `bytes`, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER)?;
        let sum = FRAME_HEADER - 4;
        if u32_at(bytes, 0) != FRAME_MAGIC || u32_at(bytes, sum) != crc32c::crc32c(&bytes[..sum]) {
            return None;
        }
        let kind = match u32_at(bytes, 4) {
            0 => FrameKind::Batch,
            1 => FrameKind::Close,
            _ => return None,
        };
        Some(Self {
            kind,
            segment: u64_at(bytes, 8),
            salt: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            sequence: u64_at(bytes, 32),
            bound: u64_at(bytes, 40),
            payload: u64_at(bytes, 48),
            records: u32_at(bytes, 56),
            checksum: u32_at(bytes, 60),
            generation: u32_at(bytes, 64),
        })
    }

    /// Bytes of the whole frame, with header and padding.
    pub(crate) fn frame_bytes(&self) -> u64 {
        padded(self.payload.saturating_add(FRAME_HEADER as u64))
    }
}

/// Appends the record of a commit.
pub(crate) fn push_record(out: &mut Vec<u8>, stamp: Stamp, entries: &[u8]) {
    out.reserve(RECORD_HEADER_MAX + entries.len());
    push_number(out, entries.len() as u64);
    push_number(out, stamp.epoch);
    push_number(out, stamp.order);
    out.extend_from_slice(entries);
}

/// A record in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) stamp: Stamp,
    pub(crate) entries: &'a [u8],
}

/// Splits the first record off. `None` if the bytes are no record.
#[inline]
pub(crate) fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let mut rest = bytes;
    let [length, epoch, order] = [take_number(&mut rest)?, take_number(&mut rest)?, take_number(&mut rest)?];
    let (entries, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((Record { stamp: Stamp { epoch, order }, entries }, rest))
}
