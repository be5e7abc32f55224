//! Reads checkpoints.

use super::scan::CHUNK;
use crate::OpenError;
use crate::catalog::Catalog;
use crate::layout::{
    CHECKPOINT_MAGIC, HeaderFault, begin_header, check_header, checkpoint_name, put_u32, put_u64, put_u128,
    seal_header, u32_at, u64_at, u128_at,
};
use crate::storage::{Storage, read_full, with_retries};
use std::io;
use std::ops::Range;

/// Bytes of the header of a checkpoint.
pub(crate) const CHECKPOINT_HEADER: usize = 56;
/// Bytes of the header of a block.
pub(crate) const BLOCK_HEADER: usize = 32;
/// Bytes of the payload of the last block.
pub(crate) const END_BYTES: usize = 32;
pub(crate) const ROWS_MAGIC: u32 = u32::from_le_bytes(*b"ROWS");
pub(crate) const END_MAGIC: u32 = u32::from_le_bytes(*b"ENDC");

/// A checkpoint whose header and end are sound.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointFile {
    pub(crate) name: String,
    pub(crate) number: u64,
    /// It has all commits of smaller epochs, and no others.
    pub(crate) epoch: u64,
    pub(crate) length: u64,
    pub(crate) rows: u64,
}

/// Header of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointHeader {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    /// Identity of the database.
    pub(crate) identity: u128,
    /// Generation of the catalog when the checkpoint was begun.
    pub(crate) generation: u32,
}

impl CheckpointHeader {
    pub(crate) fn encode(&self) -> [u8; CHECKPOINT_HEADER] {
        let mut bytes = [0; CHECKPOINT_HEADER];
        begin_header(&mut bytes, CHECKPOINT_MAGIC);
        put_u64(&mut bytes, 16, self.number);
        put_u64(&mut bytes, 24, self.epoch);
        put_u128(&mut bytes, 32, self.identity);
        put_u32(&mut bytes, 48, self.generation);
        seal_header(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; CHECKPOINT_HEADER]) -> Result<Self, HeaderFault> {
        check_header(bytes, CHECKPOINT_MAGIC)?;
        Ok(Self {
            number: u64_at(bytes, 16),
            epoch: u64_at(bytes, 24),
            identity: u128_at(bytes, 32),
            generation: u32_at(bytes, 48),
        })
    }
}

impl CheckpointFile {
    pub(crate) fn load(storage: &dyn Storage, number: u64, catalog: &Catalog) -> Result<Self, OpenError> {
        let name = checkpoint_name(number);
        let read_at = |offset: u64, into: &mut [u8]| {
            let read = read_full(storage, &name, offset, into);
            read.map_err(|error| OpenError::io("read", &name, offset, error)).and_then(|read| {
                let whole = read == into.len();
                whole.then_some(()).ok_or_else(|| OpenError::corrupt(&name, offset, "it is cut off"))
            })
        };
        let length = match with_retries(|| storage.length(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::missing(&name)),
            length => length.map_err(|error| OpenError::io("read", &name, 0, error))?,
        };
        let mut header = [0; CHECKPOINT_HEADER];
        read_at(0, &mut header)?;
        let header = CheckpointHeader::decode(&header).map_err(|fault| OpenError::header(&name, fault))?;
        if header.number != number {
            return Err(OpenError::corrupt(&name, 16, "its number is not that of its name"));
        }
        if header.identity != catalog.identity {
            return Err(OpenError::corrupt(&name, 32, "it belongs to another database"));
        }
        if header.generation > catalog.generation {
            return Err(catalog.is_older_than(&name, 48));
        }
        let at = length.saturating_sub((BLOCK_HEADER + END_BYTES) as u64);
        let mut end = [0; BLOCK_HEADER + END_BYTES];
        read_at(at, &mut end)?;
        let block = BlockHeader::decode(&end).filter(|block| {
            block.magic == END_MAGIC
                && block.offset == at
                && block.epoch == header.epoch
                && block.bytes as usize == END_BYTES
                && block.checksum == crc32c::crc32c(&end[BLOCK_HEADER..])
        });
        if block.is_none() || at < CHECKPOINT_HEADER as u64 {
            return Err(OpenError::corrupt(&name, at, "its last block is wrong, or it is cut off"));
        }
        let end = &end[BLOCK_HEADER..];
        Ok(Self { number, epoch: header.epoch, length, rows: u64_at(end, 0), name })
    }
}

