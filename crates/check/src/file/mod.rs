//! Histories in files.
//!
//! `docs/history-format.md` defines each byte. A file has a head and blocks, each with a checksum, and a last block
//! with totals, so that a cut or a change anywhere is detected.

mod read;
mod write;

pub use read::read;
pub use write::write;

use std::io;

/// First bytes of each file.
const MAGIC: [u8; 8] = *b"HOTROWH\n";

/// Version of the format that is written. Earlier versions only lack some of its events, so they are read, too:
/// version 2 lacks event 16, and version 1 events 13 to 16.
const VERSION: u32 = 3;

/// Size at which a block is written out, in bytes; names are never split, so a block may be larger.
const BLOCK_BYTES: usize = 1 << 20;

/// Largest payload of a block that is read, in bytes.
const BLOCK_BYTES_MAX: u32 = 1 << 24;

/// Kinds of blocks.
mod kind {
    pub(super) const METADATA: u8 = 1;
    pub(super) const OBJECTS: u8 = 2;
    pub(super) const KEYS: u8 = 3;
    pub(super) const WORKER: u8 = 4;
    pub(super) const EVENTS: u8 = 5;
    pub(super) const END: u8 = 6;
}

/// Totals in the last block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    objects: u64,
    keys: u64,
    workers: u64,
    event_bytes: u64,
}

/// Returns the checksum of a block.
pub(crate) fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let length = (payload.len() as u32).to_le_bytes();
    let head = crc32c::crc32c_append(crc32c::crc32c(&[kind]), &length);
    crc32c::crc32c_append(head, payload)
}

/// Error for a file that is not a history. Offsets count the bytes of the file from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading failed.
    #[error("reading failed at byte {offset}: {error}")]
    Io {
        /// Offset of the bytes to be read.
        offset: u64,
        /// Error of the reader.
        error: io::Error,
    },
    /// It has no bytes.
    #[error("the file is empty (byte 0)")]
    Empty,
    /// The file does not begin as a history does.
    #[error("the file is not a history: it does not begin with the right eight bytes (byte 0)")]
    Foreign,
    /// The file has an unknown version of the format.
    #[error("the file has version {found} of the format, and only 1 to {VERSION} are known (byte {offset})")]
    Version {
        /// Offset of the version.
        offset: u64,
        /// Version found.
        found: u32,
    },
    /// The file ends too early.
    #[error("the file is cut off: it ends at byte {offset}, in the middle of {within}")]
    Truncated {
        /// Offset of its end.
        offset: u64,
        /// Part that is missing.
        within: &'static str,
    },
    /// The file was changed, or was made wrong.
    #[error("the file is corrupt: {what} (block at byte {offset})")]
    Corrupt {
        /// Offset of the block.
        offset: u64,
        /// Fault of the block.
        what: &'static str,
    },
}
