//! Histories in files.
//!
//! `docs/history-format.md` says what each byte means. A file is a head and blocks, each with a checksum, and a
//! last block with totals, so that a file that was cut or changed anywhere is known to be.

mod read;
mod write;

pub use read::read;
pub use write::write;

use std::io;

/// The first bytes of each file.
const MAGIC: [u8; 8] = *b"HOTROWH\n";

/// The version of the format that is written. Version 1 had the same but for events 13 to 15, so it is read, too.
const VERSION: u32 = 2;

/// The most bytes of a block that is written.
const BLOCK_BYTES: usize = 1 << 20;

/// The most bytes of a block that is read.
const BLOCK_BYTES_MAX: u32 = 1 << 24;

/// The kinds of blocks.
mod kind {
    pub(super) const METADATA: u8 = 1;
    pub(super) const OBJECTS: u8 = 2;
    pub(super) const KEYS: u8 = 3;
    pub(super) const WORKER: u8 = 4;
    pub(super) const EVENTS: u8 = 5;
    pub(super) const END: u8 = 6;
}

/// The totals in the last block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    objects: u64,
    keys: u64,
    workers: u64,
    event_bytes: u64,
}

/// The checksum of a block.
pub(crate) fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let length = (payload.len() as u32).to_le_bytes();
    let head = crc32c::crc32c_append(crc32c::crc32c(&[kind]), &length);
    crc32c::crc32c_append(head, payload)
}

/// Why a file is no history. Offsets count the bytes of the file from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It could not be read.
    #[error("reading failed at byte {offset}: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// It has no bytes.
    #[error("the file is empty (byte 0)")]
    Empty,
    /// It is something else.
    #[error("the file is not a history: it does not begin with the right eight bytes (byte 0)")]
    Foreign,
    /// It has another format.
    #[error("the file has version {found} of the format, and only 1 to {VERSION} are known (byte {offset})")]
    Version {
        /// Where the version is.
        offset: u64,
        /// What it is.
        found: u32,
    },
    /// It ends too early.
    #[error("the file is cut off: it ends at byte {offset}, in the middle of {within}")]
    Truncated {
        /// Where it ends.
        offset: u64,
        /// What is missing.
        within: &'static str,
    },
    /// It was changed, or made wrong.
    #[error("the file is corrupt: {what} (block at byte {offset})")]
    Corrupt {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}