/// Header of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHeader {
    pub(crate) magic: u32,
    /// Bytes behind the header.
    pub(crate) bytes: u32,
    /// Offset of this header in its file.
    pub(crate) offset: u64,
    /// Epoch of the checkpoint.
    pub(crate) epoch: u64,
    /// Checksum of the bytes behind the header.
    pub(crate) checksum: u32,
}

impl BlockHeader {
    pub(crate) fn encode(&self) -> [u8; BLOCK_HEADER] {
        let mut bytes = [0; BLOCK_HEADER];
        put_u32(&mut bytes, 0, self.magic);
        put_u32(&mut bytes, 4, self.bytes);
        put_u64(&mut bytes, 8, self.offset);
        put_u64(&mut bytes, 16, self.epoch);
        put_u32(&mut bytes, 24, self.checksum);
        seal_header(&mut bytes);
        bytes
    }

    /// The header in the first bytes of `bytes`, if they are one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BLOCK_HEADER)?;
        let sum = BLOCK_HEADER - 4;
        (u32_at(bytes, sum) == crc32c::crc32c(&bytes[..sum])).then(|| Self {
            magic: u32_at(bytes, 0),
            bytes: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            epoch: u64_at(bytes, 16),
            checksum: u32_at(bytes, 24),
        })
    }
}

/// A block of rows in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) header: BlockHeader,
    /// Place of its header in the buffer.
    pub(crate) at: usize,
}

impl Block {
    /// Place of its entries in the buffer.
    pub(crate) fn entries(&self) -> Range<usize> {
        let start = self.at + BLOCK_HEADER;
        start..start + self.header.bytes as usize
    }

    pub(crate) fn corrupt(&self, file: &str, at: usize, reason: impl Into<String>) -> OpenError {
        OpenError::corrupt(file, self.header.offset + (at - self.at) as u64, reason)
    }
}

/// Reads a checkpoint's blocks of rows, a chunk at a time.
pub(crate) struct BlockReader<'s> {
    storage: &'s dyn Storage,
    pub(crate) file: &'s CheckpointFile,
    pub(crate) offset: u64,
}

impl<'s> BlockReader<'s> {
    pub(crate) fn new(storage: &'s dyn Storage, file: &'s CheckpointFile) -> Self {
        Self { storage, file, offset: CHECKPOINT_HEADER as u64 }
    }

    /// Reads the next blocks. None mean the end. Payloads are not checked.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>, blocks: &mut Vec<Block>) -> Result<(), OpenError> {
        blocks.clear();
        let start = self.offset;
        // Up to the last block.
        let end = self.file.length - (BLOCK_HEADER + END_BYTES) as u64;
        self.fill(buffer, start, end.min(start + CHUNK as u64))?;
        while self.offset < end {
            let at = (self.offset - start) as usize;
            let rest = buffer.get(at..).unwrap_or_default();
            let good = BlockHeader::decode(rest).filter(|header| {
                header.magic == ROWS_MAGIC && header.offset == self.offset && header.epoch == self.file.epoch
            });
            let behind = |header: &BlockHeader| self.offset + (BLOCK_HEADER as u64) + u64::from(header.bytes);
            match good {
                Some(header) if behind(&header) <= start + buffer.len() as u64 => {
                    self.offset = behind(&header);
                    blocks.push(Block { header, at });
                }
                _ if !blocks.is_empty() => break,
                Some(header) if behind(&header) <= end => self.fill(buffer, start, behind(&header))?,
                _ => {
                    let reason = "a block is wrong, or the file is cut off";
                    return Err(OpenError::corrupt(&self.file.name, self.offset, reason));
                }
            }
        }
        Ok(())
    }

    fn fill(&self, buffer: &mut Vec<u8>, from: u64, to: u64) -> Result<(), OpenError> {
        let length = to.saturating_sub(from) as usize;
        buffer.resize(length, 0);
        let name = &self.file.name;
        let read = read_full(self.storage, name, from, buffer);
        let read = read.map_err(|error| OpenError::io("read", name, from, error))?;
        if read < length {
            return Err(OpenError::corrupt(name, from + read as u64, "it is cut off"));
        }
        Ok(())
    }
}
